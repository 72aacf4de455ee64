package kernel

import (
	"sync"

	"rnix/internal/event"
	"rnix/internal/step"
	"rnix/types"
)

// smallFile orders what is written of a process outside its records, its names and its pauses: the last that is written is the newest.
type smallFile struct {
	mu   sync.Mutex
	last bool // +checklocks:mu
	// What its record says: it is paused.
	paused bool // +checklocks:mu
	// That could not be written, and the record may say this or that.
	unsure bool // +checklocks:mu
}

// Rename gives a process that runs another name, durably, and returns the one that it had; an empty name takes it away. One whose record is
// closed already, or that is not there any more, is NOT_FOUND, and Passing: its history on disk can be renamed.
func (k *KernelImpl) Rename(pid types.PID, name string) (was string, err error) {
	if err := CheckName(name); err != nil {
		return "", err
	}
	p, err := k.table.lookup("Rename", pid)
	if err != nil {
		return "", err
	}
	p.small.mu.Lock()
	defer p.small.mu.Unlock()
	if was = p.Name(); was != name || p.State() >= types.StateZombie {
		err = k.renameLocked(p, name, was)
	}
	return was, err
}

// renameLocked writes the name of a process into its record, and then shows it.
//
// +checklocks:p.small.mu
func (k *KernelImpl) renameLocked(p *Process, name, was string) error {
	if p.State() >= types.StateZombie {
		return passed("Rename", p.PID)
	}
	if err := mark(p, step.Marker{Name: step.MarkerName, PID: p.PID, Text: name}); err != nil {
		if p.State() >= types.StateZombie { // its record was closed meanwhile
			return passed("Rename", p.PID)
		}
		return err
	}
	k.calledLocked(p, name, was)
	return nil
}

// passed is the error about a process whose record is closed.
func passed(syscall string, pid types.PID) error {
	return &types.SyscallError{Syscall: syscall, PID: pid, Code: types.ErrNotFound, Err: ErrNoProcess}
}

// calledLocked shows the name that the record of a process has. What ends meanwhile writes its small file after this.
//
// +checklocks:p.small.mu
func (k *KernelImpl) calledLocked(p *Process, name, was string) {
	p.call(name)
	if k.keeps {
		k.saves.saveLocked(p)
	}
	k.events.Append(event.Event{Kind: event.Renamed, PID: p.PID, UUID: p.UUID, Name: name, Text: was})
	k.doing.touch(p)
}

// Renamed is what Rename does in memory, for a history that does not run and that the caller keeps from running meanwhile: the kernel may
// remember the process. It reports whether it has written the small file, which it does of one that nobody has reaped yet.
func (k *KernelImpl) Renamed(pid types.PID, id types.UUID, name string) (saved bool) {
	if p := k.table.byPID.Load(pid); p != nil && p.UUID == id {
		p.small.mu.Lock()
		defer p.small.mu.Unlock()
		k.calledLocked(p, name, p.Name())
		return k.keeps
	}
	was := ""
	if r := k.table.tombs.Load(pid); r != nil && r.uuid == id {
		was = r.Name()
		r.call(name)
	}
	k.events.Append(event.Event{Kind: event.Renamed, PID: pid, UUID: id, Name: name, Text: was})
	k.cfg.Lifecycle.Touched(id)
	return false
}
