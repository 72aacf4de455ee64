package proc

import (
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"rnix/types"
)

func TestWhoIsQuickerThanTheStartThatItComesFromHasItsOwner(t *testing.T) {
	m := newManager(t)
	m.forking.RLock() // a start is under way
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
	for m.forking.TryRLock() { // until it waits
		m.forking.RUnlock()
		runtime.Gosched()
	}
	know := func(c *Child) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.children[pid] = c; c == nil {
			delete(m.children, pid)
		}
	}
	know(&Child{process: cmd.Process, spec: Spec{Owner: 7}})
	m.forking.RUnlock()
	if got := <-owner; got != 7 {
		t.Errorf("its owner is %d", got)
	}
	know(nil)
	if got, inside := m.Owner(pid); got != 0 || !inside {
		t.Errorf("whom nobody has started belongs to %d, inside %t", got, inside)
	}
}
