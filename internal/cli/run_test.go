package cli

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"rnix/internal/event"
	"rnix/ipc"
	"rnix/types"
)

var done = types.ExitStatus{Reason: types.ReasonCompleted}

// aRun has something of everything that is shown.
func aRun() []ipc.Event {
	return []ipc.Event{
		{Kind: event.Spawned, Intent: "do it", Provider: "deepseek", Model: "v4-flash"},
		{Kind: event.StepStarted, Step: 1, Total: 10},
		{Kind: event.Waiting, Text: "the rate limit of deepseek", Until: time.Date(2020, 1, 2, 3, 4, 5, 0, time.Local)},
		{Kind: event.LogLine, Name: "output", Text: "I will spawn a child.", Answer: 1, Total: 22},
		{Kind: event.LogLine, Name: "warning", Text: "careful\x1b[2J"},
		{Kind: event.StepEnded, Step: 1, Total: 10, Name: "tool_call", Text: "spawn look at\nthe tests; read_file \x1b]0;evil\x07go.mod", Tokens: 1234, Dur: 1500 * time.Millisecond},
		{Kind: event.Spawned, PID: 4, UUID: id(4), PPID: 3, Intent: "look at the tests", Provider: "deepseek", Model: "v4-flash"},
		{Kind: event.StepStarted, PID: 4, UUID: id(4), Step: 1},
		{Kind: event.StepEnded, PID: 4, UUID: id(4), Step: 1, Name: "text", Text: "no answer", Err: "the provider is gone", Dur: time.Second},
		{Kind: event.Exited, PID: 4, UUID: id(4), Exit: &types.ExitStatus{Code: 1, Reason: "the provider is gone"}, Tokens: 0, Dur: 2 * time.Second},
		{Kind: event.Paused, Text: "by hand"},
		{Kind: event.Resumed, Dur: 4 * time.Second},
		{Kind: event.StepStarted, Step: 2, Total: 10},
		{Kind: event.StepEnded, Step: 2, Total: 10, Name: "text", Text: "The result.", Tokens: 99, Dur: 600 * time.Millisecond},
		{Kind: event.Exited, Exit: &done, Text: "The result.", Tokens: 1333, Dur: 2100 * time.Millisecond},
	}
}

func anEnd() ipc.WaitResponse {
	return ipc.WaitResponse{Exit: done, Result: "The result.\x1b[31m\n\n", TokensUsed: 1234, Estimated: true, ElapsedMs: 2100, Steps: 3}
}

func TestRunShowsEachStepAndTheResultOnce(t *testing.T) {
	f := newFake(t).serve()
	f.theRun(aRun(), anEnd())
	r := f.run("do it now")
	if r.code != 0 || r.out != "The result.\n" {
		t.Errorf("code %d, standard output %q", r.code, r.out)
	}
	golden(t, "run", r.err)
}

func TestQuietRunSaysOnlyTheResult(t *testing.T) {
	f := newFake(t).serve()
	f.theRun(aRun(), anEnd())
	if r := f.run("run", "-q", "do it"); r.out != "The result.\n" || r.err != "" || r.code != 0 {
		t.Errorf("%+v", r)
	}
}

func TestJSONRunIsOneFinalObject(t *testing.T) {
	f := newFake(t).serve()
	f.theRun(aRun(), anEnd())
	r := f.run("run", "--json", "do it")
	if r.err != "" || r.code != 0 {
		t.Errorf("%+v", r)
	}
	golden(t, "run_json", r.out)
}

