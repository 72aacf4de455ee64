package step

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"rnix/internal/durable"
	"rnix/types"
)

// Names below the data directory. Part of the on-disk format.
const (
	StepsFile      = "steps.jsonl"
	EventsFile     = "events.jsonl"
	CheckpointFile = "checkpoint.json"
	InfoFile       = "proc-info.json"
	MetaFile       = "process-meta.json"
	ProfileFile    = "ctx-profile.json"
	IndexFile      = "index.jsonl"

	previousCheckpoint = "checkpoint.prev.json"

	stepsDir  = "steps"
	lockFile  = "lock"
	epochFile = "epoch"
	pidFile   = "pid"
	askFile   = "ask"
)

// Dir returns the directory of a history.
func Dir(dataDir string, id types.UUID) string { return filepath.Join(dataDir, stepsDir, id.String()) }

// Local is the Journal of one machine: files below a data directory, which belongs to one process
// at a time. An epoch is the number of this opening of the data directory and a count within it, so
// that taking a history costs no write.
//
// Locks: history.mu > Local.mu. history.mu is held while lines are written and
// synced: it is the commit point of that one history, and only its owner ever waits for it.
type Local struct {
	fs         durable.FS
	dir        string
	durability Durability
	Claim      *Claim // the right by which it writes
	generation uint64
	index      *Index
	Mended     []string // what was damaged at the start and is mended; complete after PIDs

	mu    sync.Mutex
	owned map[types.UUID]*history // +checklocks:mu
	// +checklocks:mu
	epochs uint32 // handed out so far
	closed bool   // +checklocks:mu
	// infos has the histories whose proc-info.json may be older than the index, now or after power loss.
	infos map[types.UUID]infoState // +checklocks:mu
}

// history is a history that has an owner.
type history struct {
	epoch uint64
	owner string
	size  atomic.Int64 // bytes committed; what a reader may look at

	mu sync.Mutex
	// +checklocks:mu
	log  *durable.Log // nil until opened and after Release
	next uint64       // +checklocks:mu
}

// Durability says what Commit waits for.
type Durability int

// The values.
const (
	Synced   Durability = iota // the disk: survives power loss
	Unsynced                   // the system: survives kill -9, not power loss; for tests and benchmarks
)

// OpenLocal opens the data directory, and makes it if it is missing. If another process has it, the
// error has code CONFLICT and names that process.
func OpenLocal(fsys durable.FS, dataDir string, d Durability) (*Local, error) {
	claim, err := TakeClaim(fsys, dataDir)
	if err != nil {
		return nil, err
	}
	l, err := OpenClaimed(claim, d)
	if err != nil {
		claim.Close()
	}
	return l, err
}

// OpenClaimed opens a claimed data directory. Close gives the claim back; an error leaves it to the caller.
func OpenClaimed(c *Claim, d Durability) (*Local, error) {
	l := &Local{fs: c.fs, dir: c.dir, durability: d, Claim: c, owned: map[types.UUID]*history{}, infos: map[types.UUID]infoState{}}
	if err := l.start(); err != nil {
		return nil, err
	}
	return l, nil
}

func (l *Local) start() error {
	if err := errors.Join(durable.RemoveTemp(l.fs, l.dir), durable.RemoveTemp(l.fs, filepath.Join(l.dir, stepsDir))); err != nil && !durable.ReadOnly(err) {
		return err
	}
	// If it is damaged: nobody opens a data directory more than once a second, all in all.
	generations, mended, err := durable.MendCounter(l.fs, filepath.Join(l.dir, epochFile), 1, uint64(time.Now().Unix()))
	if err != nil {
		return err
	}
	note(l, mended)
	if l.generation, err = generations.Next(); durable.Unwritable(err) { // what is there can be read all the same
		l.generation, err = uint64(time.Now().Unix()), nil
	}
	if err != nil {
		return err
	}
	if l.index, err = OpenIndex(l.fs, l.dir); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range l.index.recent {
		l.infos[id] = unsynced
	}
	return nil
}

