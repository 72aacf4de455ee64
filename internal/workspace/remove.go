package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rnix/internal/durable"
	"rnix/internal/plumbing"
	"rnix/runtime/worktree"
	"rnix/types"
)

// smallFile is up to how many bytes an ignored file is rescued when a workspace is removed: what people
// write by hand is, what programs build need not be.
const smallFile = 1 << 20

// Remove removes a workspace that Checkout has made, and nothing else: another directory is NOT_FOUND.
// Before that it keeps all that is in it: changed and untracked files, small ignored files, what is in
// the index only, and the commit that is checked out. It fails with CONFLICT, and removes nothing, if ignored files in it are too large to be kept,
// while a process works there, while the work tree is locked, if it holds repositories of others, if
// something could not be rescued, or if files change meanwhile.
func (k *Keeper) Remove(ctx context.Context, dir string) (Report, error) {
	return remove(ctx, k, dir, false)
}

// Discard is Remove that does not stay for ignored files which are over the limits on a rescue: they are lost, and Report.Kept names them.
func (k *Keeper) Discard(ctx context.Context, dir string) (Report, error) {
	return remove(ctx, k, dir, true)
}

func remove(ctx context.Context, k *Keeper, dir string, lose bool) (Report, error) {
	dir = filepath.Clean(dir)
	if above, err := filepath.EvalSymlinks(filepath.Dir(dir)); err == nil {
		dir = filepath.Join(above, filepath.Base(dir))
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil && real != dir {
		if _, err := k.desks.readDesk(dir); err == nil { // what the link leads to is somebody else's
			return Report{}, conflict(dir, "a symbolic link to %s is in its place: look for what was there, and remove the link by hand", real)
		}
		dir = real
	}
	d, err := k.desks.readDesk(dir)
	if err != nil {
		return Report{}, err
	}
	h, err := k.enter(ctx, d.owner())
	if err != nil {
		return Report{}, err
	}
	k.awaitSweep(h)
	defer k.leave(h)
	if d.Common != "" {
		if err := k.desks.cutOff(ctx, d); err != nil {
			return Report{}, err
		}
	}
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) { // somebody was faster
		rec, err := k.desks.rescueGone(ctx, d)
		if err != nil {
			return Report{}, err
		}
		rep := Report{Rescue: rec}
		rep.Dropped, err = k.desks.clear(ctx, d)
		return rep, err
	}
	if pid, name := worktree.Worker(dir); pid != 0 {
		return Report{}, conflict(dir, "process %d (%s) works there: end it first", pid, name)
	}
	if _, err := k.desks.refusals(ctx, d); err != nil {
		return Report{}, err
	}
	also, lost, err := k.desks.ignored(ctx, d, smallFile)
	if err != nil {
		return Report{}, err
	}
	if len(lost) > 0 && !lose {
		return Report{}, conflict(dir, "%s; move them away, or give them up with --lose-ignored", lost[0])
	}
	staged, err := k.desks.staged(ctx, d)
	if err != nil {
		return Report{}, err
	}
	if d.Common != "" {
		dropped, err := k.desks.abandoned(ctx, d, plumbing.Registration(d.Common, dir))
		if err != nil {
			return Report{}, err
		}
		staged = append(staged, dropped...)
	}
	rec, _, err := k.rescue(ctx, h, d.owner(), dir, also, false, staged)
	if err != nil {
		return Report{}, err
	}
	rep := Report{Rescue: rec, Undo: k.git.undo(rec), Kept: lost}
	if !onlySubmodules(rec.Limited) {
		return rep, conflict(dir, "not everything in it could be rescued: %s", rec.Limited)
	}
	if (rec.Kind == KindGit) != (d.Common != "") {
		return rep, conflict(dir, "git cannot be used there any more: its files are rescued, look at it and remove it by hand")
	}
	again, err := k.freeze(ctx, h, d.owner(), dir, also)
	if err != nil {
		return rep, err
	}
	if again.ID != rec.ID {
		return rep, conflict(dir, "files were changed while it was rescued: try again when it is quiet")
	}
	if pid, name := worktree.Worker(dir); pid != 0 {
		return rep, conflict(dir, "process %d (%s) works there: end it first", pid, name)
	}
	if err := durable.CheckMounts(dir); err != nil {
		return rep, err
	}
	rep.Removed = rec.Files
	delete(h.shadows, dir)
	delete(h.caches, dir)
	rep.Dropped, err = k.desks.clear(ctx, d)
	return rep, err
}

// onlySubmodules reports that nothing was left out of a rescue but the files of submodules: refusals has looked at these.
func onlySubmodules(limited string) bool {
	for note := range strings.SplitSeq(limited, "; ") {
		if note != "" && !strings.HasPrefix(note, "left out "+submoduleFiles) {
			return false
		}
	}
	return true
}

func conflict(dir, format string, args ...any) error {
	return types.Errorf(types.ErrConflict, "Remove", dir, format, args...)
}

