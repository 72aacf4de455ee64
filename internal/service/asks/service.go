// Package asks decides about which calls of processes a person is asked, lists what waits for an answer, and takes the answers: of processes
// that run, and of those on disk.
package asks

import (
	"context"
	"slices"
	"sync"
	"time"

	"rnix/internal/durable"
	"rnix/internal/permit"
	"rnix/internal/profile"
	"rnix/internal/recovery"
	"rnix/internal/redact"
	"rnix/internal/sandbox"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// Service answers what concerns asks. Its fields are set before it is registered.
type Service struct {
	Kernel  Kernel
	Stored  Stored
	Index   Index
	Finder  Finder
	Numbers func() (*durable.Counter, error) // opened with the first ask
	Secrets *redact.Set

	mu sync.Mutex
	// What histories have granted, of those that were asked for; it is read once.
	grants map[types.UUID][]permit.Grant // +checklocks:mu
	writes uint64                        // +checklocks:mu
	count  *durable.Counter              // +checklocks:mu
}

// Kernel has what is asked of processes that run. *kernel.KernelImpl is one.
type Kernel interface {
	Asks() []kernel.Ask
	// AsksShown waits until the processes that were resumed show again what persons were asked about them, or until ctx ends.
	AsksShown(ctx context.Context)
	Answer(r step.Answered) (kernel.Ask, error)
	Grant(id types.UUID, g *permit.Grant) error
	RevokeGrant(id types.UUID, number uint64) error
}

// Stored are the histories that do not run.
type Stored interface {
	Answer(ctx context.Context, id types.UUID, r step.Answered) error
	Mark(ctx context.Context, id types.UUID, make func(pid types.PID) (step.Marker, error)) error
	// Read returns what its record says of a process, running or not.
	Read(ctx context.Context, id types.UUID) (*recovery.State, error)
	// Past returns what it was asked about and got an answer for, in order of the answers, and what was granted in it.
	Past(ctx context.Context, id types.UUID) (asks []step.PastAsk, grants map[uint64]step.PastGrant, err error)
}

// Index lists the histories. Each store.Index is one.
type Index interface {
	Get(id types.UUID) (step.ProcInfo, bool)
	Open() []step.ProcInfo
	List() []step.ProcInfo
}

// Finder knows who asks, and what a name means.
type Finder interface {
	Settled(ctx context.Context) error
	AgentOf(peer *ipc.Peer) (owner types.PID, inside bool)
	Resolve(text string) (service.Target, error)
}

// Register registers what the service answers.
func (d *Service) Register(on *service.Wire) {
	service.Handle(on, ipc.ListAsks, d.list)
	service.Handle(on, ipc.AnswerAsk, d.answer)
	service.Handle(on, ipc.RevokeGrant, d.revoke)
}

var _ kernel.Permissions = (*Service)(nil)

// NextAsk implements kernel.Permissions.
func (d *Service) NextAsk() (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.count == nil {
		c, err := d.Numbers()
		if err != nil {
			return 0, err
		}
		d.count = c
	}
	return d.count.Next()
}

// Judge implements kernel.Permissions: the rules with which the process was started decide, and what was granted since.
func (d *Service) Judge(p *kernel.Process, c *permit.Call) permit.Verdict {
	own, ok := profile.Of(p)
	if !ok || own.Permissions.IsZero() && !c.Question() {
		return permit.Verdict{Decision: permit.Allow}
	}
	c.Real = placeOf
	v := own.Permissions.Judge(c)
	if v.Decision == permit.Ask && !c.Question() && d.granted(p.UUID, c) {
		return permit.Verdict{Decision: permit.Allow, Rule: v.Rule, Granted: true}
	}
	return v
}

// placeOf returns where a file is, or would be, when links are followed; "" if that cannot be said. What is changed after that is not seen.
func placeOf(file string) string {
	to, _, err := sandbox.Follow(sandbox.Disk{}, file)
	if err != nil {
		return ""
	}
	return to
}

// granted reports whether an answer, about the process or to a family above it, covers a call.
func (d *Service) granted(id types.UUID, c *permit.Call) bool {
	now := time.Now()
	for i, up := range d.line(id) {
		for _, g := range d.of(up) {
			if (i == 0 || g.Scope == permit.ForFamily) && g.Covers(c, now) {
				return true
			}
		}
	}
	return false
}

// line returns a process and those above it, itself first.
func (d *Service) line(id types.UUID) (line []types.UUID) {
	for id != (types.UUID{}) && len(line) < service.MaxAncestors && !slices.Contains(line, id) {
		line = append(line, id)
		info, _ := d.Index.Get(id)
		id = info.ParentUUID
	}
	return line
}

// top returns the uppermost process above one, or itself, that can be gone on with: where what is granted to a family is written down.
func (d *Service) top(id types.UUID) types.UUID {
	top := id
	for _, up := range d.line(id) {
		if info, ok := d.Index.Get(up); !ok || info.Over() {
			break
		}
		top = up
	}
	return top
}

// of returns what a history has granted. One that cannot be read grants nothing.
func (d *Service) of(id types.UUID) []permit.Grant {
	d.mu.Lock()
	got, ok := d.grants[id]
	before := d.writes
	d.mu.Unlock()
	if ok {
		return got
	}
	s, err := d.Stored.Read(context.Background(), id)
	if err != nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.writes != before { // what was read may be older than what was written meanwhile
		return s.Grants
	}
	if d.grants == nil {
		d.grants = map[types.UUID][]permit.Grant{}
	}
	d.grants[id] = s.Grants
	return s.Grants
}
