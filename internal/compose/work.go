package compose

import (
	"fmt"
	"slices"
	"strings"

	"rnix/types"
)

// Work is an attempt whose work tree holds work with which the work tree of another node begins.
type Work struct {
	Key  Key
	UUID types.UUID
}

// Checkout is what the work tree of an attempt is to be.
type Checkout struct {
	Want    *Worktree  // nil = none
	Attempt int        // from 1
	Origin  types.UUID // of the first attempt; zero = this is it
	Works   []Work     // what it begins with, in the order in which they are merged
}

// Made is what has become of a Checkout. Undo is never nil, and removes it.
type Made struct {
	Undo func()
	Told string // what the agent must know of its work tree; "" = nothing
}

// Clash says that the work of a node cannot be merged with that of others: nothing was made of either.
type Clash struct {
	Key   Key      // whose work does not fit
	With  []Key    // what was there before
	Files []string // that both have changed
	Bare  []string // those of them that a node cannot resolve, since git writes no marks into them
	Mend  []string // commands by which a person brings them together
}

// Error says who has changed what, and what a person can do.
func (c *Clash) Error() string {
	with := make([]string, len(c.With))
	for i, k := range c.With {
		with[i] = k.String()
	}
	bare := ""
	if len(c.Bare) > 0 {
		bare = fmt.Sprintf(" (git writes no marks into %s, so the node would have one side alone)", few(c.Bare))
	}
	return fmt.Sprintf("the work of %s and of %s does not merge: both have changed %s%s; resolve it with: %s", c.Key, strings.Join(with, ", "), few(c.Files), bare, strings.Join(c.Mend, " && "))
}

// Works returns what the work tree of a node begins with, in the order of the plan: what those have done that it waits for and that have
// succeeded. In the place of a node that has no work tree, or has not succeeded, stands what that one would have begun with.
func Works(s *State, node string) (out []Work) {
	seen := map[string]bool{}
	var add func(name string)
	add = func(name string) {
		above := s.nodes[s.place[name]].node.Above()
		slices.SortFunc(above, func(a, b string) int { return s.place[a] - s.place[b] })
		for _, up := range above {
			if seen[up] {
				continue
			}
			seen[up] = true
			n, done := &s.nodes[s.place[up]], false
			for i := range n.inst {
				if in := &n.inst[i]; n.node.Worktree != nil && in.phase == Succeeded {
					out, done = append(out, Work{in.key, in.note.UUID}), true
				}
			}
			if !done {
				add(up)
			}
		}
	}
	add(node)
	return out
}

// Last returns the nodes whose work trees hold what a workflow comes to: those for which no other waits, and in the place of one without a work
// tree those above it.
func (p *Plan) Last() (out []string) {
	seen := map[string]bool{}
	var add func(name string)
	add = func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		if n := p.File.Agents[name]; n.Worktree != nil {
			out = append(out, name)
		} else {
			for _, up := range n.Above() {
				add(up)
			}
		}
	}
	for _, name := range p.Sinks() {
		add(name)
	}
	within := map[string]bool{} // what others begin with
	for _, name := range out {
		for _, below := range p.Below(name) {
			if below != name && slices.Contains(out, below) {
				within[name] = true
			}
		}
	}
	out = slices.DeleteFunc(out, func(name string) bool { return within[name] })
	slices.SortFunc(out, func(a, b string) int { return slices.Index(p.Order, a) - slices.Index(p.Order, b) })
	return out
}

// blind returns the nodes with work trees of their own whose work a node does not see, since it has none itself.
func (f *File) blind(name string) (of []string) {
	n := f.Agents[name]
	if n.Worktree != nil {
		return nil
	}
	for _, up := range n.Above() {
		if a := f.Agents[up]; a != nil && a.Worktree != nil {
			of = append(of, up)
		}
	}
	return of
}
