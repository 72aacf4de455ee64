package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"rnix/ipc"
	"rnix/types"
)

// found says in what state everything is.
func (o *oldData) found() {
	o.t.Helper()
	resumable := map[types.UUID]bool{}
	for _, p := range ask(o, ipc.ListResumable, ipc.ListRequest{}).Procs {
		resumable[p.UUID] = true
	}
	o.each(o.procs, func(p *ipc.Proc) string { return o.state(p, resumable[p.UUID]) })
	for _, r := range ask(o, ipc.ComposeList, ipc.ListRequest{All: true}).Runs {
		var nodes []string
		for _, n := range ask(o, ipc.ComposeStatus, ipc.TargetRequest{Target: r.UUID.String()}).Nodes {
			nodes = append(nodes, n.Name+" "+n.State)
		}
		o.say("workflow %s: %s", r.Name, strings.Join(nodes, ", "))
	}
	for _, s := range ask(o, ipc.Supervisors, ipc.SupervisorsRequest{}).Supervisors {
		var kids []string
		for _, c := range s.Children {
			kids = append(kids, c.Name+" "+c.State)
		}
		o.say("supervisor %s: %s, %s: %s", s.Name, s.State, s.Strategy, strings.Join(kids, ", "))
	}
	o.worktrees("at first")
	gc := ask(o, ipc.GC, ipc.GCRequest{DryRun: true})
	for i := range gc.Candidates {
		o.say("gc would take %s", gc.Candidates[i].Name)
	}
	for i := range gc.Exempt {
		o.say("gc leaves %s: %s", gc.Exempt[i].Name, gc.Exempt[i].Reason)
	}
	o.say("du knows %d histories", len(ask(o, ipc.DU, ipc.DURequest{}).Histories))
}

// state says how one process is, and looks at it in each way.
func (o *oldData) state(p *ipc.Proc, resumable bool) string {
	o.t.Helper()
	id := p.UUID.String()
	line := fmt.Sprintf("%2d %s: %s, step %d", p.PID, p.Name, p.State, p.Step)
	if p.State == "archived" {
		return line + ", " + endOf(p.Exit)
	}
	d := ask(o, ipc.GetProcDetail, ipc.TargetRequest{Target: id})
	steps := ask(o, ipc.ListSteps, ipc.StepsRequest{Target: id})
	damage := d.Damage + steps.Damage
	if p.Kind == "" {
		for n := range steps.Steps {
			ask(o, ipc.GetStepDetail, ipc.StepRequest{Target: id, Step: n + 1})
		}
		damage += ask(o, ipc.ListMessages, ipc.MessagesRequest{Target: id}).Damage + ask(o, ipc.ContextProfile, ipc.ContextRequest{Target: id}).Damage
	}
	runs := ask(o, ipc.Lineage, ipc.TargetRequest{Target: id})
	if damage += runs.Damage; damage != "" {
		o.t.Errorf("%s: damage: %s", line, damage)
	}
	return fmt.Sprintf("%s (%d ended)%s", line, len(steps.Steps), strings.Join(o.details(p, &d, resumable, len(runs.Runs)), ""))
}

