package plumbing

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// Dir returns the git directory of the work tree whose top is dir; "" if it is none.
func Dir(dir string) string {
	path := filepath.Join(dir, ".git")
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	if info.IsDir() {
		return Resolved(path)
	}
	return pointer(path, "gitdir: ", dir)
}

// CommonOf returns the common directory of a git directory.
func CommonOf(gitDir string) string {
	if common := pointer(filepath.Join(gitDir, "commondir"), "", gitDir); common != "" {
		return common
	}
	return gitDir
}

// Repository returns the directory that all work trees of a repository share, absolute and without
// symbolic links: however a repository is named, this is its name. What is no repository has its own
// path; git says later what is wrong with it.
func Repository(path string) string {
	dir := Resolved(path)
	for top := dir; ; top = filepath.Dir(top) {
		if git := Dir(top); git != "" {
			return CommonOf(git)
		}
		if IsDir(top) { // bare, or inside of one
			return CommonOf(top)
		}
		if top == filepath.Dir(top) {
			return dir
		}
	}
}

// Above returns the git directory of the repository in whose work tree a directory lies, and the top of that work tree, which is "" of a bare
// one. Both are "" if it lies in none.
func Above(dir string) (gitDir, top string) {
	for at := Resolved(dir); ; at = filepath.Dir(at) {
		if git := Dir(at); git != "" {
			return git, at
		}
		if IsDir(at) {
			return at, ""
		}
		if at == filepath.Dir(at) {
			return "", ""
		}
	}
}

// IsDir reports whether a directory looks like a git directory.
func IsDir(dir string) bool {
	for _, name := range []string{"HEAD", "objects"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// pointer returns the path that a small file of git holds behind a word; "" if it holds none.
func pointer(path, word, from string) string {
	b, _, err := ReadFile(path, MostText)
	if err != nil {
		return ""
	}
	target, ok := strings.CutPrefix(strings.TrimRight(string(b), "\n"), word)
	if !ok || target == "" {
		return ""
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(from, target)
	}
	return Resolved(target)
}

// mostPath is how long a path may be. No system takes a longer one (Linux: PATH_MAX).
const mostPath = 4096

// Resolved returns a path without symbolic links, as far as it exists. One that no system takes stays as it is.
func Resolved(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		abs = filepath.Clean(path)
	}
	if len(abs) > mostPath {
		return abs
	}
	// Agents can write a path of very many parts: the system says at once whether all of it is there, and links are followed only then.
	for at := abs; ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); err == nil {
			if real, err := filepath.EvalSymlinks(at); err == nil {
				return filepath.Join(real, strings.TrimPrefix(abs, at))
			}
		}
		if at == filepath.Dir(at) {
			return abs
		}
	}
}

// Initializing is why git itself locks a work tree that it is adding.
const Initializing = "initializing"

// Locked returns why a work tree is locked, by its git directory. It is not if the error is os.ErrNotExist.
func Locked(gitDir string) (why string, err error) {
	b, err := Beginning(filepath.Join(gitDir, "locked"), MostText)
	if errors.Is(err, errIrregular) { // it counts all the same
		err = nil
	}
	return strings.TrimSpace(string(b)), err
}

// Adding reports whether git has not finished to add the work tree with a git directory: it was cut off, or is at it.
func Adding(gitDir string) bool {
	why, err := Locked(gitDir)
	return err == nil && why == Initializing
}

// Registration returns the git directory under which a repository, named by its common git directory,
// knows a work tree at a path; "" if it knows none. It reads what git keeps there, so it sees also what
// git does not list, and whether the work tree is there does not matter.
func Registration(common, path string) string {
	entries, err := os.ReadDir(filepath.Join(common, "worktrees"))
	if err != nil {
		return ""
	}
	for _, e := range entries {
		dir := filepath.Join(common, "worktrees", e.Name())
		if pointer(filepath.Join(dir, "gitdir"), "", dir) == filepath.Join(path, ".git") {
			return dir
		}
	}
	return ""
}

// Fault says in which file the registration of the work tree at path in the repository with that common git directory is damaged,
// and what helps; "" = nothing is wrong with it that is known.
func Fault(common, path string) string {
	common, path = Resolved(common), Resolved(path)
	if _, err := os.Stat(common); os.IsNotExist(err) {
		return "its repository is not at " + common + " any more: move that back if it was moved"
	}
	dir := Registration(common, path)
	if dir == "" {
		return "no directory in " + filepath.Join(common, "worktrees") + " leads to it; its files are as they were"
	}
	for _, f := range []struct{ file, word, from, want, text string }{
		{filepath.Join(path, ".git"), "gitdir: ", path, dir, "gitdir: " + dir},
		{filepath.Join(dir, "commondir"), "", dir, common, "../.."},
	} {
		if pointer(f.file, f.word, f.from) != f.want {
			return f.file + " was removed or overwritten; its line is: " + f.text
		}
	}
	if b, err := Beginning(filepath.Join(dir, "HEAD"), MostText); err != nil || len(strings.TrimSpace(string(b))) == 0 {
		return filepath.Join(dir, "HEAD") + " is missing or empty; its line is: ref: refs/heads/BRANCH"
	}
	return ""
}

// Halfway returns the files of operations of git's that have not ended in the work tree of a git directory.
func Halfway(gitDir string) (names []string) {
	for _, name := range []string{"MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", Bisect, "rebase-merge", "rebase-apply", "sequencer"} {
		if _, err := os.Lstat(filepath.Join(gitDir, name)); err == nil {
			names = append(names, name)
		}
	}
	return names
}

// Bisect is the one of these that is in the way of no commit.
const Bisect = "BISECT_LOG"
