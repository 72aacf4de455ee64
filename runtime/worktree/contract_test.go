package worktree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rnix/types"
)

func TestAManagerNeedsAParentDirectory(t *testing.T) {
	for _, dir := range []string{"", "  \t"} {
		if _, err := NewManager(Options{ParentDir: dir}); !errors.Is(err, ErrNoParentDir) {
			t.Errorf("NewManager(%q): %v", dir, err)
		}
	}
	t.Chdir(t.TempDir())
	m, err := NewManager(Options{ParentDir: "a/b"})
	if err != nil || !filepath.IsAbs(m.ParentDir()) || !exists(m.ParentDir()) {
		t.Errorf("ParentDir = %q, %v", m.ParentDir(), err)
	}
}

func TestStrategiesHaveNames(t *testing.T) {
	for s, want := range map[CloneStrategy]string{0: "clone", 1: "worktree-add", 2: "empty", 3: "unknown", -1: "unknown"} {
		if s.String() != want {
			t.Errorf("%d is %q", s, s)
		}
	}
	if MaxSpawnRetries != 3 || SpawnRetryDelay != 15*time.Second {
		t.Error("the limits are not those that others rely on")
	}
}

func TestACloneIsOneCallOfGit(t *testing.T) {
	f := &fake{}
	m := manager(t, Options{CommandRunner: f.plain})
	path, err := m.Provision(t.Context(), ProvisionSpec{SessionID: "s-1", RepoURL: "https://h/r.git", Branch: "main"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"git", "clone", "--quiet", "--branch", "main", "--", "https://h/r.git", path}
	if len(f.calls) != 1 || !slices.Equal(f.calls[0], want) {
		t.Errorf("calls %q", f.calls)
	}
	if filepath.Base(path) != "s-1" {
		t.Errorf("path %s", path)
	}
	if again, err := m.Path("s-1"); again != path || err != nil {
		t.Errorf("Path = %s, %v", again, err)
	}
	if _, err := m.Path("other"); !errors.Is(err, ErrUnknownSession) {
		t.Errorf("Path of another: %v", err)
	}
	if r, err := m.Result("s-1"); err != nil || r.Attempts != 1 || r.Strategy != StrategyClone {
		t.Errorf("Result = %+v, %v", r, err)
	}
	if list, err := m.Sessions(); err != nil || !slices.Equal(list, []string{"s-1"}) {
		t.Errorf("Sessions = %q, %v", list, err)
	}
}

func TestAConflictIsTriedAgainAfterTheDelay(t *testing.T) {
	for _, words := range []string{"fatal: 'b' is already checked out at '/x'", "fatal: 'b' is already used by worktree at '/x'", "error: could not lock config file .git/config: File exists",
		"fatal: failed to read .git/worktrees/x/HEAD", "Agent already running", "Agent is still running"} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{answer: func(n int, verb string, _ []string) ([]byte, error) {
				if verb == "clone" && n == 1 {
					return says(words)
				}
				return nil, nil
			}}
			probed := 0
			m := manager(t, Options{CommandRunner: f.plain, OwnershipProber: func(_ context.Context, id string) (bool, error) {
				probed++
				return id == "s", nil
			}})
			began := time.Now()
			if _, err := m.Provision(t.Context(), ProvisionSpec{SessionID: "s", RepoURL: "https://h/r"}); err != nil {
				t.Fatalf("%s: %v", words, err)
			}
			if r, _ := m.Result("s"); r.Attempts != 2 || probed != 1 || time.Since(began) != SpawnRetryDelay {
				t.Errorf("%s: %d attempts, %d probes, after %s", words, r.Attempts, probed, time.Since(began))
			}
		})
	}
}

func TestTheProberDecidesWhetherATryFollows(t *testing.T) {
	for _, tt := range []struct {
		name  string
		owned bool
		err   error
		want  error
		tries int
	}{{"lost", false, nil, ErrLostOwnership, 1}, {"nobody knows", false, errors.New("down"), nil, 3}} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{answer: func(int, string, []string) ([]byte, error) { return says("already checked out") }}
			probed := 0
			m := manager(t, Options{CommandRunner: f.plain, OwnershipProber: func(context.Context, string) (bool, error) {
				probed++
				return tt.owned, tt.err
			}})
			_, err := m.Provision(t.Context(), ProvisionSpec{SessionID: "s", RepoURL: "https://h/r"})
			if tt.want != nil && !errors.Is(err, tt.want) || f.count("clone") != tt.tries || probed == 0 {
				t.Errorf("%s: %v, %d tries, %d probes", tt.name, err, f.count("clone"), probed)
			}
			if tt.tries == 3 && !strings.Contains(err.Error(), "after 3 attempts") {
				t.Errorf("%s: %v", tt.name, err)
			}
			if exists(filepath.Join(m.ParentDir(), "s")) {
				t.Error("something was left")
			}
		})
	}
}

