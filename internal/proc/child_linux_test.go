package proc

import (
	"bytes"
	"context"
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
	if e := c.Stop(10 * time.Second); e.Code != 5 || e.Cause != Stopped {
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
	if e.Code != 0 || e.Left != 2 || out.String() != "done\n" || time.Since(began) > 20*time.Second {
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
	m.cages.places = func() []place { return nil } // signals show in the states of processes
	spec := sh("sleep 1000 & wait", nil)
	spec.Timeout = 400 * time.Millisecond
	c := start(t, m, spec)
	if n := m.Freeze(7); n == 0 || !c.Info().Frozen {
		t.Fatalf("froze %d processes: %+v", n, c.Info())
	}
	clock := sh("sleep 0.8", nil)
	clock.Owner = 8
	start(t, m, clock).Wait()
	select {
	case <-c.Done():
		t.Fatal("a frozen child has timed out")
	default:
	}
	for _, p := range processTable() {
		if p.session == c.PID() && p.state != 'T' {
			t.Errorf("process %d is in state %c", p.PID, p.state)
		}
	}
	m.Thaw(7)
	if e := c.Wait(); e.Cause != TimedOut || e.Took > 700*time.Millisecond+e.Took/2 {
		t.Errorf("exit is %+v", e)
	}
}

func TestFrozenChildCanBeStopped(t *testing.T) {
	m := newManager(t)
	out := newLines(t)
	c := start(t, m, sh(`trap "exit 5" TERM; echo $$; while :; do sleep 0.01; done`, out))
	out.pid(t)
	m.Freeze(7)
	if e := c.Stop(10 * time.Second); e.Code != 5 {
		t.Errorf("exit is %+v", e)
	}
}
