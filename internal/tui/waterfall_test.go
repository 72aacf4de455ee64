package tui

import (
	"strings"
	"testing"
	"time"

	"rnix/internal/step"
	"rnix/internal/trace"
	"rnix/ipc"

	"pgregory.net/rapid"
)

func TestTheSharesOfTheCriticalPathAddUpTo100(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var parts []time.Duration
		for _, n := range rapid.SliceOfN(rapid.Int64Range(1, 1e12), 1, 4).Draw(t, "parts") {
			parts = append(parts, time.Duration(n))
		}
		sum := 0
		for _, n := range percents(parts) {
			sum += n
		}
		if sum != 100 {
			t.Errorf("%v: %v", parts, percents(parts))
		}
	})
	if got := percents([]time.Duration{2, 47, 50}); got[0]+got[1]+got[2] != 100 {
		t.Error(got)
	}
}

func TestACallThatWasNotBegunHasNoTimeAndTokensHaveTheirUnit(t *testing.T) {
	begin := time.Unix(1e9, 0)
	r := ipc.TraceResponse{Start: begin, End: begin.Add(time.Second), Spans: []ipc.Span{
		{ID: "a", PID: 1, Kind: trace.Process, Name: "lead", Start: begin, Dur: time.Second, Runs: 1},
		{ID: "b", Parent: "a", PID: 1, Kind: trace.Model, Name: "large", Tokens: 1234, Start: begin, Dur: time.Second},
		{ID: "c", Parent: "a", PID: 1, Kind: trace.Tool, Name: "shell", Start: begin, Dur: 561, Verdict: step.LedgerNotBegun},
	}}
	got := Waterfall(&Theme{ASCII: true, Bare: true}, &r, r.Spans, 100)
	if strings.Contains(got, "561ns") || !strings.Contains(got, "large 1,234 tokens ") {
		t.Error(got)
	}
}
