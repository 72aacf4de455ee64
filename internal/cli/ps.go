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

func psCmd(a *app) *cobra.Command {
	var all bool
	var limit int
	var labels []string
	c := &cobra.Command{
		Use:        "ps [PROCESS...]",
		Aliases:    []string{"list"},
		SuggestFor: []string{"jobs", "status", "pstree"},
		Short:      "list processes as a tree, with the commands that they run",
		Long: `Ps lists the processes that are alive, and those that are suspended on disk: each below its parent, with
what it waits for, and below it the processes of the operating system that it has started. With -a
also those that have ended. Resume a suspended process with: rnix resume

With PROCESS it lists these and all of their descendants, also those that have ended, and says what each has
used with them, and with all forks of one start: a fork counts from where it began, and each process once.

Columns: PID; STATE (created, running, suspended, zombie, dead, archived); WAIT, what it waits for, why
it is suspended, or how it ended; STEP and limit; TOKENS, with ~ where we have counted them and not the
provider; COST, with ? where no price is known; ELAPSED, which does not count pauses; MODEL;
INTENT, after the name. A narrow terminal shows fewer columns. -v adds UUID, LABELS and SANDBOX,
by what its commands are confined.

With --json, "seq" is the place in the event log up to which everything is in the rows, and
how long a process waits or has something in hand is counted from "wait_since", "paused_at" and "doing".`,
		Example:           examples(`rnix ps`, `rnix ps night`, `rnix ps -a --limit 20`, `rnix ps --label env=prod --label ticket`, `rnix ps --json | jq -r 'select(.state=="suspended").uuid'`),
		Annotations:       exits("0 1 2 10 11 12"),
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: completeProcs(a, true),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 && (limit > 0 || len(labels) > 0) {
				return usagef("", "--limit and --label are for lists of all processes, and %q is one", args[0])
			}
			if limit < 0 {
				return usagef("", "--limit %d is negative; 0 means all", limit)
			}
			if err := types.CheckSelectors(labels); err != nil {
				return usagef("", "--label: %w", err)
			}
			client, err := a.find(c.Context())
			if err == nil && client == nil && (all || len(args) > 0) {
				client, err = a.connect(c.Context())
			}
			if err != nil {
				return err
			}
			if client == nil {
				a.out.talk("no daemon is running, so no process is; rnix ps -a shows those on disk, also what is suspended")
				return nil
			}
			return ps(c.Context(), client, a.out, ipc.ListRequest{All: all || len(args) > 0, Limit: limit, Labels: labels}, args, time.Now())
		},
	}
	c.Flags().BoolVarP(&all, "all", "a", false, "also those that have ended")
	c.Flags().StringArrayVar(&labels, "label", nil, "only processes with this label, as `KEY[=VALUE]`; if repeated, with all of them")
	c.Flags().IntVar(&limit, "limit", 0, "with -a: only so many that have ended, the newest; 0 = all")
	return c
}

// procAt is a process as ps and top show it in JSON.
type procAt struct {
	*ipc.Proc
	Seq uint64 `json:"seq"` // the position in the event log as of which it is so
	// Family is what a process that ps was asked for has used with others; null = it was not.
	Family *ipc.Family `json:"family,omitempty"`
}

// uuidsOf finds the processes that arguments name.
func uuidsOf(ctx context.Context, c *ipc.Client, args []string) (ids []types.UUID, err error) {
	for _, arg := range args {
		d, err := ipc.Call(ctx, c, ipc.GetProcDetail, ipc.TargetRequest{Target: arg})
		if err != nil {
			return nil, err
		}
		if !slices.Contains(ids, d.UUID) {
			ids = append(ids, d.UUID)
		}
	}
	return ids, nil
}

