package worktree

import (
	"encoding/hex"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"rnix/internal/plumbing"
)

// agentDir is the directory in which runtime/state keeps the state of a session, at the top of a
// checkout or a root. A test of package runtime says that these names are those that it writes.
const agentDir = ".agent"

var stateFiles = []string{".gitignore", "state.json", "state.json.bad", "state.lock"}

// stateIgnore is what .gitignore of agentDir holds. One that holds something else is somebody's work.
const stateIgnore = "*\n"

// isState reports whether a file below a directory is one of those that runtime/state writes: it is no
// work. All else in the same directory is.
func isState(top, rel string) bool {
	dir, name := path.Split(rel)
	if dir != agentDir+"/" || !isStateName(name) {
		return false
	}
	file := filepath.Join(top, rel)
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	if name != stateFiles[0] {
		return true
	}
	if info.Size() != int64(len(stateIgnore)) {
		return false
	}
	b, err := plumbing.Beginning(file, int64(len(stateIgnore))+1)
	return err == nil && string(b) == stateIgnore
}

// isStateName knows also the names under which a file is written before it takes the place of another.
func isStateName(name string) bool {
	if slices.Contains(stateFiles, name) {
		return true
	}
	for _, f := range stateFiles[1:3] {
		mid, ok := strings.CutPrefix(name, "."+f+".")
		if mid, end := strings.CutSuffix(mid, ".tmp~"); ok && end {
			if b, err := hex.DecodeString(mid); err == nil && len(b) == 8 {
				return true
			}
		}
	}
	return false
}

// besides returns what is at the top of a directory, but for a directory with nothing but the state of
// a session.
func besides(top string) ([]string, error) {
	entries, err := os.ReadDir(top)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.Name() != agentDir || !e.IsDir() {
			names = append(names, e.Name())
			continue
		}
		inside, err := os.ReadDir(filepath.Join(top, agentDir))
		if err != nil {
			return nil, err
		}
		for _, i := range inside {
			if rel := agentDir + "/" + i.Name(); !isState(top, rel) {
				names = append(names, rel)
			}
		}
	}
	return names, nil
}
