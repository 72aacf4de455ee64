package daemon

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"rnix/internal/platform"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

// platforms are the sessions with a platform of processes that run. Safe for concurrent use.
type platforms struct {
	any  atomic.Bool    // there has been one: most daemons never have any
	work sync.WaitGroup // sessions that are being closed

	mu sync.Mutex
	by map[types.UUID]*platform.Session // +checklocks:mu
}

func newPlatforms() *platforms { return &platforms{by: map[types.UUID]*platform.Session{}} }

// of returns the session of a process; nil if it has none.
func (p *platforms) of(id types.UUID) *platform.Session {
	if !p.any.Load() {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.by[id]
}

// tap tells of a record that was added to a history.
func (p *platforms) tap(id types.UUID, rec *step.Record) {
	if s := p.of(id); s != nil {
		s.Record(rec)
	}
}

// take returns the session of a process, and forgets it.
func (p *platforms) take(id types.UUID) *platform.Session {
	if p.of(id) == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.by[id]
	delete(p.by, id)
	return s
}

// member is what makes a process part of a platform. Part of the on-disk format.
type member struct {
	Session string `json:"session,omitempty"` // as the platform names it
	Issue   string `json:"issue,omitempty"`
}

// platformer gives processes their sessions.
type platformer struct{ *Daemon }

// open claims the session of a process that is about to start or to go on. It does nothing for those that
// belong to no platform.
func (d platformer) open(ctx context.Context, p *profile, id types.UUID, provider string) error {
	if p.member.Session == "" {
		return nil
	}
	cfg := &p.cfg.Platform
	if cfg.URL.V == "" {
		return types.Errorf(types.ErrInvalid, "Spawn", p.member.Session, "no platform is configured: set platform.url in config.yaml, or RNIX_PLATFORM_URL")
	}
	token, _ := p.lookup(cfg.TokenEnv.V)
	worker := cfg.Worker.V
	if worker == "" {
		host, err := os.Hostname()
		if err != nil {
			return types.Errorf(types.ErrInternal, "Spawn", "", "this host has no name; set platform.worker: %w", err)
		}
		worker = host
	}
	s, err := platform.Open(ctx, platform.Config{SessionID: p.member.Session, IssueID: p.member.Issue, WorkerID: worker, URL: cfg.URL.V, Token: token,
		Interval: time.Duration(cfg.Interval.V), Dir: d.sessionDir(id), Provider: provider, Log: d.log,
		Lost: func(stop bool) { d.lost(id, stop) },
		Say: func(ctx context.Context, text string) error {
			_, _, err := mailer{d.Daemon}.carry(ctx, id, step.Mail{Kind: step.MailSteer, Text: text, Time: time.Now()}, true)
			return err
		}})
	if err != nil {
		return err
	}
	d.platforms.any.Store(true)
	d.platforms.mu.Lock()
	d.platforms.by[id] = s
	d.platforms.mu.Unlock()
	return nil
}

func (d platformer) sessionDir(id types.UUID) string {
	return filepath.Join(d.places.DataDir, "sessions", id.String())
}

// lost ends a process whose session belongs to somebody else, or is to end.
func (d platformer) lost(id types.UUID, stop bool) {
	pid, ok := d.running(id)
	if !ok {
		return
	}
	var err error
	if stop {
		err = d.kernel.Signal(pid, types.SIGTERM)
	} else {
		err = d.kernel.Revoke(pid, "another owner has its session, or may have it")
	}
	if err != nil && types.CodeOf(err) != types.ErrNotFound {
		d.log.Error("a process that has lost its session cannot be ended", "pid", pid, "uuid", id, "err", err)
	}
}

// closed gives back the session of a process whose run has ended, in the background. It does not block.
func (d platformer) closed(id types.UUID) {
	s := d.platforms.take(id)
	if s == nil {
		return
	}
	d.platforms.work.Go(func() { // ends within the times that a session takes to close; waited for by close
		if err := s.Close(context.Background()); err != nil {
			d.log.Warn("session", "uuid", id, "err", err)
		}
	})
}

// close waits until all sessions are given back.
func (d platformer) close() error {
	d.platforms.work.Wait()
	return nil
}

// wire describes the session of a process; nil if it has none.
func (d platformer) wire(id types.UUID) *ipc.PlatformSession {
	s := d.platforms.of(id)
	if s == nil {
		return nil
	}
	st := s.State()
	return &ipc.PlatformSession{Session: st.SessionID, FencingToken: st.FencingToken, LastTick: st.LastTick, Pending: st.Pending, Trouble: st.Trouble}
}
