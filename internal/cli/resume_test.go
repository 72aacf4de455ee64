package cli

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"rnix/internal/event"
	"rnix/ipc"
	"rnix/types"
)

// goesOn is the answer to a resume of the process with UUID 3.
func goesOn() ipc.ResumeResponse {
	return ipc.ResumeResponse{Mode: "continue", From: "checkpoint", Step: 10, WorkDir: "/w",
		SpawnResponse: ipc.SpawnResponse{PID: 5, UUID: id(3), Provider: "deepseek", Model: "v4-flash", MaxSteps: 20, Seq: 100}}
}

func TestResumeSaysWhatGoesOnAndFromWhere(t *testing.T) {
	forked := goesOn()
	forked.Mode, forked.UUID, forked.OriginUUID, forked.Step, forked.PID, forked.WorkDir = "fork", types.UUID{2, 15: 9}, id(3), 5, 6, "/w/\x1b[2Jfork"
	history := goesOn()
	history.From, history.MaxSteps = "history", 0
	doubtful := goesOn()
	doubtful.Warnings, doubtful.Woken = []string{"the agent cannot be read"}, []types.PID{1, 7}
	for _, v := range []string{"again", "undo", "attach", "unknown", "skipped"} {
		doubtful.InDoubt = append(doubtful.InDoubt, ipc.InDoubt{CallID: "c-" + v, Tool: "shell", Effect: "external", Step: 10, Input: "{}", Verdict: v})
	}
	doubtful.InDoubt = append(doubtful.InDoubt, ipc.InDoubt{CallID: "c-read", Tool: "read_file", Effect: "none", Step: 10, Verdict: "again"})
	live := ipc.ResumeResponse{Mode: "live", SpawnResponse: ipc.SpawnResponse{PID: 3, UUID: id(3)}}
	f := newFake(t).serve()
	var all strings.Builder
	for _, r := range []ipc.ResumeResponse{goesOn(), history, forked, doubtful, live} {
		f.resume = func(ipc.ResumeRequest) (ipc.ResumeResponse, error) { return r, nil }
		for _, env := range [][]string{nil, {"RNIX_ASCII=1"}} {
			got := f.runIn(strings.NewReader(""), env, "resume", "3")
			if got.code != 0 || got.out != "" {
				t.Errorf("%+v", got)
			}
			if env != nil && strings.ContainsFunc(got.err, func(c rune) bool { return c > 0x7e }) {
				t.Errorf("not ASCII: %q", got.err)
			}
			all.WriteString(got.err)
		}
		if got := f.run("resume", "-q", "3"); got.out != "" || len(r.Warnings) == 0 && got.err != "" {
			t.Errorf("%+v", got)
		}
	}
	golden(t, "resume", all.String())
}

func TestFlagsOfResumeReachTheDaemon(t *testing.T) {
	f := newFake(t).serve()
	var got ipc.ResumeRequest
	f.resume = func(r ipc.ResumeRequest) (ipc.ResumeResponse, error) { got = r; return goesOn(), nil }
	five, zero, budget := 5, 0, 200000
	for _, c := range []struct {
		args string
		want ipc.ResumeRequest
	}{
		{"--fork --from-step 5 -n second -C sub abc1", ipc.ResumeRequest{Target: "abc1", Fork: true, FromStep: &five, Name: "second", Cwd: f.dir + "/sub", OnInDoubt: "tell"}},
		{"night --provider p -m m --fallback-provider fp --fallback-model fm --budget 200k --max-steps 0 --on-in-doubt retry --trust-project",
			ipc.ResumeRequest{Target: "night", Provider: "p", Model: "m", FallbackProvider: "fp", FallbackModel: "fm", Budget: &budget, MaxSteps: &zero, OnInDoubt: "retry", TrustProject: true}},
		{"3 --new-input -", ipc.ResumeRequest{Target: "3", NewInput: "go on,\nplease", OnInDoubt: "tell"}},
		{"3", ipc.ResumeRequest{Target: "3", OnInDoubt: "tell"}},
		{"3 --on-in-doubt ask", ipc.ResumeRequest{Target: "3", OnInDoubt: "fail"}},
	} {
		r := f.runIn(strings.NewReader("go on,\nplease\n"), nil, append([]string{"resume"}, strings.Fields(c.args)...)...)
		if len(got.Env) == 0 {
			t.Errorf("%s: the environment was not sent", c.args)
		}
		got.Env = nil
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(c.want)
		if r.code != 0 || string(a) != string(b) {
			t.Errorf("%s: %+v\ngot  %s\nwant %s", c.args, r, a, b)
		}
	}
}

