package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"rnix/internal/trace"
	"rnix/ipc"
)

func blameCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "blame PROCESS",
		Short: "say what made a process fail",
		Long: `Blame follows the cause of a failure down from the process: to the child that failed, to the step in
which that happened, to the call or the model that made it so; of a run of a workflow to the node that failed
first, also one that could not be started. The last line is where to look. One that is
suspended is followed in the same way; of one that runs or has ended well there is nothing to say.`,
		Example:           examples(`rnix trace blame night`, `rnix trace blame 3 --json | jq -r '.blame[-1].error'`),
		Annotations:       exits("0 1 2 10 11 12"),
		Args:              argsOf(1, 1, process),
		ValidArgsFunction: onlyFirst(completeProcs(a, true)),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			return showBlame(c.Context(), client, a.out, args[0])
		},
	}
}

func showBlame(ctx context.Context, c *ipc.Client, out *output, target string) error {
	r, err := ipc.Call(ctx, c, ipc.ShowTrace, ipc.TraceRequest{Target: target, Limit: 50000})
	if err != nil {
		return err
	}
	if out.json() {
		out.object(struct {
			PID   any         `json:"pid"`
			UUID  any         `json:"uuid"`
			Live  bool        `json:"live"`
			Blame []ipc.Blame `json:"blame"`
		}{r.PID, r.Root, r.Live, r.Blame})
		return nil
	}
	if len(r.Blame) == 0 {
		state := "has not failed"
		if len(r.Spans) > 0 && r.Spans[0].Damage != "" {
			state = "has a history that is damaged, so what made it fail is not known; see rnix fsck: " + oneLine(r.Spans[0].Damage)
		} else if r.Live {
			state = "runs, and has not failed"
		}
		out.talk("PID %d %s", r.PID, state)
		return nil
	}
	var b strings.Builder
	for i := range r.Blame {
		x := &r.Blame[i]
		line := strings.Repeat("  ", i)
		if i > 0 {
			line += "because "
		}
		line += blamed(x)
		if x.Err != "" && (i == len(r.Blame)-1 || r.Blame[i+1].Err != x.Err) { // what the next one says in the same words, it says
			line += ": " + with2(string(x.Code), oneLine(x.Err))
		}
		st := plain
		if i == len(r.Blame)-1 {
			st = red
		}
		b.WriteString(out.out.paint(st, cut(line, out.out.width)) + "\n")
	}
	out.print(b.String())
	for i := range r.Blame {
		if x := &r.Blame[i]; len(x.Lost) > 0 {
			out.talk("not run because of it: %s", oneLine(fewOf(x.Lost)))
			break
		}
	}
	leaf := &r.Blame[len(r.Blame)-1]
	if leaf.Step > 0 {
		out.talk("all of it: rnix steps %d %d", leaf.PID, leaf.Step)
	}
	for _, m := range r.Missing {
		out.warn("not looked at: " + m)
	}
	return nil
}

// mostLost is how many nodes are named that were not run.
const mostLost = 20

func fewOf(names []string) string {
	if n := len(names) - mostLost; n > 0 {
		return strings.Join(names[:mostLost], ", ") + fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(names, ", ")
}

// blamed names a link of the chain.
func blamed(x *ipc.Blame) string {
	switch x.Kind {
	case trace.Process:
		return fmt.Sprintf("PID %d %s", x.PID, oneLine(x.Name))
	case trace.Step:
		if x.Err != "" { // which is its summary, too
			return fmt.Sprintf("step %d", x.Step)
		}
		return oneLine(x.Name)
	case trace.Node:
		return "node " + oneLine(x.Name)
	case trace.Model:
		return "the model " + oneLine(x.Name)
	}
	return "the call of " + oneLine(x.Name)
}
