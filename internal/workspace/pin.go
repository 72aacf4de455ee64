package workspace

import (
	"context"
	"fmt"
	"strings"
	"time"

	"rnix/internal/plumbing"
	"rnix/types"
)

// pin makes a reference to the tree of a state, so that it is kept. It returns the commit that is checked out; "" = none is.
func (k *trees) pin(ctx context.Context, id types.UUID, st *state, ref string) (base string, err error) {
	if base = plumbing.Head(st.repo.gitDir, st.repo.common); base == "" {
		if base, err = k.headOf(ctx, id, st.repo.gitDir); err != nil {
			return "", err
		}
	}
	return base, k.hold(ctx, id, st.store, ref, st.ID)
}

// pinRescue makes a commit of a tree that is in a store, over the commit base and further ones, and a reference to it, and copies of these what
// no reference of the user's repository holds, of which gitDir is a git directory. base "" = none. It returns the commit.
func (k *stores) pinRescue(ctx context.Context, id types.UUID, s *store, gitDir, tree, ref, base string, further ...string) (string, error) {
	var parents []string
	if base != "" {
		parents = append(parents, base)
	}
	parents = append(parents, further...)
	if len(parents) > 0 {
		ids, err := k.below(ctx, id, s, gitDir, nil, parents)
		if err != nil {
			return "", err
		}
		if err := k.fill(ctx, id, s, ids); err != nil {
			return "", err
		}
	}
	// Git's commit-tree would look for the parents, of which the user's repository may hold some.
	var text strings.Builder
	fmt.Fprintf(&text, "tree %s\n", tree)
	for _, p := range parents {
		fmt.Fprintf(&text, "parent %s\n", p)
	}
	who := fmt.Sprintf("rnix <rnix@localhost> %d +0000", time.Now().Unix())
	fmt.Fprintf(&text, "author %s\ncommitter %s\n\nrnix rescue %s\n", who, who, strings.TrimPrefix(ref, "refs/rnix/"))
	out, err := k.run(ctx, id, call{env: s.alone(), args: s.args("hash-object", "-t", "commit", "-w", "--stdin"), input: []byte(text.String())})
	if err != nil {
		return "", err
	}
	return plumbing.Line(out), k.hold(ctx, id, s, ref, plumbing.Line(out))
}