func TestFailedRunIsNotOKInJSONAndInItsExitCode(t *testing.T) {
	cause := types.Errorf(types.ErrAuth, "Write", "/dev/llm/deepseek", "the key was refused")
	gone := types.Errorf(types.ErrNotFound, "Write", "/dev/llm/deepseek", "no model of this name")
	for _, c := range []struct {
		exit       types.ExitStatus
		code       int
		errCode    types.ErrCode
		streamType string
		end        string
	}{
		{types.ExitStatus{Code: types.ExitError, Reason: types.ReasonMaxSteps}, ExitAgentFailed, types.ErrExhausted, "error_max_turns", "error_max_steps"},
		{types.ExitStatus{Code: types.ExitError, Reason: types.ReasonMaxSteps + "; failed child processes: 2"}, ExitAgentFailed, types.ErrExhausted, "error_max_turns", "error_max_steps"},
		{types.ExitStatus{Code: types.ExitError, Reason: cause.Error(), Err: cause}, ExitNoModel, types.ErrAuth, "error_during_execution", "error"},
		{types.ExitStatus{Code: types.ExitError, Reason: gone.Error(), Err: gone}, ExitNoModel, types.ErrNotFound, "error_during_execution", "error"},
		{types.ExitStatus{Code: types.ExitBudget, Reason: types.ReasonBudget}, ExitBudget, types.ErrExhausted, "error_max_budget_usd", "error_budget"},
		{types.ExitStatus{Code: types.ExitBudget, Reason: "the model asks to slow down"}, ExitBudget, types.ErrExhausted, "error_during_execution", "error_budget"},
		{types.ExitStatus{Code: types.ExitCancelled, Reason: "terminated"}, ExitCancelled, types.ErrCancelled, "error_during_execution", "cancelled"},
		{types.ExitStatus{Code: types.ExitError, Reason: "timeout after 1s", Err: types.Errorf(types.ErrTimeout, "Process", "", "late")}, ExitTimeout, types.ErrTimeout, "error_during_execution", "error_timeout"},
	} {
		f := newFake(t).serve()
		f.theRun([]ipc.Event{{Kind: event.Exited, Exit: &c.exit}}, ipc.WaitResponse{Exit: c.exit, Result: "half"})
		r := f.run("run", "--output-format", "json", "do it")
		var got runAnswer
		if err := json.Unmarshal([]byte(r.out), &got); err != nil {
			t.Fatalf("%q: %v", r.out, err)
		}
		if r.code != c.code || got.OK || got.Error.Code != c.errCode || got.Data.ExitCode != c.exit.Code || got.Data.Result != "half" {
			t.Errorf("%v: code %d, %s", c.exit, r.code, r.out)
		}
		if strings.Count(got.Error.Message, "Write") > 1 {
			t.Errorf("the message says it twice: %s", got.Error.Message)
		}
		f.theRun([]ipc.Event{{Kind: event.Exited, Exit: &c.exit}}, ipc.WaitResponse{Exit: c.exit})
		r = f.run("run", "--output-format", "stream-json", "do it")
		last := lastLine(r.out)
		if r.code != c.code || !strings.HasPrefix(last, `{"type":"result","subtype":"`+c.streamType+`","uuid":"`) || !strings.Contains(last, `"is_error":true`) || !strings.Contains(last, `"end":"`+c.end+`"`) {
			t.Errorf("code %d, last line %s", r.code, last)
		}
	}
}

func TestARefusalForWantOfATerminalSaysHowToBeAsked(t *testing.T) {
	refused := types.Denials{}.Add(types.Denial{Tool: "shell", Text: "shell ls", Why: "the rule", Unasked: true})
	r := ipc.WaitResponse{PID: 5, Denials: refused}
	if got := exitMend(&r); got != "refused: shell ls (the rule); to be asked about such calls, run it with -d or --asks wait" {
		t.Errorf("an agent that has completed: %s", got)
	}
	r.Exit.Code = types.ExitRefused
	if got := exitMend(&r); !strings.Contains(got, "have it wait for your answer with: rnix resume 5 --asks wait (") {
		t.Error(got)
	}
}

func lastLine(s string) string {
	s = strings.TrimRight(s, "\n")
	return s[strings.LastIndexByte(s, '\n')+1:]
}

func TestStreamJSONBeginsWithInitAndEndsWithOneResult(t *testing.T) {
	f := newFake(t).serve()
	f.theRun(aRun(), anEnd())
	r := f.run("run", "--output-format=stream-json", "do it")
	if r.err != "" || r.code != 0 {
		t.Errorf("code %d: %s", r.code, r.err)
	}
	var kinds []string
	for line := range strings.SplitSeq(strings.TrimSpace(r.out), "\n") {
		var l struct{ Subtype string }
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		kinds = append(kinds, l.Subtype)
	}
	if kinds[0] != "init" || kinds[len(kinds)-1] != "success" || strings.Count(strings.Join(kinds, " "), "rnix_event") != len(aRun()) || len(kinds) != len(aRun())+2 {
		t.Errorf("lines %v", kinds)
	}
}

