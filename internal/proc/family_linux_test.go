package proc

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// managersOfOne has two managers in one program that adopts orphans: neither takes the other's children for strays, and a child of the
// program itself keeps nobody from seeing that nothing is left behind.
func managersOfOne(dir string) {
	if err := BecomeSubreaper(); err != nil {
		panic(err)
	}
	one, err := NewManager(filepath.Join(dir, "one"), nil)
	if err != nil {
		panic(err)
	}
	two, err := NewManager(filepath.Join(dir, "two"), nil)
	if err != nil {
		panic(err)
	}
	c, err := one.Start(context.Background(), sh("sleep 1000", nil))
	if err != nil {
		panic(err)
	}
	foreign := exec.Command("sleep", "1000")
	if err := foreign.Start(); err != nil {
		panic(err)
	}
	if !noOrphans() {
		if _, ok := childrenOf(c.PID()); ok {
			panic("a child of another manager or of the program is taken for an orphan")
		}
	}
	if unsure := two.tend(two.tend(nil, false), true); len(unsure) > 0 {
		panic(fmt.Sprintf("taken for strays: %v", unsure))
	}
	startedMeanwhile(one, two)
	two.Close()
	if c.tree.over() || !alive(c.entry.Leader) {
		panic("the child of another manager was ended")
	}
	one.Close()
	_ = foreign.Process.Kill()
	if err := foreign.Wait(); err == nil {
		panic("the program's own child had ended")
	}
	fmt.Println("clean")
}

// startedMeanwhile has a child end before it is among the children of its manager, while the other one looks for orphans, twice.
func startedMeanwhile(one, two *Manager) {
	family.forking.RLock() // a start is under way
	quick := exec.Command("true")
	if err := quick.Start(); err != nil {
		panic(err)
	}
	if err := unix.Waitid(unix.P_PID, quick.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		panic(err)
	}
	looked := make(chan struct{})
	go func() { // ends with the start
		defer close(looked)
		two.tend(two.tend(nil, false), false)
	}()
	for family.forking.TryRLock() { // until it waits
		family.forking.RUnlock()
		select {
		case <-looked:
			panic("it does not wait for the start")
		default:
		}
	}
	one.mu.Lock()
	one.children[quick.Process.Pid] = nil
	one.mu.Unlock()
	family.forking.RUnlock()
	<-looked
	one.mu.Lock()
	delete(one.children, quick.Process.Pid)
	one.mu.Unlock()
	if err := quick.Wait(); err != nil {
		panic(fmt.Sprintf("the status of a child was taken while it was being started: %v", err))
	}
}

func TestManagersOfOneProgramLeaveEachOthersChildrenAlone(t *testing.T) {
	t.Parallel() // it is a program of its own
	out, err := runHelper(t, "managers-of-one", t.TempDir()).Output()
	if err != nil || string(out) != "clean\n" {
		t.Errorf("%q, %v", out, err)
	}
}
