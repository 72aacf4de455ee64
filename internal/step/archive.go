package step

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"rnix/internal/durable"
	"rnix/types"
)

// Names of archives. Part of the on-disk format: an archive is a tar, compressed by gzip, whose first
// entry is ArchiveHeadFile.
const (
	ArchiveHeadFile = "archive.json"

	archiveDir    = "archive"
	archiveSuffix = ".tar.gz"
	maxHead       = 16 << 20
)

// ArchiveHead is the first entry of an archive: what is in it, without reading it.
type ArchiveHead struct {
	V     int       `json:"v"`
	Info  ProcInfo  `json:"info"` // with its long texts cut
	At    time.Time `json:"at"`
	Why   string    `json:"why"`
	Files int       `json:"files"`
	Bytes int64     `json:"bytes"` // of all files, unpacked
}

// Archived is an archive as it is listed.
type Archived struct {
	ArchiveHead
	Size int64 `json:"size"` // of the archive, in bytes
}

// ArchiveDir returns the directory of the archives.
func ArchiveDir(dataDir string) string { return filepath.Join(dataDir, archiveDir) }

// ArchivePath returns the archive of a history.
func ArchivePath(dataDir string, id types.UUID) string {
	return filepath.Join(dataDir, archiveDir, id.String()+archiveSuffix)
}

// NewArchiveHead returns the head of the archive of a history.
func NewArchiveHead(info *ProcInfo, at time.Time, why string) ArchiveHead {
	return ArchiveHead{V: FormatVersion, Info: info.summary(), At: at.UTC(), Why: why}
}

// DecodeArchiveHead checks a head that was read.
func DecodeArchiveHead(b []byte) (*ArchiveHead, error) {
	h := new(ArchiveHead)
	if err := json.Unmarshal(b, h); err != nil {
		return nil, types.Errorf(types.ErrStorage, "Read", ArchiveHeadFile, "damaged: %w", err)
	}
	switch {
	case h.V > FormatVersion:
		return nil, types.Errorf(types.ErrVersion, "Read", ArchiveHeadFile, "written in format %d by a newer program, this one reads up to %d", h.V, FormatVersion)
	case h.V < 1 || h.Info.UUID == (types.UUID{}) || h.Files < 0 || h.Bytes < 0:
		return nil, types.Errorf(types.ErrStorage, "Read", ArchiveHeadFile, "damaged: it has no version, no UUID or no sizes")
	}
	return h, nil
}

// ReadArchiveHead reads the first entry of an archive. It believes nothing of what it reads: a head
// that is no head, or too large, is an error of code STORAGE.
func ReadArchiveHead(r io.Reader) (*ArchiveHead, error) {
	damaged := func(err error) error {
		return types.Errorf(types.ErrStorage, "Read", ArchiveHeadFile, "not an archive of a history: %w", err)
	}
	gz, err := gzip.NewReader(r)
	if err != nil {
		return nil, damaged(err)
	}
	tr := tar.NewReader(gz)
	h, err := tr.Next()
	if err != nil {
		return nil, damaged(err)
	}
	if h.Name != ArchiveHeadFile || h.Typeflag != tar.TypeReg || h.Size > maxHead {
		return nil, damaged(errors.New("its first entry is not its head"))
	}
	b, err := io.ReadAll(io.LimitReader(tr, maxHead))
	if err != nil {
		return nil, damaged(err)
	}
	return DecodeArchiveHead(b)
}

// Archives lists the archives of a data directory. Its file, archive/index.jsonl, spares opening each
// of them and can be made again from them at any time. Safe for concurrent use.
type Archives struct {
	fs   durable.FS
	dir  string
	path string

	mu      sync.Mutex              // leaf; held while a line is written
	entries map[types.UUID]Archived // +checklocks:mu
	// +checklocks:mu
	log      *durable.Log // nil if it cannot be written
	problems []string     // +checklocks:mu
}

// archiveLine is one line of the index of the archives. It counts for the file that it was made of,
// which size and time say. Part of the on-disk format.
type archiveLine struct {
	V     int         `json:"v"`
	Entry *Archived   `json:"entry,omitempty"`
	Mtime int64       `json:"mtime_ns,omitempty"`
	Gone  *types.UUID `json:"gone,omitempty"`
}

// OpenArchives lists the archives. The head of one that the index does not know is read; one that
// cannot be read is named by Problems and left alone.
func OpenArchives(fsys durable.FS, dataDir string) (*Archives, error) {
	a := &Archives{fs: fsys, dir: ArchiveDir(dataDir), entries: map[types.UUID]Archived{}}
	a.path = filepath.Join(a.dir, IndexFile)
	a.mu.Lock()
	defer a.mu.Unlock()
	files, err := fsys.ReadDir(a.dir)
	if missing(err) {
		return a, nil
	}
	if err != nil {
		return nil, types.Errorf(types.ErrStorage, "OpenArchives", a.dir, "%w", err)
	}
	known, lines := a.loadLocked()
	fresh := false
	for _, f := range files {
		name, ok := strings.CutSuffix(f.Name(), archiveSuffix)
		var id types.UUID
		if !ok || len(name) != 36 || id.UnmarshalText([]byte(name)) != nil || !f.Type().IsRegular() {
			continue
		}
		info, err := f.Info()
		if err != nil {
			a.problems = append(a.problems, err.Error())
			continue
		}
		if l, ok := known[id]; ok && l.Entry.Size == info.Size() && l.Mtime == info.ModTime().UnixNano() {
			a.entries[id] = *l.Entry
			continue
		}
		fresh = true
		head, err := a.head(id)
		if err != nil {
			a.problems = append(a.problems, err.Error())
			continue
		}
		a.entries[id] = Archived{*head, info.Size()}
	}
	if fresh || len(a.entries) != len(known) || lines > 2*len(known)+1000 {
		a.rewriteLocked()
	} else {
		a.openLogLocked()
	}
	return a, nil
}

