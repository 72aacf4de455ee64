package gc

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"rnix/internal/step"
	"rnix/types"
)

// Names in the data directory. scratchDir is where long outputs are kept, in a history and, for those of
// nobody, in the data directory.
const (
	scratchDir    = "scratch"
	snapshotsDir  = "snapshots"
	workspacesDir = "workspaces" // of forks, by UUID
	worktreesDir  = "worktrees"  // likewise, with a note beside each
)

// Bytes says how much there is of what, by the lengths of the files.
type Bytes struct {
	Steps     int64 `json:"steps"`
	Events    int64 `json:"events"`
	Scratch   int64 `json:"scratch"`
	Other     int64 `json:"other"`
	Snapshots int64 `json:"snapshots"`
	Workspace int64 `json:"workspace"`
	Archive   int64 `json:"archive"`
	Total     int64 `json:"total"`
}

func (b *Bytes) add(x Bytes) {
	b.Steps += x.Steps
	b.Events += x.Events
	b.Scratch += x.Scratch
	b.Other += x.Other
	b.Snapshots += x.Snapshots
	b.Workspace += x.Workspace
	b.Archive += x.Archive
	b.sum()
}

func (b *Bytes) sum() {
	b.Total = b.Steps + b.Events + b.Scratch + b.Other + b.Snapshots + b.Workspace + b.Archive
}

// HistoryUsage is the room that one history takes up.
type HistoryUsage struct {
	Ref
	State string `json:"state"` // of the process; "suspended", "archived" or "unknown" where there is none
	Bytes
}

// Usage is the room that the data directory takes up. Its lists are never nil.
type Usage struct {
	Histories []HistoryUsage `json:"histories"` // the largest first
	Shared    Bytes          `json:"shared"`    // what belongs to no history, or to more than one
	Total     Bytes          `json:"total"`     // of the whole data directory; Shared is in it
	Warnings  []string       `json:"warnings"`
}

// Usage looks at the length of every file in the data directory, and opens none. snapshots returns the bytes
// of the snapshots that belong to one history alone; nil = there are none. Histories that come or go
// meanwhile may be missing.
func (c *Collector) Usage(ctx context.Context, snapshots func(types.UUID) int64) (Usage, error) {
	u := Usage{Histories: []HistoryUsage{}, Warnings: []string{}}
	warn := func(err error) {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			u.Warnings = append(u.Warnings, err.Error())
		}
	}
	dirs, err := c.fs.ReadDir(c.steps)
	if err != nil {
		return u, storage("Usage", c.steps, err)
	}
	known := map[types.UUID]step.ProcInfo{}
	for _, p := range c.o.Index.List() {
		known[p.UUID] = p
	}
	at := map[types.UUID]bool{}
	for _, d := range dirs {
		if err := ended(ctx); err != nil {
			return u, err
		}
		room, err := c.measure(filepath.Join(c.steps, d.Name()), d)
		warn(err)
		var id types.UUID
		if len(d.Name()) != 36 || id.UnmarshalText([]byte(d.Name())) != nil {
			u.Shared.add(Bytes{Other: room.Total})
			continue
		}
		info, ok := known[id]
		h := HistoryUsage{Ref: refOf(&info), State: "unknown", Bytes: room}
		h.UUID, at[id] = id, true
		switch {
		case ok && info.Suspended:
			h.State = "suspended"
		case ok:
			h.State = info.State.String()
		}
		u.Histories = append(u.Histories, h)
	}
	for _, a := range c.archives.List() {
		if !at[a.Info.UUID] {
			h := HistoryUsage{Ref: refOf(&a.Info), State: "archived", Bytes: Bytes{Archive: a.Size}}
			u.Histories = append(u.Histories, h)
		}
	}
	for i := range u.Histories {
		h := &u.Histories[i]
		if snapshots != nil {
			h.Snapshots = snapshots(h.UUID)
		}
		for _, dir := range []string{workspacesDir, worktreesDir} {
			n, err := c.weigh(filepath.Join(c.data, dir, h.UUID.String()))
			warn(err)
			h.Workspace += n
		}
		h.sum()
		u.Total.add(h.Bytes)
	}
	whole, err := c.around()
	warn(err)
	// What was counted for a history is not counted again. It may have grown since.
	u.Shared.add(Bytes{Scratch: whole.Scratch, Other: whole.Other, Snapshots: max(0, whole.Snapshots-u.Total.Snapshots),
		Workspace: max(0, whole.Workspace-u.Total.Workspace), Archive: max(0, whole.Archive-u.Total.Archive)})
	u.Total.add(u.Shared)
	slices.SortFunc(u.Histories, func(a, b HistoryUsage) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), bytes.Compare(a.UUID[:], b.UUID[:]))
	})
	return u, nil
}

// around returns the room of everything in the data directory but the histories.
func (d disk) around() (b Bytes, err error) {
	entries, err := d.fs.ReadDir(d.data)
	for _, e := range entries {
		path := filepath.Join(d.data, e.Name())
		var n int64
		var lerr error
		switch {
		case path == d.steps:
			continue
		case e.IsDir():
			n, lerr = d.weigh(path)
		default:
			n, lerr = length(e)
		}
		switch err = errors.Join(err, lerr); {
		case e.Name() == scratchDir:
			b.Scratch += n
		case e.Name() == snapshotsDir:
			b.Snapshots += n
		case e.Name() == workspacesDir, e.Name() == worktreesDir:
			b.Workspace += n
		case path == step.ArchiveDir(d.data):
			b.Archive += n
		default:
			b.Other += n
		}
	}
	return b, err
}

// measure returns the room of one directory of a history.
func (d disk) measure(dir string, entry fs.DirEntry) (b Bytes, err error) {
	if !entry.IsDir() {
		b.Other, err = length(entry)
		b.sum()
		return b, err
	}
	entries, err := d.fs.ReadDir(dir)
	for _, e := range entries {
		var n int64
		var lerr error
		if e.IsDir() {
			n, lerr = d.weigh(filepath.Join(dir, e.Name()))
		} else {
			n, lerr = length(e)
		}
		switch err = errors.Join(err, lerr); e.Name() {
		case step.StepsFile:
			b.Steps += n
		case step.EventsFile:
			b.Events += n
		case scratchDir:
			b.Scratch += n
		default:
			b.Other += n
		}
	}
	b.sum()
	return b, err
}

// weigh returns the bytes of all files below a directory. Links count as themselves.
func (d disk) weigh(dir string) (total int64, err error) {
	entries, err := d.fs.ReadDir(dir)
	for _, e := range entries {
		var n int64
		var lerr error
		if e.IsDir() {
			n, lerr = d.weigh(filepath.Join(dir, e.Name()))
		} else {
			n, lerr = length(e)
		}
		total, err = total+n, errors.Join(err, lerr)
	}
	return total, err
}

// length returns the length of a file; 0 of one that has just gone.
func length(e fs.DirEntry) (int64, error) {
	info, err := e.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
