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

// scratchDir is where long outputs are kept, in a history and, for those of nobody, in the data
// directory.
const scratchDir = "scratch"

// Bytes says how much there is of what, by the lengths of the files.
type Bytes struct {
	Steps     int64 `json:"steps"`
	Events    int64 `json:"events"`
	Scratch   int64 `json:"scratch"`
	Other     int64 `json:"other"`
	Snapshots int64 `json:"snapshots"`
	Archive   int64 `json:"archive"`
	Total     int64 `json:"total"`
}

func (b *Bytes) add(x Bytes) {
	b.Steps += x.Steps
	b.Events += x.Events
	b.Scratch += x.Scratch
	b.Other += x.Other
	b.Snapshots += x.Snapshots
	b.Archive += x.Archive
	b.sum()
}

func (b *Bytes) sum() { b.Total = b.Steps + b.Events + b.Scratch + b.Other + b.Snapshots + b.Archive }

// HistoryUsage is the room that one history takes up.
type HistoryUsage struct {
	Ref
	State string `json:"state"` // of the process; "suspended", "archived" or "unknown" where there is none
	Bytes
}

// Usage is the room that all histories take up. Its lists are never nil.
type Usage struct {
	Histories []HistoryUsage `json:"histories"` // the largest first
	Shared    int64          `json:"shared"`    // scratch files that belong to no history
	Total     Bytes          `json:"total"`     // Shared is in its Scratch
	Warnings  []string       `json:"warnings"`
}

// Usage looks at the length of every file of every history, and opens none. snapshots returns the bytes of
// the snapshots of a history; nil = there are none. Histories that come or go meanwhile may be missing.
func (c *Collector) Usage(ctx context.Context, snapshots func(types.UUID) (int64, error)) (Usage, error) {
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
			u.Total.add(Bytes{Other: room.Total})
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
			n, err := snapshots(h.UUID)
			warn(err)
			h.Snapshots = n
		}
		h.sum()
		u.Total.add(h.Bytes)
	}
	shared, err := c.weigh(filepath.Join(c.data, scratchDir))
	warn(err)
	u.Shared = shared
	u.Total.add(Bytes{Scratch: shared})
	slices.SortFunc(u.Histories, func(a, b HistoryUsage) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), bytes.Compare(a.UUID[:], b.UUID[:]))
	})
	return u, nil
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
