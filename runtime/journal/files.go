package journal

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"rnix/internal/durable"
	"rnix/types"
)

// Names in the directory. Part of the on-disk format: events-<number of the first event>.jsonl,
// cursor-<name>.json.
const (
	metaFile     = "journal.json"
	lockFile     = ".lock"
	eventsPrefix = "events-"
	cursorPrefix = "cursor-"
	fileVersion  = 1
)

// meta is journal.json.
type meta struct {
	V       int    `json:"v"`
	Session string `json:"session"`
	Source  string `json:"source"`
}

// placeFile is cursor-<name>.json.
type placeFile struct {
	V     int    `json:"v"`
	Acked uint64 `json:"acked"`
}

// segment is a file of events.
type segment struct {
	start uint64 // the number of its first event
	size  int64  // bytes that are durable
}

// place is where a reader goes on: the offset of event seq in the segment that begins with start.
type place struct {
	start, seq uint64
	off        int64
}

// files keeps events in files of a directory. One goroutine writes; release is called beside it.
type files struct {
	fs       durable.FS
	dir      string
	session  string
	source   string
	max      int64 // bytes of a segment
	lock     io.Closer
	log      *durable.Log      // the last segment; exclusive to the goroutine that writes
	next     uint64            // as found by openFiles; then exclusive to the goroutine that writes
	cursors  map[string]uint64 // as found by openFiles; not used after it
	cleaning sync.Mutex        // release, forget

	mu sync.Mutex // a leaf
	// By number, at least one.
	segments []segment // +checklocks:mu
}

func newSource() string {
	var b [16]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// openFiles opens the directory, under a lock, and mends the last segment.
func openFiles(opt Options) (f *files, err error) {
	f = &files{fs: opt.FS, dir: opt.Dir, session: opt.Session, max: opt.SegmentBytes, cursors: map[string]uint64{}}
	if err := durable.MkdirAll(f.fs, f.dir); err != nil {
		return nil, err
	}
	lock, err := f.fs.Lock(filepath.Join(f.dir, lockFile))
	if err != nil {
		return nil, err
	}
	f.lock = lock
	defer func() {
		if err != nil {
			lock.Close()
		}
	}()
	if err := durable.RemoveTemp(f.fs, f.dir); err != nil {
		return nil, err
	}
	starts, err := f.list()
	if err != nil {
		return nil, err
	}
	if err := f.identify(opt.Source, len(starts) > 0); err != nil {
		return nil, err
	}
	if err := f.openLast(starts, opt.Logger); err != nil {
		return nil, err
	}
	return f, nil
}

// list finds the segments and the places of cursors.
func (f *files) list() (starts []uint64, err error) {
	entries, err := f.fs.ReadDir(f.dir)
	if err != nil {
		return nil, types.Errorf(types.ErrStorage, "Open", f.dir, "%w", err)
	}
	for _, e := range entries {
		name := e.Name()
		if n, ok := strings.CutPrefix(name, eventsPrefix); ok {
			var start uint64
			if _, err := fmt.Sscanf(n, "%020d.jsonl", &start); err != nil || name != segmentName(start) {
				continue // a tail that was kept when it was cut off
			}
			starts = append(starts, start)
			continue
		}
		n, ok := strings.CutPrefix(name, cursorPrefix)
		if n, ok2 := strings.CutSuffix(n, ".json"); ok && ok2 && cursorName().MatchString(n) {
			var p placeFile
			if err := f.load(name, &p, func() int { return p.V }); err != nil {
				return nil, err
			}
			f.cursors[n] = p.Acked
		}
	}
	slices.Sort(starts)
	return starts, nil
}

func segmentName(start uint64) string { return fmt.Sprintf("%s%020d.jsonl", eventsPrefix, start) }

func (f *files) path(name string) string { return filepath.Join(f.dir, name) }

// load reads a small file of JSON. A missing one is NOT_FOUND.
func (f *files) load(name string, v any, version func() int) error {
	b, err := durable.ReadFile(f.fs, f.path(name))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return types.Errorf(types.ErrStorage, "Open", f.path(name), "is damaged: %w; move it away, and what it says is found anew or told twice", err)
	}
	if version() > fileVersion {
		return types.Errorf(types.ErrVersion, "Open", f.path(name), "has format version %d, this program reads up to %d: use the newer program", version(), fileVersion)
	}
	return nil
}

func (f *files) save(name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return types.Errorf(types.ErrInternal, "Save", f.path(name), "%w", err)
	}
	return durable.WriteFile(f.fs, f.path(name), append(b, '\n'), durable.Durable)
}

// SessionIn returns whose events a directory holds. NOT_FOUND if it holds none.
func SessionIn(dir string) (string, error) {
	var m meta
	f := &files{fs: durable.OS, dir: dir}
	err := f.load(metaFile, &m, func() int { return m.V })
	return m.Session, err
}

