package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rnix/internal/plumbing"
	"rnix/types"
)

// emptyOnes makes sessions with empty directories: no git is needed to see what happens to them.
func emptyOnes(t *testing.T, m *Manager, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if _, err := m.Provision(t.Context(), ProvisionSpec{SessionID: id, Strategy: StrategyEmpty}); err != nil {
			t.Fatal(err)
		}
	}
}

func mustLease(t *testing.T, m *Manager, id string, ttl time.Duration) Lease {
	t.Helper()
	l, err := NewLeases(m).Take(t.Context(), id, ttl)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func reap(t *testing.T, m *Manager, want int) {
	t.Helper()
	if n, err := NewLeases(m).Reap(t.Context()); n != want || err != nil {
		t.Errorf("%d leases have ended, %v; want %d", n, err, want)
	}
}

func TestALeasedCheckoutStaysUntilItsResultsAreInGoodHands(t *testing.T) {
	_, clone := origin(t)
	m := manager(t, Options{})
	path := added(t, m, clone, "s")
	l := mustLease(t, m, "s", time.Hour)
	if l.Path != path || l.For != "s" || l.State != LeaseActive || l.ReleaseRequested {
		t.Errorf("%+v", l)
	}
	for range 2 {
		if err := m.Teardown(t.Context(), "s"); err != nil || !exists(path) {
			t.Fatalf("Teardown: %v", err)
		}
	}
	if p, err := m.Path("s"); p != path || err != nil {
		t.Errorf("Path = %s, %v", p, err)
	}
	m = manager(t, Options{ParentDir: m.ParentDir()}) // as after a restart
	if list, err := NewLeases(m).All(); err != nil || len(list) != 1 || list[0].ID != l.ID || !list[0].ReleaseRequested {
		t.Errorf("%+v, %v", list, err)
	}
	_, err := m.Provision(t.Context(), ProvisionSpec{SessionID: "s", Strategy: StrategyWorktreeAdd, ParentRepoPath: clone, Branch: "agent/s", BaseRef: "main"})
	if !errors.Is(err, ErrWorkareaLeased) || !strings.Contains(err.Error(), l.ID) {
		t.Errorf("made again: %v", err)
	}
	reap(t, m, 0)
	for range 2 {
		if err := NewLeases(m).Release(t.Context(), l.ID); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := NewLeases(m).All(); err != nil || len(list) != 1 || list[0].State != LeaseReleasePending || !exists(path) {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := NewLeases(m).Take(t.Context(), "s", time.Hour); !errors.Is(err, ErrWorkareaLeased) {
		t.Errorf("leased again: %v", err)
	}
	reap(t, m, 1)
	if exists(path) || len(left(t, m)) > 0 || strings.Contains(git(t, clone, "worktree", "list"), "\n") {
		t.Errorf("left %q", left(t, m))
	}
	if err := NewLeases(m).Release(t.Context(), l.ID); err != nil {
		t.Errorf("released after all is done: %v", err)
	}
}

func TestALeaseThatNobodyReleasesExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := manager(t, Options{CommandRunner: (&fake{}).plain})
		emptyOnes(t, m, "gone", "kept", "again")
		for _, id := range []string{"gone", "kept", "again"} {
			mustLease(t, m, id, time.Minute)
		}
		if l := mustLease(t, m, "gone", time.Second); time.Until(l.Expires) != time.Minute {
			t.Errorf("a lease got shorter: %+v", l)
		}
		if err := errors.Join(m.Teardown(t.Context(), "gone"), m.Teardown(t.Context(), "again")); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute - 1)
		reap(t, m, 0)
		<-time.After(1)
		emptyOnes(t, m, "again") // the lease has ended: who comes does what the reaper would
		reap(t, m, 2)
		if exists(filepath.Join(m.ParentDir(), "gone")) {
			t.Error("what was to go is there")
		}
		if _, err := m.Path("kept"); err != nil || !exists(filepath.Join(m.ParentDir(), "kept")) {
			t.Errorf("what nobody has asked to remove is gone: %v", err)
		}
		if list, err := NewLeases(m).All(); err != nil || len(list) > 0 {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

func TestTheEndOfALeaseLosesNoWork(t *testing.T) {
	m := manager(t, Options{CommandRunner: (&fake{}).plain})
	emptyOnes(t, m, "s")
	l := mustLease(t, m, "s", time.Hour)
	path, err := m.Path("s")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(path, "report.txt"), "work")
	if err := errors.Join(m.Teardown(t.Context(), "s"), NewLeases(m).Release(t.Context(), l.ID)); err != nil {
		t.Fatal(err)
	}
	reap(t, m, 1)
	if !exists(filepath.Join(path, "report.txt")) {
		t.Fatal("work is lost")
	}
	mustPark(t, m.Teardown(t.Context(), "s"), "report.txt")
}

func TestALeaseBindsAWholeRoot(t *testing.T) {
	s, _, _ := pair2(t, "s")
	s.Mode = RootShared
	m := manager(t, Options{})
	r := mustRoot(t, m, s)
	l := mustLease(t, m, r.ID, time.Hour)
	if l.Path != r.Path || l.For != r.ID {
		t.Errorf("%+v", l)
	}
	if err := NewRoots(m).Teardown(t.Context(), r.ID, "s"); err != nil || !exists(filepath.Join(r.Path, "docs", "README.md")) || !exists(filepath.Join(r.Dir, "README.md")) {
		t.Fatalf("%v", err)
	}
	if _, err := NewRoots(m).Provision(t.Context(), s); !errors.Is(err, ErrWorkareaLeased) {
		t.Errorf("made again: %v", err)
	}
	if _, err := NewRoots(m).Provision(t.Context(), RootSpec{SessionID: "b", ParentWorkareaID: r.ID}); !errors.Is(err, ErrWorkareaLeased) {
		t.Errorf("joined: %v", err)
	}
	if err := NewLeases(m).Release(t.Context(), l.ID); err != nil {
		t.Fatal(err)
	}
	reap(t, m, 1)
	if len(left(t, m)) > 0 {
		t.Errorf("left %q", left(t, m))
	}
}

func TestWhatCannotBeRemovedIsTriedAgainLaterAndLater(t *testing.T) {
	for tries, want := range map[int]time.Duration{0: 30 * time.Second, 1: time.Minute, 2: 2 * time.Minute, 3: 4 * time.Minute, 4: 5 * time.Minute, 100: 5 * time.Minute} {
		if got := leaseRetry(tries); got != want {
			t.Errorf("after %d: %s", tries, got)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("no git")
		ctx, cancel := context.WithCancel(t.Context())
		var looks atomic.Int32
		m := manager(t, Options{EnvCommandRunner: func(_ context.Context, _ []string, _ string, args ...string) ([]byte, error) {
			if plumbing.Verb(args) == "clone" {
				return nil, os.MkdirAll(filepath.Join(args[len(args)-1], ".git"), 0o700)
			}
			if looks.Add(1); looks.Load() > 2 {
				cancel()
			}
			return nil, &types.SyscallError{Syscall: "Git", Code: types.ErrDriver, Err: broken}
		}})
		if _, err := m.Provision(t.Context(), ProvisionSpec{SessionID: "s", RepoURL: "https://h/r"}); err != nil {
			t.Fatal(err)
		}
		l := mustLease(t, m, "s", time.Hour)
		if err := errors.Join(m.Teardown(t.Context(), "s"), NewLeases(m).Release(t.Context(), l.ID)); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		NewLeases(m).KeepReaping(ctx)
		if took := time.Since(began); looks.Load() != 3 || took != 90*time.Second { // at once, after 30 s, after 60 s more
			t.Errorf("%d looks in %s", looks.Load(), took)
		}
		if list, err := NewLeases(m).All(); err != nil || len(list) != 1 || list[0].Tries != 3 || !exists(filepath.Join(m.ParentDir(), "s")) {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

func TestLeasesAreSeenToAFewAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := manager(t, Options{CommandRunner: (&fake{}).plain})
		for i := range reapMost + 3 {
			id := fmt.Sprint("s", i)
			emptyOnes(t, m, id)
			mustLease(t, m, id, time.Second)
			if err := m.Teardown(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		<-time.After(time.Second)
		reap(t, m, reapMost)
		reap(t, m, 3)
		reap(t, m, 0)
	})
}

// A record that cannot be read is told of, and keeps nobody from the others.
func TestADamagedRecordBindsNoOtherLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := manager(t, Options{CommandRunner: (&fake{}).plain})
		emptyOnes(t, m, "a", "b", "c")
		mustLease(t, m, "a", time.Second)
		b := mustLease(t, m, "b", time.Hour)
		for _, path := range []string{m.ledger.leasePath("a0"), m.ledger.path("r" + rootMark)} {
			if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		mustLease(t, m, "c", time.Hour)
		<-time.After(time.Second)
		o := NewLeases(m)
		if n, err := o.Reap(t.Context()); n != 1 || types.CodeOf(err) != types.ErrStorage {
			t.Errorf("%d leases have ended, %v", n, err)
		}
		if err := o.Release(t.Context(), b.ID); err != nil {
			t.Error(err)
		}
		if list, err := o.All(); len(list) != 2 || list[0].State != LeaseReleasePending || err == nil {
			t.Errorf("%+v, %v", list, err)
		}
		if err := o.Release(t.Context(), "wtl_none"); err == nil {
			t.Error("the lease that cannot be read may be the one")
		}
	})
}

func TestLeasesThatCannotBeMeant(t *testing.T) {
	m := manager(t, Options{CommandRunner: (&fake{}).plain})
	for _, id := range []string{"", "../x", "none", "wac_none"} {
		if _, err := NewLeases(m).Take(t.Context(), id, time.Hour); !errors.Is(err, ErrUnknownSession) {
			t.Errorf("%q: %v", id, err)
		}
	}
	emptyOnes(t, m, "s")
	for _, ttl := range []time.Duration{0, -time.Second} {
		if _, err := NewLeases(m).Take(t.Context(), "s", ttl); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%s: %v", ttl, err)
		}
	}
	if err := NewLeases(m).Release(t.Context(), "wtl_none"); err != nil {
		t.Error(err)
	}
	mustLease(t, m, "s", time.Hour)
	write(t, m.ledger.leasePath("s"), "{")
	if err := m.Teardown(t.Context(), "s"); types.CodeOf(err) != types.ErrStorage || !exists(filepath.Join(m.ParentDir(), "s")) {
		t.Errorf("a lease that cannot be read: %v", err)
	}
}

func TestALeaseThatOutlivedItsCheckoutBindsNoOther(t *testing.T) {
	m := manager(t, Options{CommandRunner: (&fake{}).plain})
	emptyOnes(t, m, "s")
	l := mustLease(t, m, "s", time.Hour)
	if err := errors.Join(m.Teardown(t.Context(), "s"), NewLeases(m).Release(t.Context(), l.ID)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(filepath.Join(m.ParentDir(), "s")), m.ledger.forget("s")); err != nil { // as a crash in the middle of the end leaves it
		t.Fatal(err)
	}
	emptyOnes(t, m, "s")
	reap(t, m, 0)
	if _, err := m.Path("s"); err != nil || !exists(filepath.Join(m.ParentDir(), "s")) {
		t.Errorf("it was removed: %v", err)
	}
}
