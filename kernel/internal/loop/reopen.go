package loop

import (
	"context"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/types"
)

// Open is an answer whose step had not ended when an earlier run of the process did.
type Open struct {
	recovery.Open
	Said    rnixctx.Message   // the answer, which is in the conversation
	Answers []rnixctx.Message // of its calls, those that are in the conversation
	// Policy says what becomes of a call in doubt; Choices overrides it, by the id of the call.
	Policy   recovery.Policy
	Undoable bool // files can be put back as they were before a call
	Choices  map[string]recovery.Policy
	// After is said by the user when the step has ended.
	After []rnixctx.Message
}

// reopen ends the step that an earlier run has left open.
func (l *Loop) reopen(ctx context.Context, o *Open) (End, bool) {
	rec := o.Answer.Begin()
	l.again = time.Now()
	if rec.Timestamp.IsZero() {
		rec.Timestamp = time.Now()
	}
	l.progress.Step = rec.StepNumber - 1
	l.next()
	resp := &Response{Content: o.Said.Content, ToolCalls: o.Said.ToolCalls, Blocks: o.Said.Reasoning, StopReason: rec.StopReason}
	rec.RawResponse = step.RawText(&o.Said)
	work, stop := l.limit(ctx)
	defer stop()
	actions := Parse(resp, l.cfg.Tools, l.cfg.Meta)
	if len(actions) == 0 {
		return l.nothing(rec, resp)
	}
	if actions[0].Kind == Text && len(o.After) > 0 { // what is said now goes before an end
		resp.StopReason = ""
	}
	l.after = len(o.After) > 0
	end, done := l.conclude(ctx, work, rec, resp, actions, revive(actions, o))
	l.after = false
	if len(o.After) == 0 || end.Cause != nil || end.Wait.Waits() || done && !end.Exit.Answered() {
		return end, done
	}
	if err := l.host.Append(o.After...); err != nil {
		return storage(err), true
	}
	return End{}, false
}

// revive settles what becomes of each call, and returns how those ended that have their answer: for
// each of actions an outcome, or nil in its place.
func revive(actions []Action, o *Open) []*Outcome {
	before := make([]*Outcome, len(actions))
	for i := range actions {
		a := &actions[i]
		if i >= len(o.Calls) || o.Calls[i].ID != a.Call.ID {
			continue
		}
		c := &o.Calls[i]
		a.asked(c)
		policy := o.Policy
		if p, ok := o.Choices[c.ID]; ok {
			policy = p
		}
		v := recovery.Decide(c, policy, o.Undoable && c.Intent != nil && c.Intent.Before != nil)
		switch v {
		case recovery.Answered:
			before[i] = answered(c, o.Answers)
		case recovery.Run:
		case recovery.Again:
			a.Earlier = c
		case recovery.Attach:
			a.Earlier, a.Child = c, *c.Intent.Child
		case recovery.Undo:
			a.Earlier, a.Undo = c, true
		case recovery.Lost:
			a.Settled, a.Closed = &Outcome{Output: recovery.Explain(c, v)}, true
			if c.Error != "" {
				a.Settled = &Outcome{Err: types.Errorf(c.Code, "Tool", a.Call.Name, "%s", recovery.Explain(c, v))}
			}
		default:
			a.Settled = &Outcome{Err: types.Errorf(types.ErrInDoubt, "Tool", a.Call.Name, "%s", recovery.Explain(c, v))}
		}
	}
	return before
}

// answered is the outcome of a call whose answer is in the conversation.
func answered(c *recovery.Call, answers []rnixctx.Message) *Outcome {
	for _, m := range answers {
		if m.ToolCallID != c.ID {
			continue
		}
		if !m.IsError {
			return &Outcome{Output: m.Content}
		}
		code := c.Code
		if code == "" {
			code = types.ErrDriver
		}
		text := c.Error
		if text == "" {
			text = m.Content
		}
		return &Outcome{Err: types.Errorf(code, "Tool", c.Name, "%s", text)}
	}
	return &Outcome{}
}

// unanswered returns the actions that have no outcome yet; without any, it is actions itself.
func unanswered(actions []Action, before []*Outcome) []Action {
	if !anyAnswered(before) {
		return actions
	}
	var rest []Action
	for i := range actions {
		if before[i] == nil {
			rest = append(rest, actions[i])
		}
	}
	return rest
}

// merged puts the outcomes of the unanswered actions between those that were there.
func merged(actions []Action, before []*Outcome, outs []Outcome) []Outcome {
	if !anyAnswered(before) {
		return outs
	}
	all := make([]Outcome, len(actions))
	for i := range all {
		if before[i] != nil {
			all[i] = *before[i]
		} else {
			all[i], outs = outs[0], outs[1:]
		}
	}
	return all
}

func anyAnswered(before []*Outcome) bool {
	for _, o := range before {
		if o != nil {
			return true
		}
	}
	return false
}

// failedBefore reports whether a call has failed in an earlier run.
func failedBefore(before []*Outcome) bool {
	for _, o := range before {
		if o != nil && o.Err != nil {
			return true
		}
	}
	return false
}
