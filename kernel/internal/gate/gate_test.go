package gate

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestShutGateHoldsUntilItOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Gate
		g.Shut(time.Now())
		if g.Shut(time.Now()) {
			t.Error("a second pause counted")
		}
		passed := false
		go func() { _ = g.Wait(t.Context()); passed = true }()
		time.Sleep(time.Hour)
		synctest.Wait()
		if passed {
			t.Fatal("went through a shut gate")
		}
		if d := g.Paused(time.Now()); d != time.Hour {
			t.Errorf("paused for %v", d)
		}
		if d, ok := g.Open(time.Now()); !ok || d != time.Hour {
			t.Errorf("open: %v %v", d, ok)
		}
		synctest.Wait()
		if !passed {
			t.Fatal("still waits")
		}
		time.Sleep(time.Hour)
		if d := g.Paused(time.Now()); d != time.Hour {
			t.Errorf("the pause went on after the end: %v", d)
		}
	})
}

func TestWaitEndsWithTheCause(t *testing.T) {
	var g Gate
	g.Shut(time.Now())
	killed := errors.New("killed")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(killed)
	if err := g.Wait(ctx); err != killed {
		t.Fatalf("got %v", err)
	}
	g.Open(time.Now())
	if err := g.Wait(ctx); err != killed {
		t.Fatalf("an open gate lets the dead pass: %v", err)
	}
}

// While time stands still the gate lets everybody through, and a pause in between is counted once.
func TestTimeStandsStillWhileTheGateIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Gate
		g.Still(time.Now(), true)
		if err := g.Wait(t.Context()); err != nil || g.Closed() || !g.Stands() {
			t.Fatalf("%v, closed: %v, stands: %v", err, g.Closed(), g.Stands())
		}
		time.Sleep(time.Hour)
		g.Shut(time.Now())
		time.Sleep(time.Hour)
		g.Still(time.Now(), false)
		if !g.Stands() {
			t.Error("time counts in a pause")
		}
		time.Sleep(time.Hour)
		g.Open(time.Now())
		time.Sleep(time.Hour)
		if d := g.Paused(time.Now()); d != 3*time.Hour || g.Stands() {
			t.Errorf("%v did not count, want 3h; stands: %v", d, g.Stands())
		}
	})
}