// ps lists all processes, or those of args with their descendants.
func ps(ctx context.Context, c *ipc.Client, out *output, req ipc.ListRequest, args []string, now time.Time) error {
	ids, err := uuidsOf(ctx, c, args)
	if err != nil {
		return err
	}
	r, err := ipc.Call(ctx, c, ipc.ListProcs, req)
	if err != nil {
		return err
	}
	families := familiesOf(ctx, c, ids...)
	if len(ids) > 0 {
		r.Procs = below(r.Procs, ids)
	}
	if out.json() {
		for i := range r.Procs {
			out.object(&procAt{&r.Procs[i], r.Seq, families[r.Procs[i].UUID]})
		}
		return nil
	}
	if len(r.Procs) == 0 {
		switch {
		case len(req.Labels) > 0 && req.All:
			out.talk("no process has these labels")
		case len(req.Labels) > 0:
			out.talk("no process has these labels; rnix ps -a also looks at those that have ended")
		case req.All:
			out.talk("there are no processes, and none on disk")
		default:
			out.talk("no processes are running, and none is suspended; rnix ps -a shows those that have ended")
		}
		return nil
	}
	cols := []column{{name: "PID", right: true}, {name: "STATE"}, {name: "WAIT", max: waitWidth(out.out.width), drop: 6}, {name: "STEP", right: true, drop: 5},
		{name: "TOKENS", right: true, drop: 3}, costColumn(r.Procs), {name: "ELAPSED", right: true, drop: 4}, {name: "MODEL", max: 28, drop: 2}, {name: "INTENT"}}
	if out.verbose {
		cols = slices.Concat([]column{{name: "UUID", drop: 7}}, cols[:len(cols)-1], []column{labelColumn(r.Procs), sandboxColumn(r.Procs)}, cols[len(cols)-1:])
	}
	var rows [][]cell
	for _, n := range processTree(r.Procs) {
		p := n.proc
		row := []cell{text(p.PID.String()), {p.State, stateStyle(p)}, {waitText(p, now), waitStyle(p)}, text(stepsOf(p)),
			text(tokens(p.TokensUsed, p.Estimated)), text(spentText(p)), text(elapsedText(p)), text(modelName(p.Provider, p.Model)), text(n.branch(out.ascii) + intentText(p, out.out.width))}
		if out.verbose {
			row = slices.Concat([]cell{text(p.UUID.String())}, row[:len(row)-1], []cell{text(oneLine(p.Labels.String())), text(sandboxOf(p.Sandbox, p.Net))}, row[len(row)-1:])
		}
		rows = append(rows, row)
		for i, k := range p.Children {
			row := make([]cell, len(cols))
			row[len(row)-1] = cell{n.below(out.ascii, i == len(p.Children)-1) + osChild(&k), dim}
			rows = append(rows, row)
		}
	}
	out.table(cols, rows)
	for _, line := range familyLines(ids, families) {
		out.print(line + "\n")
	}
	sayParked(out, r.Procs)
	sayUnconfined(out, r.Procs)
	sayUnpriced(out, r.Procs)
	sayDown(out, r.Procs)
	if r.Hidden > 0 {
		out.talk("%s more on disk; --limit 0 shows all", number(r.Hidden))
	}
	return nil
}

// sayParked says how to resume the newest process that waits for a budget, and how many more wait: a person who lists
// processes often has read it for the others.
func sayParked(out *output, procs []ipc.Proc) {
	var newest *ipc.Proc
	parked, keys := 0, 0
	for i := range procs {
		if p := &procs[i]; p.State == suspended && p.Why() == types.SuspendBudget {
			if parked++; newest == nil || p.PID > newest.PID {
				newest = p
			}
		} else if p.State == suspended && p.Why() == types.SuspendKey {
			keys++
		}
	}
	if keys > 0 {
		out.talk("%s for a key of their provider; with that in your environment: rnix resume --waiting-for key", plural(keys, "process waits", "processes wait"))
	}
	if parked == 0 {
		return
	}
	_, mend := whatParks(procs, newest.UUID, newest.Wait)
	more := ""
	if parked > 1 {
		more = fmt.Sprintf("; %s for a budget", plural(parked-1, "more waits", "more wait"))
	}
	out.talk("PID %s is resumed with: %s%s", newest.PID, mend, more)
}

// sayDown says which processes work without an MCP server of theirs, at most three.
func sayDown(out *output, procs []ipc.Proc) {
	n := 0
	for i := range procs {
		p := &procs[i]
		if len(p.MCPDown) == 0 || p.Exit != nil {
			continue
		}
		if n++; n <= 3 {
			out.talk("PID %s works without %s; why, and since when: rnix mcp list", p.PID, downServers(p.MCPDown))
		}
	}
	if n > 3 {
		out.talk("%s more without an MCP server", plural(n-3, "process works", "processes work"))
	}
}

