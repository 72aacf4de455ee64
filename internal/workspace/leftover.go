package workspace

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"rnix/types"
)

// Leftover is what there is of a work tree that is gone.
type Leftover struct {
	Branch  string // that it was made with, as far as that is still there
	Head    string // the commit of the branch
	Commits int    // of the branch since the work began; those that were merged count, too
	Rescues string // the command that lists what was kept of its files
}

// LeftoverOf says what there is of a work tree that is gone.
func LeftoverOf(ctx context.Context, g *Grove, id types.UUID, t Tree) Leftover {
	k := g.git
	l := Leftover{Rescues: k.RescueList(t.Common, id)}
	if t.Branch == "" || !hasBranch(ctx, k, id, t) {
		return l
	}
	l.Branch = t.Branch
	ref := "refs/heads/" + t.Branch
	if out, err := k.run(ctx, id, call{args: []string{"--git-dir=" + t.Common, "rev-parse", "-q", "--verify", ref}}); err == nil {
		l.Head = strings.TrimSpace(string(out))
	}
	if out, err := k.run(ctx, id, call{args: []string{"--git-dir=" + t.Common, "rev-list", "--count", ref, "^" + t.Base, "--"}}); err == nil {
		l.Commits, _ = strconv.Atoi(strings.TrimSpace(string(out))) // git writes a number
	}
	return l
}

// Remains says what there is of a work tree that is gone: its branch, as far as that is there, and where what was rescued is listed.
func (k *git) Remains(ctx context.Context, id types.UUID, t Tree) string {
	branch := ""
	if t.Branch != "" && hasBranch(ctx, k, id, t) {
		branch = fmt.Sprintf("its branch %s is still in %s, and ", t.Branch, t.Repo)
	}
	return branch + "what was kept of its files is listed by: " + k.RescueList(t.Common, id)
}
