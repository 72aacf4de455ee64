package kernel

import (
	"fmt"
	"slices"
	"sync"
	"time"

	rnixctx "rnix/context"
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