// PIDs opens the counter of PIDs. It starts above every PID that a history has; if the counter is lost or damaged,
// also above those of histories that are archived or deleted.
func (l *Local) PIDs() (*durable.Counter, error) {
	highest := types.PID(0)
	for _, info := range l.index.List() {
		if info.PID < durable.MaxCounter { // else the file is damaged
			highest = max(highest, info.PID)
		}
	}
	path := filepath.Join(l.dir, pidFile)
	if _, err := durable.ReadCounter(l.fs, path); types.CodeOf(err) == types.ErrNotFound || errors.Is(err, durable.ErrNotCounter) {
		gone, err := l.gonePID()
		if err != nil {
			return nil, err
		}
		highest = max(highest, gone)
	}
	c, mended, err := durable.MendCounter(l.fs, path, 64, uint64(highest)+1)
	note(l, mended)
	return c, err
}

// unlessUnwritable passes over a disk that is full or read-only: what is there can be read, and what is written later tries again.
func unlessUnwritable(err error) error {
	if durable.Unwritable(err) {
		return nil
	}
	return err
}

// note keeps what was mended, if something was.
func note(l *Local, what string) {
	if what != "" {
		l.Mended = append(l.Mended, what)
	}
}

// Index returns the index of the histories.
func (l *Local) Index() *Index { return l.index }

// Dir returns the directory of a history.
func (l *Local) Dir(id types.UUID) string { return Dir(l.dir, id) }

// FS returns the file system that the journal is on.
func (l *Local) FS() durable.FS { return l.fs }

// Acquire implements Journal.
func (l *Local) Acquire(ctx context.Context, id types.UUID, owner string) (Lease, error) {
	return acquire(ctx, l, id, owner, durable.OpenBatches)
}

// Open implements Journal.
func (l *Local) Open(ctx context.Context, id types.UUID, owner string) (Lease, error) {
	return acquire(ctx, l, id, owner, durable.ReopenBatches)
}

// openLog opens the log of a history.
type openLog func(durable.FS, string, durable.Check, func([]byte) bool) (*durable.Log, *durable.Damage, error)

func acquire(ctx context.Context, l *Local, id types.UUID, owner string, how openLog) (Lease, error) {
	if err := ctxErr(ctx, "Acquire", id); err != nil {
		return Lease{}, err
	}
	if err := l.index.begin(); err != nil {
		return Lease{}, err
	}
	if err := l.Claim.Check(); err != nil {
		return Lease{}, err
	}
	h := &history{owner: owner}
	h.mu.Lock() // before anybody can see it: readers wait until it is open
	defer h.mu.Unlock()
	if err := l.enter(id, h); err != nil {
		return Lease{}, err
	}
	damage, err := openHistory(l, h, id, how)
	if err != nil {
		l.disown(id, h)
		return Lease{}, err
	}
	lease := Lease{Epoch: h.epoch, Next: h.next}
	if damage != nil {
		lease.Damage = damage.Error()
	}
	return lease, nil
}

// enter enters h as the owner and gives it an epoch.
func (l *Local) enter(id types.UUID, h *history) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return types.Errorf(types.ErrUnavailable, "Acquire", id.String(), "the journal is closed")
	}
	if other := l.owned[id]; other != nil {
		return types.Errorf(types.ErrConflict, "Acquire", id.String(), "something else writes to this history at this moment (for %s)", other.owner)
	}
	l.epochs++
	h.epoch = l.generation<<32 | uint64(l.epochs)
	l.owned[id] = h
	return nil
}

func (l *Local) disown(id types.UUID, h *history) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owned[id] == h {
		delete(l.owned, id)
	}
}

