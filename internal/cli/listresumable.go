package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"rnix/ipc"
	"rnix/types"
)

func listResumableCmd(a *app) *cobra.Command {
	var limit int
	c := &cobra.Command{
		Use:        "list-resumable",
		SuggestFor: []string{"resumable", "suspended", "sessions"},
		Short:      "list what can be resumed, the latest first",
		Long: `List-resumable lists the processes that can be resumed: those that are paused, those that are
suspended on disk, and those that have ended. The latest come first.

Columns: PID of the last run; UUID, as much of it as tells it from the others; NAME; STATE; REASON, why
it is suspended, or how it ended; STEP and limit; TOKENS; WHEN it was last active; INTENT.`,
		Example:     examples(`rnix list-resumable -n 10`, `rnix list-resumable --json | jq -r 'select(.state=="suspended").uuid'`),
		Annotations: exits("0 1 2 12"),
		Args:        noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if limit < 0 {
				return usagef("", "--limit %d is negative; 0 means all", limit)
			}
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			return listResumable(c.Context(), client, a.out, limit, time.Now())
		},
	}
	c.Flags().IntVarP(&limit, "limit", "n", 0, "only so many, the latest; 0 = all")
	return c
}

// listResumable lists what can be resumed.
func listResumable(ctx context.Context, c *ipc.Client, out *output, limit int, now time.Time) error {
	r, err := ipc.Call(ctx, c, ipc.ListResumable, ipc.ListRequest{Limit: limit})
	if err != nil {
		return err
	}
	if out.json() {
		for i := range r.Procs {
			out.object(&r.Procs[i])
		}
		return nil
	}
	if len(r.Procs) == 0 {
		all, err := ipc.Call(ctx, c, ipc.ListProcs, ipc.ListRequest{})
		if err != nil {
			return err
		}
		if n := len(all.Procs); n > 0 { // nothing is paused or on disk, so they run
			out.talk("nothing can be resumed: %s running, see: rnix ps", plural(n, "process is", "processes are"))
			return nil
		}
		out.talk("nothing can be resumed: no process is paused, and none is on disk")
		return nil
	}
	ids := make([]types.UUID, len(r.Procs))
	for i := range r.Procs {
		ids[i] = r.Procs[i].UUID
	}
	short := shortIDs(ids...)
	cols := []column{{name: "PID", right: true}, {name: "UUID", drop: 6}, {name: "NAME", max: 20, drop: 3}, {name: "STATE"}, {name: "REASON", max: 48, drop: 4},
		{name: "STEP", right: true, drop: 2}, {name: "TOKENS", right: true, drop: 1}, {name: "WHEN", drop: 5}, {name: "INTENT"}}
	var rows [][]cell
	for i := range r.Procs {
		p := &r.Procs[i]
		intent := oneLine(p.Intent)
		if out.out.width == 0 {
			intent = cut(intent, intentMax)
		}
		rows = append(rows, []cell{text(p.PID.String()), text(short(p.UUID)), text(oneLine(p.Name)), {p.State, stateStyle(p)},
			{waitText(p, now), waitStyle(p)}, text(stepOf(p.Step, p.MaxSteps)), text(tokens(p.TokensUsed, p.Estimated)), text(when(p, now)), text(intent)})
	}
	out.table(cols, rows)
	if r.Hidden > 0 {
		out.talk("%s more; -n 0 shows all", number(r.Hidden))
	}
	if out.err.terminal {
		out.talk("resume one with: rnix resume PROCESS; a copy of it with: rnix resume --fork PROCESS")
	}
	return nil
}

// when is the time of the last activity of a process.
func when(p *ipc.Proc, now time.Time) string {
	if p.UpdatedAt.IsZero() {
		return "-"
	}
	return clock(p.UpdatedAt, now)
}
