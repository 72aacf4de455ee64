// Package gc takes histories out of the way that nobody needs any more: it archives them, or deletes
// them where that was asked for, says what takes up the room, and puts archives back. It owns the
// decision (Decide, pure), the archives' form and the order of the steps, so that a crash at any point
// leaves the directory of a history or its archive, never neither. It knows no process: whether a
// history is being written the journal says, and workspaces are somebody else's (Workspaces).
//
// What lies on the disk:
//
//	steps/<uuid>/           a history
//	steps/.gone-<uuid>/     one that is being removed; its archive or its line in deleted.jsonl is there
//	steps/.back-<uuid>/     one that is being put back; its archive is there
//	archive/<uuid>.tar.gz   an archive: its head, the files, and a list of their hashes
//	archive/index.jsonl     a cache of the heads
//	deleted.jsonl           what was deleted, when and why; an archive that is older than its line here is removed
//
// Locks: Collector.turn > Collector.mu (leaf).
package gc

import (
	"context"
	"path/filepath"
	"time"

	"rnix/internal/durable"
	"rnix/internal/step"
	"rnix/types"
)

// Mode says what becomes of a history that goes.
type Mode string

// The modes.
const (
	Archive Mode = "archive" // packed into one file, from which it can be put back
	Delete  Mode = "delete"  // removed; deleted.jsonl says that it was there
)

// The values that are usual.
const (
	DefaultGrace = 2 * time.Second
	ConfirmAbove = 100 // a person is asked before more histories than this go at once
)

// Journal is what gc needs of a step.Journal: the right to a history, without which it is not touched.
type Journal interface {
	Acquire(ctx context.Context, id types.UUID, owner string) (step.Lease, error)
	Open(ctx context.Context, id types.UUID, owner string) (step.Lease, error)
	Release(ctx context.Context, id types.UUID, epoch uint64) error
}

// Index is what gc needs of the index of the histories.
type Index interface {
	List() []step.ProcInfo
	Put(step.ProcInfo) error
	Delete(types.UUID) error
}

// Workspaces is what gc asks of whoever owns the workspaces and the snapshots of histories. Each call
// may be made again after it was made, and does nothing for a history that has neither.
type Workspaces interface {
	// Rescue makes sure that no work is lost when the workspace goes, and says how a person gets it
	// back; "" if there is nothing to keep. An error keeps the history.
	Rescue(ctx context.Context, id types.UUID) (how string, err error)
	// Remove removes the workspace, and says how a person gets back what was in it; "" = as Rescue has said. It is called after Rescue, and before
	// it is on record that the history goes: what is cut off between the two has its workspace back at the next start. An error keeps the history.
	Remove(ctx context.Context, id types.UUID) (how string, err error)
	// Stow keeps everything in the workspace of an archived history and then removes it, so that Unstow can put it back as it was. It returns how
	// many bytes were in it. An error keeps the workspace where it is, and says why.
	Stow(ctx context.Context, id types.UUID) (freed int64, err error)
	// Unstow puts back what Stow has removed that a history needs which is put back and works in dir; said says what is not as it was. With lose
	// it gives up the workspace of the history, and said says how the work in it is had. An error keeps the history in its archive.
	Unstow(ctx context.Context, id types.UUID, dir string, lose bool) (said string, err error)
	// DropSnapshots removes what Remove has kept so that the workspace could come back, and the snapshots. It is called when the history is gone.
	DropSnapshots(ctx context.Context, id types.UUID) error
}

// Options are what a Collector works with.
type Options struct {
	FS         durable.FS
	DataDir    string // which the caller has locked
	Journal    Journal
	Index      Index
	Workspaces Workspaces // nil = histories have none
	Policy     Policy
	Mode       Mode          // "" = Archive
	Interval   time.Duration // between two runs of Run
	// Report is told of each run of Run; nil = nobody is.
	Report func(Result, error)
}

// owner is who holds a history while it is collected, for people.
const owner = "rnix gc"

// Collector archives, deletes and puts back the histories of one data directory. Safe for concurrent
// use: runs wait for each other, and whoever touches one history finds the others off it.
type Collector struct {
	press
	o        Options
	archives *step.Archives
	tombs    *step.Tombs
	problems []string // found when it was opened

	turn chan struct{} // held by the one run of Collect

	Holds
}

// Open returns a collector, after it has finished what a crash has cut in two. Nobody else may be
// writing to the data directory yet. Problems says what could not be read; it keeps nothing from
// working but what it names.
func Open(o Options) (*Collector, error) {
	if o.Mode == "" {
		o.Mode = Archive
	}
	if o.Mode != Archive && o.Mode != Delete {
		return nil, types.Errorf(types.ErrInvalid, "GC", string(o.Mode), "the mode is not known; use archive or delete")
	}
	d := disk{fs: o.FS, data: o.DataDir, steps: filepath.Dir(step.Dir(o.DataDir, types.UUID{}))}
	c := &Collector{press: press{d}, o: o, turn: make(chan struct{}, 1)}
	c.tombs = step.OpenTombs(o.FS, o.DataDir)
	if err := c.tombs.Problem(); err != nil {
		c.problems = append(c.problems, err.Error())
	}
	mender{c}.mend()
	var err error
	if c.archives, err = step.OpenArchives(o.FS, o.DataDir); err != nil {
		return nil, err
	}
	c.problems = append(c.problems, c.archives.Problems()...)
	mender{c}.mendArchives()
	return c, nil
}

// Close closes the index of the archives.
func (c *Collector) Close() error { return c.archives.Close() }

// Problems returns what could not be read or mended when the collector was opened, a line each.
func (c *Collector) Problems() []string { return c.problems }