// openHistory opens the log of a history.
//
// +checklocks:h.mu
func openHistory(l *Local, h *history, id types.UUID, how openLog) (*durable.Damage, error) {
	dir := l.Dir(id)
	next, stray := uint64(1), straysIn(l.fs, dir)
	log, damage, err := how(l.fs, filepath.Join(dir, StepsFile), inOrder(func(at durable.Line) error { next++; stray.look(at.Data); return nil }), beginsCommit)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(durable.RemoveTemp(l.fs, dir), cleanInputs(l.fs, dir), stray.remove(l.fs, damage != nil), dropAhead(l.fs, dir, next)); err != nil {
		log.Close()
		return nil, err
	}
	h.log, h.next = log, next
	h.size.Store(log.Size())
	return damage, nil
}

// owner returns the history if epoch is that of its owner.
func (l *Local) owner(op string, id types.UUID, epoch uint64) (*history, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h := l.owned[id]; h != nil && h.epoch == epoch {
		return h, nil
	}
	return nil, types.Errorf(types.ErrConflict, op, id.String(), "epoch %d: %w", epoch, ErrFenced)
}

// Renew implements Journal. A lease of this journal lasts as long as its process.
func (l *Local) Renew(ctx context.Context, id types.UUID, epoch uint64) error {
	if err := ctxErr(ctx, "Renew", id); err != nil {
		return err
	}
	_, err := l.owner("Renew", id, epoch)
	return err
}

// Release implements Journal. It works with a context that has ended.
func (l *Local) Release(_ context.Context, id types.UUID, epoch uint64) error {
	h, err := l.owner("Release", id, epoch)
	if err != nil {
		return err
	}
	h.mu.Lock()
	log := h.log
	h.log = nil
	h.mu.Unlock()
	l.disown(id, h)
	if log == nil {
		return nil
	}
	return log.Close()
}

// Commit implements Journal. Once it has begun to write, the end of ctx does not stop it.
func (l *Local) Commit(ctx context.Context, id types.UUID, epoch, seq uint64, lines []byte) error {
	if err := ctxErr(ctx, "Commit", id); err != nil {
		return err
	}
	h, err := l.owner("Commit", id, epoch)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.log == nil {
		return types.Errorf(types.ErrConflict, "Commit", id.String(), "epoch %d: %w", epoch, ErrFenced)
	}
	n, err := Follow(id, lines, seq, h.next)
	if err != nil {
		return err
	}
	if err := l.Claim.CheckOpen(); err != nil {
		return err
	}
	if err := h.log.Append(lines); err != nil {
		return err
	}
	if l.durability == Synced {
		if err := h.log.Sync(); err != nil {
			return err
		}
	}
	h.next += n
	h.size.Store(h.log.Size())
	return nil
}

// List implements Journal.
func (l *Local) List(ctx context.Context) ([]ProcInfo, error) {
	if err := ctxErr(ctx, "List", types.UUID{}); err != nil {
		return nil, err
	}
	return l.index.List(), nil
}

// Discard removes a history that nobody owns, all of it or, after an error or a crash, perhaps nothing.
// A missing one is no error.
func (l *Local) Discard(id types.UUID) error {
	l.mu.Lock()
	other := l.owned[id]
	l.mu.Unlock()
	if other != nil {
		return types.Errorf(types.ErrConflict, "Discard", id.String(), "something else writes to this history at this moment (for %s)", other.owner)
	}
	if err := durable.RemoveDir(l.fs, l.Dir(id)); err != nil {
		return err
	}
	return l.index.Delete(id)
}

// Close closes all histories and gives the data directory back. What was committed stays.
func (l *Local) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	owned := l.owned
	l.owned = map[types.UUID]*history{}
	l.mu.Unlock()
	var err error
	for _, h := range owned {
		h.mu.Lock()
		if h.log != nil {
			err = errors.Join(err, h.log.Close())
			h.log = nil
		}
		h.mu.Unlock()
	}
	serr := l.Claim.Check() // what is elsewhere now is as after kill -9
	if serr == nil {
		serr = l.syncInfos()
	}
	if serr != nil {
		return errors.Join(err, serr, l.index.abandon(), l.Claim.Close())
	}
	return errors.Join(err, l.index.Close(), l.Claim.Close())
}