// waitWidth is how wide the reasons for which processes wait may be, in cells: they tell more than what else stands
// there, so in a narrow terminal they are cut before they go. width = 0 is no terminal.
func waitWidth(width int) int {
	switch {
	case width == 0:
		return 48
	case width < 80:
		return max(width*3/10, 12)
	}
	return min(width*3/8, 48)
}

// costColumn is shown where something has cost something, or nobody knows.
func costColumn(procs []ipc.Proc) column {
	c := column{name: "COST", right: true, drop: 1}
	c.hide = !slices.ContainsFunc(procs, func(p ipc.Proc) bool { return p.CostUSD > 0 || p.Unpriced > 0 })
	return c
}

// labelColumn is shown where a process has labels.
func labelColumn(procs []ipc.Proc) column {
	return column{name: "LABELS", max: 60, drop: 8, hide: !slices.ContainsFunc(procs, func(p ipc.Proc) bool { return len(p.Labels) > 0 })}
}

// spentText is what a process has cost itself.
func spentText(p *ipc.Proc) string {
	return price.Spent(p.CostUSD, p.TokensUsed, p.Unpriced)
}

func osChild(k *ipc.OSChild) string {
	return fmt.Sprintf("%d %s: %s", k.PID, oneLine(k.Kind), cut(oneLine(k.Command), 200))
}

// stepsOf renders the steps of a process; one without a model has none.
func stepsOf(p *ipc.Proc) string {
	if p.Kind != "" {
		return "-"
	}
	return stepOf(p.Step, p.MaxSteps)
}

// intentMax bounds an intent where nothing else does, in cells.
const intentMax = 160

func intentText(p *ipc.Proc, width int) string {
	s := oneLine(p.Task())
	if p.Kind != "" {
		s = strings.TrimSpace(oneLine(p.Agent) + " " + s) // a run of a workflow has no agent
	} else if p.Agent != "" && p.Agent != "assistant" {
		s = "(" + oneLine(p.Agent) + ") " + s
	}
	if p.Name != "" {
		s = oneLine(p.Name) + ": " + s
	}
	if width == 0 {
		return cut(s, intentMax)
	}
	return s
}

// suspended is what a process is called whose gate is shut, or which is on disk without an end. Part of
// the wire format.
const suspended = "suspended"

func waitText(p *ipc.Proc, now time.Time) string {
	switch {
	case p.Exit != nil && (p.State != suspended || p.Wait == ""):
		return endOf(p)
	case p.Wait == "":
		return cmp.Or(failedText(p), "-")
	case p.WaitUntil.IsZero():
		return oneLine(aged(p, now)) + with(", ", failedText(p))
	}
	return oneLine(p.Wait) + " until " + clock(p.WaitUntil, now) + with(", ", failedText(p))
}

// endOf is how a process ended, and how many of its calls failed: one may have completed for all that.
func endOf(p *ipc.Proc) string { return exitText(p.Exit) + with(", ", failedText(p)) }

// failedText is how many calls of a process have failed; empty = none.
func failedText(p *ipc.Proc) string {
	switch {
	case p.FailedUnknown:
		return "failed calls unknown"
	case p.FailedCalls == 0:
		return ""
	}
	return failedCalls(p.FailedCalls)
}

// aged is what a process waits for, and for how long if that is known.
func aged(p *ipc.Proc, now time.Time) string {
	since, stalls := p.WaitSince, "no progress"
	switch rest, stalled := strings.CutPrefix(p.Wait, stalls); {
	case stalled && !p.Suspect.IsZero():
		return stalls + " for " + debug.Age(now.Sub(p.Suspect)) + rest
	case since.IsZero():
		return p.Wait
	}
	return p.Wait + " for " + debug.Age(now.Sub(since))
}

func stateStyle(p *ipc.Proc) style {
	switch p.State {
	case "running":
		return green
	case suspended:
		return yellow
	case "zombie", "dead", archived:
		return dim
	}
	return plain
}

func waitStyle(p *ipc.Proc) style {
	if p.Exit != nil && p.Exit.Code != types.ExitOK && p.State != suspended {
		return red
	}
	if !p.Suspect.IsZero() {
		return yellow
	}
	return plain
}
