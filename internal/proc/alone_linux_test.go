package proc

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// subreap makes the test program a subreaper, as the daemon is, until the test is over.
func subreap(t *testing.T) {
	t.Helper()
	if err := BecomeSubreaper(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0); err != nil {
			t.Error(err)
		}
	})
}

// TestWhoeverIsLeftIsFoundWhereverHeHides has children that leave nobody behind, and children that leave
// somebody who has left their session and has dropped their mark.
func TestWhoeverIsLeftIsFoundWhereverHeHides(t *testing.T) {
	subreap(t)
	m := newManager(t)
	other := start(t, m, Spec{Kind: KindShell, Path: "sleep", Args: []string{"100"}, Env: []string{"PATH=" + os.Getenv("PATH")}})
	defer other.Kill()
	for _, c := range []struct {
		script string
		left   int
	}{
		{"exit 0", 0},
		{"(exit 3) & wait", 0},
		{"sleep 100 </dev/null >/dev/null 2>&1 &", 1},
		{"setsid sleep 100 </dev/null >/dev/null 2>&1 & sleep 0.1", 1},
		{"(env -i PATH=\"$PATH\" setsid sleep 100 </dev/null >/dev/null 2>&1 &); sleep 0.1", 1},
		{"setsid sh -c 'sleep 100 & exec sleep 100' </dev/null >/dev/null 2>&1 & sleep 0.1", 2},
	} {
		child := start(t, m, Spec{Kind: KindShell, Path: "sh", Args: []string{"-c", c.script}, Env: []string{"PATH=" + os.Getenv("PATH")}})
		if exit := child.Wait(); exit.Left != c.left {
			t.Errorf("%s: %d were left, want %d", c.script, exit.Left, c.left)
		}
	}
	select {
	case <-other.Done():
		t.Error("a child with which nothing was wrong has ended")
	default:
	}
}

// TestOurChildrenAreListedWhileTheyLive starts and ends children while others are looked for.
func TestOurChildrenAreListedWhileTheyLive(t *testing.T) {
	subreap(t)
	m := newManager(t)
	spec := Spec{Kind: KindShell, Path: "sleep", Args: []string{"100"}, Env: []string{"PATH=" + os.Getenv("PATH")}}
	stays := start(t, m, spec)
	defer stays.Kill()
	if hasExited(stays.PID()) {
		t.Error("a living child is said to have exited")
	}
	done := make(chan struct{})
	go func() { // ends after its children; waited for below
		defer close(done)
		for range 20 {
			start(t, m, Spec{Kind: KindShell, Path: "true", Env: spec.Env}).Wait()
		}
	}()
	for n := 0; ; n++ {
		children, ok := childrenOf(os.Getpid())
		if !ok {
			b, err := os.ReadFile("/proc/self/task/" + strconv.Itoa(os.Getpid()) + "/children")
			if err != nil {
				t.Skipf("needs a kernel that lists children: %v, %q", err, b)
			}
		}
		found := !ok // a thread came or went: nothing is said
		for _, pid := range children {
			found = found || pid == stays.PID()
		}
		if !found {
			t.Fatalf("look %d: %d is not among our children %v", n, stays.PID(), children)
		}
		select {
		case <-done:
			return
		default:
		}
	}
}

// TestAStartThatIsUnderWayIsNoOrphan asks whether there are orphans while a child runs that is not among the children of its manager yet, and
// then is, or never is.
func TestAStartThatIsUnderWayIsNoOrphan(t *testing.T) {
	subreap(t)
	m := newManager(t)
	if _, ok := childrenOf(os.Getpid()); !ok && !noOrphans() {
		t.Skip("needs a kernel that lists children")
	}
	const rounds = 50 // of which some say nothing: a thread came
	for _, registered := range []bool{true, false} {
		none := false
		for range rounds {
			if none = noneWhileOneStarts(t, m, registered); none {
				break
			}
		}
		if none != registered {
			t.Errorf("registered %v: no orphans %v", registered, none)
		}
	}
}

// noneWhileOneStarts asks whether there are no orphans while a start is under way, which ends when that is waited for.
func noneWhileOneStarts(t *testing.T, m *Manager, registered bool) bool {
	t.Helper()
	family.forking.RLock()
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // as a child has it
	if err := cmd.Start(); err != nil {
		family.forking.RUnlock()
		t.Fatal(err)
	}
	told := make(chan bool, 1)
	go func() { told <- noOrphans() }()               // ends when the lock is free
	for len(told) == 0 && family.forking.TryRLock() { // nobody waits for the lock yet
		family.forking.RUnlock()
		runtime.Gosched()
	}
	if registered {
		c := &Child{manager: m, process: cmd.Process}
		c.entry.Leader = identityOf(cmd.Process.Pid)
		m.mu.Lock()
		m.children[cmd.Process.Pid] = c
		m.mu.Unlock()
	}
	family.forking.RUnlock()
	none := <-told
	m.mu.Lock()
	delete(m.children, cmd.Process.Pid)
	m.mu.Unlock()
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
	return none
}
