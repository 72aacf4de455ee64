package daemon

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"rnix/internal/config"
	"rnix/internal/platform"
	"rnix/internal/proc"
	"rnix/internal/profile"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

// platforms are the sessions with a platform of processes that run. Safe for concurrent use.
type platforms struct {
	any  atomic.Bool     // there has been one: most daemons never have any
	work sync.WaitGroup  // sessions that are being closed, and what tells of those that have ended
	life context.Context // of what tells of those that have ended
	end  context.CancelFunc

	mu sync.Mutex
	by map[types.UUID]*tenure // +checklocks:mu
	// +checklocks:mu
	owed map[types.UUID]ipc.PlatformSession // of processes that have ended: what is told later
	// +checklocks:mu
	holds map[string]*holding // by the session's name
}

// tenure is the session of a process, with what it was opened with.
type tenure struct {
	*platform.Session
	cfg  platform.Config
	hold *holding
}

// holding is that something here has a session: two would take it from each other.
type holding struct {
	by   types.UUID
	over context.CancelFunc // makes it end soon; nil = a process has it, and keeps it; guarded by platforms.mu
	gone chan struct{}      // closed when it has ended
}

func newPlatforms() *platforms {
	p := &platforms{by: map[types.UUID]*tenure{}, owed: map[types.UUID]ipc.PlatformSession{}, holds: map[string]*holding{}}
	p.life, p.end = context.WithCancel(context.Background())
	return p
}

// hold takes a session for a process, and waits for one that is giving it back. CONFLICT if another process has it.
// With over, a process that asks for the session makes this holding end.
func (p *platforms) hold(ctx context.Context, session string, id types.UUID, over context.CancelFunc) (*holding, error) {
	for {
		p.mu.Lock()
		h := p.holds[session]
		if h == nil {
			h = &holding{by: id, over: over, gone: make(chan struct{})}
			p.holds[session] = h
			p.mu.Unlock()
			return h, nil
		}
		ending := h.over
		p.mu.Unlock()
		if ending == nil {
			return nil, types.Errorf(types.ErrConflict, "Spawn", session, "process %s has the session already: wait until it has ended, or name another session", h.by)
		}
		if over == nil {
			ending()
		}
		select {
		case <-h.gone:
		case <-ctx.Done():
			return nil, types.Errorf(types.ErrCancelled, "Spawn", session, "it is being given back: %w", context.Cause(ctx))
		}
	}
}

// ending says that a holding is about to be given back.
func (p *platforms) ending(h *holding, over context.CancelFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h.over = over
}

// drop gives a session free.
func (p *platforms) drop(session string, h *holding) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.holds, session)
	close(h.gone)
}

