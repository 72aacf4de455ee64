package trace

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	"rnix/internal/compose"
	"rnix/internal/event"
	"rnix/internal/soak"
	"rnix/internal/step"
	"rnix/types"
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

func TestAClockThatIsSetBackMakesNoNegativeTime(t *testing.T) {
	x := tell(t, 1, noon).begin().ask(2*s, "spawn").start(0, "spawn", 2, false)
	x.off = -time.Hour
	child := tell(t, 2, x.now.Add(s).Add(x.off)).begin().ask(3*s).done().exit(0, "completed")
	x.pass(5*s).result(0, "spawn", 5*s, "").done()
	x.off = -3 * time.Hour
	x.pass(s).begin().ask(s).done().exit(0, "completed")
	tr := of(t, x.now, x.source(), with(child, 1))
	if got := tr.Root().Dur; got < 8*s || got > 10*s {
		t.Errorf("it takes %s", got)
	}
	if c := find(t, tr, Process, "p2"); c.Dur != 3*s || c.Start.Before(noon.Add(2*s)) {
		t.Errorf("%+v", c)
	}
}

func TestWaitsAreSpansInWhatWaits(t *testing.T) {
	x := tell(t, 1, noon).begin().pass(s).event(event.Waiting, "rate limit of m").pass(4*s).event(event.Waiting, "").pass(s)
	x.ask(0, "recv").start(0, "recv", 0, false).pass(3*s).result(0, "recv", 3*s, "").done().
		mark(step.Marker{Name: step.MarkerPause}).pass(7*s).mark(step.Marker{Name: step.MarkerResume}).exit(0, "completed")
	src := x.source()
	for i := range src.History.Records { // the request has taken all of it
		if a := src.History.Records[i].Answer; a != nil {
			a.ModelTime = 6 * s
		}
	}
	tr := of(t, x.now, src)
	if got, want := path(tr), "model m 1s, wait rate limit of m 4s, model m 1s, wait waits for a message 3s, wait paused 7s"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if w := find(t, tr, Wait, "rate limit of m"); w.Parent != find(t, tr, Model, "m").ID {
		t.Errorf("%+v is not within the request", w)
	}
}

func TestAForkHasOnlyWhatItDidItself(t *testing.T) {
	x := tell(t, 1, noon).begin().ask(s, "shell").start(0, "shell", 0, false).pass(s).result(0, "shell", s, "").done()
	y := &teller{t: t, id: types.UUID{15: 2}, now: noon.Add(time.Hour), step: 1, msgs: x.msgs}
	detail, _ := json.Marshal(step.ForkDetail{Origin: x.id, Step: 1, Records: uint64(len(x.records))})
	y.mark(step.Marker{Name: step.MarkerFork, Detail: detail})
	for _, r := range x.records {
		r.Seq++
		y.records = append(y.records, r)
	}
	y.mark(step.Marker{Name: step.MarkerResumed, PID: 2}).begin().ask(2*s).done().exit(0, "completed")
	tr := of(t, y.now, y.source())
	if got, want := path(tr), "model m 2s"; got != want || len(tr.Spans) != 3 || tr.Root().Start != noon.Add(time.Hour) || tr.Root().Runs != 1 {
		t.Errorf("%s\n%+v", got, tr.Spans)
	}
}

func TestOfAWorkflowTheNodesThatWereWaitedForAreOnThePath(t *testing.T) {
	x := tell(t, 1, noon)
	node := func(id byte, from, to time.Duration, after ...byte) Source {
		src := with(tell(t, id, noon.Add(from)).begin().ask(to-from).done().exit(0, "completed"), 1)
		for _, a := range after {
			src.After = append(src.After, types.UUID{15: a})
		}
		return src
	}
	x.pass(13*s).exit(0, "completed")
	// 3 ends just before 4 begins, but that has waited for 2 alone; 5 has waited for a place that 4 has made
	tr := of(t, x.now, x.source(), node(2, 0, 4*s), node(3, 0, 4*s+1e6), node(4, 4*s+2e6, 9*s, 2), node(5, 9*s+1e6, 12*s, 2))
	want := "model m 4s, process p1 2ms, model m 4.998s, process p1 1ms, model m 2.999s, process p1 1s"
	if got := path(tr); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	for name, want := range map[string]bool{"p2": true, "p3": false, "p4": true, "p5": true} {
		if got := find(t, tr, Process, name).Critical; got != want {
			t.Errorf("%s is on the path: %t", name, got)
		}
	}
}

