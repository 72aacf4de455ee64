// Package faultfs is a file system in memory, for tests, that can fail at any single call and that
// can crash: what was not synced is then lost, torn or half there, as a seed decides. Op describes an
// operation that writes; its methods try every crash and every error on it.
//
// It owns the model of what a disk keeps: bytes are kept by File.Sync, names by SyncDir, and neither
// by anything else. It is stricter than most real file systems, so what survives here survives there.
package faultfs

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"rnix/internal/durable"
	"rnix/types"
)

// ErrCrashed is what handles of before a crash answer, and every call between CrashAt and Crash.
var ErrCrashed = errors.New("the machine has crashed")

// Fault is an error that is to happen.
type Fault struct {
	At         int   // the number of the call that fails, from 1
	Err        error //
	Persistent bool  // every later call fails too
	Short      bool  // a failing write writes half of its bytes first
}

// FS is the file system. Safe for concurrent use.
type FS struct {
	mu   sync.Mutex
	root *node // +checklocks:mu
	// +checklocks:mu
	gen int // crashes so far
	// +checklocks:mu
	made  int   // nodes and pairs of changes so far
	calls int   // +checklocks:mu
	fault Fault // +checklocks:mu
	// +checklocks:mu
	locks  map[string]int // name to generation
	trace  []string       // +checklocks:mu
	record bool           // +checklocks:mu
	past   []moment       // +checklocks:mu
}

// New returns an empty file system with the given directories, which are durable.
func New(dirs ...string) *FS {
	f := &FS{root: newDir(0), locks: map[string]int{}}
	for _, d := range dirs {
		n := f.root
		for _, name := range split(d) {
			if n.kids[name] == nil {
				f.made++
				n.kids[name] = newDir(f.made)
				n.keptDir[name] = n.kids[name]
			}
			n = n.kids[name]
		}
	}
	return f
}

// Calls returns how many calls were made that a Fault can hit.
func (f *FS) Calls() int { f.mu.Lock(); defer f.mu.Unlock(); return f.calls }

// Trace returns the calls so far, as "operation name".
func (f *FS) Trace() []string { f.mu.Lock(); defer f.mu.Unlock(); return slices.Clone(f.trace) }

// Fail makes a call fail. It replaces the fault before it and starts counting anew. What waits when
// a sync fails is doomed: a later sync that succeeds does not save it, as on Linux.
func (f *FS) Fail(x Fault) { f.mu.Lock(); defer f.mu.Unlock(); f.fault, f.calls, f.trace = x, 0, nil }

// CrashAt makes the n-th call from now and all later ones fail until Crash is called.
func (f *FS) CrashAt(n int) { f.Fail(Fault{At: n, Err: ErrCrashed, Persistent: true}) }

// Crash loses what was not synced and starts the machine again, without a fault. With seed 0 all of
// it is lost. Any other seed keeps some of the changes of each directory, in order, and of each file
// a beginning or some sectors of its unsynced bytes; gaps and an end may be zeros.
func (f *FS) Crash(seed uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gen++
	f.fault, f.calls, f.trace = Fault{}, 0, nil
	f.record, f.past = false, nil
	f.locks = map[string]int{}
	f.root = f.root.survivor(seed, map[*node]*node{})
}

// call counts a call and returns the error that is to happen in it.
//
// +checklocks:f.mu
func (f *FS) call(op, name string) error {
	f.calls++
	f.trace = append(f.trace, op+" "+name)
	if f.fault.Err != nil && (f.calls == f.fault.At || f.fault.Persistent && f.calls > f.fault.At) {
		return &fs.PathError{Op: op, Path: name, Err: f.fault.Err}
	}
	return nil
}

func split(name string) []string {
	return strings.FieldsFunc(path.Clean(name), func(r rune) bool { return r == '/' })
}

// find returns the node of a name, and the directory that it is in, which may be there without it.
//
// +checklocks:f.mu
func (f *FS) find(name string) (parent *node, base string, n *node) {
	n = f.root
	for _, base = range split(name) {
		if parent = n; parent == nil || !parent.dir {
			return nil, base, nil
		}
		n = parent.kids[base]
	}
	return parent, base, n
}

