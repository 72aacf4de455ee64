package step

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"rnix/internal/durable"
	"rnix/internal/moved"
	"rnix/types"
)

// indexText is the longest text in bytes that the index keeps of an intent or a result.
const indexText = 512

// writeBack is how long a file is believed to wait in memory, with a wide margin: Linux writes what is
// half a minute old.
const writeBack = 10 * time.Minute

// Index is index.jsonl: one line for each change of a ProcInfo, the latest counts, so that listing
// ten thousand histories reads one file. It is never a second truth: unless its last line says that
// it was closed, it is made anew from the proc-info.json files. Safe for concurrent use.
type Index struct {
	fs   durable.FS
	dir  string
	path string

	// recent has the histories that were rebuilt from a proc-info.json that may not be on the disk yet:
	// whoever wrote it was killed. It does not change.
	recent []types.UUID

	// Changed is told of each history that was entered, is new in something, or was removed; nil = nobody is. It must not block, nor
	// use the index. It is set before the index is used.
	Changed func(types.UUID)

	mu    sync.Mutex              // leaf; held while a line is written
	infos map[types.UUID]ProcInfo // +checklocks:mu
	// +checklocks:mu
	log *durable.Log // nil if it cannot be written
	// +checklocks:mu
	lines int // in the file
	// +checklocks:mu
	clean bool // the last line on the disk may say "closed"
	// +checklocks:mu
	ended    bool     // Close was called
	problems []string // +checklocks:mu
}

// indexLine is one line. Part of the on-disk format.
type indexLine struct {
	V      int         `json:"v"`
	Info   *ProcInfo   `json:"info,omitempty"`
	Gone   *types.UUID `json:"gone,omitempty"`
	Closed bool        `json:"closed,omitempty"` // whoever wrote this has written everything before it
}

// OpenIndex opens the index of a data directory, whose lock the caller holds. An index that is
// missing, damaged or was not closed is rebuilt; histories that cannot be read then are left out and
// named by Problems.
func OpenIndex(fsys durable.FS, dataDir string) (*Index, error) {
	x := &Index{fs: fsys, dir: dataDir, path: filepath.Join(dataDir, IndexFile), infos: map[types.UUID]ProcInfo{}}
	x.mu.Lock()
	defer x.mu.Unlock()
	names, err := x.names()
	if err != nil {
		return nil, err
	}
	if x.loadLocked() {
		for id := range x.infos {
			if !names[id] {
				delete(x.infos, id)
			}
		}
		for id := range names {
			if _, ok := x.infos[id]; !ok {
				x.rebuildLocked(id)
			}
		}
		x.log, _, err = durable.OpenLog(fsys, x.path, nil)
		return x, unlessUnwritable(err)
	}
	x.infos = map[types.UUID]ProcInfo{}
	for id := range names {
		x.rebuildLocked(id)
	}
	return x, unlessUnwritable(x.compactLocked(durable.Cached))
}

// names returns which histories have a directory.
func (x *Index) names() (map[types.UUID]bool, error) {
	entries, err := x.fs.ReadDir(filepath.Join(x.dir, stepsDir))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, types.Errorf(types.ErrStorage, "OpenIndex", x.path, "%w", err)
	}
	names := make(map[types.UUID]bool, len(entries))
	for _, e := range entries {
		var id types.UUID
		if e.IsDir() && len(e.Name()) == 36 && id.UnmarshalText([]byte(e.Name())) == nil {
			names[id] = true
		}
	}
	return names, nil
}

