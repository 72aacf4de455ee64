package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"rnix/internal/durable"
	"rnix/internal/plumbing"
	"rnix/runtime/worktree"
	"rnix/types"
)

// stower puts workspaces of one history away and back. It has the turn of the history.
type stower struct {
	k  *Keeper
	h  *history
	id types.UUID

	dir, note, gitFiles string // with the note, and the files of git's
	back                string // what dir is called when nothing in it is needed any more
}

func newStower(k *Keeper, h *history, id types.UUID) stower {
	dir := filepath.Join(stowDir(k.git), id.String())
	return stower{k: k, h: h, id: id, dir: dir, note: filepath.Join(dir, "note.json"), gitFiles: filepath.Join(dir, "git"),
		back: filepath.Join(stowDir(k.git), backPrefix+id.String())}
}

// Stow puts a workspace away that was made for a history: everything in it is kept, then it is removed, and a repository of which it is a linked
// work tree forgets it; its branch stays. Unstow puts it back as it was. It returns how many bytes were in it. CONFLICT if anything in it
// cannot be kept, or a process works there: then it stays as it is, and the error says why. An error of free, which is asked last, keeps it
// likewise. NOT_FOUND if it is no workspace.
//
// The order is: rescue; note; another name for the directory, under which nobody finds it; a last look whether all is as it was rescued; note that it
// goes; removal. Settle goes on with what was cut off behind the new name, and forgets what was cut off before.
func Stow(ctx context.Context, k *Keeper, dir string, free func() error) (freed int64, err error) {
	dir = filepath.Join(resolve(filepath.Dir(dir)), filepath.Base(dir))
	d, err := k.desks.readDesk(dir)
	if err != nil {
		return 0, err
	}
	h, err := k.enter(ctx, d.owner())
	if err != nil {
		return 0, err
	}
	k.awaitSweep(h)
	defer k.leave(h)
	s := newStower(k, h, d.owner())
	if err := s.settle(ctx); err != nil {
		return 0, err
	}
	if was, err := s.read(); err != nil || was != nil {
		return 0, errors.Join(err, conflict(dir, "what was there before is put away, and this is another directory: look at it"))
	}
	n, freed, err := s.pack(ctx, d)
	if err == nil {
		err = free()
	}
	if err != nil {
		return 0, errors.Join(err, s.forget(context.WithoutCancel(ctx)))
	}
	if err = s.write(n); err == nil {
		err = s.shut(n)
	}
	if err != nil {
		return 0, errors.Join(err, s.open(context.WithoutCancel(ctx), n))
	}
	delete(h.shadows, dir)
	delete(h.caches, dir)
	sure, cancel := surely(ctx)
	defer cancel()
	return freed, s.depart(sure, n)
}

// pack keeps everything that is in a workspace, and proves it. It returns the note on that, which is not written yet.
func (s stower) pack(ctx context.Context, d desk) (*stowed, int64, error) {
	n := &stowed{Version: stowVersion, Desk: d, State: stowLeaving}
	if pid, name := worktree.Worker(d.Dir); pid != 0 {
		return nil, 0, conflict(d.Dir, "process %d (%s) works there", pid, name)
	}
	if err := mkdir(s.dir); err != nil { // while it has no note, what is flagged as put away is forgotten
		return nil, 0, err
	}
	var err error
	if n.Seal, err = seal(d.Dir); err != nil { // before it is looked at: permissions are noted after the rescue
		return nil, 0, err
	}
	holds, err := s.k.desks.refusals(ctx, d)
	if err != nil {
		return nil, 0, err
	}
	var parents []string
	if d.Common != "" {
		if parents, err = s.git(ctx, d, n, holds.Halfway); err != nil {
			return nil, 0, err
		}
	}
	all, lost, err := s.k.desks.ignored(ctx, d, s.k.desks.mostBytes)
	if err != nil {
		return nil, 0, err
	}
	if len(lost) > 0 {
		return nil, 0, conflict(d.Dir, "%s", lost[0])
	}
	small, _, err := s.k.desks.ignored(ctx, d, smallFile)
	if err != nil {
		return nil, 0, err
	}
	rec, have, err := s.k.rescue(ctx, s.h, s.id, d.Dir, all, true, parents)
	if err != nil {
		return nil, 0, err
	}
	if n.Files, n.Work = rec.name, rec.name; !slices.Equal(all, small) {
		work, _, err := s.k.rescue(ctx, s.h, s.id, d.Dir, small, true, parents)
		if err != nil {
			return nil, 0, err
		}
		n.Work = work.name
	}
	if (rec.Kind == KindGit) != (d.Common != "") {
		return nil, 0, conflict(d.Dir, "git cannot be used there any more")
	}
	freed, err := n.shape(d.Dir, have, rec)
	if err != nil {
		return nil, 0, err
	}
	again, err := s.k.freeze(ctx, s.h, s.id, d.Dir, all)
	if err != nil {
		return nil, 0, err
	}
	if pid, name := worktree.Worker(d.Dir); pid != 0 {
		return nil, 0, conflict(d.Dir, "process %d (%s) works there", pid, name)
	}
	if again.ID != rec.ID {
		return nil, 0, conflict(d.Dir, "files were changed while it was rescued")
	}
	n.Device, n.Inode = placeOf(d.Dir)
	return n, freed, errors.Join(durable.CheckMounts(d.Dir), syncAll(s.k.git.base))
}

