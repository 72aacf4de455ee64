package platform

import (
	"context"
	"os"
	"time"

	"rnix/internal/config"
	engine "rnix/internal/platform"
	"rnix/internal/step"
	"rnix/types"
)

// Request says which session a process asks for, and of which platform.
type Request struct {
	Session  string // as the platform names it; "" = the process belongs to no platform
	Issue    string
	Config   *config.Platform
	Lookup   config.Lookup // finds the platform's token
	Provider string        // of the process's model
}

// Open claims the session of a process that is about to start or to resume. It does nothing for those that belong to no platform.
func (s *Service) Open(ctx context.Context, id types.UUID, req Request) error {
	if req.Session == "" {
		return nil
	}
	if req.Config.URL.V == "" {
		return types.Errorf(types.ErrInvalid, "Spawn", req.Session, "no platform is configured: set platform.url in config.yaml, or RNIX_PLATFORM_URL")
	}
	cfg, err := s.configOf(id, req)
	if err != nil {
		return err
	}
	cfg.Lost = func(stop bool) { s.lost(id, stop) }
	cfg.Held = func(engine.Standing) { s.held(id) }
	cfg.Beat = func(at int64) {
		s.bound(id)
		s.Processes.Confirmed(id, at)
	}
	cfg.Say = func(ctx context.Context, key, text string) error { return s.Processes.Say(ctx, id, key, text) }
	mine, err := s.claims.take(ctx, cfg.SessionID, id, nil)
	if err != nil {
		return err
	}
	l, err := s.claim(ctx, cfg)
	if err != nil {
		s.claims.drop(cfg.SessionID, mine)
		return err
	}
	s.open.put(id, &session{lease: l, cfg: cfg, claim: mine})
	s.bound(id)
	return nil
}

// configOf says where a session is told of, and as which worker.
func (s *Service) configOf(id types.UUID, req Request) (engine.Config, error) {
	token, _ := req.Lookup(req.Config.TokenEnv.V)
	worker := req.Config.Worker.V
	if worker == "" {
		host, err := os.Hostname()
		if err != nil {
			return engine.Config{}, types.Errorf(types.ErrInternal, "Spawn", "", "this host has no name; set platform.worker: %w", err)
		}
		worker = workerName(host, id)
	}
	return engine.Config{SessionID: req.Session, IssueID: req.Issue, WorkerID: worker, URL: req.Config.URL.V, Token: token,
		Interval: time.Duration(req.Config.Interval.V), Provider: req.Provider, Dir: s.journalOf(id), Log: s.Log}, nil
}

// workerName is what a platform knows a process by. Hosts can have the same name, and one can have several
// daemons, so the name of the host alone would let two processes have one session. The same process has the same
// name in each of its runs.
func workerName(host string, id types.UUID) string {
	text := id.String()
	return host + "-" + text[len(text)-12:]
}

// Begun is called when the process of a session runs: the session may have been lost before it did.
func (s *Service) Begun(id types.UUID) {
	had := s.open.of(id)
	if had == nil {
		return
	}
	s.held(id)
	if lost, stop := had.lease.Lost(); lost {
		s.lost(id, stop)
	}
}

// Record tells of a record that was added to the history of a process. It waits for no network.
func (s *Service) Record(id types.UUID, rec *step.Record) {
	if had := s.open.of(id); had != nil {
		had.lease.Record(rec)
	}
}

// Ended gives back the session of a process that runs no more, or that did not start, in the background. It does not block.
func (s *Service) Ended(id types.UUID) {
	had := s.open.take(id)
	if had == nil {
		return
	}
	s.claims.ends(had.claim)
	s.work.Go(func() { // ends within the times that a session takes to close; waited for by Stop
		ctx, cancel := context.WithCancel(context.Background())
		stop := context.AfterFunc(s.life, func() { time.AfterFunc(tellingAtStop, cancel) })
		err := had.lease.Close(ctx)
		s.Processes.Bound(id, 0)
		stop()
		cancel()
		s.claims.drop(had.cfg.SessionID, had.claim)
		if err != nil {
			s.Log.Warn("session", "uuid", id, "err", err)
		}
		left := had.lease.State().Pending
		if lost, _ := had.lease.Lost(); left > 0 && (lost || had.lease.Ended()) {
			s.Log.Warn("the platform does not know yet all that a session has come to; it is told later", "session", had.cfg.SessionID, "uuid", id, "pending", left, "lost", lost)
			s.settle(id, had.cfg, left)
		}
	})
}

// tellingAtStop is how long a platform is told what it does not know when the daemon stops: the next one tells the rest.
const tellingAtStop = 2 * time.Second