// loadLocked reads the file and reports whether it can be relied on.
//
// +checklocks:x.mu
func (x *Index) loadLocked() bool {
	f, err := x.fs.OpenFile(x.path, os.O_RDONLY, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	infos, lines, clean := x.infos, 0, false
	_, damage, err := durable.Scan(f, x.path, func(l durable.Line) error {
		var line indexLine
		if err := json.Unmarshal(l.Data, &line); err != nil || line.V != FormatVersion {
			return types.Errorf(types.ErrStorage, "OpenIndex", x.path, "not a line of an index")
		}
		lines++
		clean = line.Closed
		switch {
		case line.Info != nil:
			infos[line.Info.UUID] = here(x.dir, *line.Info)
		case line.Gone != nil:
			delete(infos, *line.Gone)
		}
		return nil
	})
	x.lines, x.clean = lines, clean
	return err == nil && damage == nil && clean
}

// rebuildLocked takes a history from its proc-info.json or, if that is lost, from its records.
//
// +checklocks:x.mu
func (x *Index) rebuildLocked(id types.UUID) {
	dir := Dir(x.dir, id)
	if err := durable.RemoveTemp(x.fs, dir); err != nil {
		x.problems = append(x.problems, err.Error())
	}
	info, err := ReadInfo(x.fs, dir)
	if err == nil && info.UUID != id {
		err = types.Errorf(types.ErrStorage, "Read", filepath.Join(dir, InfoFile), "it is of another history, %s", info.UUID)
	}
	if st, serr := x.fs.Stat(filepath.Join(dir, InfoFile)); err == nil && serr == nil && time.Since(st.ModTime()) < writeBack {
		x.recent = append(x.recent, id)
	}
	if err != nil { // so that power loss does not bring back what an earlier start has removed
		if serr := x.fs.SyncDir(dir); serr != nil {
			x.problems = append(x.problems, serr.Error())
		}
	}
	if code := types.CodeOf(err); code == types.ErrNotFound || code == types.ErrStorage {
		h, herr := readSteps(x.fs, dir, id)
		switch {
		case herr == nil && len(h.Records) > 0:
			if code == types.ErrStorage {
				x.problems = append(x.problems, err.Error()+"; it was made anew from the steps")
			}
			made := h.Info()
			info, err = &made, nil
		case code == types.ErrNotFound && (herr == nil || types.CodeOf(herr) == types.ErrNotFound):
			return // a history that was never begun
		}
	}
	if err != nil {
		x.problems = append(x.problems, err.Error())
		return
	}
	x.infos[id] = here(x.dir, info.summary())
}

// here returns p with its directories where they are now, if the data directory was moved.
func here(dataDir string, p ProcInfo) ProcInfo {
	p.WorkDir, p.ReadRoots = moved.Here(dataDir, p.WorkDir), moved.All(dataDir, p.ReadRoots)
	return p
}

// Problems returns what could not be read when the index was rebuilt, a line each.
func (x *Index) Problems() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.problems)
}

// List returns all histories in the order of their UUIDs, which is that of their creation. Intent and
// Result are cut.
func (x *Index) List() []ProcInfo {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.sortedLocked()
}

// Open returns the histories that have not ended, in the same order: those that run or are suspended. It
// costs little beside List when most have ended.
func (x *Index) Open() []ProcInfo {
	x.mu.Lock()
	defer x.mu.Unlock()
	var out []ProcInfo
	for _, p := range x.infos {
		if p.Suspended || p.State < types.StateDead && p.Exit == nil {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b ProcInfo) int { return bytes.Compare(a.UUID[:], b.UUID[:]) })
	return out
}

// Descended returns the histories that another one has started, cut likewise, in no order.
func (x *Index) Descended() []ProcInfo {
	x.mu.Lock()
	defer x.mu.Unlock()
	var out []ProcInfo
	for _, p := range x.infos {
		if p.ParentUUID != (types.UUID{}) {
			out = append(out, p)
		}
	}
	return out
}

// Get returns one history, cut likewise.
func (x *Index) Get(id types.UUID) (ProcInfo, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	p, ok := x.infos[id]
	return p, ok
}

// +checklocks:x.mu
func (x *Index) sortedLocked() []ProcInfo {
	out := slices.AppendSeq(make([]ProcInfo, 0, len(x.infos)), maps.Values(x.infos))
	slices.SortFunc(out, func(a, b ProcInfo) int { return bytes.Compare(a.UUID[:], b.UUID[:]) })
	return out
}

