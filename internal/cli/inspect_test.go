package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rnix/internal/step"
	"rnix/ipc"
	"rnix/runtime/statehome"
	"rnix/types"
)

// pastFake is a daemon that answers what concerns the past of a process.
type pastFake struct {
	*fake
	ledger  ipc.LedgerResponse
	diff    ipc.DiffResponse
	lineage ipc.LineageResponse
	restore func(ipc.RestoreRequest) (ipc.RestoreResponse, error)
}

func newPastFake(t *testing.T) *pastFake {
	t.Helper()
	f := &pastFake{fake: newFake(t)}
	places, err := statehome.Find(lookupIn(f.env), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(places.Socket), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := ipc.Listen(places.Socket)
	if err != nil {
		t.Fatal(err)
	}
	s := ipc.NewServer(ipc.ServerOptions{})
	value(s, ipc.Ledger, &f.ledger)
	value(s, ipc.DiffFiles, &f.diff)
	value(s, ipc.Lineage, &f.lineage)
	answer(s, ipc.RestoreFiles, func(_ context.Context, r ipc.RestoreRequest) (ipc.RestoreResponse, error) {
		f.note(fmt.Sprintf("restore dry=%v", r.DryRun))
		return f.restore(r)
	})
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }() // ends with Shutdown below
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return f
}

// noon is a time of another day, which is shown as a date.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.Local)

func someCalls() ipc.LedgerResponse {
	return ipc.LedgerResponse{PID: 3, UUID: id(3), OriginUUID: id(1), OriginStep: 1,
		Counts: map[types.LedgerVerdict]int{step.LedgerDone: 1, step.LedgerFailed: 1, step.LedgerInDoubt: 1, step.LedgerNotBegun: 1},
		Calls: []ipc.LedgerEntry{
			{Step: 1, Run: 1, CallID: "call_1", Attempt: 1, Tool: "read_file", Path: "/dev/fs", Effect: "none", Key: "0f0f", Began: noon, Took: 1500 * time.Microsecond, Verdict: step.LedgerDone, Result: "1\tpackage \x1b[31mx"},
			{Step: 1, Run: 1, CallID: "call_2", Attempt: 1, Tool: "edit_file", Path: "/dev/workspace", Effect: "reversible", Key: "1f1f", Began: noon, Took: time.Second, Verdict: step.LedgerFailed, Error: "a.go was changed", Code: types.ErrConflict},
			{Step: 2, Run: 2, CallID: "call_1", Attempt: 1, Tool: "shell", Path: "/dev/shell", Effect: "external", Key: "2f2f", Began: noon, Took: 241, Verdict: step.LedgerInDoubt},
			{Step: 2, Run: 2, CallID: "call_2", Tool: "send", Verdict: step.LedgerNotBegun},
		}}
}

func TestLedgerAtEachWidth(t *testing.T) {
	f := newPastFake(t)
	f.ledger = someCalls()
	var all strings.Builder
	for _, c := range []struct {
		env  []string
		args []string
	}{{nil, []string{"ledger", "3"}}, {[]string{"COLUMNS=100"}, []string{"ledger", "3"}}, {[]string{"COLUMNS=60"}, []string{"ledger", "3"}}, {nil, []string{"ledger", "3", "--wide"}}} {
		r := f.runIn(strings.NewReader(""), c.env, c.args...)
		if r.code != 0 || strings.Contains(r.out+r.err, "\x1b") {
			t.Errorf("%+v", r)
		}
		fmt.Fprintf(&all, "%v %v\n%s%s\n", c.env, c.args, r.out, r.err)
	}
	golden(t, "ledger", all.String())
}

func TestLedgerSaysWhereADamagedHistoryEnds(t *testing.T) {
	f := newPastFake(t)
	f.ledger = ipc.LedgerResponse{PID: 3, UUID: id(3), Calls: []ipc.LedgerEntry{}, Damage: "line 7 is broken"}
	if r := f.run("ledger", "3"); r.code != 0 || r.out != "" || !strings.Contains(r.err, "line 7 is broken") || !strings.Contains(r.err, "no calls") {
		t.Errorf("%+v", r)
	}
	if r := f.run("ledger", "3", "--json"); r.code != 0 || r.out != `{"damage":"line 7 is broken"}`+"\n" || r.err != "" {
		t.Errorf("%+v", r)
	}
}

