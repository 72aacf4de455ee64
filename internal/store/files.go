package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/durable"
	"rnix/internal/step"
	"rnix/types"
)

// Files is the Store of one machine: files below a data directory.
type Files struct {
	step.Journal
	local *step.Local
	place
}

// Open opens the data directory, and makes it if it is missing. If another process has it, the error has code CONFLICT and names
// that process.
func Open(fsys durable.FS, dataDir string, d step.Durability) (*Files, error) {
	l, err := step.OpenLocal(fsys, dataDir, d)
	if err != nil {
		return nil, err
	}
	return over(l), nil
}

// OpenClaimed opens a claimed data directory. Close gives the claim back; an error leaves it to the caller.
func OpenClaimed(c *step.Claim, d step.Durability) (*Files, error) {
	l, err := step.OpenClaimed(c, d)
	if err != nil {
		return nil, err
	}
	return over(l), nil
}

func over(l *step.Local) *Files {
	return &Files{l, l, place{l.FS(), l.Dir}}
}

var _ Opened = (*Files)(nil)

// Discard implements Journal.
func (f *Files) Discard(id types.UUID) error { return f.local.Discard(id) }

// Sync implements Journal.
func (f *Files) Sync(id types.UUID) error {
	path := filepath.Join(f.dir(id), step.StepsFile)
	file, err := f.fs.OpenFile(path, os.O_RDONLY, durable.FilePerm)
	if err == nil {
		err = errors.Join(file.Sync(), file.Close())
	}
	if err != nil {
		return types.Errorf(types.ErrStorage, "Sync", path, "%w", err)
	}
	return nil
}

// Index implements Store.
func (f *Files) Index() Index { return index{f.local.Index(), f.local} }

// Derived implements Store.
func (f *Files) Derived() Derived { return derived{f.place} }

// Blobs implements Store.
func (f *Files) Blobs() Blobs { return blobs{f.place} }

// Dir implements Store.
func (f *Files) Dir(id types.UUID) string { return f.dir(id) }

// Claim implements Opened.
func (f *Files) Claim() Claim { return f.local.Claim }

// PIDs implements Opened.
func (f *Files) PIDs() (*durable.Counter, error) { return f.local.PIDs() }

// Asks implements Opened.
func (f *Files) Asks() (*durable.Counter, error) { return step.AskNumbers(f.local) }

// Mended implements Opened.
func (f *Files) Mended() []string { return f.local.Mended }

// Close implements Opened.
func (f *Files) Close() error { return f.local.Close() }

// place is where the files of histories lie.
type place struct {
	fs  durable.FS
	dir func(types.UUID) string
}

// index is the index of files.
type index struct {
	*step.Index
	local *step.Local
}

func (x index) Save(info *step.ProcInfo) error { return x.local.PutInfo(info) }

func (x index) Card(id types.UUID) (*step.ProcInfo, error) {
	return step.ReadInfo(x.local.FS(), x.local.Dir(id))
}

func (x index) Watch(changed func(types.UUID)) { x.Changed = changed }

// derived is Derived in files.
type derived struct{ place }

func (d derived) Checkpoint(id types.UUID) *step.Checkpoint {
	c, err := step.ReadCheckpoint(d.fs, d.dir(id))
	if err != nil || c.UUID != id {
		return nil
	}
	return c
}

func (d derived) SaveCheckpoint(id types.UUID, c *step.Checkpoint) (bytes int, err error) {
	err = step.WriteCheckpoint(d.fs, d.dir(id), c)
	if err == nil {
		var info fs.FileInfo
		if info, err = d.fs.Stat(filepath.Join(d.dir(id), step.CheckpointFile)); err == nil {
			return int(info.Size()), nil
		}
	}
	if _, gone := d.fs.Stat(d.dir(id)); errors.Is(gone, fs.ErrNotExist) {
		return 0, types.Errorf(types.ErrNotFound, "Write", d.dir(id), "%w", err)
	}
	return 0, err
}

func (d derived) Stamp(id types.UUID) step.Stamp { return step.StampOf(d.fs, d.dir(id)) }

func (d derived) Outline(id types.UUID) *step.Outline {
	return step.LoadOutline(d.fs, d.dir(id), id)
}

func (d derived) SaveOutline(id types.UUID, o *step.Outline, at step.Stamp) error {
	return o.Save(d.fs, d.dir(id), id, at)
}

func (d derived) SaveProfile(id types.UUID, p *step.Profile) error {
	return step.WriteProfile(d.fs, d.dir(id), p)
}

// blobs is Blobs in files.
type blobs struct{ place }

func (b blobs) InputsDir(id types.UUID) string { return step.InputsDir(b.dir(id)) }

func (b blobs) SaveInputs(id types.UUID, inputs []step.Input) ([]step.InputRef, error) {
	return step.WriteInputs(b.fs, b.dir(id), inputs)
}

func (b blobs) Input(id types.UUID, ref step.InputRef) (string, error) {
	return step.ReadInput(b.fs, b.dir(id), ref)
}

func (b blobs) SaveAttachment(id types.UUID, data []byte) (sum string, err error) {
	return step.WriteAttachment(b.fs, b.dir(id), data)
}

func (b blobs) Attachment(id types.UUID, sum string) ([]byte, error) {
	return step.ReadAttachment(b.fs, b.dir(id), sum)
}

func (b blobs) CopyAttachments(from, to types.UUID, as []rnixctx.Attachment) error {
	return step.CopyAttachments(b.fs, b.dir(from), b.dir(to), as)
}

func (b blobs) CopySeen(from, to types.UUID, until time.Time) error {
	return step.CopySeen(b.fs, b.dir(from), b.dir(to), until)
}

func (b blobs) CopyInputs(from, to types.UUID, refs []step.InputRef) (damage string, err error) {
	return step.CopyInputs(b.fs, b.dir(from), b.dir(to), refs)
}

func (b blobs) SaveMeta(id types.UUID, m *step.Meta) error { return step.WriteMeta(b.fs, b.dir(id), m) }

func (b blobs) Meta(id types.UUID) (*step.Meta, error) { return step.ReadMeta(b.fs, b.dir(id)) }
