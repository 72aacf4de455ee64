package worktree

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"rnix/internal/plumbing"
)

// The environment of a program that provisions one session, as others do at the same time.
const (
	raceDir  = "WORKTREE_RACE_DIR"
	raceRepo = "WORKTREE_RACE_REPO"
	raceKind = "WORKTREE_RACE_KIND"
)

// TestProvisioningProgram is no test: it is one of the processes of TestOneOfManyProcessesGetsASession.
func TestProvisioningProgram(t *testing.T) {
	dir := os.Getenv(raceDir)
	if dir == "" {
		return
	}
	m := manager(t, Options{ParentDir: dir})
	spec := ProvisionSpec{SessionID: "s", Strategy: StrategyWorktreeAdd, ParentRepoPath: os.Getenv(raceRepo), Branch: "agent/s", BaseRef: "main"}
	var path string
	var err error
	if os.Getenv(raceKind) == "root" {
		var r Root
		spec.SessionID = ""
		r, err = NewRoots(m).Provision(t.Context(), RootSpec{SessionID: "s", Repositories: []Repository{{Name: "api", Checkout: spec}}})
		path = r.Dir
	} else {
		path, err = m.Provision(t.Context(), spec)
	}
	switch {
	case err == nil: // the winner works, and what it has done must outlive the losers
		if err := os.WriteFile(filepath.Join(path, "work.txt"), []byte("work"), 0o600); err != nil {
			t.Fatal(err)
		}
		fmt.Println("WON " + path)
	case errors.Is(err, ErrWorkareaRootOccupied):
		if err := m.Teardown(t.Context(), "s"); err != nil && !errors.Is(err, ErrParked) { // a loser that cleans up after itself
			t.Fatal(err)
		}
		fmt.Println("LOST")
	default:
		t.Fatal(err)
	}
}

func TestOneOfManyProcessesGetsASession(t *testing.T) {
	for _, kind := range []string{"flat", "root"} {
		_, clone := origin(t)
		dir := filepath.Join(plumbing.Resolved(t.TempDir()), "trees")
		said := make([]string, 4)
		var all sync.WaitGroup
		for i := range said {
			all.Go(func() { // ends with its process
				c := exec.Command(os.Args[0], "-test.run=^TestProvisioningProgram$", "-test.timeout=100s")
				c.Env = append(os.Environ(), raceDir+"="+dir, raceRepo+"="+clone, raceKind+"="+kind)
				out, err := c.CombinedOutput()
				if err != nil {
					t.Errorf("%v: %s", err, out)
				}
				said[i] = string(out)
			})
		}
		all.Wait()
		if s := strings.Join(said, ""); strings.Count(s, "WON ") != 1 || strings.Count(s, "LOST") != len(said)-1 {
			t.Errorf("%s: %q", kind, said)
			continue
		}
		for _, s := range said {
			if _, path, ok := strings.Cut(s, "WON "); ok {
				path, _, _ = strings.Cut(path, "\n")
				if b, err := os.ReadFile(filepath.Join(path, "work.txt")); err != nil || string(b) != "work" || git(t, path, "status", "--porcelain") != "?? work.txt" {
					t.Errorf("%s: the winner's work: %q, %v", kind, b, err)
				}
			}
		}
	}
}
