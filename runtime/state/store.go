package state

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"rnix/internal/durable"
	"rnix/types"
)

// The files beside the state. Each of them, and the temporary ones of internal/durable, is overlooked by
// runtime/worktree, which has the same names.
const (
	badName    = StateFileName + ".bad" // the last document that could not be read, for whoever wants to look
	lockName   = "state.lock"
	ignoreName = ".gitignore" // that git overlooks the directory, itself included
)

// ignoreText is what is in it.
const ignoreText = "*\n"

// maxState bounds a document, in bytes.
const maxState = 16 << 20

// lockWait bounds how long a writer waits for another one.
const lockWait = 10 * time.Second

// Store reads and writes the states of work trees. The zero value is ready to use. Safe for concurrent use, also by
// several processes: writers of one work tree take turns, however its path is spelled.
type Store struct {
	mu sync.Mutex // leaf
	// By canonical path.
	turns map[string]*turn // +checklocks:mu

	fsys func(worktree string) (durable.FS, error) // for tests; nil = the machine's
}

// NewStore returns a Store.
func NewStore() *Store { return &Store{} }

// turn is the lock of one work tree in this process. It is in the table as long as somebody has or wants it.
type turn struct {
	mu    sync.Mutex
	users int
}

// Read returns the state of a work tree. There being none is ErrNotFound; one that cannot be read is ErrMalformed;
// one of a newer program is ErrNewerSchema. It takes no lock: writers replace the file as a whole.
func (s *Store) Read(worktree string) (*State, error) {
	fsys, err := s.open(worktree)
	if err != nil {
		return nil, err
	}
	return read(fsys, Path(worktree))
}

// ReadExpect is Read for somebody who works on an issue. If both have an identifier and they differ, the error is
// ErrIdentifierMismatch, and the state is returned with it.
func (s *Store) ReadExpect(worktree, identifier string) (*State, error) {
	st, err := s.Read(worktree)
	if err == nil && identifier != "" && st.IssueIdentifier != "" && st.IssueIdentifier != identifier {
		return st, types.Errorf(types.ErrConflict, "Read", Path(worktree), "%w: it is of %s, not of %s", ErrIdentifierMismatch, st.IssueIdentifier, identifier)
	}
	return st, err
}

// Write replaces the state of a work tree, durably, and sets Schema and LastUpdatedAt of st. What could not be read is kept
// beside it under the name state.json.bad; one of a newer program is not replaced (ErrNewerSchema).
func (s *Store) Write(worktree string, st *State) error {
	if st == nil {
		return types.Errorf(types.ErrInvalid, "Write", Path(worktree), "there is no state to write")
	}
	_, err := s.change(worktree, func(*State) (*State, error) { return st, nil })
	return err
}

// Update lets fn change the state of a work tree while no other writer can, and returns what was written. It begins with an empty one if there
// is none, or none that can be read: that one is kept under the name state.json.bad. If fn fails, nothing is
// written and its error is returned. fn must not call the Store.
func (s *Store) Update(worktree string, fn func(*State) error) (*State, error) {
	return s.change(worktree, func(old *State) (*State, error) {
		if old == nil {
			old = &State{}
		}
		return old, fn(old)
	})
}

// UpdateOwned is Update for a session that has begun: if the work tree has none, or none that can be read, or that of another session, nothing is
// written and the error is ErrNotOwner.
func (s *Store) UpdateOwned(worktree string, own Fence, fn func(*State) error) (*State, error) {
	return s.change(worktree, func(old *State) (*State, error) {
		if old == nil {
			return nil, types.Errorf(types.ErrConflict, "Update", Path(worktree), "%w: there is none", ErrNotOwner)
		}
		if old.Fence() != own {
			return nil, types.Errorf(types.ErrConflict, "Update", Path(worktree), "%w: it is of %q, begun at %d", ErrNotOwner, old.SessionID, old.StartedAt)
		}
		return old, fn(old)
	})
}

// Heartbeat notes that the session was alive at a time in ms since 1970. It never goes back: an earlier time than the one that is there
// changes nothing. Errors as for UpdateOwned.
func (s *Store) Heartbeat(worktree string, own Fence, at int64) error {
	_, err := s.UpdateOwned(worktree, own, func(st *State) error {
		st.LastHeartbeat = max(st.LastHeartbeat, at)
		return nil
	})
	return err
}

// change is one write: it locks, reads, lets decide, and replaces the file. decide gets nil if there is no state that can be
// read.
func (s *Store) change(worktree string, decide func(old *State) (*State, error)) (*State, error) {
	key := canonical(worktree)
	t := s.take(key)
	defer s.give(key, t)
	fsys, err := s.open(worktree)
	if err != nil {
		return nil, err
	}
	path := Path(worktree)
	if err := makeDir(fsys, filepath.Dir(path)); err != nil {
		return nil, err
	}
	unlock, err := lock(fsys, filepath.Join(filepath.Dir(path), lockName))
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := durable.RemoveTemp(fsys, filepath.Dir(path)); err != nil { // of one that was killed
		return nil, err
	}
	old, err := read(fsys, path)
	malformed := errors.Is(err, ErrMalformed)
	if err != nil && !malformed && !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	st, err := decide(old)
	if err != nil {
		return nil, err
	}
	if old == nil { // who made the directory may have been killed before its name was synced
		if err := fsys.SyncDir(worktree); err != nil {
			return nil, types.Errorf(types.ErrStorage, "Write", path, "%w", err)
		}
	}
	if malformed {
		if err := keep(fsys, path); err != nil {
			return nil, err
		}
	}
	return st, write(fsys, path, st)
}

