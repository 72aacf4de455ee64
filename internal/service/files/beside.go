package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"rnix/internal/durable"
	"rnix/internal/workspace"
	"rnix/runtime/worktree"
	"rnix/types"
)

// mostBeside is how many names of what lies beside a work tree are told.
const mostBeside = 3

// beside says for people what lies beside the work tree of a history, in home, which was made for it: the process has put it there
// ("git worktree add ../x"), and nothing looks at it. "" if there is nothing.
func beside(home string, tree workspace.Tree) (string, error) {
	entries, err := os.ReadDir(home)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", types.Errorf(types.ErrStorage, "Worktree", home, "%w", err)
	}
	own := ""
	if resolved(filepath.Dir(tree.Dir)) == resolved(home) { // that of a fork is elsewhere
		own = filepath.Base(tree.Dir)
	}
	var names []string
	for _, e := range entries {
		name := e.Name()
		if name == own || name == noteName || name == worktree.StateDir || durable.IsTemp(name) {
			continue
		}
		names = append(names, strconv.Quote(name))
	}
	if len(names) == 0 {
		return "", nil
	}
	more := ""
	if n := len(names) - mostBeside; n > 0 {
		names, more = names[:mostBeside], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("beside it, in %s: %s%s", home, strings.Join(names, ", "), more), nil
}
