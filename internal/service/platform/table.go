package platform

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	engine "rnix/internal/platform"
	"rnix/internal/service"
	"rnix/ipc"
	"rnix/types"
)

// table has the sessions by the processes that have them, and what the platform does not know yet of processes that have ended.
type table struct {
	any atomic.Bool // there has been one: most daemons never have any

	mu sync.Mutex
	by map[types.UUID]*session // +checklocks:mu
	// +checklocks:mu
	owed map[types.UUID]ipc.PlatformSession // what is told later
}

// session is the session of a process, with what it was opened with.
type session struct {
	lease lease
	cfg   engine.Config
	claim *claim

	holding sync.Mutex // its process is held, or let go on
}

// put notes the session of a process.
func (t *table) put(id types.UUID, s *session) {
	t.any.Store(true)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.by == nil {
		t.by = map[types.UUID]*session{}
	}
	t.by[id] = s
}

// of returns the session of a process; nil if it has none.
func (t *table) of(id types.UUID) *session {
	if !t.any.Load() {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.by[id]
}

// above returns the sessions for which a process acts, its own included, the nearest first.
func (t *table) above(k Kernel, pid types.PID, id types.UUID) (all []*session) {
	if !t.any.Load() {
		return nil
	}
	for range service.MaxAncestors {
		if s := t.of(id); s != nil {
			all = append(all, s)
		}
		i, err := k.Info(pid)
		if err != nil || i.PPID == 0 {
			break
		}
		if pid, id = i.PPID, i.ParentUUID; id == (types.UUID{}) {
			break
		}
	}
	return all
}

// take returns the session of a process, and forgets it; nil if it has none.
func (t *table) take(id types.UUID) *session {
	if !t.any.Load() {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.by[id]
	delete(t.by, id)
	return s
}

// owe notes what the platform does not know yet of a process that has ended; pending 0 = it knows all.
func (t *table) owe(id types.UUID, session string, pending int, trouble error) {
	t.any.Store(true)
	t.mu.Lock()
	defer t.mu.Unlock()
	if pending == 0 {
		delete(t.owed, id)
		return
	}
	s := ipc.PlatformSession{Session: session, Pending: pending}
	if trouble != nil {
		s.Trouble = trouble.Error()
	}
	if t.owed == nil {
		t.owed = map[types.UUID]ipc.PlatformSession{}
	}
	t.owed[id] = s
}

// owing returns what the platform does not know yet of a process that has ended; nil if it knows all.
func (t *table) owing(id types.UUID) *ipc.PlatformSession {
	if !t.any.Load() {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s, ok := t.owed[id]
	if !ok {
		return nil
	}
	return &s
}

// all returns the processes that have a session, and those of which the platform does not know all yet.
func (t *table) all() (ids []types.UUID) {
	if !t.any.Load() {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.AppendSeq(slices.Collect(maps.Keys(t.by)), maps.Keys(t.owed))
}