// git keeps what a repository has of a linked work tree: its git directory, and the commits that nothing but it or its branch holds, which it
// returns as far as a rescue has to name them.
func (s stower) git(ctx context.Context, d desk, n *stowed, halfway []string) (parents []string, err error) {
	if len(halfway) > 0 {
		return nil, conflict(d.Dir, "an operation of git's is half-way (%s): finish it, or take it back", halfway[0])
	}
	gitDir := plumbing.Registration(d.Common, d.Dir)
	unmerged, err := s.k.run(ctx, s.id, call{dir: d.Dir, args: []string{"--git-dir=" + gitDir, "ls-files", "-u", "-z"}})
	if err != nil {
		return nil, err
	}
	if len(unmerged) > 0 {
		return nil, conflict(d.Dir, "files in it are in a conflict of git's that is not settled")
	}
	at, err := s.k.checkedOut(ctx, s.id, call{args: []string{"--git-dir=" + gitDir}})
	if err != nil {
		return nil, err
	}
	if n.Head, n.Branch = at.head, at.branch; n.Head == "" {
		return nil, conflict(d.Dir, "no commit is checked out there")
	}
	if parents, err = s.k.desks.staged(ctx, d); err != nil {
		return nil, err
	}
	lost, err := s.k.desks.abandoned(ctx, d, gitDir)
	if err != nil {
		return nil, err
	}
	parents = append(parents, lost...)
	if err := s.commits(ctx, gitDir, append([]string{n.Head}, parents...), n); err != nil {
		return nil, err
	}
	return parents, copyGitDir(gitDir, s.gitFiles)
}

// commits notes the commits which led to some, and which no reference of the repository holds but the branch of the work tree, and copies them.
func (s stower) commits(ctx context.Context, gitDir string, tips []string, n *stowed) error {
	args := []string{"--git-dir=" + gitDir, "rev-list", "--stdin", "--not"}
	if n.Branch != "" {
		args = append(args, "--exclude="+plumbing.EscapeGlob(n.Branch))
	}
	out, err := s.k.run(ctx, s.id, call{args: append(args, "--branches", "--remotes", "--tags"), input: plumbing.Lines(tips)})
	if err != nil {
		return err
	}
	if n.Commits = strings.Fields(string(out)); len(n.Commits) == 0 {
		return nil
	}
	st, ids, err := s.objects(ctx, n, gitDir)
	if err == nil {
		err = s.k.fill(ctx, s.id, st, ids)
	}
	return err
}

// objects returns all objects of the commits of a note, and the store for them.
func (s stower) objects(ctx context.Context, n *stowed, gitDir string) (*store, []string, error) {
	st, err := s.k.storeOf(ctx, s.id, n.Desk.Common, formatOf(n.Head))
	if err != nil || len(n.Commits) == 0 {
		return st, nil, err
	}
	trees := make([]string, len(n.Commits))
	for i, c := range n.Commits {
		trees[i] = c + "^{tree}"
	}
	ids, err := s.k.below(ctx, s.id, st, gitDir, trees, nil)
	return st, append(ids, n.Commits...), err
}

// modeBits are the permissions that a file or a directory gets back.
const modeBits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