// identify finds out whose events these are, or says it of a new journal.
func (f *files) identify(source string, events bool) error {
	var m meta
	err := f.load(metaFile, &m, func() int { return m.V })
	switch {
	case errors.Is(err, types.ErrNotFound) && !events:
		if f.source = source; f.source == "" {
			f.source = newSource()
		}
		return f.save(metaFile, meta{V: fileVersion, Session: f.session, Source: f.source})
	case errors.Is(err, types.ErrNotFound):
		return types.Errorf(types.ErrStorage, "Open", f.path(metaFile), "is missing beside events: it says to which session they belong; put it back, or move the directory away")
	case err != nil:
		return err
	case m.Session != f.session:
		return types.Errorf(types.ErrInvalid, "Open", f.dir, "holds the events of session %q, not of %q; give each session its own directory", m.Session, f.session)
	case source != "" && m.Source != source:
		return types.Errorf(types.ErrInvalid, "Open", f.dir, "holds events that %q wrote, not %q; give each source its own directory", m.Source, source)
	}
	f.source = m.Source
	return nil
}

// openLast opens the segment to which is appended. Numbers go on above all that was ever acknowledged.
func (f *files) openLast(starts []uint64, log *slog.Logger) error {
	f.next = 1
	for _, acked := range f.cursors {
		f.next = max(f.next, acked+1)
	}
	if len(starts) > 0 {
		last := starts[len(starts)-1]
		next := last
		var damage *durable.Damage
		var err error
		f.log, damage, err = durable.OpenBatches(f.fs, f.path(segmentName(last)), func(l durable.Line) error {
			e, _, err := decode(l.Data)
			if err != nil {
				return err
			}
			if e.Seq != next {
				return types.Errorf(types.ErrStorage, "", "", "event %d stands where %d is due", e.Seq, next)
			}
			next++
			return nil
		}, begins)
		if err != nil {
			return err
		}
		if damage != nil {
			log.Warn("the end of a journal was torn and is mended", "damage", damage)
		}
		if err := f.log.Sync(); err != nil { // what is shown to anybody stays
			f.log.Close()
			return err
		}
		var segments []segment
		for i, s := range starts[:len(starts)-1] {
			info, err := f.fs.Stat(f.path(segmentName(s)))
			if err != nil {
				f.log.Close()
				return types.Errorf(types.ErrStorage, "Open", f.path(segmentName(starts[i])), "%w", err)
			}
			segments = append(segments, segment{s, info.Size()})
		}
		f.mu.Lock()
		f.segments = append(segments, segment{last, f.log.Size()})
		f.mu.Unlock()
		if next >= f.next {
			f.next = next
			return nil
		}
		f.log.Close() // events that were acknowledged are not there any more: their numbers are not used again
	}
	return f.begin(f.next)
}

// begin begins a segment.
func (f *files) begin(start uint64) error {
	log, _, err := durable.OpenLog(f.fs, f.path(segmentName(start)), nil)
	if err != nil {
		return err
	}
	if err := log.Sync(); err != nil {
		log.Close()
		return err
	}
	f.log = log
	f.mu.Lock()
	f.segments = append(f.segments, segment{start, f.log.Size()})
	f.mu.Unlock()
	return nil
}

func (f *files) write(events []Event) error {
	if f.log.Size() >= f.max {
		full := f.log
		if err := f.begin(events[0].Seq); err != nil {
			return err
		}
		if err := full.Close(); err != nil {
			return err
		}
	}
	var b []byte
	var err error
	for i, e := range events {
		if b, err = encode(b, e, i == 0); err != nil {
			return err
		}
	}
	if err := f.log.Append(b); err != nil {
		return err
	}
	if err := f.log.Sync(); err != nil {
		return err
	}
	f.next = events[len(events)-1].Seq + 1
	f.mu.Lock()
	f.segments[len(f.segments)-1].size = f.log.Size()
	f.mu.Unlock()
	return nil
}

func (f *files) first() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.segments[0].start
}

func (f *files) releases(upTo uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.segments) > 1 && f.segments[1].start <= upTo+1
}

// release removes the segments of which nothing is needed, oldest first, but never the last one.
func (f *files) release(upTo uint64) error {
	f.cleaning.Lock()
	defer f.cleaning.Unlock()
	for f.releases(upTo) {
		f.mu.Lock()
		gone := f.segments[0]
		f.mu.Unlock()
		err := f.fs.Remove(f.path(segmentName(gone.start)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return types.Errorf(types.ErrStorage, "Release", f.path(segmentName(gone.start)), "%w", err)
		}
		if err := f.fs.SyncDir(f.dir); err != nil {
			return types.Errorf(types.ErrStorage, "Release", f.dir, "%w", err)
		}
		f.mu.Lock()
		f.segments = slices.Delete(f.segments, 0, 1)
		f.mu.Unlock()
	}
	return nil
}

func (f *files) saveCursor(name string, acked uint64) error {
	return f.save(cursorPrefix+name+".json", placeFile{fileVersion, acked})
}

func (f *files) forget(name string) error {
	f.cleaning.Lock()
	defer f.cleaning.Unlock()
	path := f.path(cursorPrefix + name + ".json")
	if err := f.fs.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return types.Errorf(types.ErrStorage, "Forget", path, "%w", err)
	}
	if err := f.fs.SyncDir(f.dir); err != nil {
		return types.Errorf(types.ErrStorage, "Forget", f.dir, "%w", err)
	}
	return nil
}

func (f *files) close() error { return errors.Join(f.log.Close(), f.lock.Close()) }
