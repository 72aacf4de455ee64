package proc

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"
)

// guardedDaemon is a daemon with a warden; it says the pid of that one, and of what its child has started.
func guardedDaemon(dir string) {
	m, err := NewManager(dir, nil)
	if err != nil {
		panic(err)
	}
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	m.Guard(self)
	if _, err := m.Start(context.Background(), sh(`setsid sh -c 'echo $$; exec sleep 1000' & (setsid sh -c 'trap "" TERM HUP; echo $$; while :; do sleep 1; done' &) ; wait`, os.Stdout)); err != nil {
		panic(err)
	}
	_, _ = os.Stdout.WriteString(strconv.Itoa(m.warden.pid()) + "\n")
	select {}
}

func TestAKilledDaemonsWardenEndsWhatItsChildrenHaveStarted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "children")
	ids := killedAfter(t, "guarded", dir, 3)
	mustBeGone(t, ids...) // nobody has started a daemon again
	m := managerOf(t, dir)
	found, err := m.ReapSurvivors()
	if err != nil || len(found) != 1 || len(found[0].Killed) < 2 || found[0].Err != nil {
		t.Fatalf("the next daemon is told %+v, %v", found, err)
	}
	if again, err := m.ReapSurvivors(); err != nil || len(again) != 0 {
		t.Errorf("a second time: %+v, %v", again, err)
	}
}

func managerOf(t *testing.T, dir string) *Manager {
	t.Helper()
	m, err := NewManager(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

func TestAWardenIsStartedWithTheFirstChildAndEndsWithTheManager(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "children")
	m := managerOf(t, dir)
	m.Guard(self)
	if m.warden.pid() != 0 {
		t.Error("there is a warden, and nothing to watch over")
	}
	start(t, m, sh("true", nil)).Wait()
	first := identityOf(m.warden.pid())
	start(t, m, sh("true", nil)).Wait()
	if identityOf(m.warden.pid()) != first || !alive(first) {
		t.Errorf("the warden is %d, was %v", m.warden.pid(), first)
	}
	signal(first, 9)
	mustBeGone(t, first)
	for end := time.Now().Add(time.Minute); m.warden.pid() != 0 && time.Now().Before(end); runtime.Gosched() {
	}
	start(t, m, sh("true", nil)).Wait()
	second := identityOf(m.warden.pid())
	if second == first || !alive(second) {
		t.Errorf("one that was killed is not replaced: %v", second)
	}
	m.Close()
	mustBeGone(t, second)
}

func TestAWardenThatCannotBeStartedKeepsNoChildFromRunning(t *testing.T) {
	m := managerOf(t, filepath.Join(t.TempDir(), "children"))
	m.Guard("/nowhere/rnix")
	if exit := start(t, m, sh("exit 3", nil)).Wait(); exit.Code != 3 {
		t.Errorf("the child ended with %+v", exit)
	}
}

func TestAWardenLeavesTheChildrenOfALivingDaemonAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "children")
	m := managerOf(t, dir)
	c := start(t, m, sh("sleep 1000", nil))
	other := identityOf(os.Getpid())
	other.Start-- // a daemon that had our pid before us
	if err := watchOver(dir, other); err != nil {
		t.Error(err)
	}
	if !alive(c.entry.Leader) {
		t.Error("a child of a living daemon was ended")
	}
	c.Kill()
	if names, err := m.registry.names(); err != nil || len(names) > 0 {
		t.Errorf("%v, %v", names, err)
	}
}

func TestOnlyTheArgumentsOfAWardenMakeOne(t *testing.T) {
	for _, args := range [][]string{nil, {"ps"}, {wardenWord}, {wardenWord, "a", "1"}, {wardenWord, "a", "1", "2", "3"}, {"x", "a", "1", "2"}} {
		if _, asked := RunWarden(args); asked {
			t.Errorf("%q make a warden", args)
		}
	}
	if code, asked := RunWarden([]string{"-first", wardenWord, "x", "one", "2"}); !asked || code != 2 {
		t.Errorf("%d %t", code, asked)
	}
}