func TestBadResumesChangeNothing(t *testing.T) {
	f := newFake(t).serve()
	for args, says := range map[string]string{
		"":                                      "resume needs a process",
		"3 --from-step 2":                       "add --fork",
		"3 --name x":                            "add --fork",
		"3 -C /x":                               "add --fork",
		"3 --fork --from-step -1":               "is negative",
		"3 --max-steps -1":                      "is negative",
		"3 --budget many":                       "want a number of tokens",
		"3 4 --follow":                          "--follow fits one process only, and 2 are named",
		"3 4 --fork --name x":                   "fits one process only",
		"3 4 --fork --from-step 2":              "what you say to a process goes with --new-input",
		"3 --subtree --budget 5":                "--subtree resumes a family as it is",
		"3 --on-in-doubt guess":                 "want one of tell, retry, skip, fail, ask",
		"3 --output-format stream-json":         "while it is followed",
		"3 --output-format xml":                 "want one of text, json, stream-json",
		"3 --new-input -":                       "the new input is empty",
		"3 --subtree --new-input x --fork":      "--subtree resumes a family as it is",
		"3 --fork --from-step 1 --name a --frb": "unknown flag",
	} {
		if r := f.run(append([]string{"resume"}, strings.Fields(args)...)...); r.code != ExitUsage || !strings.Contains(r.out+r.err, says) {
			t.Errorf("%s: %+v", args, r)
		}
	}
	if f.calls() != "" {
		t.Errorf("the daemon was called: %s", f.calls())
	}
}

// A text that stands where a process should is no reason to resume the others without it.
func TestATextInPlaceOfAProcessResumesNothing(t *testing.T) {
	f := newFake(t).serve()
	r := f.run("resume", "night", "go on, please")
	if r.code != ExitUsage || f.calls() != "" || !strings.Contains(r.err, `no process has the name "go on, please"`) || !strings.Contains(r.err, "--new-input") {
		t.Errorf("%+v, calls %s", r, f.calls())
	}
	f.proc = func(string) (ipc.ProcDetail, error) { return ipc.ProcDetail{}, nil }
	f.resume = func(ipc.ResumeRequest) (ipc.ResumeResponse, error) { return goesOn(), nil }
	if r := f.run("resume", "night", "day and night"); r.code != ExitOK || f.calls() != "resume night; resume day and night" {
		t.Errorf("%+v, calls %s", r, f.calls())
	}
}

func TestOneOfSeveralThatFailsStopsNoOther(t *testing.T) {
	f := newFake(t).serve()
	f.resume = func(r ipc.ResumeRequest) (ipc.ResumeResponse, error) {
		if r.Target == "gone" {
			return ipc.ResumeResponse{}, types.Errorf(types.ErrNotFound, "Find", r.Target, "no such process")
		}
		return goesOn(), nil
	}
	if r := f.run("resume", "gone", "3"); r.code != ExitNotFound || f.calls() != "resume gone; resume 3" || !strings.Contains(r.err, "rnix list-resumable") || !strings.Contains(r.err, "PID 5 spawned") {
		t.Errorf("%+v, calls %s", r, f.calls())
	}
	r := f.run("resume", "--json", "3", "gone", "3")
	var got ipc.ResumeResponse
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	if err := json.Unmarshal([]byte(lines[0]), &got); err != nil || len(lines) != 3 || r.err != "" || got.Mode != "continue" || got.PID != 5 || got.Step != 10 {
		t.Errorf("%v: %+v", err, r)
	}
	if !strings.HasPrefix(lines[1], `{"ok":false,"error":{"code":"NOT_FOUND"`) {
		t.Errorf("%s", lines[1])
	}
}