func TestWhatCannotGetBetterIsTriedOnce(t *testing.T) {
	f := &fake{answer: func(int, string, []string) ([]byte, error) { return says("fatal: repository not found") }}
	m := manager(t, Options{CommandRunner: f.plain})
	_, err := m.Provision(t.Context(), ProvisionSpec{SessionID: "s", RepoURL: "https://h/r"})
	if err == nil || f.count("clone") != 1 || !strings.Contains(err.Error(), "repository not found") {
		t.Errorf("%v, %d tries", err, f.count("clone"))
	}
	if _, err := m.Path("s"); !errors.Is(err, ErrUnknownSession) {
		t.Errorf("it is known: %v", err)
	}
}

func TestACancelledCallerWaitsNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: func(int, string, []string) ([]byte, error) { return says("already checked out") }}
		m := manager(t, Options{CommandRunner: f.plain})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := m.Provision(ctx, ProvisionSpec{SessionID: "s", RepoURL: "https://h/r"})
		if !errors.Is(err, context.DeadlineExceeded) || types.CodeOf(err) != types.ErrCancelled {
			t.Errorf("%v", err)
		}
	})
}

func TestTeardownOfAnUnknownSessionIsNothing(t *testing.T) {
	m := manager(t, Options{CommandRunner: (&fake{}).plain})
	for _, id := range []string{"none", "", "../x"} {
		if err := m.Teardown(t.Context(), id); err != nil {
			t.Errorf("Teardown(%q): %v", id, err)
		}
	}
}

func TestAnEmptyDirectoryNeedsNoGit(t *testing.T) {
	f := &fake{}
	m := manager(t, Options{CommandRunner: f.plain})
	path, err := m.Provision(t.Context(), ProvisionSpec{SessionID: "s", Strategy: StrategyEmpty, LeafName: "leaf"})
	if err != nil || filepath.Base(path) != "leaf" {
		t.Fatalf("%s, %v", path, err)
	}
	write(t, filepath.Join(path, "notes.txt"), "work")
	mustPark(t, m.Teardown(t.Context(), "s"), "notes.txt")
	if !exists(filepath.Join(path, "notes.txt")) {
		t.Fatal("work is lost")
	}
	if _, err := m.Provision(t.Context(), ProvisionSpec{SessionID: "s", Strategy: StrategyEmpty, LeafName: "leaf"}); !errors.Is(err, ErrWorkareaRootOccupied) {
		t.Errorf("made twice: %v", err)
	}
	if err := errors.Join(os.Remove(filepath.Join(path, "notes.txt")), m.Teardown(t.Context(), "s")); err != nil || exists(path) || len(f.calls) != 0 {
		t.Errorf("%v, exists %v, calls %q", err, exists(path), f.calls)
	}
}

