package tui

import (
	"slices"
	"testing"
	"time"

	"rnix/ipc"
)

func TestTopSaysWhichProvidersAreInUseAndHowManyCallsWait(t *testing.T) {
	b := newBench(t, true, proc(1, 0, "lead"))
	list := []ipc.ProviderCalls{{Provider: "claude-agent", Running: 1}, {Provider: "anthropic", Running: 4, AtOnce: 4, Waiting: 12, Oldest: begin.Add(-40 * time.Second)}}
	b.src.answers["provider_calls"] = func(any) (any, error) { return ipc.ProviderCallsResponse{Providers: list}, nil }
	b.run()
	b.tickAll()
	b.sees("anthropic: 4 of 4 calls run, 12 wait, the first for")
	b.sees("claude-agent: 1 call runs")
	list = nil
	b.frame(false, proc(1, 0, "lead"))
	b.run()
	b.tickAll()
	b.seesNot("anthropic:")
	b.press("enter") // the dashboard has no room for them
	n := len(b.src.all())
	b.frame(false, proc(1, 0, "lead"))
	b.run()
	b.tickAll()
	for _, asked := range b.src.all()[n:] {
		if asked == "provider_calls {}" {
			t.Error("the dashboard asks")
		}
	}
}

func TestTrafficNamesTheMostCrowdedFirst(t *testing.T) {
	got := trafficLines(&Theme{}, []ipc.ProviderCalls{{Provider: "a", Running: 1, AtOnce: 4}, {Provider: "b\x1b[2J", Running: 2, AtOnce: 2, Waiting: 1, Oldest: begin}, {Provider: "c", Running: 3}, {Provider: "d", Running: 1}, {Provider: "e", Running: 1}}, begin.Add(12*time.Second))
	if want := []string{"b: 2 of 2 calls run, 1 waits, the first for 12s", "a: 1 of 4 calls run", "c: 3 calls run", "2 more providers are in use"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
