package cli

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"

	"rnix/ipc"
	"rnix/types"
)

// inDoubt returns the calls of a history that a person can decide about: those that were begun, have no
// result, and must not simply be run again.
func inDoubt(ctx context.Context, c *ipc.Client, target string) ([]ipc.CallIntent, error) {
	p, err := ipc.Call(ctx, c, ipc.GetProcDetail, ipc.TargetRequest{Target: target})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(p.Interrupted, func(i ipc.CallIntent) bool {
		return i.Child != nil || i.Effect == "none" || i.Effect == "idempotent"
	}), nil
}

func callText(i *ipc.CallIntent) string {
	return fmt.Sprintf("call %s of %s in step %d: %s", oneLine(i.CallID), oneLine(i.Tool), i.Step, cut(oneLine(string(i.Input)), 200))
}

// undecided completes the error about a process that is not resumed because nobody has decided what
// becomes of its calls in doubt: it names them, and the ways to decide.
func undecided(ctx context.Context, c *ipc.Client, req *ipc.ResumeRequest, attach []string, err error) error {
	mend := "decide with: " + againText(req, attach) + " --on-in-doubt tell (or retry, or skip; on a terminal, ask asks for each call)"
	if calls, lerr := inDoubt(ctx, c, req.Target); lerr == nil { // without the list the error still names one
		for i := range calls {
			mend = callText(&calls[i]) + "\n" + mend
		}
	}
	return withMend(err, mend)
}

// askInDoubt asks a person about each call in doubt, and returns what was chosen, by the id of the call.
// It asks nothing where no person is: then, and when the person gives up, the error has code IN_DOUBT.
func (a *app) askInDoubt(ctx context.Context, c *ipc.Client, req *ipc.ResumeRequest, attach []string, refused error) (map[string]string, error) {
	if a.out.json() || !a.out.err.terminal || !terminal(a.host.In) {
		return nil, undecided(ctx, c, req, attach, refused)
	}
	calls, err := inDoubt(ctx, c, req.Target)
	if err != nil {
		return nil, err
	}
	in := bufio.NewScanner(a.host.In)
	choices := make(map[string]string, len(calls))
	for i := range calls {
		a.out.say("[kernel] it is not known whether this has run: " + callText(&calls[i]))
		for choices[calls[i].CallID] == "" {
			a.out.say("[t]ell the model to check, [r]etry, [s]kip, [a]bort?")
			answer := "a" // the end of the input is no answer
			if in.Scan() {
				answer = strings.ToLower(strings.TrimSpace(in.Text()))
			}
			switch answer {
			case "t", "tell", "r", "retry", "s", "skip":
				choices[calls[i].CallID] = map[byte]string{'t': "tell", 'r': "retry", 's': "skip"}[answer[0]]
			case "a", "abort":
				return nil, types.Errorf(types.ErrInDoubt, "Resume", req.Target, "nothing was decided, so it stays as it is")
			}
		}
	}
	return choices, nil
}