func TestSpecsThatCannotBeMeantReachNoGit(t *testing.T) {
	empty := ProvisionSpec{SessionID: "s", Strategy: StrategyEmpty}
	tree := ProvisionSpec{SessionID: "s", Strategy: StrategyWorktreeAdd, ParentRepoPath: "/p"}
	clone := ProvisionSpec{SessionID: "s", RepoURL: "https://h/r"}
	set := func(s ProvisionSpec, f func(*ProvisionSpec)) ProvisionSpec { f(&s); return s }
	for name, tt := range map[string]struct {
		spec ProvisionSpec
		want error
	}{
		"no session":          {ProvisionSpec{RepoURL: "https://h/r"}, nil},
		"blank session":       {set(clone, func(s *ProvisionSpec) { s.SessionID = "  " }), nil},
		"session above":       {set(clone, func(s *ProvisionSpec) { s.SessionID = "../x" }), nil},
		"session an option":   {set(clone, func(s *ProvisionSpec) { s.SessionID = "-x" }), nil},
		"leaf above":          {set(clone, func(s *ProvisionSpec) { s.LeafName = "a/../../b" }), nil},
		"leaf of ours":        {set(clone, func(s *ProvisionSpec) { s.LeafName = ".worktrees" }), nil},
		"leaf of leases":      {set(clone, func(s *ProvisionSpec) { s.LeafName = ".terminal-leases" }), nil},
		"no url":              {set(clone, func(s *ProvisionSpec) { s.RepoURL = "" }), nil},
		"url an option":       {set(clone, func(s *ProvisionSpec) { s.RepoURL = "--upload-pack=x" }), nil},
		"url a program":       {set(clone, func(s *ProvisionSpec) { s.RepoURL = "ext::sh -c id" }), nil},
		"url of another kind": {set(clone, func(s *ProvisionSpec) { s.RepoURL = "foo://h/r" }), nil},
		"url host an option":  {set(clone, func(s *ProvisionSpec) { s.RepoURL = "ssh://-oProxyCommand=id/x" }), nil},
		"scp host an option":  {set(clone, func(s *ProvisionSpec) { s.RepoURL = "git@-oProxyCommand=id:x" }), nil},
		"branch an option":    {set(clone, func(s *ProvisionSpec) { s.Branch = "--upload-pack=x" }), nil},
		"branch with dots":    {set(clone, func(s *ProvisionSpec) { s.Branch = "a..b" }), nil},
		"no such strategy":    {set(clone, func(s *ProvisionSpec) { s.Strategy = 7 }), nil},
		"no parent":           {set(tree, func(s *ProvisionSpec) { s.ParentRepoPath = "" }), nil},
		"empty with url":      {set(empty, func(s *ProvisionSpec) { s.RepoURL = "https://h/r" }), nil},
		"empty with parent":   {set(empty, func(s *ProvisionSpec) { s.ParentRepoPath = "/p" }), nil},
		"empty with branch":   {set(empty, func(s *ProvisionSpec) { s.Branch = "b" }), nil},
		"empty with base":     {set(empty, func(s *ProvisionSpec) { s.BaseRef = "b" }), nil},
		"empty with commit":   {set(empty, func(s *ProvisionSpec) { s.BaseCommit = someCommit }), nil},
		"empty with skip":     {set(empty, func(s *ProvisionSpec) { s.SkipBaseFetch = true }), nil},
		"empty with sparse":   {set(empty, func(s *ProvisionSpec) { s.Sparse = []string{"a"} }), nil},
		"empty with seed":     {set(empty, func(s *ProvisionSpec) { s.Seed = "/seed" }), nil},
		"empty with literal":  {set(empty, func(s *ProvisionSpec) { s.RequireBranchBase = true }), nil},
		"seed for a tree":     {set(tree, func(s *ProvisionSpec) { s.Seed = "/seed" }), nil},
		"seed somewhere":      {set(clone, func(s *ProvisionSpec) { s.Seed = "--reference" }), nil},
		"literal and commit":  {set(tree, func(s *ProvisionSpec) { s.BaseCommit = someCommit; s.RequireBranchBase = true; s.Branch = "b" }), nil},
		"short commit":        {set(tree, func(s *ProvisionSpec) { s.BaseCommit = "abc" }), nil},
		"base an option":      {set(tree, func(s *ProvisionSpec) { s.BaseRef = "--upload-pack=x" }), ErrInvalidBaseRef},
		"base hides one":      {set(tree, func(s *ProvisionSpec) { s.BaseRef = "origin/--x" }), ErrInvalidBaseRef},
		"base a tag":          {set(tree, func(s *ProvisionSpec) { s.BaseRef = "refs/tags/v1" }), ErrInvalidBaseRef},
		"base nothing":        {set(tree, func(s *ProvisionSpec) { s.BaseRef = "refs/heads/" }), ErrInvalidBaseRef},
		"base HEAD":           {set(tree, func(s *ProvisionSpec) { s.BaseRef = "origin/HEAD" }), ErrInvalidBaseRef},
		"base with a space":   {set(tree, func(s *ProvisionSpec) { s.BaseRef = "a b" }), ErrInvalidBaseRef},
		"base a range":        {set(tree, func(s *ProvisionSpec) { s.BaseRef = "a:b"; s.SkipBaseFetch = true }), ErrInvalidBaseRef},
		"base of a reflog":    {set(tree, func(s *ProvisionSpec) { s.BaseRef = "main@{1}"; s.SkipBaseFetch = true }), ErrInvalidBaseRef},
	} {
		f := &fake{}
		m := manager(t, Options{CommandRunner: f.plain})
		_, err := m.Provision(t.Context(), tt.spec)
		if types.CodeOf(err) != types.ErrInvalid || tt.want != nil && !errors.Is(err, tt.want) || len(f.calls) > 0 {
			t.Errorf("%s: %v, calls %q", name, err, f.calls)
		}
	}
}

func TestSpellingsOfABaseAreOne(t *testing.T) {
	for _, ref := range []string{"main", "origin/main", "refs/heads/main", "refs/remotes/origin/main"} {
		s, err := ProvisionSpec{SessionID: "s", Strategy: StrategyWorktreeAdd, ParentRepoPath: "/p", BaseRef: ref}.settled()
		if err != nil || s.BaseRef != "main" {
			t.Errorf("%s: %q, %v", ref, s.BaseRef, err)
		}
	}
}

