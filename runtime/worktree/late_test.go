package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rnix/internal/plumbing"
	"rnix/types"
)

func TestAnUnsafeBaseReachesNoGitWhetherItIsFetchedOrNot(t *testing.T) {
	for _, base := range []string{"--upload-pack=x", "origin/--x", "refs/heads/-x", "refs/tags/v1", "refs/heads/", "origin/HEAD", "a b", "a:b", "main@{1}", "a..b"} {
		for _, skip := range []bool{false, true} {
			f := &fake{}
			m := manager(t, Options{CommandRunner: f.plain})
			_, err := m.Provision(t.Context(), ProvisionSpec{SessionID: "s", Strategy: StrategyWorktreeAdd, ParentRepoPath: "/p", Branch: "b", BaseRef: base, SkipBaseFetch: skip})
			if !errors.Is(err, ErrInvalidBaseRef) || len(f.calls) > 0 {
				t.Errorf("%q, skip %v: %v, calls %q", base, skip, err, f.calls)
			}
		}
	}
}

func TestAFetchThatIsNotAnsweredInTimeLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		m := manager(t, Options{EnvCommandRunner: func(ctx context.Context, env []string, name string, args ...string) ([]byte, error) {
			if plumbing.Verb(args) == "fetch" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return f.run(ctx, env, name, args...)
		}})
		spec := treeSpec(t, t.TempDir(), 0, "main")
		began := time.Now()
		_, err := m.Provision(t.Context(), spec)
		if !errors.Is(err, ErrBaseFetch) || types.CodeOf(err) != types.ErrTimeout || time.Since(began) != DefaultBaseFetchTimeout {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		if got := left(t, m); len(got) > 0 || f.count("worktree add") > 0 {
			t.Errorf("left %q, git was asked %q", got, f.verbs())
		}
		registryIsEmpty(t)
	})
}

// Who shares a fetch waits for it as long as it said itself, whoever came first.
func TestASharedFetchLastsAsLongAsTheMostPatientWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takes = 10 * time.Second
		fetches := 0
		m := manager(t, Options{EnvCommandRunner: func(ctx context.Context, _ []string, _ string, args ...string) ([]byte, error) {
			if plumbing.Verb(args) != "fetch" {
				return nil, nil
			}
			fetches++
			select {
			case <-time.After(takes):
				return nil, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}})
		repo := t.TempDir()
		try := func(after, patience, want time.Duration, code types.ErrCode) func() {
			return func() {
				time.Sleep(after)
				began := time.Now()
				_, err := m.fetch(t.Context(), repo, "main", nil, nil, patience)
				if took := time.Since(began); took != want || types.CodeOf(err) != code || code != "" && !errors.Is(err, ErrBaseFetch) {
					t.Errorf("who waits for %s: %v after %s", patience, err, took)
				}
			}
		}
		var all sync.WaitGroup
		all.Go(try(0, time.Second, time.Second, types.ErrTimeout))
		all.Go(try(time.Second/2, time.Minute, takes-time.Second/2, ""))
		all.Go(try(2*time.Second, 3*time.Second, 3*time.Second, types.ErrTimeout))
		all.Wait()
		all.Go(try(0, time.Second, time.Second, types.ErrTimeout)) // nobody is more patient: it ends
		all.Wait()
		if fetches != 2 {
			t.Errorf("%d fetches", fetches)
		}
		registryIsEmpty(t)
	})
}

func TestWorkTreesOfOneRepositoryAreChangedOneAfterTheOther(t *testing.T) {
	_, clone := origin(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(clone, link); err != nil {
		t.Fatal(err)
	}
	var changing, fetching, calls atomic.Int32
	run := func(ctx context.Context, env []string, name string, args ...string) ([]byte, error) {
		switch i := indexOf(args, "worktree"); {
		case i >= 0 && (args[i+1] == "add" || args[i+1] == "remove"):
			if n := changing.Add(1); n > 1 || fetching.Load() > 0 {
				t.Errorf("%d at once, %d fetches: %q", n, fetching.Load(), args)
			}
			defer changing.Add(-1)
			calls.Add(1)
		case plumbing.Verb(args) == "fetch":
			fetching.Add(1)
			defer fetching.Add(-1)
			if changing.Load() > 0 {
				t.Error("something is fetched while work trees are changed")
			}
		case plumbing.Verb(args) == "rev-parse" && strings.Contains(strings.Join(args, " "), "fails"):
			return says("fatal: bad object HEAD") // so that the work tree is taken back
		}
		return execute(ctx, env, name, args...)
	}
	var all sync.WaitGroup
	for i := range 6 {
		id, parent := fmt.Sprint("s", i), []string{clone, link, clone + "/."}[i%3]
		if i%2 == 1 {
			id = fmt.Sprint("fails", i)
		}
		m := manager(t, Options{EnvCommandRunner: run})
		all.Go(func() { // ends with its session
			_, err := m.Provision(t.Context(), ProvisionSpec{SessionID: id, Strategy: StrategyWorktreeAdd, ParentRepoPath: parent, Branch: "agent/" + id, BaseRef: "main"})
			if (err != nil) != (i%2 == 1) {
				t.Errorf("%s: %v", id, err)
			}
			if err := m.Teardown(t.Context(), id); err != nil {
				t.Errorf("%s: %v", id, err)
			}
		})
	}
	all.Wait()
	if n := calls.Load(); n != 12 || strings.Contains(git(t, clone, "worktree", "list"), "\n") {
		t.Errorf("%d changes; git knows %s", n, git(t, clone, "worktree", "list"))
	}
	registryIsEmpty(t)
}

func TestWhatStandsInTheWayOfTakingBackIsSaidToo(t *testing.T) {
	f := &fake{}
	var m *Manager
	f.answer = func(_ int, verb string, _ []string) ([]byte, error) {
		if verb != "rev-parse" {
			return nil, nil
		}
		path := filepath.Join(m.ParentDir(), "s") // somebody puts another directory there
		if err := errors.Join(os.Rename(path, path+".away"), os.Mkdir(path, 0o700)); err != nil {
			t.Error(err)
		}
		return says("fatal: bad object HEAD")
	}
	m = manager(t, Options{CommandRunner: f.plain})
	_, err := m.Provision(t.Context(), ProvisionSpec{SessionID: "s", Strategy: StrategyWorktreeAdd, ParentRepoPath: t.TempDir(), Branch: "b", BaseRef: "main"})
	var e *gitError
	if !errors.As(err, &e) || e.verb != "rev-parse" || !errors.Is(err, ErrWorkareaRootOccupied) || !exists(filepath.Join(m.ParentDir(), "s")) {
		t.Errorf("%v", err)
	}
}
