package actions

import (
	"context"
	"fmt"
	"strings"

	"rnix/internal/recovery"
	"rnix/kernel/internal/loop"
	"rnix/types"
)

// SpawnInput is the input of the spawn action.
type SpawnInput struct {
	Intent     string    `json:"intent"`
	Agent      string    `json:"agent"`
	Name       string    `json:"name"`
	MaxSteps   *int      `json:"max_steps"`
	Budget     *int      `json:"budget"`
	Allow      *[]string `json:"allow"`
	Deny       []string  `json:"deny"`
	Background bool      `json:"background"`
	Worktree   bool      `json:"worktree"` // it works in a git work tree of its own
}

// check refuses limits that cannot be meant.
func (in *SpawnInput) check() error {
	for _, limit := range []struct {
		name  string
		value *int
	}{{"max_steps", in.MaxSteps}, {"budget", in.Budget}} {
		if limit.value != nil && *limit.value < 1 {
			return types.Errorf(types.ErrInvalid, "Spawn", "", "%s is %d; give at least 1, or leave it out", limit.name, *limit.value)
		}
	}
	return nil
}

// spawn starts a child process and waits for it, unless it is to run in the background. When ctx ends first,
// the child lives on: it is given to PID 0 when its parent is reaped, as Unix does.
func spawn(ctx context.Context, ag Agent, a *loop.Action) (string, error) {
	if a.Earlier != nil {
		return attach(ctx, ag, a)
	}
	return begin(ctx, ag, a)
}

func begin(ctx context.Context, ag Agent, a *loop.Action) (string, error) {
	var in SpawnInput
	bad := inputOf(a, &in)
	if bad == nil {
		bad = in.check()
	}
	pid, err := ag.Family.Start(ctx, a.Child, string(a.Call.Input), &in, bad)
	switch c := (Child{a.Child, pid}); {
	case err != nil:
		return "", err
	case in.Background:
		return inBackground(ag, c), nil
	default:
		return await(ctx, ag, c)
	}
}

// inBackground notes a child that is not waited for, and says so.
func inBackground(ag Agent, c Child) string {
	ag.Family.Note(c)
	text := fmt.Sprintf("Started as PID %d in the background. You get a message when it ends; wait gives you its result.", c.PID)
	if tree := ag.Family.Planted(c.ID); tree != "" {
		text += " " + tree
	}
	return text
}

// attach finds the process that an interrupted call was about to start: alive, ended, or not begun yet.
// One that is suspended suspends its parent too.
func attach(ctx context.Context, ag Agent, a *loop.Action) (string, error) {
	v, err := ag.Family.Begun(a.Child)
	switch types.CodeOf(err) {
	case types.ErrNotFound:
		return begin(ctx, ag, a)
	case types.ErrInDoubt:
		return "", types.Errorf(types.ErrInDoubt, "Spawn", a.Child.String(), "%s", recovery.Explain(a.Earlier, recovery.Unknown))
	}
	switch c := (Child{v.ID, v.PID}); {
	case err != nil:
		return "", err
	case recovery.Background(a.Call.Input):
		return inBackground(ag, c), nil
	case v.Left != nil:
		return await(ctx, ag, c)
	case v.Waits || v.Exit == nil:
		return "", waitsFor(&v)
	}
	return ended(ag, &v)
}

// waitsFor is the end of a call that waits for a suspended child.
func waitsFor(v *View) error {
	why := v.Asleep
	if why == "" {
		why = "suspended"
	}
	return &loop.Waiting{For: types.SuspendFor(types.SuspendChild, fmt.Sprintf("child PID %d (%s), which is suspended: %s", v.PID, v.ID, why))}
}

// await waits for a child and returns its result.
func await(ctx context.Context, ag Agent, c Child) (string, error) {
	v, err := ag.Family.Await(ctx, c)
	if err != nil {
		return "", err
	}
	return ended(ag, &v)
}

// ended is what a parent is told of the end of a child, and where its work is if it had a work tree of its own.
func ended(ag Agent, v *View) (string, error) {
	result := v.Result
	if tree := ag.Family.Planted(v.ID); tree != "" {
		result = strings.TrimRight(result, "\n") + "\n\n[" + tree + "]"
	}
	switch {
	case v.Waits:
		return "", waitsFor(v)
	case v.Exit == nil:
		return "", ag.CutOff()
	case v.Exit.Code == types.ExitOK:
		return result, nil
	}
	err := types.Errorf(types.ErrDriver, "Spawn", "", "process %d ended with %s", v.PID, v.Exit)
	ag.Family.Failed(recovery.FailedChild(err.Err.Error()))
	return result, err
}
