package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

func historyCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:        "history PROCESS",
		SuggestFor: []string{"lineage", "runs"},
		Short:      "show where a process comes from, its forks and its runs",
		Long: `History shows the runs of a process: each with its PID, its steps, when it began and how (spawn, fork,
or resume, with what was said or changed), how long it was active, and how it ended. If it was forked, or
others were forked from it, the family comes first, as a tree: FROM is the last step that a fork has of
what stands above it; and where each fork works.`,
		Example:           examples(`rnix history 3`, `rnix history --json night | jq '.runs[].end'`),
		Annotations:       exits("0 1 2 10 11 12"),
		Args:              argsOf(1, 1, process),
		ValidArgsFunction: onlyFirst(completeProcs(a, true)),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			return history(c.Context(), client, a.out, args[0], time.Now())
		},
	}
}

// history shows family and runs of a process.
func history(ctx context.Context, c *ipc.Client, out *output, target string, now time.Time) error {
	r, err := ipc.Call(ctx, c, ipc.Lineage, ipc.TargetRequest{Target: target})
	if err != nil {
		return err
	}
	if out.json() {
		out.object(&r)
		return nil
	}
	if len(r.Family) > 1 {
		familyTable(out, &r)
		out.print(placesText(&r) + "\n")
	}
	runTable(out, r.Runs, now)
	if n := len(r.Runs); n > 0 && r.Runs[n-1].Hint != "" {
		out.talk("resume it with: %s", oneLine(r.Runs[n-1].Hint))
	}
	if r.Damage != "" {
		out.warn("the history is damaged, and what stands behind that is not shown: " + r.Damage)
	}
	return nil
}

// familyTable shows forks below what they were forked from.
func familyTable(out *output, r *ipc.LineageResponse) {
	procs := make([]ipc.Proc, len(r.Family))
	at := map[*ipc.Proc]*ipc.Relative{}
	for i := range r.Family {
		f := &r.Family[i]
		procs[i] = ipc.Proc{ProcStatus: types.ProcStatus{PID: f.PID, UUID: f.UUID, ParentUUID: f.OriginUUID, Name: f.Name, Intent: f.Intent}, State: f.State}
		at[&procs[i]] = f
	}
	cols := []column{{name: " "}, {name: "PID", right: true}, {name: "UUID", drop: 4}, {name: "STATE"}, {name: "FROM", right: true}, {name: "STEP", right: true, drop: 2},
		{name: "RUNS", right: true, drop: 1}, {name: "INTENT"}}
	var rows [][]cell
	for _, n := range processTree(procs) {
		f := at[n.proc]
		row := []cell{{}, text(dash(zero(int(f.PID)))), text(f.UUID.String()), {f.State, stateStyle(n.proc)}, text("-"), text(dash(zero(f.Step))),
			text(dash(zero(f.Runs))), text(n.branch(out.ascii) + intentText(n.proc, out.out.width))}
		if len(n.lasts) > 0 {
			row[4] = text("step " + strconv.Itoa(f.OriginStep))
		}
		if f.UUID == r.UUID {
			row[0] = cell{"*", bold}
		}
		rows = append(rows, row)
	}
	out.table(cols, rows)
}

// placesText says where the forks of a family work, a line for each whose directory is known.
func placesText(r *ipc.LineageResponse) string {
	var b strings.Builder
	for i := range r.Family {
		if f := &r.Family[i]; f.OriginUUID != (types.UUID{}) && f.WorkDir != "" && f.State != "archived" {
			fmt.Fprintf(&b, "PID %d works in %s\n", f.PID, oneLine(f.WorkDir))
		}
	}
	return b.String()
}

// zero renders a number, and 0 as nothing.
func zero(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func runTable(out *output, runs []ipc.Run, now time.Time) {
	if len(runs) == 0 {
		out.talk("no run is recorded")
		return
	}
	cols := []column{{name: "RUN", right: true}, {name: "PID", right: true}, {name: "STEPS", drop: 4}, {name: "BEGAN", drop: 2}, {name: "ACTIVE", right: true, drop: 3},
		{name: "HOW", max: 60}, {name: "END"}}
	rows := make([][]cell, len(runs))
	for i := range runs {
		r := &runs[i]
		rows[i] = []cell{text(strconv.Itoa(r.Number)), text(r.PID.String()), text(stepRange(r)), text(clock(r.Began, now)),
			text(duration(r.ActiveMs)), text(howText(r)), endText(r, now)}
	}
	out.table(cols, rows)
}

func stepRange(r *ipc.Run) string {
	switch {
	case r.FirstStep == 0:
		return "none"
	case r.FirstStep == r.LastStep:
		return strconv.Itoa(r.FirstStep)
	}
	return fmt.Sprintf("%d-%d", r.FirstStep, r.LastStep)
}

// howText says how a run began: resume: model other/model, budget 200,000, "go on".
func howText(r *ipc.Run) string {
	var parts []string
	for _, name := range r.Changed {
		switch name {
		case "provider":
			parts = append(parts, "provider "+oneLine(r.Provider))
		case "model":
			parts = append(parts, "model "+dash(oneLine(r.Model)))
		case "max_steps":
			limit := "no step limit"
			if r.MaxSteps > 0 {
				limit = "up to step " + number(r.MaxSteps)
			}
			parts = append(parts, limit)
		case "context_budget":
			budget := "no budget"
			if r.Budget > 0 {
				budget = "budget " + number(r.Budget)
			}
			parts = append(parts, budget)
		}
	}
	if r.Input != "" {
		parts = append(parts, strconv.Quote(cut(oneLine(r.Input), 60)))
	}
	return r.How + with(": ", strings.Join(parts, ", "))
}

// endText says how a run ended, and when.
func endText(r *ipc.Run, now time.Time) cell {
	at := ""
	if !r.Ended.IsZero() {
		at = " (" + clock(r.Ended, now) + ")"
	}
	switch r.End {
	case "":
		return cell{"it runs", green}
	case step.MarkerDaemonStop:
		return cell{"suspended: the daemon stopped" + at, yellow}
	case step.MarkerInterrupted:
		return cell{"interrupted: the daemon ended without warning" + at, yellow}
	case step.MarkerSuspended:
		s := "suspended: " + oneLine(r.Reason)
		if !r.WakeAt.IsZero() {
			s += ", until " + clock(r.WakeAt, now)
		}
		return cell{s + at, yellow}
	}
	if r.Exit == nil {
		return cell{r.End + at, plain}
	}
	st := plain
	if r.Exit.Code != 0 {
		st = red
	}
	return cell{exitText(r.Exit) + at, st}
}
