package confine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rnix/internal/egress"
	"rnix/internal/hosts"
	"rnix/internal/permit"
	"rnix/kernel"
	"rnix/types"
)

func targetAt(t *testing.T, text string) hosts.Target {
	t.Helper()
	to, err := hosts.ParseTarget(text, 0)
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// asker answers what a doorman asks.
type asker func(ctx context.Context, host string) (kernel.Permission, error)

func (a asker) doorman(ctx context.Context) *doorman {
	return &doorman{ctx: ctx, of: types.UUID{1}, ask: func(ctx context.Context, of types.UUID, id string, c permit.Call) (kernel.Permission, error) {
		if of != (types.UUID{1}) || id != "host "+c.On() || !c.Host() {
			return kernel.Permission{}, errors.New("it is asked about something else")
		}
		return a(ctx, c.On())
	}}
}

func TestDoormanDecidesAsRulesAndPersonsDo(t *testing.T) {
	asked := map[string]int{}
	d := asker(func(_ context.Context, host string) (kernel.Permission, error) {
		asked[host]++
		switch host {
		case "free.test:443", "listed.test:443":
			return kernel.Permission{Decision: permit.Allow}, nil
		case "granted.test:443":
			return kernel.Permission{Decision: permit.Allow, Granted: true}, nil
		case "answered.test:443":
			return kernel.Permission{Decision: permit.Ask}, nil
		case "denied.test:443":
			return kernel.Permission{Decision: permit.Deny, Why: types.Errorf(types.ErrPermission, "Tool", "host", "no")}, nil
		case "nobodys.test:443":
			return kernel.Permission{}, types.Errorf(types.ErrNotFound, "Ask", "", "it does not run")
		}
		return kernel.Permission{}, errors.New("the disk is full")
	}).doorman(t.Context())
	for _, c := range []struct {
		host  string
		named bool
		want  egress.Verdict
		times int // that it is asked about, in two connections
	}{
		{"free.test:443", false, egress.Verdict{}, 2},
		{"listed.test:443", true, egress.Verdict{Allow: true}, 2},
		{"granted.test:443", false, egress.Verdict{Allow: true}, 2}, // it can end
		{"answered.test:443", false, egress.Verdict{Allow: true}, 1},
		{"denied.test:443", true, egress.Verdict{Why: "the sandbox does not let commands reach denied.test:443: no"}, 1},
		{"nobodys.test:443", true, egress.Verdict{Allow: true}, 2},
		{"broken.test:443", true, egress.Verdict{Why: "the sandbox does not let commands reach broken.test:443, since it cannot be decided: the disk is full"}, 2},
	} {
		for range 2 {
			if got := d.Judge(t.Context(), targetAt(t, c.host), c.named); got != c.want {
				t.Errorf("%s: %+v, want %+v", c.host, got, c.want)
			}
		}
		if d.work.Wait(); asked[c.host] != c.times {
			t.Errorf("%s was asked about %d times, want %d", c.host, asked[c.host], c.times)
		}
	}
}

// Connections to one host wait for one ask, also those that come later and when the first has hung up. The time limit of the command stands still meanwhile.
func TestConnectionsWaitForOneAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan permit.Decision)
		asks, held := 0, atomic.Int32{}
		ctx, stop := context.WithCancel(t.Context())
		d := asker(func(ctx context.Context, _ string) (kernel.Permission, error) {
			asks++
			select {
			case by := <-answer:
				return kernel.Permission{Decision: by}, nil
			case <-ctx.Done():
				return kernel.Permission{}, types.Errorf(types.ErrCancelled, "Ask", "1", "it is not waited for any more")
			}
		}).doorman(ctx)
		d.hold = func() func() {
			held.Add(1)
			return func() { held.Add(-1) }
		}
		to := targetAt(t, "a.test:443")
		first, hangUp := context.WithCancel(t.Context())
		got := make(chan egress.Verdict, 3)
		go func() { got <- d.Judge(first, to, false) }()
		synctest.Wait()
		hangUp()
		if v := <-got; v.Over == nil || v.Allow {
			t.Errorf("one that has hung up: %+v", v)
		}
		time.Sleep(time.Hour)
		for range 2 {
			go func() { got <- d.Judge(t.Context(), to, false) }()
		}
		synctest.Wait()
		if held.Load() != 1 {
			t.Errorf("the clock is held by %d", held.Load())
		}
		answer <- permit.Ask
		for range 2 {
			if v := <-got; !v.Allow {
				t.Errorf("%+v", v)
			}
		}
		if asks != 1 || held.Load() != 0 {
			t.Errorf("%d asks; the clock is held by %d", asks, held.Load())
		}
		go func() { got <- d.Judge(t.Context(), targetAt(t, "b.test:443"), false) }()
		synctest.Wait()
		stop() // the command has ended
		if v := <-got; v.Over == nil || v.Allow {
			t.Errorf("after the end: %+v", v)
		}
		d.work.Wait()
	})
}

func TestHostsThatAreAskedAboutAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		d := asker(func(ctx context.Context, _ string) (kernel.Permission, error) {
			<-ctx.Done()
			return kernel.Permission{}, ctx.Err()
		}).doorman(ctx)
		var waits sync.WaitGroup
		for i := range mostAsked {
			waits.Go(func() { d.Judge(t.Context(), targetAt(t, fmt.Sprintf("h%d.test:443", i)), false) })
		}
		synctest.Wait()
		if v := d.Judge(t.Context(), targetAt(t, "more.test:443"), true); v.Allow || v.Why == "" {
			t.Errorf("%+v", v)
		}
		stop()
		waits.Wait()
		d.work.Wait()
	})
}