// makeDir makes the directory of the state, if it is not there, such that no git shows it: what it is told to overlook
// stands in the directory itself, and no configuration says it. One that is there is somebody's, and is left as it is.
func makeDir(fsys durable.FS, dir string) error {
	if _, err := fsys.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return durable.MkdirAll(fsys, dir)
	}
	if err := fsys.Mkdir(dir, durable.DirPerm); err != nil {
		return durable.MkdirAll(fsys, dir) // somebody was faster, or what it is made in is not there either
	}
	path := filepath.Join(dir, ignoreName)
	f, err := fsys.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, durable.FilePerm)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil {
		_, err = f.Write([]byte(ignoreText))
		err = errors.Join(err, f.Sync(), f.Close())
		if err != nil {
			err = errors.Join(err, fsys.Remove(path))
		}
	}
	if err != nil { // the next one makes it again
		return types.Errorf(types.ErrStorage, "Write", path, "%w", errors.Join(err, fsys.Remove(dir)))
	}
	return nil
}

// take waits for this process's turn to write to the work tree of a canonical path. The caller calls give.
//
// +checklocksacquire:t.mu
func (s *Store) take(key string) (t *turn) {
	s.mu.Lock()
	if s.turns == nil {
		s.turns = map[string]*turn{}
	}
	t = s.turns[key]
	if t == nil {
		t = &turn{}
		s.turns[key] = t
	}
	t.users++
	s.mu.Unlock()
	t.mu.Lock()
	return t
}

// give ends a turn.
//
// +checklocksrelease:t.mu
func (s *Store) give(key string, t *turn) {
	t.mu.Unlock()
	s.mu.Lock()
	if t.users--; t.users == 0 {
		delete(s.turns, key)
	}
	s.mu.Unlock()
}

// canonical returns the one spelling of a path.
func canonical(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return path
}

// lock takes the lock that processes share, and waits for it, but not for ever.
func lock(fsys durable.FS, name string) (unlock func(), err error) {
	pause := time.Millisecond
	for waited := time.Duration(0); ; waited += pause {
		held, err := fsys.Lock(name)
		if err == nil {
			return func() { held.Close() }, nil
		}
		if types.CodeOf(err) != types.ErrConflict || waited >= lockWait {
			return nil, err
		}
		<-time.After(pause)
		pause = min(2*pause, 50*time.Millisecond)
	}
}

// read reads the document at path.
func read(fsys durable.FS, path string) (*State, error) {
	b, err := load(fsys, path)
	if err != nil {
		return nil, err
	}
	return parse(path, b)
}

// load returns what is in the document at path. What works there may put anything in its place at any moment.
func load(fsys durable.FS, path string) ([]byte, error) {
	f, err := fsys.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // a pipe of that name must not hold us up
	if errors.Is(err, fs.ErrNotExist) {
		return nil, types.Errorf(types.ErrNotFound, "Read", path, "%w", ErrNotFound)
	}
	if err != nil {
		return nil, types.Errorf(types.ErrStorage, "Read", path, "%w", err)
	}
	defer f.Close() // nothing was written
	info, err := f.Stat()
	if err != nil {
		return nil, types.Errorf(types.ErrStorage, "Read", path, "%w", err)
	}
	var b []byte
	if info.Mode().IsRegular() && info.Size() <= maxState {
		if b, err = io.ReadAll(io.LimitReader(f, maxState+1)); err != nil {
			return nil, types.Errorf(types.ErrStorage, "Read", path, "%w", err)
		}
	}
	if !info.Mode().IsRegular() || info.Size() > maxState || len(b) > maxState { // it may grow
		return nil, types.Errorf(types.ErrInvalid, "Read", path, "is no file of at most %d bytes; remove it", maxState)
	}
	return b, nil
}

// keep copies the document that cannot be read, before it is replaced.
func keep(fsys durable.FS, path string) error {
	b, err := load(fsys, path)
	if err != nil {
		return err
	}
	return durable.WriteFile(fsys, filepath.Join(filepath.Dir(path), badName), b, durable.Durable)
}

func write(fsys durable.FS, path string, st *State) error {
	st.Schema, st.LastUpdatedAt = SchemaVersion, time.Now().UnixMilli()
	b, err := json.MarshalIndent(st, "", "  ")
	if err != nil {
		return types.Errorf(types.ErrInvalid, "Write", path, "%w", err)
	}
	if len(b) >= maxState {
		return types.Errorf(types.ErrInvalid, "Write", path, "the document has %d bytes, and at most %d are read", len(b), maxState)
	}
	return durable.WriteFile(fsys, path, append(b, '\n'), durable.Durable)
}
