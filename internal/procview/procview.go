// Package procview says how a process looks to whoever looks at it, wherever it lies: one row, as `rnix ps`, the screens and the page
// show it. It decides nothing: who is asked for a process gives what the kernel or the disk has of it.
package procview

import (
	"slices"
	"time"

	"rnix/internal/price"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// States that only what does not run can have. Part of the wire format.
const (
	Suspended = "suspended" // it is paused, or is to be resumed
	Archived  = "archived"  // its history is in an archive
)

// Living is a process that the kernel has, without what others know of it: its groups by their names, its session with a platform, and its
// OS children.
func Living(i *kernel.Info) ipc.Proc {
	p := ipc.Proc{
		ProcStatus: i.ProcStatus, State: i.StateName(), Wait: i.Reason, WaitKind: i.ReasonKind, WaitSince: i.WaitSince, WaitUntil: i.WaitUntil,
		Estimated: i.Estimated, UnpricedModels: Unpriced(i.Spending, &i.ProcStatus), Suspect: i.Suspect, Purse: (*ipc.BudgetWait)(i.Purse), ElapsedMs: i.Elapsed.Milliseconds(), ClockPaused: i.Still, PendingSignals: i.Pending, MCPDown: i.MCPDown, OriginUUID: i.Origin, OriginStep: i.OriginStep, Taken: taken(i.Origin, i.Spending, &i.ProcStatus),
	}
	p.UpdatedAt = i.EndedAt
	if h := i.Hand; h != nil {
		p.Doing = &ipc.Doing{Tool: h.Tool, Path: h.Path, Since: h.Since, Step: h.Step, Calls: h.Calls}
	}
	return p
}

// Stored is a process that is only on disk.
func Stored(i *step.ProcInfo) ipc.Proc {
	state, waits := i.State.String(), i.Suspension
	switch {
	case i.Suspended:
		state = Suspended
	case i.State < types.StateDead && i.Exit == nil: // nobody has looked at it since the daemon started
		state, waits = Suspended, types.Suspend(types.SuspendBroken)
	}
	paused := i.PausedAt
	if state != Suspended || waits.Why() != types.SuspendPaused {
		paused = time.Time{}
	} else if paused.IsZero() { // an older file does not say when
		paused = i.UpdatedAt
	}
	p := ipc.Proc{
		ProcStatus: i.ProcStatus, State: state, Wait: waits.SuspendReason, WaitKind: waits.Why(), WaitUntil: i.WakeAt, WaitSince: paused,
		Estimated: Estimated(i), UnpricedModels: Unpriced(i.Spending, &i.ProcStatus), Purse: (*ipc.BudgetWait)(i.Purse), ElapsedMs: Elapsed(i).Milliseconds(), OriginUUID: i.OriginUUID, OriginStep: i.OriginStep, Taken: taken(i.OriginUUID, i.Spending, &i.ProcStatus),
	}
	p.PausedAt = paused
	if n, known := i.OwnFailed(); !known && n == 0 && i.FailedCalls == 0 {
		p.FailedUnknown = true
	}
	return p
}

// InArchive is a process whose history is in an archive.
func InArchive(a *step.Archived) ipc.Proc {
	p := Stored(&a.Info)
	p.State, p.Wait, p.WaitKind = Archived, "", ""
	return p
}

// Estimated reports whether some of the tokens of a process that is on disk were counted by us.
func Estimated(i *step.ProcInfo) bool {
	return slices.ContainsFunc(i.Spending, func(s step.Spending) bool { return s.Estimated })
}

// Unpriced names the models without a known price of what a process has used.
func Unpriced(spending []step.Spending, s *types.ProcStatus) []string {
	return step.UnpricedModels(spending, s.Provider, s.Model, s.Unpriced)
}

// taken is what a fork has of its origin: what it shows as used, without what it has used itself; nil = nothing.
func taken(origin types.UUID, spending []step.Spending, s *types.ProcStatus) *ipc.Taken {
	if origin == (types.UUID{}) {
		return nil
	}
	t, usd := ipc.Taken{Tokens: s.TokensUsed, Unpriced: s.Unpriced}, price.FromFloat(s.CostUSD)
	for i := range spending {
		t.Tokens, t.Unpriced, usd = t.Tokens-spending[i].Tokens(), t.Unpriced-spending[i].Unpriced, usd-price.FromFloat(spending[i].CostUSD)
	}
	if t.CostUSD = max(usd, 0).Float(); t == (ipc.Taken{}) {
		return nil
	}
	return &t
}

// Elapsed returns how long a process that is on disk has lived in all its runs.
func Elapsed(i *step.ProcInfo) time.Duration {
	if i.ActiveTotal > 0 {
		return i.ActiveTotal
	}
	end := i.DeadAt
	if end.IsZero() {
		end = i.UpdatedAt
	}
	return max(end.Sub(i.CreatedAt)-i.PausedTotal, 0)
}

// Ran returns what tells how long a process has run, once there is a kernel.
func Ran(of func() *kernel.KernelImpl) func(types.PID) (time.Duration, bool) {
	return func(pid types.PID) (time.Duration, bool) {
		p, ok := of().Process(pid)
		if !ok {
			return 0, false
		}
		return p.Elapsed(time.Now()), true
	}
}
