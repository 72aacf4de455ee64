package kernel

import (
	"context"
	"slices"

	"rnix/internal/step"
	"rnix/types"
)

// deny counts a call that was refused: in the step that a process is in.
func (q *questions) deny(p *Process, d types.Denial, doing *activity, own bool) {
	d.Text, d.Why = doing.secrets.String(d.Text), doing.secrets.String(d.Why)
	p.mu.Lock()
	now := p.progress.Step
	p.mu.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.denials, q.unmet = q.denials.Add(d), step.Unmet(now, own)
}

// had takes over what was refused in earlier runs, and that a person was asked about calls, which the loop asks again.
func (q *questions) had(l *step.Life) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.denials, q.unmet = l.Refused, l.Unmet
	if slices.ContainsFunc(l.Asks, func(a step.Ask) bool { return !a.Own }) {
		q.again = make(chan struct{})
	}
}

// shown says that what earlier runs have asked is shown again, or is not asked any more.
func (q *questions) shown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.again != nil {
		close(q.again)
		q.again = nil
	}
}

// AsksShown waits until the processes that were resumed show again what persons were asked about them, or until ctx ends.
func (k *KernelImpl) AsksShown(ctx context.Context) {
	for _, p := range k.table.all() {
		p.asks.mu.Lock()
		again := p.asks.again
		p.asks.mu.Unlock()
		if again == nil {
			continue
		}
		select {
		case <-again:
		case <-ctx.Done():
			return
		}
	}
}

// refusals returns the calls that were refused.
func (q *questions) refusals() types.Denials {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.denials
}

// stepped notes what a step has done that is about to be recorded, and reports whether a call was refused and none has done anything since.
func (q *questions) stepped(rec *step.StepRecord) (unmet bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if rec.StepNumber >= q.unmet && rec.Did() {
		q.unmet = 0
	}
	return q.unmet > 0
}

// completed returns how a run ends that its model has ended with a step: completed, or refused.
func (q *questions) completed(rec *step.StepRecord) types.ExitStatus {
	if !q.stepped(rec) {
		return types.ExitStatus{Reason: types.ReasonCompleted}
	}
	last := ""
	if d := q.refusals(); len(d.Denials) > 0 && d.Denied == len(d.Denials) { // else it is not known any more
		last = ": " + d.Denials[len(d.Denials)-1].Text
	}
	return types.ExitStatus{Code: types.ExitRefused, Reason: types.ReasonRefused,
		Err: types.Errorf(types.ErrPermission, "Process", "", "it ended after a call that was refused, and did nothing else%s", last)}
}
