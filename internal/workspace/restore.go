package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"rnix/internal/plumbing"
	"rnix/types"
)

// RestoreOpts say what Restore may do.
type RestoreOpts struct {
	// Overwrite lets it write into a directory that is not empty, after a rescue of what is there. Files
	// that the snapshot does not have are removed if the rescue holds them; ignored files stay.
	Overwrite bool
}

// Report says what was done to a directory, and how it is undone.
type Report struct {
	Written, Removed int      // files
	Dirs             int      // directories that were made or removed
	Kept             []string // what was left as it is, and why; the directory differs from the snapshot there
	Rescue           *Stored  // what was there before; nil if nothing was
	Undo             string   // for people: how to get that back; "" if there is nothing to get back
	Dropped          string   // a branch that went with a work tree: it had been made for it and held nothing; "" = none
}

// Restore writes the files of a snapshot into a directory, which is made if need be. Without
// Overwrite it must be empty; otherwise it fails with CONFLICT and changes nothing. Each file is
// replaced as a whole.
func (k *Keeper) Restore(ctx context.Context, ref Ref, to string, opts RestoreOpts) (Report, error) {
	src, err := k.open(ctx, ref)
	if err != nil {
		return Report{}, err
	}
	want, err := src.entries(ctx)
	if err != nil {
		return Report{}, err
	}
	if !filepath.IsAbs(to) {
		return Report{}, types.Errorf(types.ErrInvalid, "Restore", to, "the directory is not absolute")
	}
	names, err := os.ReadDir(to)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = os.MkdirAll(to, 0o777)
	case err == nil && len(names) > 0 && !opts.Overwrite:
		return Report{}, types.Errorf(types.ErrConflict, "Restore", to, "the directory is not empty: name a new one, or allow overwriting")
	}
	if err != nil {
		return Report{}, fileError("Restore", to, err)
	}
	if len(names) == 0 {
		return apply(ctx, src, ref.Kind, to, job{write: want, fresh: true})
	}
	return k.replace(ctx, ref, src, to, want, nil)
}

// RestorePaths brings some paths of a work directory into the state that they have in a snapshot: those
// that it does not have are removed. What is there now is rescued first. Paths are absolute or relative
// to workDir; one that is a directory means everything in it. A path outside is INVALID.
func (k *Keeper) RestorePaths(ctx context.Context, ref Ref, workDir string, paths []string) (Report, error) {
	src, err := k.open(ctx, ref)
	if err != nil {
		return Report{}, err
	}
	want, err := src.entries(ctx)
	if err != nil {
		return Report{}, err
	}
	p, err := k.locate(ctx, ref.UUID, workDir)
	if err != nil {
		return Report{}, err
	}
	root := p.root
	if p.repo != nil {
		root = p.repo.root
	}
	only := make([]string, 0, len(paths))
	for _, path := range paths {
		rel, err := below(root, workDir, path)
		if err != nil {
			return Report{}, err
		}
		only = append(only, rel)
	}
	if len(only) == 0 {
		return Report{}, nil
	}
	return k.replace(ctx, ref, src, root, want, only)
}

// below returns a path, which may be relative to workDir, as one relative to root.
func below(root, workDir, path string) (string, error) {
	abs := path
	if !filepath.IsAbs(path) {
		abs = filepath.Join(workDir, path)
	}
	abs = filepath.Clean(abs)
	if real, err := filepath.EvalSymlinks(filepath.Dir(abs)); err == nil { // the way there, not the file itself
		abs = filepath.Join(real, filepath.Base(abs))
	}
	rel, err := filepath.Rel(root, abs)
	if err != nil || !safePath(filepath.ToSlash(rel)) || rel == "." {
		return "", types.Errorf(types.ErrInvalid, "RestorePaths", path, "is not a file of the work in %s", root)
	}
	return filepath.ToSlash(rel), nil
}

// within reports whether a path is one of some paths, or below one. nil means all.
func within(only []string, path string) bool {
	return only == nil || slices.ContainsFunc(only, func(o string) bool { return path == o || strings.HasPrefix(path, o+"/") })
}

// replace makes a directory with files in it what a snapshot says, or some paths of it.
func (k *Keeper) replace(ctx context.Context, ref Ref, src source, to string, want []entry, only []string) (Report, error) {
	h, err := k.enter(ctx, ref.UUID)
	if err != nil {
		return Report{}, err
	}
	k.awaitSweep(h)
	defer k.leave(h)
	top, err := filepath.EvalSymlinks(to)
	if err != nil {
		return Report{}, fileError("Restore", to, err)
	}
	want = slices.DeleteFunc(slices.Clone(want), func(e entry) bool { return !within(only, e.Path) })
	var also []string // what the snapshot has, or somebody has named, is rescued even if it is ignored
	for _, e := range want {
		also = append(also, e.Path)
	}
	for _, o := range only {
		also = append(also, filesBelow(top, o, k.opts.MaxCopyFiles)...)
	}
	rescued, have, err := k.rescue(ctx, h, ref.UUID, top, also, false, nil)
	if err != nil {
		return Report{}, err
	}
	have = slices.DeleteFunc(have, func(e entry) bool { return !within(only, e.Path) })
	j := job{held: map[string]bool{}}
	for _, e := range have {
		j.held[e.Path] = true
	}
	sameHash := rescued.Kind == ref.Kind
	if ref.Kind == KindGit && sameHash {
		sameHash = len(rescued.ID) == len(ref.ID)
	}
	j.write, j.remove = plan(want, have, sameHash)
	rep, err := apply(ctx, src, ref.Kind, top, j)
	rep.Rescue, rep.Undo = rescued, k.git.undo(rescued)
	return rep, err
}

