package worktree

import (
	"fmt"
	"strings"
)

// Holdings is what a checkout holds that may be nowhere else, as it was found on the disk and as git
// says. Paths are relative to its top, with slashes. An empty list says that there is nothing of the
// kind, unless Unknown says that this could not be told. The files that runtime/state writes are in none
// of them.
type Holdings struct {
	Strategy CloneStrategy // what kind of checkout it is
	Branch   string        // that is checked out; "" = none
	Head     string        // the commit that is checked out; "" = none
	Worker   int           // a process that works there; 0 = none that can be seen

	Changed   []string // not on the disk as in the index
	Staged    []string // not in the index as in the commit that is checked out
	Untracked []string // not under version control, also where git itself does not look; of an empty directory all that is in it
	Ignored   []string // that git was told to overlook: by the repository or by the user
	Hidden    []string // that git was told to take for unchanged

	Submodules []Submodule // all of the index and of the commit that is checked out
	Nested     []string    // directories with other repositories, that are no submodules
	Inside     []string    // repositories in its git directory whose files are checked out nowhere in it

	Refs []string // references: of a work tree its own, of a clone those to what is no commit
	Tags []string // clone: that its remote has not, or not with the same object

	// Unpublished are commits, at most 257 of them. Of a clone: all that are in it and, as far as can be
	// known, not at its remote. Of a work tree: those of what is checked out that are on no remote, on no
	// other branch and under no tag; if Branch is not "", that branch holds them in the repository, which
	// stays.
	Unpublished []string
	Abandoned   []string // work tree: commits that were checked out there once, and that no reference holds

	Stashed bool     // clone: something; work tree: something of its branch
	Halfway []string // files of git's for operations that have not ended, such as MERGE_HEAD
	Locked  *string  // work tree: why somebody has locked it; nil = nobody has
	Unknown []string // what is out of order, or could not be told, for people

	shown []string // files of runtime/state that git shows all the same
}

// Submodule is a place of a checkout at which another repository belongs.
type Submodule struct {
	Path     string
	Recorded string   // the commit that the index names, or, if it names none, the commit that is checked out
	Commit   string   // that is checked out there; "" = there is no repository, or it has none
	Here     bool     // there is a repository
	Files    []string // without a repository: what lies there all the same, which git does not show
	Work     []string // with one: what stands against losing it, its own submodules included, for people
}

// Reasons says what stands against removing the checkout, for people. None = all that is in it is
// somewhere else too. A submodule with a repository is a reason even without work in it: git does
// not remove a work tree with one.
func (h Holdings) Reasons() []string {
	var why reasons
	if h.Worker != 0 {
		why.add("process %d works there", h.Worker)
	}
	if h.Strategy == StrategyEmpty {
		why.list("files are in it", h.Untracked)
		return append(why, h.Unknown...)
	}
	why = append(why, h.Unknown...)
	here := append([]string(nil), h.Nested...)
	for _, s := range h.Submodules {
		if s.Here {
			here = append(here, s.Path)
		}
		why.list(fmt.Sprintf("files are where the submodule %q is not checked out", s.Path), s.Files)
	}
	why.list("it holds other repositories", here)
	for _, s := range h.Submodules {
		for _, w := range s.Work {
			why.add("in the submodule %q: %s", s.Path, w)
		}
	}
	why.list("its repository holds others", h.Inside)
	why.list("files are changed and not committed", union(h.Changed, h.Staged))
	why.list("files are not under version control", h.Untracked)
	why.list("git ignores files in it", h.Ignored)
	why.list("git was told not to look at files", h.Hidden)
	for _, name := range h.Halfway {
		why.add("an operation of git's is half-way (%s)", name)
	}
	if h.Locked != nil {
		why.add("its work tree is locked (%q)", *h.Locked)
	}
	if h.Strategy == StrategyClone {
		if h.Stashed {
			why.add("something is stashed")
		}
		why.list("tags are in it that its remote does not have", h.Tags)
		why.list("references are in it to what is no commit", h.Refs)
		why.count(h.Unpublished, "commits in it that its remote does not have")
		return why
	}
	if h.Stashed {
		why.add("something is stashed on its branch")
	}
	why.list("it has its own references", h.Refs)
	why.count(h.Unpublished, "commits on its branch only, and on no remote")
	why.count(h.Abandoned, "commits made there that no branch holds")
	return why
}

// reasons are those for which a checkout stays.
type reasons []string

func (r *reasons) add(format string, args ...any) { *r = append(*r, fmt.Sprintf(format, args...)) }

// list adds a reason with some of the names that it is about.
func (r *reasons) list(what string, names []string) {
	if len(names) == 0 {
		return
	}
	some, more := names[:min(len(names), 3)], ""
	if len(names) > len(some) {
		more = fmt.Sprintf(" and %d more", len(names)-len(some))
	}
	r.add("%s: %q%s", what, some, more)
}

// count adds a reason with how many there are.
func (r *reasons) count(list []string, what string) {
	switch {
	case len(list) > maxLost:
		r.add("%s: more than %d", what, maxLost)
	case len(list) > 0:
		r.add("%s: %d", what, len(list))
	}
}

// union returns what is in one of two lists, in their order.
func union(a, b []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, list := range [][]string{a, b} {
		for _, s := range list {
			if !seen[s] {
				seen[s] = true
				out = append(out, s)
			}
		}
	}
	return out
}

// below reports whether a path is a directory or below it. Both are clean and without links.
func below(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
