package worktree

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"rnix/types"
)

// maxSparse is how many directories a sparse checkout can name, and maxSparseBytes how long all of
// their names can be: they are arguments of one command.
const (
	maxSparse      = 1024
	maxSparseBytes = 64 << 10
)

// badSparse says why directories cannot be those of a sparse checkout; "" = they can. A name means
// itself: what would be a pattern is refused.
func badSparse(dirs []string) string {
	bytes := 0
	for _, d := range dirs {
		bytes += len(d)
		switch {
		case d == "" || d == "." || d != path.Clean(d) || path.IsAbs(d) || d == ".." || strings.HasPrefix(d, "../"):
			return fmt.Sprintf("directory %q of the sparse checkout is no path below its top", d)
		case strings.HasPrefix(d, "-"):
			return fmt.Sprintf("directory %q of the sparse checkout begins with a -, as options do", d)
		case d == ".git" || strings.HasPrefix(d, ".git/"):
			return fmt.Sprintf("directory %q of the sparse checkout is git's own", d)
		case strings.ContainsAny(d, `*?[]\!#"`) || strings.ContainsFunc(d, func(r rune) bool { return r < 0x20 || r == 0x7f }):
			return fmt.Sprintf("directory %q of the sparse checkout holds a sign that git reads as more than a name", d)
		}
	}
	if len(dirs) > maxSparse || bytes > maxSparseBytes {
		return fmt.Sprintf("the sparse checkout names more than %d directories, or %d bytes of names", maxSparse, maxSparseBytes)
	}
	return ""
}

// narrow leaves in a checkout the files at its top and those below the directories of a sparse
// checkout. In a work tree none is there yet.
func (p *attempt) narrow(ctx context.Context) error {
	if len(p.spec.Sparse) == 0 {
		return nil
	}
	set := slices.Concat(p.quiet, p.auth.set) // what a clone has not been sent yet is fetched now
	_, err := p.git.git(ctx, set, slices.Concat([]string{"-C", p.rec.Path, "sparse-checkout", "set", "--cone", "--"}, p.spec.Sparse)...)
	if err == nil && p.spec.Strategy == StrategyWorktreeAdd {
		_, err = p.git.git(ctx, set, "-C", p.rec.Path, "read-tree", "-m", "-u", "HEAD")
	}
	if err != nil {
		return types.Errorf(types.ErrDriver, "Provision", p.rec.Path, "%w", err)
	}
	return nil
}
