package mcpserve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/event"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// system is a real daemon with a model that answers, or hangs as long as it is told to hang.
func system(t *testing.T) *testenv.System {
	t.Helper()
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		said := ""
		for _, m := range r.Messages {
			if m.Role == "user" {
				said += m.Text + "\n"
			}
		}
		switch {
		case strings.Contains(said, "go on now"):
			return llmtest.Reply{Text: "steered"}
		case strings.Contains(said, "hang"):
			return llmtest.Reply{Hang: true}
		}
		return llmtest.Reply{Text: "All is <well>."}
	})
	return testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
}

// ask calls a tool, and reads its structured answer into out, if that is not nil. It returns the text.
func ask(t *testing.T, cs *mcp.ClientSession, tool string, in map[string]any, out any) string {
	t.Helper()
	r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: in})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	if r.IsError {
		t.Fatalf("%s: %s", tool, words(t, r))
	}
	if out != nil {
		b, err := json.Marshal(r.StructuredContent)
		if err == nil {
			err = json.Unmarshal(b, out)
		}
		if err != nil {
			t.Fatalf("%s: %v", tool, err)
		}
	}
	return words(t, r)
}

// refused calls a tool that has to fail, and returns what it says.
func refused(t *testing.T, cs *mcp.ClientSession, tool string, in map[string]any) string {
	t.Helper()
	r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: in})
	if err != nil || !r.IsError {
		t.Fatalf("%s was not refused as a tool is: %+v %v", tool, r, err)
	}
	return words(t, r)
}

func TestClientStartsWatchesAndSteersAgents(t *testing.T) {
	s := system(t)
	p := processesOn(s.Socket(), s.Env, s.Work)
	t.Cleanup(func() { _ = p.Close() })
	cs := start(t, p).connect(t, nil)

	var done spawnOut
	if got := ask(t, cs, "spawn", map[string]any{"intent": "say something", "model": "fake", "wait_seconds": 60}, &done); got != "All is <well>." || done.Outcome == nil || *done.Outcome.ExitCode != 0 {
		t.Fatalf("%q %+v", got, done)
	}
	var hangs spawnOut
	ask(t, cs, "spawn", map[string]any{"intent": "hang", "name": "night", "model": "fake", "budget_tokens": 100000}, &hangs)
	var list psOut
	ask(t, cs, "ps", nil, &list)
	if len(list.Processes) != 1 || list.Processes[0].PID != hangs.PID || list.Processes[0].Directory != s.Work {
		t.Errorf("ps: %+v", list)
	}
	if ask(t, cs, "ps", map[string]any{"all": true}, &list); len(list.Processes) != 2 {
		t.Errorf("ps all: %+v", list)
	}
	s.Await(types.PID(hangs.PID), event.StepStarted, nil)
	var o outcome
	if got := ask(t, cs, "wait", map[string]any{"process": hangs.PID, "wait_seconds": 0.01}, &o); o.State != "running" || !strings.Contains(got, "call wait again") {
		t.Errorf("wait: %q %+v", got, o)
	}
	marked := s.Spawn(ipc.SpawnRequest{Intent: "hang", ProcSpec: types.ProcSpec{Model: "fake", Labels: types.Labels{"env": "prod"}}})
	var one resultOut
	if ask(t, cs, "result", map[string]any{"process": marked.UUID.String()}, &one); one.Labels.String() != "env=prod" {
		t.Errorf("labels: %+v", one)
	}
	var sig signalOut
	if ask(t, cs, "pause", map[string]any{"process": "night"}, &sig); sig.Affected != 1 {
		t.Errorf("pause: %+v", sig)
	}
	var st resultOut
	if ask(t, cs, "result", map[string]any{"process": "night"}, &st); st.State != "suspended" || st.UUID != hangs.UUID {
		t.Errorf("result: %+v", st)
	}
	var sent sendOut
	ask(t, cs, "send", map[string]any{"process": "night", "text": "some data", "key": "k"}, &sent)
	again := sent
	if ask(t, cs, "send", map[string]any{"process": "night", "text": "some data", "key": "k"}, &again); again.Number != sent.Number {
		t.Errorf("sent twice: %+v %+v", sent, again)
	}
	ask(t, cs, "steer", map[string]any{"process": "night", "text": "go on now"}, &sent)
	ask(t, cs, "resume", map[string]any{"process": "night"}, nil)
	if got := ask(t, cs, "wait", map[string]any{"process": "night"}, &o); got != "steered" || o.State != "ended" {
		t.Errorf("wait: %q %+v", got, o)
	}
	s.Write(".rnix/agents/deaf/agent.yaml", "blocked_signals: [SIGTERM]\n")
	ask(t, cs, "spawn", map[string]any{"intent": "hang again", "model": "fake", "agent": "deaf"}, &hangs)
	if ask(t, cs, "kill", map[string]any{"process": hangs.PID}, &sig); !sig.Blocked || sig.Affected != 1 {
		t.Errorf("it blocks SIGTERM: %+v", sig)
	}
	ask(t, cs, "kill", map[string]any{"process": hangs.PID, "signal": "KILL"}, nil)
	if got := ask(t, cs, "wait", map[string]any{"process": hangs.PID}, &o); o.State != "ended" || !strings.Contains(got, "exit code 4") {
		t.Errorf("killed: %q %+v", got, o)
	}
	var c costOut
	if ask(t, cs, "cost", map[string]any{"by": "process", "days": 1}, &c); c.Total.Tokens == 0 || len(c.Lines) == 0 {
		t.Errorf("cost: %+v", c)
	}
	if got := refused(t, cs, "diff", map[string]any{"process": done.PID}); !strings.Contains(got, "no files are kept") {
		t.Errorf("diff: %q", got)
	}
	for what, want := range map[string]string{"log": "[output] All is <well>.", "steps": `"steps":[{`, "result": "All is <well>."} {
		r, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: scheme + done.UUID + "/" + what})
		if err != nil || len(r.Contents) != 1 || !strings.Contains(r.Contents[0].Text, want) {
			t.Errorf("resource %s: %+v %v", what, r, err)
		}
	}
	if _, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: scheme + types.NewUUID().String() + "/log"}); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("resource of nobody: %v", err)
	}
}

