// Package faultfs is a file system in memory, for tests, that can fail at any single call and that
// can crash: what was not synced is then lost, torn or half there, as a seed decides.
//
// It owns the model of what a disk keeps: bytes are kept by File.Sync, names by SyncDir, and neither
// by anything else. It is stricter than most real file systems, so what survives here survives there.
package faultfs

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

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
	mu    sync.Mutex
	root  *node          // +checklocks:mu
	gen   int            // crashes so far; +checklocks:mu
	calls int            // +checklocks:mu
	fault Fault          // +checklocks:mu
	locks map[string]int // name to generation; +checklocks:mu
	trace []string       // +checklocks:mu
}

// node is a file or a directory. Invariant: kept never shares bytes with data that data may still
// change.
type node struct {
	dir     bool
	data    []byte
	kept    []byte // what File.Sync has seen
	mtime   time.Time
	kids    map[string]*node
	keptDir map[string]*node // what SyncDir has seen
	pending []change         // since then, in order
}

// change is one change of a directory: name now means node, or nothing. A rename is one change.
type change struct {
	name string
	node *node
	gone string // the old name of a rename
}

func newDir() *node {
	return &node{dir: true, kids: map[string]*node{}, keptDir: map[string]*node{}}
}

// New returns an empty file system with the given directories, which are durable.
func New(dirs ...string) *FS {
	f := &FS{root: newDir(), locks: map[string]int{}}
	for _, d := range dirs {
		n := f.root
		for _, name := range split(d) {
			if n.kids[name] == nil {
				n.kids[name] = newDir()
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

// Fail makes a call fail. It replaces the fault before it and starts counting anew.
func (f *FS) Fail(x Fault) { f.mu.Lock(); defer f.mu.Unlock(); f.fault, f.calls, f.trace = x, 0, nil }

// CrashAt makes the n-th call from now and all later ones fail until Crash is called.
func (f *FS) CrashAt(n int) { f.Fail(Fault{At: n, Err: ErrCrashed, Persistent: true}) }

// Crash loses what was not synced and starts the machine again, without a fault. With seed 0 all of
// it is lost. Any other seed keeps, of each directory, a beginning of its changes, and of each file
// a beginning of its unsynced bytes, of which an end may be zeros.
func (f *FS) Crash(seed uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gen++
	f.fault, f.calls, f.trace = Fault{}, 0, nil
	f.locks = map[string]int{}
	f.root.crash(rand.New(rand.NewPCG(seed, 1)), seed == 0, map[*node]bool{})
}

func (n *node) crash(r *rand.Rand, worst bool, seen map[*node]bool) {
	if seen[n] {
		return
	}
	seen[n] = true
	if !n.dir {
		n.data = n.torn(r, worst)
		n.kept = n.data
		return
	}
	names := maps.Clone(n.keptDir)
	if !worst {
		for _, c := range n.pending[:r.IntN(len(n.pending)+1)] {
			c.apply(names)
		}
	}
	n.kids, n.keptDir, n.pending = names, maps.Clone(names), nil
	for _, name := range slices.Sorted(maps.Keys(names)) {
		names[name].crash(r, worst, seen)
	}
}

func (n *node) torn(r *rand.Rand, worst bool) []byte {
	if worst {
		return slices.Clone(n.kept)
	}
	if len(n.data) < len(n.kept) || string(n.data[:len(n.kept)]) != string(n.kept) {
		return slices.Clone([][]byte{n.kept, n.data}[r.IntN(2)])
	}
	fresh := len(n.data) - len(n.kept)
	b := slices.Clone(n.data[:len(n.kept)+r.IntN(fresh+1)])
	if r.IntN(2) == 0 {
		clear(b[len(n.kept)+r.IntN(len(b)-len(n.kept)+1):])
	}
	return b
}

func (c change) apply(names map[string]*node) {
	if c.gone != "" {
		delete(names, c.gone)
	}
	if c.node == nil {
		delete(names, c.name)
	} else {
		names[c.name] = c.node
	}
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
	parent.change(change{name: base, node: newDir()})
	return nil
}

func (n *node) change(c change) { c.apply(n.kids); n.pending = append(n.pending, c) }

// Rename gives a file another name in the same directory.
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
	if from != to {
		return pathError("rename", oldname, errors.New("this file system renames only within a directory"))
	}
	to.change(change{name: newbase, node: n, gone: oldbase})
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
	n.keptDir, n.pending = maps.Clone(n.kids), nil
	return nil
}

// Lock takes a lock that ends with its Close or with a crash.
func (f *FS) Lock(name string) (io.Closer, error) {
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

var _ durable.FS = (*FS)(nil)
