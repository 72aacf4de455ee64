package worktree

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"rnix/types"
)

// gate lets readers through together and a writer alone. A writer that waits goes before readers that
// come after it. Its fields are guarded by registry.mu.
type gate struct {
	users   int // who has it, or waits for it
	readers int
	writing bool
	waiting int           // writers
	changed chan struct{} // closed when one of these has changed
}

// registry knows the gates and the fetches of all repositories of this process: several managers can
// work in one repository.
type registry struct {
	mu sync.Mutex
	// By common git directory.
	gates   map[string]*gate      // +checklocks:mu
	flights map[flightKey]*flight // +checklocks:mu
}

var shared = registry{gates: map[string]*gate{}, flights: map[flightKey]*flight{}}

// enter waits for the gate of a repository. The caller calls leave.
func (g *registry) enter(ctx context.Context, repo string, write bool) (leave func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := g.gates[repo]
	if e == nil {
		e = &gate{changed: make(chan struct{})}
		g.gates[repo] = e
	}
	e.users++
	if write {
		e.waiting++
	}
	for e.writing || write && e.readers > 0 || !write && e.waiting > 0 {
		changed := e.changed
		g.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		g.mu.Lock()
		if ctx.Err() != nil {
			if write {
				e.waiting--
			}
			g.leftLocked(repo, e)
			return nil, types.Errorf(types.ErrCancelled, "Gate", repo, "others add or remove work trees there: %w", context.Cause(ctx))
		}
	}
	if write {
		e.waiting--
		e.writing = true
	} else {
		e.readers++
	}
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if write {
			e.writing = false
		} else {
			e.readers--
		}
		g.leftLocked(repo, e)
	}), nil
}

// leftLocked tells those who wait that somebody has left.
//
// +checklocks:g.mu
func (g *registry) leftLocked(repo string, e *gate) {
	close(e.changed)
	e.changed = make(chan struct{})
	if e.users--; e.users == 0 {
		delete(g.gates, repo)
	}
}

// commonDir returns the directory that all work trees of a repository share, absolute and without
// symbolic links: however a repository is named, this is its name. What is no repository has its own
// path; git says later what is wrong with it.
func commonDir(repo string) string {
	dir := resolved(repo)
	for top := dir; ; top = filepath.Dir(top) {
		if git := gitDirOf(top); git != "" {
			return commonOf(git)
		}
		if isGitDir(top) { // bare, or inside of one
			return commonOf(top)
		}
		if top == filepath.Dir(top) {
			return dir
		}
	}
}

// gitDirOf returns the git directory of the work tree whose top is dir; "" if it is none.
func gitDirOf(dir string) string {
	path := filepath.Join(dir, ".git")
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	if info.IsDir() {
		return resolved(path)
	}
	return pointer(path, "gitdir: ", dir)
}

// commonOf returns the common directory of a git directory.
func commonOf(gitDir string) string {
	if common := pointer(filepath.Join(gitDir, "commondir"), "", gitDir); common != "" {
		return common
	}
	return gitDir
}

// pointer returns the path that a small file of git holds behind a word; "" if it holds none.
func pointer(path, word, from string) string {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > 1<<16 {
		return ""
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	target, ok := strings.CutPrefix(strings.TrimRight(string(b), "\n"), word)
	if !ok || target == "" {
		return ""
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(from, target)
	}
	return resolved(target)
}

func isGitDir(dir string) bool {
	for _, name := range []string{"HEAD", "objects"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// resolved returns a path without symbolic links, as far as it exists.
func resolved(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		abs = filepath.Clean(path)
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		return real
	}
	if parent := filepath.Dir(abs); parent != abs {
		return filepath.Join(resolved(parent), filepath.Base(abs))
	}
	return abs
}
