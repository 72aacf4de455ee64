package kernel

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/step"
	"rnix/types"
	"rnix/vfs"
)

// Proc is what /proc shows of the processes of a kernel; the zero Proc is of no use.
type Proc struct{ k *KernelImpl }

var _ vfs.ProcSource = Proc{}

// Proc returns what /proc shows of the processes.
func (k *KernelImpl) Proc() Proc { return Proc{k} }

// Processes returns the PIDs of the processes that are not dead, in order.
func (v Proc) Processes() []types.PID {
	procs := v.k.table.all()
	out := make([]types.PID, len(procs))
	for i, p := range procs {
		out[i] = p.PID
	}
	return out
}

// Status describes a process for /proc/<pid>/status.
func (v Proc) Status(pid types.PID) (vfs.ProcStatus, bool) {
	p, ok := v.k.table.get(pid)
	if !ok {
		return vfs.ProcStatus{}, false
	}
	i := v.k.table.current(p)
	s := vfs.ProcStatus{
		PID: i.PID, PPID: i.PPID, UUID: i.UUID, ParentUUID: i.ParentUUID, Name: i.Name, State: i.StateName(),
		Wait: i.Wait, WaitUntil: i.WaitUntil, Intent: i.Intent, Agent: i.Agent, Provider: i.Provider,
		Model: i.Model, Skills: i.Skills, BlockedSignals: i.BlockedSignals, PendingSignals: i.Pending, OnInterrupt: i.OnInterrupt, Step: i.Step, MaxSteps: i.MaxSteps,
		TokensUsed: i.TokensUsed, Estimated: i.Estimated, ContextBudget: i.ContextBudget, BudgetUSD: i.BudgetUSD, CostUSD: i.CostUSD, Unpriced: i.Unpriced, FailedCalls: i.FailedCalls,
		CreatedAt: i.CreatedAt, Elapsed: i.Elapsed, Timeout: p.opts.Timeout, StepTimeout: p.stepTimeout,
		AllowedDevices: i.Rights.Allowed, DeniedDevices: i.Rights.Denied,
		MCPMounts: i.MCPMounts, WorkDir: i.WorkDir, ReadRoots: i.ReadRoots, Children: i.Children, Exit: i.Exit, Labels: i.Labels,
	}
	for _, d := range i.MCPDown {
		s.MCPDown = append(s.MCPDown, types.MCPDown(d))
	}
	used := p.purse.State().Used
	s.BudgetUsed, s.BudgetUsedUSD = used.Tokens, used.USD.Float()
	s.Tools, s.Inputs = offered(p).list, inputNames(p.inputs)
	s.OSChildren = v.k.cfg.Lifecycle.OSChildren(pid)
	return s, true
}

// Sees reports whether a process may read what another one was told, said and did, in /proc or over the wire: whether
// that is the process itself, or was started below it.
func (v Proc) Sees(reader, pid types.PID) bool {
	r, ok := v.k.table.get(reader)
	p, there := v.k.table.get(pid)
	return ok && there && v.k.Descends(p.UUID, r.UUID)
}

// parents is a Store that knows who has started the processes that live no more.
type parents interface {
	Parent(id types.UUID) (types.UUID, bool)
}

// maxAncestors bounds how far up Descends looks: damaged files may make a circle.
const maxAncestors = 1000 // far more than a family is deep

// Descends reports whether a process is another one, or was started below it, whichever of those between them live.
func (k *KernelImpl) Descends(id, root types.UUID) bool {
	for range maxAncestors {
		if id == root {
			return true
		}
		if id = parentOf(k, id); id == (types.UUID{}) {
			return false
		}
	}
	return false
}

// parentOf returns who has started a process, alive or not; zero = a person, or nobody knows.
func parentOf(k *KernelImpl, id types.UUID) types.UUID {
	if p, ok := k.table.byID(id); ok {
		return p.parentUUID
	}
	if past, ok := k.store.(parents); ok {
		if parent, ok := past.Parent(id); ok {
			return parent
		}
	}
	return types.UUID{}
}

// StateName is the state as people read it: that of the process, or "suspended".
func (i *Info) StateName() string {
	if i.Suspended {
		return "suspended"
	}
	return i.State.String()
}

// Context returns the conversation of a process as text.
func (v Proc) Context(pid types.PID) (string, error) {
	p, err := v.k.table.lookup("Read", pid)
	if err != nil {
		return "", err
	}
	head, err := v.k.ctxMgr.GetContextSummary(p.CtxID)
	if err != nil {
		return "", err
	}
	prompt, err := v.k.ctxMgr.BuildPrompt(p.CtxID)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n## system\n%s\n", head, prompt.SystemPrompt)
	for _, m := range prompt.Messages {
		fmt.Fprintf(&b, "\n## %s%s\n%s\n", m.Role, answers(m), m.Content)
		for _, c := range m.ToolCalls {
			fmt.Fprintf(&b, "-> %s %s (%s)\n", c.Name, c.Input, c.ID)
		}
	}
	return b.String(), nil
}

func answers(m rnixctx.Message) string {
	switch {
	case m.ToolCallID == "":
		return ""
	case m.IsError:
		return " " + m.ToolCallID + " (error)"
	}
	return " " + m.ToolCallID
}

// Steps returns one line for each step that a process has recorded.
func (v Proc) Steps(pid types.PID) ([]vfs.ProcStep, error) {
	p, err := v.k.table.lookup("Read", pid)
	if err != nil {
		return nil, err
	}
	recs, err := v.k.store.Steps(p.UUID)
	if err != nil {
		return nil, err
	}
	out := make([]vfs.ProcStep, len(recs))
	for i, r := range recs {
		out[i] = vfs.ProcStep{Number: r.StepNumber, Action: r.Action, Tokens: r.TokensUsed, Duration: r.Duration.Round(time.Millisecond), Summary: r.Summary, Error: r.Error}
	}
	return out, nil
}

// ledgers is a Store that can tell what became of the calls of a history whose process lives.
type ledgers interface {
	Ledger(id types.UUID) ([]step.LedgerEntry, error)
}

// Calls returns what became of each call of a process. Where nothing is kept there are none.
func (v Proc) Calls(pid types.PID) ([]vfs.ProcCall, error) {
	p, err := v.k.table.lookup("Read", pid)
	if err != nil {
		return nil, err
	}
	l, ok := v.k.store.(ledgers)
	if !ok {
		return nil, nil
	}
	entries, err := l.Ledger(p.UUID)
	if err != nil {
		return nil, err
	}
	out := make([]vfs.ProcCall, len(entries))
	for i, e := range entries {
		out[i] = vfs.ProcCall{Step: e.Step, Verdict: string(e.Verdict), ID: e.CallID, Tool: e.Tool, Effect: e.Effect, Duration: e.Took, Text: cmp.Or(e.Error, e.Result)}
	}
	return out, nil
}

// Step returns one recorded step.
func (v Proc) Step(pid types.PID, number int) (any, error) {
	p, err := v.k.table.lookup("Read", pid)
	if err != nil {
		return nil, err
	}
	recs, err := v.k.store.Steps(p.UUID)
	if err != nil {
		return nil, err
	}
	for i := range recs {
		if recs[i].StepNumber == number {
			return &recs[i], nil
		}
	}
	return nil, &types.SyscallError{Syscall: "Read", PID: pid, Code: types.ErrNotFound, Err: fmt.Errorf("no step %d: %d are recorded", number, len(recs))}
}
