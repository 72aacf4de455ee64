package watch

import (
	"context"
	"errors"
	"io"
	"strconv"

	"rnix/internal/event"
	"rnix/internal/service"
	"rnix/ipc"
	"rnix/types"
)

const (
	maxTail    = 10_000 // events of the past that are picked from its end
	maxTargets = 1_000  // processes that are named in one request
)

// streamEvents sends events: first those of the past that were asked for, from the files of histories, then
// those of the log as they come. A caller inside an agent gets those of the agent's own subtree only.
func (w *Service) streamEvents(ctx context.Context, peer *ipc.Peer, req ipc.EventsRequest, out *ipc.Stream) error {
	switch owner, inside := w.Callers.AgentOf(peer); {
	case inside && owner == 0:
		return service.Outside("Events", owner, "")
	case inside && req.Target == "" && len(req.Targets) == 0:
		req.Target, req.Tree = strconv.FormatInt(int64(owner), 10), true
	}
	if req.Follow && req.UntilEnd {
		for _, name := range append([]string{req.Target}, req.Targets...) {
			if name != "" {
				_, _ = w.Callers.Await(ctx, peer, "Events", name) // what is wrong with it, the filter says
			}
		}
	}
	written := w.Files.Written() // before we look who lives: what is born later is in the log behind it
	f, err := w.filter(peer, &req)
	if err != nil {
		return err
	}
	if err := out.Start(); err != nil {
		return err
	}
	s := &sink{out: out}
	if req.Speech && req.Follow {
		f.heard = newHearing(w.Kernel)
		defer f.heard.close()
	}
	from := req.From
	if from == 0 {
		from = w.Log.Last() + 1
		if req.History && !f.some {
			from = w.Log.Oldest()
		}
	}
	if req.History && req.From == 0 {
		s.tail = req.Tail
		if f.some {
			if err := w.sendPast(ctx, f, s); err != nil {
				return err
			}
			from = written + 1 // what the files have of it comes no second time
		}
	}
	return w.sendLive(ctx, w.Log.Cursor(from), f, s)
}

// sendLive sends what the log has and gets, and what models say meanwhile if that was asked for, until the request is served.
func (w *Service) sendLive(ctx context.Context, cur *event.Cursor, f *filter, s *sink) error {
	stop := w.Log.Last()
	for {
		if cur.Pos() > stop {
			if err := s.flush(); err != nil {
				return err
			}
			if !f.req.Follow || f.over() {
				return nil
			}
			f.steps = f.req.Steps
			if err := f.heard.send(f, s, cur.Pos()-1); err != nil {
				return err
			}
		}
		e, ok, err := cur.TryNext()
		var missed *event.Missed
		switch {
		case errors.As(err, &missed):
			if err := s.missed(missed.From, missed.To); err != nil {
				return err
			}
			f.ended(w.ended) // their ends may be among what was missed
			stop = max(stop, missed.To)
		case errors.Is(err, io.EOF):
			return s.flush()
		case err != nil:
			return err
		case !ok:
			if err := f.heard.wait(ctx, cur.More()); err != nil {
				return err
			}
		default:
			if over, err := f.live(&e, s); err != nil || over {
				return err
			}
		}
	}
}

// live sends an event of the log if it is wanted, and reports whether nothing more is to come.
func (f *filter) live(e *event.Event, s *sink) (over bool, err error) {
	if !f.wants(e) || e.Seq <= f.sent[e.UUID] {
		return false, nil
	}
	if line := f.heard.line(e); line != nil && f.picks(line) {
		f.buf = event.AppendJSON(f.buf[:0], line)
		if err := s.send(line.Seq, line.Kind, f.buf); err != nil {
			return false, err
		}
	}
	if e.Kind == event.Exited && f.running[e.UUID] {
		delete(f.running, e.UUID)
		if f.over() && f.req.UntilEnd {
			return true, s.flush()
		}
	}
	return false, nil
}

// ended reports whether a process is over.
func (w *Service) ended(id types.UUID) bool {
	i, known := w.Kernel.InfoOf(id)
	return !known || i.State >= types.StateZombie
}

// sink sends events, or keeps the last of them until it is known which these are.
type sink struct {
	out  *ipc.Stream
	tail int // how many of the past are sent; 0 = all, or the past is over
	kept []keptEvent
	last uint64 // greatest number that was sent
}

type keptEvent struct {
	seq, to uint64 // to > 0: a range that was missed, from seq on
	kind    event.Kind
	data    []byte
}

func (s *sink) send(seq uint64, kind event.Kind, data []byte) error {
	if s.tail == 0 {
		return s.pass(seq, kind, data)
	}
	s.keep(keptEvent{seq: seq, kind: kind, data: append([]byte(nil), data...)})
	return nil
}

// pass sends an event. A client that comes back goes on behind the greatest number that it has seen, so those
// of an earlier daemon are none.
func (s *sink) pass(seq uint64, kind event.Kind, data []byte) error {
	if seq < s.last {
		seq = 0
	}
	s.last = max(s.last, seq)
	return s.out.SendRaw(seq, string(kind), data)
}

func (s *sink) missed(from, to uint64) error {
	if s.tail == 0 {
		return s.out.Missed(from, to)
	}
	s.keep(keptEvent{seq: from, to: to})
	return nil
}

func (s *sink) keep(k keptEvent) {
	if s.kept = append(s.kept, k); len(s.kept) >= 2*s.tail {
		s.kept = append(s.kept[:0], s.kept[len(s.kept)-s.tail:]...)
	}
}

// flush sends what was kept, and ends the keeping.
func (s *sink) flush() error {
	if s.tail == 0 {
		return nil
	}
	kept := s.kept[max(len(s.kept)-s.tail, 0):]
	s.kept, s.tail = nil, 0
	for _, k := range kept {
		var err error
		if k.to > 0 {
			err = s.out.Missed(k.seq, k.to)
		} else {
			err = s.pass(k.seq, k.kind, k.data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
