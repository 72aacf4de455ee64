package worktree

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rnix/internal/plumbing"
)

// walk goes over the disk: for other repositories, for what lies in places of submodules, and for files
// that git has said nothing of.
func (l *look) walk() {
	listed := map[string]bool{}
	for _, list := range [][]string{l.h.Untracked, l.h.Ignored, l.h.shown} {
		for _, p := range list {
			listed[strings.TrimSuffix(p, "/")] = true
		}
	}
	loose := map[string][]string{} // what lies in the place of a submodule without a repository
	here := map[string]bool{}
	var unseen []string
	err := filepath.WalkDir(l.at.Dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || p == l.at.Dir {
			return err
		}
		rel := strings.TrimPrefix(p, l.at.Dir+"/")
		if rel == ".git" {
			if e.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if e.IsDir() {
			if holdsRepository(p) {
				if _, ok := l.links[rel]; ok {
					here[rel] = true
				} else {
					l.h.Nested = append(l.h.Nested, rel)
				}
				return filepath.SkipDir
			}
			return nil
		}
		if t := e.Type(); !t.IsRegular() && t&fs.ModeSymlink == 0 {
			return nil // a pipe or a socket holds nothing
		}
		if place := placeOf(l.links, rel); place != "" {
			loose[place] = append(loose[place], rel)
		} else if l.told && !l.tracked[rel] && !under(listed, rel) && !isState(l.at.Dir, rel) {
			unseen = append(unseen, rel)
		}
		return nil
	})
	if err != nil {
		l.unknown("it cannot be read: %v", err)
	}
	l.h.Untracked = append(l.h.Untracked, unseen...)
	known := map[string]bool{}
	for _, path := range slices.Sorted(maps.Keys(l.links)) {
		s := Submodule{Path: path, Recorded: l.links[path], Here: here[path], Files: loose[path]}
		if s.Here {
			known[l.into(&s)] = true
		}
		l.h.Submodules = append(l.h.Submodules, s)
	}
	l.inside(known)
}

// holdsRepository reports whether there is a repository at dir: something named .git that is not merely a directory without a file.
func holdsRepository(dir string) bool {
	top := filepath.Join(dir, ".git")
	if _, err := os.Lstat(top); err != nil {
		return false
	}
	return filepath.WalkDir(top, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() { // what cannot be read may hold one
			return errFound
		}
		return nil
	}) != nil
}

var errFound = errors.New("found")

// placeOf returns the place of a submodule in which a file is, or which it takes; "" = none.
func placeOf(links map[string]string, rel string) string {
	for p := rel; len(links) > 0 && p != "."; p = filepath.Dir(p) {
		if _, ok := links[p]; ok {
			return p
		}
	}
	return ""
}

// under reports whether a path or a directory above it is in a list.
func under(list map[string]bool, rel string) bool {
	for p := rel; len(list) > 0 && p != "."; p = filepath.Dir(p) {
		if list[p] {
			return true
		}
	}
	return false
}

// into looks into a submodule that has a repository, and returns where that is.
func (l *look) into(s *Submodule) (gitDir string) {
	dir := filepath.Join(l.at.Dir, s.Path)
	gitDir = plumbing.Dir(dir)
	switch {
	case gitDir == "":
		s.Work = []string{"its .git leads to no repository"}
		return ""
	case l.depth == maxDepth:
		s.Work = []string{"submodules are too deep in each other to look into them"}
		return gitDir
	case l.err != nil:
		return gitDir
	}
	h, err := l.look(l.ctx, Place{Dir: dir, GitDir: gitDir, Strategy: StrategyClone, home: l.homeOf(s.Path), gone: l.gone()}, l.depth+1)
	switch {
	case err == nil:
		s.Commit, s.Work = h.Head, h.Reasons()
	case failed(err):
		s.Work = []string{"git cannot say what is in it: " + err.Error()}
	default:
		l.err = err
	}
	return gitDir
}

// homeOf returns where a path of the checkout is when nobody removes it.
func (l *look) homeOf(rel string) string {
	if l.at.home == "" {
		return filepath.Join(l.at.Dir, rel)
	}
	return filepath.Join(l.at.home, rel)
}

// gone returns the directories that are removed with the checkout.
func (l *look) gone() []string {
	return append([]string{l.at.Dir, l.at.GitDir, plumbing.Resolved(l.homeOf(""))}, l.at.gone...)
}

// inside looks for repositories in the git directory: of submodules that are not checked out, and what
// the repository's own work trees have there.
func (l *look) inside(known map[string]bool) {
	add := func(path string) {
		if rel, err := filepath.Rel(l.at.GitDir, path); err == nil {
			l.h.Inside = append(l.h.Inside, rel)
		}
	}
	modules := filepath.Join(l.at.GitDir, "modules")
	found := false
	err := filepath.WalkDir(modules, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			if p == modules && os.IsNotExist(err) {
				return nil
			}
			return err
		}
		if p != modules && e.IsDir() && plumbing.IsDir(p) {
			found = true
			if !known[plumbing.Resolved(p)] {
				add(p)
			}
			return filepath.SkipDir
		}
		return nil
	})
	if err != nil {
		l.unknown("its git directory cannot be read: %v", err)
	}
	if entries, err := os.ReadDir(modules); err == nil && len(entries) > 0 && !found {
		add(modules)
	}
	if entries, err := os.ReadDir(filepath.Join(l.at.GitDir, "worktrees")); err == nil && len(entries) > 0 {
		add(filepath.Join(l.at.GitDir, "worktrees"))
	}
}
