// Package groups answers what concerns process groups, and knows the names that people gave to them.
package groups

import (
	"rnix/internal/service"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// Service answers what concerns process groups. Kernel and Callers are set before it is registered; Names can be used before.
type Service struct {
	Kernel  Kernel
	Callers Callers
	Names   Names
}

// Kernel has the groups. *kernel.KernelImpl is one.
type Kernel interface {
	Info(pid types.PID) (kernel.Info, error)
	NewGroup() types.PGID
	Groups() []kernel.Group
	GetProcGroup(id types.PGID) ([]types.PID, error)
	JoinGroup(pid types.PID, id types.PGID) error
	LeaveGroup(pid types.PID, id types.PGID) error
	Signal(pid types.PID, sig types.Signal) error
	SignalTree(pid types.PID, sig types.Signal) (int, error)
	SignalGroup(id types.PGID, sig types.Signal) error
}

// Callers knows what a name means, who asks, and what that caller may do.
type Callers interface {
	// Resolve finds a process by what a person calls it.
	Resolve(text string) (service.Target, error)
	// AgentOf returns inside which process a caller runs.
	AgentOf(peer *ipc.Peer) (owner types.PID, inside bool)
	// MayTouch refuses a caller inside an agent that acts on a process outside of that agent's subtree.
	MayTouch(peer *ipc.Peer, op string, pid types.PID) error
	// MaySignal is MayTouch for a signal, to which an agent needs the right.
	MaySignal(peer *ipc.Peer, op string, pid types.PID) error
}

// Register registers what the service answers.
func (d *Service) Register(on *service.Wire) {
	service.Handle(on, ipc.ListGroups, d.list)
	service.Handle(on, ipc.JoinGroup, d.join)
	service.Handle(on, ipc.LeaveGroup, d.leave)
	service.Handle(on, ipc.SignalGroup, d.signal)
}

// alive finds a process that runs.
func (d *Service) alive(op, text string) (service.Target, error) {
	t, err := d.Callers.Resolve(text)
	if err == nil {
		err = t.MustRun(op, text)
	}
	return t, err
}
