package autoresume

import (
	"context"
	"slices"
	"sync"

	"rnix/internal/compose/run"
	"rnix/internal/price"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

// ends are the histories of which a run has ended, until it was looked at who waits for them.
type ends struct {
	more chan struct{} // room for one: there is something in ids

	mu  sync.Mutex
	ids []types.UUID // +checklocks:mu
}

// put notes the end of a run. It does not block.
func (e *ends) put(id types.UUID) {
	e.mu.Lock()
	e.ids = append(e.ids, id)
	e.mu.Unlock()
	select {
	case e.more <- struct{}{}:
	default:
	}
}

func (e *ends) take() []types.UUID {
	e.mu.Lock()
	defer e.mu.Unlock()
	ids := e.ids
	e.ids = nil
	return ids
}

// Follow lets suspended processes go on when what they wait for has ended: children that went on
// after their parents were suspended. It returns when ctx ends.
func (d *Service) Follow(ctx context.Context) {
	if d.Ground.Settled(ctx) != nil {
		return
	}
	if d.Max > 0 { // a child may have ended just before the daemon did
		for _, info := range d.Stored.Cards.Index().List() {
			d.wakeWaiting(ctx, info.UUID)
		}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.ends.more:
		}
		for _, id := range d.ends.take() {
			d.wakeWaiting(ctx, id) // its child may have ended before it was suspended
			d.wakeBroke(ctx, id)
			if info, ok := d.Stored.Cards.Index().Get(id); ok {
				d.wakeWaiting(ctx, info.ParentUUID)
			}
		}
	}
}

// wakeWaiting lets a history go on that is suspended because it waits for children, none of which is
// suspended any more.
func (d *Service) wakeWaiting(ctx context.Context, id types.UUID) {
	info, ok := d.Stored.Cards.Index().Get(id)
	if !ok || !info.Suspended || info.Exit == nil || !info.WakeAt.IsZero() || ctx.Err() != nil {
		return
	}
	if _, alive := d.Stored.Running(id); alive {
		return
	}
	state, _, _, err := d.Stored.Store.Read(ctx, id)
	if err != nil || !d.mayGoOn(state) {
		return // what is wrong with it, a person is told who resumes it
	}
	d.ContinueQuietly(ctx, info)
}

// mayGoOn reports whether a state is that of a process that waits for children, and need not any more.
func (d *Service) mayGoOn(s *recovery.State) bool {
	was, err := s.Was()
	if err == nil && was.Body != nil && was.Body.Kind == run.Kind { // one of its nodes is enough
		return s.Phase == recovery.Suspended && !s.Paused && slices.ContainsFunc(d.Flows.Awaited(was.Body.Spec, s.Notes), func(id types.UUID) bool { return !d.sleeps(id) })
	}
	if err != nil || s.Phase != recovery.Suspended || s.Paused || len(recovery.Awaits(s)) == 0 || was.ContextBudget > 0 && s.Tokens >= was.ContextBudget {
		return false
	}
	word := slices.ContainsFunc(s.Mail, func(m step.Mail) bool { return m.Kind == step.MailChild && m.Child != types.UUID{} })
	for _, a := range recovery.Awaits(s) {
		awake := slices.ContainsFunc(a.IDs, func(id types.UUID) bool { return !d.sleeps(id) })
		if a.Any && !awake && !word || !a.Any && slices.ContainsFunc(a.IDs, d.sleeps) {
			return false
		}
	}
	return true
}

// sleeps reports whether a history is suspended, or was taken away.
func (d *Service) sleeps(id types.UUID) bool {
	if _, alive := d.Stored.Running(id); alive {
		return false
	}
	info, err := d.Ground.Described(id)
	return err != nil || info.Suspended || info.Exit == nil
}

// wakeBroke lets a history go on that was suspended for a budget which has been raised while it was being
// suspended.
func (d *Service) wakeBroke(ctx context.Context, id types.UUID) {
	info, ok := d.Stored.Cards.Index().Get(id)
	if !ok || !info.Suspended || info.Purse == nil {
		return
	}
	limit, _, ok := d.Budgets.Balance(info.Purse.UUID)
	if !ok || limit.Tokens == info.Purse.Tokens && limit.USD == price.FromFloat(info.Purse.USD) {
		return
	}
	if _, alive := d.Stored.Running(id); alive {
		return
	}
	_, err := d.Resumer.Continued(ctx, id, &ipc.ResumeRequest{}, recovery.WaitsForBudget(info.Purse.UUID))
	if err != nil && types.CodeOf(err) != types.ErrConflict && ctx.Err() == nil {
		d.Note("PID %d (%s) cannot be resumed automatically: %v", info.PID, id, err)
	}
}