func TestALivingProcessIsOpenUpToNow(t *testing.T) {
	x := tell(t, 1, noon).begin().ask(s, "shell").start(0, "shell", 0, false)
	src := x.source()
	src.Live = true
	tr := of(t, x.now.Add(5*s), src)
	if c := find(t, tr, Tool, "shell"); !c.Open || c.Dur != 5*s || c.Verdict != step.LedgerRunning {
		t.Errorf("%+v", c)
	}
	if got, want := path(tr), "model m 1s, tool shell 5s"; got != want {
		t.Errorf("%s", got)
	}
	x.result(0, "shell", 0, "").done().begin()
	src = x.source()
	src.Live = true
	tr = of(t, x.now.Add(9*s), src)
	if m := tr.Spans[len(tr.Spans)-1]; m.Kind != Model || !m.Open || m.Dur != 9*s || m.Step != 2 {
		t.Errorf("the request in hand: %+v", m)
	}
}

func TestOfCallsThatRunTheOneThatWaitsForItsChildIsOnThePath(t *testing.T) {
	for _, first := range []int{0, 1} {
		x := tell(t, 1, noon).begin().ask(s, "spawn", "spawn").start(first, "spawn", byte(2+first), first == 1).start(1-first, "spawn", byte(3-first), first == 0)
		var all []Source
		for _, src := range []Source{x.source(), with(tell(t, 2, x.now).begin(), 1), with(tell(t, 3, x.now).begin(), 1)} {
			src.Live = true
			all = append(all, src)
		}
		if got, want := path(of(t, x.now.Add(5*s), all...)), "model m 1s, model m 5s"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestBlameFollowsTheCauseDown(t *testing.T) {
	failing := func() *teller {
		return tell(t, 2, noon.Add(s)).begin().ask(s, "a", "shell").start(0, "a", 0, false).result(0, "a", 0, "").start(1, "shell", 0, false).
			result(1, "shell", 0, "no such command").done().exit(1, "max steps exceeded")
	}
	parent := func(exit int) *teller {
		return tell(t, 1, noon).begin().ask(s, "spawn").start(0, "spawn", 2, false).pass(4*s).result(0, "spawn", 4*s, "process 2 failed").done().
			exit(exit, "it gave up")
	}
	for name, c := range map[string]struct {
		sources []Source
		want    string
	}{
		"it went well":      {[]Source{parent(0).source(), with(failing(), 1)}, ""},
		"a child's call":    {[]Source{parent(1).source(), with(failing(), 1)}, "process p1 > step step 1: looks > tool spawn > process p2 > step step 1: looks > tool shell"},
		"the child is gone": {[]Source{parent(1).source()}, "process p1 > step step 1: looks > tool spawn"},
		"the model": {[]Source{tell(t, 1, noon).begin().ask(s, "shell").start(0, "shell", 0, false).result(0, "shell", 0, "no").done().
			begin().pass(s).fails("no quota").exit(1, "no quota").source()}, "process p1 > step step 2: looks > model m"},
		"a person": {[]Source{tell(t, 1, noon).begin().ask(s, "shell").start(0, "shell", 0, false).result(0, "shell", 0, "no").done().
			begin().ask(s).done().exit(4, "killed").source()}, "process p1"},
		"what the agent itself calls a failure": {[]Source{tell(t, 1, noon).begin().ask(s, "shell", "shell").start(0, "shell", 0, false).answers(0, "shell", "[exit code 0, 0.1 s]\n").
			start(1, "shell", 0, false).answers(1, "shell", "oh\n[exit code 2, 0.1 s]\n").done().begin().ask(s).gaveUp().done().exit(1, "the task failed").source()},
			"process p1 > step step 1: looks > tool shell"},
		"a failure that no call tells of": {[]Source{tell(t, 1, noon).begin().ask(s, "shell").start(0, "shell", 0, false).answers(0, "shell", "[exit code 0, 0.1 s]\n").done().
			begin().ask(s).gaveUp().done().exit(1, "the task failed").source()}, "process p1 > step step 2: looks"},
		"an exit code is an answer": {[]Source{tell(t, 1, noon).begin().ask(s, "shell").start(0, "shell", 0, false).answers(0, "shell", "[exit code 2, 0.1 s]\n").done().
			begin().ask(s).done().exit(1, "something else").source()}, "process p1"},
		"a node": {[]Source{tell(t, 1, noon).pass(9*s).exit(1, "1 node failed").source(), with(failing(), 1)}, "process p1 > process p2 > step step 1: looks > tool shell"},
	} {
		tr := of(t, noon.Add(time.Minute), c.sources...)
		if got := chain(tr); got != c.want {
			t.Errorf("%s: %s\nwant %s", name, got, c.want)
		}
	}
}

func TestBlameOfAWorkflowNamesTheNodeThatFailedAndWhatWasNotRun(t *testing.T) {
	status := func(name string, p compose.Phase, id byte, at time.Duration, because ...string) compose.Status {
		st := compose.Status{Key: compose.Key{Node: name, Index: -1}, Phase: p, At: noon.Add(at), Because: because, Why: "why of " + name, Code: types.ErrNotFound}
		st.UUID[15] = id
		return st
	}
	failing := tell(t, 2, noon).begin().pass(s).fails("no quota").exit(1, "no quota")
	fine := tell(t, 3, noon).begin().ask(s).done().exit(0, "completed")
	for name, c := range map[string]struct {
		nodes []compose.Status
		want  string
		lost  string
	}{
		"one that was never started": {[]compose.Status{status("late", compose.Failed, 2, 9*s), status("gone", compose.Failed, 9, s), status("x", compose.Skipped, 0, 0, "gone"),
			status("y", compose.Skipped, 0, 0, "x"), status("z", compose.Skipped, 0, 0, "late"), status("ok", compose.Succeeded, 3, 0)}, "process p1 > node gone", "x y"},
		"one without an attempt":          {[]compose.Status{status("list", compose.Failed, 0, s)}, "process p1 > node list", ""},
		"one whose process failed":        {[]compose.Status{status("bad", compose.Failed, 2, s), status("x", compose.Skipped, 0, 0, "bad")}, "process p1 > process p2 > step step 1: looks > model m", "x"},
		"one that answered the wrong way": {[]compose.Status{status("form", compose.Failed, 3, s)}, "process p1 > node form", ""},
	} {
		src := tell(t, 1, noon).pass(9*s).exit(1, "nodes failed").source()
		src.Nodes = c.nodes
		tr := of(t, noon.Add(time.Minute), src, with(failing, 1), with(fine, 1))
		var lost []string
		for _, b := range tr.Blame {
			lost = append(lost, b.Lost...)
			if b.Kind == Node && (!strings.HasPrefix(b.Err, "why of ") || b.Code != types.ErrNotFound || (b.Name == "form") != (b.UUID[15] == 3)) {
				t.Errorf("%s: %+v", name, b)
			}
		}
		if got := chain(tr); got != c.want || strings.Join(lost, " ") != c.lost {
			t.Errorf("%s: %s, not run %q\nwant %s, %q", name, got, lost, c.want, c.lost)
		}
	}
}

func TestACommandThatEndsWithAnExitCodeIsACallThatFailed(t *testing.T) {
	x := tell(t, 1, noon).begin().ask(s, "shell", "shell", "a").start(0, "shell", 0, false).answers(0, "shell", "[exit code 1, 0.1 s]\n").
		start(1, "shell", 0, false).answers(1, "shell", "[timed out after 2 s; killed]\n").start(2, "a", 0, false).answers(2, "a", "[exit code 1, 0.1 s]\n").
		done().begin().ask(s).done().exit(0, "completed")
	tr := of(t, x.now, x.source())
	var got []string
	for i := range tr.Spans {
		if s := &tr.Spans[i]; s.Kind == Tool {
			got = append(got, string(s.Status)+" "+string(s.Failure)+" "+s.Err+" "+errorType(s))
		} else if s.Status != OK {
			t.Errorf("%+v", s)
		}
	}
	if want := "error exit_code exit 1 exit_code, error timeout timed out after 2 s timeout, ok   _OTHER"; strings.Join(got, ", ") != want {
		t.Errorf("%s\nwant %s", strings.Join(got, ", "), want)
	}
	if c := find(t, tr, Tool, "shell"); c.ExitCode == nil || *c.ExitCode != 1 || len(tr.Blame) != 0 {
		t.Errorf("%+v, %+v", c, tr.Blame)
	}
}

func TestBlameOfASupervisorIsTheLastTryOfAChild(t *testing.T) {
	kid := func(id byte, name string, from, to time.Duration, code int) *node {
		return &node{Span: Span{UUID: types.UUID{15: id}, Kind: Process, Name: name, Start: noon.Add(from), Dur: to - from, Exit: &types.ExitStatus{Code: code}}}
	}
	n := &node{Span: Span{Kind: Process, Body: supervised}, kids: []*node{
		kid(2, "steady", 0, 9*s, 4), kid(3, "weak", 0, s, 1), kid(4, "weak", 2*s, 3*s, 1), kid(5, "weak", 4*s, 5*s, 1),
	}}
	if got := first(n); got != n.kids[3] {
		t.Errorf("%+v", got)
	}
	n.Body = "" // of other processes a name says nothing
	if got := first(n); got != n.kids[1] {
		t.Errorf("%+v", got)
	}
}

func TestOfAHistoryWithoutAnythingThereIsOneOpenSpan(t *testing.T) {
	h, err := step.Fold(types.UUID{15: 1}, func(func(step.Record, error) bool) {})
	if err != nil {
		t.Fatal(err)
	}
	tr := of(t, noon, Source{History: h})
	if len(tr.Spans) != 1 || !tr.Spans[0].Open || len(tr.Critical) != 0 {
		t.Errorf("%+v", tr)
	}
	if none := Of(nil, noon); none.Root() != nil {
		t.Errorf("%+v", none)
	}
}

// However few spans are shown: the path adds up, leads over spans that are there, and is not longer than they are many.
func TestAShortenedTraceHasItsWholePath(t *testing.T) {
	long := func() *Trace {
		x := tell(t, 1, noon)
		for range 20 {
			x.pass(s).begin().ask(2*s, "a", "b").start(0, "a", 0, false).start(1, "b", 0, false).pass(5*s).result(0, "a", 3*s, "").result(1, "b", 5*s, "").pass(s).done()
		}
		x.exit(0, "completed")
		return of(t, x.now, x.source())
	}
	whole := len(long().Spans)
	for limit := 1; limit <= whole; limit++ {
		tr := long()
		if cut := tr.Shorten(limit); cut != whole-len(tr.Spans) || len(tr.Spans) > limit || len(tr.Critical) > 2*len(tr.Spans) {
			t.Errorf("limit %d: %d spans, %d cut, a path of %d parts", limit, len(tr.Spans), cut, len(tr.Critical))
		}
		check(t, tr)
	}
}

// A history of which no event tells has as many steps as one of which they do, and takes no longer for each of them.
func TestWorkOfATraceGrowsWithItsStepsAlone(t *testing.T) {
	worked := func(steps int) time.Duration {
		x := tell(t, 1, noon)
		for range steps {
			x.begin()
			x.events = nil
			x.ask(s, "a").start(0, "a", 0, false).pass(s).result(0, "a", s, "").mark(step.Marker{Name: step.MarkerPause}).pass(s).mark(step.Marker{Name: step.MarkerResume}).done()
		}
		x.exit(0, "completed")
		src := x.source()
		var before, after syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before) // cannot fail
		tr := Of([]Source{src}, x.now)
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
		if len(tr.Spans) != 1+4*steps {
			t.Fatalf("%d spans of %d steps", len(tr.Spans), steps)
		}
		return time.Duration(after.Utime.Nano() - before.Utime.Nano())
	}
	n := soak.Pick(t, "steps of the shorter history", 500, 2000)
	few, many := max(worked(n), 5*time.Millisecond), worked(20*n)
	if many > 100*few { // 20 times as many steps; with the square, 400 times
		t.Errorf("%d steps took %s, and %d took %s", n, few, 20*n, many)
	}
}
