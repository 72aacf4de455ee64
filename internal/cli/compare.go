package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rnix/debug"
	"rnix/internal/price"
	"rnix/ipc"
	"rnix/types"
)

// mostCompared bounds how many processes stand side by side, as on the page.
const mostCompared = 12

func compareCmd(a *app) *cobra.Command {
	results := false
	c := &cobra.Command{
		Use:        "compare PROCESS...",
		SuggestFor: []string{"versus", "vs", "side-by-side"},
		Short:      "show processes side by side: state, steps, files, cost, time",
		Long: `Compare shows processes with the same intent beside each other: how each one ended, its steps, how many of its
calls failed, which files it changed, what it used and how long it worked. With one PROCESS it finds the others
with the same intent: those with other models, and forks; at most 12, the newest. Below the table stands what
each has used together with its descendants, and what all forks of one start have used: a fork counts from where
it began, and each process once. Intents that differ stand above it, each with its PID.

--results compares the final answers instead, as a unified diff: each one with that of the first process.

Columns: PID; NAME; MODEL; STATE, or how it ended; STEPS; FAILED, calls with an error, and commands that did not
end with exit code 0, or ? where an earlier version did not count; FILES, with the lines added and deleted;
TOKENS; COST; TIME, without pauses.`,
		Example: examples(`rnix run --worktree --name a --model sonnet "Fix issue 12"`, `rnix run --worktree --name b --model opus "Fix issue 12"`, `rnix compare a b`,
			`rnix compare a`, `rnix compare --results a b`, `rnix compare --json 3 4 | jq '{pid, failed_calls, cost_usd}'`),
		Annotations:       exits("0 1 2 10 11 12"),
		Args:              argsOf(1, mostCompared, "a process, or several"),
		ValidArgsFunction: completeProcs(a, true),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			list, err := beside(c.Context(), client, args)
			if err != nil {
				return err
			}
			if results {
				return compareResults(c.Context(), client, a.out, list)
			}
			return showCompared(a.out, list, time.Now())
		},
	}
	c.Flags().BoolVar(&results, "results", false, "compare the results (final answers), as a unified diff")
	return c
}

// compared is a process that stands beside others, in JSON.
type compared struct {
	*ipc.Proc
	Files   []ipc.FileChange `json:"files"`
	Problem string           `json:"problem,omitempty"` // why its files are not known
	Removed *ipc.RemovedTree `json:"removed,omitempty"` // what is left of its work tree, which was removed
	Shares  []types.PID      `json:"shares_directory_with,omitempty"`
	Family  *ipc.CostLine    `json:"family,omitempty"`     // with its descendants; null = there are none
	Forks   *ipc.CostLine    `json:"with_forks,omitempty"` // with all forks of one start and their descendants; null = there are none
	start   types.UUID       // of Forks
}

// beside returns what args name, or all with the intent of the only one, each with its files and what those below it have used.
func beside(ctx context.Context, c *ipc.Client, args []string) ([]compared, error) {
	var procs []*ipc.Proc
	for _, arg := range args {
		d, err := ipc.Call(ctx, c, ipc.GetProcDetail, ipc.TargetRequest{Target: arg})
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(procs, func(p *ipc.Proc) bool { return p.UUID == d.UUID }) {
			procs = append(procs, &d.Proc)
		}
	}
	if len(args) == 1 {
		r, err := ipc.Call(ctx, c, ipc.ListProcs, ipc.ListRequest{All: true})
		if err != nil {
			return nil, err
		}
		procs = sameIntent(r.Procs, procs[0])
	}
	ids := make([]types.UUID, len(procs))
	for i, p := range procs {
		ids[i] = p.UUID
	}
	families := familiesOf(ctx, c, ids...)
	out := make([]compared, len(procs))
	for i, p := range procs {
		one := compared{Proc: p, Files: []ipc.FileChange{}}
		d, err := ipc.Call(ctx, c, ipc.DiffFiles, ipc.DiffRequest{Target: p.UUID.String(), Stat: true, Removed: true})
		switch {
		case gone(err):
			return nil, err
		case err != nil:
			one.Problem = strings.TrimPrefix(errorText(err), p.UUID.String()+": ")
		default:
			one.Files, one.Removed = append(one.Files, d.Files...), d.Removed
		}
		if f := families[p.UUID]; f != nil {
			one.Family, one.Forks, one.start = f.Tree, f.Forks, f.Start
		}
		for _, o := range procs {
			if o.UUID != p.UUID && p.WorkDir != "" && o.WorkDir == p.WorkDir {
				one.Shares = append(one.Shares, o.PID)
			}
		}
		out[i] = one
	}
	return out, nil
}

// sameIntent returns the agents with the intent of p, in order of their PIDs, p among them: at most mostCompared, the newest.
//
// Lists have the beginning of a long intent, of p itself, too: only that is compared.
func sameIntent(all []ipc.Proc, p *ipc.Proc) []*ipc.Proc {
	out := []*ipc.Proc{p}
	if i := slices.IndexFunc(all, func(o ipc.Proc) bool { return o.UUID == p.UUID }); i >= 0 {
		p = &all[i]
	}
	for i := range all {
		if o := &all[i]; o.UUID != p.UUID && o.Kind == "" && p.Intent != "" && sameText(o.Intent, p.Intent) {
			out = append(out, o)
		}
	}
	slices.SortStableFunc(out[1:], func(a, b *ipc.Proc) int { return cmp.Compare(b.PID, a.PID) })
	out = out[:min(len(out), mostCompared)]
	slices.SortStableFunc(out, func(a, b *ipc.Proc) int { return cmp.Compare(a.PID, b.PID) })
	return out
}

