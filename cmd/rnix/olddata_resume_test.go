package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rnix/ipc"
	"rnix/types"
)

// ofEachKind are agents, one of each kind; forks and new runs of all would take much longer and show nothing else.
var ofEachKind = []string{"ended", "failed", "killed", "timeout", "max-steps", "plan", "compact", "in-git", "fork-mid", "fork-tree", "removed",
	"budget", "stopped", "mcp", "parent", "lead", "cut-shell", "cut-tree"}

// those returns the processes that are wanted.
func (o *oldData) those(wanted func(p *ipc.Proc) bool) []ipc.Proc {
	return slices.DeleteFunc(slices.Clone(o.procs), func(p ipc.Proc) bool { return !wanted(&p) })
}

// comes resumes a process and returns what becomes of it.
func (o *oldData) comes(req ipc.ResumeRequest) string {
	req.Env = o.Env
	r, err := ipc.Call(o.t.Context(), o.Client, ipc.Resume, req)
	if err != nil {
		o.t.Logf("resume of %s: %v", req.Target, err)
		return "refused, " + string(types.CodeOf(err))
	}
	if last := o.procs[len(o.procs)-1].PID; r.PID <= last {
		o.t.Errorf("%s has PID %d: the old data counted to %d", req.Target, r.PID, last)
	}
	return o.end(r.PID)
}

// forks makes a fork of each agent, without a step and from the first one, and waits for its end. The originals stay as they are.
func (o *oldData) forks() {
	o.t.Helper()
	o.each(o.those(func(p *ipc.Proc) bool { return slices.Contains(ofEachKind, p.Name) }), func(p *ipc.Proc) string {
		req := ipc.ResumeRequest{Target: p.UUID.String(), Fork: true}
		if p.Name == "timeout" { // its 300 ms, which are for the fork too, are little on a machine that is busy
			req.TimeoutMs = new(int64(600_000))
		}
		first, begin := min(1, p.Step), req
		begin.FromStep = &first
		return fmt.Sprintf("fork of %s: %s; from step %d: %s", p.Name, o.comes(req), first, o.comes(begin))
	})
	for i, p := range ask(o, ipc.ListProcs, ipc.ListRequest{All: true}).Procs[:len(o.procs)] {
		if was := &o.procs[i]; p.UUID != was.UUID || p.State != was.State || p.Step != was.Step || p.TokensUsed != was.TokensUsed || p.Wait != was.Wait {
			o.t.Errorf("after its forks, %s is %s %s, step %d", p.Name, p.State, p.Wait, p.Step)
		}
	}
}

// resumes resumes what can be, and waits for its end: what is suspended as it is, what has ended with an input.
func (o *oldData) resumes() {
	o.t.Helper()
	suspended := o.those(func(p *ipc.Proc) bool { return p.State == "suspended" && !strings.HasPrefix(p.Provider, "claude") })
	for i := range suspended {
		p := &suspended[i]
		if ask(o, ipc.GetProcDetail, ipc.TargetRequest{Target: p.UUID.String()}).State != "suspended" {
			continue // it was resumed with its family
		}
		req := ipc.ResumeRequest{Target: p.UUID.String(), Tree: p.Name == "lead", Env: o.Env}
		if more := 100_000; p.ContextBudget > 0 {
			req.Budget = &more
		}
		ask(o, ipc.Resume, req)
	}
	o.each(suspended, func(p *ipc.Proc) string {
		d := ask(o, ipc.GetProcDetail, ipc.TargetRequest{Target: p.UUID.String()})
		if p.Name == "night" || p.Name == "sleeper" {
			return p.Name + " resumed: " + d.State
		}
		return p.Name + " resumed: " + o.end(d.PID)
	})
	o.each(o.those(func(p *ipc.Proc) bool { return p.State == "dead" && slices.Contains(ofEachKind, p.Name) }), func(p *ipc.Proc) string {
		more := 20
		return p.Name + " resumed with an input: " + o.comes(ipc.ResumeRequest{Target: p.UUID.String(), NewInput: "play anew", MaxSteps: &more})
	})
	o.rnix("unarchive", "archived")
	o.say("archived resumed: %s", o.comes(ipc.ResumeRequest{Target: "archived", NewInput: "play anew"}))
	o.say("flow-failed resumed: %s", o.end(ask(o, ipc.ComposeResume, ipc.ComposeResumeRequest{Target: "flow-failed", Env: o.Env}).PID))
	o.rnix("supervise", "stop", "night")
	for name, said := range map[string]string{"mail": "third letter", "parent": "child resumed", "cut-shell": "unknown"} {
		if b, err := json.Marshal(ask(o, ipc.ListMessages, ipc.MessagesRequest{Target: name})); err != nil || !strings.Contains(string(b), said) {
			o.t.Errorf("%s was not told %q: %s, %v", name, said, b, err)
		}
	}
}

// merges merges the work of a work tree and removes that.
func (o *oldData) merges() {
	o.t.Helper()
	o.rnix("merge", "tree")
	if b, err := os.ReadFile(filepath.Join(o.Work, "project", "tree.txt")); err != nil || string(b) != "t\n" {
		o.t.Errorf("merged: %q, %v", b, err)
	}
	o.rnix("worktree", "remove", "tree")
	o.worktrees("after the merge")
}
