package worktree

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"rnix/internal/plumbing"
)

// TestMain gives git a home of its own, so that no test depends on whose machine it runs on.
func TestMain(m *testing.M) {
	const ours = "WORKTREE_TEST_HOME"
	if os.Getenv(ours) != "" { // a test has started it, and removes what it leaves
		goleak.VerifyTestMain(m)
		return
	}
	home, err := os.MkdirTemp("", "wt")
	if err != nil {
		panic(err)
	}
	config := "[user]\n\tname = t\n\temail = t@localhost\n[init]\n\tdefaultBranch = main\n[protocol \"file\"]\n\tallow = always\n" +
		"[core]\n\tsshCommand = sh " + filepath.Join(home, "ssh") + "\n[ssh]\n\tvariant = simple\n"
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(config), 0o600); err != nil {
		panic(err)
	}
	// A host by the name of far is this machine: its repositories are reached as others are over the network.
	if err := os.WriteFile(filepath.Join(home, "ssh"), []byte("shift\nexec sh -c \"$*\"\n"), 0o600); err != nil {
		panic(err)
	}
	os.Setenv("HOME", home)
	os.Setenv(ours, home)
	os.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	os.Unsetenv("XDG_CONFIG_HOME")
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) { os.RemoveAll(home); os.Exit(code) }))
}

// fake is a git that answers as it is told, and remembers what it was asked.
type fake struct {
	answer func(n int, verb string, args []string) ([]byte, error) // n counts the calls of one verb, from 1

	mu     sync.Mutex
	calls  [][]string     // +checklocks:mu
	env    [][]string     // +checklocks:mu
	counts map[string]int // +checklocks:mu
}

const someCommit = "1111111111111111111111111111111111111111"

func (f *fake) run(ctx context.Context, env []string, name string, args ...string) ([]byte, error) {
	verb := plumbing.Verb(args)
	if verb == "worktree" {
		verb += " " + args[indexOf(args, "worktree")+1]
	}
	f.mu.Lock()
	if f.counts == nil {
		f.counts = map[string]int{}
	}
	f.counts[verb]++
	n := f.counts[verb]
	f.calls = append(f.calls, append([]string{name}, args...))
	f.env = append(f.env, env)
	f.mu.Unlock()
	if f.answer != nil {
		if out, err := f.answer(n, verb, args); out != nil || err != nil {
			return out, err
		}
	}
	if verb == "rev-parse" {
		return []byte(someCommit + "\n"), nil
	}
	return nil, nil
}

func indexOf(list []string, word string) int {
	for i, w := range list {
		if w == word {
			return i
		}
	}
	return -1
}

// plain is the fake as a runner without an environment.
func (f *fake) plain(ctx context.Context, name string, args ...string) ([]byte, error) {
	return f.run(ctx, nil, name, args...)
}

// verbs returns what git was asked, without looks at its configuration.
func (f *fake) verbs() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, c := range f.calls {
		v := plumbing.Verb(c[1:])
		if v == "worktree" {
			v += " " + c[indexOf(c, "worktree")+1]
		}
		if v != "config" {
			out = append(out, v)
		}
	}
	return out
}

func (f *fake) count(verb string) (n int) {
	for _, v := range f.verbs() {
		if v == verb {
			n++
		}
	}
	return n
}

// exitError is how a program fails.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }
func (e exitError) ExitCode() int { return int(e) }

func says(words string) ([]byte, error) { return []byte(words), exitError(128) }

func manager(t *testing.T, opts Options) *Manager {
	t.Helper()
	if opts.ParentDir == "" {
		opts.ParentDir = filepath.Join(t.TempDir(), "trees")
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	m, err := NewManager(opts)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// git runs the real git and returns what it says, without the line end.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	c := exec.Command("git", args...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func exists(path string) bool { _, err := os.Lstat(path); return err == nil }

// template is a repository to clone from and a clone of it, made once: each test works on a copy.
var template = sync.OnceValue(func() string {
	return made(`git init -q work && cd work && echo hello >README.md && echo '*.log' >.gitignore && git add . && git commit -qm one && cd .. &&
		git clone -q --bare work origin.git && git clone -q "$PWD/origin.git" clone && rm -r work`)
})

// subTemplate is the same with a submodule at sub, which is not checked out, and the repository of that.
var subTemplate = sync.OnceValue(func() string {
	return made(`cp -r ` + template() + `/* . && git -C clone remote set-url origin "$PWD/origin.git" && git clone -q --bare origin.git sub.git &&
		git clone -q sub.git work && cd work && echo x >of-sub.txt && git add . && git commit -qm two && git push -q && cd .. && rm -rf work &&
		cd clone && git submodule --quiet add ../sub.git sub && git commit -qm submodule && git push -q origin main && git submodule deinit -q -f sub && rm -r .git/modules`)
})

// made runs a script in a directory that no test writes in, and returns it.
func made(script string) string {
	top, err := os.MkdirTemp(os.Getenv("HOME"), "template")
	if err != nil {
		panic(err)
	}
	c := exec.Command("sh", "-ec", script)
	c.Dir = plumbing.Resolved(top)
	if out, err := c.CombinedOutput(); err != nil {
		panic(string(out))
	}
	return c.Dir
}

// origin returns a repository to clone from, and a clone of it.
func origin(t *testing.T) (bare, clone string) {
	t.Helper()
	return copied(t, template)
}

// submodules is origin with a submodule at sub, whose repository is sub.git beside the other.
func submodules(t *testing.T) (bare, clone string) {
	t.Helper()
	return copied(t, subTemplate)
}

func copied(t *testing.T, template func() string) (bare, clone string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	from, top := template(), plumbing.Resolved(t.TempDir())
	if err := os.CopyFS(top, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	bare, clone = filepath.Join(top, "origin.git"), filepath.Join(top, "clone")
	config, err := os.ReadFile(filepath.Join(clone, ".git", "config"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(clone, ".git", "config"), strings.ReplaceAll(string(config), from, top))
	return bare, clone
}

// commitAt makes a commit on a branch of a repository, and returns it.
func commitAt(t *testing.T, bare, branch, file string) string {
	t.Helper()
	tmp := filepath.Join(t.TempDir(), "c")
	git(t, "/", "clone", "-q", bare, tmp)
	git(t, tmp, "checkout", "-q", "-B", branch)
	write(t, filepath.Join(tmp, file), file)
	git(t, tmp, "add", ".")
	git(t, tmp, "commit", "-qm", file)
	git(t, tmp, "push", "-q", "origin", branch)
	return git(t, tmp, "rev-parse", "HEAD")
}

func mustPark(t *testing.T, err error, words string) {
	t.Helper()
	var p *ParkedError
	if !errors.Is(err, ErrParked) || !errors.As(err, &p) {
		t.Fatalf("not parked: %v", err)
	}
	if !strings.Contains(strings.Join(p.Reasons, "; "), words) {
		t.Fatalf("parked because of %q; want %q", p.Reasons, words)
	}
	if p.Look == "" || p.Path == "" || p.SessionID == "" {
		t.Fatalf("it does not say how to look at it: %+v", p)
	}
}
