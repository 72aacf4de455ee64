package worktree

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"rnix/types"
)

// harnessDirs are directories that agents and their tools keep at the top of a checkout and that are
// not work: they are not shown as changes, and are no reason to park a checkout.
var harnessDirs = []string{".agent", ".claude", ".codex", ".pi", ".rnix", ".scratch"}

// HarnessDirs returns the names of the directories at the top of a checkout that hold the state of
// agents and their tools, and no work.
func HarnessDirs() []string { return slices.Clone(harnessDirs) }

// isHarness reports whether a path below the top of a checkout is in one of those directories.
func isHarness(path string) bool {
	top, _, _ := strings.Cut(path, "/")
	return slices.Contains(harnessDirs, top)
}

// Exclude makes git overlook the directories of HarnessDirs in the repository of a checkout, for those
// who have none of them under version control. It writes the repository's own info/exclude, which all
// of its work trees share, and no file of the work. A directory without a repository is no error.
func Exclude(checkout string) error {
	gitDir := gitDirOf(checkout)
	if gitDir == "" {
		return nil
	}
	info := filepath.Join(commonOf(gitDir), "info")
	path := filepath.Join(info, "exclude")
	if err := os.Mkdir(info, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return types.Errorf(types.ErrStorage, "Exclude", info, "%w", err)
	}
	// Who works there could have put a link in its place, to a file that is no business of git's.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o666)
	if err != nil {
		return types.Errorf(types.ErrStorage, "Exclude", path, "%w", err)
	}
	old, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err == nil {
		_, err = f.Write(missingLines(string(old)))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return types.Errorf(types.ErrStorage, "Exclude", path, "%w", err)
	}
	return nil
}

// missingLines returns what is to be appended to a file of what git overlooks.
func missingLines(old string) []byte {
	var add []byte
	if old != "" && !strings.HasSuffix(old, "\n") {
		add = append(add, '\n')
	}
	have, begin := strings.Split(old, "\n"), len(add)
	for _, name := range harnessDirs {
		if line := "/" + name + "/"; !slices.Contains(have, line) {
			add = append(add, line+"\n"...)
		}
	}
	if len(add) == begin {
		return nil
	}
	return add
}