func TestRefusedSpawnIsAnErrorInEachFormat(t *testing.T) {
	f := newFake(t).serve()
	f.spawn = func(context.Context, ipc.SpawnRequest) (ipc.SpawnResponse, error) {
		return ipc.SpawnResponse{}, types.Errorf(types.ErrUnavailable, "Provider", "anthropic", "no key")
	}
	r := f.run("do it now")
	if r.code != ExitNoModel || r.out != "" || r.err != "rnix: anthropic: no key\n" {
		t.Errorf("%+v", r)
	}
	r = f.run("run", "--json", "do it")
	if r.code != ExitNoModel || r.out != `{"ok":false,"error":{"code":"SERVICE_UNAVAILABLE","message":"Provider anthropic: no key","syscall":"Provider","device":"anthropic"}}`+"\n" || r.err != "" {
		t.Errorf("%+v", r)
	}
	r = f.run("run", "--output-format=stream-json", "do it")
	if r.code != ExitNoModel || !strings.HasPrefix(r.out, `{"type":"result","subtype":"error_during_execution","uuid":"`) || !strings.Contains(r.out, `"session_id":"","is_error":true,"duration_ms":0,`) {
		t.Errorf("%+v", r)
	}
}

func TestDetachPrintsThePIDAndLeaves(t *testing.T) {
	f := newFake(t).serve()
	f.theRun(nil, anEnd())
	r := f.run("run", "--detach", "do it")
	if r.code != 0 || r.out != "3\n" || !strings.Contains(r.err, "rnix log -f 3") {
		t.Errorf("%+v", r)
	}
	r = f.run("run", "-d", "--json", "do it")
	if r.code != 0 || !strings.HasPrefix(r.out, `{"ok":true,"data":{"pid":3,"uuid":"`) {
		t.Errorf("%+v", r)
	}
}

func TestFlagsOfRunReachTheDaemon(t *testing.T) {
	f := newFake(t).serve()
	f.theRun(nil, anEnd())
	inner := f.spawn
	var got ipc.SpawnRequest
	f.spawn = func(ctx context.Context, r ipc.SpawnRequest) (ipc.SpawnResponse, error) {
		got = r
		return inner(ctx, r)
	}
	f.runIn(strings.NewReader("from standard input\n"), []string{"RNIX_PARENT_PID=7"}, "run", "--agent", "coder", "--provider", "p", "-m", "m", "--fallback-provider", "fp",
		"--fallback-model", "fm", "--effort", "high", "--max-steps", "0", "--budget", "1.5M", "--timeout", "90s", "-C", "sub", "-n", "night",
		"--allow", "/dev/fs,/dev/llm", "--deny", "/dev/shell", "--mcp", "x", "--system-prompt", "sp", "--trust-project", "--label", "env=prod", "--label", "q=a=b,c", "-d")
	zero, budget := 0, 1500000
	want := ipc.SpawnRequest{Intent: "from standard input\n", Agent: "coder", ProcSpec: types.ProcSpec{Provider: "p", Model: "m", FallbackProvider: "fp", FallbackModel: "fm", Effort: "high", MaxSteps: &zero, ContextBudget: &budget, Name: "night", AllowedDevices: []string{"/dev/fs", "/dev/llm"}, DeniedDevices: []string{"/dev/shell"}, SystemPrompt: "sp", Labels: types.Labels{"env": "prod", "q": "a=b,c"}}, TimeoutMs: 90000, Cwd: f.dir + "/sub", MCP: []string{"x"}, Parent: "7", TrustProject: true}
	if len(got.Env) == 0 {
		t.Error("the environment was not sent")
	}
	got.Env = nil
	a, _ := json.Marshal(got)
	b, _ := json.Marshal(want)
	if string(a) != string(b) {
		t.Errorf("got  %s\nwant %s", a, b)
	}
	got = ipc.SpawnRequest{}
	f.run("run", "-d", "x y")
	if got.MaxSteps != nil || got.ContextBudget != nil || got.Parent != "" || got.Cwd != f.dir {
		t.Errorf("what was not said is %+v", got)
	}
}

