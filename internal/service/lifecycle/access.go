package lifecycle

import (
	"context"
	"slices"
	"time"

	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// AccessKernel is what of the kernel is asked to know what a caller may do.
type AccessKernel interface {
	Info(pid types.PID) (kernel.Info, error)
	Subtree(pid types.PID) ([]types.PID, error)
	Descends(id, root types.UUID) bool
	MaySignal(pid types.PID) error
	MaySpawn(pid types.PID) error
}

// AccessGround is what the services ask of histories that they have found.
type AccessGround interface {
	Ground
	// Whole returns what a history looks like with its texts in full, which the index cuts.
	Whole(i *step.ProcInfo) *step.ProcInfo
	// Here returns where a path is that a record names: records of a data directory that was moved name the old one.
	Here(path string) string
}

// Access finds what callers name, and refuses callers inside agents what these may not do. It is what the services ask by interfaces of
// their own. Its fields are set before it is used.
type Access struct {
	*Names
	AccessGround
	Kernel AccessKernel
	// Owner returns inside which process an OS process runs.
	Owner func(pid int) (owner types.PID, inside bool)
}

// OwnerOf returns inside which process an OS process runs, also before Owner is set: inside of none.
func (a *Access) OwnerOf(pid int) (owner types.PID, inside bool) {
	if a.Owner == nil {
		return 0, false
	}
	return a.Owner(pid)
}

// AgentOf returns the process inside which a caller runs. The owner is 0 for a caller that comes from
// inside some agent and does not say which: it may do nothing that concerns processes or paths.
func (a *Access) AgentOf(peer *ipc.Peer) (owner types.PID, inside bool) {
	if peer == nil { // the daemon itself
		return 0, false
	}
	return peer.Settle(a.Owner)
}

// MayTouch refuses a caller inside an agent that acts on a process outside that agent's subtree.
func (a *Access) MayTouch(peer *ipc.Peer, op string, pid types.PID) error {
	owner, inside := a.AgentOf(peer)
	if !inside || a.InSubtree(owner, pid) {
		return nil
	}
	return outside(op, owner, "act on its own subtree only", pid)
}

// MayChange is MayTouch for a process wherever it lies.
func (a *Access) MayChange(peer *ipc.Peer, op string, t service.Target) error {
	owner, inside := a.AgentOf(peer)
	if !inside || a.Below(t.UUID, owner) {
		return nil
	}
	return outside(op, owner, "act on its own subtree only", t.PID)
}

// MaySignal is MayTouch for a signal, to which an agent needs the right.
func (a *Access) MaySignal(peer *ipc.Peer, op string, pid types.PID) error {
	return a.mayAct(peer, op, pid, a.Kernel.MaySignal)
}

// MayStart is MayTouch for a start of another child, to which an agent needs the right.
func (a *Access) MayStart(peer *ipc.Peer, pid types.PID) error {
	return a.mayAct(peer, "StartChild", pid, a.Kernel.MaySpawn)
}

func (a *Access) mayAct(peer *ipc.Peer, op string, pid types.PID, may func(types.PID) error) error {
	if err := a.MayTouch(peer, op, pid); err != nil {
		return err
	}
	if owner, inside := a.AgentOf(peer); inside {
		return may(owner)
	}
	return nil
}

// InSubtree reports whether a process that runs is another one, or was started below it.
func (a *Access) InSubtree(root, pid types.PID) bool {
	tree, err := a.Kernel.Subtree(root)
	return err == nil && slices.Contains(tree, pid)
}

// Below reports whether a history is that of a process, or of one below it.
func (a *Access) Below(id types.UUID, root types.PID) bool {
	top, err := a.Kernel.Info(root)
	return err == nil && a.Kernel.Descends(id, top.UUID)
}

// Find finds the process that a caller names, to read what it did and said. A caller inside an agent sees the
// agent's own subtree only.
func (a *Access) Find(peer *ipc.Peer, op, text string) (service.Target, error) {
	t, err := a.Resolve(text)
	if err != nil {
		return t, err
	}
	if owner, inside := a.AgentOf(peer); inside && !a.Below(t.UUID, owner) {
		return service.Target{}, outside(op, owner, "see records below it only", t.PID)
	}
	return t, nil
}

// Alive resolves a name of a process that must be running in this kernel.
func (a *Access) Alive(op, text string) (types.PID, error) {
	t, err := a.Resolve(text)
	if err == nil {
		err = t.MustRun(op, text)
	}
	return t.PID, err
}

// Paused reports whether a person has paused a process that runs.
func (a *Access) Paused(pid types.PID) bool {
	i, err := a.Kernel.Info(pid)
	return err == nil && i.Paused
}

// soon is how long a listing waits for what an earlier daemon has left. It shows less after that.
const soon = 500 * time.Millisecond

// SettledSoon is Settled for who must not wait long.
func (a *Access) SettledSoon(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	_ = a.Settled(ctx) // what is not known yet is shown as it was
}

// outside is the error for a caller inside an agent that names a process which is not its own.
func outside(op string, owner types.PID, may string, pid types.PID) error {
	e := service.Outside(op, owner, may)
	e.PID = pid
	return e
}