// sameText reports whether two texts are one, of which lists have the whole or its beginning and its size.
func sameText(a, b string) bool {
	shortOf := func(short, whole string) bool {
		begin, ok := strings.CutSuffix(short, fmt.Sprintf("… (%d bytes)", len(whole)))
		return ok && strings.HasPrefix(whole, begin)
	}
	return a == b || shortOf(a, b) || shortOf(b, a)
}

func showCompared(out *output, list []compared, now time.Time) error {
	if out.json() {
		for i := range list {
			out.object(&list[i])
		}
		return nil
	}
	if len(list) == 1 {
		out.talk("no other process has the intent of PID %d; start one with another model, or fork it: rnix resume --fork %d", list[0].PID, list[0].PID)
	}
	for _, line := range intentLines(list) {
		out.print(cut(line, max(out.out.width, intentMax)) + "\n")
	}
	procs := make([]ipc.Proc, len(list))
	rows := make([][]cell, len(list))
	for i := range list {
		p := list[i].Proc
		procs[i] = *p
		state := cell{p.State, stateStyle(p)}
		if text := waitText(p, now); p.Exit != nil && text != "-" {
			state = cell{exitText(p.Exit), waitStyle(p)}
		}
		failed := cell{number(p.FailedCalls), plain}
		switch {
		case p.FailedUnknown:
			failed = text("?")
		case p.FailedCalls > 0:
			failed.st = yellow
		}
		rows[i] = []cell{text(p.PID.String()), text(oneLine(p.Name)), text(modelName(p.Provider, p.Model)), state, text(number(p.Step)), failed, text(filesText(&list[i])),
			text(tokens(p.TokensUsed, p.Estimated)), text(spentText(p)), text(elapsedText(p))}
	}
	cost, model := costColumn(procs), 4
	cost.drop = 5
	if !slices.ContainsFunc(rows, func(r []cell) bool { return r[2].text != rows[0][2].text }) {
		model = 1 // it tells none of them apart
	}
	out.table([]column{{name: "PID", right: true}, {name: "NAME", max: 20}, {name: "MODEL", max: 28, drop: model}, {name: "STATE", max: 32}, {name: "STEPS", right: true, drop: 3}, {name: "FAILED", right: true},
		{name: "FILES"}, {name: "TOKENS", right: true, drop: 2}, cost, {name: "TIME", right: true}}, rows)
	ids, families := make([]types.UUID, len(list)), map[types.UUID]*ipc.Family{}
	for i := range list {
		one := &list[i]
		ids[i] = one.UUID
		families[one.UUID] = &ipc.Family{PID: one.PID, Tree: one.Family, Forks: one.Forks, Start: one.start}
	}
	for _, line := range familyLines(ids, families) {
		out.print(line + "\n")
	}
	for i := range list {
		one := &list[i]
		if one.Removed != nil {
			out.print(removedText(one.PID, one.Removed) + "\n")
		}
		if one.Problem != "" {
			out.warn(fmt.Sprintf("the files of PID %d are not known: %s", one.PID, one.Problem))
		}
	}
	for _, line := range shared(list) {
		out.warn(line)
	}
	sayUnpriced(out, procs)
	return nil
}

// removedText says that the work tree of a process is gone, and what is still known of it.
func removedText(pid types.PID, r *ipc.RemovedTree) string {
	s := fmt.Sprintf("PID %s: its work tree was removed; ", pid)
	if r.Branch == "" {
		return s + "it has no branch any more, and what was kept of its files is listed by: " + lines(r.Kept)
	}
	return s + fmt.Sprintf("its branch %s is still in %s, with %s at %s", oneLine(r.Branch), oneLine(r.Repo), plural(r.Commits, "commit", "commits"), oneLine(cut(r.Head, 11)))
}

// shared says which processes work in one directory: what was changed there may be the work of any of them.
func shared(list []compared) (lines []string) {
	for i := range list {
		one := &list[i]
		if len(one.Shares) == 0 || slices.ContainsFunc(list[:i], func(o compared) bool { return slices.Contains(o.Shares, one.PID) }) {
			continue
		}
		pids := one.PID.String()
		for _, pid := range one.Shares {
			pids += ", " + pid.String()
		}
		lines = append(lines, fmt.Sprintf("PIDs %s work in one directory: these files may be the work of any of them", pids))
	}
	return lines
}

// filesText is how many files were changed, and by how many lines.
func filesText(c *compared) string {
	if c.Problem != "" || c.Removed != nil {
		return "-"
	}
	added, deleted := 0, 0
	for i := range c.Files {
		added, deleted = added+c.Files[i].Added, deleted+c.Files[i].Deleted
	}
	if len(c.Files) == 0 {
		return "0"
	}
	return fmt.Sprintf("%d (+%s -%s)", len(c.Files), number(added), number(deleted))
}

// elapsedText is how long a process has worked: in whole seconds, but for one that has ended within one.
func elapsedText(p *ipc.Proc) string {
	if p.Exit != nil && p.ElapsedMs > 0 && p.ElapsedMs < 1000 {
		return duration(p.ElapsedMs)
	}
	return debug.Age(time.Duration(p.ElapsedMs) * time.Millisecond)
}

// sayUnpriced explains the "?" of a cost, below a list, and what to do about it.
func sayUnpriced(out *output, procs []ipc.Proc) {
	var models []string
	for i := range procs {
		for _, m := range procs[i].UnpricedModels {
			if m = oneLine(m); !slices.Contains(models, m) {
				models = append(models, m)
			}
		}
	}
	if len(models) > 0 {
		out.talk("%s", price.Missing(models))
	}
}