func TestResumeThatIsRefusedSaysWhatToDo(t *testing.T) {
	f := newFake(t).serve()
	used := ipc.ProcDetail{Proc: ipc.Proc{ProcStatus: types.ProcStatus{PID: 3, Step: 20, MaxSteps: 20, TokensUsed: 1234, ContextBudget: 1000}}}
	f.proc = func(string) (ipc.ProcDetail, error) { return used, nil }
	refuse := func(e *types.SyscallError) {
		f.resume = func(ipc.ResumeRequest) (ipc.ResumeResponse, error) { return ipc.ResumeResponse{}, e }
	}
	refuse(types.Errorf(types.ErrExhausted, "Resume", "3", "its budget is used up"))
	if r := f.run("resume", "3"); r.code != ExitBudget || !strings.Contains(r.err, "  rnix resume 3 --budget 1000\n") {
		t.Errorf("%+v", r)
	}
	if r := f.run("resume", "--fork", "--name", "five", "--from-step", "2", "--new-input", "it's on", "3"); !strings.Contains(r.err, `  rnix resume --fork --from-step 2 --name five --new-input 'it'\''s on' 3 --budget 1000`+"\n") {
		t.Errorf("%+v", r)
	}
	if r := f.run("resume", "--fork", "3"); !strings.Contains(r.err, "  rnix resume --fork 3 --budget 1000\n") {
		t.Errorf("%+v", r)
	}
	used.ContextBudget = 0
	if r := f.run("resume", "--json", "3"); r.code != ExitAgentFailed || !strings.Contains(r.out, `"code":"RESOURCE_EXHAUSTED"`) || !strings.Contains(r.out, `"mend":"rnix resume 3 --max-steps 20"`) {
		t.Errorf("%+v", r)
	}
	refuse(types.Errorf(types.ErrConflict, "Resume", "3", "it is running"))
	if r := f.run("resume", "3"); r.code != ExitError || !strings.Contains(r.err, "rnix pause 3") || !strings.Contains(r.err, "rnix resume --fork 3") {
		t.Errorf("%+v", r)
	}
}

// doubts makes the fake a process with three calls in doubt, of which a person can decide about two. It
// returns what returns the requests so far, and forgets them.
func (f *fake) doubts() (requests func() []ipc.ResumeRequest) {
	child := id(8)
	f.proc = func(string) (ipc.ProcDetail, error) {
		return ipc.ProcDetail{Proc: ipc.Proc{ProcStatus: types.ProcStatus{PID: 3}, State: suspended}, Interrupted: []ipc.CallIntent{
			{Step: 10, CallID: "c7", Tool: "shell", Effect: "external", Input: []byte(`{"command":"make release"}`)},
			{Step: 10, CallID: "c8", Tool: "read_file", Effect: "none"},
			{Step: 10, CallID: "c9", Tool: "spawn", Effect: "external", Child: &child},
			{Step: 10, CallID: "c10", Tool: "write_file", Effect: "reversible", Input: []byte(`{}`)},
		}}, nil
	}
	got := make(chan ipc.ResumeRequest, 10)
	f.resume = func(r ipc.ResumeRequest) (ipc.ResumeResponse, error) {
		got <- r
		if r.OnInDoubt == "fail" {
			return ipc.ResumeResponse{}, types.Errorf(types.ErrInDoubt, "Resume", "3", "nobody knows whether the call c7 has run")
		}
		return goesOn(), nil
	}
	return func() (all []ipc.ResumeRequest) {
		for len(got) > 0 {
			all = append(all, <-got)
		}
		return all
	}
}

func TestCallsInDoubtAreNamedWhereNobodyCanBeAsked(t *testing.T) {
	for _, policy := range []string{"fail", "ask"} {
		f := newFake(t).serve()
		requests := f.doubts()
		r := f.run("resume", "3", "--on-in-doubt", policy)
		if r.code != ExitBlocked || len(requests()) != 1 || !strings.Contains(r.err, `call c7 of shell in step 10: {"command":"make release"}`) ||
			!strings.Contains(r.err, "call c10 of write_file") || strings.Contains(r.err, "c8") || strings.Contains(r.err, "c9") || !strings.Contains(r.err, "rnix resume 3 --on-in-doubt tell (or retry, or skip") {
			t.Errorf("%s: %+v", policy, r)
		}
	}
}