func TestErrorsOfToolsSayTheCodeAndTheMend(t *testing.T) {
	s := system(t)
	p := processesOn(s.Socket(), s.Env, s.Work)
	t.Cleanup(func() { _ = p.Close() })
	cs := start(t, p).connect(t, nil)
	for _, tt := range []struct {
		tool string
		in   map[string]any
		want []string
	}{
		{"wait", map[string]any{"process": 99}, []string{"NOT_FOUND: ", "99"}},
		{"kill", map[string]any{"process": "nobody"}, []string{"NOT_FOUND: ", "nobody", "ps lists"}},
		{"log", map[string]any{"process": "nobody"}, []string{"NOT_FOUND: "}},
		{"log", map[string]any{"process": 1, "limit": 5000}, []string{"INVALID: ", "2000"}},
		{"kill", map[string]any{"process": 1, "signal": "HUP"}, []string{"signal"}},
		{"spawn", map[string]any{"intent": " "}, []string{"INVALID: ", "say what is to be done"}},
		{"spawn", map[string]any{"intent": "x", "wait_seconds": -1}, []string{"INVALID: ", "wait_seconds"}},
		{"spawn", map[string]any{"intent": "x", "provider": "nobody"}, []string{"nobody"}},
		{"spawn", map[string]any{"intent": "x", "nonsense": 1}, []string{"nonsense"}},
		{"cost", map[string]any{"days": -1}, []string{"INVALID: "}},
	} {
		got := refused(t, cs, tt.tool, tt.in)
		for _, w := range tt.want {
			if !strings.Contains(got, w) {
				t.Errorf("%s %v: %q, want %q", tt.tool, tt.in, got, w)
			}
		}
	}
}

func TestReadOnlyServerOffersNothingThatChangesSomething(t *testing.T) {
	p := &Processes{ReadOnly: true}
	cs := start(t, p).connect(t, nil)
	r, err := cs.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range r.Tools {
		names = append(names, tool.Name)
		if !tool.Annotations.ReadOnlyHint || tool.OutputSchema == nil {
			t.Errorf("%+v", tool)
		}
	}
	if want := []string{"asks", "cost", "diff", "log", "ps", "result", "wait"}; !slices.Equal(names, want) {
		t.Errorf("%v", names)
	}
	if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "kill", Arguments: map[string]any{"process": 1}}); err == nil {
		t.Error("kill can be called")
	}
}

