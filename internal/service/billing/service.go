// Package billing is the ledger: what processes have used, living, stored, archived and deleted ones, what their budgets leave them, and how
// a budget is raised wherever the process lies. The kernel draws budgets while processes run; what it does not have is counted here.
package billing

import (
	"context"

	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// Service answers what concerns budgets and costs. Its fields are set before it is registered.
type Service struct {
	Kernel  Kernel
	Index   Index
	Removed Removed
	Finder  Finder
	Looks   Looks
	Stored  Stored
}

// Kernel draws the budgets of the processes that live. *kernel.KernelImpl is one.
type Kernel interface {
	List() []kernel.Info
	Budget(id types.UUID) (kernel.Budget, bool)
	AddBudget(pid types.PID, more kernel.Amount) (kernel.Amount, error)
	WaitInfo(ctx context.Context, pid types.PID) (kernel.Info, error)
}

// Index knows the histories on disk. Each store.Index is one.
type Index interface {
	Get(id types.UUID) (step.ProcInfo, bool)
	List() []step.ProcInfo
	Descended() []step.ProcInfo
}

// Removed knows what histories have used that are archived or deleted. *gc.Collector is one.
type Removed interface {
	Archived() []step.Archived
	Deleted() []step.Tomb
}

// Finder knows who asks, and what a name means.
type Finder interface {
	// Settled waits until it is known what an earlier daemon has left.
	Settled(ctx context.Context) error
	// AgentOf returns inside which process a caller runs.
	AgentOf(peer *ipc.Peer) (owner types.PID, inside bool)
	// Resolve finds a process by what a person calls it.
	Resolve(text string) (service.Target, error)
	// Family returns a process and all below it, wherever they lie.
	Family(t service.Target) []service.Target
}

// Looks says how a process that lives looks to who lists it.
type Looks interface {
	Living(i *kernel.Info) ipc.Proc
}

// Stored changes histories that do not run.
type Stored interface {
	// Raise raises the budget of a history. The error is INVALID if it has no limit of that kind.
	Raise(ctx context.Context, id types.UUID, more kernel.Amount) error
	// Wake resumes what is suspended because it waits for the budget of a history, each in the environment env.
	Wake(ctx context.Context, purse types.UUID, env []string) (pids []types.PID, warnings []string)
}

// Register registers what the service answers.
func (d *Service) Register(on *service.Wire) {
	service.Handle(on, ipc.ShowBudget, d.show)
	service.Handle(on, ipc.AddBudget, d.add)
	service.Handle(on, ipc.ShowCost, d.cost)
	service.Handle(on, ipc.Families, d.families)
}
