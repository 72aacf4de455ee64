package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"rnix/internal/plumbing"
	"rnix/types"
)

// Of a store that takes up more than sweepAll bytes, no objects are removed while they are less than one part in sweepPart of it: what
// stays is written anew.
const (
	sweepAll  = 64 << 20
	sweepPart = 10
)

// dropped is a file that says that references were removed since the last sweep.
func (s *store) dropped() string { return filepath.Join(s.dir, "dropped") }

// held is an object of a store and the bytes that it takes up there.
type held struct {
	id    string
	bytes int64
}

// sweepStores removes from the stores what no reference and no index of a history has any more, if references were removed. The caller keeps
// snapshots from being made.
func (k *stores) sweepStores(ctx context.Context, out *Swept) error {
	marks, err := filepath.Glob(filepath.Join(plumbing.EscapeGlob(k.base), "stores", "*", "dropped"))
	if err != nil {
		return types.Errorf(types.ErrInternal, "Sweep", k.base, "%w", err)
	}
	var problems []error
	for _, mark := range marks {
		s := &store{dir: filepath.Dir(mark)}
		problems = append(problems, k.sweepStore(ctx, s, out))
	}
	return errors.Join(problems...)
}

func (k *stores) sweepStore(ctx context.Context, s *store, out *Swept) error {
	if entries, err := os.ReadDir(filepath.Join(s.gitDir(), "worktrees")); err == nil && len(entries) > 0 {
		return nil // somebody works with what a rescue holds; the mark stays
	}
	keep, err := k.needed(ctx, s)
	if err != nil {
		return err
	}
	all, err := k.heldIn(ctx, s)
	if err != nil {
		return err
	}
	var stay []string
	var gone, total int64
	lost := 0
	for _, o := range all {
		total += o.bytes
		if keep[o.id] {
			stay = append(stay, o.id)
		} else {
			gone, lost = gone+o.bytes, lost+1
		}
	}
	if total > sweepAll && gone < total/sweepPart {
		return nil // the mark stays
	}
	if lost > 0 {
		if err := k.rewrite(ctx, s, stay); err != nil {
			return err
		}
		out.Objects, out.Bytes = out.Objects+lost, out.Bytes+gone
	}
	if err := os.Remove(s.dropped()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return storage(s.dropped(), err)
	}
	return nil
}

// needed returns the objects that references and the indexes of histories have.
func (k *stores) needed(ctx context.Context, s *store) (map[string]bool, error) {
	keep := map[string]bool{emptyBlob("sha1"): true, emptyBlob("sha256"): true}
	out, err := k.run(ctx, types.UUID{}, call{args: s.args("for-each-ref", "--format=%(objectname) %(objecttype)")})
	if err != nil {
		return nil, err
	}
	var trees, commits []string
	for l := range strings.Lines(string(out)) {
		object, kind, _ := strings.Cut(strings.TrimSuffix(l, "\n"), " ")
		keep[object] = true
		trees = append(trees, object+"^{tree}")
		if kind == "commit" {
			commits = append(commits, object)
		}
	}
	// What led to a rescue may be in the user's repository, and that may be gone: each commit is taken that is there.
	for seen := map[string]bool{}; len(commits) > 0; {
		out, err := k.run(ctx, types.UUID{}, call{env: s.alone(), args: s.args("cat-file", "--batch"), input: []byte(strings.Join(commits, "\n") + "\n")})
		if err != nil {
			return nil, err
		}
		commits = nil
		for rest := string(out); rest != ""; {
			head, after, _ := strings.Cut(rest, "\n")
			f := strings.Fields(head)
			if len(f) != 3 || f[1] != "commit" { // one that is not there
				rest = after
				continue
			}
			n, err := strconv.Atoi(f[2])
			if err != nil || n >= len(after) {
				return nil, types.Errorf(types.ErrDriver, "Sweep", s.dir, "git cat-file: %q, and %d bytes", head, len(after))
			}
			keep[f[0]] = true
			header, _, _ := strings.Cut(after[:n], "\n\n")
			rest = after[n+1:]
			for l := range strings.Lines(header) {
				switch what, of, _ := strings.Cut(strings.TrimSuffix(l, "\n"), " "); {
				case what == "tree":
					trees = append(trees, of)
				case what == "parent" && !seen[of]:
					seen[of] = true
					commits = append(commits, of)
				}
			}
		}
	}
	if len(trees) > 0 {
		out, err := k.run(ctx, types.UUID{}, call{args: s.args("rev-list", "--objects", "--no-object-names", "--missing=allow-any", "--stdin"), input: plumbing.Lines(trees)})
		if err != nil {
			return nil, err
		}
		for _, id := range strings.Fields(string(out)) {
			keep[id] = true
		}
	}
	links, err := filepath.Glob(filepath.Join(plumbing.EscapeGlob(k.base), "git", "*", "*", "objects"))
	if err != nil {
		return nil, types.Errorf(types.ErrInternal, "Sweep", k.base, "%w", err)
	}
	for _, link := range links {
		if to, err := os.Readlink(link); err != nil || to != s.objects() {
			continue
		}
		out, err := k.run(ctx, types.UUID{}, call{args: []string{"--git-dir=" + filepath.Dir(link), "ls-files", "-s", "-z"}})
		if err != nil {
			return nil, err
		}
		for _, id := range blobsOf(plumbing.Records(out)) {
			keep[id] = true
		}
	}
	return keep, nil
}

