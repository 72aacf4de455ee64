package daemon

import (
	"context"
	"slices"
	"sync"

	"rnix/internal/compose/run"
	"rnix/internal/recovery"
	"rnix/internal/service/flows"
	"rnix/internal/step"
	"rnix/types"
)

// ends are the histories of which a run has ended, until it was looked at who waits for them.
type ends struct {
	more chan struct{} // room for one: there is something in ids

	mu  sync.Mutex
	ids []types.UUID // +checklocks:mu
}

func newEnds() *ends { return &ends{more: make(chan struct{}, 1)} }

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

// follow lets suspended processes go on when what they wait for has ended: children that went on
// after their parents were suspended. It returns when ctx ends.
func (d autoResumer) follow(ctx context.Context) {
	if d.settled(ctx) != nil {
		return
	}
	if d.autoMax > 0 { // a child may have ended just before the daemon did
		for _, info := range d.journal.Index().List() {
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
			if info, ok := d.journal.Index().Get(id); ok {
				d.wakeWaiting(ctx, info.ParentUUID)
			}
		}
	}
}

// wakeWaiting lets a history go on that is suspended because it waits for children, none of which is
// suspended any more.
func (d autoResumer) wakeWaiting(ctx context.Context, id types.UUID) {
	info, ok := d.journal.Index().Get(id)
	if !ok || !info.Suspended || info.Exit == nil || !info.WakeAt.IsZero() || ctx.Err() != nil {
		return
	}
	if _, alive := d.running(id); alive {
		return
	}
	state, _, _, err := d.store.Read(ctx, id)
	if err != nil || !d.mayGoOn(state) {
		return // what is wrong with it, a person is told who resumes it
	}
	d.continueQuietly(ctx, info)
}

// mayGoOn reports whether a state is that of a process that waits for children, and need not any more.
func (d autoResumer) mayGoOn(s *recovery.State) bool {
	was, err := s.Was()
	if err == nil && was.Body != nil && was.Body.Kind == run.Kind { // one of its nodes is enough
		return s.Phase == recovery.Suspended && !s.Paused && slices.ContainsFunc(flows.Awaited(was.Body.Spec, s.Notes), func(id types.UUID) bool { return !d.sleeps(id) })
	}
	if err != nil || s.Phase != recovery.Suspended || s.Paused || !waitsForChild(s) || was.ContextBudget > 0 && s.Tokens >= was.ContextBudget {
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
func (d autoResumer) sleeps(id types.UUID) bool {
	if _, alive := d.running(id); alive {
		return false
	}
	info, err := d.storedInfo(id)
	return err != nil || info.Suspended || info.Exit == nil
}
