package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/types"
)

const (
	maxSideBySide = 8         // independent actions that run at once
	maxAnswer     = 256 << 10 // bytes of one answer that the model gets; devices cut earlier, and better
)

// act runs the actions: neighbours that are independent side by side, the others one by one. A
// complete behind a failure does not count, so that a model cannot claim success in the same breath as
// a call whose failure it has not seen. They run within work. A pause takes effect before each; held is
// why the process ended there. The answers come back in the order of the actions, one for each, whatever
// happens, but for those that wait or are left for another run; the error is only for a record that
// could not be written. bad says that a call of the same answer has failed before.
func (l *Loop) act(ctx, work context.Context, actions []Action, bad bool) (outs []Outcome, held, err error) {
	outs = make([]Outcome, len(actions))
	span := worktime{ctx: work, limit: func(ctx context.Context) (context.Context, context.CancelFunc) { return l.limit(ctx) }}
	defer span.end()
	for i := 0; i < len(actions); {
		if actions[i].Elsewhere() { // it has run, whatever holds us
			outs[i] = *actions[i].Settled
			if err := l.answer(actions[i:i+1], outs[i:i+1]); err != nil {
				return nil, nil, err
			}
			if err := l.host.Finish(l.progress.Step, actions[i:i+1], outs[i:i+1]); err != nil {
				return nil, nil, err
			}
			i++
			continue
		}
		if held = l.host.Wait(ctx); held != nil {
			if l.host.Suspends(held) {
				return outs, held, nil // what was not run is run when it goes on
			}
			copy(outs[i:], refused(actions[i:], types.Errorf(types.ErrCancelled, "Tool", "", "not run: %v", held)))
			return outs, held, l.answer(actions[i:], outs[i:])
		}
		if actions[i].Kind == Complete && (bad || failed(outs[:i])) {
			outs[i].Err = types.Errorf(types.ErrConflict, "Tool", "complete", "not finished: a call before this one in the same answer failed; look at it, then call complete again")
			l.host.Complete(&actions[i], outs[i].Err)
			if err := l.answer(actions[i:i+1], outs[i:i+1]); err != nil {
				return nil, nil, err
			}
			i++
			continue
		}
		if note := cmp.Or(tooEarly(l, &actions[i]), unfit(l, &actions[i])); note != "" {
			outs[i].Err = types.Errorf(types.ErrConflict, "Tool", "complete", "not finished: %s", note)
			l.host.Complete(&actions[i], outs[i].Err)
			if err := l.answer(actions[i:i+1], outs[i:i+1]); err != nil {
				return nil, nil, err
			}
			i++
			continue
		}
		j := i + 1
		for actions[i].independent() && j < len(actions) && actions[j].independent() {
			j++
		}
		if held, err = round(ctx, l, &span, actions[i:j], outs[i:j]); err != nil {
			return nil, nil, err
		}
		if held != nil {
			if l.host.Suspends(held) {
				return outs, held, nil
			}
			copy(outs[j:], refused(actions[j:], types.Errorf(types.ErrCancelled, "Tool", "", "not run: %v", held)))
			return outs, held, l.answer(actions[j:], outs[j:])
		}
		if waits(outs[i:j]) != nil {
			return outs, nil, nil
		}
		i = j
	}
	return outs, nil, nil
}

// waits returns what the first call waits for that could not end; nil if all have.
func waits(outs []Outcome) *Waiting {
	for i := range outs {
		if w, ok := outs[i].Err.(*Waiting); ok { //nolint:errorlint // given by the host, as it is
			return w
		}
	}
	return nil
}

// batch runs actions side by side between one durable intent and one record of results.
func (l *Loop) batch(ctx context.Context, actions []Action, outs []Outcome) error {
	if cause := context.Cause(ctx); cause != nil {
		copy(outs, refused(actions, types.Errorf(types.ErrCancelled, "Tool", "", "not run: %v", cause)))
		cutOff(l, cause, outs)
		return nil
	}
	if err := l.host.Intend(l.progress.Step, actions); err != nil {
		return err
	}
	if len(actions) == 1 {
		outs[0] = l.run(ctx, &actions[0])
	} else {
		sideBySide(ctx, l.cfg.Thread, l.run, actions, outs)
		waitedFor(ctx, l.run, actions, outs)
	}
	cutOff(l, context.Cause(ctx), outs)
	return l.host.Finish(l.progress.Step, actions, outs)
}

