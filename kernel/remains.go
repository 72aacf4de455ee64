package kernel

import (
	"sync/atomic"
	"time"

	"rnix/internal/step"
	"rnix/kernel/internal/loop"
	"rnix/types"
)

// card is what is told of a process and, but for its name, never changes once it is visible. The process and its tombstone
// share it, so that an end has nothing of it to copy. What an end looks at stands together.
type card struct {
	Intent     string
	MCPMounts  []string // paths of the servers that were mounted for it
	parentUUID types.UUID

	name      atomic.Pointer[string] // nil = none; see Name
	Agent     string
	Labels    types.Labels
	CreatedAt time.Time
	Rights    Rights
	MaxSteps  int // 0 = no limit
	// What its agent says of signals.
	BlockedSignals []types.Signal
	OnInterrupt    string
	WorkDir        string
	ReadRoots      []string
	origin         types.UUID // of a fork
	originStep     int
	runs           int         // with this one
	earlier        []types.PID // of the runs before
	kind           string      // of its body; empty = an agent
	tools          []string    // by name, in order
	modelPath      string
	began          time.Time     // of this run
	before         time.Duration // lived in earlier runs
	depth          int
	Sandbox, Net   string     // of its commands
	root           types.UUID // the history of the uppermost above it, or its own
	byAgent        bool       // an agent is above it, or was
	Schema         bool       // its result must fit one
}

// Name is how people call the process; empty = it has no name. Rename changes it.
func (c *card) Name() string {
	if name := c.name.Load(); name != nil {
		return *name
	}
	return ""
}

// call gives the process a name; an empty one takes it away.
func (c *card) call(name string) {
	if name == "" {
		c.name.Store(nil)
		return
	}
	c.name.Store(&name)
}

// remains are what a snapshot holds of a process in any state, and all that its tombstone keeps.
type remains struct {
	*card
	pid, ppid        types.PID
	uuid             types.UUID
	state            types.ProcessState
	suspended, shut  bool
	pausedAt         time.Time // by a person, and still is
	parked           types.Suspension
	wake             time.Time
	broke            *step.PurseWait
	progress         loop.Progress
	limit            Amount
	ended            time.Time
	elapsed, pausing time.Duration
	exit             *types.ExitStatus
	result, plan     string
	blocked          []types.Signal
	skills           []string
	denials          types.Denials
	down             []string // of its MCP servers
}

// takeLocked notes what there is of a process now, p.mu held, but for its PPID and its limit.
//
// +checklocks:p.mu
func (r *remains) takeLocked(p *Process, now time.Time) {
	end := now
	if !p.ended.IsZero() {
		end = p.ended
	}
	since, shut, paused := p.gate.State(end)
	elapsed := p.before + end.Sub(p.began) - paused
	if shut && end != now {
		_, _, paused = p.gate.State(now)
	}
	r.card, r.pid, r.uuid, r.state, r.shut = p.card, p.PID, p.UUID, p.state, shut
	r.suspended = shut && p.state == types.StateRunning || p.stopping || p.parked.Waits()
	r.parked, r.wake, r.broke, r.progress, r.ended = p.parked, p.wake, p.broke, p.progress, p.ended
	r.elapsed, r.pausing, r.exit, r.result, r.plan, r.skills = elapsed, paused, p.exit, p.result, p.plan, p.skills
	r.blocked, r.denials, r.down = p.BlockedSignals, p.asks.refusals(), p.servers.list()
	if p.state < types.StateZombie {
		r.blocked = p.sigs.Blocked() // SigBlock has changed it, perhaps
	}
	if shut && (p.state == types.StateRunning || p.stopping || p.parked.Waits()) {
		r.pausedAt = since
	}
}

// tombstone returns that of a process that is dead and has no relatives any more.
func tombstone(p *Process, now time.Time) *remains {
	r := new(remains)
	r.limit = p.purse.Limit()
	p.mu.Lock()
	r.takeLocked(p, now)
	p.mu.Unlock()
	return r
}

// status is what all show that show processes.
func (r *remains) status() types.ProcStatus {
	s := types.ProcStatus{
		PID: r.pid, PPID: r.ppid, UUID: r.uuid, ParentUUID: r.parentUUID, Name: r.Name(), Kind: r.kind, Intent: r.Intent, Agent: r.Agent, Labels: r.Labels, Sandbox: r.Sandbox, Net: r.Net, Skills: r.skills, BlockedSignals: r.blocked, OnInterrupt: r.OnInterrupt, WorkDir: r.WorkDir,
		Provider: r.progress.Provider, Model: r.progress.Model, Step: r.progress.Step, FailedCalls: r.progress.Failed, MaxSteps: r.MaxSteps,
		TokensUsed: r.progress.Tokens, CostUSD: r.progress.CostUSD, Unpriced: r.progress.Unpriced,
		ContextBudget: r.limit.Tokens, BudgetUSD: r.limit.USD.Float(), PausedAt: r.pausedAt, CreatedAt: r.CreatedAt, Denials: r.denials,
	}
	if r.exit != nil {
		e := *r.exit
		s.Exit = &e
	}
	return s
}

// info is the snapshot that a tombstone stands for.
func (r *remains) info() *Info {
	i := &Info{
		ProcStatus: r.status(), State: r.state, Estimated: r.progress.Estimated, Spending: r.progress.Spending, Taken: r.progress.Taken,
		EndedAt: r.ended, Elapsed: r.elapsed, PausedFor: r.pausing, Result: r.result, ReadRoots: r.ReadRoots, Schema: r.Schema,
		Rights: r.Rights, MCPMounts: r.MCPMounts, MCPDown: r.down, Plan: r.plan, Tools: r.tools,
		Suspended: r.suspended, Paused: r.shut, Parked: r.parked, Wake: r.wake, Purse: r.broke,
		Origin: r.origin, OriginStep: r.originStep, Runs: r.runs, Earlier: r.earlier,
	}
	if r.state != types.StateRunning {
		i.Reason, i.ReasonKind, i.WaitSince = r.parked.SuspendReason, r.parked.Why(), r.ended
	}
	return i
}

// weight is how many bytes a tombstone holds, roughly, besides itself.
func (r *remains) weight() int {
	n := len(r.Intent) + len(r.result) + len(r.plan) + len(r.OnInterrupt)
	for _, text := range r.down {
		n += len(text)
	}
	for key, value := range r.Labels {
		n += len(key) + len(value)
	}
	return n
}