func TestAPersonDecidesAboutEachCallInDoubt(t *testing.T) {
	f := newFake(t)
	requests := f.doubts()
	f.serve()
	answering := func(answers ...string) func(string) string {
		asked := 0
		return func(s string) string {
			if n := strings.Count(s, "[a]bort?\r\n"); n > asked && n <= len(answers) {
				asked = n
				return answers[n-1]
			}
			return ""
		}
	}
	// the first one is no answer, and is asked for again
	code, _, text := f.onTerminal(answering("perhaps\n", "r\n", "skip\n"), nil, "resume", "3", "--on-in-doubt", "ask")
	got := requests()
	if code != 0 || len(got) != 2 || got[1].OnInDoubt != "tell" || len(got[1].Choices) != 2 || got[1].Choices["c7"] != "retry" || got[1].Choices["c10"] != "skip" {
		t.Errorf("code %d, %+v, %q", code, got, text)
	}
	for _, answer := range []string{"a\n", "\x04"} { // the second one ends the input
		code, _, text = f.onTerminal(answering(answer), nil, "resume", "3", "--on-in-doubt", "ask")
		if got := requests(); code != ExitBlocked || len(got) != 1 || !strings.Contains(text, "stays as it is") {
			t.Errorf("%q: code %d, %+v, %q", answer, code, got, text)
		}
	}
}

func TestFollowedResumeEndsAsARunDoes(t *testing.T) {
	f := newFake(t).serve()
	f.theRun(aRun()[1:], anEnd())
	f.resume = func(ipc.ResumeRequest) (ipc.ResumeResponse, error) {
		r := goesOn()
		r.PID = 3
		return r, nil
	}
	r := f.run("resume", "--follow", "3")
	if r.code != 0 || r.out != "The result.\n" || !strings.HasPrefix(r.err, "[kernel] resuming UUID 0191f3a2-0000") || !strings.Contains(r.err, "PID 3 exited(0)") {
		t.Errorf("%+v", r)
	}
	f.theRun(aRun()[1:], anEnd())
	r = f.run("resume", "--follow", "--json", "3")
	var got runAnswer
	if err := json.Unmarshal([]byte(r.out), &got); err != nil || !got.OK || got.Data.PID != 3 || r.err != "" {
		t.Errorf("%v: %+v", err, r)
	}
	for subtype, end := range map[string]ipc.WaitResponse{
		"success": {Exit: done, Result: `{"n":2}`}, "error_max_structured_output_retries": {Exit: types.ExitStatus{Code: types.ExitError, Reason: "the result does not fit its schema: n"}, Result: `{"m":2}`}} {
		f.theRun(aRun()[1:], end)
		f.resume = func(ipc.ResumeRequest) (ipc.ResumeResponse, error) {
			r := goesOn()
			r.PID, r.Schema = 3, true
			return r, nil
		}
		r = f.run("resume", "-f", "--output-format", "stream-json", "3")
		if l := lastLine(r.out); !strings.Contains(l, `"subtype":"`+subtype+`"`) || strings.Contains(l, `"structured_output":{"n":2}`) != (subtype == "success") {
			t.Errorf("with a schema: %s", l)
		}
	}
	f.theRun(aRun()[1:], anEnd())
	r = f.run("resume", "-f", "--output-format", "stream-json", "3")
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	if r.code != 0 || !strings.HasPrefix(lines[0], `{"type":"system","subtype":"init","uuid":"`) || !strings.Contains(lines[0], `"pid":3,`) || !strings.HasPrefix(lines[len(lines)-1], `{"type":"result","subtype":"success"`) {
		t.Errorf("%+v", r)
	}
}

