package worktree

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"rnix/internal/plumbing"
	"rnix/types"
)

// pair2 is a root with a work tree of one repository and a clone of another.
func pair2(t *testing.T, id string) (s RootSpec, bare, clone string) {
	t.Helper()
	bare, _ = origin(t)
	_, clone = origin(t)
	return RootSpec{SessionID: id, Repositories: []Repository{
		{Name: "docs", Checkout: ProvisionSpec{RepoURL: bare, Branch: "agent/" + id, BaseRef: "main"}},
		{Name: "api", Checkout: ProvisionSpec{Strategy: StrategyWorktreeAdd, ParentRepoPath: clone, Branch: "agent/" + id, BaseRef: "main"}},
	}, Selected: "api"}, bare, clone
}

func mustRoot(t *testing.T, m *Manager, s RootSpec) Root {
	t.Helper()
	r, err := NewRoots(m).Provision(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// left lists what is below the parent directory of a manager, without its own directories if these
// are empty.
func left(t *testing.T, m *Manager) (out []string) {
	t.Helper()
	for _, dir := range []string{"", StateDir, leaseDir} {
		entries, err := os.ReadDir(filepath.Join(m.ParentDir(), dir))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Name() != StateDir && e.Name() != leaseDir {
				out = append(out, filepath.Join(dir, e.Name()))
			}
		}
	}
	return out
}

func TestASessionWorksInTheRepositoryThatIsSelected(t *testing.T) {
	s, _, clone := pair2(t, "s")
	m := manager(t, Options{})
	r := mustRoot(t, m, s)
	if r.Path != filepath.Join(m.ParentDir(), "s") || r.Dir != filepath.Join(r.Path, "api") || r.Mode != RootExclusive || !slices.Equal(r.Sessions, []string{"s"}) {
		t.Errorf("%+v", r)
	}
	for _, name := range []string{"docs", "api"} {
		if !exists(filepath.Join(r.Path, name, "README.md")) || git(t, filepath.Join(r.Path, name), "symbolic-ref", "HEAD") != "refs/heads/agent/s" {
			t.Errorf("%s is not there", name)
		}
	}
	if len(r.Leaves) != 2 || r.Leaves[1].Name != "api" || r.Leaves[1].BaseSHA == "" || r.Leaves[1].Path != r.Dir || !r.Leaves[1].BaseFetched {
		t.Errorf("%+v", r.Leaves)
	}
	again := manager(t, Options{ParentDir: m.ParentDir()}) // as after a restart
	if known, err := NewRoots(again).Get(r.ID); err != nil || known.Dir != r.Dir || len(known.Leaves) != 2 {
		t.Errorf("%+v, %v", known, err)
	}
	if list, err := again.Sessions(); err != nil || len(list) > 0 {
		t.Errorf("checkouts of their own: %q, %v", list, err)
	}
	if err := errors.Join(NewRoots(again).Teardown(t.Context(), r.ID, "s"), NewRoots(again).Teardown(t.Context(), r.ID, "s")); err != nil {
		t.Error(err)
	}
	if got := left(t, m); len(got) > 0 || strings.Contains(git(t, clone, "worktree", "list"), "\n") {
		t.Errorf("left %q", got)
	}
	if _, err := NewRoots(m).Get(r.ID); !errors.Is(err, ErrUnknownWorkarea) {
		t.Errorf("still known: %v", err)
	}
}

func TestASessionThatAsksForNoRootStaysFlat(t *testing.T) {
	_, clone := origin(t)
	m := manager(t, Options{})
	if path := added(t, m, clone, "s"); path != filepath.Join(m.ParentDir(), "s") || !exists(filepath.Join(path, ".git")) {
		t.Errorf("path %s", path)
	}
	if list, err := NewRoots(m).All(); err != nil || len(list) > 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestSessionsAtTheSameTimeHaveCheckoutsOfTheirOwn(t *testing.T) {
	s, bare, clone := pair2(t, "x")
	m := manager(t, Options{})
	roots := make([]Root, 4)
	var all sync.WaitGroup
	for i, id := range []string{"a", "b", "c", "d"} {
		mine := s
		mine.SessionID = id
		mine.Repositories = []Repository{{Name: "docs", Checkout: ProvisionSpec{RepoURL: bare}}, {Name: "api", Checkout: ProvisionSpec{Strategy: StrategyWorktreeAdd, ParentRepoPath: clone, Branch: "agent/" + id, BaseRef: "main"}}}
		all.Go(func() { // ends with its ProvisionRoot
			var err error
			if roots[i], err = NewRoots(m).Provision(t.Context(), mine); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	seen := map[string]bool{}
	for _, r := range roots {
		for _, l := range r.Leaves {
			seen[l.Path] = true
		}
		seen[r.ID] = true
	}
	if len(seen) != 12 {
		t.Errorf("%d places and ids", len(seen))
	}
	if list, err := NewRoots(m).All(); err != nil || len(list) != 4 || list[0].Path > list[1].Path {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestTwoManagersMakeOneRoot(t *testing.T) {
	s, _, _ := pair2(t, "s")
	dir := filepath.Join(t.TempDir(), "trees")
	errs, roots := make([]error, 4), make([]Root, 4)
	var all sync.WaitGroup
	for i := range errs {
		m := manager(t, Options{ParentDir: dir})
		all.Go(func() { roots[i], errs[i] = NewRoots(m).Provision(t.Context(), s) }) // ends with it
	}
	all.Wait()
	won := -1
	for i, err := range errs {
		if err == nil && won < 0 {
			won = i
		} else if !errors.Is(err, ErrWorkareaRootOccupied) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if won < 0 || !exists(filepath.Join(roots[won].Path, "docs", "README.md")) || !exists(filepath.Join(roots[won].Dir, "README.md")) {
		t.Fatalf("the winner is %d", won)
	}
	if git(t, roots[won].Dir, "status", "--porcelain") != "" {
		t.Error("the winner's files are not whole")
	}
}

func TestAFlatCheckoutIsNotTouchedByARoot(t *testing.T) {
	s, bare, _ := pair2(t, "s")
	m := manager(t, Options{})
	path, err := m.Provision(t.Context(), ProvisionSpec{SessionID: "s", RepoURL: bare})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(path, "mine.txt"), "mine")
	before := contents(t, path)
	if _, err := NewRoots(m).Provision(t.Context(), s); !errors.Is(err, ErrWorkareaRootOccupied) {
		t.Errorf("over it: %v", err)
	}
	s.LeafName = "beside"
	r := mustRoot(t, m, s)
	if err := NewRoots(m).Teardown(t.Context(), r.ID, "s"); err != nil || exists(r.Path) {
		t.Errorf("beside it: %v", err)
	}
	if contents(t, path) != before {
		t.Error("it was changed")
	}
}

func TestGenerationsOfARootAreNotMistakenForEachOther(t *testing.T) {
	s, _, _ := pair2(t, "s")
	m := manager(t, Options{})
	first := mustRoot(t, m, s)
	next := s
	next.LeafName = "s.2"
	next.Repositories = slices.Clone(s.Repositories)
	next.Repositories[1].Checkout.Branch = "agent/s.2"
	second := mustRoot(t, m, next)
	if first.ID == second.ID || first.Dir == second.Dir {
		t.Fatalf("%+v, %+v", first, second)
	}
	if err := NewRoots(m).Teardown(t.Context(), first.ID, "s"); err != nil || exists(first.Path) || !exists(filepath.Join(second.Dir, "README.md")) {
		t.Fatalf("%v", err)
	}
	third := mustRoot(t, m, s) // at the place of the first
	if err := NewRoots(m).Teardown(t.Context(), first.ID, "s"); err != nil || third.Path != first.Path || third.ID == first.ID || !exists(filepath.Join(third.Dir, "README.md")) {
		t.Errorf("the id of the first is good for the third: %v", err)
	}
}

func TestARepositoryThatCannotBeHad(t *testing.T) {
	s, _, clone := pair2(t, "s")
	m := manager(t, Options{})
	missing := ProvisionSpec{RepoURL: filepath.Join(t.TempDir(), "missing")}
	s.Repositories = append(s.Repositories, Repository{Name: "notes", ReadOnly: true, Checkout: missing})
	if _, err := NewRoots(m).Provision(t.Context(), s); types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), IsolatedReadOnlyV1) {
		t.Errorf("read-only, and nobody keeps it so: %v", err)
	}
	s.Attests = []string{IsolatedReadOnlyV1}
	r := mustRoot(t, m, s)
	if len(r.Leaves) != 2 || len(r.Skipped) != 1 || r.Skipped[0].Name != "notes" || !strings.Contains(r.Skipped[0].Reason, "missing") || exists(filepath.Join(r.Path, "notes")) {
		t.Errorf("%+v", r)
	}
	if err := NewRoots(m).Teardown(t.Context(), r.ID, "s"); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*RootSpec){
		"writable": func(s *RootSpec) { s.Repositories[2].ReadOnly = false },
		"selected": func(s *RootSpec) { s.Selected = "notes" },
	} {
		bad := s
		bad.Repositories = slices.Clone(s.Repositories)
		change(&bad)
		_, err := NewRoots(m).Provision(t.Context(), bad)
		if err == nil || !strings.Contains(err.Error(), "repository notes") {
			t.Errorf("%s: %v", name, err)
		}
		if got := left(t, m); len(got) > 0 || strings.Contains(git(t, clone, "worktree", "list"), "\n") {
			t.Errorf("%s: left %q", name, got)
		}
	}
}

func TestARootStaysWholeWhileOneOfItsCheckoutsHoldsWork(t *testing.T) {
	for name, tt := range map[string]struct {
		file, words string
	}{"the last": {"api/new.txt", "api: files are not under version control"}, "the first": {"docs/README.md", "docs: files are changed"}, "beside them": {"plan.md", "beside the repositories"},
		"an agent's": {".claude/x.md", "beside the repositories"}, "beside the state": {".agent/notes.md", "beside the repositories"}} {
		s, _, _ := pair2(t, "s")
		m := manager(t, Options{})
		r := mustRoot(t, m, s)
		write(t, filepath.Join(r.Path, ".agent", "state.json"), "{}") // no work
		write(t, filepath.Join(r.Path, tt.file), "work")
		before := contents(t, r.Path)
		mustPark(t, NewRoots(m).Teardown(t.Context(), r.ID, "s"), tt.words)
		if contents(t, r.Path) != before {
			t.Errorf("%s: it was changed", name)
		}
		if _, err := NewRoots(m).Provision(t.Context(), s); !errors.Is(err, ErrWorkareaRootOccupied) {
			t.Errorf("%s: made over it: %v", name, err)
		}
		git(t, filepath.Join(r.Path, "docs"), "checkout", "-q", "--", ".")
		if tt.file != "docs/README.md" {
			os.Remove(filepath.Join(r.Path, tt.file))
			os.Remove(filepath.Join(r.Path, ".claude"))
		}
		if err := NewRoots(m).Teardown(t.Context(), r.ID, "s"); err != nil || len(left(t, m)) > 0 {
			t.Errorf("%s: %v, left %q", name, err, left(t, m))
		}
	}
}

func TestASharedRootGoesWithItsLastSession(t *testing.T) {
	s, _, _ := pair2(t, "a")
	m := manager(t, Options{})
	alone := mustRoot(t, m, s)
	if _, err := NewRoots(m).Provision(t.Context(), RootSpec{SessionID: "b", ParentWorkareaID: alone.ID}); !errors.Is(err, ErrWorkareaRootOccupied) {
		t.Errorf("a share of what is not shared: %v", err)
	}
	if err := NewRoots(m).Teardown(t.Context(), alone.ID, "b"); err != nil || !exists(alone.Dir) {
		t.Errorf("somebody else has removed it: %v", err)
	}
	if err := NewRoots(m).Teardown(t.Context(), alone.ID, "a"); err != nil {
		t.Fatal(err)
	}
	s.Mode = RootShared
	r := mustRoot(t, m, s)
	for range 2 {
		if b := mustRoot(t, m, RootSpec{SessionID: "b", ParentWorkareaID: r.ID}); b.ID != r.ID || b.Dir != r.Dir || !slices.Equal(b.Sessions, []string{"a", "b"}) {
			t.Errorf("%+v", b)
		}
	}
	for i, id := range []string{"a", "a", "b"} {
		if err := NewRoots(m).Teardown(t.Context(), r.ID, id); err != nil || exists(r.Dir) != (i < 2) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if _, err := NewRoots(m).Provision(t.Context(), RootSpec{SessionID: "c", ParentWorkareaID: r.ID}); !errors.Is(err, ErrUnknownWorkarea) {
		t.Errorf("a share of what is gone: %v", err)
	}
}

func TestRootsThatCannotBeMeantReachNoGit(t *testing.T) {
	good := Repository{Name: "a", Checkout: ProvisionSpec{RepoURL: "https://h/a"}}
	tree := func(name string) Repository {
		return Repository{Name: name, Checkout: ProvisionSpec{Strategy: StrategyWorktreeAdd, ParentRepoPath: "/p", Branch: "b"}}
	}
	named := func(name string) Repository { r := good; r.Name = name; return r }
	for name, s := range map[string]RootSpec{
		"no repository":      {},
		"no session":         {SessionID: " ", Repositories: []Repository{good}},
		"leaf above":         {LeafName: "../x", Repositories: []Repository{good}},
		"leaf of leases":     {LeafName: ".terminal-leases", Repositories: []Repository{good}},
		"no such mode":       {Mode: "open", Repositories: []Repository{good}},
		"too many":           {Repositories: make([]Repository, maxRepositories+1)},
		"one name":           {Repositories: []Repository{good, good}},
		"a name above":       {Repositories: []Repository{named("..")}},
		"a name of git":      {Repositories: []Repository{named(".git")}},
		"a name of an agent": {Repositories: []Repository{named(".agent")}},
		"a name of ours":     {Repositories: []Repository{named("a~b")}},
		"a long name":        {Repositories: []Repository{named(strings.Repeat("a", maxRepositoryName+1))}},
		"no such selection":  {Repositories: []Repository{good}, Selected: "b"},
		"a session inside":   {Repositories: []Repository{{Name: "a", Checkout: ProvisionSpec{SessionID: "x", RepoURL: "https://h/a"}}}},
		"an empty one":       {Repositories: []Repository{{Name: "a", Checkout: ProvisionSpec{Strategy: StrategyEmpty}}}},
		"a bad one":          {Repositories: []Repository{{Name: "a", Checkout: ProvisionSpec{RepoURL: "--upload-pack=x"}}}},
		"one branch twice":   {Repositories: []Repository{tree("a"), tree("b")}},
		"joined and made":    {Repositories: []Repository{good}, ParentWorkareaID: "wac_x"},
	} {
		if s.SessionID == "" {
			s.SessionID = "s"
		}
		f := &fake{}
		m := manager(t, Options{CommandRunner: f.plain})
		if _, err := NewRoots(m).Provision(t.Context(), s); types.CodeOf(err) != types.ErrInvalid || len(f.calls) > 0 || len(left(t, m)) > 0 {
			t.Errorf("%s: %v, calls %q", name, err, f.calls)
		}
	}
}

// TestCrashingRoot is no test: it is what TestACrashInTheMiddleOfARootLeavesNothing kills.
func TestCrashingRoot(t *testing.T) {
	dir, repos := os.Getenv(crashDir), strings.Split(os.Getenv(crashRepo), ":")
	if dir == "" || os.Getenv(crashKind) != "root" {
		return
	}
	n := 0
	m := manager(t, Options{ParentDir: dir, EnvCommandRunner: func(ctx context.Context, env []string, name string, args ...string) ([]byte, error) {
		if n++; len(os.Getenv(crashAt)) == n {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return execute(ctx, env, name, args...)
	}})
	_, err := NewRoots(m).Provision(t.Context(), crashRoot(repos[0], repos[1]))
	t.Fatalf("it has ended by itself: %v", err)
}

func crashRoot(bare, clone string) RootSpec {
	return RootSpec{SessionID: "s", Repositories: []Repository{{Name: "docs", Checkout: ProvisionSpec{RepoURL: bare}},
		{Name: "api", Checkout: ProvisionSpec{Strategy: StrategyWorktreeAdd, ParentRepoPath: clone, Branch: "agent/s", BaseRef: "main"}}}}
}

func TestACrashInTheMiddleOfARootLeavesNothing(t *testing.T) {
	for at := 1; at <= 5; at++ { // clone, config, fetch, add, rev-parse
		bare, clone := origin(t)
		dir := filepath.Join(plumbing.Resolved(t.TempDir()), "trees")
		c := exec.Command(os.Args[0], "-test.run=^TestCrashingRoot$", "-test.timeout=60s")
		c.Env = append(os.Environ(), crashDir+"="+dir, crashRepo+"="+bare+":"+clone, crashKind+"=root", crashAt+"="+strings.Repeat("x", at))
		out, err := c.CombinedOutput()
		if e, ok := errors.AsType[*exec.ExitError](err); !ok || e.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("%d: it was not killed: %v: %s", at, err, out)
		}
		m := manager(t, Options{ParentDir: dir})
		if list, err := NewRoots(m).All(); err != nil || len(list) > 0 {
			t.Errorf("%d: half of one is known: %+v, %v", at, list, err)
		}
		again := crashRoot(bare, clone)
		if at%2 == 1 { // and now with one repository only: what was begun of the other is gone as well
			again.Repositories = again.Repositories[:1]
		}
		r := mustRoot(t, m, again)
		if at%2 == 1 && (len(r.Leaves) != 1 || exists(filepath.Join(r.Path, "api"))) || at%2 == 0 && !exists(filepath.Join(r.Path, "api", "README.md")) || !exists(filepath.Join(r.Dir, "README.md")) {
			t.Errorf("%d: made again: %+v", at, r)
		}
		if err := NewRoots(m).Teardown(t.Context(), r.ID, "s"); err != nil || len(left(t, m)) > 0 || strings.Contains(git(t, clone, "worktree", "list"), "\n") {
			t.Errorf("%d: %v, left %q", at, err, left(t, m))
		}
	}
}
