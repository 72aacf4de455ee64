package workspace

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"rnix/internal/plumbing"
	"rnix/types"
)

// unlock removes the lock of a git of ours that was killed.
func unlock(s *shadow) error {
	if err := os.Remove(s.index() + ".lock"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return storage(s.dir, err)
	}
	return nil
}

// look brings the index of a shadow up to date with the work tree and returns its tree.
func (k *trees) look(ctx context.Context, id types.UUID, s *shadow) (*state, error) {
	if err := unlock(s); err != nil { // nobody else works on it: the caller has the turn
		return nil, err
	}
	began := time.Now()
	diff, others, err := k.both(ctx, id,
		call{dir: s.repo.root, args: s.args("diff-files", "--name-status", "-z", "--no-renames", "--ignore-submodules=dirty")},
		call{dir: s.repo.root, args: s.args("ls-files", "-z", "--others", "--exclude-standard")})
	if err != nil {
		return nil, err
	}
	c := sortChanges(s.repo.root, plumbing.Records(diff), k.foreign(s.repo.root, plumbing.Records(others)), k.most)
	if err := k.resync(ctx, id, s, c); err != nil {
		return nil, err
	}
	c.notes = append(c.notes, notes(submoduleFiles, slices.DeleteFunc(slices.Clone(s.submodules), func(p string) bool {
		_, err := os.Lstat(filepath.Join(s.repo.root, p, ".git"))
		return err != nil // it has no files
	}))...)
	if c.empty() && s.tree != "" {
		if err := k.settle(ctx, id, s); err != nil {
			return nil, err
		}
	} else if err := k.update(ctx, id, s, c, began); err != nil {
		return nil, err
	}
	n, err := indexEntries(s.index())
	if err != nil {
		return nil, err
	}
	return &state{
		Kind: KindGit, ID: s.tree, Root: s.repo.root, Common: s.repo.common, Files: n,
		Bytes: c.bytes, Limited: strings.Join(c.notes, "; "), repo: s.repo, store: s.store,
	}, nil
}

// submoduleFiles are left out of snapshots: a submodule has a repository of its own.
const submoduleFiles = "the files of submodules, of which the commit is kept"

// pathlessFiles are left out, too.
const pathlessFiles = "files in directories that are called as git's own"

// foreign leaves what is ours out of the new files of a work tree, if the data directory is in it.
func (k *trees) foreign(root string, paths []string) []string {
	rel, err := filepath.Rel(root, k.data)
	if err != nil || strings.HasPrefix(rel, "..") {
		return paths
	}
	return slices.DeleteFunc(paths, func(p string) bool { return strings.HasPrefix(p, rel+"/") })
}

// update writes changes into the index, and its tree into the object store.
func (k *trees) update(ctx context.Context, id types.UUID, s *shadow, c *changes, began time.Time) error {
	s.tree = ""
	if len(c.force) > 0 {
		if _, err := k.run(ctx, id, call{dir: s.repo.root, args: s.args("update-index", "-z", "--force-remove", "--stdin"), input: plumbing.Zlist(c.force)}); err != nil {
			return err
		}
	}
	if paths := append(c.gone, c.put...); len(paths) > 0 {
		if _, err := k.run(ctx, id, call{dir: s.repo.root, args: s.args("update-index", "-z", "--add", "--remove", "--replace", "--stdin"), input: plumbing.Zlist(paths)}); err != nil {
			return err
		}
	}
	if _, err := os.Stat(s.index()); errors.Is(err, fs.ErrNotExist) { // nothing was ever in it
		if _, err := k.run(ctx, id, call{args: s.args("read-tree", "--empty")}); err != nil {
			return err
		}
	}
	tree, err := k.writeTree(ctx, id, s)
	if err != nil {
		return err
	}
	s.tree, s.settled = tree, false
	return s.mark(began)
}

