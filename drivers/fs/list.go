package fs

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"rnix/types"
	"rnix/vfs"
)

const (
	listEntries = 1_000 // lines of a listing
	foundFiles  = 200   // results of a search, unless the request says otherwise
)

// listFiles answers with what is in a directory.
func (c *call) listFiles(ctx context.Context) error {
	var in struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Depth int    `json:"depth"`
		All   bool   `json:"all"`
	}
	if err := vfs.DecodeRequest(c.data, &in); err != nil {
		return err
	}
	if in.Depth < 0 {
		return types.Errorf(types.ErrInvalid, "list_files", in.Path, "depth counts from 1")
	}
	place, isDir, err := c.start(in.Path)
	if err != nil {
		return err
	}
	if !isDir {
		return types.Errorf(types.ErrInvalid, "list_files", place.Name, "is a file: use read_file")
	}
	shown, total := 0, 0
	w := &walker{root: place.Root, start: place, all: in.All, depth: max(in.Depth, 1)}
	w.visit = func(e entry) error {
		if total++; shown < total-1 || shown == listEntries {
			return nil
		}
		if line := w.line(e); !c.full(len(line)) {
			shown++
			c.text.WriteString(line)
		}
		return nil
	}
	if err := w.walk(ctx, place.Rel); err != nil {
		return Failure("list_files", place.Name, err)
	}
	switch {
	case total == 0:
		c.note("nothing to show")
	case shown < total:
		c.note(fmt.Sprintf("%d of %d entries shown: list a directory of it, or use a smaller depth", shown, total))
	}
	w.noteLeftOut(&c.answer)
	w.noteOwn(&c.answer)
	return nil
}

// line describes an entry of a listing.
func (w *walker) line(e entry) string {
	name := shownName(e.below)
	switch {
	case e.IsDir():
		return name + "/\n"
	case e.Type()&fs.ModeSymlink != 0:
		if target, err := w.root.Readlink(e.rel); err == nil {
			return name + " -> " + shownName(target) + "\n"
		}
	case !e.Type().IsRegular():
		return name + "\t(" + kindOf(e.Type()) + ")\n"
	}
	if info, err := w.root.Lstat(e.rel); err == nil {
		return fmt.Sprintf("%s\t%d\n", name, info.Size())
	}
	return name + "\n"
}

// start finds where a listing or a search begins.
func (c *call) start(p string) (place Place, isDir bool, err error) {
	f, info, place, err := c.roots.Open(p)
	if err != nil {
		return place, false, err
	}
	_ = f.Close() // opened for reading only
	return place, info.IsDir(), nil
}

// glob answers with the files whose names match a pattern, the newest first.
func (c *call) glob(ctx context.Context) error {
	var in struct {
		Op      string `json:"op"`
		Pattern string `json:"pattern"`
		Path    string `json:"path"`
		Limit   int    `json:"limit"`
		All     bool   `json:"all"`
	}
	if err := vfs.DecodeRequest(c.data, &in); err != nil {
		return err
	}
	match, depth, err := namePattern("glob", in.Pattern)
	if err != nil {
		return err
	}
	if in.Limit < 0 {
		return types.Errorf(types.ErrInvalid, "glob", in.Path, "limit counts from 1")
	}
	if in.Limit == 0 {
		in.Limit = foundFiles
	}
	if filepath.IsAbs(in.Pattern) {
		base, rest := doublestar.SplitPattern(in.Pattern)
		in.Path, depth = base, 0
		match = func(name string) bool { return doublestar.MatchUnvalidated(rest, name) }
	}
	place, isDir, err := c.start(in.Path)
	if err != nil {
		return err
	}
	if !isDir {
		return types.Errorf(types.ErrInvalid, "glob", place.Name, "is a file: path must be a directory")
	}
	type found struct {
		name string
		time time.Time
	}
	var all []found
	w := &walker{root: place.Root, start: place, all: in.All, depth: depth}
	w.visit = func(e entry) error {
		if !e.IsDir() && match(e.below) {
			f := found{name: c.roots.Name(filepath.Join(place.Abs, e.below))}
			if info, err := w.root.Lstat(e.rel); err == nil {
				f.time = info.ModTime()
			}
			all = append(all, f)
		}
		return nil
	}
	if err := w.walk(ctx, place.Rel); err != nil {
		return Failure("glob", place.Name, err)
	}
	slices.SortStableFunc(all, func(a, b found) int { return b.time.Compare(a.time) })
	shown := 0
	for _, f := range all {
		if shown == in.Limit || c.full(len(f.name)+1) {
			c.note(fmt.Sprintf("the newest %d of %d files shown: narrow the pattern or the path, or raise limit", shown, len(all)))
			break
		}
		shown++
		c.text.WriteString(shownName(f.name) + "\n")
	}
	if len(all) == 0 {
		c.note("no file matches " + in.Pattern)
		w.noteLeftOut(&c.answer)
	}
	w.noteOwn(&c.answer)
	return nil
}

// namePattern makes a test of names relative to where a search starts, and says how many levels deep
// names can be that pass it; 0 = any.
func namePattern(op, pattern string) (match func(string) bool, depth int, err error) {
	pattern = strings.TrimSpace(pattern)
	anywhere := !strings.Contains(pattern, "/")
	if pattern = path.Clean(pattern); pattern == "." || !doublestar.ValidatePattern(pattern) {
		return nil, 0, types.Errorf(types.ErrInvalid, op, "", "bad pattern %q: use * ? [a-z] {a,b} and ** between slashes", pattern)
	}
	if anywhere {
		return func(name string) bool { return doublestar.MatchUnvalidated(pattern, path.Base(name)) }, 0, nil
	}
	if !strings.Contains(pattern, "**") {
		depth = strings.Count(pattern, "/") + 1
	}
	return func(name string) bool { return doublestar.MatchUnvalidated(pattern, name) }, depth, nil
}