// Put enters a history or what is new of it. After an error the index is right in memory, and will
// be rebuilt at the next start.
func (x *Index) Put(p ProcInfo) error {
	p = here(x.dir, p.summary())
	x.mu.Lock()
	defer x.mu.Unlock()
	x.infos[p.UUID] = p
	x.changed(p.UUID)
	return x.appendLocked(&indexLine{V: FormatVersion, Info: &p})
}

// Delete removes a history whose files are gone.
func (x *Index) Delete(id types.UUID) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, ok := x.infos[id]; !ok {
		return nil
	}
	delete(x.infos, id)
	x.changed(id)
	return x.appendLocked(&indexLine{V: FormatVersion, Gone: &id})
}

func (x *Index) changed(id types.UUID) {
	if x.Changed != nil {
		x.Changed(id)
	}
}

// begin makes sure that the file does not look closed, whatever happens from now on: somebody is about
// to change a history.
func (x *Index) begin() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.clean {
		return nil
	}
	return x.appendLocked(&indexLine{V: FormatVersion})
}

// closed reports whether the file may look closed.
func (x *Index) closed() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.clean
}

// appendLocked writes a line. The first after a "closed" is synced: if power fails later, the file
// must not look closed. If that cannot be had, the file is written anew.
//
// +checklocks:x.mu
func (x *Index) appendLocked(l *indexLine) error {
	if !x.clean && x.lines > 2*len(x.infos)+1000 {
		return x.compactLocked(durable.Cached)
	}
	if x.log == nil {
		if !x.ended {
			return x.compactLocked(durable.Durable)
		}
		return types.Errorf(types.ErrUnavailable, "Put", x.path, "the index is closed")
	}
	b, err := json.Marshal(l)
	if err != nil {
		return types.Errorf(types.ErrInvalid, "Put", x.path, "%w", err)
	}
	err = x.log.Append(append(b, '\n'))
	if err == nil && (x.clean || l.Closed) {
		err = x.log.Sync()
	}
	if err != nil && x.clean {
		return x.compactLocked(durable.Durable)
	}
	if err != nil {
		return err
	}
	x.lines++
	x.clean = l.Closed
	return nil
}

// compactLocked writes the file anew, with one line for each history, in the order of the UUIDs. After an error
// the file is as it was, and is not written to.
//
// +checklocks:x.mu
func (x *Index) compactLocked(class durable.Class) (err error) {
	var b bytes.Buffer
	for _, p := range x.sortedLocked() {
		line, err := json.Marshal(indexLine{V: FormatVersion, Info: &p})
		if err != nil {
			return types.Errorf(types.ErrInvalid, "Put", x.path, "%w", err)
		}
		b.Write(append(line, '\n'))
	}
	if x.log != nil {
		x.log.Close()
		x.log = nil
	}
	if err := durable.WriteFile(x.fs, x.path, b.Bytes(), class); err != nil {
		return err
	}
	x.lines, x.clean = len(x.infos), false
	x.log, _, err = durable.OpenLog(x.fs, x.path, nil)
	return err
}

// Close writes that the index is complete, and closes it.
func (x *Index) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ended = true
	if x.log == nil {
		return nil
	}
	var err error
	if !x.clean {
		x.lines = 0 // not the time to compact
		err = x.appendLocked(&indexLine{V: FormatVersion, Closed: true})
	}
	err = errors.Join(err, x.log.Close())
	x.log = nil
	return err
}

// abandon closes the file without saying so in it: the next start makes it anew.
func (x *Index) abandon() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ended = true
	if x.log == nil {
		return nil
	}
	err := x.log.Close()
	x.log = nil
	return err
}

// summary returns p with its long texts cut.
func (p ProcInfo) summary() ProcInfo {
	p.V = FormatVersion
	p.Intent, p.Result = clip(p.Intent), clip(p.Result)
	return p
}

func clip(s string) string {
	if len(s) <= indexText {
		return s
	}
	n := indexText
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return fmt.Sprintf("%s… (%d bytes)", s[:n], len(s))
}
