package fs

import (
	"crypto/sha256"
	"sync"

	"rnix/types"
)

// Sum is the hash of a file's whole content.
type Sum = [sha256.Size]byte

// SumOf returns the hash of content.
func SumOf(content []byte) Sum { return sha256.Sum256(content) }

// Seen is the ledger of which process knows which content of which file, and of which process of ours
// wrote a file last. Paths are absolute and free of symbolic links. It is kept in memory only: after
// a restart a process has to read again what it wants to overwrite. Safe for concurrent use.
type Seen struct {
	mu      sync.Mutex
	known   map[types.PID]map[string]Sum // +checklocks:mu
	writers map[string]written           // +checklocks:mu
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
	return &Seen{known: make(map[types.PID]map[string]Sum), writers: make(map[string]written)}
}

// Read notes that a process has read a file with this content.
func (s *Seen) Read(pid types.PID, path string, sum Sum) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.knowLocked(pid, path, sum)
}

// Wrote notes that a process has given a file this content.
func (s *Seen) Wrote(pid types.PID, path string, sum Sum) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.knowLocked(pid, path, sum)
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
		s.knowLocked(pid, to, sum)
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
	delete(s.known[pid], path)
	delete(s.writers, path)
}

// Drop forgets what a process has seen. It is called when the process has ended; what the process
// wrote is remembered for the conflicts of others.
func (s *Seen) Drop(pid types.PID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, pid)
}