func pathError(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// Stat returns what a name means.
func (f *FS) Stat(name string) (fs.FileInfo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.call("stat", name); err != nil {
		return nil, err
	}
	_, base, n := f.find(name)
	if n == nil {
		return nil, pathError("stat", name, fs.ErrNotExist)
	}
	return info(base, n), nil
}

// ReadDir lists a directory, sorted by name.
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.call("readdir", name); err != nil {
		return nil, err
	}
	_, _, n := f.find(name)
	if n == nil || !n.dir {
		return nil, pathError("readdir", name, fs.ErrNotExist)
	}
	var out []fs.DirEntry
	for _, base := range slices.Sorted(maps.Keys(n.kids)) {
		out = append(out, fs.FileInfoToDirEntry(info(base, n.kids[base])))
	}
	return out, nil
}

// Mkdir makes a directory.
func (f *FS) Mkdir(name string, _ fs.FileMode) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.call("mkdir", name); err != nil {
		return err
	}
	parent, base, n := f.find(name)
	switch {
	case n != nil:
		return pathError("mkdir", name, fs.ErrExist)
	case parent == nil || !parent.dir:
		return pathError("mkdir", name, fs.ErrNotExist)
	}
	f.made++
	parent.change(change{name: base, node: newDir(f.made)})
	f.changed("mkdir", name, nil, edit{})
	return nil
}

// Rename gives a file or a directory another name. A file that has that name is replaced.
func (f *FS) Rename(oldname, newname string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.call("rename", newname); err != nil {
		return err
	}
	from, oldbase, n := f.find(oldname)
	to, newbase, _ := f.find(newname)
	if n == nil || to == nil {
		return pathError("rename", oldname, fs.ErrNotExist)
	}
	if old := to.kids[newbase]; old != nil && (old.dir != n.dir || len(old.kids) > 0) {
		return pathError("rename", newname, fs.ErrExist)
	}
	if from == to {
		to.change(change{name: newbase, node: n, gone: oldbase})
	} else {
		f.made++
		from.change(change{gone: oldbase, pair: f.made})
		to.change(change{name: newbase, node: n, pair: f.made})
	}
	f.changed("rename", newname, nil, edit{})
	return nil
}

// Remove removes a file or an empty directory.
func (f *FS) Remove(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.call("remove", name); err != nil {
		return err
	}
	parent, base, n := f.find(name)
	switch {
	case n == nil:
		return pathError("remove", name, fs.ErrNotExist)
	case n.dir && len(n.kids) > 0:
		return pathError("remove", name, errors.New("directory not empty"))
	}
	parent.change(change{name: base})
	f.changed("remove", name, nil, edit{})
	return nil
}

// SyncDir makes the names in a directory survive a crash.
func (f *FS) SyncDir(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.call("syncdir", name); err != nil {
		return err
	}
	_, _, n := f.find(name)
	if n == nil || !n.dir {
		return pathError("syncdir", name, fs.ErrNotExist)
	}
	pairs := map[int]bool{}
	for _, c := range n.pending {
		pairs[c.pair] = c.pair != 0
	}
	n.keptDir, n.pending = maps.Clone(n.kids), nil
	f.root.keepPairs(pairs, map[*node]bool{})
	f.changed("syncdir", name, nil, edit{})
	return nil
}

// keepPairs makes durable the other halves of renames between directories: they are one change.
func (n *node) keepPairs(pairs map[int]bool, seen map[*node]bool) {
	if len(pairs) == 0 || !n.dir || seen[n] {
		return
	}
	seen[n] = true
	n.pending = slices.DeleteFunc(n.pending, func(c change) bool {
		if c.pair != 0 && pairs[c.pair] {
			c.apply(n.keptDir)
			return true
		}
		return false
	})
	for _, k := range n.kids {
		k.keepPairs(pairs, seen)
	}
}

// Lock takes a lock that ends with its Close or with a crash.
func (f *FS) Lock(name string) (durable.Lock, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.call("lock", name); err != nil {
		return nil, err
	}
	if _, held := f.locks[name]; held {
		return nil, types.Errorf(types.ErrConflict, "Lock", name, "another process holds it: pid %s", strconv.Itoa(os.Getpid()))
	}
	f.locks[name] = f.gen
	return &unlock{f, name, f.gen}, nil
}

type unlock struct {
	fs   *FS
	name string
	gen  int
}

func (u *unlock) Close() error {
	u.fs.mu.Lock()
	defer u.fs.mu.Unlock()
	if gen, held := u.fs.locks[u.name]; held && gen == u.gen {
		delete(u.fs.locks, u.name)
	}
	return nil
}

// Check implements durable.Lock: in this file system only whoever holds a lock is there.
func (u *unlock) Check() error { return nil }

var _ durable.FS = (*FS)(nil)
