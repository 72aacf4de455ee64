package kernel

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"rnix/internal/step"
)

func TestRulesNameServersAsTheConfigurationDoes(t *testing.T) {
	p := &Process{PID: 3}
	for path, want := range map[string]string{
		"/mnt/mcp/3-github": "/mnt/mcp/github", "/mnt/mcp/3-github/list": "/mnt/mcp/github/list",
		"/mnt/mcp/33-github": "/mnt/mcp/33-github", "/mnt/mcp/mine": "/mnt/mcp/mine", "/dev/shell": "/dev/shell",
	} {
		if got := ruled(p, path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// What an earlier run has asked is waited for until the loop shows it again, or the run is over.
func TestWhatWasAskedBeforeIsShownAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, p := &KernelImpl{table: &table{}}, &Process{PID: 1}
		k.table.byPID.Store(1, p)
		p.asks.had(&step.Life{Asks: []step.Ask{{Number: 1, Own: true}}})
		k.AsksShown(t.Context()) // of the process of a call that is over
		p.asks.had(&step.Life{Asks: []step.Ask{{Number: 2}}})
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if k.AsksShown(ctx); time.Since(began) != time.Minute {
			t.Errorf("waited %s", time.Since(began))
		}
		time.AfterFunc(time.Second, p.asks.shown)
		if k.AsksShown(t.Context()); time.Since(began) != time.Minute+time.Second {
			t.Errorf("waited %s", time.Since(began))
		}
		p.asks.shown()
	})
}