// writeTree returns the id of the tree of a shadow's index.
func (k *trees) writeTree(ctx context.Context, id types.UUID, s *shadow) (string, error) {
	args := []string{"write-tree"}
	if s.partial {
		args = append(args, "--missing-ok")
	}
	out, err := k.run(ctx, id, call{args: s.args(args...)})
	return plumbing.Line(out), err
}

// with returns the tree of a shadow's index and of further files, which the index does not get.
func (k *trees) with(ctx context.Context, id types.UUID, s *shadow, also []string) (tree string, left []string, err error) {
	c, links := &changes{}, map[string]bool{}
	for _, path := range also {
		if !behindLink(s.repo.root, filepath.Dir(path), links) {
			c.sort(s.repo.root, path, true)
		}
	}
	left = slices.Concat(notes("files that cannot be read", c.unreadable), notes("neither files nor links", c.special), notes(pathlessFiles, c.pathless))
	if len(c.put) == 0 {
		return s.tree, left, nil
	}
	wide := &shadow{dir: s.dir + ".wide", repo: s.repo, store: s.store, partial: s.partial}
	defer os.RemoveAll(wide.dir) // what stays is removed by the next one
	if err := os.RemoveAll(wide.dir); err != nil {
		return "", left, storage(wide.dir, err)
	}
	if err := wide.furnish(os.DevNull); err != nil {
		return "", left, err
	}
	if _, err := copyWithTime(s.index(), wide.index()); err != nil {
		return "", left, err
	}
	if _, err := k.run(ctx, id, call{dir: s.repo.root, args: wide.args("update-index", "-z", "--add", "--remove", "--replace", "--stdin"), input: plumbing.Zlist(c.put)}); err != nil {
		return "", left, err
	}
	tree, err = k.writeTree(ctx, id, wide)
	return tree, left, err
}

// strayed returns the files, at most so many and one more, in the directories of submodules that have no repository: git lists them nowhere. A tree has them in
// place of the submodule.
func strayed(s *shadow, most int) (files []string) {
	for _, p := range s.submodules {
		dir := filepath.Join(s.repo.root, p)
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
			continue
		}
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			continue
		}
		files = append(files, filesBelow(s.repo.root, p, most+1-len(files))...)
	}
	return files
}

// resync compares what is ignored: files that the user has tracked although they are ignored are kept,
// and files that were kept before they were ignored are not. It asks git only when the user's index or
// a .gitignore has changed.
func (k *trees) resync(ctx context.Context, id types.UUID, s *shadow, c *changes) error {
	now := ""
	if info, err := os.Stat(filepath.Join(s.repo.gitDir, "index")); err == nil {
		now = identity(info)
	}
	if now == s.userIndex && !slices.ContainsFunc(c.all(), func(p string) bool { return filepath.Base(p) == ".gitignore" }) {
		return nil
	}
	list := []string{"ls-files", "-z", "--cached", "--ignored", "--exclude-standard"}
	theirs, ours, err := k.both(ctx, id,
		call{dir: s.repo.root, user: true, args: append([]string{"--git-dir=" + s.repo.gitDir, "--work-tree=" + s.repo.root}, list...)},
		call{dir: s.repo.root, args: s.args(list...)})
	if err != nil {
		return err
	}
	add, have := plumbing.Records(theirs), plumbing.Records(ours)
	known := map[string]bool{}
	for _, p := range have {
		known[p] = true
	}
	for _, p := range add {
		if !known[p] {
			c.sort(s.repo.root, p, true)
		}
		delete(known, p)
	}
	for p := range known {
		c.force = append(c.force, p)
		c.put = slices.DeleteFunc(c.put, func(q string) bool { return q == p })
	}
	s.userIndex = now
	return nil
}

// indexEntries returns how many files an index holds: the third word of its header.
func indexEntries(path string) (int, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, storage(path, err)
	}
	defer f.Close()
	var head [12]byte
	if _, err := io.ReadFull(f, head[:]); err != nil {
		return 0, storage(path, err)
	}
	return int(binary.BigEndian.Uint32(head[8:])), nil
}

