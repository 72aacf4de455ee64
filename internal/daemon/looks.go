package daemon

import (
	"fmt"
	"sync"
	"time"

	"rnix/internal/proc"
	"rnix/internal/procview"
	"rnix/internal/service/groups"
	"rnix/internal/service/platform"
	"rnix/internal/service/watch"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// looks says how processes look, with what others than the kernel know of them.
type looks struct {
	groups    *groups.Names
	platforms *platform.Service
	procs     *proc.Manager
	memory    memory
}

// Living is a process that the kernel has.
func (l *looks) Living(i *kernel.Info) ipc.Proc {
	p := procview.Living(i)
	p.Groups, p.Session = l.groups.Labels(i.Groups), l.platforms.State(i.UUID)
	if all := l.procs.Children(i.PID); len(all) > 0 {
		rss := l.memory.of(l.procs)
		for _, c := range all {
			p.Children = append(p.Children, ipc.OSChild{PID: c.PID, Kind: string(c.Kind), Command: c.Command, Started: c.StartedAt, RSSBytes: rss[c.PID]})
		}
	}
	return p
}

// Stored is a process that is only on disk.
func (l *looks) Stored(i *step.ProcInfo) ipc.Proc {
	p := procview.Stored(i)
	p.Session = l.platforms.Owing(i.UUID)
	return p
}

// Children returns for each process that has OS children a text that changes with them and with the memory that they take.
func (l *looks) Children() map[types.PID]string {
	all := l.procs.All()
	var rss map[int]int64
	if len(all) > 0 {
		rss = l.memory.of(l.procs)
	}
	out := map[types.PID]string{}
	for _, c := range all {
		out[c.Owner] += fmt.Sprintf("%d %d,", c.PID, rss[c.PID])
	}
	return out
}

// Sessions returns the processes of which a platform knows, or has still to be told something.
func (l *looks) Sessions() []types.UUID { return l.platforms.Sessions() }

// memory is the resident memory of OS children, by pid, as it was not long ago.
type memory struct {
	mu sync.Mutex
	at time.Time // +checklocks:mu
	// +checklocks:mu
	byID map[int]int64 // replaced, never changed
}

// of returns how much each child has. The map is not changed any more.
func (m *memory) of(procs *proc.Manager) map[int]int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := time.Now(); now.Sub(m.at) >= watch.MemoryAge {
		m.byID, m.at = proc.Resident(procs), now
	}
	return m.byID
}