func TestDiffIsColouredAndCleanForPeopleAndExactForPrograms(t *testing.T) {
	f := newPastFake(t)
	text := "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- no header\n+new \x1b]0;title\x07\r\n same\n"
	f.diff = ipc.DiffResponse{PID: 3, UUID: id(3), From: ipc.FilesAt{Step: 1, Limited: "x.bin is too large"}, To: ipc.FilesAt{Step: 2}, Files: []ipc.FileChange{{Path: "x", Status: "M", Added: 1, Deleted: 1}}, Missing: 5000}
	f.diff.SetText([]byte(text))
	r := f.run("diff", "3", "2")
	if r.code != 0 || r.out != text || !strings.Contains(r.err, "4.9K more") || !strings.Contains(r.err, "the end of step 1: not everything was kept: x.bin is too large") {
		t.Errorf("%+v", r)
	}
	r = f.runIn(strings.NewReader(""), []string{"CLICOLOR_FORCE=1"}, "diff", "3", "2")
	if want := "\x1b[1m--- a/x\x1b[0m\n\x1b[1m+++ b/x\x1b[0m\n\x1b[36m@@ -1,2 +1,2 @@\x1b[0m\n\x1b[31m--- no header\x1b[0m\n\x1b[32m+new \x1b[0m\n same\n"; !strings.HasSuffix(r.out, want) {
		t.Errorf("%q", r.out)
	}
	latin := "+caf\xe9\n"
	f.diff.SetText([]byte(latin))
	if r := f.run("diff", "3", "2"); r.out != latin {
		t.Errorf("%q", r.out)
	}
	for _, args := range [][]string{{"diff"}, {"diff", "3", "x"}, {"diff", "3", "-1"}, {"diff", "3", "1", "2", "4"}, {"diff", "3", "--max-bytes", "0"}} {
		if r := f.run(args...); r.code != ExitUsage {
			t.Errorf("%v: %+v", args, r)
		}
	}
}

func someRestore(r ipc.RestoreRequest) (ipc.RestoreResponse, error) {
	out := ipc.RestoreResponse{PID: 3, UUID: id(3), Dir: "/work", Changes: []ipc.FileChange{{Path: "a.go", Status: "M"}, {Path: "b.go", Status: "D"}, {Path: "c.go", Status: "A"}}}
	if !r.DryRun {
		out.Written, out.Removed, out.Kept, out.Rescue = 1, 1, []string{`"c.go": permission denied`}, "abcd"
		out.Undo = "rnix restore 3 --snapshot abcd"
	}
	return out, nil
}

func TestRestoreSaysWhatWasDoneAndTheWayBack(t *testing.T) {
	f := newPastFake(t)
	f.restore = someRestore
	r := f.run("restore", "3", "--step", "0", "--force")
	want := "wrote      a.go\nremoved    b.go\nleft       \"c.go\": permission denied\n"
	if r.code != 0 || r.out != want || !strings.Contains(r.err, "as before the first change: 1 written, 1 removed, 1 left alone\n  what was there before comes back with: rnix restore 3 --snapshot abcd\n") {
		t.Errorf("%+v", r)
	}
	if r := f.run("restore", "3", "--step", "0", "--force", "-q"); !strings.Contains(r.err, "--snapshot abcd") {
		t.Errorf("the way back is not said: %+v", r)
	}
	f.restore = func(r ipc.RestoreRequest) (ipc.RestoreResponse, error) {
		if r.To != filepath.Join(f.dir, "there") || r.Step == nil || *r.Step != 4 || len(r.Paths) != 1 {
			t.Errorf("%+v", r)
		}
		return ipc.RestoreResponse{Dir: r.To, Written: 2}, nil
	}
	if r := f.run("restore", "3", "--step", "4", "--to", "there", "src"); r.code != 0 || !strings.Contains(r.err, "2 written") {
		t.Errorf("%+v", r)
	}
}

func TestHistoryShowsFamilyAndRuns(t *testing.T) {
	f := newPastFake(t)
	f.lineage = ipc.LineageResponse{PID: 3, UUID: id(3),
		Family: []ipc.Relative{
			{UUID: id(1), State: "archived"}, {UUID: id(3), PID: 3, OriginUUID: id(1), OriginStep: 4, State: "suspended", Step: 9, Runs: 4, Intent: "build\nit", Name: "night"},
			{UUID: id(5), PID: 5, OriginUUID: id(3), OriginStep: 7, State: "running", Step: 8, Runs: 1, Intent: "build it"},
		},
		Runs: []ipc.Run{
			{Number: 1, PID: 2, How: "fork", Began: noon, FirstStep: 5, LastStep: 7, ActiveMs: 65000, End: "interrupted", Ended: noon.Add(time.Minute)},
			{Number: 2, PID: 3, How: "resume", Began: noon, Input: "go \x1b[1mon", Model: "other", Budget: 200000, Changed: []string{"model", "context_budget"}, End: "daemon_stop", Ended: noon},
			{Number: 3, PID: 4, How: "resume", Began: noon, FirstStep: 8, LastStep: 8, Changed: []string{"max_steps"}, End: "exit", Exit: &types.ExitStatus{Code: 1, Reason: "max steps exceeded"}, Ended: noon},
			{Number: 4, PID: 6, How: "resume", Began: noon, FirstStep: 9, LastStep: 9, End: "suspended", Reason: "budget", Hint: "rnix resume 6 --budget 100", Ended: noon},
		}}
	var all strings.Builder
	for _, env := range [][]string{nil, {"COLUMNS=90", "RNIX_ASCII=1"}} {
		r := f.runIn(strings.NewReader(""), env, "history", "3")
		if r.code != 0 || strings.Contains(r.out+r.err, "\x1b") {
			t.Errorf("%+v", r)
		}
		fmt.Fprintf(&all, "%v\n%s%s\n", env, r.out, r.err)
	}
	golden(t, "history", all.String())
	if r := f.run("history", "3", "--json"); strings.Count(r.out, "\n") != 1 || !strings.Contains(r.out, `"origin_step":4`) {
		t.Errorf("%+v", r)
	}
}
