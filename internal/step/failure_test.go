package step

import (
	"encoding/json"
	"testing"

	"rnix/types"
)

func TestACallHasFailedIfWhatItRanHas(t *testing.T) {
	for _, c := range []struct {
		path, output, problem string
		code                  types.ErrCode
		kind                  FailureKind
		exit                  int // 0 = none
		text                  string
		answered              bool
	}{
		{path: "/dev/shell", output: "a\n[exit code 0, 0.1 s]\n"},
		{path: "/dev/shell", output: "[exit code 1, 0.1 s]\n", kind: FailedExit, exit: 1, text: "exit 1", answered: true},
		{path: "/dev/shell/text", output: "x\n\n[exit code 127, 12.1 s]", kind: FailedExit, exit: 127, text: "exit 127", answered: true},
		{path: "/dev/shell", output: "[exit code 137: killed by SIGKILL, 3.0 s]\n", kind: FailedSignal, exit: 137, text: "killed by SIGKILL", answered: true},
		{path: "/dev/shell", output: "half\n[timed out after 1.5 s; killed]\n", kind: FailedTimeout, text: "timed out after 1.5 s", answered: true},
		{path: "/dev/shell", output: "[exit code unknown: no such process, at all, 3.0 s]\n", kind: FailedCall, text: "exit code unknown: no such process, at all", answered: true},
		{path: "/dev/shell", output: "[exit code 1, 0.1 s]\n[exit code 0, 0.2 s]\n"}, // a command that has printed such a line
		{path: "/dev/shell", output: "[exit code ]"},
		{path: "/dev/shell", output: "exit code 1, 0.1 s]"},
		{path: "/dev/shell", output: "["},
		{path: "/dev/shell"},
		{path: "/dev/shellfish", output: "[exit code 1, 0.1 s]\n"},
		{path: "/dev/fs", output: "[exit code 1, 0.1 s]\n"}, // a file that has such a line
		{path: "/mnt/mcp/3-a/tools/run", output: "[exit code 1, 0.1 s]\n"},
		{path: "/mnt/mcp/3-a/tools/run", problem: "it broke", code: types.ErrDriver, kind: FailedTool, text: "it broke"},
		{path: "/dev/fs", problem: "it broke", code: types.ErrDriver, kind: FailedCall, text: "it broke"},
		{path: "/dev/shell", problem: "not allowed", code: types.ErrPermission, kind: FailedRefused, text: "not allowed"},
		{path: "/dev/shell", problem: "killed after 2 s", code: types.ErrCancelled, kind: FailedAborted, text: "killed after 2 s"},
		{path: "/dev/llm", problem: "too slow", code: types.ErrTimeout, kind: FailedTimeout, text: "too slow"},
		{path: "", problem: "of an early version", kind: FailedCall, text: "of an early version"},
	} {
		f := FailureOf(c.path, c.output, c.problem, c.code)
		exit := 0
		if f.Exit != nil {
			exit = *f.Exit
		}
		if f.Kind != c.kind || exit != c.exit || f.Text != c.text || f.Answered != c.answered {
			t.Errorf("%s %q %q: %+v (exit %d), answered %t", c.path, c.output, c.problem, f, exit, f.Answered)
		}
	}
}

func TestFailedCallsAreCountedOfTheRecords(t *testing.T) {
	calls := []Call{{Path: "/dev/shell", Result: "[exit code 1, 0.1 s]\n"}, {Path: "/dev/shell", Result: "[exit code 0, 0.1 s]\n"}, {Path: "/dev/fs", Error: "no", Code: types.ErrNotFound}}
	if n := FailedCalls(calls); n != 2 {
		t.Errorf("%d calls failed, want 2", n)
	}
	var l Life
	for i, s := range []*StepRecord{{StepNumber: 1, ToolCalls: calls, FailedCalls: 2}, {StepNumber: 2, ToolCalls: calls[1:2]}, {StepNumber: 3, ToolCalls: calls}} { // the last one is of an earlier version
		l.Apply(&Record{Seq: uint64(i + 1), Kind: KindStep, Step: s})
	}
	var p ProcInfo
	if l.Put(&p); l.Failed != 3 || p.FailedCalls != 3 {
		t.Errorf("the fold says %d, lists %d, want 3", l.Failed, p.FailedCalls)
	}
}

// What a fork has of its origin is not its own; what an earlier version has written of a process that has ended, it did not count.
func TestOwnFailedCallsAreToldFromThoseOfTheOriginAndFromUnknownOnes(t *testing.T) {
	origin := types.UUID{15: 7}
	var l Life
	begins := func(counted bool) *Marker {
		detail, err := json.Marshal(Settled{ProcInfo: ProcInfo{FailedCounted: counted}})
		if err != nil {
			t.Fatal(err)
		}
		return &Marker{Name: MarkerResumed, PID: 2, Detail: detail}
	}
	fork, err := json.Marshal(ForkDetail{Origin: origin, Step: 1, Records: 1})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range []Record{{Kind: KindMarker, Marker: &Marker{Name: MarkerFork, Detail: fork}}, {Kind: KindStep, Step: &StepRecord{StepNumber: 1, FailedCalls: 2, TokensUsed: 5, Provider: "p"}},
		{Kind: KindMarker, Marker: begins(true)}, {Kind: KindStep, Step: &StepRecord{StepNumber: 2, FailedCalls: 3}}, {Kind: KindMarker, Marker: begins(true)}, {Kind: KindStep, Step: &StepRecord{StepNumber: 3, FailedCalls: 1}}} {
		r.Seq = uint64(i + 1)
		l.Apply(&r)
	}
	var p ProcInfo
	l.Put(&p)
	if n, known := p.OwnFailed(); n != 4 || !known || p.FailedCalls != 6 || p.FailedTaken != 2 || len(l.Spending) != 0 {
		t.Errorf("%d, %v: %+v, spent %+v", n, known, p, l.Spending)
	}
	for _, c := range []struct {
		p     ProcInfo
		n     int
		known bool
	}{
		{ProcInfo{ProcStatus: types.ProcStatus{Step: 3}}, 0, false},
		{ProcInfo{ProcStatus: types.ProcStatus{Step: 3, FailedCalls: 2}}, 2, false}, // with an error; commands were not counted
		{ProcInfo{ProcStatus: types.ProcStatus{Step: 3, FailedCalls: 2}, OriginUUID: origin}, 0, false},
		{ProcInfo{}, 0, true},
		{ProcInfo{ProcStatus: types.ProcStatus{Kind: "supervisor", Step: 1}}, 0, true},
		{ProcInfo{ProcStatus: types.ProcStatus{Step: 3}, FailedCounted: true}, 0, true},
	} {
		tomb := NewTomb(&c.p, "test")
		if n, known := c.p.OwnFailed(); n != c.n || known != c.known || tomb.Failed != n || tomb.FailedCounted != known || tomb.Origin != c.p.OriginUUID {
			t.Errorf("%+v: %d, %v; %+v", c.p, n, known, tomb)
		}
	}
}

func FuzzFailureOf(f *testing.F) {
	f.Add("a\n[exit code 1, 0.1 s]\n")
	f.Add("[exit code 137: killed by SIGKILL, 3.0 s]")
	f.Add("[timed out after 1 s; killed]")
	f.Fuzz(func(t *testing.T, output string) {
		if got := FailureOf("/dev/shell", output, "", ""); (got.Kind == "") != (got.Text == "") {
			t.Errorf("%q: %+v", output, got)
		}
	})
}
