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
func (k *trees) pin(ctx context.Context, h *history, id types.UUID, st *state, ref, what string, parents ...string) (string, error) {
	s, err := k.shadow(ctx, h, id, st.repo)
	if err != nil {
		return "", err
	}
	head, err := k.run(ctx, id, call{args: []string{"--git-dir=" + st.repo.gitDir, "rev-parse", "-q", "--verify", "HEAD^{commit}"}})
	if err == nil {
		parents = append([]string{line(head)}, parents...)
	} else if types.CodeOf(err) != types.ErrDriver { // no commit yet
		return "", err
	}
	args := []string{"commit-tree", st.ID}
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	out, err := k.run(ctx, id, call{args: s.args(args...), input: []byte("rnix " + what + " " + strings.TrimPrefix(ref, "refs/rnix/") + "\n")})
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