// changes is what a work tree has that an index has not. Paths are relative to the root.
type changes struct {
	put   []string // to be read
	gone  []string // to be taken out: they are not there
	force []string // to be taken out although something is there
	bytes int64    // of put
	notes []string // what is left out

	special, unreadable, nested, large, pathless []string
}

func (c *changes) empty() bool { return len(c.put)+len(c.gone)+len(c.force) == 0 }

func (c *changes) all() []string { return slices.Concat(c.put, c.gone, c.force) }

// sortChanges sorts what git has found by what is to be done. Together, new files over most bytes are
// left out, the largest first.
func sortChanges(root string, diff, others []string, most int64) *changes {
	c := &changes{}
	links := map[string]bool{}
	for i := 0; i+1 < len(diff); i += 2 {
		path := diff[i+1]
		_, err := os.Lstat(filepath.Join(root, path))
		switch {
		case diff[i] == "D" && (err == nil || behindLink(root, filepath.Dir(path), links)):
			c.force = append(c.force, path)
		case diff[i] == "D":
			c.gone = append(c.gone, path)
		default:
			c.sort(root, path, true)
		}
	}
	sizes := map[string]int64{}
	var total int64
	for _, path := range others {
		if strings.HasSuffix(path, "/") {
			c.nested = append(c.nested, path)
			continue
		}
		if n := c.sort(root, path, false); n >= 0 {
			sizes[path], total = n, total+n
		}
	}
	if total > most {
		bySize := slices.SortedFunc(maps.Keys(sizes), func(a, b string) int { return int(min(1, max(-1, sizes[b]-sizes[a]))) })
		drop := map[string]bool{}
		for _, path := range bySize {
			if total <= most {
				break
			}
			drop[path] = true
			total, c.bytes = total-sizes[path], c.bytes-sizes[path]
			c.large = append(c.large, path)
		}
		c.put = slices.DeleteFunc(c.put, func(p string) bool { return drop[p] })
	}
	c.notes = slices.Concat(
		notes("nested repositories", c.nested), notes("files over the limit on new bytes", c.large),
		notes("files that cannot be read", c.unreadable), notes("neither files nor links", c.special), notes(pathlessFiles, c.pathless))
	return c
}

// sort sorts one path that is there, and returns its size; -1 if it is not to be read.
func (c *changes) sort(root, path string, known bool) int64 {
	full := filepath.Join(root, path)
	out := func(list *[]string) int64 {
		if list != nil {
			*list = append(*list, path)
		}
		if known {
			c.force = append(c.force, path)
		}
		return -1
	}
	info, err := os.Lstat(full)
	switch {
	case err != nil:
		return out(nil)
	case noPath(path):
		return out(&c.pathless)
	case info.IsDir(): // a submodule with another commit, or a directory where a file was
		if _, err := os.Lstat(filepath.Join(full, ".git")); err != nil {
			return out(nil)
		}
	case info.Mode().IsRegular():
		if unix.Access(full, unix.R_OK) != nil {
			return out(&c.unreadable)
		}
	case info.Mode().Type() != fs.ModeSymlink:
		return out(&c.special)
	}
	c.put, c.bytes = append(c.put, path), c.bytes+info.Size()
	return info.Size()
}

// behindLink reports whether a directory, or one above it, is a symbolic link. seen remembers answers.
func behindLink(root, dir string, seen map[string]bool) bool {
	if dir == "." || dir == "/" {
		return false
	}
	yes, ok := seen[dir]
	if !ok {
		info, err := os.Lstat(filepath.Join(root, dir))
		yes = err == nil && info.Mode().Type() == fs.ModeSymlink || behindLink(root, filepath.Dir(dir), seen)
		seen[dir] = yes
	}
	return yes
}

// notes says what was left out: how many, and the first of them.
func notes(what string, paths []string) []string {
	switch len(paths) {
	case 0:
		return nil
	case 1:
		return []string{fmt.Sprintf("left out %s: %q", what, paths[0])}
	}
	return []string{fmt.Sprintf("left out %s: %q and %d more", what, paths[0], len(paths)-1)}
}
