package daemon

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"rnix/internal/config"
	"rnix/internal/durable"
	"rnix/internal/platform"
	"rnix/internal/profile"
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

// settle goes on telling the platform what it does not know of a process that has ended, until it does, or until
// the daemon stops: then the next one does. While somebody else has the session, it waits for that. left is how much it
// is; 0 = not known, and it is told at once.
func (d platformer) settle(id types.UUID, cfg platform.Config, left int) {
	cfg.Over = true
	first := cmp.Or(cfg.Interval, settleFirst)
	pause, said := first, false
	if left == 0 {
		left, pause = 1, 0
	}
	d.platforms.owe(id, cfg.SessionID, left, nil)
	for ; ; pause = min(max(2*pause, first), settleMost*first) {
		t := time.NewTimer(pause - time.Duration(rand.Int64N(int64(pause/4)+1)))
		select {
		case <-t.C:
		case <-d.platforms.life.Done():
			t.Stop()
			return
		}
		if !exists(cfg.Dir) || d.platforms.of(id) != nil {
			d.platforms.owe(id, cfg.SessionID, 0, nil)
			return // another run of the process has told it, or does
		}
		now, err := d.settleOnce(id, cfg)
		switch {
		case err == nil && now == 0:
			d.platforms.owe(id, cfg.SessionID, 0, nil)
			d.log.Info("the platform knows what a session has come to", "session", cfg.SessionID, "uuid", id)
			return
		case errors.Is(err, heartbeat.ErrLostOwnership):
			if !said {
				d.log.Warn("another owner has a session: what is left to tell of it waits until it is free", "session", cfg.SessionID, "uuid", id, "pending", left)
			}
			said = true
		default:
			left = cmp.Or(now, left)
			d.log.Debug("the platform was not told what a session has come to", "session", cfg.SessionID, "uuid", id, "pending", left, "err", err)
		}
		d.platforms.owe(id, cfg.SessionID, left, err)
	}
}

// settleOnce tries once, for as long as the platform takes what it is told. A process that asks for the session goes
// before.
func (d platformer) settleOnce(id types.UUID, cfg platform.Config) (left int, err error) {
	ctx, cancel := context.WithTimeout(d.platforms.life, settleMost*settleFirst)
	defer cancel()
	hold, err := d.platforms.hold(ctx, cfg.SessionID, id, cancel)
	if err != nil {
		return 0, err
	}
	defer d.platforms.drop(cfg.SessionID, hold)
	return platform.Settle(ctx, cfg)
}

func (d platformer) sessionsDir() string { return filepath.Join(d.places.DataDir, "sessions") }

// forget removes what a platform was to be told of a history.
func (d platformer) forget(id types.UUID) error {
	if d.platforms.of(id) != nil {
		return types.Errorf(types.ErrConflict, "Forget", id.String(), "its session is open")
	}
	if !exists(d.sessionDir(id)) {
		return nil
	}
	return durable.RemoveDir(durable.OS, d.sessionDir(id))
}

// takeUp goes on with what an earlier daemon has not told, with what this one knows of the platform, and removes what
// belongs to no history.
func (d platformer) takeUp() {
	_ = durable.RemoveTemp(durable.OS, d.sessionsDir()) // what it leaves, the next start removes
	entries, err := os.ReadDir(d.sessionsDir())
	if err != nil {
		return // there are none
	}
	cfg := d.profiles.Own()
	for _, e := range entries {
		id, ok := historyIn(e)
		if !ok {
			continue
		}
		info, known := d.journal.Index().Get(id)
		if !known && !exists(d.journal.Dir(id)) {
			if err := d.forget(id); err != nil {
				d.log.Warn("session", "uuid", id, "err", err)
			}
			continue
		}
		if !known || info.Exit == nil || info.Suspended {
			continue // its next run tells it
		}
		name, err := journal.SessionIn(d.sessionDir(id))
		if err != nil {
			d.note("what a platform was to be told of a session stays in %s: %v", d.sessionDir(id), err)
			continue
		}
		if cfg.Platform.URL.V == "" {
			d.note("a platform does not know yet how its session %s has ended: it is told by a daemon that knows where it is (platform.url in config.yaml, or RNIX_PLATFORM_URL)", name)
			continue
		}
		s, err := d.configFor(&cfg.Platform, config.Lookup(d.opt.Lookup), profile.Member{Session: name}, id)
		if err != nil {
			d.note("a platform does not know yet how its session %s has ended: %v", name, err)
			continue
		}
		d.platforms.work.Go(func() { d.settle(id, s, 0) }) // ends with close
	}
}
