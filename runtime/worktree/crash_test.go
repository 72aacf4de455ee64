package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"rnix/internal/plumbing"
)

// The environment of a program that provisions and is killed on the way.
const (
	crashDir  = "WORKTREE_CRASH_DIR"
	crashRepo = "WORKTREE_CRASH_REPO"
	crashKind = "WORKTREE_CRASH_KIND"
	crashAt   = "WORKTREE_CRASH_AT" // before which call of git; negative: while it runs
)

func crashSpec(kind, repo string) ProvisionSpec {
	s := ProvisionSpec{SessionID: "s", Branch: "agent/s", BaseRef: "main", RepoURL: repo}
	if kind == "tree" {
		s.Strategy, s.RepoURL, s.ParentRepoPath = StrategyWorktreeAdd, "", repo
	}
	return s
}

// TestCrashingProgram is no test: it is what TestACrashAtEachStageLeavesNothing kills.
func TestCrashingProgram(t *testing.T) {
	dir := os.Getenv(crashDir)
	if dir == "" {
		return
	}
	at, _ := strconv.Atoi(os.Getenv(crashAt))
	n := 0
	die := func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL); select {} }
	m := manager(t, Options{ParentDir: dir, EnvCommandRunner: func(ctx context.Context, env []string, name string, args ...string) ([]byte, error) {
		if n++; n == at {
			die()
		}
		if n == -at { // git goes on alone: it is held up by a filter, so that it has not ended before we have
			started := make(chan struct{})
			go func() { close(started); _, _ = execute(ctx, env, name, args...) }() // ends with this program
			<-started
			for !exists(filepath.Join(dir, "s", ".git")) { // the program has nothing else to do
			}
			die()
		}
		return execute(ctx, env, name, args...)
	}})
	if _, err := m.Provision(t.Context(), crashSpec(os.Getenv(crashKind), os.Getenv(crashRepo))); err != nil {
		t.Fatal(err)
	}
	die() // all is made and recorded
}

func TestACrashAtEachStageLeavesNothing(t *testing.T) {
	for kind, stages := range map[string][]int{"clone": {1, -1, 2, 3}, "tree": {1, 2, 3, -3, 4, 5}} {
		for _, at := range stages {
			t.Run(fmt.Sprint(kind, at), func(t *testing.T) {
				t.Parallel()
				bare, repo := origin(t)
				if kind == "clone" {
					repo = bare
				}
				dir := filepath.Join(plumbing.Resolved(t.TempDir()), "trees")
				write(t, filepath.Join(dir, "mine", "mine.txt"), "mine")
				c := exec.Command(os.Args[0], "-test.run=^TestCrashingProgram$", "-test.timeout=60s")
				c.Env = append(os.Environ(), crashDir+"="+dir, crashRepo+"="+repo, crashKind+"="+kind, crashAt+"="+strconv.Itoa(at))
				out, err := c.CombinedOutput()
				if e, ok := errors.AsType[*exec.ExitError](err); !ok || e.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
					t.Fatalf("it was not killed: %v: %s", err, out)
				}
				m := manager(t, Options{ParentDir: dir})
				path, err := m.Path("s")
				if err == nil { // it was killed after the end: all is there
					if !exists(filepath.Join(path, "README.md")) {
						t.Error("nothing is there")
					}
				} else if path, err = m.Provision(t.Context(), crashSpec(kind, repo)); err != nil || !exists(filepath.Join(path, "README.md")) {
					t.Fatalf("made again: %v", err)
				}
				if err := m.Teardown(t.Context(), "s"); err != nil {
					t.Error(err)
				}
				if kind == "tree" {
					if list := git(t, repo, "worktree", "list"); strings.Count(list, "\n") > 0 {
						t.Errorf("git knows %s", list)
					}
				}
				var left []string
				entries, _ := os.ReadDir(dir)
				for _, e := range entries {
					left = append(left, e.Name())
				}
				if got := strings.Join(left, " "); got != ".worktrees mine" || !exists(filepath.Join(dir, "mine", "mine.txt")) {
					t.Errorf("left: %s", got)
				}
				if entries, _ := os.ReadDir(filepath.Join(dir, ".worktrees")); len(entries) > 0 {
					t.Errorf("records are left: %v", entries)
				}
			})
		}
	}
}

