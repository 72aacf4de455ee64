package daemon

import (
	"rnix/ipc"
	"rnix/types"
)

// agentOf returns the process inside which a caller runs. The owner is 0 for a caller that comes from
// inside some agent and does not say which: it may do nothing that concerns processes or paths.
func (d *Daemon) agentOf(peer *ipc.Peer) (owner types.PID, inside bool) {
	if peer == nil || peer.PID <= 0 {
		return 0, false
	}
	return d.procs.Owner(peer.PID)
}

// mayTouch refuses a caller inside an agent that acts on a process outside that agent's subtree.
func (d *Daemon) mayTouch(peer *ipc.Peer, op string, pid types.PID) error {
	owner, inside := d.agentOf(peer)
	if !inside || d.inSubtree(owner, pid) {
		return nil
	}
	e := outside(op, owner, "act on its own subtree only")
	e.PID = pid
	return e
}

// outside is the refusal of what a caller inside an agent may not do.
func outside(op string, owner types.PID, may string) *types.SyscallError {
	if owner == 0 {
		return types.Errorf(types.ErrPermission, op, "", "the caller was started by an agent that it has left, and may do nothing here; start it as a child of the command that uses it")
	}
	return types.Errorf(types.ErrPermission, op, "", "the caller runs inside process %d and may %s", owner, may)
}
