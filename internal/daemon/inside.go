package daemon

import (
	"rnix/internal/profile"
	"rnix/internal/service"
	"rnix/ipc"
	"rnix/types"
)

// agentOf returns the process inside which a caller runs. The owner is 0 for a caller that comes from
// inside some agent and does not say which: it may do nothing that concerns processes or paths.
func (d *Daemon) agentOf(peer *ipc.Peer) (owner types.PID, inside bool) {
	if peer == nil { // the daemon itself
		return 0, false
	}
	return peer.Settle(d.procs.Owner)
}

// mayTouch refuses a caller inside an agent that acts on a process outside that agent's subtree.
func (d *Daemon) mayTouch(peer *ipc.Peer, op string, pid types.PID) error {
	owner, inside := d.agentOf(peer)
	if !inside || d.inSubtree(owner, pid) {
		return nil
	}
	e := service.Outside(op, owner, "act on its own subtree only")
	e.PID = pid
	return e
}

// insider decides what callers inside agents may do.
type insider struct{ *Daemon }

// maySignal is mayTouch for a signal, to which an agent needs the right.
func (d insider) maySignal(peer *ipc.Peer, op string, pid types.PID) error {
	return d.mayAct(peer, op, pid, d.kernel.MaySignal)
}

// mayStart is mayTouch for a start of another child, to which an agent needs the right.
func (d insider) mayStart(peer *ipc.Peer, pid types.PID) error {
	return d.mayAct(peer, "StartChild", pid, d.kernel.MaySpawn)
}

func (d insider) mayAct(peer *ipc.Peer, op string, pid types.PID, may func(types.PID) error) error {
	if err := d.mayTouch(peer, op, pid); err != nil {
		return err
	}
	if owner, inside := d.agentOf(peer); inside {
		return may(owner)
	}
	return nil
}

// bind refuses what a caller inside an agent may not start, and makes p cost what the agent itself does: neither
// the trust of a person in a project nor the prices by which budgets are kept are an agent's to give.
func (d spawner) bind(owner types.PID, p *profile.Profile, trusts bool) error {
	if owner == 0 {
		return service.Outside("Spawn", owner, "")
	}
	if err := d.kernel.MaySpawn(owner); err != nil {
		return err
	}
	var above *profile.Profile
	if proc, ok := d.kernel.Process(owner); ok {
		above, _ = profile.Of(proc)
	}
	if above == nil {
		return nil
	}
	if trusts && !above.Trust {
		return service.Outside("Spawn", owner, "not trust the files of a project; a person does, with: rnix run --trust-project")
	}
	p.CostAs(above)
	return nil
}