// undo says how a rescue is used.
func (k *git) undo(s *Stored) string {
	if s.Kind == KindGit {
		return fmt.Sprintf("git -C %s --git-dir=%s --work-tree=. restore --source=%s --worktree -- . gives back what was there before", plumbing.ShellQuote(s.Root), plumbing.ShellQuote(k.storeGit(s)), s.Pin)
	}
	return fmt.Sprintf("what was there before is kept as snapshot %s (copy) of %s", s.ID, s.Root)
}

// filesBelow returns a path and, if it is a directory, the files in it, at most so many.
func filesBelow(root, path string, most int) (out []string) {
	_ = filepath.WalkDir(filepath.Join(root, path), func(p string, d fs.DirEntry, err error) error { // what cannot be read cannot be rescued, and so stays
		if err != nil || len(out) >= most {
			return nil
		}
		if d.Name() == ".git" && d.IsDir() {
			return filepath.SkipDir
		}
		if rel, err := filepath.Rel(root, p); err == nil && !d.IsDir() {
			out = append(out, filepath.ToSlash(rel))
		}
		return nil
	})
	return out
}

// rescue keeps what is in a directory under a name of its own, and proves that it is kept. It returns the
// record and what it holds. away says that the directory is put away and will come back: then the rescue goes. The caller has the turn.
func (k *Keeper) rescue(ctx context.Context, h *history, id types.UUID, dir string, also []string, away bool, parents []string) (*Stored, []entry, error) {
	st, err := k.freeze(ctx, h, id, dir, also)
	if err != nil {
		return nil, nil, err
	}
	if st.ID == "" {
		return nil, nil, types.Errorf(types.ErrPermission, "Restore", dir, "nothing can be rescued there, so nothing is changed: %s", st.Limited)
	}
	if st.Root != dir {
		return nil, nil, types.Errorf(types.ErrInvalid, "Restore", dir, "is inside the git work tree %s: restore that, some of its paths, or a directory outside", st.Root)
	}
	now := time.Now().UTC().Format(rescueTime)
	rec := st.stored(id, 0)
	rec.Rescue, rec.Away, rec.name = true, away, rescuePrefix+now
	if st.Kind == KindGit {
		rec.Pin = rescueRef(id, now)
		if rec.Base, err = k.git.headOf(ctx, id, st.repo.gitDir); err != nil {
			return nil, nil, err
		}
		if rec.Commit, err = k.pinRescue(ctx, id, st.store, st.repo.gitDir, st.ID, rec.Pin, rec.Base, parents...); err != nil {
			return nil, nil, err
		}
		out, err := k.git.run(ctx, id, call{args: st.store.args("rev-parse", "-q", "--verify", rec.Pin+"^{tree}")})
		if err != nil || plumbing.Line(out) != st.ID {
			return nil, nil, types.Errorf(types.ErrStorage, "Restore", rec.Pin, "the rescue is not what was to be rescued (%q, not %s): nothing is changed", plumbing.Line(out), st.ID)
		}
	}
	if err := k.record(id, rec.name, rec); err != nil {
		return nil, nil, err
	}
	src, err := k.open(ctx, rec.Ref)
	if err != nil {
		return nil, nil, err
	}
	have, err := src.entries(ctx)
	return rec, have, err
}

// job is what is to be done to a directory.
type job struct {
	write, remove []entry
	held          map[string]bool // what a rescue holds
	fresh         bool            // the directory was empty
}

// apply does a job. What stands in the way and is in no rescue stays, and is reported.
func apply(ctx context.Context, src source, kind Kind, to string, j job) (rep Report, err error) {
	root, err := os.OpenRoot(to)
	if err != nil {
		return rep, fileError("Restore", to, err)
	}
	defer root.Close()
	count := func(e entry, files *int) {
		if e.Mode.IsDir() {
			files = &rep.Dirs
		}
		*files++
	}
	w := &writer{root: root, exact: kind == KindCopy, times: j.fresh, dirs: map[string]bool{}}
	for _, e := range j.remove {
		if !safePath(e.Path) {
			continue
		}
		if err := w.remove(e); err != nil {
			rep.Kept = append(rep.Kept, fmt.Sprintf("%q: %v", e.Path, err))
			continue
		}
		count(e, &rep.Removed)
	}
	// put returns an error only if nothing more can be written.
	put := func(e entry, r io.Reader) error {
		keep := func(why any) error {
			rep.Kept = append(rep.Kept, fmt.Sprintf("%q: %v", e.Path, why))
			return nil
		}
		if !safePath(e.Path) {
			return keep("not a path for files of work")
		}
		if now, err := root.Lstat(e.Path); err == nil && !j.fresh && !j.held[e.Path] && !now.IsDir() {
			return keep(errInTheWay)
		}
		err := w.put(e, r)
		switch {
		case errors.Is(err, errInTheWay), errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrExist):
			return keep(err)
		case err == nil:
			count(e, &rep.Written)
		}
		return err
	}
	var files []entry
	for _, e := range j.write {
		if e.Mode.IsDir() || e.Mode&fs.ModeIrregular != 0 {
			if err := put(e, nil); err != nil {
				return rep, fileError("Restore", e.Path, err)
			}
			continue
		}
		files = append(files, e)
	}
	if err := src.read(ctx, files, func(e entry, r io.Reader) error {
		if err := put(e, r); err != nil {
			return fileError("Restore", e.Path, err)
		}
		return nil
	}); err != nil {
		return rep, err
	}
	for _, e := range slices.Backward(j.write) {
		if err := w.permissions(e); err != nil {
			rep.Kept = append(rep.Kept, fmt.Sprintf("%q: %v", e.Path, err))
		}
	}
	return rep, nil
}
