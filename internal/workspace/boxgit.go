package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rnix/internal/plumbing"
	"rnix/internal/proc"
	"rnix/internal/sandbox"
)

// gitCall returns what the git of a call may read, write and start; everything else is refused to it, whatever the repository says. base is our
// directory, env that in which programs are looked for.
func gitCall(base string, env []string, c call) *sandbox.GitCall {
	verb, sub := plumbing.Verb(c.args), plumbing.Sub(c.args)
	b := &sandbox.GitCall{Starts: sandbox.StartsNothing, Agents: []string{base}, Read: slices.Clone(c.reads)}
	at := worksAt(c)
	for _, dir := range []string{at.gitDir, at.common, at.top} {
		if dir != "" {
			b.Agents = append(b.Agents, dir)
		}
	}
	switch {
	case c.mine:
		b.Starts = sandbox.StartsTools
		b.Write = append(b.Write, filepath.Join(base, "scratch")) // of its filters: see git.spec
	case verb == "worktree" && sub == "add": // it runs itself
		b.Starts = sandbox.StartsGit
	case verb == "merge-tree": // the way of merging that makes a conflict is a program: see plumbing.MergesOff
		b.Starts = sandbox.StartsGit
		if program, err := proc.LookPath("false", env); err == nil {
			b.Programs = []string{plumbing.Resolved(program)}
		}
	}
	if plumbing.OnlyReads(verb, sub) {
		if c.mine { // the user's filters keep what they make of files in the repository, as that of git lfs does
			b.Write = append(b.Write, at.gitDir, at.common)
		}
		return known(b)
	}
	b.Write = append(b.Write, at.gitDir, at.common)
	ours := strings.HasPrefix(at.gitDir+"/", base+"/")
	for _, kv := range c.env {
		name, path, _ := strings.Cut(kv, "=")
		ours = ours || (name == "GIT_INDEX_FILE" || name == "GIT_OBJECT_DIRECTORY") && strings.HasPrefix(path, base+"/")
	}
	switch verb {
	case "pack-objects": // its last argument is where the pack comes to lie
		b.Write = append(b.Write, filepath.Dir(c.args[len(c.args)-1]))
	case "worktree":
		if sub == "add" || sub == "remove" {
			for _, arg := range c.args {
				if filepath.IsAbs(arg) { // its parent: the directory itself is made or removed
					b.Write = append(b.Write, existing(filepath.Dir(arg)))
				}
			}
		}
	case "checkout-index", "merge-tree", "read-tree", "checkout", "sparse-checkout", "reset", "clone", "fetch":
		b.Write = append(b.Write, at.top) // merge-tree makes temporary files there, for ways of merging that are programs
	}
	if ours {
		b.Write = append(b.Write, base)
	}
	return known(b)
}

// known leaves out what there is not, and follows links, but for those that have come on the way to what alone is read, since it was looked at.
func known(b *sandbox.GitCall) *sandbox.GitCall {
	for _, list := range []*[]string{&b.Write, &b.Agents} {
		*list = slices.DeleteFunc(*list, func(path string) bool { return path == "" })
		for i, path := range *list {
			(*list)[i] = plumbing.Resolved(path)
		}
	}
	return b
}

// existing returns a directory, or the first above it that there is.
func existing(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || dir == "/" {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// workPlace is where a git works.
type workPlace struct {
	top            string // of the work tree; "" = none that is known
	gitDir, common string // "" = it finds no repository
}

// worksAt returns where the git of a call works, as that finds it itself.
func worksAt(c call) (at workPlace) {
	dir := c.dir
	for i, arg := range c.args {
		switch {
		case arg == "-C" && i+1 < len(c.args):
			if dir = c.args[i+1]; !filepath.IsAbs(dir) {
				dir = filepath.Join(c.dir, dir)
			}
		case strings.HasPrefix(arg, "--git-dir="):
			at.gitDir = strings.TrimPrefix(arg, "--git-dir=")
		case strings.HasPrefix(arg, "--work-tree="):
			at.top = strings.TrimPrefix(arg, "--work-tree=")
		}
	}
	if at.gitDir == "" && dir != "" {
		found, top := plumbing.Above(dir)
		at.gitDir = found
		if at.top == "" {
			at.top = top
		}
	}
	if at.gitDir != "" {
		at.common = plumbing.CommonOf(at.gitDir)
	}
	return at
}
