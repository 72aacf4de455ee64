package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"rnix/internal/plumbing"
	"rnix/types"
)

// maxAbandoned is how many commits that nothing but the log of a work tree holds are rescued with it.
const maxAbandoned = 64

// abandoned returns the commits that were checked out in a work tree once and that no reference holds
// any more: git forgets them with the work tree. Of several that follow each other the last one is
// enough.
func (k *desks) abandoned(ctx context.Context, d desk, gitDir string) ([]string, error) {
	moves, _, err := plumbing.ReadLog(gitDir, "HEAD")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fileError("Remove", gitDir, err)
	}
	var was []string
	for _, m := range moves {
		for _, c := range []string{m.From, m.To} {
			if strings.Trim(c, "0") != "" {
				was = append(was, c)
			}
		}
	}
	if len(was) == 0 {
		return nil, nil
	}
	slices.Sort(was)
	was = slices.Compact(was)
	in := plumbing.Lines(was)
	out, err := k.run(ctx, d.owner(), call{input: in, args: []string{"--git-dir=" + gitDir, "rev-list", "--parents", "--ignore-missing", "--stdin", "--not", "HEAD", "--branches", "--remotes", "--tags"}})
	if types.CodeOf(err) == types.ErrDriver { // no commit is checked out
		out, err = k.run(ctx, d.owner(), call{input: in, args: []string{"--git-dir=" + d.Common, "rev-list", "--parents", "--ignore-missing", "--stdin", "--not", "--branches", "--remotes", "--tags"}})
	}
	if err != nil {
		return nil, err
	}
	var lost []string
	held := map[string]bool{}
	for l := range strings.Lines(string(out)) {
		f := strings.Fields(l)
		lost = append(lost, f[0])
		for _, p := range f[1:] {
			held[p] = true
		}
	}
	lost = slices.DeleteFunc(lost, func(c string) bool { return held[c] })
	if len(lost) > maxAbandoned {
		return nil, conflict(d.Dir, "%d commits were made there that no branch holds, more than are rescued: make branches of them", len(lost))
	}
	return lost, nil
}

// rescueGone keeps what the repository still has of a work tree whose files are gone: the commit that
// was checked out, what was staged, and what no branch holds. Without that it would go with the note that
// git has of the work tree.
func (k *desks) rescueGone(ctx context.Context, d desk) (*Stored, error) {
	if d.Common == "" {
		return nil, nil
	}
	gitDir := plumbing.Registration(d.Common, d.Dir)
	if gitDir == "" {
		return nil, nil
	}
	if why, err := plumbing.Locked(gitDir); err == nil {
		return nil, conflict(d.Dir, "its work tree is locked (%q): unlock it with: git --git-dir=%s worktree unlock %s", why, plumbing.ShellQuote(d.Common), plumbing.ShellQuote(d.Dir))
	}
	if entries, err := os.ReadDir(filepath.Join(gitDir, "modules")); err == nil && len(entries) > 0 {
		return nil, conflict(d.Dir, "it held submodules; their repositories are in %s: move these away first", filepath.Join(gitDir, "modules"))
	}
	conf, err := k.config(ctx, d.owner(), gitDir, false)
	if err != nil {
		return nil, err
	}
	env := inert(conf, false)
	run := func(args ...string) (string, error) {
		out, err := k.run(ctx, d.owner(), call{env: env, args: append([]string{"--git-dir=" + gitDir}, args...)})
		return plumbing.Line(out), err
	}
	head, err := k.headOf(ctx, d.owner(), gitDir)
	if err != nil || head == "" { // nothing was ever checked out
		return nil, err
	}
	parents, err := k.abandoned(ctx, d, gitDir)
	if err != nil {
		return nil, err
	}
	tree, err := run("write-tree")
	if err != nil {
		return nil, conflict(d.Dir, "what was staged there cannot be kept: %v", err)
	}
	s, err := k.storeOf(ctx, d.owner(), d.Common, formatOf(tree))
	if err != nil {
		return nil, err
	}
	ids, err := k.below(ctx, d.owner(), s, gitDir, []string{tree}, nil)
	if err != nil {
		return nil, err
	}
	if err := k.fill(ctx, d.owner(), s, ids); err != nil {
		return nil, err
	}
	now := time.Now().UTC()
	name := now.Format(rescueTime)
	rec := &Stored{Version: recordVersion, Ref: Ref{UUID: d.owner(), Kind: KindGit, ID: tree, Root: d.Dir}, Base: head, Common: d.Common, Time: now, Rescue: true,
		Pin: rescueRef(d.owner(), name)}
	if rec.Commit, err = k.pinRescue(ctx, d.owner(), s, gitDir, tree, rec.Pin, head, parents...); err != nil {
		return nil, err
	}
	return rec, k.record(d.owner(), rescuePrefix+name, rec)
}
