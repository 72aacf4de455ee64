package proc

import (
	"bytes"
	"context"
	"runtime"
	"syscall"
	"testing"
	"time"

	"rnix/types"
)

func TestStopIsGentleFirst(t *testing.T) {
	m := newManager(t)
	out := newLines(t)
	c := start(t, m, sh(`trap "exit 5" TERM; echo $$; while :; do sleep 0.01; done`, out))
	out.pid(t)
	if e := c.Stop(time.Minute); e.Code != 5 || e.Cause != Stopped {
		t.Errorf("exit is %+v", e)
	}
	out = newLines(t)
	c = start(t, m, sh(`trap "" TERM; echo $$; while :; do sleep 0.01; done`, out))
	out.pid(t)
	if e := c.Stop(50 * time.Millisecond); e.Signal != syscall.SIGKILL || e.Cause != Stopped {
		t.Errorf("exit is %+v", e)
	}
}

func TestKillFindsDescendantsThatLeftTheSession(t *testing.T) {
	m := newManager(t)
	out := newLines(t)
	c := start(t, m, sh(`setsid sh -c 'echo $$; exec sleep 1000' & setsid env -i `+lookup(t, "sh")+` -c 'echo $$; exec sleep 1000' & wait`, out))
	a, b := out.pid(t), out.pid(t)
	c.Kill()
	mustBeGone(t, a, b, c.entry.Leader)
}

func TestWrapperThatObeysDoesNotSaveItsChild(t *testing.T) {
	m := newManager(t)
	out := newLines(t)
	c := start(t, m, sh(`trap 'exit 0' TERM; setsid sh -c 'trap "" TERM; echo $$; while :; do sleep 0.05; done' & wait`, out))
	inner := out.pid(t)
	c.Stop(300 * time.Millisecond)
	mustBeGone(t, inner)
}

func TestBackgroundJobThatHoldsTheOutputDoesNotHang(t *testing.T) {
	m := newManager(t)
	var out bytes.Buffer
	began := time.Now()
	e := start(t, m, sh("sleep 1000 & setsid sleep 1000 & echo done", &out)).Wait()
	if e.Code != 0 || e.Left != 2 || out.String() != "done\n" || time.Since(began) > time.Minute {
		t.Errorf("exit is %+v after %v, output %q", e, time.Since(began), &out)
	}
}

func TestTimeoutAndContextEndTheChild(t *testing.T) {
	m := newManager(t)
	spec := sh("sleep 1000", nil)
	spec.Timeout = 20 * time.Millisecond
	if e := start(t, m, spec).Wait(); e.Cause != TimedOut || e.Signal != syscall.SIGKILL {
		t.Errorf("exit is %+v", e)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c, err := m.Start(ctx, sh("sleep 1000", nil))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if e := c.Wait(); e.Cause != Cancelled {
		t.Errorf("exit is %+v", e)
	}
	if _, err := m.Start(ctx, sh("true", nil)); types.CodeOf(err) != types.ErrCancelled {
		t.Errorf("error is %v", err)
	}
}

func TestFrozenTimeIsNotCounted(t *testing.T) {
	m := newManager(t)
	only(m, FreezerSignals) // they show in the states of processes
	spec := sh("sleep 1000 & wait", nil)
	for spec.Timeout = 400 * time.Millisecond; ; spec.Timeout *= 4 { // longer, if this machine is too busy to freeze it in time
		began := time.Now()
		c := start(t, m, spec)
		if n := m.Freeze(7); n == 0 || !c.Info().Frozen {
			if e := c.Wait(); e.Cause != TimedOut || spec.Timeout > time.Minute {
				t.Fatalf("froze %d processes: %+v", n, c.Info())
			}
			m.Thaw(7)
			continue
		}
		still := time.Now()
		<-time.After(2 * spec.Timeout)
		select {
		case <-c.Done():
			t.Fatal("a frozen child has timed out")
		default:
		}
		for _, p := range processTable() {
			if p.session == c.PID() {
				mustStandStill(t, p.PID)
			}
		}
		frozen := time.Since(still)
		m.Thaw(7)
		if e := c.Wait(); e.Cause != TimedOut || e.Took < spec.Timeout || e.Took > time.Since(began)-frozen {
			t.Errorf("exit is %+v; it was frozen for %v of %v", e, frozen, time.Since(began))
		}
		return
	}
}

// mustStandStill waits until a process that was sent a stop has obeyed, which it does when it runs.
func mustStandStill(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; runtime.Gosched() {
		s, _ := statOf(pid)
		if s.state == 'T' || s.state == 'D' { // D: it waits for a child that was stopped before its exec
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d is in state %c", pid, s.state)
		}
	}
}

func TestFrozenChildCanBeStopped(t *testing.T) {
	m := newManager(t)
	out := newLines(t)
	c := start(t, m, sh(`trap "exit 5" TERM; echo $$; while :; do sleep 0.01; done`, out))
	out.pid(t)
	m.Freeze(7)
	if e := c.Stop(time.Minute); e.Code != 5 {
		t.Errorf("exit is %+v", e)
	}
}