// cutOff leaves the calls open that were cut off by what is not the end of the process: what becomes of them is
// decided when it goes on. cause is why the context has ended; nil = it has not.
func cutOff(l *Loop, cause error, outs []Outcome) {
	if cause == nil || !l.host.Suspends(cause) {
		return
	}
	for i := range outs {
		if _, ok := outs[i].Err.(*Waiting); !ok && types.CodeOf(outs[i].Err) == types.ErrCancelled { //nolint:errorlint // given by the host, as it is
			outs[i] = Outcome{Err: &Waiting{For: types.SuspendFor(types.SuspendStopped, "to go on: it was cut off")}}
		}
	}
}

// sideBySide runs actions in threads of the process, some at a time. All have ended when it returns.
func sideBySide(ctx context.Context, thread func(context.Context, string, func(context.Context)) (func(), error), run func(context.Context, *Action) Outcome, actions []Action, outs []Outcome) {
	slots := make(chan struct{}, maxSideBySide)
	joins := make([]func(), 0, len(actions))
	for i := range actions {
		slots <- struct{}{}
		join, err := thread(ctx, actions[i].Call.Name, func(ctx context.Context) {
			defer func() { <-slots }()
			outs[i] = run(ctx, &actions[i])
		})
		if err != nil {
			<-slots
			if outs[i].Err = err; ctx.Err() != nil {
				outs[i] = run(ctx, &actions[i]) // it says how it was cut off
			}
			continue
		}
		joins = append(joins, join)
	}
	for _, join := range joins {
		join()
	}
}

// goroutine runs f beside the caller, without a process.
func goroutine(ctx context.Context, _ string, f func(context.Context)) (join func(), err error) {
	var wg sync.WaitGroup
	wg.Go(func() { f(ctx) })
	return wg.Wait, nil
}

// waitedFor runs the calls again that waited for something when others beside them ran on: by now it may
// have come.
func waitedFor(ctx context.Context, run func(context.Context, *Action) Outcome, actions []Action, outs []Outcome) {
	for i := range actions {
		if a := &actions[i]; waits(outs[i:i+1]) != nil && a.Kind == Spawn && context.Cause(ctx) == nil {
			if a.Earlier == nil {
				a.Earlier = &recovery.Call{ID: a.Call.ID, Name: a.Call.Name, Begun: true}
			}
			outs[i] = run(ctx, a)
		}
	}
}

// run performs one action. A panic of a device becomes an error of this call.
func (l *Loop) run(ctx context.Context, a *Action) (out Outcome) {
	start := time.Now()
	defer func() {
		if p := recover(); p != nil {
			out = Outcome{Err: types.Errorf(types.ErrInternal, "Tool", a.Call.Name, "panic: %v", p)}
		}
		if a.Settled != nil || a.Problem == nil { // else it was not begun
			out.Duration = time.Since(start)
		}
	}()
	switch {
	case a.Settled != nil: // also of a tool that is not there any more
		return *a.Settled
	case a.Problem != nil:
		return Outcome{Err: a.Problem}
	case a.Kind == Complete:
		l.host.Complete(a, nil)
		return Outcome{Output: "done"}
	}
	if a.Undo {
		if err := l.host.Undo(ctx, a.Earlier); err != nil {
			return Outcome{Err: types.Errorf(types.ErrInDoubt, "Tool", a.Call.Name, "%s (It could not be undone: %v)", recovery.Explain(a.Earlier, recovery.Unknown), err)}
		}
	}
	text, err := l.host.Run(ctx, a)
	return Outcome{Output: a.told(strings.ToValidUTF8(text, "\uFFFD")), Err: err}
}

func refused(actions []Action, err error) []Outcome {
	outs := make([]Outcome, len(actions))
	for i := range outs {
		outs[i].Err = err
	}
	return outs
}

