package kernel

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/event"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/types"
)

// kid is a child of an agent that it does not wait for where it was started.
type kid struct {
	id   types.UUID
	pid  types.PID // of the run that was seen last; 0 = none was
	told bool      // the parent has got word of its end
}

// kids are the children of an agent, and what its calls that concern them have found. Its lock is a leaf.
type kids struct {
	mu sync.Mutex
	// In the order of their start.
	list []kid // +checklocks:mu
	// Children that a call waits for, which need not be told of.
	waiting map[types.UUID]int // +checklocks:mu
	// Messages that a call has taken, by its id, until it is answered.
	taken map[string][]uint64 // +checklocks:mu
	// The model has been told that some still run.
	warned bool // +checklocks:mu
}

// add notes a child, once, and the PID that it has, if that is known.
func (s *kids) add(id types.UUID, pid types.PID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.list {
		if s.list[i].id == id {
			if pid != 0 {
				s.list[i].pid = pid
			}
			return
		}
	}
	s.list = append(s.list, kid{id: id, pid: pid})
}

// forget takes a child back that was not started.
func (s *kids) forget(id types.UUID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = slices.DeleteFunc(s.list, func(k kid) bool { return k.id == id })
	delete(s.waiting, id)
}

// await says that a call waits for a child, and awaited that it does not any more.
func (s *kids) await(id types.UUID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting == nil {
		s.waiting = map[types.UUID]int{}
	}
	s.waiting[id] = 1
}

func (s *kids) awaited(id types.UUID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, id)
}

// needs reports whether word of the end of a child is needed: no call waits for it, and the agent has started it
// in the background, or it has failed by itself.
func (s *kids) needs(id types.UUID, failed bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting[id] == 0 && (failed || slices.ContainsFunc(s.list, func(k kid) bool { return k.id == id }))
}

// heard notes that word of a run of a child is in the mailbox, and whether the child has ended with it.
func (s *kids) heard(id types.UUID, pid types.PID, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.list {
		if s.list[i].id == id {
			s.list[i].pid, s.list[i].told = pid, ended
		}
	}
}

// all returns the children.
func (s *kids) all() []kid {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list)
}

// none reports whether there are no children.
func (s *kids) none() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.list) == 0
}

// took notes which messages a call has taken.
func (s *kids) took(call string, seqs []uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken == nil {
		s.taken = map[string][]uint64{}
	}
	s.taken[call] = append(s.taken[call], seqs...)
}

// answered returns the messages that a call has taken, whose answer is being recorded.
func (s *kids) answered(call string) []uint64 {
	if call == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	seqs := s.taken[call]
	delete(s.taken, call)
	return seqs
}

// warn reports, once, whether the model is to be told that children still run.
func (s *kids) warn() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := !s.warned
	s.warned = true
	return first
}

// load notes the children of earlier runs.
func (s *kids) load(children []recovery.Child) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range children {
		s.list = append(s.list, kid{id: c.UUID, told: c.Ended})
	}
}

// noticeMax is how much of a child's result its parent is told without asking, in bytes.
const noticeMax = 8 << 10

// notice is the message about the end of a run of a child. failed is empty if it has completed or is
// suspended.
func notice(i *Info) (m step.Mail, failed string) {
	m = step.Mail{Kind: step.MailChild, From: i.PID, FromUUID: i.UUID, Name: i.Name, Time: time.Now(), Key: fmt.Sprintf("ended:%s:%d", i.UUID, i.PID)}
	if i.Exit == nil || i.Parked.Waits() {
		m.Text = fmt.Sprintf("Your child PID %d is suspended until a person resumes it: %s", i.PID, orDefault(i.Parked.SuspendReason, "stopped"))
		return m, ""
	}
	m.Child = i.UUID
	m.Text = fmt.Sprintf("Your child PID %d has completed.", i.PID)
	if i.Exit.Code != types.ExitOK {
		failed = fmt.Sprintf("PID %d ended with %s", i.PID, i.Exit)
		m.Text, m.Failed = fmt.Sprintf("Your child PID %d has failed: it ended with exit code %s.", i.PID, i.Exit), failed
	}
	if i.Result != "" {
		m.Text += "\nIts result:\n" + rnixctx.Elide(i.Result, noticeMax)
	}
	return m, failed
}

