package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"rnix/ipc"
	"rnix/types"
)

func duCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:        "du [PROCESS...]",
		SuggestFor: []string{"df", "usage", "disk", "size"},
		Short:      "show what takes up the room on the disk",
		Long: `Du shows how much room the histories take up, the largest first, and what of them does: their steps,
their events, scratch files (long outputs), the snapshots of their work, the directories in which forks
work, other files, and archives. It counts the lengths of the files on the disk. What several histories
have of the same snapshots is counted once, as shared, and would not be free without one of them; neither
is it with the snapshots of a git work tree, which lie in its repository. Without arguments it shows all
histories, archived ones too, and everything else in the data directory. --json answers with one object.`,
		Example:           examples(`rnix du`, `rnix du night`, `rnix du --json | jq '.histories[:10]'`),
		Annotations:       exits("0 1 2 10 11 12"),
		ValidArgsFunction: completeProcs(a, true),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			return du(c.Context(), client, a.out, args)
		},
	}
}

// du shows the room that histories take up.
func du(ctx context.Context, c *ipc.Client, out *output, targets []string) error {
	r, err := slowly(ctx, c, out, ipc.DU, ipc.DURequest{Targets: targets}, "adding up")
	if err != nil {
		return err
	}
	if out.json() {
		out.object(&r)
		return nil
	}
	if len(r.Histories) > 0 {
		duTable(out, &r)
	}
	for _, w := range r.Warnings {
		out.warn(w)
	}
	in := "in "
	if len(targets) == 0 {
		in = "in the data directory, with "
	}
	out.talk("%s %s%s%s", size(r.Total.Total), in, plural(len(r.Histories), "history", "histories"), with(": ", shares(&r.Total)))
	if r.Shared.Total > 0 {
		out.talk("%s of it belongs to no history alone%s", size(r.Shared.Total), with(": ", sharedText(&r.Shared)))
	}
	if len(targets) == 0 && len(r.Histories) > 0 {
		out.talk("everything is in %s; what may go is shown by: rnix gc --dry-run", oneLine(r.DataDir))
	}
	return nil
}

func duTable(out *output, r *ipc.DUResponse) {
	ids := make([]types.UUID, len(r.Histories))
	for i := range r.Histories {
		ids[i] = r.Histories[i].UUID
	}
	short := shortIDs(ids...)
	cols := []column{{name: "TOTAL", right: true}, {name: "STEPS", right: true, drop: 3}, {name: "EVENTS", right: true, drop: 3}, {name: "SNAPSHOTS", right: true, drop: 4},
		{name: "WORKSPACE", right: true, drop: 4}, {name: "SCRATCH", right: true, drop: 2}, {name: "OTHER", right: true, drop: 1}, {name: "ARCHIVE", right: true, drop: 4},
		{name: "PID", right: true}, {name: "UUID", drop: 6}, {name: "STATE", drop: 5}, {name: "INTENT"}}
	row := func(b *ipc.BytesUsed, rest ...cell) []cell {
		var cells []cell
		for _, n := range []int64{b.Total, b.Steps, b.Events, b.Snapshots, b.Workspace, b.Scratch, b.Other, b.Archive} {
			cells = append(cells, text(size(n)))
		}
		return append(cells, rest...)
	}
	var rows [][]cell
	for i := range r.Histories {
		h := &r.Histories[i]
		intent := oneLine(h.Intent)
		if h.Name != "" {
			intent = oneLine(h.Name) + ": " + intent
		}
		if out.out.width == 0 {
			intent = cut(intent, intentMax)
		}
		rows = append(rows, row(&h.BytesUsed, text(h.PID.String()), text(short(h.UUID)), cell{h.State, stateStyle(&ipc.Proc{State: h.State})}, text(intent)))
	}
	if r.Shared.Total > 0 {
		rows = append(rows, row(&r.Shared, text(""), text(""), text("shared"), text("")))
	}
	rows = append(rows, row(&r.Total, text(""), text(""), text("total"), text("")))
	out.table(cols, rows)
}

// shares says what takes up how much of the room, the largest part first.
func shares(b *ipc.BytesUsed) string {
	if b.Total <= 0 {
		return ""
	}
	parts := []struct {
		name string
		n    int64
	}{{"steps", b.Steps}, {"events", b.Events}, {"snapshots", b.Snapshots}, {"workspaces", b.Workspace}, {"scratch files", b.Scratch}, {"other files", b.Other}, {"archives", b.Archive}}
	slices.SortStableFunc(parts, func(x, y struct {
		name string
		n    int64
	}) int {
		return cmp.Compare(y.n, x.n)
	})
	var out []string
	for _, p := range parts {
		if percent := (p.n*100 + b.Total/2) / b.Total; percent > 0 {
			out = append(out, fmt.Sprintf("%s %d%%", p.name, percent))
		}
	}
	return strings.Join(out, ", ")
}

// sharedText says what takes up the room that no history has alone.
func sharedText(b *ipc.BytesUsed) string {
	var out []string
	for _, p := range []struct {
		name string
		n    int64
	}{{"snapshots that several have", b.Snapshots}, {"scratch files", b.Scratch}, {"workspaces", b.Workspace}, {"archives", b.Archive}, {"the daemon's own files", b.Other}} {
		if p.n > 0 {
			out = append(out, size(p.n)+" "+p.name)
		}
	}
	return strings.Join(out, ", ")
}
