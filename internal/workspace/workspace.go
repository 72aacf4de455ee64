// Package workspace keeps the files of agents' work: a snapshot per step, the way back to each, what
// is different between two, directories made from one, and the rescue of what is about to be
// overwritten or removed.
//
// It owns everything below <data>/snapshots. It knows UUIDs and step numbers, and neither processes nor why somebody wants a file back.
//
// In a git work tree a snapshot is a tree of git's in an object store of our own (store.go), one for each repository, with all that it holds; it is
// made with a private git directory (shadow.go) that shares nothing with the user's, so that the
// user's index, HEAD, branches, stash, locks, references and objects are not touched, and of the user's configuration only
// what is to be ignored is obeyed. What was committed when the first snapshot was made is copied, packed as it is.
// Elsewhere it is a manifest over content-addressed files (copy.go, blob.go). Both give back the same
// bytes that they were given: no filter, no line-end conversion, no program but git itself is run.
//
// Locks: a history's turn, which is held over disk and git because one history takes one snapshot at a
// time > turns.sweeping, which is held over disk because a sweep must not see half a snapshot >
// the gate of a repository's work trees (worktree.Enter) > desks.dropping, and turns.mu, a leaf.
package workspace

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"rnix/internal/durable"
	"rnix/internal/proc"
	"rnix/types"
)

// Limits of what one snapshot takes, unless Options say otherwise.
const (
	DefaultCopyBytes = 1 << 30 // bytes
	DefaultCopyFiles = 100_000
)

// Options say where a keeper keeps and how much.
type Options struct {
	Procs *proc.Manager // starts git
	Dir   string        // the data directory, absolute; everything is below Dir/snapshots
	// MaxCopyBytes bounds the bytes of one copy, and the bytes that are new in one snapshot of a git
	// work tree. MaxCopyFiles bounds the files of one copy. 0 = the defaults.
	MaxCopyBytes int64
	MaxCopyFiles int
	Env          []string     // the environment in which git and the home directory are found; nil = this program's
	Log          *slog.Logger // nil = none
}

// Kind says how a snapshot is kept. Part of the on-disk format.
type Kind string

// The kinds.
const (
	KindGit  Kind = "git"  // ID is the id of a tree in the repository's object store
	KindCopy Kind = "copy" // ID is the hash of a manifest below the data directory
)

// Snapshot is what Take has found.
type Snapshot struct {
	Kind    Kind
	ID      string // names the content; "" = nothing could be kept, and Limited says why
	Root    string // the directory that it holds: for git the whole work tree, absolute
	Files   int
	Bytes   int64  // of the files that were read because they are new or changed
	Changed bool   // against the previous snapshot of this UUID
	Limited string // what was left out, and why; "" = nothing
}

// Ref names a snapshot. ID alone decides what is read; UUID and Step say whose it is. A Ref with a Root
// and without an ID means the files as they are now.
type Ref struct {
	UUID types.UUID `json:"uuid"`
	Step int        `json:"step"`
	Kind Kind       `json:"kind"`
	ID   string     `json:"id"`
	Root string     `json:"root"`
}

// Now returns the Ref of the files that are in a directory at the moment, for Diff.
func Now(id types.UUID, workDir string) Ref { return Ref{UUID: id, Root: workDir} }

// Keeper keeps snapshots. Safe for concurrent use, in one process: no other keeper may use its
// directory.
type Keeper struct {
	opts Options
	git  *git
	*stores
	*survey
	*trees
	*copies
	*archive
	desks *desks
	turns
}

// turns is whose turn it is with each history, and that no sweep comes between.
type turns struct {
	sweeping sync.RWMutex // read: a snapshot is being made; written: Sweep
	// +checklocks:sweeping
	sweeps int // that there were

	mu        sync.Mutex
	histories map[types.UUID]*history // +checklocks:mu
}

// history is what is remembered of one UUID. Its fields belong to whoever has the turn.
type history struct {
	users   int           // who has the turn or waits for it; guarded by turns.mu
	turn    chan struct{} // holds one token while somebody has it
	sweeps  int           // that there were when caches were last good
	loaded  bool          // last is what is on disk
	last    *Stored       // the newest snapshot; nil = none
	shadows map[string]*shadow
	caches  map[string]*statCache
}

