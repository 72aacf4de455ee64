package cli

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"rnix/internal/event"
	"rnix/ipc"
)

// anEdit is a run whose only step before the result has made these calls.
func anEdit(text string) []ipc.Event {
	return []ipc.Event{
		{Kind: event.StepStarted, Step: 1, Total: 10},
		{Kind: event.LogLine, Name: "tool", Text: text},
		{Kind: event.StepEnded, Step: 1, Total: 10, Name: "tool_call", Text: text, Tokens: 5, Dur: time.Second},
		{Kind: event.StepStarted, Step: 2, Total: 10},
		{Kind: event.Exited, Exit: &done, Text: "The result."},
	}
}

func TestRunShowsBelowAStepWhatItsEditsHaveChanged(t *testing.T) {
	f := newFake(t).serve()
	edit := ipc.StepCall{Name: "edit_file", Path: "/dev/workspace", Input: `{"path":"a"}`, Result: "changed a: 1 line removed\n@@ -1,2 +1,2 @@\n-old\x1b[2J\n+new\n s\n"}
	f.detail = ipc.StepDetail{Step: ipc.StepRecord{ToolCalls: []ipc.StepCall{{Name: "read_file", Result: "@@ no"}, edit, {Name: "write_file", Input: `{"path":"b","content":"x"}`, Error: "it is there"}}}}
	steps := "[agent]   read_file a; edit_file a; write_file b (failed: invalid) | 5 tokens | 1s\n"
	for _, c := range []struct {
		args []string
		env  []string
		want string
	}{
		{nil, nil, steps + "  │ @@ -1,2 +1,2 @@\n  │ -old\n  │ +new\n  │  s\n[agent] step 2/10\n"},
		{nil, []string{"RNIX_ASCII=1", "COLUMNS=10"}, steps + "  | @@ -1~\n  | -old\n  | +new\n  |  s\n[agent] step 2/10\n"},
		{nil, []string{"CLICOLOR_FORCE=1"}, "\x1b[2m  │ \x1b[m\x1b[31m-old\x1b[m\n\x1b[2m  │ \x1b[m\x1b[32m+new\x1b[m\n"},
		{[]string{"-q"}, nil, ""},
	} {
		f.theRun(anEdit("read_file a; edit_file a; write_file b (failed: invalid)"), anEnd())
		r := f.runIn(strings.NewReader(""), c.env, append([]string{"run", "do it"}, c.args...)...)
		if !strings.Contains(r.err, c.want) || c.want == "" && r.err != "" || r.out != "The result.\n" {
			t.Errorf("%v %v: %q, want %q in\n%s", c.args, c.env, r.out, c.want, r.err)
		}
	}
	f.theRun(anEdit("edit_file a"), anEnd())
	if r := f.run("run", "--json", "do it"); r.err != "" || strings.Contains(r.out, "@@") {
		t.Errorf("%+v", r)
	}
	f.detail.Step.ToolCalls = []ipc.StepCall{{Name: "edit", Input: `{"filePath":"/w/b.txt","oldString":"x","newString":"y"}`}} // of an agent CLI
	f.theRun(anEdit("edit"), anEnd())
	if r := f.run("run", "do it"); !strings.Contains(r.err, "[agent]   edit | 5 tokens | 1s\n[agent]   edit /w/b.txt\n  │ -x\n  │ +y\n") {
		t.Errorf("of an agent CLI:\n%s", r.err)
	}
	f.theRun(anEdit("read_file a"), anEnd())
	if r := f.run("run", "do it"); strings.Contains(r.err, "@@") {
		t.Errorf("a step without an edit:\n%s", r.err)
	}
}

// A record that is not read in time costs the lines of the edits, and not those of the steps behind.
func TestASlowRecordDoesNotHideTheEndOfARun(t *testing.T) {
	f := newFake(t).serve()
	f.slow = true
	f.theRun(anEdit("edit_file a"), anEnd())
	if r := f.run("run", "do it"); !strings.Contains(r.err, "[agent]   edit_file a | 5 tokens | 1s\n[agent] step 2/10\n") {
		t.Errorf("%s", r.err)
	}
}

// It costs its patience once: as many steps may have ended as are children of a run that ends.
func TestASlowRecordIsNotAskedForEachStep(t *testing.T) {
	f := newFake(t).serve()
	f.slow = true
	run := anEdit("edit_file a")
	f.theRun(slices.Insert(run, 3, slices.Repeat(run[2:3], 20)...), anEnd())
	r := f.run("run", "do it")
	if got, asked := strings.Count(r.err, "edit_file a | 5 tokens"), strings.Count(f.calls(), "detail of step"); got != 21 || asked != 1 {
		t.Errorf("%d steps are shown, and %d were asked for:\n%s", got, asked, r.err)
	}
}

func TestOnlyTheBeginningOfManyChangesIsShown(t *testing.T) {
	f := newFake(t).serve()
	call := ipc.StepCall{Name: "write_file", Input: fmt.Sprintf(`{"path":"a","content":%q}`, strings.Repeat("line\n", shownChange+3)+strings.Repeat("x", 2*longestEdit))}
	f.detail.Step.ToolCalls = []ipc.StepCall{call, call, call, call, call, call}
	f.theRun(anEdit(strings.Repeat("x", cutSummary)), anEnd())
	r := f.run("run", "do it")
	if n := strings.Count(r.err, "  │ +line\n"); n != shownEdits*shownChange {
		t.Errorf("%d lines are shown", n)
	}
	for _, want := range []string{"[agent]   write_file a\n  │ +line\n", "  │ +line\n  │ (4 more lines; see: rnix diff 3 1)\n[agent]   write_file a\n", "  │ (2 more edits; see: rnix diff 3 1)\n[agent] step 2/10\n"} {
		if !strings.Contains(r.err, want) {
			t.Errorf("it lacks %q:\n%s", want, r.err)
		}
	}
	call.Input = fmt.Sprintf(`{"path":"a","content":%q}`, strings.Repeat("é", longestEdit))
	f.detail.Step.ToolCalls = []ipc.StepCall{call}
	f.theRun(anEdit("write_file a"), anEnd())
	if r := f.run("run", "do it"); !strings.Contains(r.err, "  │ +"+strings.Repeat("é", (longestEdit-1)/2)+"…\n") {
		t.Errorf("a long line:\n%s", r.err)
	}
}
