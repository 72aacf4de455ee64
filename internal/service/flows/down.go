package flows

import (
	"context"
	"slices"
	"time"

	"rnix/internal/compose"
	"rnix/internal/compose/run"
	"rnix/internal/service"
	"rnix/ipc"
	"rnix/types"
)

// stopper ends and pauses runs.
type stopper struct {
	runs   *runs
	kernel Kernel
	finder Finder
	stored Stored
}

// down ends a run, or pauses it, and returns when nothing of it works any more.
func (s stopper) down(ctx context.Context, peer *ipc.Peer, req ipc.ComposeDownRequest) (ipc.ComposeRun, error) {
	if err := s.finder.Settled(ctx); err != nil {
		return ipc.ComposeRun{}, err
	}
	t, err := s.runs.find(req.Target)
	if err != nil {
		return ipc.ComposeRun{}, err
	}
	switch t.Place() {
	case service.Runs:
		if err = s.finder.MayTouch(peer, "Compose", t.PID); err == nil {
			err = s.halt(ctx, &t, req.Pause)
		}
	case service.Stored: // it would go on when its time has come, or with one of its nodes
		if owner, inside := s.finder.AgentOf(peer); inside {
			return ipc.ComposeRun{}, service.Outside("Compose", owner, "act on its own subtree only")
		}
		if err = s.runs.left(ctx, &t); err != nil {
			break
		}
		if req.Pause {
			err = s.pause(ctx, t.UUID)
		} else {
			err = s.stored.Dismiss(ctx, t.UUID, "terminated while it was suspended")
		}
	case service.Over:
	}
	if err != nil {
		return ipc.ComposeRun{}, err
	}
	if t, err = s.finder.Resolve(t.UUID.String()); err != nil {
		return ipc.ComposeRun{}, err
	}
	return s.runs.describe(ctx, &t)
}

// pausePatience is how long it is waited for nodes that were being started when a run was paused.
const pausePatience = 10 * time.Second

// stands waits until no node of a paused run works.
func (s stopper) stands(ctx context.Context, t *service.Target) error {
	ctx, cancel := context.WithTimeout(ctx, pausePatience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	works := func(n run.Node) bool {
		if n.Phase != compose.Running {
			return false
		}
		i, err := s.kernel.Info(n.PID)
		return n.PID == 0 || err == nil && i.State == types.StateRunning && !i.Paused
	}
	for {
		r, ok := s.runs.body(t.PID)
		if !ok || !slices.ContainsFunc(r.Nodes(), works) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return types.Errorf(types.ErrTimeout, "Compose", t.Live.Name, "it is paused, and nodes that were being started are not yet")
		}
	}
}

// halt pauses or ends a run that lives.
func (s stopper) halt(ctx context.Context, t *service.Target, pause bool) error {
	if pause {
		if _, err := s.kernel.SignalTree(t.PID, types.SIGPAUSE); err != nil {
			if types.CodeOf(err) == types.ErrNotFound {
				return nil // it has ended meanwhile
			}
			return err
		}
		return s.stands(ctx, t)
	}
	if err := s.kernel.Terminate(t.PID); err != nil && types.CodeOf(err) != types.ErrNotFound {
		return err
	}
	if _, err := s.kernel.WaitInfo(ctx, t.PID); err != nil && types.CodeOf(err) != types.ErrNotFound {
		return err
	}
	state, _, _, err := s.runs.history(ctx, t.UUID)
	if err != nil {
		return err
	}
	for _, id := range attempts(state) { // one that somebody has resumed in this moment
		if pid, ok := s.runs.running(id); ok {
			_, _ = s.kernel.SignalTree(pid, types.SIGKILL) // it may have ended
			if _, err := s.kernel.WaitInfo(ctx, pid); err != nil && types.CodeOf(err) != types.ErrNotFound {
				return err
			}
		}
	}
	return nil
}

// pause pauses a run that is on disk, and the nodes of it that are: none of them goes on when its time has come. One
// that somebody lets go on in this moment is paused where it lives.
func (s stopper) pause(ctx context.Context, id types.UUID) error {
	state, _, _, err := s.runs.history(ctx, id)
	if err != nil {
		return err
	}
	for _, id := range append([]types.UUID{id}, attempts(state)...) { // the run before its nodes: they do not wake it then
		if err := s.stored.Pause(ctx, id); err != nil {
			return err
		}
	}
	return nil
}
