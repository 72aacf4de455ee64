package kernel

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"rnix/types"
	"rnix/xsync"
)

// table owns which processes exist, who is whose child, the groups, and the tombstones. One lock
// guards all relations; a lookup by PID needs none.
type table struct {
	byPID xsync.Numbered[types.PID, Process]
	tombs xsync.Numbered[types.PID, remains]
	life  Lifecycle     // says the numbers
	last  atomic.Uint64 // the last number, if it says none
	limit Limits
	most  int // bytes of texts in tombs; set once, to maxTombWeight

	mu     sync.Mutex
	byUUID map[types.UUID]*Process // +checklocks:mu
	// The children of PID 0.
	root relations // +checklocks:mu
	// By root, of which a descendant has lived.
	families map[types.UUID]*kin   // +checklocks:mu
	groups   map[types.PGID]*group // +checklocks:mu
	// The last number that NewGroup gave away.
	lastGroup types.PGID // +checklocks:mu
	// Tombstones, oldest first.
	order []tomb // +checklocks:mu
	// Bytes of the texts in tombs.
	weight int  // +checklocks:mu
	closed bool // +checklocks:mu
	// How many were ever inserted.
	births uint64 // +checklocks:mu
}

// relations are the links of a process to its relatives. Guarded by table.mu.
type relations struct {
	parent     *Process // nil = PID 0
	first      *Process // of the children, newest first
	next, prev *Process // among the siblings
	children   int
	family     *kin // those that descend from one that a person started; shared by them
	byAgent    bool // an agent is above it, or was
	groups     []types.PGID
	dying      bool        // no more children
	held       atomic.Bool // paused as a tree: what is born in it is paused too; may be read without the lock
	reaped     bool        // no more groups
}

// How many ended processes Wait remembers in memory, and how many bytes of their texts; the disk
// remembers all.
const (
	maxTombs      = 4096
	maxTombWeight = 64 << 20
)

// tomb is a tombstone in the order of burials.
type tomb struct {
	pid    types.PID
	weight int
}

func newTable(life Lifecycle, limit Limits) *table {
	t := &table{life: life, limit: limit, most: maxTombWeight, byUUID: map[types.UUID]*Process{}, families: map[types.UUID]*kin{}, groups: map[types.PGID]*group{}}
	return t
}

func (t *table) get(pid types.PID) (*Process, bool) {
	p := t.byPID.Load(pid)
	return p, p != nil
}

// caller returns the process that calls under a PID; nil = PID 0, or none that is alive.
func (t *table) caller(pid types.PID) *Process { return t.byPID.Load(pid) }

// byID returns the living process of a history.
func (t *table) byID(id types.UUID) (*Process, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p, ok := t.byUUID[id]
	return p, ok
}

// lookup returns a living process or a NOT_FOUND error.
func (t *table) lookup(op string, pid types.PID) (*Process, error) {
	if p := t.byPID.Load(pid); p != nil {
		return p, nil
	}
	return nil, &types.SyscallError{Syscall: op, PID: pid, Code: types.ErrNotFound, Err: ErrNoProcess}
}

// admit reserves a PID for a child of parent (nil = of PID 0) and gives the child its depth. It does
// not make the child visible. again says that the child was born before, and goes on.
func (t *table) admit(parent *Process, again bool) (types.PID, int, error) {
	t.mu.Lock()
	depth, err := t.roomLocked(parent)
	if err == nil && !again {
		err = t.bornLocked(parent)
	}
	t.mu.Unlock()
	if err != nil {
		return 0, 0, err
	}
	pid, err := t.life.NextPID() // may write to the disk, so no lock is held
	if pid == 0 && err == nil {
		pid = types.PID(t.last.Add(1))
	}
	return pid, depth, err
}

