package workspace

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"rnix/types"
)

// pin makes a commit of a tree, over the commit that is checked out, and a reference to it, so that git
// keeps both. It returns the commit.
func (k *trees) pin(ctx context.Context, id types.UUID, st *state, ref, what string, parents ...string) (string, error) {
	commitTree := func(parents ...string) []string {
		args := []string{"--git-dir=" + st.repo.gitDir, "commit-tree", st.ID}
		for _, p := range parents {
			args = append(args, "-p", p)
		}
		return args
	}
	c := call{args: commitTree(append([]string{"HEAD"}, parents...)...), input: []byte("rnix " + what + " " + strings.TrimPrefix(ref, "refs/rnix/") + "\n")}
	out, err := k.run(ctx, id, c)
	if types.CodeOf(err) == types.ErrDriver { // no commit yet
		c.args = commitTree(parents...)
		out, err = k.run(ctx, id, c)
	}
	if err != nil {
		return "", err
	}
	commit := line(out)
	update := call{args: []string{"--git-dir=" + st.repo.common, "update-ref", "--no-deref", ref, commit}}
	if _, err = k.run(ctx, id, update); types.CodeOf(err) == types.ErrDriver {
		lock := filepath.Join(st.repo.common, filepath.FromSlash(ref)+".lock")
		if os.Remove(lock) == nil { // of a git of ours that was killed: nobody else writes this reference
			_, err = k.run(ctx, id, update)
		}
	}
	return commit, err
}