func TestProcessWithoutBudgetIsSuspendedAndSaysHowItGoesOn(t *testing.T) {
	exit := types.ExitStatus{Code: types.ExitBudget, Reason: types.ReasonBudget}
	f := newFake(t).serve()
	f.procs = []ipc.Proc{{ProcStatus: types.ProcStatus{PID: 3, UUID: id(3), Exit: &exit, TokensUsed: 1234, ContextBudget: 1000}, State: suspended, Wait: "budget: 1,234 of 1,000 tokens are used"}}
	child := types.ExitStatus{Code: types.ExitBudget, Reason: types.ReasonBudget}
	events := []ipc.Event{{Kind: event.Exited, PID: 4, UUID: id(4), Exit: &child, Result: suspended, Tokens: 9, Dur: time.Second}, {Kind: event.Exited, Exit: &exit, Result: suspended}}
	end := ipc.WaitResponse{Exit: exit, Suspended: true, Result: "half", Steps: 2, TokensUsed: 1234, ElapsedMs: 2100}
	command := "rnix resume " + id(3).String() + " --budget 1000"
	f.theRun(events, end)
	r := f.run("run", "do it")
	if r.code != ExitBudget || r.out != "half\n" || !strings.Contains(r.err, "[kernel] PID 3 suspended: budget: 1,234 of 1,000 tokens are used | 2 steps | 1,234 tokens | 2.1s\n  resume it with: "+command) ||
		!strings.Contains(r.err, "[kernel] PID 4 suspended: budget_exceeded | 9 tokens | 1s\n") {
		t.Errorf("%+v", r)
	}
	f.theRun(events, end)
	if r := f.run("run", "-q", "do it"); r.code != ExitBudget || !strings.HasPrefix(r.err, "rnix: PID 3 suspended: budget") {
		t.Errorf("%+v", r)
	}
	f.theRun(events, end)
	r = f.run("run", "--json", "do it")
	var got runAnswer
	if err := json.Unmarshal([]byte(r.out), &got); err != nil || r.code != ExitBudget || got.OK || !got.Data.Suspended || got.Mend != command || got.Error.Code != types.ErrExhausted {
		t.Errorf("%v: %+v", err, r)
	}
	f.wait = func(context.Context, ipc.WaitRequest) (ipc.WaitResponse, error) {
		return ipc.WaitResponse{PID: 3, UUID: id(3), Suspended: true, Exit: exit}, nil
	}
	if r := f.run("wait", "3"); r.code != ExitBudget || !strings.Contains(r.err, command) {
		t.Errorf("%+v", r)
	}
	f.wait = func(context.Context, ipc.WaitRequest) (ipc.WaitResponse, error) {
		return ipc.WaitResponse{PID: 3, UUID: id(3), Suspended: true}, nil
	}
	f.proc = func(string) (ipc.ProcDetail, error) {
		return ipc.ProcDetail{Proc: ipc.Proc{ProcStatus: types.ProcStatus{PID: 3}, State: suspended, Wait: "paused"}}, nil
	}
	if r := f.run("wait", "3"); r.code != ExitSuspended || !strings.Contains(r.err, "it has done: paused\n  resume it with: rnix resume "+id(3).String()) {
		t.Errorf("%+v", r)
	}
}

func TestWhatCanBeResumedIsListedWithItsReason(t *testing.T) {
	now := time.Date(2026, 1, 2, 15, 0, 0, 0, time.Local)
	f := newFake(t)
	f.procs = []ipc.Proc{
		{ProcStatus: types.ProcStatus{PID: 9, UUID: id(9), Name: "night", Exit: &types.ExitStatus{Code: types.ExitBudget, Reason: types.ReasonBudget}, Step: 3, MaxSteps: 20, TokensUsed: 1234, UpdatedAt: now.Add(-time.Hour), Intent: "build\nit"}, State: suspended, Wait: "budget: 1,234 of 1,000 tokens are used"},
		{ProcStatus: types.ProcStatus{PID: 2, UUID: types.UUID{1, 0x91, 0xf3, 0xa2, 1, 15: 2}, Exit: &types.ExitStatus{Code: 1, Reason: "max steps exceeded"}, Step: 20, MaxSteps: 20, UpdatedAt: now.Add(-48 * time.Hour), Intent: "第二"}, State: "dead"},
		{ProcStatus: types.ProcStatus{PID: 1, UUID: id(1), Intent: "first"}, State: suspended, Wait: "paused for 3s"},
	}
	f.hidden = 4
	client := f.serve().client()
	var out, err strings.Builder
	o := &output{out: stream{w: &out}, err: stream{w: &err}}
	if e := listResumable(t.Context(), client, o, 3, now); e != nil {
		t.Fatal(e)
	}
	golden(t, "list_resumable", out.String()+err.String())
	if f.calls() != "list_resumable 3" {
		t.Error(f.calls())
	}
	if r := f.run("list-resumable", "--json"); r.code != 0 || strings.Count(r.out, "\n") != 3 || !strings.Contains(r.out, `"updated_at":`) {
		t.Errorf("%+v", r)
	}
	if r := f.run("list-resumable", "-n", "-1"); r.code != ExitUsage {
		t.Errorf("%+v", r)
	}
	if code, _, text := f.onTerminal(silent, nil, "list-resumable"); code != 0 || !strings.Contains(text, "rnix resume --fork PROCESS") {
		t.Errorf("code %d, %q", code, text)
	}
	const words = "9\tsuspended: build it\nnight\tsuspended: build it\n2\tdead: "
	r := f.run("__complete", "resume", "")
	for n := 0; n < 50 && !strings.Contains(r.out, words); n++ { // it does not wait for a busy machine
		r = f.run("__complete", "resume", "")
	}
	if r.code != 0 || !strings.Contains(r.out, words) {
		t.Errorf("%+v", r)
	}
}

