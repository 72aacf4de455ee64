package deliver

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"rnix/runtime/journal"
	"rnix/types"
)

// PosterConfig says what a Poster keeps and how it posts it.
type PosterConfig struct {
	Config
	Journal *journal.Journal // nil = one in memory, for Room events
	Room    int              // 0 = 256
	Name    string           // of the cursor
	Kinds   []string
	Retry   Retry
	Drain   time.Duration // how long Stop waits for what is pending; 0 = 2 s
	Calls   func(events []journal.Event) (Call, int, error)
	Batch   func() int
	OnTaken func(ctx context.Context, c *Client, events []journal.Event, reply Reply)
}

// Poster appends events to a journal and posts them from there. Safe for concurrent use. Start it and Stop it.
type Poster struct {
	feed    Feed
	journal *journal.Journal
	own     bool // the journal is ours to close
	drain   time.Duration
	failed  atomic.Int64 // events that the journal did not take
	// Ends the feed; nil until Start.
	end  context.CancelFunc // +checklocks:mu
	done sync.WaitGroup     // the feed

	mu      sync.RWMutex // held for reading while something is appended, so that Stop comes after it
	started bool         // +checklocks:mu
	stopped bool         // +checklocks:mu
	stop    sync.Once
}

// NewPoster checks a configuration and opens the cursor. Events that an earlier run has left are posted first.
func NewPoster(cfg PosterConfig) (*Poster, error) {
	c, err := New(cfg.Config)
	if err != nil {
		return nil, err
	}
	p := &Poster{journal: cfg.Journal, drain: cfg.Drain}
	if p.drain <= 0 {
		p.drain = 2 * time.Second
	}
	if p.journal == nil {
		if cfg.Room <= 0 {
			cfg.Room = 256
		}
		if p.journal, err = journal.Open(journal.Options{Session: cfg.SessionID, MaxEvents: cfg.Room, Logger: c.cfg.Logger}); err != nil {
			return nil, err
		}
		p.own = true
	} else if p.journal.Session() != cfg.SessionID {
		return nil, types.Errorf(types.ErrInvalid, "New", cfg.SessionID, "the journal is that of session %q", p.journal.Session())
	}
	cur, err := p.journal.Cursor(cfg.Name, cfg.Kinds...)
	if err != nil {
		return nil, err
	}
	p.feed = Feed{Client: c, Cursor: cur, Retry: cfg.Retry, Calls: cfg.Calls, Batch: cfg.Batch}
	if cfg.OnTaken != nil {
		p.feed.OnTaken = func(ctx context.Context, events []journal.Event, r Reply) { cfg.OnTaken(ctx, c, events, r) }
	}
	return p, nil
}

// Start begins to post, until Stop or the end of ctx. Further calls, and those after Stop, do nothing.
func (p *Poster) Start(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.started || p.stopped {
		return
	}
	p.started = true
	ctx, p.end = context.WithCancel(ctx)
	p.done.Go(func() { // ends with ctx; Stop ends and waits for it
		err := p.feed.Run(ctx)
		if ctx.Err() == nil && !errors.Is(err, journal.ErrClosed) {
			p.feed.Client.cfg.Logger.Error("posting to the platform has ended", "session", p.feed.Client.cfg.SessionID, "pending", p.Pending(), "error", err)
			p.feed.fail(err)
		}
	})
}

// Put appends an event, durably with now, else soon. Before Start and after Stop it does nothing and returns false.
func (p *Poster) Put(ctx context.Context, now bool, drafts ...journal.Draft) (bool, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if !p.started || p.stopped {
		return false, nil
	}
	if now {
		_, err := p.journal.Append(ctx, drafts...)
		return err == nil, err
	}
	for _, d := range drafts {
		if err := p.journal.Post(ctx, d.Kind, d.Data); err != nil {
			if p.failed.Add(1) == 1 { // the first one: a disk that is full has many
				p.feed.Client.cfg.Logger.Error("an event could not be kept and will not be told; Dropped counts those that follow",
					"session", p.feed.Client.cfg.SessionID, "kind", d.Kind, "error", err)
			}
			return false, err
		}
	}
	return true, nil
}

// Pending returns how many events the platform does not have yet.
func (p *Poster) Pending() int { return p.feed.Cursor.Pending() }

// Dropped returns how many events were not kept: a journal in memory had no room for them, and each row of them is posted
// as a gap, or the disk did not take them.
func (p *Poster) Dropped() int { return p.feed.Cursor.Dropped() + int(p.failed.Load()) }

// Refused returns how many events the platform has refused for ever.
func (p *Poster) Refused() int { return p.feed.Refused() }

// Err returns why the platform took nothing the last time, or nil.
func (p *Poster) Err() error { return p.feed.Err() }

// Drained waits until nothing is pending, or until ctx ends.
func (p *Poster) Drained(ctx context.Context) { _ = p.feed.Cursor.Drained(ctx) } // Pending says what is left

// Stop waits a while for what is pending, and ends the posting. What is still pending stays in the journal; if that is in memory, it
// is lost, and a warning says how much.
func (p *Poster) Stop() {
	p.stop.Do(func() {
		p.mu.Lock()
		p.stopped = true
		end := p.end
		p.mu.Unlock()
		if end != nil {
			ctx, cancel := context.WithTimeout(context.Background(), p.drain)
			go func() { // ends with cancel: the feed may have ended before us, and then nobody drains
				p.done.Wait()
				cancel()
			}()
			_ = p.feed.Cursor.Drained(ctx) // what is left is told below
			end()
			p.done.Wait()
			cancel()
		}
		if n := p.Pending(); n > 0 && p.own {
			p.feed.Client.cfg.Logger.Warn("events were not taken by the platform and are lost, since they were kept in memory",
				"session", p.feed.Client.cfg.SessionID, "events", n, "error", p.Err())
		}
		p.feed.Cursor.Close()
		if p.own {
			_ = p.journal.Close() // in memory
		}
		p.feed.Client.Close()
	})
}