// of returns the session of a process; nil if it has none.
func (p *platforms) of(id types.UUID) *tenure {
	if !p.any.Load() {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.by[id]
}

// workerName is what a platform knows a process by. Hosts can have the same name, and one can have several
// daemons, so the name of the host alone would let two processes have one session. The same process has the same
// name in each of its runs.
func workerName(host string, id types.UUID) string {
	text := id.String()
	return host + "-" + text[len(text)-12:]
}

// tap tells of a record that was added to a history.
func (p *platforms) tap(id types.UUID, rec *step.Record) {
	if s := p.of(id); s != nil {
		s.Record(rec)
	}
}

// take returns the session of a process, and forgets it.
func (p *platforms) take(id types.UUID) *tenure {
	if p.of(id) == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.by[id]
	delete(p.by, id)
	return s
}

// platformer gives processes their sessions.
type platformer struct{ *Daemon }

// open claims the session of a process that is about to start or to go on. It does nothing for those that
// belong to no platform.
func (d platformer) open(ctx context.Context, p *profile.Profile, id types.UUID, provider string) error {
	if p.Member.Session == "" {
		return nil
	}
	cfg := &p.Config.Platform
	if cfg.URL.V == "" {
		return types.Errorf(types.ErrInvalid, "Spawn", p.Member.Session, "no platform is configured: set platform.url in config.yaml, or RNIX_PLATFORM_URL")
	}
	session, err := d.configFor(cfg, p.Lookup, p.Member, id)
	if err != nil {
		return err
	}
	session.Provider = provider
	session.Lost = func(stop bool) { d.lost(id, stop) }
	session.Held = func(st platform.Standing) { d.held(id, st) }
	session.Beat = func(at int64) {
		d.bounded(id)
		sessions(d).confirmed(id, at)
	}
	session.Say = func(ctx context.Context, key, text string) error {
		_, _, err := d.mail.Carry(ctx, id, step.Mail{Kind: step.MailSteer, Key: key, Text: text, Time: time.Now()}, true)
		return err
	}
	hold, err := d.platforms.hold(ctx, session.SessionID, id, nil)
	if err != nil {
		return err
	}
	s, err := platform.Open(ctx, session)
	if err != nil {
		d.platforms.drop(session.SessionID, hold)
		return err
	}
	d.platforms.any.Store(true)
	d.platforms.mu.Lock()
	d.platforms.by[id] = &tenure{s, session, hold}
	d.platforms.mu.Unlock()
	d.bounded(id)
	return nil
}

// configFor says where a session is told of, and as whom.
func (d platformer) configFor(cfg *config.Platform, lookup config.Lookup, m profile.Member, id types.UUID) (platform.Config, error) {
	token, _ := lookup(cfg.TokenEnv.V)
	worker := cfg.Worker.V
	if worker == "" {
		host, err := os.Hostname()
		if err != nil {
			return platform.Config{}, types.Errorf(types.ErrInternal, "Spawn", "", "this host has no name; set platform.worker: %w", err)
		}
		worker = workerName(host, id)
	}
	return platform.Config{SessionID: m.Session, IssueID: m.Issue, WorkerID: worker, URL: cfg.URL.V, Token: token,
		Interval: time.Duration(cfg.Interval.V), Dir: d.sessionDir(id), Log: d.log}, nil
}

func (d platformer) sessionDir(id types.UUID) string {
	return filepath.Join(d.sessionsDir(), id.String())
}

// closed gives back the session of a process whose run has ended, in the background. It does not block.
func (d platformer) closed(id types.UUID) {
	s := d.platforms.take(id)
	if s == nil {
		return
	}
	d.platforms.ending(s.hold, func() {}) // it takes as long as it takes
	d.platforms.work.Go(func() {          // ends within the times that a session takes to close; waited for by close
		ctx, cancel := context.WithCancel(context.Background())
		stop := context.AfterFunc(d.platforms.life, func() { time.AfterFunc(tellingAtStop, cancel) })
		err := s.Close(ctx)
		proc.Lease(d.procs, id, 0)
		stop()
		cancel()
		d.platforms.drop(s.cfg.SessionID, s.hold)
		if err != nil {
			d.log.Warn("session", "uuid", id, "err", err)
		}
		left := s.State().Pending
		if lost, _ := s.Lost(); left > 0 && (lost || s.Ended()) {
			d.log.Warn("the platform does not know yet all that a session has come to; it is told later", "session", s.cfg.SessionID, "uuid", id, "pending", left, "lost", lost)
			d.settle(id, s.cfg, left)
		}
	})
}

// tellingAtStop is how long a platform is told what it does not know when the daemon stops: the next one tells the rest.
const tellingAtStop = 2 * time.Second

// close waits until all sessions are given back: at most 2 s for what is told, and 10 s for the leases.
func (d platformer) close() error {
	d.platforms.end()
	d.platforms.mu.Lock()
	n := len(d.platforms.holds)
	d.platforms.mu.Unlock()
	if n > 0 {
		d.log.Info("the platform is given its sessions back; what it does not take within 12 s is left for the next daemon", "sessions", n)
	}
	d.platforms.work.Wait()
	return nil
}

// all returns the processes that have a session, and those of which a platform has still to be told something.
func (p *platforms) all() (ids []types.UUID) {
	if !p.any.Load() {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.AppendSeq(slices.Collect(maps.Keys(p.by)), maps.Keys(p.owed))
}
