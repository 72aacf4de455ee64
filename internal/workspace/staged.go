package workspace

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rnix/internal/plumbing"
	"rnix/types"
)

// staged returns a commit of what is in the index of a work tree, if that is not what is checked out. It works on a copy of the index: one that another
// git has locked, or had when it was killed, can be read all the same. Of a file in a conflict nothing is staged; it is rescued as it lies there.
func (k *desks) staged(ctx context.Context, d desk) ([]string, error) {
	if d.Common == "" {
		return nil, nil
	}
	gitDir := plumbing.Registration(d.Common, d.Dir) // where its .git leads to: refusals has looked
	dir := filepath.Join(k.base, "scratch")
	if err := mkdir(dir); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(dir, d.owner().String()+"-*.index")
	if err != nil {
		return nil, storage(dir, err)
	}
	index := f.Name()
	defer func() {
		_ = os.Remove(index)
		_ = os.Remove(index + ".lock")
	}()
	if err := f.Close(); err != nil {
		return nil, storage(index, err)
	}
	if there, err := copyWithTime(filepath.Join(gitDir, "index"), index); err != nil || !there {
		return nil, err
	}
	conf, err := k.config(ctx, d.owner(), gitDir, false)
	if types.CodeOf(err) == types.ErrDriver { // nor could git read what is staged
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	env := append(inert(conf, false), "GIT_INDEX_FILE="+index)
	run := func(input []byte, args ...string) ([]byte, error) {
		return k.run(ctx, d.owner(), call{dir: d.Dir, env: env, input: input, args: append([]string{"--git-dir=" + gitDir}, args...)})
	}
	line := func(args ...string) (string, error) {
		out, err := run(nil, args...)
		if types.CodeOf(err) == types.ErrDriver { // such as an index that is damaged, or no commit: its files are rescued
			return "", nil
		}
		return plumbing.Line(out), err
	}
	if out, err := run(nil, "ls-files", "-u", "-z"); err == nil && len(out) > 0 {
		var paths []string
		for _, entry := range plumbing.Records(out) {
			_, path, _ := strings.Cut(entry, "\t")
			paths = append(paths, path)
		}
		if _, err := run(plumbing.Zlist(slices.Compact(paths)), "update-index", "-z", "--force-remove", "--stdin"); err != nil {
			return nil, err
		}
	}
	tree, err := line("write-tree")
	if err != nil || tree == "" {
		return nil, err
	}
	head, err := line("rev-parse", "-q", "--verify", "HEAD^{tree}")
	if err != nil || head == tree {
		return nil, err
	}
	commit, err := line("commit-tree", "-m", "rnix index", tree)
	if err != nil || commit == "" {
		return nil, err
	}
	return []string{commit}, nil
}

// noRepositories refuses a directory that is no git work tree if a repository lies in it: no copy has what is called .git.
func noRepositories(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil && e != nil && e.IsDir():
			return fs.SkipDir // what cannot be read, the rescue says
		case err != nil || e.Name() != ".git":
			return nil
		}
		return conflict(dir, "it holds a repository, %s, which no rescue holds: move that away first", path)
	})
}
