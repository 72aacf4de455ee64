package kernel

import (
	"log/slog"
	"time"

	"rnix/internal/event"
	"rnix/internal/step"
	"rnix/types"
)

// saver keeps proc-info.json, the small file of a history, as its process is, and says what could not be written.
type saver struct {
	table  *table
	store  Store
	keeps  bool // the store keeps histories
	events *event.Log
	log    *slog.Logger
}

// storageError says that a record could not be written.
func (s *saver) storageError(p *Process, err error) {
	s.log.Error("record", "pid", p.PID, "uuid", p.UUID, "err", err)
	s.events.Append(event.Event{Kind: event.StorageError, PID: p.PID, UUID: p.UUID, Err: err.Error()})
}

// save writes proc-info.json. The journal can rebuild it, so a failure is only reported.
func (s *saver) save(p *Process) {
	if !s.keeps {
		return
	}
	p.small.mu.Lock()
	defer p.small.mu.Unlock()
	s.saveLocked(p)
}

// mark writes what another than the process itself has changed: into its record by write, in memory by change, and into the small file, as one. The
// end of the process comes before all of it, and then write fails because the record is closed, or after it: a write of the small file that is late
// would meet the next run of the history.
func (s *saver) mark(p *Process, write func() error, change func()) error {
	p.small.mu.Lock()
	defer p.small.mu.Unlock()
	if err := write(); err != nil {
		return err
	}
	change()
	if s.keeps {
		s.saveLocked(p)
	}
	return nil
}

// markPause writes a pause or its end into the record and the small file, as the gate stands when its turn has come, and returns which. What the record says
// already is not written again.
func (s *saver) markPause(p *Process) (shut bool, err error) {
	p.small.mu.Lock()
	defer p.small.mu.Unlock()
	if _, shut = p.gate.Since(); p.small.unsure || p.small.paused != shut {
		m := step.Marker{Name: step.MarkerResume, PID: p.PID}
		if shut {
			m.Name = step.MarkerPause
		}
		err = mark(p, m)
		if p.small.paused, p.small.unsure = shut, err != nil; err != nil {
			return shut, err
		}
	}
	s.saveLocked(p)
	return shut, nil
}

// marked reports whether the record says of a pause what the gate does, once those have written who are at it.
func (s *saver) marked(p *Process) bool {
	p.small.mu.Lock()
	defer p.small.mu.Unlock()
	_, shut := p.gate.Since()
	return !p.small.unsure && p.small.paused == shut
}

// saveLocked is save with the small file held.
//
// +checklocks:p.small.mu
func (s *saver) saveLocked(p *Process) {
	i := s.table.current(p)
	if p.small.last {
		i.State = types.StateDead
	}
	s.saveInfo(p, i)
}

// saveInfo is apart so that what it encodes is not on the stack of a process that has nothing to save.
//
//go:noinline
func (s *saver) saveInfo(p *Process, i *Info) {
	if err := s.store.SaveInfo(p.procInfo(i)); err != nil {
		s.storageError(p, err)
	}
}

// saveDead writes the small file of a process as it is when the reap is over.
func (s *saver) saveDead(p *Process) {
	if !s.keeps {
		return
	}
	p.small.mu.Lock()
	defer p.small.mu.Unlock()
	p.small.last = true
	s.saveLocked(p)
}

// release gives the record back when its process's small files are written: from here on the history may have another
// owner, who takes what is left of a write for something that a crash has left. told is an error that is known already.
func (s *saver) release(p *Process, told error) {
	p.small.mu.Lock() // else what mark adds could be written by the close, and be told to have failed
	err := p.rec.Close()
	p.small.mu.Unlock()
	if err != nil && told == nil {
		s.storageError(p, err)
	}
}

// procInfo is the form of a snapshot on disk. It holds no environment and no secrets.
func (p *Process) procInfo(i *Info) step.ProcInfo {
	s := step.ProcInfo{
		V: step.FormatVersion, ProcStatus: i.ProcStatus, State: i.State, Suspended: i.Suspended, PausedTotal: i.PausedFor,
		Spending: i.Spending, FailedTaken: i.Taken, FailedCounted: true, AllowedDevices: i.Rights.Allowed, DeniedDevices: i.Rights.Denied, ReadRoots: i.ReadRoots, MCPMounts: i.MCPMounts, MCPDown: i.MCPDown, Result: i.Result, Schema: i.Schema,
	}
	s.UpdatedAt, s.PausedAt = time.Now(), time.Time{}
	s.OriginUUID, s.OriginStep, s.Runs, s.ActiveTotal, s.EarlierPIDs = i.Origin, i.OriginStep, i.Runs, i.Elapsed, i.Earlier
	switch {
	case i.Suspended && i.Paused: // whatever else it waits for
		s.Suspension, s.PausedAt = types.Suspend(types.SuspendPaused), i.PausedAt
	case i.Parked.Waits():
		s.Suspension, s.WakeAt, s.Purse = i.Parked, i.Wake, i.Purse
	case i.Suspended:
		s.Suspension = types.Suspend(types.SuspendStopped)
	}
	if i.Suspended {
		s.Asks = p.asks.list()
	}
	if i.State == types.StateDead && !i.Suspended {
		s.DeadAt = i.EndedAt
	}
	return s
}
