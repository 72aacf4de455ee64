package fs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"rnix/internal/plumbing"
	"rnix/vfs"
)

// TempPrefix begins the names of files that are being written and not yet in place. Nobody is shown
// them.
const TempPrefix = ".rnix-tmp-"

// maxDepth bounds how deep a walk goes.
const maxDepth = 200

// walker visits what is below a directory, in order of names, without following symbolic links.
type walker struct {
	root  *os.Root
	start Place // where it begins
	all   bool  // also what is usually left out
	depth int   // levels; 0 = maxDepth
	visit func(entry) error

	leftOut    []string // the first few paths that were left out
	leftCount  int
	unreadable int
	own        []string // the paths that were left out because they belong to Rnix
}

// entry is something that a walk meets.
type entry struct {
	rel   string // relative to the root
	below string // relative to the start of the walk
	level int    // 1 for what is in the start itself
	fs.DirEntry
}

// walk visits everything below start, a path relative to the root. visit may return fs.SkipAll to end
// the walk without an error. Rules of every .gitignore from the root down count, but never for start
// itself: who names a place wants to see it.
func (w *walker) walk(ctx context.Context, start string) error {
	if w.depth == 0 {
		w.depth = maxDepth
	}
	var rules []ignoreFile
	if !w.all {
		for dir := "."; dir != start; {
			rules = w.load(rules, dir)
			next, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(start, strings.TrimPrefix(dir, ".")), "/"), "/")
			dir = path.Join(dir, next)
		}
	}
	err := w.dir(ctx, start, ".", 1, rules)
	if errors.Is(err, fs.SkipAll) {
		return nil
	}
	return err
}

func (w *walker) dir(ctx context.Context, dir, below string, level int, rules []ignoreFile) error {
	if err := vfs.Ended(ctx, "Read", ""); err != nil {
		return err
	}
	entries, err := w.list(dir)
	var ours refused
	if errors.As(err, &ours) && level > 1 {
		w.own = append(w.own, shownName(below))
		return nil
	}
	if err != nil {
		if level == 1 {
			return err
		}
		w.unreadable++
		return nil
	}
	if !w.all && slices.ContainsFunc(entries, func(d fs.DirEntry) bool { return d.Name() == ".gitignore" }) {
		rules = w.load(slices.Clip(rules), dir)
	}
	for _, d := range entries {
		if strings.HasPrefix(d.Name(), TempPrefix) {
			continue
		}
		e := entry{rel: path.Join(dir, d.Name()), below: path.Join(below, d.Name()), level: level, DirEntry: d}
		if w.start.guard.named(filepath.Join(w.start.Abs, e.below)) != nil {
			w.own = append(w.own, shownName(e.below))
			continue
		}
		if !w.all && (d.IsDir() && alwaysLeftOut[d.Name()] || d.Name() == ".git" || ignored(rules, e.rel, d.IsDir())) {
			if w.leftCount++; len(w.leftOut) < 5 {
				w.leftOut = append(w.leftOut, shownName(e.below))
			}
			continue
		}
		if err := w.visit(e); err != nil {
			return err
		}
		if d.IsDir() && level < w.depth {
			if err := w.dir(ctx, e.rel, e.below, level+1, rules); err != nil {
				return err
			}
		}
	}
	return nil
}

// list returns the entries of a directory in order of their names.
func (w *walker) list(dir string) ([]fs.DirEntry, error) {
	f, err := w.root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := w.start.guard.listed(f); err != nil {
		return nil, err
	}
	entries, err := f.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

// maxIgnore bounds a .gitignore in bytes; what stands behind is not read.
const maxIgnore = 1 << 20

// load adds the rules of a directory's .gitignore, if it has one.
func (w *walker) load(rules []ignoreFile, dir string) []ignoreFile {
	name := path.Join(dir, ".gitignore")
	if info, err := w.root.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return rules
	}
	content, err := plumbing.BeginningIn(w.root, name, maxIgnore)
	if err != nil {
		return rules
	}
	return append(rules, parseIgnore(dir, string(content)))
}

// noteOwn says what the walk has not shown and never will.
func (w *walker) noteOwn(a *answer) {
	const shown = 5
	if n := len(w.own); n > 0 {
		text := strings.Join(w.own[:min(n, shown)], ", ")
		if n > shown {
			text += fmt.Sprintf(" and %d more", n-shown)
		}
		a.note("left out, because it belongs to Rnix itself and agents may not reach it: " + text)
	}
}

// noteLeftOut says what the walk has not shown.
func (w *walker) noteLeftOut(a *answer) {
	if w.leftCount > 0 {
		text := strings.Join(w.leftOut, ", ")
		if more := w.leftCount - len(w.leftOut); more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		a.note("left out: " + text + `; name one as path, or give "all": true, to see it`)
	}
	if w.unreadable > 0 {
		what := "directories"
		if w.unreadable == 1 {
			what = "directory"
		}
		a.note(fmt.Sprintf("%d %s could not be read", w.unreadable, what))
	}
}
