package loop

import (
	"context"

	rnixctx "rnix/context"
	"rnix/internal/step"
	"rnix/types"
)

// conclude does what an answer asks for and ends its step. before has the outcomes of the calls that an
// earlier run has answered, nil for the others.
func (l *Loop) conclude(ctx, work context.Context, rec *step.StepRecord, resp *Response, actions []Action, before []*Outcome) (End, bool) {
	if actions[0].Kind == Text {
		return l.text(rec, resp)
	}
	l.partial, l.cuts, l.empties = "", 0, 0
	rest := unanswered(actions, before)
	outs, endErr, err := l.act(ctx, work, rest, failedBefore(before))
	held := endErr != nil // it ended where a pause holds it
	if !held {
		endErr = context.Cause(ctx)
	}
	if err != nil {
		return storage(err), true
	}
	if w := waits(outs); w != nil || held && l.host.Suspends(endErr) { // the calls stay open
		if endErr != nil {
			return End{Cause: endErr, Paused: held}, true
		}
		return End{Exit: types.ExitStatus{Code: types.ExitBudget, Reason: w.Error()}, Wait: w.For, Hint: w.Hint}, true
	}
	outs = merged(actions, before, outs)
	note, stop := l.repeats.see(actions, outs)
	if note != "" {
		if err := l.host.Append(rnixctx.Message{Role: rnixctx.RoleUser, Content: note}); err != nil {
			return storage(err), true
		}
	}
	fill(rec, actions, outs)
	i := completed(actions, outs)
	if i >= 0 {
		stay, err := stays(l, true)
		if err != nil {
			return storage(err), true
		}
		if stay {
			i = -1
		}
	}
	var end End
	if i >= 0 {
		result, why := accepted(l, &actions[i], resp.Content)
		end = settled(rec, goodEnd(l, rec), result, why)
	}
	if err := l.close(rec); err != nil {
		return storage(err), true
	}
	if i >= 0 {
		return end, true
	}
	switch {
	case endErr != nil:
		return End{Cause: endErr, Paused: held}, true
	case stop != "":
		return fail(types.ExitNoProgress, stop, nil), true
	}
	return End{}, false
}