// details are what is to be said of a process beside its state.
func (o *oldData) details(p *ipc.Proc, d *ipc.ProcDetail, resumable bool, runs int) (out []string) {
	o.t.Helper()
	add := func(is bool, format string, args ...any) {
		if is {
			out = append(out, ", "+fmt.Sprintf(format, args...))
		}
	}
	id := p.UUID.String()
	add(p.Exit != nil, "%s", endOf(p.Exit))
	add(p.Wait != "", "%s", p.Wait)
	add(!p.PausedAt.IsZero(), "paused")
	add(!resumable, "cannot be resumed")
	add(runs > 1, "%d runs", runs)
	add(d.Result != "", "result %q", firstOf(d.Result))
	add(d.Plan != "", "plan %q", d.Plan)
	add(len(d.Skills) > 0, "skills %q", d.Skills)
	add(len(d.MCPMounts) > 0, "MCP %q", d.MCPMounts)
	add(len(p.Groups) > 0, "groups %q", p.Groups)
	add(p.ContextBudget > 0, "budget %d", p.ContextBudget)
	for _, in := range d.Interrupted {
		add(true, "in doubt: %s", in.Tool)
	}
	if n := ask(o, ipc.Mailbox, ipc.MailboxRequest{Target: id}); n.Total > 0 {
		add(true, "%d letters", n.Total)
	}
	for _, q := range o.procs {
		add(q.UUID == p.ParentUUID, "child of %s", q.Name)
	}
	counts := ask(o, ipc.Ledger, ipc.LedgerRequest{Target: id}).Counts
	var verdicts []string
	for v, n := range counts {
		if n > 0 {
			verdicts = append(verdicts, fmt.Sprintf("%d %s", n, v))
		}
	}
	slices.Sort(verdicts)
	add(len(verdicts) > 0, "calls: %s", strings.Join(verdicts, " "))
	if diff, err := ipc.Call(o.t.Context(), o.Client, ipc.DiffFiles, ipc.DiffRequest{Target: id, Stat: true}); err != nil {
		add(p.Kind == "", "no diff: %s", types.CodeOf(err))
	} else if len(diff.Files) > 0 {
		add(true, "files: %s", changed(diff.Files))
	}
	return out
}

func changed(files []ipc.FileChange) string {
	var out []string
	for _, f := range files {
		out = append(out, f.Status+" "+f.Path)
	}
	return strings.Join(out, ", ")
}

func firstOf(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

// worktrees says which work trees there are, and what is in them.
func (o *oldData) worktrees(when string) {
	o.t.Helper()
	for _, w := range ask(o, ipc.ListWorktrees, ipc.WorktreesRequest{}).Worktrees {
		if w.Name == "" {
			continue // of a fork of the test's
		}
		o.say("work tree of %s %s: branch %s of %s, gone %t, %d commits, uncommitted %t, files: %s%s", w.Name, when, w.Branch, w.BaseName, w.Gone, w.Commits, w.Uncommitted, changed(w.Files), w.Problem)
	}
}

// commands runs what a person would look with.
func (o *oldData) commands() {
	o.t.Helper()
	for _, c := range [][2]string{
		{"ps -a --json", `"name":"ended"`}, {"log ended", "ended well"}, {"steps cut-shell --json", `"list_files"`}, {"ctx compact", "read_file"}, {"diff ended", "+uno"}, {"du", "in-git"},
		{"list-resumable --json", `"name":"cut-shell"`}, {"ledger cut-shell", "in doubt"}, {"history fork-mid", "ended"}, {"trace parent", "child"}, {"cost --json", `"cost_usd":0.0018`},
		{"strace ended", "ended.txt"}, {"log claude", "claude is done"}, {"compose ps -a", "flow-open"}, {"gc --dry-run", "in-git"}, {"mailbox mail", "third letter"}, {"budget", "300"},
	} {
		if out := o.rnix(strings.Fields(c[0])...); !strings.Contains(out, c[1]) {
			o.t.Errorf("rnix %s says nothing of %q:\n%s", c[0], c[1], out)
		}
	}
}

// each has something done for each of a list of processes, several at once, and says what came of it, in their order.
func (o *oldData) each(procs []ipc.Proc, do func(p *ipc.Proc) string) {
	o.t.Helper()
	var all sync.WaitGroup
	said, free := make([]string, len(procs)), make(chan struct{}, 8)
	for i := range procs {
		free <- struct{}{}
		all.Go(func() { said[i] = do(&procs[i]); <-free })
	}
	all.Wait()
	o.lines = append(o.lines, said...)
}

// end waits for a process and returns its result, or how else it ended.
func (o *oldData) end(pid types.PID) string {
	w, err := ipc.Call(o.t.Context(), o.Client, ipc.Wait, ipc.WaitRequest{Target: pid.String(), TimeoutMs: 60_000})
	if err != nil {
		return err.Error()
	}
	end, _, _ := strings.Cut(cmp.Or(firstOf(w.Result), endOf(&w.Exit)), " (pid ")
	return end
}