// ListRescues returns the command that lists the rescues of a workspace that is a git work tree; "" if it is none.
func (k *Grove) ListRescues(dir string) string {
	d, err := k.desks.readDesk(resolve(dir))
	if err != nil || d.Common == "" {
		return ""
	}
	return k.git.RescueList(d.Common, d.owner())
}

// RescueList returns the command that lists the rescues of a history in the repository with a git directory.
func (k *git) RescueList(common string, id types.UUID) string {
	return fmt.Sprintf("git --git-dir=%s for-each-ref refs/rnix/rescue/%s", plumbing.ShellQuote(k.keptOf(common)), id)
}

// HasBranch reports whether the branch that a work tree was made with is still there.
func HasBranch(ctx context.Context, k *Keeper, id types.UUID, t Tree) bool {
	return hasBranch(ctx, k.git, id, t)
}

func hasBranch(ctx context.Context, k *git, id types.UUID, t Tree) bool {
	_, err := k.run(ctx, id, call{args: []string{"--git-dir=" + t.Common, "rev-parse", "-q", "--verify", "refs/heads/" + t.Branch}})
	return err == nil
}

// WayBack returns the command that makes a directory, DIR, with the files of a rescue; of one that is no tree of git's it says where
// they are. nil gives "".
func (k *git) WayBack(s *Stored) string {
	if s == nil {
		return ""
	}
	if s.Kind == KindGit {
		return fmt.Sprintf("git --git-dir=%s worktree add --detach DIR %s", plumbing.ShellQuote(k.storeGit(s)), s.Pin)
	}
	return fmt.Sprintf("snapshot %s (copy) of %s", s.ID, s.Root)
}

// readDesk returns the note on a workspace.
func (k *desks) readDesk(dir string) (d desk, err error) {
	path := k.deskPath(dir)
	b, err := durable.ReadFile(durable.OS, path)
	if types.CodeOf(err) == types.ErrNotFound {
		return d, types.Errorf(types.ErrNotFound, "Remove", dir, "is no workspace that was made from a snapshot: remove it by hand")
	}
	if err != nil {
		return d, err
	}
	if err := json.Unmarshal(b, &d); err != nil || d.Version < 1 || d.Dir != dir {
		return d, types.Errorf(types.ErrStorage, "Remove", path, "not the note on the workspace %s: move it away", dir)
	}
	if d.Version > deskVersion {
		return d, types.Errorf(types.ErrVersion, "Remove", path, "written in format %d by a newer program, this one reads up to %d", d.Version, deskVersion)
	}
	return d, nil
}

// refusals looks for the reasons for which a work tree must stay: what is in it that is nowhere else, but for what a rescue holds. It
// returns all that is in it.
// Git itself is not asked to remove it without --force: it would run the repository's filters.
func (k *desks) refusals(ctx context.Context, d desk) (h worktree.Holdings, err error) {
	if d.Common == "" {
		return h, noRepositories(d.Dir)
	}
	out, err := k.run(ctx, d.owner(), call{dir: d.Dir, user: true, args: []string{"rev-parse", "--absolute-git-dir"}})
	if fault := plumbing.Fault(d.Common, d.Dir); types.CodeOf(err) == types.ErrDriver && fault != "" {
		return h, conflict(d.Dir, "git does not take it for a work tree: %s; if that cannot be mended, move its files away and try again", fault)
	}
	if err != nil {
		return h, err
	}
	gitDir := plumbing.Line(out)
	if filepath.Dir(gitDir) != filepath.Join(d.Common, "worktrees") {
		return h, conflict(d.Dir, "it is not the linked work tree that was made there, but of %s: remove it by hand", gitDir)
	}
	if why, err := plumbing.Locked(gitDir); err == nil {
		return h, conflict(d.Dir, "its work tree is locked (%q): unlock it with: git --git-dir=%s worktree unlock %s", why, plumbing.ShellQuote(d.Common), plumbing.ShellQuote(d.Dir))
	}
	h, err = k.holdings(ctx, d.owner(), d.Dir, gitDir, d.Common)
	if err != nil {
		return h, err
	}
	switch why := unseen(&h); {
	case len(h.Unknown) > 0:
		return h, conflict(d.Dir, "not all that is in it can be listed: %s", h.Unknown[0])
	case len(h.Nested) > 0:
		return h, conflict(d.Dir, "it holds another repository, %s, which no rescue holds: move that away first", h.Nested[0])
	case len(h.Inside) > 0:
		return h, conflict(d.Dir, "its git directory holds another repository, %s, which no rescue holds: move that away first", h.Inside[0])
	case len(h.Refs) > 0:
		return h, conflict(d.Dir, "it has its own references, such as %s, which go with it: make branches of them, or delete them", h.Refs[0])
	case len(why) > 0:
		return h, conflict(d.Dir, "%s, which no rescue holds: push it from there, or move it away first", why[0])
	}
	return h, nil
}

// holdings says what is in a work tree that may be nowhere else.
func (k *git) holdings(ctx context.Context, id types.UUID, dir, gitDir, common string) (worktree.Holdings, error) {
	return worktree.Look(ctx, worktree.Place{Dir: dir, GitDir: gitDir, Common: common, Strategy: worktree.StrategyWorktreeAdd, Runner: k.runner(id)})
}