func TestBadIntentsStartNothing(t *testing.T) {
	f := newFake(t).serve()
	for _, c := range []struct {
		args []string
		in   string
		says string
	}{
		{[]string{"run", ""}, "", "the intent is empty"},
		{[]string{"run", "-"}, "  \n", "the intent is empty"},
		{[]string{"run"}, "", "the intent is empty"},
		{[]string{"run", strings.Repeat("x", maxIntent+1)}, "", "1,048,577 bytes and 1,048,576 are allowed"},
		{[]string{"run", "-"}, strings.Repeat("x", maxIntent+2), "put the text into a file"},
		{[]string{"run", "-i", "a", "b"}, "", "given twice"},
		{[]string{"run", "a\x00b"}, "", "not text in UTF-8"},
		{[]string{"pss"}, "", "did you mean: rnix ps"},
		{[]string{"frobnicate"}, "", `rnix run "frobnicate"`},
		{[]string{"fix", "the", "bug"}, "", "put it in quotes"},
		{[]string{"run", "--max-steps", "-1", "x"}, "", "--max-steps -1 is negative"},
		{[]string{"run", "--budget", "many", "x"}, "", "want a number of tokens"},
		{[]string{"run", "--timeout", "0s", "x"}, "", "give a time"},
		{[]string{"run", "--output-format", "xml", "x"}, "", "want one of text, json, stream-json"},
		{[]string{"--provider", "offline"}, "", "there is no intent"},
		{[]string{"run", "--frob", "x"}, "", "unknown flag: --frob"},
	} {
		r := f.runIn(strings.NewReader(c.in), nil, c.args...)
		if r.code != ExitUsage || !strings.Contains(r.err, c.says) || r.out != "" {
			t.Errorf("%.40q: code %d, %q", c.args, r.code, r.err)
		}
	}
	if f.calls() != "" {
		t.Errorf("the daemon was called: %s", f.calls())
	}
}

func TestIntentsAreToldFromMistypedCommands(t *testing.T) {
	similar := func(string) []string { return nil }
	for _, args := range [][]string{{"Report on this project"}, {"写一份报告"}, {"-"}, {"überprüfen"}} {
		if err := bareIntent(args, similar); err != nil {
			t.Errorf("%q: %v", args, err)
		}
	}
	for _, args := range [][]string{{"report"}, {"report", "now"}, {" ps "}} {
		if err := bareIntent(args, similar); err == nil {
			t.Errorf("%q is an intent", args)
		}
	}
}

func TestDaemonThatStopsLeavesTheAgentSuspended(t *testing.T) {
	f := newFake(t).serve()
	f.theRun(nil, ipc.WaitResponse{})
	began := make(chan struct{})
	f.events = func(ctx context.Context, _ ipc.EventsRequest, out *ipc.Stream) error {
		e := event.Event{Seq: 101, Kind: event.LogLine, PID: 3, UUID: id(3), Name: "output", Text: "I look.", Answer: 1, Total: 7}
		_ = out.SendRaw(e.Seq, string(e.Kind), event.AppendJSON(nil, &e))
		close(began)
		<-ctx.Done()
		return context.Cause(ctx)
	}
	f.wait = func(ctx context.Context, _ ipc.WaitRequest) (ipc.WaitResponse, error) {
		<-ctx.Done()
		return ipc.WaitResponse{Suspended: true}, nil
	}
	answered := make(chan ran)
	go func() { answered <- f.run("run", "do it") }()
	<-began
	f.stopped()
	if r := <-answered; r.code != ExitSuspended || !strings.Contains(r.err, "[agent]   I look.\n[kernel] the daemon stopped; PID 3 is suspended on disk") || r.out != "" {
		t.Errorf("%+v", r)
	}
}

