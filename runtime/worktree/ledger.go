package worktree

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"rnix/internal/durable"
	"rnix/types"
)

// StateDir is where the records are, below the parent directory. No session or leaf can have its name.
const StateDir = ".worktrees"

// recordVersion is the format of the records that this program writes.
const recordVersion = 1

// The states of a checkout. Part of the on-disk format.
const (
	stateClaimed = "claimed" // being made: nobody has been told of it
	stateReady   = "ready"
)

// record is what is known of one checkout. It is written before anything is made, and again when all
// is made, so that what a crash leaves is known as ours. Part of the on-disk format.
type record struct {
	Version  int           `json:"v"`
	Session  string        `json:"session"`
	State    string        `json:"state"`
	Path     string        `json:"path"`
	Strategy CloneStrategy `json:"strategy"`
	Parent   string        `json:"parent,omitempty"`  // worktree-add: the repository, as it was named
	Common   string        `json:"common,omitempty"`  // worktree-add: its common git directory
	GitDir   string        `json:"git_dir,omitempty"` // worktree-add: of the work tree
	Branch   string        `json:"branch,omitempty"`
	Attempts int           `json:"attempts,omitempty"`
	Device   uint64        `json:"device,omitempty"` // of the directory that was made, with Inode
	Inode    uint64        `json:"inode,omitempty"`
	URL      string        `json:"url,omitempty"`  // clone: of the remote, without a password
	Tags     []string      `json:"tags,omitempty"` // clone: that the remote had, each as its object and its name
	Tips     []string      `json:"tips,omitempty"` // clone: the commits of the branches that the remote had
	Time     time.Time     `json:"time"`

	BaseRef     string        `json:"base_ref,omitempty"`
	BaseSHA     string        `json:"base_sha,omitempty"`
	BaseFetched bool          `json:"base_fetched,omitempty"`
	BaseFetch   time.Duration `json:"base_fetch_ns,omitempty"`
}

func (r *record) result() ProvisionResult {
	return ProvisionResult{Path: r.Path, Strategy: r.Strategy, Attempts: r.Attempts, Branch: r.Branch, BaseRef: r.BaseRef,
		BaseSHA: r.BaseSHA, BaseFetched: r.BaseFetched, BaseFetchDuration: r.BaseFetch}
}

// isThere reports whether the directory that the record means is still there: the same one, not
// another under its name.
func (r *record) isThere() bool {
	dev, ino, ok := identity(r.Path)
	return ok && dev == r.Device && ino == r.Inode
}

// identity returns what tells a directory from all others of this machine.
func identity(path string) (dev, ino uint64, ok bool) {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return 0, 0, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return uint64(st.Dev), st.Ino, true
}

// ledger keeps the records, each in a file of its own. Who writes one has the lock of its session.
type ledger struct {
	fs  durable.FS
	dir string
}

func (l ledger) path(session string) string { return filepath.Join(l.dir, session+".json") }

// coming is where the directory of a checkout is made, before it gets its name.
func (l ledger) coming(session string) string { return filepath.Join(l.dir, session+".coming") }

// read returns the record of a session; nil if there is none.
func (l ledger) read(session string) (*record, error) {
	var r record
	there, err := l.load(l.path(session), &r, func() (int, bool) { return r.Version, r.Session == session && filepath.IsAbs(r.Path) })
	if err != nil || !there {
		return nil, err
	}
	return &r, nil
}

// load reads a file of ours into what holder points to. whole says which version it is of, and whether
// it is what it should be. false if there is no such file.
func (l ledger) load(path string, holder any, whole func() (version int, ok bool)) (bool, error) {
	b, err := durable.ReadFile(l.fs, path)
	if types.CodeOf(err) == types.ErrNotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	err = json.Unmarshal(b, holder)
	version, ok := whole()
	if err != nil || version < 1 || !ok {
		return false, types.Errorf(types.ErrStorage, "Read", path, "is not the record of session %s: look at its checkout, then move this file away", strings.TrimSuffix(filepath.Base(path), ".json"))
	}
	if version > recordVersion {
		return false, types.Errorf(types.ErrVersion, "Read", path, "written in format %d by a newer program, this one reads up to %d", version, recordVersion)
	}
	return true, nil
}

// write makes a record durable.
func (l ledger) write(r *record) error {
	r.Version, r.Time = recordVersion, time.Now().UTC()
	return l.save(l.path(r.Session), r)
}

// save makes a file of ours durable.
func (l ledger) save(path string, holder any) error {
	b, err := json.Marshal(holder)
	if err != nil {
		return types.Errorf(types.ErrInternal, "Write", path, "%w", err)
	}
	return durable.WriteFile(l.fs, path, append(b, '\n'), durable.Durable)
}

// forget removes the record of a session.
func (l ledger) forget(session string) error { return l.drop(l.path(session)) }

// drop removes a file of ours. One that is not there is no error.
func (l ledger) drop(path string) error {
	err := l.fs.Remove(path)
	if err == nil {
		err = l.fs.SyncDir(filepath.Dir(path))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return types.Errorf(types.ErrStorage, "Forget", path, "%w", err)
	}
	return nil
}

func (l ledger) sessions() ([]string, error) {
	entries, err := l.fs.ReadDir(l.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, types.Errorf(types.ErrStorage, "Sessions", l.dir, "%w", err)
	}
	var out []string
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || checkSession("Sessions", name) != nil {
			continue
		}
		if r, err := l.read(name); err != nil {
			return nil, err
		} else if r != nil && r.State == stateReady {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out, nil
}
