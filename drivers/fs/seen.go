package fs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"time"

	"rnix/types"
	"rnix/vfs"
)

// Sum is the hash of a file's whole content.
type Sum = [sha256.Size]byte

// SumOf returns the hash of content.
func SumOf(content []byte) Sum { return sha256.Sum256(content) }

// Seen is the ledger of which process knows which content of which file, and of which process of ours
// wrote a file last. Paths are absolute and free of symbolic links. What a process knows is kept beside its history, too, so that it
// still knows it when it is resumed, and a fork of it does; that is not synced: what power loss takes has to be read again. Safe for
// concurrent use.
type Seen struct {
	mu      sync.Mutex
	known   map[types.PID]map[string]Sum // +checklocks:mu
	kept    map[types.PID]keptLedger     // +checklocks:mu
	writers map[string]written           // +checklocks:mu
}

// keptLedger is where on disk stands what a process knows.
type keptLedger struct {
	file string
	root string // what paths in it are relative to, where they are below
}

// seenFile is the file in the scratch directory of a process with what it knows, a line for each change. step.Blobs.CopySeen, which gives it to a fork,
// knows its name and its times. Part of the on-disk format.
const seenFile = "seen.jsonl"

// maxSeenFile is how large it grows, in bytes: what comes behind is kept in memory only.
const maxSeenFile = 8 << 20

// seenLine is a line of it. An empty sum says that the file is known no more.
type seenLine struct {
	Path string    `json:"path"` // relative to the directory of the process if it is below it
	Sum  string    `json:"sum,omitempty"`
	Time time.Time `json:"time"`
}

type written struct {
	by  types.PID
	sum Sum
}

// The ledger forgets an arbitrary entry beyond these; the worst that follows is that a file must be
// read again, or that a conflict does not name its author.
const (
	maxKnown   = 16_384 // files per process
	maxWriters = 65_536 // files
)

// NewSeen returns an empty ledger.
func NewSeen() *Seen {
	return &Seen{known: make(map[types.PID]map[string]Sum), kept: make(map[types.PID]keptLedger), writers: make(map[string]written)}
}

// Bind reads what a process has known in an earlier run, or what the process of which it is a fork knew. It is called before anything is said of the
// process by a call of it, and does nothing after the first time; what was said before counts. A caller that is no process, or that has no scratch directory, has kept nothing.
func (s *Seen) Bind(c vfs.Caller) {
	if c.PID == 0 || c.Scratch == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, bound := s.kept[c.PID]; bound {
		return
	}
	root, err := filepath.EvalSymlinks(c.WorkDir)
	if err != nil {
		root = c.WorkDir
	}
	k := keptLedger{filepath.Join(c.Scratch, seenFile), root}
	s.kept[c.PID] = k
	said := s.known[c.PID] // of this run already: of a file that was put back before the process went on
	delete(s.known, c.PID)
	s.loadLocked(c.PID, k)
	for path, sum := range said {
		s.knowLocked(c.PID, path, sum)
		s.keepLocked(c.PID, path, &sum)
	}
}

// loadLocked reads what stands on disk.
//
// +checklocks:s.mu
func (s *Seen) loadLocked(pid types.PID, k keptLedger) {
	raw, err := os.ReadFile(k.file)
	if err != nil {
		return
	}
	for _, line := range bytes.Split(raw, []byte{'\n'}) {
		var l seenLine
		if json.Unmarshal(line, &l) != nil || l.Path == "" {
			continue // the end of a write that was cut off
		}
		if !filepath.IsAbs(l.Path) {
			l.Path = filepath.Join(k.root, l.Path)
		}
		sum, err := hex.DecodeString(l.Sum)
		if err != nil || len(sum) != len(Sum{}) {
			delete(s.known[pid], l.Path)
			continue
		}
		s.knowLocked(pid, l.Path, Sum(sum))
	}
}

// keepLocked writes that a process knows a file by this content; nil = that it does not any more.
//
// +checklocks:s.mu
func (s *Seen) keepLocked(pid types.PID, path string, sum *Sum) {
	k, bound := s.kept[pid]
	if !bound {
		return
	}
	l := seenLine{Path: path, Time: time.Now().UTC()}
	if rel, err := filepath.Rel(k.root, path); err == nil && filepath.IsLocal(rel) {
		l.Path = rel
	}
	if sum != nil {
		l.Sum = hex.EncodeToString(sum[:])
	}
	line, err := json.Marshal(l)
	if err != nil || os.MkdirAll(filepath.Dir(k.file), 0o700) != nil {
		return
	}
	f, err := os.OpenFile(k.file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return // it has to be read again after a resume
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.Size() < maxSeenFile {
		_, _ = f.Write(append(line, '\n'))
	}
}

// Read notes that a process has read a file with this content.
func (s *Seen) Read(pid types.PID, path string, sum Sum) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was, ok := s.known[pid][path]; !ok || was != sum {
		s.keepLocked(pid, path, &sum)
	}
	s.knowLocked(pid, path, sum)
}

// Wrote notes that a process has given a file this content.
func (s *Seen) Wrote(pid types.PID, path string, sum Sum) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.knowLocked(pid, path, sum)
	s.keepLocked(pid, path, &sum)
	if len(s.writers) >= maxWriters {
		evict(s.writers)
	}
	s.writers[path] = written{pid, sum}
}

// +checklocks:s.mu
func (s *Seen) knowLocked(pid types.PID, path string, sum Sum) {
	files := s.known[pid]
	if files == nil {
		files = make(map[string]Sum)
		s.known[pid] = files
	}
	if len(files) >= maxKnown {
		evict(files)
	}
	files[path] = sum
}

func evict[V any](m map[string]V) {
	for k := range m {
		delete(m, k)
		return
	}
}

// Known returns the content of a file that a process has seen last.
func (s *Seen) Known(pid types.PID, path string) (Sum, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum, ok := s.known[pid][path]
	return sum, ok
}

// Writer returns the process of ours that gave a file this content, if one did.
func (s *Seen) Writer(path string, sum Sum) (types.PID, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, ok := s.writers[path]
	return w.by, ok && w.sum == sum
}

// Moved notes that a process has moved a file. What is below a directory that was moved is not
// followed; it has to be read again.
func (s *Seen) Moved(pid types.PID, from, to string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sum, ok := s.known[pid][from]; ok {
		delete(s.known[pid], from)
		s.keepLocked(pid, from, nil)
		s.knowLocked(pid, to, sum)
		s.keepLocked(pid, to, &sum)
	}
	if w, ok := s.writers[from]; ok {
		delete(s.writers, from)
		s.writers[to] = w
	}
}

// Deleted notes that a process has deleted a file.
func (s *Seen) Deleted(pid types.PID, path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.known[pid][path]; ok {
		s.keepLocked(pid, path, nil)
	}
	delete(s.known[pid], path)
	delete(s.writers, path)
}

// Drop forgets what a process has seen, but not what is kept of it on disk. It is called when the process has ended; what the
// process wrote is remembered for the conflicts of others.
func (s *Seen) Drop(pid types.PID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, pid)
	delete(s.kept, pid)
}