// New returns a keeper. Nothing is written before the first snapshot.
func New(opts Options) *Keeper {
	if opts.MaxCopyBytes <= 0 {
		opts.MaxCopyBytes = DefaultCopyBytes
	}
	if opts.MaxCopyFiles <= 0 {
		opts.MaxCopyFiles = DefaultCopyFiles
	}
	if opts.Env == nil {
		opts.Env = os.Environ()
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	g := newGit(opts)
	own := &stores{git: g, open: map[string]*store{}}
	k := &Keeper{
		opts: opts, git: g,
		stores:  own,
		survey:  &survey{stores: own, places: map[string]place{}},
		trees:   &trees{stores: own, data: opts.Dir, most: opts.MaxCopyBytes},
		copies:  &copies{base: g.base, data: opts.Dir, mostBytes: opts.MaxCopyBytes, mostFiles: opts.MaxCopyFiles},
		archive: &archive{dir: filepath.Join(g.base, "history"), log: opts.Log},
		turns:   turns{histories: map[types.UUID]*history{}},
	}
	k.desks = &desks{survey: k.survey, archive: k.archive, mostBytes: opts.MaxCopyBytes, mostFiles: opts.MaxCopyFiles}
	return k
}

// Take makes a snapshot of the files of a work directory and calls it the state after a step of a
// history. One that is the same as the history's previous one leaves no trace. What cannot be kept is
// left out, and Snapshot.Limited says so; an error says that there is no snapshot: CANCELLED,
// NOT_FOUND for a missing directory, DRIVER if git fails, STORAGE if our disk does.
func (k *Keeper) Take(ctx context.Context, workDir string, id types.UUID, step int) (Snapshot, error) {
	if step < 0 {
		return Snapshot{}, types.Errorf(types.ErrInvalid, "Take", workDir, "step %d: steps are counted from 0", step)
	}
	h, err := k.enter(ctx, id)
	if err != nil {
		return Snapshot{}, err
	}
	k.awaitSweep(h)
	defer k.leave(h)
	st, err := k.freeze(ctx, h, id, workDir, nil)
	if err != nil {
		return Snapshot{}, err
	}
	s := st.snapshot()
	if err := k.load(h, id); err != nil {
		return s, err
	}
	if h.last == nil && st.ID != "" {
		if err := noteAutoruns(ctx, k, id, workDir); err != nil { // that costs a warning of what has changed, and no snapshot
			k.opts.Log.Warn("hooks and settings at the start are not noted", "uuid", id, "path", workDir, "err", err)
		}
	}
	if st.ID == "" || h.last != nil && h.last.same(st) {
		return s, nil
	}
	s.Changed = true
	rec, name := st.stored(id, step), k.freeName(id, step)
	if st.Kind == KindGit {
		rec.Pin = refPrefix(id) + name
		if rec.Base, err = k.pin(ctx, id, st, rec.Pin); err != nil {
			return s, err
		}
	}
	if err := k.record(id, name, rec); err != nil {
		return s, err
	}
	h.last = rec
	return s, nil
}

// enter waits for the turn of a history. The caller calls awaitSweep and leave.
func (t *turns) enter(ctx context.Context, id types.UUID) (*history, error) {
	if id == (types.UUID{}) {
		return nil, types.Errorf(types.ErrInvalid, "Take", "", "no history is named: give its UUID")
	}
	t.mu.Lock()
	h := t.histories[id]
	if h == nil {
		h = &history{turn: make(chan struct{}, 1), shadows: map[string]*shadow{}, caches: map[string]*statCache{}}
		t.histories[id] = h
	}
	h.users++
	t.mu.Unlock()
	select {
	case h.turn <- struct{}{}:
	case <-ctx.Done():
		t.gone(h)
		return nil, types.Errorf(types.ErrCancelled, "Take", id.String(), "waiting for the snapshot before: %w", context.Cause(ctx))
	}
	return h, nil
}

// awaitSweep waits for a sweep to end; the next one waits until leave is called. What h remembers from before a sweep is forgotten.
//
// +checklocksacquireread:t.sweeping
func (t *turns) awaitSweep(h *history) {
	t.sweeping.RLock()
	if h.sweeps != t.sweeps {
		clear(h.caches)
		for _, s := range h.shadows {
			s.tree = ""
		}
		h.sweeps = t.sweeps
	}
}

// leave gives the turn of a history to the next one.
//
// +checklocksreleaseread:t.sweeping
func (t *turns) leave(h *history) {
	t.sweeping.RUnlock()
	<-h.turn
	t.gone(h)
}

func (t *turns) gone(h *history) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h.users--
}

