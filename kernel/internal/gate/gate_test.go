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
