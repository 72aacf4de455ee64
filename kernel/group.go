package kernel

import (
	"cmp"
	"fmt"
	"slices"

	"rnix/types"
)

// group is the members of a process group, in order of PID. The slice is replaced, never changed, so
// that a broadcast works on a snapshot.
type group struct{ members []*Process }

// JoinGroup makes a process a member of a group, which exists as long as it has members. Joining twice
// is joining once.
func (k *KernelImpl) JoinGroup(pid types.PID, id types.PGID) error { return k.By(0).JoinGroup(pid, id) }

func joinGroup(k *KernelImpl, pid types.PID, id types.PGID) error {
	p, err := k.table.lookup("JoinGroup", pid)
	if err != nil {
		return err
	}
	defer k.doing.touch(p)
	return k.table.join(p, id)
}

// LeaveGroup ends a membership. It is NOT_FOUND if the process is no member.
func (k *KernelImpl) LeaveGroup(pid types.PID, id types.PGID) error {
	return k.By(0).LeaveGroup(pid, id)
}

func leaveGroup(k *KernelImpl, pid types.PID, id types.PGID) error {
	p, err := k.table.lookup("LeaveGroup", pid)
	if err != nil {
		return err
	}
	defer k.doing.touch(p)
	if !k.table.leave(p, id) {
		return noGroup("LeaveGroup", pid, id)
	}
	return nil
}

// GetProcGroup returns the members of a group in order of PID. It is NOT_FOUND if there is none.
func (k *KernelImpl) GetProcGroup(id types.PGID) ([]types.PID, error) {
	c := k.tracer.call(nil, "GetProcGroup", "")
	members := k.table.members(id)
	if members == nil {
		err := noGroup("GetProcGroup", 0, id)
		c.ends(groupArg(id), "", err)
		return nil, err
	}
	out := make([]types.PID, len(members))
	for i, p := range members {
		out[i] = p.PID
	}
	c.ends(groupArg(id), types.Counted(len(out), "member", "members"), nil)
	return out, nil
}

// SignalGroup sends a signal to every member of a group. Members that have ended are skipped.
func (k *KernelImpl) SignalGroup(id types.PGID, sig types.Signal) error {
	return k.By(0).SignalGroup(id, sig)
}

func (s *signaller) group(from authority, id types.PGID, sig types.Signal) error {
	if !sig.Valid() {
		return types.Errorf(types.ErrInvalid, "SignalGroup", "", "%d is not a signal", int(sig))
	}
	members := s.table.members(id)
	if members == nil {
		return noGroup("SignalGroup", 0, id)
	}
	_, err := s.deliver(sig, s.enforces(from, sig), members...)
	return err
}

func noGroup(op string, pid types.PID, id types.PGID) error {
	return &types.SyscallError{Syscall: op, PID: pid, Code: types.ErrNotFound, Err: fmt.Errorf("no such membership of group %d", id)}
}

func (t *table) members(id types.PGID) []*Process {
	t.mu.Lock()
	defer t.mu.Unlock()
	if g := t.groups[id]; g != nil {
		return g.members
	}
	return nil
}

func (t *table) join(p *Process, id types.PGID) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.rel.reaped {
		return &types.SyscallError{Syscall: "JoinGroup", PID: p.PID, Code: types.ErrNotFound, Err: ErrNoProcess}
	}
	if slices.Contains(p.rel.groups, id) {
		return nil
	}
	g := t.groups[id]
	if g == nil {
		g = &group{}
		t.groups[id] = g
	}
	p.rel.groups = append(p.rel.groups, id)
	i, _ := slices.BinarySearchFunc(g.members, p.PID, func(m *Process, pid types.PID) int { return cmp.Compare(m.PID, pid) })
	g.members = slices.Insert(slices.Clone(g.members), i, p)
	return nil
}

func (t *table) leave(p *Process, id types.PGID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.leaveLocked(p, id)
}

// +checklocks:t.mu
func (t *table) leaveLocked(p *Process, id types.PGID) bool {
	i := slices.Index(p.rel.groups, id)
	if i < 0 {
		return false
	}
	p.rel.groups = slices.Delete(p.rel.groups, i, i+1)
	g := t.groups[id]
	g.members = slices.DeleteFunc(slices.Clone(g.members), func(m *Process) bool { return m == p })
	if len(g.members) == 0 {
		delete(t.groups, id)
	}
	return true
}

func (t *table) leaveAll(p *Process) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(p.rel.groups) > 0 {
		t.leaveLocked(p, p.rel.groups[0])
	}
}
