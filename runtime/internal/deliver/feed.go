package deliver

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"rnix/runtime/journal"
	"rnix/types"
)

// Feed posts the events of a cursor, in order, until the platform has them. Nothing is dropped because the
// platform is slow, away or refuses our lease: it is pending. What it refuses for ever is dropped, counted and said.
type Feed struct {
	Client *Client
	Cursor *journal.Cursor
	Retry  Retry // Attempts is after how many of them in a row a warning is logged; asking goes on
	// Calls makes a request of the events, and says how many of the first it covers. It is called again for the rest. A call
	// without a body means that there is nothing to say of them.
	Calls    func(events []journal.Event) (call Call, covers int, err error)
	Batch    func() int // how many events are taken at once, at least 1
	MaxBytes int        // of their data; 0 = 256 KiB
	// OnTaken is told of each answer, before the next request. nil = nobody.
	OnTaken func(ctx context.Context, events []journal.Event, reply Reply)

	refused atomic.Int64
	away    atomic.Pointer[error]
}

// Refused returns how many events the platform has refused for ever.
func (f *Feed) Refused() int { return int(f.refused.Load()) }

// Err returns why the last attempt failed, or nil if it did not.
func (f *Feed) Err() error {
	if e := f.away.Load(); e != nil {
		return *e
	}
	return nil
}

func (f *Feed) fail(err error) { f.away.Store(&err) }

// Run posts until the context ends or the journal is closed.
func (f *Feed) Run(ctx context.Context) error {
	limit := f.MaxBytes
	if limit <= 0 {
		limit = 256 << 10
	}
	for {
		events, err := f.Cursor.Next(ctx, max(1, f.Batch()), limit)
		if err != nil {
			return err
		}
		for _, e := range events {
			if e.Kind == journal.KindGap {
				f.Client.cfg.Logger.Warn("events are missing", "session", f.Client.cfg.SessionID, "gap", string(e.Data))
			}
		}
		for len(events) > 0 {
			call, covers, err := f.Calls(events)
			if err != nil || covers < 1 {
				f.drop(events[:1], err)
				covers = 1
			} else if call.Body == nil {
				// nothing to say
			} else if covers, err = f.post(ctx, call, events[:covers]); err != nil {
				return err
			}
			if err := f.Cursor.Ack(events[covers-1].Seq); err != nil {
				f.Client.cfg.Logger.Warn("what the platform has taken could not be noted; it will be told again", "error", err)
			}
			events = events[covers:]
		}
	}
}

// post asks until the platform has taken or refused a request, and returns how many of the events it covers are
// dealt with. If several are refused together, each is asked for alone: one of them may be the reason.
func (f *Feed) post(ctx context.Context, call Call, events []journal.Event) (int, error) {
	pauses := f.Retry.Pauses()
	pauses.rule.Attempts = 0
	for {
		reply, err := f.Client.Do(ctx, call)
		if err == nil {
			f.away.Store(nil)
			if f.OnTaken != nil {
				f.OnTaken(ctx, events, reply)
			}
			return len(events), nil
		}
		var failure *Failure
		if !errors.As(err, &failure) {
			return 0, err // the context has ended
		}
		f.fail(err)
		if failure.Verdict == Refused && !elsewhere(failure.Status) {
			if len(events) > 1 {
				return f.alone(ctx, events)
			}
			f.drop(events, err)
			return 1, nil
		}
		d, _ := pauses.Next(failure)
		if f.Retry.Attempts > 0 && pauses.Made() == f.Retry.Attempts {
			f.Client.cfg.Logger.Warn("the platform does not take what it is told; it is kept and told again",
				"session", f.Client.cfg.SessionID, "endpoint", call.Endpoint, "pending", f.Cursor.Pending(), "error", err)
		}
		if failure.Verdict == Fenced {
			err = f.unfenced(ctx, failure.Token, d)
		} else {
			err = f.Client.Wait(ctx, d)
		}
		if err != nil {
			return 0, types.Errorf(types.ErrCancelled, "Post", call.Endpoint, "%w", err)
		}
	}
}

// alone posts the first of several events that were refused together.
func (f *Feed) alone(ctx context.Context, events []journal.Event) (int, error) {
	call, covers, err := f.Calls(events[:1])
	if err != nil || covers < 1 {
		f.drop(events[:1], err)
		return 1, nil
	}
	return f.post(ctx, call, events[:1])
}

// elsewhere reports whether a status is about the platform or the session, not about what was said: a route that
// is missing today must not empty the journal.
func elsewhere(status int) bool {
	return status == 403 || status == 404 || status == 405 || status == 501 || status >= 300 && status < 400
}

// unfenced waits until the lease has another fencing token than the one that was refused; without one it waits
// for d.
func (f *Feed) unfenced(ctx context.Context, token uint64, d time.Duration) error {
	for {
		if err := f.Client.Wait(ctx, max(d, time.Second)); err != nil {
			return err
		}
		if t := f.Client.cfg.Token; t == nil || token == 0 || t() != token {
			return nil
		}
	}
}

func (f *Feed) drop(events []journal.Event, err error) {
	f.refused.Add(int64(len(events)))
	for _, e := range events {
		f.Client.cfg.Logger.Warn("an event is refused for ever and dropped", "session", f.Client.cfg.SessionID,
			"event", e.ID, "kind", e.Kind, "error", err)
	}
}