// unseen says for people what is in submodules that have repositories: no diff and no merge has it.
func unseen(h *worktree.Holdings) (out []string) {
	for _, s := range h.Submodules {
		for _, w := range s.Work {
			out = append(out, fmt.Sprintf("in the submodule %q: %s", s.Path, w))
		}
	}
	return out
}

// ignored returns the ignored files of a work tree that are rescued, of at most so many bytes each, and says which are not.
func (k *desks) ignored(ctx context.Context, d desk, most int64) (also, lost []string, err error) {
	if d.Common == "" {
		return nil, nil, nil
	}
	out, err := k.run(ctx, d.owner(), call{dir: d.Dir, user: true, args: []string{"ls-files", "-z", "--others", "--ignored", "--exclude-standard"}})
	if err != nil {
		return nil, nil, err
	}
	left, bytes := k.mostBytes, int64(0)
	var large []string
	for _, p := range plumbing.Records(out) {
		info, err := os.Lstat(filepath.Join(d.Dir, p))
		if err != nil || info.IsDir() {
			continue
		}
		if info.Size() > most || info.Size() > left || len(also) == k.mostFiles {
			large, bytes = append(large, p), bytes+info.Size()
			continue
		}
		also, left = append(also, p), left-info.Size()
	}
	if len(large) > 0 {
		lost = []string{fmt.Sprintf("files that git ignores are too large for a rescue (%d bytes): %s", bytes, some(large))}
	}
	return also, lost, nil
}

// clear removes a workspace whose files are kept, the note on it, and its branch if that was made for it and holds nothing. It returns
// such a branch.
func (k *desks) clear(ctx context.Context, d desk) (dropped string, err error) {
	openDirs(d.Dir) // git and RemoveAll would stop half-way
	if _, err := os.Lstat(d.Dir); d.Common != "" && (err == nil || plumbing.Registration(d.Common, d.Dir) != "") {
		// Every reason for which git refuses without --force was looked at before.
		if err := k.worktrees(ctx, d.owner(), d.Common, "remove", "--force", "--", d.Dir); err != nil {
			return "", err
		}
	} else if err := os.RemoveAll(d.Dir); err != nil {
		return "", fileError("Remove", d.Dir, err)
	}
	if d.Branch != "" {
		sure, cancel := surely(ctx) // who removes it again is not told of its rescue
		defer cancel()
		if gone, err := k.dropBranch(sure, d); err != nil { // the note knows of it
			return "", err
		} else if gone {
			dropped = d.Branch
		}
	}
	if err := os.Remove(k.deskPath(d.Dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return dropped, storage(k.deskPath(d.Dir), err)
	}
	return dropped, nil
}

// dropBranch removes the branch that was made for a workspace, unless it is checked out, or has commits that no other branch, tag or
// remote has. One that cannot be looked at stays. CANCELLED: ctx has ended before that is decided.
func (k *desks) dropBranch(ctx context.Context, d desk) (dropped bool, err error) {
	leave, err := worktree.Enter(ctx, d.Common, false)
	if err != nil {
		return false, err
	}
	defer leave()
	if dropped = dropUnneeded(ctx, k, d); !dropped && ctx.Err() != nil {
		return false, types.Errorf(types.ErrCancelled, "Remove", d.Dir, "%w", context.Cause(ctx))
	}
	return dropped, nil
}

func dropUnneeded(ctx context.Context, k *desks, d desk) bool {
	k.dropping.Lock() // of two at the same commit each would see that the other has it
	defer k.dropping.Unlock()
	ref, git := "refs/heads/"+d.Branch, "--git-dir="+d.Common
	out, err := k.run(ctx, d.owner(), call{args: []string{git, "for-each-ref", "--format=%(refname)%00%(objectname)%00%(worktreepath)", plumbing.EscapeGlob(ref)}})
	f := strings.Split(plumbing.Line(out), "\x00")
	if err != nil || len(f) != 3 || f[0] != ref || f[2] != "" {
		return false
	}
	out, err = k.run(ctx, d.owner(), call{args: []string{git, "rev-list", "--count", f[1], "--not", "--exclude=" + plumbing.EscapeGlob(d.Branch), "--branches", "--remotes", "--tags"}})
	if err != nil || plumbing.Line(out) != "0" {
		return false
	}
	_, err = k.run(ctx, d.owner(), call{args: []string{git, "update-ref", "--no-deref", "-d", ref, f[1]}})
	return err == nil
}

// Workspaces returns the directories that Checkout has made and Remove has not removed.
func (k *Keeper) Workspaces() ([]string, error) {
	dir := filepath.Join(k.git.base, "workspaces")
	names, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, storage(dir, err)
	}
	var out []string
	for _, n := range names {
		var d desk
		if b, err := os.ReadFile(filepath.Join(dir, n.Name())); err == nil && json.Unmarshal(b, &d) == nil && d.Dir != "" {
			out = append(out, d.Dir)
		}
	}
	slices.Sort(out)
	return out, nil
}