// shape compares what lies in a directory with what a rescue has of it, and notes what a rescue of a git work tree does not say: permissions
// that are not usual, and empty directories. It returns the bytes of all files. What is in no rescue is CONFLICT, whatever it is.
func (n *stowed) shape(dir string, have []entry, rec *Stored) (bytes int64, err error) {
	held := map[string]bool{}
	for _, e := range have {
		held[e.Path] = e.Mode&fs.ModeIrregular == 0
	}
	n.Modes, n.Owners, n.Attributes = map[string]fs.FileMode{}, map[string]owner{}, map[string]map[string][]byte{}
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		rel, rerr := filepath.Rel(dir, path)
		var info fs.FileInfo
		if err == nil && rerr == nil {
			info, err = e.Info()
		}
		if err = errors.Join(err, rerr); err != nil {
			return conflict(dir, "%q cannot be read, so it cannot be kept: %w", rel, err)
		}
		if rel == ".git" && rec.Kind == KindGit {
			return nil // it leads to the repository
		}
		if err := n.owned(path, rel, info); err != nil {
			return err
		}
		usual, odd := fs.FileMode(0o644), rec.Kind == KindGit || info.Mode()&modeBits != info.Mode().Perm()
		switch mode := info.Mode(); {
		case mode.IsDir():
			if usual = 0o755; odd && emptyDir(path) {
				n.Empty = append(n.Empty, rel)
			}
		case !held[rel]:
			return conflict(dir, "%q is in no rescue (a submodule that is checked out, another repository, no file, or over the limits on a snapshot)", rel)
		case !mode.IsRegular():
			return nil
		default:
			bytes += info.Size()
			if mode&0o100 != 0 {
				usual = 0o755
			}
		}
		if mode := info.Mode() & modeBits; odd && mode != usual {
			n.Modes[rel] = mode
		}
		return nil
	})
	for _, rel := range slices.Concat(n.Empty, slices.Collect(maps.Keys(n.Modes)), slices.Collect(maps.Keys(n.Owners)), slices.Collect(maps.Keys(n.Attributes))) {
		if !utf8.ValidString(rel) && err == nil {
			err = conflict(dir, "the name of %q is not UTF-8, and its permissions cannot be noted", rel)
		}
	}
	return bytes, err
}

// emptyDir reports whether nothing is in a directory.
func emptyDir(dir string) bool {
	names, err := os.ReadDir(dir)
	return err == nil && len(names) == 0
}

// mostGitFiles is how many bytes of git's own files of a work tree are kept: its index is most of it.
const mostGitFiles = 1 << 30

// copyGitDir copies the files of the git directory of a linked work tree, but for what says where it is.
func copyGitDir(from, to string) error {
	left := int64(mostGitFiles)
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return fileError("Stow", path, err)
		}
		rel, _ := filepath.Rel(from, path) // below from
		info, err := e.Info()
		switch {
		case err != nil:
			return fileError("Stow", path, err)
		case e.IsDir():
			return mkdir(filepath.Join(to, rel))
		case slices.Contains(ofPlace, rel), slices.Contains(locks, rel), info.Mode()&fs.ModeSocket != 0:
			return nil
		case !info.Mode().IsRegular():
			return conflict(path, "it is no file")
		}
		if left -= info.Size(); left < 0 {
			return conflict(from, "git's own files for it have more than %d bytes", mostGitFiles)
		}
		b, _, err := plumbing.ReadFile(path, left+info.Size()) // what it was a moment ago it need not be
		if err != nil {
			return fileError("Stow", path, err)
		}
		return durable.WriteFile(durable.OS, filepath.Join(to, rel), b, durable.Cached)
	})
}

// ofPlace are the files of a linked work tree's git directory that say where it is, which git writes.
var ofPlace = []string{"gitdir", "commondir", "locked"}

// locks are files of a linked work tree's git directory by which a running git keeps others away. None runs any more when it comes back.
var locks = []string{"index.lock", "HEAD.lock", "config.worktree.lock"}

// surely returns a context for the end of what must not stop half-way, which does not last for ever: the next start finishes the rest.
func surely(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
}

// depart removes a workspace that was shut.
func (s stower) depart(ctx context.Context, n *stowed) error {
	dir, aside := n.Desk.Dir, n.aside()
	if err := n.unregister(ctx); err != nil {
		return err
	}
	openDirs(aside)
	if err := os.RemoveAll(aside); err != nil {
		return fileError("Stow", aside, err)
	}
	if err := os.Remove(s.k.desks.deskPath(dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return storage(dir, err)
	}
	n.State, n.Device, n.Inode = stowAway, 0, 0
	return s.write(n)
}

// unregister lets a repository forget a linked work tree whose files are kept, as "git worktree prune" does. Another directory in its place is none of ours.
func (n *stowed) unregister(ctx context.Context) error {
	if n.Desk.Common == "" {
		return nil
	}
	leave, err := worktree.Enter(ctx, n.Desk.Common, true)
	if err != nil {
		return err
	}
	defer leave()
	if _, err := os.Lstat(n.Desk.Dir); err == nil && !n.there() {
		return nil
	}
	at := plumbing.Registration(n.Desk.Common, n.Desk.Dir)
	if at == "" {
		return nil
	}
	if err := os.RemoveAll(at); err != nil {
		return fileError("Stow", at, err)
	}
	_ = os.Remove(filepath.Dir(at)) // stays if there are others
	return nil
}

// placeOf identifies a directory; 0, 0 = it is not there.
func placeOf(dir string) (device, inode uint64) {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return 0, 0
	}
	st, device := statOf(info)
	return device, st.Inode
}

// syncAll makes everything durable that was written to the file system of a directory: git does not sync each object.
func syncAll(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return storage(dir, err)
	}
	defer f.Close()
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		return storage(dir, fmt.Errorf("syncfs: %w", err))
	}
	return nil
}
