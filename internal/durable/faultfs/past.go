package faultfs

import (
	"hash/maphash"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
)

// moment is the file system as it was after a change.
type moment struct {
	what string
	root *node
	id   int  // the file that the change has written to; 0 = it was no write
	edit edit // that write
}

// Past is what a file system was after each change, from Record on.
type Past struct{ fs *FS }

// Record keeps from now on what the file system is after each change.
func (f *FS) Record() *Past {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.record, f.past = true, nil
	f.changed("begin", "", nil, edit{})
	return &Past{f}
}

// Changes returns the changes so far, as "operation name". The first is the beginning.
func (p *Past) Changes() []string {
	f := p.fs
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]string, len(f.past))
	for i, m := range f.past {
		out[i] = m.what
	}
	return out
}

// changed records a change that has just been made; a write also names the file and the edit.
//
// +checklocks:f.mu
func (f *FS) changed(op, name string, written *node, e edit) {
	if !f.record {
		return
	}
	m := moment{what: strings.TrimSpace(op + " " + name), root: f.root.clone(map[*node]*node{}), edit: e}
	if written != nil {
		m.id = written.id
	}
	f.past = append(f.past, m)
}

// PowerLoss returns the file system that is found when the power has failed after n recorded changes,
// as Crash leaves it.
func (p *Past) PowerLoss(n int, seed uint64) *FS {
	f := p.fs
	f.mu.Lock()
	defer f.mu.Unlock()
	if seed != 0 {
		seed = seed<<20 | uint64(n)
	}
	return with(f.made, f.past[n].root.survivor(seed, map[*node]*node{}))
}

// Killed returns the file system that is found when the process was killed after n recorded changes. If
// the next one is a write, seeds other than 0 have done a part of it. Nothing else is lost, but what was
// not synced is still not: a power failure may follow.
func (p *Past) Killed(n int, seed uint64) *FS {
	f := p.fs
	f.mu.Lock()
	defer f.mu.Unlock()
	root := f.past[n].root.clone(map[*node]*node{})
	if seed == 0 || n+1 >= len(f.past) || f.past[n+1].id == 0 {
		return with(f.made, root)
	}
	next := f.past[n+1]
	e := next.edit
	e.bytes = e.bytes[:rand.New(rand.NewPCG(seed, uint64(n))).IntN(len(e.bytes)+1)]
	root.walk("", map[*node]bool{}, func(_ string, x *node) {
		if x.id == next.id && len(e.bytes) > 0 {
			x.edit(e)
		}
	})
	return with(f.made, root)
}

// Clone returns a file system that is the same, without fault, trace, locks and record.
func (f *FS) Clone() *FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	return with(f.made, f.root.clone(map[*node]*node{}))
}

// Settle makes everything durable that is there.
func (f *FS) Settle() { f.mu.Lock(); defer f.mu.Unlock(); f.root.settle() }

func with(made int, root *node) *FS { return &FS{root: root, made: made, locks: map[string]int{}} }

// Files returns the bytes of every file by its name; those of a directory, whose name ends in a
// slash, are nil.
func (f *FS) Files() map[string][]byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[string][]byte{}
	f.root.walk("", map[*node]bool{}, func(name string, n *node) {
		if n.dir {
			out[name+"/"] = nil
		} else {
			out[name] = slices.Clip(n.data)
		}
	})
	return out
}

// sum returns a number that differs, as a rule, when names or bytes differ. The chance part of the name of a
// temporary file does not count.
func sum(f *FS, seed maphash.Seed, extra string) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	var h maphash.Hash
	h.SetSeed(seed)
	h.WriteString(extra)
	f.root.walk("", map[*node]bool{}, func(name string, n *node) {
		if base, temp := strings.CutSuffix(name, ".tmp~"); temp {
			name = base[:max(0, len(base)-12)]
		}
		h.WriteString(name)
		h.WriteByte(0)
		maphash.WriteComparable(&h, len(n.data))
		h.Write(n.data)
	})
	return h.Sum64()
}

// walk visits n and what is below it, in the order of the names.
func (n *node) walk(name string, seen map[*node]bool, visit func(string, *node)) {
	if seen[n] {
		return
	}
	seen[n] = true
	visit(name, n)
	for _, base := range slices.Sorted(maps.Keys(n.kids)) {
		n.kids[base].walk(path.Join("/", name, base), seen, visit)
	}
}