func TestAWorkTreeIsFetchedAddedAndReceipted(t *testing.T) {
	f := &fake{}
	m := manager(t, Options{CommandRunner: f.plain})
	parent := t.TempDir()
	path, err := m.Provision(t.Context(), ProvisionSpec{SessionID: "s", Strategy: StrategyWorktreeAdd, ParentRepoPath: parent, Branch: "agent/s", BaseRef: "origin/main"})
	if err != nil {
		t.Fatal(err)
	}
	if got := f.verbs(); !reflect.DeepEqual(got, []string{"fetch", "worktree add", "rev-parse"}) {
		t.Errorf("git was asked %q", got)
	}
	add := f.calls[2]
	want := []string{"git", "-C", parent, "worktree", "add", "--quiet", "--no-track", "-b", "agent/s", "--", path, "refs/remotes/origin/main"}
	if !slices.Equal(add, want) {
		t.Errorf("add %q", add)
	}
	if r, _ := m.Result("s"); r.BaseRef != "main" || r.BaseSHA != someCommit || !r.BaseFetched || r.Branch != "agent/s" {
		t.Errorf("receipt %+v", r)
	}
}

func TestWithoutAFetchNothingIsFetched(t *testing.T) {
	f := &fake{}
	m := manager(t, Options{CommandRunner: f.plain})
	if _, err := m.Provision(t.Context(), ProvisionSpec{SessionID: "s", Strategy: StrategyWorktreeAdd, ParentRepoPath: t.TempDir(), Branch: "b", BaseRef: "main", SkipBaseFetch: true}); err != nil {
		t.Fatal(err)
	}
	if f.count("fetch") != 0 || f.count("worktree add") != 1 {
		t.Errorf("git was asked %q", f.verbs())
	}
	if r, _ := m.Result("s"); r.BaseFetched || r.BaseFetchDuration != 0 || r.BaseSHA != someCommit {
		t.Errorf("receipt %+v", r)
	}
}

func TestAFetchThatFailsMakesNothing(t *testing.T) {
	for words, invalid := range map[string]bool{"fatal: couldn't find remote ref refs/heads/x": true, "fatal: Could not find remote ref x": true, "no such ref": true, "fatal: unable to access": false} {
		f := &fake{answer: func(_ int, verb string, _ []string) ([]byte, error) {
			if verb == "fetch" {
				return says(words)
			}
			return nil, nil
		}}
		m := manager(t, Options{CommandRunner: f.plain})
		_, err := m.Provision(t.Context(), ProvisionSpec{SessionID: "s", Strategy: StrategyWorktreeAdd, ParentRepoPath: t.TempDir(), Branch: "b", BaseRef: "x"})
		if !errors.Is(err, ErrBaseFetch) || errors.Is(err, ErrInvalidBaseRef) != invalid {
			t.Errorf("%s: %v", words, err)
		}
		if got := f.verbs(); !slices.Equal(got, []string{"fetch"}) || exists(filepath.Join(m.ParentDir(), "s")) {
			t.Errorf("%s: git was asked %q", words, got)
		}
	}
}

func TestAConflictFetchesAndProbesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: func(n int, verb string, _ []string) ([]byte, error) {
			if verb == "worktree add" && n == 1 {
				return says("fatal: 'b' is already used by worktree at '/x'")
			}
			if verb == "rev-parse" && n == 1 {
				return says("") // there is no such branch
			}
			return nil, nil
		}}
		probed := 0
		m := manager(t, Options{CommandRunner: f.plain, OwnershipProber: func(context.Context, string) (bool, error) { probed++; return true, nil }})
		if _, err := m.Provision(t.Context(), ProvisionSpec{SessionID: "s", Strategy: StrategyWorktreeAdd, ParentRepoPath: t.TempDir(), Branch: "b", BaseRef: "main"}); err != nil {
			t.Fatal(err)
		}
		if f.count("fetch") != 1 || probed != 1 || f.count("worktree add") != 2 {
			t.Errorf("%d probes, git was asked %q", probed, f.verbs())
		}
	})
}

func TestAWorkTreeWithoutAReceiptIsTakenBack(t *testing.T) {
	f := &fake{answer: func(_ int, verb string, _ []string) ([]byte, error) {
		if verb == "rev-parse" {
			return says("fatal: bad object HEAD")
		}
		return nil, nil
	}}
	m := manager(t, Options{CommandRunner: f.plain})
	_, err := m.Provision(t.Context(), ProvisionSpec{SessionID: "s", Strategy: StrategyWorktreeAdd, ParentRepoPath: t.TempDir(), Branch: "b", BaseRef: "main"})
	if err == nil || !strings.Contains(err.Error(), "bad object") || exists(filepath.Join(m.ParentDir(), "s")) {
		t.Errorf("%v", err)
	}
	if list, err := m.Sessions(); len(list) > 0 || err != nil {
		t.Errorf("known: %q, %v", list, err)
	}
}
