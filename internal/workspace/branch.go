package workspace

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"rnix/internal/plumbing"
	"rnix/types"
)

// checkedOut is what a work tree has checked out.
type checkedOut struct {
	gitDir string
	head   string // the commit; "" = none yet
	branch string // "" = none. Git's short form of a name is not it: that depends on what else is called so
}

// checkedOut asks git what is checked out where a call leads.
func (k *git) checkedOut(ctx context.Context, id types.UUID, where call) (at checkedOut, err error) {
	ask := func(what ...string) (string, error) {
		c := where
		c.args = slices.Concat(where.args, what)
		out, err := k.run(ctx, id, c)
		return plumbing.Line(out), err
	}
	out, err := ask("rev-parse", "--absolute-git-dir", "HEAD^{commit}", "--symbolic-full-name", "HEAD")
	if err != nil && types.CodeOf(err) != types.ErrDriver {
		return at, err
	}
	if a := plumbing.Answers([]byte(out), 3); err == nil && a != nil && plumbing.IsObject(a[1]) && (a[2] == "HEAD" || strings.HasPrefix(a[2], "refs/")) {
		return checkedOut{a[0], a[1], branchOf(a[2])}, nil
	}
	// There is no commit, something else is called HEAD, or there is a line end in the path.
	if at.gitDir, err = ask("rev-parse", "--absolute-git-dir"); err != nil {
		return at, err
	}
	if at.head, err = ask("rev-parse", "-q", "--verify", "HEAD^{commit}"); err != nil && types.CodeOf(err) != types.ErrDriver {
		return at, err
	}
	ref, err := ask("symbolic-ref", "-q", "HEAD")
	if err != nil && types.CodeOf(err) != types.ErrDriver {
		return at, err
	}
	at.branch = branchOf(ref)
	return at, nil
}

// branchOf returns the branch that a reference is; "" if it is none.
func branchOf(ref string) string {
	name, ok := strings.CutPrefix(ref, "refs/heads/")
	if !ok {
		return ""
	}
	return name
}

// headOf returns the commit that is checked out in the work tree of a git directory; "" = none is.
func (k *git) headOf(ctx context.Context, id types.UUID, gitDir string) (string, error) {
	out, err := k.run(ctx, id, call{args: []string{"--git-dir=" + gitDir, "rev-parse", "-q", "--verify", "HEAD^{commit}"}})
	if types.CodeOf(err) == types.ErrDriver {
		return "", nil
	}
	return plumbing.Line(out), err
}

// freeBranch returns the name of a branch that can be made: name, or that with a number, or with other signs for
// its slashes where a branch is called as the part before one.
func (k *git) freeBranch(ctx context.Context, id types.UUID, gitDir, name string) (string, error) {
	out, err := k.run(ctx, id, call{args: []string{"--git-dir=" + gitDir, "for-each-ref", "--format=%(refname)", "refs/heads/"}})
	if err != nil {
		return "", err
	}
	taken := map[string]bool{} // branches, and what stands before a slash of one
	leaf := map[string]bool{}
	for l := range strings.Lines(string(out)) {
		ref := strings.TrimPrefix(strings.TrimSuffix(l, "\n"), "refs/heads/")
		leaf[ref], taken[ref] = true, true
		for i, c := range ref {
			if c == '/' {
				taken[ref[:i]] = true
			}
		}
	}
	for i, c := range name {
		if c == '/' && leaf[name[:i]] {
			name = strings.ReplaceAll(name, "/", "-")
			break
		}
	}
	free := name
	for n := 2; taken[free]; n++ {
		free = fmt.Sprintf("%s-%d", name, n)
	}
	return free, nil
}