func TestADirectoryInThePlaceOfAnUnfinishedOneIsNotTouched(t *testing.T) {
	m := manager(t, Options{CommandRunner: (&fake{}).plain})
	path := filepath.Join(m.ParentDir(), "s")
	if err := os.Mkdir(m.ledger.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := m.ledger.write(&record{Session: "s", State: stateClaimed, Path: path, Device: 1, Inode: 1}); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(path, "mine.txt"), "mine")
	_, err := m.Provision(t.Context(), ProvisionSpec{SessionID: "s", RepoURL: "https://h/r"})
	if terr := m.Teardown(t.Context(), "s"); !errors.Is(err, ErrWorkareaRootOccupied) || !errors.Is(terr, ErrWorkareaRootOccupied) || !exists(filepath.Join(path, "mine.txt")) {
		t.Errorf("%v, %v", err, terr)
	}
}

func TestARecordThatCannotBeReadIsSaid(t *testing.T) {
	m := manager(t, Options{CommandRunner: (&fake{}).plain})
	for text, words := range map[string]string{"{": "not the record", `{"v":1,"session":"t","path":"/x"}`: "not the record", `{"v":9,"session":"s","path":"/x"}`: "newer program", "": "not the record"} {
		write(t, m.ledger.path("s"), text)
		if err := m.Teardown(t.Context(), "s"); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestACrashBetweenARecordAndItsDirectoryLeavesNothing(t *testing.T) {
	for name, recorded := range map[string]bool{"before the record": false, "behind it": true} {
		for _, again := range []bool{false, true} {
			m := manager(t, Options{CommandRunner: (&fake{}).plain})
			aside := m.ledger.coming("s")
			if err := os.MkdirAll(aside, 0o750); err != nil {
				t.Fatal(err)
			}
			if recorded {
				dev, ino, _ := identity(aside)
				if err := m.ledger.write(&record{Session: "s", State: stateClaimed, Path: filepath.Join(m.ParentDir(), "s"), Device: dev, Inode: ino, Strategy: StrategyEmpty}); err != nil {
					t.Fatal(err)
				}
			}
			if again || !recorded { // nobody has heard of the session: only who makes it takes the rest away
				if _, err := m.Provision(t.Context(), ProvisionSpec{SessionID: "s", Strategy: StrategyEmpty}); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			if err := m.Teardown(t.Context(), "s"); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if entries, _ := os.ReadDir(m.ledger.dir); len(entries) > 0 || exists(filepath.Join(m.ParentDir(), "s")) {
				t.Errorf("%s: left %v", name, entries)
			}
		}
	}
}

func TestADirectoryThatComesFirstIsNotReplaced(t *testing.T) {
	m := manager(t, Options{CommandRunner: (&fake{}).plain})
	path := filepath.Join(m.ParentDir(), "s")
	if err := os.MkdirAll(m.ledger.dir, 0o750); err != nil {
		t.Fatal(err)
	}
	r := &record{Session: "s", Path: path}
	err := m.ledger.claimDir("s", path, func(dev, ino uint64) error {
		r.Device, r.Inode, r.State = dev, ino, stateClaimed
		return errors.Join(m.ledger.write(r), os.Mkdir(path, 0o700)) // somebody else, at the last moment
	})
	if !errors.Is(err, ErrWorkareaRootOccupied) || !exists(path) || exists(m.ledger.path("s")) || exists(m.ledger.coming("s")) {
		t.Errorf("%v", err)
	}
}
