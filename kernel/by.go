package kernel

import (
	"context"
	"strconv"

	"rnix/agent"
	"rnix/types"
)

// By is the kernel as one process calls it: its calls stand in the trace of that process. Those that are made without
// it are made by PID 0, which is a person or the kernel itself.
type By struct {
	k *KernelImpl
	p *Process // nil = PID 0
}

// By returns the kernel as a process calls it; PID 0, if no such process is alive.
func (k *KernelImpl) By(pid types.PID) By { return By{k, k.table.caller(pid)} }

// Signal is KernelImpl.Signal.
func (b By) Signal(pid types.PID, sig types.Signal) error {
	c := b.k.tracer.call(b.p, "Signal", "")
	err := b.k.signals.send(authority{p: b.p}, pid, sig)
	c.ends(pid.String()+", "+sig.String(), "", err)
	return err
}

// SignalTree is KernelImpl.SignalTree.
func (b By) SignalTree(pid types.PID, sig types.Signal) (int, error) {
	c := b.k.tracer.call(b.p, "SignalTree", "")
	n, err := b.k.signals.tree(authority{p: b.p}, pid, sig)
	c.ends(pid.String()+", "+sig.String(), strconv.Itoa(n)+" reached", err)
	return n, err
}

// SignalGroup is KernelImpl.SignalGroup.
func (b By) SignalGroup(id types.PGID, sig types.Signal) error {
	c := b.k.tracer.call(b.p, "SignalGroup", "")
	err := b.k.signals.group(authority{p: b.p}, id, sig)
	c.ends(groupArg(id)+", "+sig.String(), "", err)
	return err
}

// JoinGroup is KernelImpl.JoinGroup.
func (b By) JoinGroup(pid types.PID, id types.PGID) error {
	c := b.k.tracer.call(b.p, "JoinGroup", "")
	err := joinGroup(b.k, pid, id)
	c.ends(pid.String()+", "+groupArg(id), "", err)
	return err
}

// LeaveGroup is KernelImpl.LeaveGroup.
func (b By) LeaveGroup(pid types.PID, id types.PGID) error {
	c := b.k.tracer.call(b.p, "LeaveGroup", "")
	err := leaveGroup(b.k, pid, id)
	c.ends(pid.String()+", "+groupArg(id), "", err)
	return err
}

// WaitInfo is KernelImpl.WaitInfo.
func (b By) WaitInfo(ctx context.Context, pid types.PID) (Info, error) {
	c := b.k.tracer.call(b.p, "Wait", "")
	if p, ok := b.k.table.get(pid); ok && !closed(p.gone) { // else it is known how it has ended
		c.begins(pid.String())
	}
	i, err := waitFor(ctx, b.k, pid)
	c.ends(pid.String(), endOf(&i), err)
	return i, err
}

// Spawn starts a child of the process. It is returned as it is, since it may have ended and be gone already.
func (b By) Spawn(ctx context.Context, intent string, ag *agent.Agent, opts SpawnOpts) (*Process, error) {
	return spawnBy(ctx, b.k, b.p, intent, ag, opts)
}

// Reap is WaitInfo for a process that has ended, such as one that Body.Ended was told of.
func (b By) Reap(p *Process) Info {
	<-p.left
	c := b.k.tracer.call(b.p, "Wait", "")
	b.k.reaper.reap(p)
	<-p.gone
	i := *p.tomb.info()
	c.ends(p.PID.String(), endOf(&i), nil)
	return i
}

// endOf says how a process has ended that was waited for.
func endOf(i *Info) string {
	switch {
	case i.Parked.Waits():
		return "suspended: " + i.Parked.SuspendReason
	case i.Exit == nil:
		return "suspended"
	}
	return "exit " + i.Exit.String()
}

func groupArg(id types.PGID) string { return "group " + strconv.FormatUint(uint64(id), 10) }