// A daemon that says nothing of a process any more leaves no zeros for a program to read.
func TestDaemonThatIsGoneLeavesNoNumbersInJSON(t *testing.T) {
	f := newFake(t).serve()
	f.theRun(nil, ipc.WaitResponse{})
	began := make(chan struct{})
	f.events = func(ctx context.Context, _ ipc.EventsRequest, _ *ipc.Stream) error {
		close(began)
		<-ctx.Done()
		return context.Cause(ctx)
	}
	f.wait = func(ctx context.Context, _ ipc.WaitRequest) (ipc.WaitResponse, error) {
		<-ctx.Done()
		return ipc.WaitResponse{}, types.Errorf(types.ErrUnavailable, "Wait", "", "it stops")
	}
	answered := make(chan ran)
	go func() { answered <- f.run("run", "--json", "do it") }()
	<-began
	f.stopped()
	if r := <-answered; r.code != ExitSuspended || !strings.HasPrefix(r.out, `{"ok":false,"error":{`) || !strings.HasSuffix(r.out, `"data":{"pid":3,"uuid":"`+id(3).String()+`","suspended":true}}`+"\n") {
		t.Errorf("%+v", r)
	}
}

func TestRunEndsAlsoWhenTheStreamShowsNoEnd(t *testing.T) {
	f := newFake(t).serve()
	f.theRun(nil, anEnd())
	f.events = func(ctx context.Context, _ ipc.EventsRequest, out *ipc.Stream) error {
		return errors.New("the stream broke")
	}
	f.wait = func(context.Context, ipc.WaitRequest) (ipc.WaitResponse, error) { return anEnd(), nil }
	if r := f.run("run", "do it"); r.code != 0 || r.out != "The result.\n" {
		t.Errorf("%+v", r)
	}
}

func TestWaitTellsHowEachProcessEnded(t *testing.T) {
	f := newFake(t).serve()
	f.wait = func(_ context.Context, r ipc.WaitRequest) (ipc.WaitResponse, error) {
		switch r.Target {
		case "3":
			return ipc.WaitResponse{PID: 3, UUID: id(3), Exit: done, Result: "three"}, nil
		case "4":
			return ipc.WaitResponse{PID: 4, UUID: id(4), Exit: types.ExitStatus{Code: types.ExitBudget, Reason: types.ReasonBudget}}, nil
		case "5":
			return ipc.WaitResponse{PID: 5, UUID: id(5), Suspended: true}, nil
		case "7":
			return ipc.WaitResponse{PID: 7, UUID: id(7), Exit: done, Result: `{"n":1}`, Schema: true}, nil
		case "6":
			return ipc.WaitResponse{}, types.Errorf(types.ErrTimeout, "Wait", "", "deadline")
		}
		return ipc.WaitResponse{}, types.Errorf(types.ErrNotFound, "Find", r.Target, "no such process")
	}
	for _, c := range []struct {
		args []string
		code int
		out  string
	}{
		{[]string{"3"}, 0, "three\n"}, {[]string{"4"}, ExitBudget, ""}, {[]string{"5"}, ExitSuspended, ""},
		{[]string{"6", "--timeout", "1ms"}, ExitTimeout, ""}, {[]string{"x"}, ExitNotFound, ""}, {[]string{"x", "3", "4"}, ExitNotFound, "==> PID 3 <==\nthree\n"},
		{[]string{"-q", "3", "3"}, 0, "three\nthree\n"}, {[]string{"3", "3"}, 0, "==> PID 3 <==\nthree\n\n==> PID 3 <==\nthree\n"},
	} {
		r := f.run(append([]string{"wait"}, c.args...)...)
		if r.code != c.code || r.out != c.out {
			t.Errorf("%v: %+v", c.args, r)
		}
	}
	if r := f.run("wait", "--json", "3", "4"); strings.Count(r.out, "\n") != 2 || r.code != ExitBudget {
		t.Errorf("%+v", r)
	}
	if r := f.run("wait", "--json", "7", "3"); strings.Count(r.out, `"structured_output":{"n":1}`) != 1 || r.code != 0 {
		t.Errorf("%+v", r)
	}
}