// heldIn lists the objects of a store.
func (k *stores) heldIn(ctx context.Context, s *store) (all []held, err error) {
	out, err := k.run(ctx, types.UUID{}, call{env: s.alone(), args: s.args("cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objectname) %(objectsize:disk)")})
	if err != nil {
		return nil, err
	}
	for l := range strings.Lines(string(out)) {
		id, size, _ := strings.Cut(strings.TrimSuffix(l, "\n"), " ")
		n, err := strconv.ParseInt(size, 10, 64)
		if err != nil {
			return nil, types.Errorf(types.ErrDriver, "Sweep", s.dir, "git cat-file: a line %q that cannot be read", l)
		}
		all = append(all, held{id, n})
	}
	return all, nil
}

// rewrite makes a store hold some of its objects and no others: these are in one pack before anything is removed.
func (k *stores) rewrite(ctx context.Context, s *store, stay []string) error {
	fresh := filepath.Join(s.dir, "fresh")
	if err := os.RemoveAll(fresh); err != nil { // of a sweep that was cut off
		return storage(fresh, err)
	}
	defer os.RemoveAll(fresh) // it is empty
	var old []string
	walkFiles(s.objects(), func(p string, _ fs.DirEntry) {
		if filepath.Dir(p) != filepath.Join(s.objects(), "info") {
			old = append(old, p)
		}
	})
	keep := map[string]bool{}
	if len(stay) > 0 {
		if err := mkdir(filepath.Join(fresh, "pack")); err != nil {
			return err
		}
		if err := k.pack(ctx, types.UUID{}, s.args(), s.alone(), fresh, stay); err != nil {
			return err
		}
		files, err := os.ReadDir(filepath.Join(fresh, "pack"))
		if err != nil {
			return storage(fresh, err)
		}
		slices.SortFunc(files, func(a, b fs.DirEntry) int { return strings.Compare(filepath.Ext(b.Name()), filepath.Ext(a.Name())) }) // the index last: by it a pack is found
		for _, f := range files {
			to := filepath.Join(s.objects(), "pack", f.Name())
			if err := os.Rename(filepath.Join(fresh, "pack", f.Name()), to); err != nil {
				return storage(to, err)
			}
			keep[to] = true
		}
	}
	for _, p := range old {
		if !keep[p] {
			if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return storage(p, err)
			}
		}
	}
	return nil
}
