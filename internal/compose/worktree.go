package compose

import (
	"strings"
)

// Worktree is a git work tree of its own for each attempt of each instance of a node: of the repository in which the
// node would work. It is written as true, or with a branch or a base.
type Worktree struct {
	Own    bool   `yaml:",flag" json:"own"`
	Branch string `yaml:"branch" json:"branch,omitempty"` // of the first attempt; later ones add a number. "" = named after the node
	Base   string `yaml:"base" json:"base,omitempty"`     // the commit or branch at which it begins; "" = what is checked out
	// Conflicts says what becomes of the node if the work of those that it waits for does not merge; "" = Stop.
	Conflicts Conflicts `yaml:"conflicts" json:"conflicts,omitempty"`
}

// Conflicts is what becomes of a node if what it is to begin with does not merge. Part of the on-disk format.
type Conflicts string

// What can become of it.
const (
	Stop    Conflicts = "stop"    // it fails without being started, and a person resolves it
	Resolve Conflicts = "resolve" // it is started with the marks of the conflict in the files, and resolves it
)

// UnmarshalText reads what is to become of a node.
func (c *Conflicts) UnmarshalText(b []byte) error {
	return oneOf(c, string(b), []Conflicts{Stop, Resolve}, "a way to deal with conflicts")
}

// worktree checks the work tree of a node.
func (c *checker) worktree(key string, n *Node) {
	w := n.Worktree
	switch said := c.Has(key+".branch") || c.Has(key+".base") || c.Has(key+".conflicts"); {
	case said:
		w.Own = true
	case !w.Own:
		if n.Worktree = nil; len(c.Keys(key)) == 0 && !c.Has(key) {
			c.Problemf(key, "write true, or {branch: NAME, base: COMMIT, conflicts: stop or resolve}")
		}
		return
	}
	for sub, name := range map[string]string{"branch": w.Branch, "base": w.Base} {
		if c.Has(key+"."+sub) && name == "" {
			c.Problemf(key+"."+sub, "is empty; leave it out for the usual one")
		} else if strings.HasPrefix(name, "-") || strings.ContainsAny(plain(name), " \t\r\n~^:?*[\\") && sub == "branch" || strings.ContainsAny(name, "\n\x00") {
			c.Problemf(key+"."+sub, "%q cannot be the name of a %s", brief(name), map[string]string{"branch": "branch", "base": "commit"}[sub])
		}
	}
	if n.ForEach != nil && w.Branch != "" && len(refs(w.Branch)) == 0 {
		c.Problemf(key+".branch", "each item needs its own branch; put ${index} into the name, or leave it out")
	}
}

// plain is a text without its references.
func plain(s string) string {
	ps, err := pieces(s)
	if err != nil {
		return "" // that is said where texts are checked
	}
	var b strings.Builder
	for _, p := range ps {
		if !p.ref {
			b.WriteString(p.text)
		}
	}
	return b.String()
}

// what says which work tree it is, for people.
func (w *Worktree) what() string {
	out := ""
	if w.Branch != "" {
		out += ", on " + w.Branch
	}
	if w.Base != "" {
		out += ", from " + w.Base
	}
	if w.Conflicts == Resolve {
		out += ", resolves conflicts"
	}
	return out
}