// roomLocked reports whether there is room for a child of parent, and how deep it would be. Limits are
// checked here and nowhere else, whichever way a process starts: once before the work of starting, and
// once when it is done, since others start meanwhile.
//
// +checklocks:t.mu
func (t *table) roomLocked(parent *Process) (depth int, err error) {
	switch {
	case t.closed:
		return 0, types.Errorf(types.ErrUnavailable, "Spawn", "", "%w; try again in a moment", errStopping)
	case t.byPID.Len() >= t.limit.Total:
		return 0, refused("%d processes are alive, the limit (limits.total)", t.limit.Total)
	}
	if parent != nil {
		depth = parent.depth + 1
		switch {
		case leavingLocked(parent):
			return 0, types.Errorf(types.ErrCancelled, "Spawn", "", "%w", errLeaving)
		case depth > t.limit.Depth:
			return 0, refused("agents may start agents %d levels deep, the limit (limits.depth)", t.limit.Depth)
		case parent.rel.children >= t.limit.Children:
			return 0, refused("the parent has %d living children, the limit (limits.children)", t.limit.Children)
		case parent.rel.family.living >= t.limit.Family:
			return 0, refused("%d agents live that were started from one, the limit (limits.family)", t.limit.Family)
		}
	}
	return depth, nil
}

// leavingLocked reports whether a process takes no children any more, the lock of its table held.
func leavingLocked(p *Process) bool { return p.rel.dying || p.ctx.Err() != nil }

// leaves forbids new children of a process whose run is over.
func (t *table) leaves(p *Process) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p.rel.dying = true
}

// refused is the error of a limit that is reached.
func refused(format string, args ...any) error {
	return types.Errorf(types.ErrExhausted, "Spawn", "", format, args...)
}

// insert makes a process visible. It fails if there is no room any more, the table was closed, the
// parent began to end, or the UUID is alive already.
func (t *table) insert(p *Process) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, err := t.roomLocked(p.rel.parent); err != nil {
		return err
	}
	if t.byUUID[p.UUID] != nil {
		return types.Errorf(types.ErrConflict, "Spawn", "", "%s is running already as PID %d", p.UUID, t.byUUID[p.UUID].PID)
	}
	t.byUUID[p.UUID] = p
	t.births++
	t.joinFamilyLocked(p)
	p.rel.held.Store(p.rel.parent != nil && p.rel.parent.rel.held.Load())
	t.linkLocked(p, p.rel.parent)
	t.byPID.Store(p.PID, p)
	return nil
}

// +checklocks:t.mu
func (t *table) ofLocked(parent *Process) *relations {
	if parent == nil {
		return &t.root
	}
	return &parent.rel
}

// +checklocks:t.mu
func (t *table) linkLocked(p, parent *Process) {
	r := t.ofLocked(parent)
	p.rel.parent, p.rel.prev, p.rel.next = parent, nil, r.first
	if r.first != nil {
		r.first.rel.prev = p
	}
	r.first = p
	r.children++
}

// +checklocks:t.mu
func (t *table) unlinkLocked(p *Process) {
	r := t.ofLocked(p.rel.parent)
	if p.rel.prev != nil {
		p.rel.prev.rel.next = p.rel.next
	} else {
		r.first = p.rel.next
	}
	if p.rel.next != nil {
		p.rel.next.rel.prev = p.rel.prev
	}
	p.rel.next, p.rel.prev = nil, nil
	r.children--
}

// remove takes a process out of the table and leaves its tombstone, whose PPID it fills in.
func (t *table) remove(p *Process, r *remains) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.ppid = t.ppidLocked(p)
	t.unlinkLocked(p)
	t.leaveFamilyLocked(p)
	delete(t.byUUID, p.UUID)
	t.tombs.Store(p.PID, r)
	t.byPID.Delete(p.PID) // not before its tombstone is there
	w := r.weight()
	t.order = append(t.order, tomb{p.PID, w})
	t.weight += w
	for len(t.order) > maxTombs || t.weight > t.most && len(t.order) > 1 {
		t.weight -= t.order[0].weight
		t.tombs.Delete(t.order[0].pid)
		t.order = t.order[1:]
	}
}