func TestKilledServerLeavesTheAgentAndNoCallBehind(t *testing.T) {
	s := system(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append([]string{asServer + "=" + s.Socket(), "GORACE=atexit_sleep_ms=0"}, s.Env...)
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	cs, err := c.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	var p spawnOut
	ask(t, cs, "spawn", map[string]any{"intent": "hang", "model": "fake", "cwd": s.Work}, &p)
	called := make(chan error)
	go func() { // ends with the server
		_, err := cs.CallTool(context.Background(), &mcp.CallToolParams{Name: "wait", Arguments: map[string]any{"process": p.PID, "wait_seconds": 3600}})
		called <- err
	}()
	s.Await(types.PID(p.PID), event.StepStarted, nil)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-called; err == nil {
		t.Error("the call has an answer")
	}
	d, err := ipc.Call(t.Context(), s.Client, ipc.GetProcDetail, ipc.TargetRequest{Target: p.UUID})
	if err != nil || d.State != "running" {
		t.Errorf("%+v %v", d, err)
	}
}

func TestKilledDaemonIsSaidAndTheNextOneIsServed(t *testing.T) {
	s := system(t)
	p := processesOn(s.Socket(), s.Env, s.Work)
	t.Cleanup(func() { _ = p.Close() })
	cs := start(t, p).connect(t, nil)
	var h spawnOut
	ask(t, cs, "spawn", map[string]any{"intent": "hang", "model": "fake"}, &h)
	s.Await(types.PID(h.PID), event.StepStarted, nil)
	called := make(chan *mcp.CallToolResult, 1)
	go func() { // ends with the daemon
		r, _ := cs.CallTool(context.Background(), &mcp.CallToolParams{Name: "wait", Arguments: map[string]any{"process": h.PID, "wait_seconds": 3600}})
		called <- r
	}()
	ask(t, cs, "ps", nil, nil)
	s.Kill()
	if r := <-called; r == nil || !r.IsError {
		t.Errorf("%+v", r)
	}
	if got := refused(t, cs, "ps", nil); !strings.HasPrefix(got, "SERVICE_UNAVAILABLE") {
		t.Errorf("ps: %q", got)
	}
	s.Start()
	s.Settle()
	var list psOut
	if ask(t, cs, "ps", nil, &list); len(list.Processes) != 1 || list.Processes[0].UUID != h.UUID {
		t.Errorf("ps: %+v", list)
	}
}

func TestFiftyCallsAtOnceAndOneThatIsTakenBack(t *testing.T) {
	s := system(t)
	p := processesOn(s.Socket(), s.Env, s.Work)
	t.Cleanup(func() { _ = p.Close() })
	cs := start(t, p).connect(t, nil)
	var h spawnOut
	ask(t, cs, "spawn", map[string]any{"intent": "hang", "model": "fake"}, &h)
	ctx, cancel := context.WithCancel(t.Context())
	waited := make(chan error, 1)
	go func() { // ends with ctx
		_, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "wait", Arguments: map[string]any{"process": h.PID, "wait_seconds": 3600}})
		waited <- err
	}()
	var calls sync.WaitGroup
	for range 50 {
		calls.Go(func() {
			r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "result", Arguments: map[string]any{"process": fmt.Sprint(h.PID)}})
			if err != nil || r.IsError {
				t.Errorf("%+v %v", r, err)
			}
		})
	}
	calls.Wait()
	cancel()
	if err := <-waited; !errors.Is(err, context.Canceled) {
		t.Errorf("wait: %v", err)
	}
}

func TestServerThatFindsNoDaemonSaysSo(t *testing.T) {
	p := &Processes{Connect: func(context.Context) (*ipc.Client, error) {
		return nil, types.Errorf(types.ErrUnavailable, "Ensure", "/x", "it does not start: no disk")
	}}
	cs := start(t, p).connect(t, nil)
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "ps"})
			if err != nil || !r.IsError || !strings.Contains(words(t, r), "no disk") {
				t.Errorf("%+v %v", r, err)
			}
		})
	}
	calls.Wait()
}

func TestPIDMayBeANumber(t *testing.T) {
	for in, want := range map[string]string{
		`{"process":3}`: `{"process":"3"}`, `{"process":"3"}`: `{"process":"3"}`, `{"process":null}`: `{"process":null}`, `{"process":[3]}`: `{"process":[3]}`,
		`{}`: `{}`, ``: ``, `3`: `3`, `{"process":18446744073709551615}`: `{"process":"18446744073709551615"}`,
	} {
		if got := quotePID(json.RawMessage(in)); string(got) != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}