// tellParent tells the agent that has started a process of the end of its run, in the process's own goroutine. A
// parent that is being stopped is told when it goes on.
func (k *KernelImpl) tellParent(p *Process) {
	if p.parentUUID == (types.UUID{}) || k.stopped.Load() {
		return
	}
	parent, ok := k.table.byID(p.parentUUID)
	if ok && (parent.opts.Body != nil || !parent.kids.needs(p.UUID, failed(p))) {
		return // it sees for itself
	}
	if i := k.info(p); i.Exit != nil { // else it goes on
		p.told = k.tell(p.parentUUID, i)
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
func (k *KernelImpl) tell(parent types.UUID, i *Info) bool {
	m, failed := notice(i)
	var err error
	if p, ok := k.table.byID(parent); ok {
		if p.opts.Body != nil || !p.kids.needs(i.UUID, failed != "" && i.Exit.Code != types.ExitCancelled) || p.post.has(m.Key) {
			return false
		}
		if failed != "" {
			p.mu.Lock()
			p.failedChildren = append(p.failedChildren, failed)
			p.mu.Unlock()
		}
		if _, err = k.mail.post(context.Background(), p, m, false); types.CodeOf(err) != types.ErrBrokenPipe {
			if err == nil {
				p.kids.heard(i.UUID, i.PID, m.Child == i.UUID)
			}
			k.untold(p.PID, parent, err) // wait finds the child all the same
			return err == nil
		}
	}
	if info, serr := k.cfg.Lifecycle.Stored(parent); serr == nil && info.Exit != nil && !info.Suspended {
		return false // it has ended, as Unix has it: nobody is left to be told
	}
	_, err = k.cfg.Lifecycle.Post(context.Background(), parent, m)
	if code := types.CodeOf(err); code != types.ErrBrokenPipe && code != types.ErrNotFound && code != types.ErrInvalid {
		k.untold(0, parent, err)
	}
	return false
}

// untold says that a parent could not be told of the end of a child.
func (k *KernelImpl) untold(pid types.PID, id types.UUID, err error) {
	if err == nil {
		return
	}
	k.log.Warn("a parent could not be told of the end of a child", "pid", pid, "uuid", id, "err", err)
	k.events.Append(event.Event{Kind: event.LogLine, PID: pid, UUID: id, Name: "warning", Text: "could not be told of the end of a child: " + err.Error()})
}

// missed tells an agent of the end of a child that has ended while nobody could tell.
func (k *KernelImpl) missed(p *Process, c kid) {
	if i, _, ok := k.fate(c); ok && i.Exit != nil && !i.Parked.Waits() {
		k.tell(p.UUID, &i)
	}
}

// catchUp tells a process that goes on of the ends of its children that it has not heard of.
func (k *KernelImpl) catchUp(p *Process) {
	if p.kids.none() {
		return
	}
	for _, c := range p.kids.all() {
		if !c.told {
			k.missed(p, c)
		}
	}
}

// fate returns what is known of a child, running, ended or suspended, and its process if that has not ended; false
// if there is no such child.
func (k *KernelImpl) fate(c kid) (i Info, p *Process, ok bool) {
	if p, ok := k.table.byID(c.id); ok {
		left := closed(p.left) // before it is looked at
		i = *k.info(p)
		if left {
			p = nil
		}
		return i, p, true
	}
	if i, ok := k.table.tomb(c.pid); ok && i.UUID == c.id {
		return i, nil, true
	}
	s, err := k.cfg.Lifecycle.Stored(c.id)
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
func (k *KernelImpl) running(p *Process) []string {
	if p.kids.none() {
		return nil
	}
	return k.stillRunning(p.kids.all())
}

// stillRunning is apart so that what it looks at is not on the stack of a process without children.
func (k *KernelImpl) stillRunning(all []kid) (names []string) {
	for _, c := range all {
		if c.told {
			continue
		}
		if i, _, ok := k.fate(c); ok && (i.Exit == nil || i.Parked.Waits()) {
			name := "PID " + i.PID.String()
			if i.Name != "" {
				name += " (" + i.Name + ")"
			}
			names = append(names, name)
		}
	}
	return names
}

// leaving says at the end of a process which children go on without it.
func (k *KernelImpl) leaving(p *Process, result string) string {
	left := k.running(p)
	if len(left) == 0 {
		return result
	}
	return strings.TrimSpace(result + "\n\n[child processes that still run: " + strings.Join(left, ", ") + "]")
}
