package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/step"
	"rnix/kernel/internal/loop"
	"rnix/types"
)

// waitInput is the input of the wait action.
type waitInput struct {
	PIDs     []types.PID `json:"pids"`
	Any      bool        `json:"any"`
	TimeoutS float64     `json:"timeout_s"`
}

// awaitedChild is how wait shows a child.
type awaitedChild struct {
	PID    types.PID `json:"pid"`
	Name   string    `json:"name,omitempty"`
	State  string    `json:"state"` // running, suspended, ended
	Exit   *int      `json:"exit_code,omitempty"`
	Reason string    `json:"reason,omitempty"` // of the end, or why it is suspended
	Result string    `json:"result,omitempty"`
}

// maxResults is how much of the results one answer holds, in bytes.
const maxResults = 160 << 10

// maxTimeoutS is the longest time limit in seconds: a year.
const maxTimeoutS = 366 * 24 * 3600

// alarm returns a channel that fires after so many seconds, never for 0, and what stops it.
func alarm(call string, seconds float64) (<-chan time.Time, func() bool, error) {
	switch {
	case seconds == 0:
		return nil, func() bool { return true }, nil
	case seconds < 0 || seconds > maxTimeoutS:
		return nil, nil, types.Errorf(types.ErrInvalid, "Tool", call, "timeout_s is %g; give a number of seconds, up to a year", seconds)
	}
	t := time.NewTimer(time.Duration(seconds * float64(time.Second)))
	return t.C, t.Stop, nil
}

// waitChildren waits for children of a process, and returns how they ended. What the process is told of their ends
// beside that, it is not told again.
func (at *agentActions) waitChildren(ctx context.Context, p *Process, a *loop.Action) (string, error) {
	var in waitInput
	if err := inputOf(a, &in); err != nil {
		return "", err
	}
	kids, err := at.children.awaited(p, in.PIDs)
	if err != nil {
		return "", err
	}
	if len(kids) == 0 {
		return noChildren(p), nil
	}
	late, stop, err := alarm("wait", in.TimeoutS)
	if err != nil {
		return "", err
	}
	defer stop()
	for note := ""; ; {
		changed := p.box.Changed() // before it is looked at
		var ended, asleep, awake []Info
		var lives []*Process
		for _, c := range kids {
			switch i, live, ok := at.children.fate(c); {
			case !ok:
			case live != nil:
				awake, lives = append(awake, i), append(lives, live)
			case i.Exit != nil && !i.Parked.Waits():
				ended = append(ended, i)
			default:
				asleep = append(asleep, i)
			}
		}
		switch {
		case note == "" && p.box.Has(isSteer):
			note = "the user has said something, which you get now; call wait again after it"
		case at.stopped.Load() && len(ended) < len(kids):
			return "", at.stopping(p) // they stop too
		case note == "" && len(awake)+len(asleep) > 0 && (!in.Any || len(ended) == 0):
			if len(awake) == 0 && late == nil {
				return "", waitsFor(asleep[0].PID, asleep[0].UUID, orDefault(asleep[0].Parked.SuspendReason, "stopped"))
			}
			timeout, err := at.anyOf(ctx, p, lives, changed, late)
			if err != nil {
				return "", err
			}
			if timeout {
				note = "the time is over"
			}
			continue
		}
		return at.waited(p, a, ended, asleep, awake, note)
	}
}

// noChildren is the answer of wait to a process that has no child to wait for. A fork reads in its conversation of
// those of its origin.
func noChildren(p *Process) string {
	if p.origin != (types.UUID{}) {
		return `{"children":[],"note":"no child of yours runs in the background; those that were started before you were forked belong to the process that you are a copy of"}`
	}
	return `{"children":[],"note":"no child runs in the background"}`
}

// anyOf waits for the first of several things. timeout says that it was the alarm; the error is the end of ctx.
func (at *agentActions) anyOf(ctx context.Context, p *Process, lives []*Process, changed <-chan struct{}, late <-chan time.Time) (timeout bool, err error) {
	recv := func(ch any) reflect.SelectCase {
		return reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ch)}
	}
	cases := []reflect.SelectCase{recv(ctx.Done()), recv(late), recv(changed)}
	for _, l := range lives {
		cases = append(cases, recv(l.left))
	}
	switch i, _, _ := reflect.Select(cases); i {
	case 0:
		if errors.Is(context.Cause(p.ctx), errStopping) {
			return false, at.stopping(p)
		}
		return false, types.Errorf(types.ErrCancelled, "Wait", "", "%w", context.Cause(ctx))
	case 1:
		return true, nil
	}
	return false, nil
}

// waited makes the answer of wait, takes the messages about the children that have ended, and reaps them.
func (at *agentActions) waited(p *Process, a *loop.Action, ended, asleep, awake []Info, note string) (string, error) {
	var answer struct {
		Children []awaitedChild `json:"children"`
		Note     string         `json:"note,omitempty"`
	}
	answer.Note = note
	failed := 0
	for _, i := range ended {
		if c, ok := at.table.byID(i.UUID); ok {
			at.reaper.reap(c)
		}
		if i.Exit.Code != types.ExitOK {
			failed++
		}
		answer.Children = append(answer.Children, awaitedChild{PID: i.PID, Name: i.Name, State: "ended", Exit: &i.Exit.Code, Reason: i.Exit.Reason,
			Result: rnixctx.Elide(i.Result, maxResults/len(ended))})
	}
	for _, i := range asleep {
		answer.Children = append(answer.Children, awaitedChild{PID: i.PID, Name: i.Name, State: "suspended", Reason: i.Parked.SuspendReason})
	}
	for _, i := range awake {
		answer.Children = append(answer.Children, awaitedChild{PID: i.PID, Name: i.Name, State: "running", Reason: i.Wait})
	}
	notices := p.box.Take(func(m *Message) bool {
		return m.mail != nil && m.mail.Kind == step.MailChild && slices.ContainsFunc(ended, func(i Info) bool { return i.UUID == m.mail.Child })
	})
	p.post.took(notices...)
	p.kids.took(a.Call.ID, numbers(notices))
	text, err := json.Marshal(&answer)
	if err == nil && failed > 0 {
		return string(text), types.Errorf(types.ErrDriver, "Wait", "", "%d of the %d that have ended have failed", failed, len(ended))
	}
	return string(text), err
}
