package kernel

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"

	"rnix/internal/event"
	"rnix/types"
)

// offspring knows what has become of the children that agents have started, wherever their histories are, and tells
// the parents of their ends. Which they are belongs to the parent, as its kids.
type offspring struct {
	table     *table
	mail      *mailer
	lifecycle Lifecycle
	stopped   *atomic.Bool // the kernel stops
	events    *event.Log
	log       *slog.Logger
}

// tellParent tells the agent that has started a process of the end of its run, in the process's own goroutine. A
// parent that is being stopped is told when it goes on.
func (o *offspring) tellParent(p *Process) {
	if p.parentUUID == (types.UUID{}) || o.stopped.Load() {
		return
	}
	parent, ok := o.table.byID(p.parentUUID)
	if ok && (parent.opts.Body != nil || !parent.kids.needs(p.UUID, failed(p))) {
		return // it sees for itself
	}
	if i := o.table.current(p); i.Exit != nil { // else it goes on
		p.told = o.tell(p.parentUUID, i)
	}
}

// failed reports whether a process has ended with a failure of its own: nobody has stopped it.
func failed(p *Process) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exit != nil && !p.parked.Waits() && p.exit.Code != types.ExitOK && p.exit.Code != types.ExitCancelled
}

// tell tells a parent of the end of a run of a child, wherever the parent is. It reports whether a parent that
// runs has got word, so that it need not wait for the child.
func (o *offspring) tell(parent types.UUID, i *Info) bool {
	m, failed := notice(i)
	var err error
	if p, ok := o.table.byID(parent); ok {
		if p.opts.Body != nil || !p.kids.needs(i.UUID, failed != "" && i.Exit.Code != types.ExitCancelled) || p.post.has(m.Key) {
			return false
		}
		if failed != "" {
			p.mu.Lock()
			p.failedChildren = append(p.failedChildren, failed)
			p.mu.Unlock()
		}
		if _, err = o.mail.post(context.Background(), p, m, false); types.CodeOf(err) != types.ErrBrokenPipe {
			if err == nil {
				p.kids.heard(i.UUID, i.PID, m.Child == i.UUID)
			}
			o.untold(p.PID, parent, err) // wait finds the child all the same
			return err == nil
		}
	}
	if info, serr := o.lifecycle.Stored(parent); serr == nil && info.Exit != nil && !info.Suspended {
		return false // it has ended, as Unix has it: nobody is left to be told
	}
	_, err = o.lifecycle.Post(context.Background(), parent, m)
	if code := types.CodeOf(err); code != types.ErrBrokenPipe && code != types.ErrNotFound && code != types.ErrInvalid {
		o.untold(0, parent, err)
	}
	return false
}

// untold says that a parent could not be told of the end of a child.
func (o *offspring) untold(pid types.PID, id types.UUID, err error) {
	if err == nil {
		return
	}
	o.log.Warn("a parent could not be told of the end of a child", "pid", pid, "uuid", id, "err", err)
	o.events.Append(event.Event{Kind: event.LogLine, PID: pid, UUID: id, Name: "warning", Text: "could not be told of the end of a child: " + err.Error()})
}

// missed tells an agent of the end of a child that has ended while nobody could tell.
func (o *offspring) missed(p *Process, c kid) {
	if i, _, ok := o.fate(c); ok && i.Exit != nil && !i.Parked.Waits() {
		o.tell(p.UUID, &i)
	}
}

// catchUp tells a process that goes on of the ends of its children that it has not heard of.
func (o *offspring) catchUp(p *Process) {
	if p.kids.none() {
		return
	}
	for _, c := range p.kids.all() {
		if !c.told {
			o.missed(p, c)
		}
	}
}

// fate returns what is known of a child, running, ended or suspended, and its process if that has not ended; false
// if there is no such child.
func (o *offspring) fate(c kid) (i Info, p *Process, ok bool) {
	if p, ok := o.table.byID(c.id); ok {
		left := closed(p.left) // before it is looked at
		i = *o.table.current(p)
		if left {
			p = nil
		}
		return i, p, true
	}
	if i, ok := o.table.tomb(c.pid); ok && i.UUID == c.id {
		return i, nil, true
	}
	s, err := o.lifecycle.Stored(c.id)
	if err != nil {
		return Info{}, nil, false
	}
	i = Info{ProcStatus: types.ProcStatus{PID: s.PID, UUID: s.UUID, ParentUUID: s.ParentUUID, Name: s.Name, Intent: s.Intent, Exit: s.Exit}, Result: s.Result, Earlier: s.EarlierPIDs}
	i.Step, i.TokensUsed, i.State = s.Step, s.TokensUsed, s.State
	if s.Suspended || s.Exit == nil {
		i.Suspended, i.Parked = true, types.SuspendFor(s.Why(), orDefault(s.SuspendReason, "suspended"))
	}
	return i, nil, true
}

// running returns the children that have not ended, for people.
func (o *offspring) running(p *Process) []string {
	if p.kids.none() {
		return nil
	}
	return o.stillRunning(p.kids.all())
}

// stillRunning is apart so that what it looks at is not on the stack of a process without children.
func (o *offspring) stillRunning(all []kid) (names []string) {
	for _, c := range all {
		if c.told {
			continue
		}
		if i, _, ok := o.fate(c); ok && (i.Exit == nil || i.Parked.Waits()) {
			name := "PID " + i.PID.String()
			if i.Name != "" {
				name += " (" + i.Name + ")"
			}
			names = append(names, name)
		}
	}
	return names
}

// relative returns the history of a parent or child that is not running.
func (o *offspring) relative(p *Process, pid types.PID) (types.UUID, bool) {
	if c, ok := o.childOf(p, p.kids.all(), pid); ok {
		return c.id, true
	}
	if p.parentUUID != (types.UUID{}) {
		if i, _, ok := o.fate(kid{id: p.parentUUID}); ok && (i.PID == pid || slices.Contains(i.Earlier, pid)) {
			return p.parentUUID, true
		}
	}
	return types.UUID{}, false
}

// children returns which children are meant: those with the PIDs, of any of their runs, or all that the process
// has not heard the end of.
func (o *offspring) awaited(p *Process, pids []types.PID) (out []kid, err error) {
	all := p.kids.all()
	if len(pids) == 0 {
		for _, c := range all {
			if !c.told || p.box.Has(func(m *Message) bool { return m.mail != nil && m.mail.Child == c.id }) {
				out = append(out, c)
			}
		}
		return out, nil
	}
	for _, pid := range pids {
		c, ok := o.childOf(p, all, pid)
		if !ok {
			why := "it is no child of yours; ps lists them"
			if p.origin != (types.UUID{}) {
				why = "it is no child of yours (ps lists them): what was started before you were forked belongs to the process that you are a copy of"
			}
			return nil, &types.SyscallError{Syscall: "Wait", PID: pid, Code: types.ErrPermission, Err: errors.New(why)}
		}
		if !slices.ContainsFunc(out, func(o kid) bool { return o.id == c.id }) {
			out = append(out, c)
		}
	}
	return out, nil
}

// childOf finds a child by the PID of one of its runs.
func (o *offspring) childOf(p *Process, all []kid, pid types.PID) (kid, bool) {
	if i, ok := o.table.known(pid); ok {
		return kid{id: i.UUID, pid: pid}, i.ParentUUID == p.UUID
	}
	for _, c := range all {
		if c.pid == pid {
			return c, true
		}
		if i, _, ok := o.fate(c); ok && (i.PID == pid || slices.Contains(i.Earlier, pid)) {
			return c, true
		}
	}
	return kid{}, false
}