func (t *table) tomb(pid types.PID) (Info, bool) {
	if r := t.tombs.Load(pid); r != nil {
		return *r.info(), true
	}
	return Info{}, false
}

// orphan gives the children of p to PID 0, forbids new ones and new groups, and returns them, and whether p is
// in groups.
func (t *table) orphan(p *Process) (children []*Process, grouped bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p.rel.dying, p.rel.reaped = true, true
	children = make([]*Process, 0, p.rel.children)
	for p.rel.first != nil {
		c := p.rel.first
		t.unlinkLocked(c)
		t.linkLocked(c, nil)
		children = append(children, c)
	}
	return children, len(p.rel.groups) > 0
}

// subtree returns p and all its descendants, parents first.
func (t *table) subtree(p *Process) []*Process { procs, _ := t.signalled(0, nil, p); return procs }

// signalled is subtree for a signal to all of them, and settles what becomes of children that are being
// born: after SIGKILL there are none any more, after SIGPAUSE they are paused, after SIGRESUME they are
// not. It also returns born as it is at that moment. Who asks again gives all that were returned, as roots and as reached, since one that
// has been reaped meanwhile has no children any more; what others have settled for these since stays. The result may lie where roots do.
func (t *table) signalled(sig types.Signal, reached map[*Process]bool, roots ...*Process) (procs []*Process, births uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := roots
	for i := 0; i < len(out); i++ {
		r := &out[i].rel
		gate := sig == types.SIGPAUSE || sig == types.SIGRESUME
		if reached[out[i]] {
			if gate && r.held.Load() != (sig == types.SIGPAUSE) { // somebody has wanted the other since
				continue
			}
		} else {
			r.dying = r.dying || sig == types.SIGKILL
			if gate {
				r.held.Store(sig == types.SIGPAUSE)
			}
		}
		for c := out[i].rel.first; c != nil; c = c.rel.next {
			if !reached[c] {
				out = append(out, c)
			}
		}
	}
	return out, t.births
}

// born returns how many processes there have ever been.
func (t *table) born() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.births
}

// held reports whether a process was born into a tree that is paused.
func (t *table) held(p *Process) bool { return p.rel.held.Load() }

// free ends what SIGPAUSE to a tree means for the children of one process.
func (t *table) free(p *Process) {
	if !p.rel.held.Load() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	p.rel.held.Store(false)
}

// ppid returns the PID of the parent of the moment.
func (t *table) ppid(p *Process) types.PID {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ppidLocked(p)
}

// +checklocks:t.mu
func (t *table) ppidLocked(p *Process) types.PID {
	if p.rel.parent == nil {
		return 0
	}
	return p.rel.parent.PID
}

// current describes a process as it is now.
func (t *table) current(p *Process) *Info { return t.info(p, time.Now()) }

// known describes a process that is alive or ended not long ago.
func (t *table) known(pid types.PID) (Info, bool) {
	if p, ok := t.get(pid); ok {
		return *t.current(p), true
	}
	return t.tomb(pid)
}

// info takes the snapshot of one process.
func (t *table) info(p *Process, now time.Time) *Info {
	t.mu.Lock()
	ppid, children, groups, leaving := t.ppidLocked(p), t.childrenLocked(p), slices.Sorted(slices.Values(p.rel.groups)), leavingLocked(p)
	t.mu.Unlock()
	i := p.info(ppid, children, now)
	i.Groups, i.Leaving = groups, leaving
	return i
}

// +checklocks:t.mu
func (t *table) childrenLocked(p *Process) []types.PID {
	var out []types.PID
	for c := p.rel.first; c != nil; c = c.rel.next {
		out = append(out, c.PID)
	}
	slices.Sort(out)
	return out
}

// all returns the living processes in order of PID.
func (t *table) all() []*Process { return t.byPID.All() }

// close forbids new processes and returns the living ones.
func (t *table) close() []*Process {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	return t.all()
}