func (a *Archives) file(id types.UUID) string { return filepath.Join(a.dir, id.String()+archiveSuffix) }

// head reads the head of one archive.
func (a *Archives) head(id types.UUID) (*ArchiveHead, error) {
	f, err := a.fs.OpenFile(a.file(id), os.O_RDONLY, 0)
	if err != nil {
		return nil, types.Errorf(types.ErrStorage, "OpenArchives", a.file(id), "%w", err)
	}
	defer f.Close()
	h, err := ReadArchiveHead(f)
	if err == nil && h.Info.UUID != id {
		err = types.Errorf(types.ErrStorage, "Read", ArchiveHeadFile, "it is of another history, %s", h.Info.UUID)
	}
	if err != nil {
		return nil, types.Errorf(types.CodeOf(err), "OpenArchives", a.file(id), "%w", err)
	}
	return h, nil
}

// loadLocked reads the index as far as it can be read, and counts its lines.
//
// +checklocks:a.mu
func (a *Archives) loadLocked() (known map[types.UUID]archiveLine, lines int) {
	known = map[types.UUID]archiveLine{}
	f, err := a.fs.OpenFile(a.path, os.O_RDONLY, 0)
	if err != nil {
		return known, 0
	}
	defer f.Close()
	// Damage ends the reading: what is not known is read from the archives.
	_, _, _ = durable.Scan(f, a.path, func(l durable.Line) error {
		var line archiveLine
		if json.Unmarshal(l.Data, &line) != nil || line.V != FormatVersion {
			return durable.ErrStop
		}
		lines++
		switch {
		case line.Entry != nil:
			known[line.Entry.Info.UUID] = line
		case line.Gone != nil:
			delete(known, *line.Gone)
		}
		return nil
	})
	return known, lines
}

// rewriteLocked writes the index anew. If that does not work, it is made again at the next start.
//
// +checklocks:a.mu
func (a *Archives) rewriteLocked() {
	var b bytes.Buffer
	for _, e := range a.entries {
		if line, err := a.line(&e); err == nil {
			b.Write(line)
		}
	}
	if durable.WriteFile(a.fs, a.path, b.Bytes(), durable.Cached) == nil {
		a.openLogLocked()
	}
}

// line returns the line of an archive that is there.
func (a *Archives) line(e *Archived) ([]byte, error) {
	info, err := a.fs.Stat(a.file(e.Info.UUID))
	if err != nil {
		return nil, err
	}
	return encodeJSON(a.path, &archiveLine{V: FormatVersion, Entry: e, Mtime: info.ModTime().UnixNano()})
}

// +checklocks:a.mu
func (a *Archives) openLogLocked() {
	if log, _, err := durable.OpenLog(a.fs, a.path, nil); err == nil {
		a.log = log
	}
}

// +checklocks:a.mu
func (a *Archives) appendLocked(line []byte, err error) {
	if a.log == nil {
		a.openLogLocked()
	}
	if err == nil && a.log != nil {
		_ = a.log.Append(line) // a cache: the next start sees that the line is missing
	}
}

// Put enters an archive that is there.
func (a *Archives) Put(h ArchiveHead, size int64) {
	e := Archived{h, size}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.entries[h.Info.UUID] = e
	a.appendLocked(a.line(&e))
}

// Delete takes out an archive that is gone.
func (a *Archives) Delete(id types.UUID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, ok := a.entries[id]; ok {
		delete(a.entries, id)
		a.appendLocked(encodeJSON(a.path, &archiveLine{V: FormatVersion, Gone: &id}))
	}
}

// Find returns the archive of a history.
func (a *Archives) Find(id types.UUID) (Archived, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e, ok := a.entries[id]
	return e, ok
}

// List returns all archives in the order of their UUIDs.
func (a *Archives) List() []Archived {
	a.mu.Lock()
	out := make([]Archived, 0, len(a.entries))
	for _, e := range a.entries {
		out = append(out, e)
	}
	a.mu.Unlock()
	slices.SortFunc(out, func(x, y Archived) int { return bytes.Compare(x.Info.UUID[:], y.Info.UUID[:]) })
	return out
}

// Problems returns which archives could not be read, a line each.
func (a *Archives) Problems() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.problems)
}

// Close closes the file. Put and Delete may be called afterwards; they open it again.
func (a *Archives) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.log == nil {
		return nil
	}
	err := a.log.Close()
	a.log = nil
	return err
}
