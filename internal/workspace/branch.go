package workspace

import (
	"context"
	"fmt"
	"strings"

	"rnix/types"
)

// branchIn returns the branch that is checked out in the work tree of a git directory. DRIVER if none is. Git's
// short form of a name is not it: that depends on what else is called so.
func (k *git) branchIn(ctx context.Context, id types.UUID, gitDir string) (string, error) {
	out, err := k.run(ctx, id, call{args: []string{"--git-dir=" + gitDir, "symbolic-ref", "-q", "HEAD"}})
	if err != nil {
		return "", err
	}
	name, ok := strings.CutPrefix(line(out), "refs/heads/")
	if !ok {
		return "", types.Errorf(types.ErrDriver, "Git", gitDir, "HEAD leads to %s, which is no branch", line(out))
	}
	return name, nil
}

// headOf returns the commit that is checked out in the work tree of a git directory; "" = none is.
func (k *git) headOf(ctx context.Context, id types.UUID, gitDir string) (string, error) {
	out, err := k.run(ctx, id, call{args: []string{"--git-dir=" + gitDir, "rev-parse", "-q", "--verify", "HEAD^{commit}"}})
	if types.CodeOf(err) == types.ErrDriver {
		return "", nil
	}
	return line(out), err
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
