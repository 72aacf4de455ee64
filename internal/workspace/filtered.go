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

// filtered returns the files that are different in two trees and that git would send through a program before they are committed, as git lfs
// does: this program runs none, so a commit of its own would hold what belongs elsewhere. A filter counts if the user's own configuration names
// it, or that of the repository did when the work tree was made: a later one could be an agent's, and nobody is to run that on this advice.
func (k *canopy) filtered(ctx context.Context, id types.UUID, s standing, conf plumbing.Config, from, to string) ([]string, error) {
	return k.behindFilters(ctx, id, s, conf.Filters("clean", "process"), from, to, true)
}

// unfiltered returns the files that a merge has brought into a work tree as they are in their commit, although git would send them through a filter
// that the configuration of the repository names: such a one could run what came with the merge. Those of the user's own configuration are run.
func (k *canopy) unfiltered(ctx context.Context, id types.UUID, s standing, conf plumbing.Config, from, to string) ([]string, error) {
	return k.behindFilters(ctx, id, s, conf.Filters("smudge", "process"), from, to, false)
}

// behindFilters returns the files that are different in two trees and have one of some filters, by a configuration that filtered
// counts; with mine, the user's own, too.
func (k *canopy) behindFilters(ctx context.Context, id types.UUID, s standing, set plumbing.Config, from, to string, mine bool) ([]string, error) {
	if len(set) == 0 {
		return nil, nil
	}
	now, err := k.programs(ctx, id, s.Common)
	if err != nil {
		return nil, err
	}
	git := "--git-dir=" + s.gitDir
	kept, _ := compared(s.Programs, now)
	filters := map[string]bool{}
	for _, e := range set {
		if e.Local() && !slices.Contains(kept, e.Key) || !e.Local() && !mine {
			continue
		}
		filters[strings.TrimPrefix(e.Section(), "filter.")] = true
	}
	if len(filters) == 0 {
		return nil, nil
	}
	changed, err := k.run(ctx, id, call{args: []string{git, "diff-tree", "-r", "-z", "--no-renames", "--name-only", "--diff-filter=AM", from, to}})
	if err != nil || len(changed) == 0 {
		return nil, err
	}
	out, err := k.run(ctx, id, call{dir: s.Dir, user: true, args: []string{git, "--work-tree=" + s.Dir, "check-attr", "-z", "--stdin", "filter"}, input: changed})
	if err != nil {
		return nil, err
	}
	var files []string
	for f := plumbing.Records(out); len(f) > 2; f = f[3:] {
		if filters[f[2]] {
			files = append(files, f[0])
		}
	}
	return files, nil
}

// fileTick is longer than what lies between two times that a file system can tell apart.
const fileTick = 20 * time.Millisecond

// freshFiles lets the files of a work tree that was just made count as untouched where filters of the user's own are set: sketch runs none, so it has
// to know by their times that they are as git has them. With refresh git looks at them first, and runs these filters. Nobody works there yet.
func (k *canopy) freshFiles(ctx context.Context, id types.UUID, dir, gitDir string, refresh bool) error {
	conf, err := k.config(ctx, id, gitDir, true)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(conf.Filters("clean", "process"), func(e plumbing.Entry) bool { return !e.Local() }) {
		return nil
	}
	if refresh {
		_, err := k.run(ctx, id, call{dir: dir, user: true, mine: true, env: inert(conf, true), args: []string{"--git-dir=" + gitDir, "--work-tree=" + dir, "update-index", "-q", "--refresh"}})
		if err != nil && types.CodeOf(err) != types.ErrDriver { // files are others, or a filter has failed
			return err
		}
	}
	t := time.NewTimer(fileTick) // the index is to be later than each of them
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return types.Errorf(types.ErrCancelled, "Worktree", dir, "%w", context.Cause(ctx))
	}
	index, now := filepath.Join(gitDir, "index"), time.Now()
	if err := os.Chtimes(index, now, now); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return storage(index, err)
	}
	return nil
}
