package proc

import (
	"testing"
	"time"
)

// While the clock of a child is held its time limit does not run, and it goes on. A pause in between changes nothing of that.
func TestHeldClockOfAChildStandsStill(t *testing.T) {
	m := newManager(t)
	spec := sh("read x; echo $x", newLines(t))
	spec.StdinPipe, spec.Timeout = true, 300*time.Millisecond
	c := start(t, m, spec)
	goOn, again := hold(c), hold(c)
	c.freeze()
	c.thaw()
	select {
	case <-c.Done():
		t.Fatal("it was ended while its clock was held")
	case <-time.After(600 * time.Millisecond):
	}
	again()
	again()
	select {
	case <-c.Done():
		t.Fatal("it was ended while its clock was held")
	case <-time.After(400 * time.Millisecond):
	}
	goOn()
	if e := c.Wait(); e.Cause != TimedOut || e.Took > 900*time.Millisecond {
		t.Errorf("%+v", e)
	}
}
