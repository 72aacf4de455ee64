package platform

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"rnix/internal/config"
	"rnix/internal/durable"
	engine "rnix/internal/platform"
	"rnix/runtime/heartbeat"
	"rnix/runtime/journal"
	"rnix/types"
)

// How long is waited before the platform is told again what it does not know of a process that has ended: at
// first, unless its heartbeats are set to come at another pace, and at most, as a multiple of that. It doubles.
const (
	settleFirst = 30 * time.Second
	settleMost  = 20
)

// settle keeps telling the platform what it does not know of a process that has ended, until it does, or until Stop: then the next
// daemon does. While another owner has the session, it waits for that. left is how much it is; 0 = not known, and it is told at once.
func (s *Service) settle(id types.UUID, cfg engine.Config, left int) {
	cfg.Over = true
	first := cmp.Or(cfg.Interval, settleFirst)
	pause, said := first, false
	if left == 0 {
		left, pause = 1, 0
	}
	s.open.owe(id, cfg.SessionID, left, nil)
	for ; ; pause = min(max(2*pause, first), settleMost*first) {
		t := time.NewTimer(pause - time.Duration(rand.Int64N(int64(pause/4)+1)))
		select {
		case <-t.C:
		case <-s.life.Done():
			t.Stop()
			return
		}
		if !exists(cfg.Dir) || s.open.of(id) != nil {
			s.open.owe(id, cfg.SessionID, 0, nil)
			return // another run of the process has told it, or does
		}
		now, err := s.settleOnce(id, cfg)
		switch {
		case err == nil && now == 0:
			s.open.owe(id, cfg.SessionID, 0, nil)
			s.Log.Info("the platform knows what a session has come to", "session", cfg.SessionID, "uuid", id)
			return
		case errors.Is(err, heartbeat.ErrLostOwnership):
			if !said {
				s.Log.Warn("another owner has a session: what is left to tell of it waits until it is free", "session", cfg.SessionID, "uuid", id, "pending", left)
			}
			said = true
		default:
			left = cmp.Or(now, left)
			s.Log.Debug("the platform was not told what a session has come to", "session", cfg.SessionID, "uuid", id, "pending", left, "err", err)
		}
		s.open.owe(id, cfg.SessionID, left, err)
	}
}

// settleOnce tries once, for as long as the platform takes what it is told. A process that asks for the session comes first.
func (s *Service) settleOnce(id types.UUID, cfg engine.Config) (left int, err error) {
	ctx, cancel := context.WithTimeout(s.life, settleMost*settleFirst)
	defer cancel()
	mine, err := s.claims.take(ctx, cfg.SessionID, id, cancel)
	if err != nil {
		return 0, err
	}
	defer s.claims.drop(cfg.SessionID, mine)
	return s.tell(ctx, cfg)
}

// Forget removes what the platform was to be told of a history. CONFLICT if its process has its session still.
func (s *Service) Forget(id types.UUID) error {
	if s.claims.keeps(id) {
		return types.Errorf(types.ErrConflict, "Forget", id.String(), "its session is open")
	}
	if !exists(s.journalOf(id)) {
		return nil
	}
	return durable.RemoveDir(durable.OS, s.journalOf(id))
}

// TakeUp tells what an earlier daemon has not told, to the platform that is configured now, and removes what belongs to no history. It
// returns what a person has to know of it.
func (s *Service) TakeUp(cfg *config.Platform, lookup config.Lookup) (notes []string) {
	_ = durable.RemoveTemp(durable.OS, s.dir) // what it leaves, the next start removes
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil // there are none
	}
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	for _, e := range entries {
		var id types.UUID
		if id.UnmarshalText([]byte(e.Name())) != nil || id.String() != e.Name() {
			continue
		}
		if s.claims.keeps(id) {
			continue // it has been started meanwhile, or is about to: there may be no history yet
		}
		info, known := s.Index.Get(id)
		if !known && !exists(s.Journal.Dir(id)) {
			if err := s.Forget(id); err != nil {
				s.Log.Warn("session", "uuid", id, "err", err)
			}
			continue
		}
		if !known || info.Exit == nil || info.Suspended {
			continue // its next run tells it
		}
		name, err := journal.SessionIn(s.journalOf(id))
		if err != nil {
			note("what a platform was to be told of a session stays in %s: %v", s.journalOf(id), err)
			continue
		}
		if cfg.URL.V == "" {
			note("a platform does not know yet how its session %s has ended: it is told by a daemon that knows where it is (platform.url in config.yaml, or RNIX_PLATFORM_URL)", name)
			continue
		}
		at, err := s.configOf(id, Request{Session: name, Config: cfg, Lookup: lookup})
		if err != nil {
			note("a platform does not know yet how its session %s has ended: %v", name, err)
			continue
		}
		s.work.Go(func() { s.settle(id, at, 0) }) // ends with Stop
	}
	return notes
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }
