package workspace

import (
	"context"
	"slices"
	"strings"

	"rnix/types"
)

// filtered returns the files that are different in two trees and that git would send through a program before they are committed, as git lfs
// does: this program runs none, so a commit of its own would hold what belongs elsewhere. A filter counts if the user's own configuration names
// it, or that of the repository did when the work tree was made: a later one could be an agent's, and nobody is to run that on this advice.
func (k *canopy) filtered(ctx context.Context, id types.UUID, s standing, from, to string) ([]string, error) {
	git := "--git-dir=" + s.gitDir
	set, err := k.run(ctx, id, call{user: true, args: []string{git, "config", "-z", "--show-scope", "--name-only", "--get-regexp", `^filter\..*\.(clean|process)$`}})
	if types.CodeOf(err) == types.ErrDriver { // there is none
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names := records(set)
	if len(names) == 0 {
		return nil, nil
	}
	now, err := k.programs(ctx, id, s.Common)
	if err != nil {
		return nil, err
	}
	kept, _ := compared(s.Programs, now)
	programs := map[string]bool{}
	for f := names; len(f) > 1; f = f[2:] {
		if (f[0] == "local" || f[0] == "worktree") && !slices.Contains(kept, f[1]) {
			continue
		}
		name := strings.TrimPrefix(f[1], "filter.")
		programs[name[:max(strings.LastIndexByte(name, '.'), 0)]] = true
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
	for f := records(out); len(f) > 2; f = f[3:] {
		if programs[f[2]] {
			files = append(files, f[0])
		}
	}
	return files, nil
}