// List returns the snapshots of a history, oldest first, rescues among them. A history without any
// gives an empty list. Records that cannot be read are an error beside those that can.
func (k *Keeper) List(_ context.Context, id types.UUID) ([]Stored, error) { return k.list(id) }

// Forget releases the memory that a history takes up. What is on disk stays, and a later Take is
// slower once.
func (k *Keeper) Forget(id types.UUID) {
	t := &k.turns
	t.mu.Lock()
	defer t.mu.Unlock()
	if h := t.histories[id]; h != nil && h.users == 0 {
		delete(t.histories, id)
	}
}

// state is the content of a directory, kept but not yet named.
type state struct {
	Kind    Kind
	ID      string
	Root    string
	Common  string // git: the repository's common directory
	Files   int
	Bytes   int64
	Limited string
	repo    *repo
	store   *store // git: where it is kept
}

func (s *state) snapshot() Snapshot {
	return Snapshot{Kind: s.Kind, ID: s.ID, Root: s.Root, Files: s.Files, Bytes: s.Bytes, Limited: s.Limited}
}

func (s *state) stored(id types.UUID, step int) *Stored {
	return &Stored{
		Version: recordVersion, Ref: Ref{UUID: id, Step: step, Kind: s.Kind, ID: s.ID, Root: s.Root},
		Common: s.Common, Files: s.Files, Bytes: s.Bytes, Limited: s.Limited, Time: time.Now().UTC(),
	}
}

// freeze keeps the content of the directory that workDir belongs to. also names further files, below
// the root, that are kept although they are ignored. The caller has the turn.
func (k *Keeper) freeze(ctx context.Context, h *history, id types.UUID, workDir string, also []string) (*state, error) {
	p, err := k.locate(ctx, id, workDir)
	if err != nil {
		return nil, err
	}
	if p.repo != nil {
		return k.freezeGit(ctx, h, id, p.repo, also)
	}
	return k.freezeCopy(ctx, h, id, p)
}

// freezeGit writes the files of a work tree as a tree into the repository's object store.
func (k *Keeper) freezeGit(ctx context.Context, h *history, id types.UUID, r *repo, also []string) (*state, error) {
	s, err := k.shadow(ctx, h, id, r)
	var st *state
	for try := 0; err == nil; try++ {
		if st, err = k.look(ctx, id, s); err == nil {
			break
		}
		s.tree = ""
		if types.CodeOf(err) != types.ErrDriver || try == 2 {
			break
		}
		err = unlock(s) // a file was changed or went away while it was read: look again
	}
	if types.CodeOf(err) == types.ErrDriver {
		delete(h.shadows, r.root)
		k.opts.Log.Warn("git cannot keep a work tree; its files are copied", "path", r.root, "error", err)
		return k.freezeCopy(ctx, h, id, place{root: r.root, reason: "git cannot keep it: " + err.Error(), refused: k.tooWide(r.root)})
	}
	if err != nil {
		return nil, err
	}
	stray := strayed(s, k.opts.MaxCopyFiles)
	if len(stray) > k.opts.MaxCopyFiles {
		stray, st.Limited = nil, noted(st.Limited, fmt.Sprintf("left out more than %d files in the directories of empty submodules", k.opts.MaxCopyFiles))
	}
	if also = append(also, stray...); len(also) > 0 {
		var left []string
		if st.ID, left, err = k.with(ctx, id, s, also); err != nil {
			return nil, err
		}
		st.Limited = noted(st.Limited, left...)
	}
	return st, nil
}

// noted adds to what was left out.
func noted(limited string, more ...string) string {
	for _, m := range more {
		if limited != "" && m != "" {
			limited += "; "
		}
		limited += m
	}
	return limited
}

// rescueTime is how the time of a rescue is written in its names, which sort as the times do. Part of the on-disk format.
const rescueTime = "20060102T150405.000000000Z"

// rescueRef returns the reference that holds a rescue. Part of the on-disk format.
func rescueRef(id types.UUID, name string) string {
	return "refs/rnix/rescue/" + id.String() + "/" + name
}

// refPrefix returns what the references of the steps of a history begin with.
func refPrefix(id types.UUID) string { return "refs/rnix/" + id.String() + "/" }

// mkdir makes a directory below ours.
func mkdir(dir string) error { return durable.MkdirAll(durable.OS, dir) }
