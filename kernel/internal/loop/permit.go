package loop

import (
	"context"
	"encoding/json"
	"fmt"

	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/types"
)

// asked takes over what a person was asked about a call in an earlier run.
func (a *Action) asked(c *recovery.Call) {
	if a.Ask = c.Ask; c.Reply != nil {
		a.Answer(c.Reply)
	}
}

// Answer takes over what a person has answered about the call: it may be made, with the input that the answer has if it has one, or it fails.
func (a *Action) Answer(r *step.Answered) {
	a.Reply = r
	switch {
	case a.Kind == Ask: // what it says is the result
	case !r.Allow:
		a.Problem = Refused(a.Call.Name, r)
	case len(r.Input) > 0 && string(r.Input) != string(a.Call.Input):
		a.Edited, a.Call.Input, a.fields = a.Call.Input, r.Input, object(r.Input)
	}
}

// Refused is what the model is told of a call that a person has refused.
func Refused(tool string, r *step.Answered) *types.SyscallError {
	why := "a person has refused this call"
	if r.Because != "" {
		why += ": " + r.Because
	}
	return types.Errorf(types.ErrPermission, "Tool", tool, "%s (calling it again does not help)", why)
}

// told is what the model is told of a call that has run with another input than it had asked for.
func (a *Action) told(output string) string {
	if len(a.Edited) == 0 {
		return output
	}
	return fmt.Sprintf("(A person has changed the input of this call to %s)\n%s", compact(a.Call.Input), output)
}

func compact(in json.RawMessage) string {
	const most = 2 << 10
	if len(in) > most {
		return string(in[:most]) + "..."
	}
	return string(in)
}

// round runs neighbours: at once those about which no person has to be asked, and each of the others when it is answered. held is why the
// process ended while it waited; what has not run by then is not run.
func round(ctx context.Context, l *Loop, work *worktime, actions []Action, outs []Outcome) (held, err error) {
	asked, err := l.host.Permit(l.progress.Step, actions)
	if err != nil {
		return nil, err
	}
	if len(asked) == 0 {
		if err := l.batch(work.ctx, actions, outs); err != nil {
			return nil, err
		}
		return nil, l.answer(actions, outs)
	}
	waits := make(map[int]bool, len(asked))
	for _, i := range asked {
		waits[i] = true
	}
	var now []int
	for i := range actions {
		if !waits[i] {
			now = append(now, i)
		}
	}
	if err := together(work.ctx, l, actions, outs, now); err != nil || len(now) > 0 && someWait(outs, now) {
		return nil, err
	}
	for len(asked) > 0 {
		at, held := l.host.Answered(ctx, actions, asked)
		if held == nil {
			held = l.host.Wait(ctx)
		}
		if held != nil {
			if l.host.Suspends(held) {
				return held, nil
			}
			return held, notRun(l, actions, outs, asked, held)
		}
		i := asked[at]
		asked = append(asked[:at:at], asked[at+1:]...)
		work.renew(ctx) // its time stood still
		if err := together(work.ctx, l, actions, outs, []int{i}); err != nil || someWait(outs, []int{i}) {
			return nil, err
		}
	}
	return nil, nil
}

// together runs some of the actions, and answers them at once: what is known of a call is on disk before the next one runs.
func together(work context.Context, l *Loop, actions []Action, outs []Outcome, which []int) error {
	if len(which) == 0 {
		return nil
	}
	some, ends := pick(actions, which), pick(outs, which)
	err := l.batch(work, some, ends)
	for n, i := range which {
		actions[i], outs[i] = some[n], ends[n]
	}
	if err != nil {
		return err
	}
	return l.answer(some, ends)
}

// notRun answers those of the actions that have not run, since the process ends.
func notRun(l *Loop, actions []Action, outs []Outcome, which []int, why error) error {
	ends := refused(pick(actions, which), types.Errorf(types.ErrCancelled, "Tool", "", "not run: %v", why))
	for n, i := range which {
		outs[i] = ends[n]
	}
	return l.answer(pick(actions, which), ends)
}

func someWait(outs []Outcome, which []int) bool { return waits(pick(outs, which)) != nil }

func pick[T any](all []T, which []int) []T {
	out := make([]T, len(which))
	for n, i := range which {
		out[n] = all[i]
	}
	return out
}

// worktime is the context in which actions run: it ends with the time limit of their step.
type worktime struct {
	ctx   context.Context
	stop  context.CancelFunc // nil = somebody else ends it
	limit func(context.Context) (context.Context, context.CancelFunc)
}

// renew begins the time of the step anew.
func (w *worktime) renew(ctx context.Context) {
	w.end()
	w.ctx, w.stop = w.limit(ctx)
}

func (w *worktime) end() {
	if w.stop != nil {
		w.stop()
		w.stop = nil
	}
}