func TestShortUUIDsAreUnique(t *testing.T) {
	ids := []types.UUID{id(1), id(2), {2}, {1, 0x91, 0xf3, 0xa2, 0, 0, 0x71}}
	short := shortIDs(append(ids, ids...)...)
	var got []string
	for _, u := range ids {
		s := short(u)
		if len(s) < shortest || !strings.HasPrefix(u.String(), s) {
			t.Errorf("%s of %s", s, u)
		}
		for _, other := range ids {
			if other != u && strings.HasPrefix(other.String(), s) {
				t.Errorf("%s is the beginning of %s too", s, other)
			}
		}
		got = append(got, s)
	}
	if len(slices.Compact(got)) != len(ids) || got[2] != "02000000-0000" {
		t.Error(got)
	}
}

func TestWhoWaitsForASuspendedChildGoesOnWithIt(t *testing.T) {
	blocked, budget := &types.ExitStatus{Code: types.ExitBudget, Reason: "waits for child PID 4"}, &types.ExitStatus{Code: types.ExitBudget, Reason: types.ReasonBudget}
	procs := []ipc.Proc{
		{ProcStatus: types.ProcStatus{PID: 3, UUID: id(3), Exit: blocked}, State: suspended, Wait: "child PID 4"},
		{ProcStatus: types.ProcStatus{PID: 4, UUID: id(4), ParentUUID: id(3), Exit: blocked}, State: suspended, Wait: "child PID 5"},
		{ProcStatus: types.ProcStatus{PID: 5, UUID: id(5), ParentUUID: id(4), Exit: budget, TokensUsed: 1234, ContextBudget: 1000}, State: suspended, Wait: "budget: 1,234 of 1,000 tokens are used"},
		{ProcStatus: types.ProcStatus{PID: 6, UUID: id(6), ParentUUID: id(4)}, State: "running"},
		{ProcStatus: types.ProcStatus{PID: 7, UUID: id(7), ParentUUID: id(8)}, State: suspended, Wait: "child x"}, {ProcStatus: types.ProcStatus{PID: 8, UUID: id(8), ParentUUID: id(7)}, State: suspended, Wait: "child y"},
	}
	for _, c := range []struct {
		of           byte
		reason, mend string
	}{
		{3, "child PID 4", "rnix resume " + id(5).String() + " --budget 1000"}, {5, "budget: 1,234 of 1,000 tokens are used", "rnix resume " + id(5).String() + " --budget 1000"},
		{9, "given", "rnix resume " + id(9).String()}, {7, "child x", "rnix resume " + id(7).String()}, // a circle
	} {
		if reason, mend := whatParks(procs, id(c.of), "given"); reason != c.reason || mend != c.mend {
			t.Errorf("%d: %q, %q", c.of, reason, mend)
		}
	}
}

func TestInterruptedResumeIsStoppedAndSaysHowItGoesOn(t *testing.T) {
	f := newFake(t)
	f.endless(true)
	f.resume = func(ipc.ResumeRequest) (ipc.ResumeResponse, error) {
		r := goesOn()
		r.PID = 3
		return r, nil
	}
	c := f.serve().start("resume", "--follow", "night")
	c.until("step 1")
	c.signal(os.Interrupt)
	if code := c.end(); code != ExitInterrupted || f.calls() != "resume night; signal_tree "+id(3).String()+" SIGINT" {
		t.Errorf("code %d, calls %s, said %q", code, f.calls(), c.said)
	}
	if all := strings.Join(c.said, ""); !strings.Contains(all, "PID 3 exited(4): interrupted") || !strings.Contains(all, "resume it where it stopped with: rnix resume 3\n") {
		t.Errorf("said %s", all)
	}
}
