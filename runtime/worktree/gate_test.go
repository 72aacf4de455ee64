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

// overlap counts who is inside at once.
type overlap struct{ now, most atomic.Int32 }

func (o *overlap) stay(d time.Duration) {
	n := o.now.Add(1)
	for m := o.most.Load(); n > m && !o.most.CompareAndSwap(m, n); m = o.most.Load() {
	}
	<-time.After(d)
	o.now.Add(-1)
}

func treeSpec(t *testing.T, parent string, i int, base string) ProvisionSpec {
	t.Helper()
	return ProvisionSpec{SessionID: fmt.Sprintf("s%d", i), Strategy: StrategyWorktreeAdd, ParentRepoPath: parent, Branch: fmt.Sprintf("b%d", i), BaseRef: base}
}

func registryIsEmpty(t *testing.T) {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if len(shared.gates) > 0 || len(shared.flights) > 0 {
		t.Errorf("left: %d gates, %d fetches", len(shared.gates), len(shared.flights))
	}
}

func TestTheSameBaseIsFetchedOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fetches, adds overlap
		f := &fake{answer: func(_ int, verb string, _ []string) ([]byte, error) {
			switch verb {
			case "fetch":
				fetches.stay(time.Second)
			case "worktree add":
				if fetches.now.Load() > 0 {
					t.Error("a work tree is added while something is fetched")
				}
				adds.stay(time.Second)
			}
			return nil, nil
		}}
		parent := t.TempDir()
		var all sync.WaitGroup
		for i := range 8 {
			m := manager(t, Options{CommandRunner: f.plain}) // one for each: the fetch is the process's
			all.Go(func() {
				if _, err := m.Provision(t.Context(), treeSpec(t, parent, i, "main")); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if f.count("fetch") != 1 || adds.most.Load() != 1 || f.count("worktree add") != 8 {
			t.Errorf("%d fetches, at most %d added at once", f.count("fetch"), adds.most.Load())
		}
		for _, c := range f.calls {
			if indexOf(c, "add") > 0 && indexOf(c, "--no-track") < 0 {
				t.Errorf("%q follows", c)
			}
		}
		registryIsEmpty(t)
	})
}

func TestDifferentBasesAreFetchedSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fetches overlap
		f := &fake{answer: func(_ int, verb string, _ []string) ([]byte, error) {
			if verb == "fetch" {
				fetches.stay(time.Second)
			}
			return nil, nil
		}}
		m, parent := manager(t, Options{CommandRunner: f.plain}), t.TempDir()
		var all sync.WaitGroup
		for i := range 6 {
			all.Go(func() {
				if _, err := m.Provision(t.Context(), treeSpec(t, parent, i, fmt.Sprint("base", i))); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if fetches.most.Load() != 6 {
			t.Errorf("at most %d at once", fetches.most.Load())
		}
		registryIsEmpty(t)
	})
}

func TestWhoGivesUpDoesNotEndTheFetchOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		slow := func(ctx context.Context, env []string, name string, args ...string) ([]byte, error) {
			if plumbing.Verb(args) == "fetch" {
				select {
				case <-time.After(10 * time.Second):
				case <-ctx.Done():
					t.Error("the fetch was ended")
				}
			}
			return f.run(ctx, env, name, args...)
		}
		m, parent := manager(t, Options{EnvCommandRunner: slow}), t.TempDir()
		leader, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := m.Provision(leader, treeSpec(t, parent, 0, "main")); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the first: %v", err)
			}
		})
		synctest.Wait()
		all.Go(func() {
			if _, err := m.Provision(t.Context(), treeSpec(t, parent, 1, "main")); err != nil {
				t.Errorf("the second: %v", err)
			}
		})
		all.Wait()
		if f.count("fetch") != 1 {
			t.Errorf("%d fetches", f.count("fetch"))
		}
		registryIsEmpty(t)
	})
}

func TestAFetchWaitsForTheGateAndNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		m, parent := manager(t, Options{CommandRunner: f.plain}), t.TempDir()
		leave, err := shared.enter(t.Context(), plumbing.Repository(parent), toWrite)
		if err != nil {
			t.Fatal(err)
		}
		spec := treeSpec(t, parent, 0, "main")
		spec.BaseFetchTimeout = time.Second
		if _, err := m.Provision(t.Context(), spec); !errors.Is(err, ErrBaseFetch) || types.CodeOf(err) != types.ErrTimeout || f.count("fetch") != 0 {
			t.Errorf("%v, asked %q", err, f.verbs())
		}
		done := make(chan error)
		go func() { _, err := m.Provision(t.Context(), treeSpec(t, parent, 1, "main")); done <- err }() // ends with what it sends
		synctest.Wait()
		leave()
		if err := <-done; err != nil || f.count("fetch") != 1 {
			t.Errorf("%v, asked %q", err, f.verbs())
		}
		registryIsEmpty(t)
	})
}

func TestAWriterIsNotStarvedByReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := registry{gates: map[string]*gate{}}
		var order []string
		reader, err := g.enter(t.Context(), "r", toRead)
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var all sync.WaitGroup
		for _, who := range []string{"writer", "reader"} {
			all.Go(func() {
				leave, err := g.enter(t.Context(), "r", map[string]entry{"writer": toWrite, "reader": toRead}[who])
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, who)
				mu.Unlock()
				leave()
			})
			synctest.Wait()
		}
		reader()
		reader() // twice is once
		all.Wait()
		if got := strings.Join(order, " "); got != "writer reader" {
			t.Errorf("order %s", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		hold, _ := g.enter(t.Context(), "r", toRead)
		cancel()
		if _, err := g.enter(ctx, "r", toWrite); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		if late, err := g.enter(t.Context(), "r", toRead); err != nil { // the writer that gave up holds nobody up
			t.Error(err)
		} else {
			late()
		}
		hold()
		if len(g.gates) > 0 {
			t.Error("gates are left")
		}
	})
}

// Who forks or removes a workspace does not wait for a remote that does not answer, also behind a session that does, and neither does who looks.
func TestWhatIsShortDoesNotWaitForAFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := registry{gates: map[string]*gate{}}
		real, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(real, link); err != nil {
			t.Fatal(err)
		}
		enter := func(repo string, what entry) func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			leave, err := g.enter(ctx, repo, what)
			if err != nil {
				return nil
			}
			return leave
		}
		fetch := enter(real, toFetch)
		done := make(chan func() bool)
		go func() { // ends with what it sends
			leave, _ := g.enter(t.Context(), real, toWrite)
			done <- leave
		}()
		synctest.Wait()
		if enter(real, toFetch) != nil {
			t.Error("a fetch began before a writer that waits")
		}
		read := enter(link, toRead)
		if read == nil {
			t.Fatal("a look waits for the fetch")
		}
		if enter(real, toEdit) != nil {
			t.Error("a work tree is added while somebody looks")
		}
		if read() {
			t.Error("a look learns of a writer that waits")
		}
		edit := enter(link, toEdit)
		if edit == nil {
			t.Fatal("adding a work tree waits for the fetch")
		}
		for what := range toEdit + 1 {
			if enter(real, what) != nil {
				t.Errorf("%d came in while a work tree was added", what)
			}
		}
		edit()
		if !fetch() {
			t.Error("the fetch does not learn of the work tree")
		}
		if (<-done)() {
			t.Error("who was alone learns of others")
		}
		if len(g.gates) > 0 {
			t.Error("gates are left")
		}
	})
}

func TestAFetchThatFailedBesideANewWorkTreeIsTriedOnceMore(t *testing.T) {
	for name, c := range map[string]struct {
		edit    bool
		says    string
		fetches int
	}{
		"beside a work tree":                       {true, "fatal: bad object worktrees/x/HEAD", 2},
		"beside a work tree, but it is not there":  {true, "fatal: couldn't find remote ref", 1},
		"beside a work tree, but the server fails": {true, "fatal: unable to access", 1},
		"alone": {false, "fatal: bad object worktrees/x/HEAD", 1},
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			f := &fake{}
			f.answer = func(n int, verb string, _ []string) ([]byte, error) {
				if verb != "fetch" {
					return nil, nil
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
				defer cancel()
				if n > 1 {
					if leave, err := Enter(ctx, plumbing.Repository(parent), true); err == nil {
						t.Error("a work tree is added beside the second try")
						leave()
					}
					return nil, nil
				}
				if c.edit {
					leave, err := Enter(t.Context(), plumbing.Repository(parent), true)
					if err != nil {
						t.Error(err)
						return nil, nil
					}
					leave()
				}
				return says(c.says)
			}
			m := manager(t, Options{CommandRunner: f.plain})
			if _, err := m.Provision(t.Context(), treeSpec(t, parent, 0, "main")); (err == nil) != (c.fetches > 1) || f.count("fetch") != c.fetches {
				t.Errorf("%v after %d fetches", err, f.count("fetch"))
			}
			registryIsEmpty(t)
		})
	}
}