// answer appends exactly one message for each call that has ended.
func (l *Loop) answer(actions []Action, outs []Outcome) error {
	ms := make([]rnixctx.Message, 0, len(actions))
	for i := range actions {
		if waits(outs[i:i+1]) == nil {
			m := rnixctx.Message{Role: rnixctx.RoleTool, ToolCallID: actions[i].Call.ID, Content: outs[i].Text(), IsError: outs[i].Err != nil}
			if !m.IsError {
				m.Attachments = actions[i].Attachments
			}
			ms = append(ms, m)
		}
	}
	return l.host.Append(ms...)
}

// Text is what the model is told: the output, or the error with its code.
func (o *Outcome) Text() string {
	s := o.Output
	if o.Err != nil {
		s = fmt.Sprintf("error (%s): %s", types.CodeOf(o.Err), strings.ToValidUTF8(reason(o.Err), "\uFFFD"))
		if o.Output != "" {
			s += "\n" + o.Output
		}
	}
	if s == "" {
		return "(no output)"
	}
	return rnixctx.Elide(s, maxAnswer)
}

// reason is the text of an error without the parts that the model has no use for.
func reason(err error) string {
	var e *types.SyscallError
	if errors.As(err, &e) && e.Err != nil {
		return e.Err.Error()
	}
	return err.Error()
}

func failed(outs []Outcome) bool {
	return slices.ContainsFunc(outs, func(o Outcome) bool { return o.Err != nil })
}

// completed returns the index of the complete action that ends the process, or -1.
func completed(actions []Action, outs []Outcome) int {
	for i := range actions {
		if actions[i].Kind == Complete && outs[i].Err == nil {
			return i
		}
	}
	return -1
}

// fill writes the calls into the record.
func fill(rec *step.StepRecord, actions []Action, outs []Outcome) {
	rec.Action = string(actions[0].Kind)
	var said []string
	for i := range actions {
		a, o := &actions[i], &outs[i]
		if a.Kind == Complete {
			rec.Action = string(Complete)
		}
		c := step.Call{ID: a.Call.ID, Name: a.Call.Name, Path: a.Tool.Path, Input: string(a.Call.Input), Result: o.Output, Duration: o.Duration}
		if o.Err != nil {
			c.Error, c.Code = reason(o.Err), types.CodeOf(o.Err)
		}
		rec.ToolCalls = append(rec.ToolCalls, c)
		said = append(said, summary(a, o))
	}
	rec.FailedCalls = step.FailedCalls(rec.ToolCalls)
	first := rec.ToolCalls[0]
	rec.ToolPath, rec.ToolInput, rec.ToolResult, rec.ToolError = first.Path, first.Input, first.Result, first.Error
	rec.Summary = rnixctx.Elide(strings.Join(said, "; "), 300)
}

// summary says in a few words what an action was and whether it worked: also how a command ended, which is no failure of the step.
func summary(a *Action, o *Outcome) string {
	s := rnixctx.Elide(a.Brief(), 100) + MoreLines(a.subject())
	if o.Err != nil {
		return s + " (failed: " + strings.ToLower(string(types.CodeOf(o.Err))) + ")"
	}
	if f := step.FailureOf(a.Tool.Path, o.Output, "", ""); f.Kind != "" {
		s += " (" + f.Text + ")"
	}
	return s
}

// Brief names an action, and what it acts on, in a line.
func (a *Action) Brief() string {
	if on := a.subject(); on != "" {
		return a.Call.Name + " " + firstLine(on)
	}
	return a.Call.Name
}

// subject is what an action acts on, as its input says it; empty = that is not known.
func (a *Action) subject() string {
	for _, key := range []string{"path", "file_path", "command", "pattern", "intent", "skill", "from", "query", "url", "uri", "question"} {
		if v := a.Field(key); v != "" {
			return v
		}
	}
	return ""
}

// MoreLines says how many lines of a text do not stand where it is told in one: else its first line would pass for all of it.
func MoreLines(text string) string {
	switch n := strings.Count(strings.TrimSpace(text), "\n"); n {
	case 0:
		return ""
	case 1:
		return " (+1 line)"
	default:
		return fmt.Sprintf(" (+%d lines)", n)
	}
}
