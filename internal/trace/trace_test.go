package trace

import (
	"testing"
	"time"

	"rnix/internal/event"
	"rnix/internal/step"
)

const s = time.Second

func TestTheLongestOfParallelCallsIsTheCriticalOne(t *testing.T) {
	x := tell(t, 1, noon).pass(s).begin().ask(2*s, "a", "b", "c").
		start(0, "a", 0, false).start(1, "b", 0, false).start(2, "c", 0, false).pass(5*s).
		result(0, "a", 2*s, "").result(1, "b", 5*s, "").result(2, "c", 3*s, "").done().pass(s).exit(0, "completed")
	tr := of(t, x.now, x.source())
	if got, want := path(tr), "process p1 1s, model m 2s, tool b 5s, process p1 1s"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if r := tr.Root(); r.Dur != 9*s || r.Tokens != 10 || r.CostUSD != 0.5 || r.Status != OK || len(tr.Spans) != 6 {
		t.Errorf("%+v", tr.Spans)
	}
}

func TestMoreCallsThanRunAtOnceWaitForAPlace(t *testing.T) {
	names := make([]string, 10)
	for i := range names {
		names[i] = string(rune('a' + i))
	}
	x := tell(t, 1, noon).begin().ask(s, names...)
	for i, n := range names {
		x.start(i, n, 0, false)
	}
	x.pass(6 * s)
	for i, n := range names {
		x.result(i, n, map[bool]time.Duration{true: 2 * s, false: 3 * s}[i == 3]+map[bool]time.Duration{true: s, false: 0}[i == 9], "")
	}
	x.done().exit(0, "completed")
	tr := of(t, x.now, x.source())
	if i, j := find(t, tr, Tool, "i"), find(t, tr, Tool, "j"); i.Start.Sub(noon) != 3*s || j.Start.Sub(noon) != 4*s {
		t.Errorf("i begins at %s, j at %s", i.Start.Sub(noon), j.Start.Sub(noon))
	}
}

func TestTheTimeOfAChildIsOnThePathAndOfOneInTheBackgroundOnlyWhileItIsWaitedFor(t *testing.T) {
	x := tell(t, 1, noon).begin().ask(s, "spawn", "spawn").start(0, "spawn", 2, false).start(1, "spawn", 3, true)
	fg := tell(t, 2, x.now.Add(s)).begin().ask(3*s).done().exit(0, "completed")
	bg := tell(t, 3, x.now).begin().ask(18*s).done().exit(0, "completed")
	x.pass(5*s).result(0, "spawn", 5*s, "").result(1, "spawn", s/10, "").done().
		begin().ask(2*s, "wait").start(0, "wait", 0, false).pass(12*s).result(0, "wait", 12*s, "").done().exit(0, "completed")
	tr := of(t, x.now, x.source(), with(fg, 1), with(bg, 1))
	want := "model m 1s, tool spawn 1s, model m 3s, tool spawn 1s, model m 2s, model m 11s, tool wait 1s"
	if got := path(tr); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func with(x *teller, parent byte) Source {
	src := x.source()
	src.Parent[15] = parent
	return src
}

func TestWhatHasNoEndIsOpenAndAGapBetweenRunsIsNoTime(t *testing.T) {
	x := tell(t, 1, noon).begin().ask(s, "shell").start(0, "shell", 0, false).pass(3*s).event(event.LogLine, "still here")
	x.pass(time.Hour).mark(step.Marker{Name: step.MarkerInterrupted, PID: 1}).mark(step.Marker{Name: step.MarkerResumed, PID: 7})
	tr := of(t, x.now, x.source())
	first := find(t, tr, Tool, "shell")
	if !first.Open || first.Dur != 3*s || first.Verdict != step.LedgerInDoubt {
		t.Errorf("the call that was cut off: %+v", first)
	}
	x.start(0, "shell", 0, false).pass(2*s).result(0, "shell", 2*s, "").done().exit(0, "completed")
	tr = of(t, x.now, x.source())
	if again := find(t, tr, Tool, "shell"); again.ID != first.ID || again.Verdict != step.LedgerAgain || !again.Open {
		t.Errorf("then: %+v", again)
	}
	root := tr.Root()
	if root.IdleNs != time.Hour || root.Dur-root.IdleNs != 6*s || root.Runs != 2 {
		t.Errorf("%+v", root)
	}
	if got, want := path(tr), "model m 1s, tool shell 3s, tool shell 2s"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
