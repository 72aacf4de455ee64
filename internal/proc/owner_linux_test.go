package proc

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"rnix/types"
)

func TestWhoIsQuickerThanTheStartThatItComesFromHasItsOwner(t *testing.T) {
	m := newManager(t)
	family.forking.RLock() // a start is under way
	cmd := exec.Command(lookup(t, "sleep"), "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	pid := cmd.Process.Pid
	owner := make(chan types.PID)
	go func() {
		o, _ := m.Owner(pid)
		owner <- o
	}()
	for family.forking.TryRLock() { // until it waits
		family.forking.RUnlock()
		runtime.Gosched()
	}
	know(m, pid, &Child{process: cmd.Process, spec: Spec{Owner: 7}})
	family.forking.RUnlock()
	if got := <-owner; got != 7 {
		t.Errorf("its owner is %d", got)
	}
	know(m, pid, nil)
	if got, inside := m.Owner(pid); got != 0 || !inside {
		t.Errorf("whom nobody has started belongs to %d, inside %t", got, inside)
	}
}

// know makes c the child of a pid; nil makes it nobody's.
func know(m *Manager, pid int, c *Child) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.children[pid] = c; c == nil {
		delete(m.children, pid)
	}
}

func TestWhoIsFarBelowAnAgentAndHasLeftItIsInside(t *testing.T) {
	want := "7 true"
	if !adopts() {
		want = "0 true" // adopted by the daemon: nobody knows of whom
	}
	g := runGuarded(t, "deep", filepath.Join(t.TempDir(), "children"))
	if got := g.line(); got != want {
		t.Errorf("at the end of a long line one is %s, want %s", got, want)
	}
	signal9(g.daemon)
	g.end()
}

// deepDaemon has a child that starts a line of processes in sessions of their own and without the mark, and says to whom the last one belongs.
func deepDaemon(dir string) {
	read, write, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	m := underWarden(dir, "")
	spec := sh(`n=0; x='n=$((n+1)); export n; if [ $n -lt 80 ]; then setsid -w sh -c "$x"; else echo $$; sleep 1000; fi'
(env -i PATH="$PATH" n=0 x="$x" setsid -w sh -c 'eval "$x"' &); sleep 1000`, write)
	c, err := m.Start(context.Background(), spec)
	if err != nil {
		panic(err)
	}
	last, err := bufio.NewReader(read).ReadString('\n')
	if err != nil {
		panic(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(last))
	if err != nil {
		panic(err)
	}
	if owner, inside := m.Owner(c.PID()); owner != 7 || !inside {
		panic(fmt.Sprint(owner, inside))
	}
	owner, inside := m.Owner(pid)
	fmt.Println(owner, inside)
	select {}
}

func TestWhoHasEndedIsNotTakenForAPerson(t *testing.T) {
	m := newManager(t)
	cmd := exec.Command(lookup(t, "true"))
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if owner, inside := m.Owner(cmd.Process.Pid); owner != 0 || !inside {
		t.Errorf("who may have handed its connection on belongs to %d, inside %t", owner, inside)
	}
	if owner, inside := m.Owner(os.Getppid()); owner != 0 || inside {
		t.Errorf("who has started us belongs to %d, inside %t", owner, inside)
	}
}
