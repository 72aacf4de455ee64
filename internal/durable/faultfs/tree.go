package faultfs

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// sector is the piece of a file in bytes that reaches the disk apart from the others.
const sector = 512

// node is a file or a directory. Invariant: bytes that kept, a waiting edit or a clone shares with data
// are never changed in place.
type node struct {
	id      int // in the order in which they were made, so that chance does not depend on names
	dir     bool
	data    []byte
	kept    []byte // what the disk has for certain
	waiting []edit // changes of data that it may have or not, in order
	mtime   time.Time
	kids    map[string]*node
	keptDir map[string]*node // what SyncDir has seen
	pending []change         // since then, in order
}

// edit is a write, or a truncation.
type edit struct {
	off    int64 // where the bytes go; the new size of a truncation
	bytes  []byte
	cut    bool // a truncation
	doomed bool // a sync has failed over it: no later one saves it
}

// change is one change of a directory: name now means node, or nothing. A rename is one change; one
// between two directories is a change in each, of the same pair.
type change struct {
	name string
	node *node
	gone string // the old name of a rename
	pair int    // 0 = none
}

func newDir(id int) *node {
	return &node{id: id, dir: true, kids: map[string]*node{}, keptDir: map[string]*node{}}
}

func (n *node) change(c change) { c.apply(n.kids); n.pending = append(n.pending, c) }

func (c change) apply(names map[string]*node) {
	if c.gone != "" {
		delete(names, c.gone)
	}
	switch {
	case c.name == "":
	case c.node == nil:
		delete(names, c.name)
	default:
		names[c.name] = c.node
	}
}

// edit changes the bytes of a file.
func (n *node) edit(e edit) {
	n.data = e.apply(n.data)
	if e.cut { // what lay behind is not in the memory of the system any more
		n.waiting = slices.DeleteFunc(n.waiting, func(w edit) bool { return w.doomed && w.off >= e.off })
	}
	n.waiting = append(n.waiting, e)
	n.mtime = time.Now()
}

// apply returns data with the edit, in other memory unless it only appends.
func (e edit) apply(data []byte) []byte {
	size := int64(len(data))
	switch {
	case e.cut && e.off <= size:
		return data[:e.off:e.off]
	case e.cut:
		return append(data, make([]byte, e.off-size)...)
	case e.off >= size:
		return append(append(data, make([]byte, e.off-size)...), e.bytes...)
	}
	out := make([]byte, max(size, e.off+int64(len(e.bytes))))
	copy(out, data)
	copy(out[e.off:], e.bytes)
	return out
}

// sync makes what waits durable, unless it is doomed.
func (n *node) sync() {
	if !slices.ContainsFunc(n.waiting, func(e edit) bool { return e.doomed }) {
		n.kept, n.waiting = n.data[:len(n.data):len(n.data)], nil
		return
	}
	var doomed []edit
	kept := slices.Clone(n.kept)
	for _, e := range n.waiting {
		if e.doomed {
			doomed = append(doomed, e)
		} else {
			kept = e.apply(kept)
		}
	}
	n.kept, n.waiting = kept, doomed
}

// settle makes everything durable.
func (n *node) settle() {
	n.waiting = slices.DeleteFunc(n.waiting, func(e edit) bool { return e.doomed })
	n.sync()
	if n.dir {
		n.keptDir, n.pending = maps.Clone(n.kids), nil
		for _, k := range n.kids {
			k.settle()
		}
	}
}

// clone returns a copy that shares bytes and nothing else.
func (n *node) clone(seen map[*node]*node) *node {
	if n == nil {
		return nil
	}
	if c := seen[n]; c != nil {
		return c
	}
	c := &node{id: n.id, dir: n.dir, mtime: n.mtime}
	seen[n] = c
	if !n.dir {
		c.data, c.kept, c.waiting = slices.Clip(n.data), slices.Clip(n.kept), slices.Clone(n.waiting)
		return c
	}
	c.kids = make(map[string]*node, len(n.kids))
	for name, k := range n.kids {
		c.kids[name] = k.clone(seen)
	}
	c.keptDir = make(map[string]*node, len(n.keptDir))
	for name, k := range n.keptDir {
		c.keptDir[name] = k.clone(seen)
	}
	c.pending = slices.Clone(n.pending)
	for i := range c.pending {
		c.pending[i].node = c.pending[i].node.clone(seen)
	}
	return c
}

// survivor returns what a power failure leaves of n, all of it durable. n is not changed.
func (n *node) survivor(seed uint64, seen map[*node]*node) *node {
	if s := seen[n]; s != nil {
		return s
	}
	s := &node{id: n.id, dir: n.dir, mtime: n.mtime}
	seen[n] = s
	if !n.dir {
		s.data = slices.Clip(n.kept)
		if seed != 0 && len(n.waiting) > 0 {
			s.data = n.torn(rand.New(rand.NewPCG(seed, uint64(n.id))))
		}
		s.kept = slices.Clip(s.data)
		return s
	}
	names := n.keptDir
	if seed != 0 && len(n.pending) > 0 {
		names = maps.Clone(names)
		r := rand.New(rand.NewPCG(seed, uint64(n.id)))
		last, some := r.IntN(len(n.pending)+1), r.IntN(2) == 0
		for i, c := range n.pending {
			switch {
			case c.pair != 0:
				if rand.New(rand.NewPCG(seed, uint64(c.pair)<<32)).IntN(2) == 0 {
					c.apply(names)
				}
			case some && r.IntN(2) == 0, !some && i < last:
				c.apply(names)
			}
		}
	}
	s.kids = make(map[string]*node, len(names))
	for name, k := range names {
		s.kids[name] = k.survivor(seed, seen)
	}
	s.keptDir = maps.Clone(s.kids)
	return s
}

// torn returns what a power failure leaves of a file of which something was not synced: a beginning of
// the changes, the last of them torn at any byte; or any sectors of them, with zeros in the gaps; and
// either may have zeros at its end, where the size was written before the bytes were.
func (n *node) torn(r *rand.Rand) []byte {
	b := slices.Clone(n.kept)
	switch r.IntN(4) {
	case 0: // all of it
		for _, e := range n.waiting {
			b = e.apply(b)
		}
	case 1: // a beginning
		last := r.IntN(len(n.waiting))
		for _, e := range n.waiting[:last] {
			b = e.apply(b)
		}
		if e := n.waiting[last]; !e.cut {
			e.bytes = e.bytes[:r.IntN(len(e.bytes)+1)]
			b = e.apply(b)
		}
	default: // any of it
		for _, e := range n.waiting {
			b = e.some(b, r)
		}
	}
	if size := len(n.data); len(b) < size && r.IntN(3) == 0 {
		b = append(b, make([]byte, r.IntN(size-len(b)+1))...)
	}
	if fresh := len(b) - len(n.kept); fresh > 0 && r.IntN(4) == 0 {
		clear(b[len(n.kept)+r.IntN(fresh):])
	}
	return b
}

// some applies some sectors of an edit.
func (e edit) some(b []byte, r *rand.Rand) []byte {
	if e.cut {
		if r.IntN(2) == 0 {
			b = e.apply(b)
		}
		return b
	}
	for off, rest := e.off, e.bytes; len(rest) > 0; {
		n := min(int(sector-off%sector), len(rest))
		if r.IntN(2) == 0 {
			b = edit{off: off, bytes: rest[:n]}.apply(b)
		}
		off, rest = off+int64(n), rest[n:]
	}
	return b
}
