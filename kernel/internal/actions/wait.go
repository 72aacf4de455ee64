package actions

import (
	"context"
	"encoding/json"
	"reflect"

	rnixctx "rnix/context"
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

// fates are children, by what has become of them.
type fates struct {
	ended, asleep, awake []View
}

// wait waits for children of a process, and returns how they ended. What the process is told of their ends
// beside that, it is not told again.
func wait(ctx context.Context, ag Agent, a *loop.Action) (string, error) {
	var in waitInput
	if err := inputOf(a, &in); err != nil {
		return "", err
	}
	kids, err := ag.Family.Children(in.PIDs)
	if err != nil {
		return "", err
	}
	if len(kids) == 0 {
		return noChildren(ag.Me()), nil
	}
	late, stop, err := alarm("wait", in.TimeoutS)
	if err != nil {
		return "", err
	}
	defer stop()
	for note := ""; ; {
		changed := ag.Mail.Changed() // before it is looked at
		f := sorted(ag.Family, kids)
		switch {
		case note == "" && ag.Mail.Interrupted():
			note = "the user has said something, which you get now; call wait again after it"
		case ag.Stopping() && len(f.ended) < len(kids):
			return "", ag.CutOff() // they stop too
		case note == "" && len(f.awake)+len(f.asleep) > 0 && (!in.Any || len(f.ended) == 0):
			if len(f.awake) == 0 && late == nil {
				return "", waitsFor(&f.asleep[0])
			}
			switch first(ctx, f.awake, changed, late) {
			case nothing:
				return "", ag.Ended(ctx, "Wait")
			case theAlarm:
				note = "the time is over"
			}
			continue
		}
		return waited(ag, a.Call.ID, &f, note)
	}
}

// sorted looks at children, and sorts them by what has become of them.
func sorted(family Family, kids []Child) (f fates) {
	for _, c := range kids {
		switch v, ok := family.Fate(c); {
		case !ok:
		case v.Left != nil:
			f.awake = append(f.awake, v)
		case v.Exit != nil && !v.Waits:
			f.ended = append(f.ended, v)
		default:
			f.asleep = append(f.asleep, v)
		}
	}
	return f
}

// noChildren is the answer of wait to a process that has no child to wait for. A fork reads in its conversation of
// those of its origin.
func noChildren(me Me) string {
	if me.Forked {
		return `{"children":[],"note":"no child of yours runs in the background; those that were started before you were forked belong to the process that you are a copy of"}`
	}
	return `{"children":[],"note":"no child runs in the background"}`
}

// What first has seen.
const (
	nothing  = iota // ctx has ended
	theAlarm        // the time is over
	news            // a child has ended, or a message has come
)

// first waits for the first of several things.
func first(ctx context.Context, awake []View, changed <-chan struct{}, late any) int {
	recv := func(ch any) reflect.SelectCase {
		return reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ch)}
	}
	cases := []reflect.SelectCase{recv(ctx.Done()), recv(late), recv(changed)}
	for _, v := range awake {
		cases = append(cases, recv(v.Left))
	}
	i, _, _ := reflect.Select(cases)
	return min(i, news)
}

// waited makes the answer of wait, takes the messages about the children that have ended, and reaps them.
func waited(ag Agent, call string, f *fates, note string) (string, error) {
	var answer struct {
		Children []awaitedChild `json:"children"`
		Note     string         `json:"note,omitempty"`
	}
	answer.Note = note
	failed, ids := 0, make([]types.UUID, 0, len(f.ended))
	for _, v := range f.ended {
		ag.Family.Reap(v.ID)
		ids = append(ids, v.ID)
		if v.Exit.Code != types.ExitOK {
			failed++
		}
		answer.Children = append(answer.Children, awaitedChild{PID: v.PID, Name: v.Name, State: "ended", Exit: &v.Exit.Code, Reason: v.Exit.Reason,
			Result: rnixctx.Elide(v.Result, maxResults/len(f.ended))})
	}
	for _, v := range f.asleep {
		answer.Children = append(answer.Children, awaitedChild{PID: v.PID, Name: v.Name, State: "suspended", Reason: v.Asleep})
	}
	for _, v := range f.awake {
		answer.Children = append(answer.Children, awaitedChild{PID: v.PID, Name: v.Name, State: "running", Reason: v.Wait})
	}
	ag.Mail.TakeEnds(call, ids)
	text, err := json.Marshal(&answer)
	if err == nil && failed > 0 {
		return string(text), types.Errorf(types.ErrDriver, "Wait", "", "%d of the %d that have ended have failed", failed, len(f.ended))
	}
	return string(text), err
}
