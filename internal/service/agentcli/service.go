// Package agentcli looks after the agent CLIs that run as processes, or as the models of some: how they reach the kernel, where they keep what is
// theirs, and what of them is left after a crash.
package agentcli

import (
	"context"
	"log/slog"
	"net/http"
	"sync"

	"rnix/drivers/harness"
	"rnix/internal/gateway"
	"rnix/internal/kernelmcp"
	"rnix/internal/permit"
	"rnix/internal/redact"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// Service answers the sessions of agent CLIs. Its fields are set before it is registered; Open, which comes earlier, needs neither Kernel nor
// Callers.
type Service struct {
	Kernel    Kernel
	Callers   service.Callers
	Index     Index
	Trees     Trees
	Platforms Platforms

	Histories func(id types.UUID) string // the directory of a history
	Program   string                     // serves the kernel to agent CLIs
	Socket    string
	Secrets   *redact.Set
	Note      func(format string, args ...any)
	Log       *slog.Logger

	Boxes   Boxes
	Roads   Roads
	Version string // of this program

	bridge  *harness.Bridge
	vendors *gateway.Vendors

	mu sync.Mutex
	// +checklocks:mu
	gates map[types.PID]map[string]http.Handler // of the processes whose agent CLI runs, by the names of its vendors
}

// Kernel has the processes that live. *kernel.KernelImpl is one.
type Kernel interface {
	Process(pid types.PID) (*kernel.Process, bool)
	ByUUID(id types.UUID) (*kernel.Process, bool)
	AskFor(ctx context.Context, of types.UUID, id string, c permit.Call) (kernel.Permission, error)
	Meter(ctx context.Context, id types.UUID, q kernel.Question) (*kernel.Metering, error)
	MeterLimited(id types.UUID) (tokens, usd bool)
}

// Index knows the histories on disk. Each store.Index is one.
type Index interface {
	Get(id types.UUID) (step.ProcInfo, bool)
	List() []step.ProcInfo
}

// Trees knows the git work trees of processes.
type Trees interface {
	// Home is below which directory the work tree of a process is, if it has one.
	Home(id types.UUID) string
}

// Platforms knows what a platform calls a process.
type Platforms interface {
	Names(id types.UUID) (issue, worker string)
}

// Register registers what the service answers.
func (d *Service) Register(on *service.Wire) {
	service.Handle(on, ipc.SessionTools, d.tools)
	service.Handle(on, ipc.SessionCall, d.call)
	service.Handle(on, ipc.SessionJudge, d.judge)
	on.Server.Mount(harness.RoadPath, kernelmcp.Mounted(d.Version, d.sessionOf))
	on.Server.Mount(gatewayPath, d.served)
}
