package mcpserve

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/permit"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// names are the tools that a source offers.
func names(t *testing.T, cs *mcp.ClientSession) (out []string) {
	t.Helper()
	r, err := cs.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range r.Tools {
		out = append(out, tool.Name)
	}
	return out
}

// A client is often an AI itself: it sees what a person is asked, and answers only if that person has said so.
func TestClientsAnswerOnlyIfThePersonHasSaidSo(t *testing.T) {
	for _, p := range []*Processes{{}, {ReadOnly: true}, {Answers: true}} {
		got := names(t, start(t, p).connect(t, nil))
		if !slices.Contains(got, "asks") || slices.Contains(got, "answer") != p.Answers {
			t.Errorf("answers: %v, read-only: %v: %v", p.Answers, p.ReadOnly, got)
		}
	}
	cs := start(t, &Processes{}).connect(t, nil)
	if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "answer", Arguments: map[string]any{"number": 1, "allow": true}}); err == nil {
		t.Error("answer can be called")
	}
}

func TestAClientShowsAndAnswersAsks(t *testing.T) {
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if len(r.Messages) > 1 {
			res, _ := r.LastResult()
			return llmtest.Reply{Text: res.Text}
		}
		if question, is := strings.CutPrefix(r.Messages[0].Text, "ask "); is {
			return llmtest.Reply{ToolCalls: []llmtest.ToolCall{{ID: "c", Name: "ask", Input: fmt.Sprintf(`{"question":%q,"choices":["a","b"],"default":"a"}`, question)}}}
		}
		return llmtest.Reply{ToolCalls: []llmtest.ToolCall{{ID: "c", Name: "shell", Input: fmt.Sprintf("{%q:%q}", "command", r.Messages[0].Text)}}}
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	p := processesOn(s.Socket(), s.Env, s.Work)
	p.Answers = true
	t.Cleanup(func() { _ = p.Close() })
	cs := start(t, p).connect(t, nil)

	// asked waits until one is asked about a process that runs a command.
	asked := func(name, command string) askLine {
		t.Helper()
		s.Spawn(ipc.SpawnRequest{Intent: command, Rules: permit.Rules{Ask: []string{"shell"}}, ProcSpec: types.ProcSpec{Name: name, Model: "fake"}})
		for end := time.Now().Add(time.Minute); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
			var list asksOut
			if ask(t, cs, "asks", map[string]any{"process": name}, &list); len(list.Asks) == 1 {
				return list.Asks[0]
			}
		}
		t.Fatalf("nothing is asked about %s", name)
		return askLine{}
	}
	made := func(name string) string {
		b, _ := os.ReadFile(filepath.Join(s.Work, name)) // which need not be there
		return strings.TrimSpace(string(b))
	}
	end := func(name string) { ask(t, cs, "wait", map[string]any{"process": name, "wait_seconds": 60}, nil) }

	one := asked("one", "echo one >one")
	if one.Name != "one" || one.Tool != "shell" || one.Input["command"] != "echo one >one" || one.Rule != "shell" || one.Since == "" {
		t.Errorf("%+v", one)
	}
	var out answerOut
	if ask(t, cs, "answer", map[string]any{"number": one.Number, "allow": true}, &out); !out.Allowed || out.Number != one.Number {
		t.Errorf("%+v", out)
	}
	if end("one"); made("one") != "one" {
		t.Errorf("it did not run: %q", made("one"))
	}
	if got := refused(t, cs, "answer", map[string]any{"number": one.Number, "allow": false}); !strings.Contains(got, "NOT_FOUND") {
		t.Errorf("%s", got)
	}

	two := asked("two", "echo two >two")
	for want, in := range map[string]map[string]any{
		"process or family":             {"number": two.Number, "allow": true, "seconds": 60},
		"does not cover":                {"number": two.Number, "allow": true, "for": "family", "match": "git *"},
		"a reason goes with a refusal":  {"number": two.Number, "allow": true, "because": "x"},
		"go with an answer that allows": {"number": two.Number, "allow": false, "for": "process"},
	} {
		if got := refused(t, cs, "answer", in); !strings.Contains(got, want) {
			t.Errorf("%v: %q, want %q", in, got, want)
		}
	}
	ask(t, cs, "answer", map[string]any{"number": two.Number, "allow": true, "input": map[string]any{"command": "echo other >two"}, "for": "process", "seconds": 3600}, &out)
	if !strings.Contains(out.Granted, "echo two >two") {
		t.Errorf("%+v", out)
	}
	if end("two"); made("two") != "other" {
		t.Errorf("what was changed did not run: %q", made("two"))
	}

	three := asked("three", "echo three >three; : "+strings.Repeat("x", 2*maxAsked))
	if three.Input != nil || three.More <= 2*maxAsked {
		t.Errorf("%d bytes of %d are in the list", len(fmt.Sprint(three.Input)), three.More)
	}
	var whole asksOut
	if ask(t, cs, "asks", map[string]any{"number": three.Number}, &whole); len(whole.Asks) != 1 || len(fmt.Sprint(whole.Asks[0].Input["command"])) < 2*maxAsked || whole.Asks[0].More != 0 {
		t.Errorf("%d asks, of which the first lacks something", len(whole.Asks))
	}
	ask(t, cs, "answer", map[string]any{"number": three.Number, "allow": false, "because": "too long"}, &out)
	if end("three"); out.Allowed || made("three") != "" {
		t.Errorf("it ran: %+v", out)
	}

	four := asked("four", "ask which?")
	if four.Question != "which?" || !slices.Equal(four.Choices, []string{"a", "b"}) || four.Default != "a" || four.Until != "" || four.Rule != "" {
		t.Errorf("%+v", four)
	}
	for want, in := range map[string]map[string]any{
		"it is a question":         {"number": four.Number, "allow": true},
		"goes with nothing else":   {"number": four.Number, "allow": true, "text": "x", "for": "process"},
		"the answer must be UTF-8": {"number": four.Number, "allow": true, "text": strings.Repeat("x", permit.MaxAnswer+1)},
		"goes with an answer that": {"number": four.Number, "allow": false, "text": "x"},
	} {
		if got := refused(t, cs, "answer", in); !strings.Contains(got, want) && !strings.Contains(got, "goes with nothing else") {
			t.Errorf("%v: %q, want %q", in, got, want)
		}
	}
	ask(t, cs, "answer", map[string]any{"number": four.Number, "allow": true, "text": "2"}, &out)
	end("four")
	if w, err := ipc.Call(t.Context(), s.Client, ipc.Wait, ipc.WaitRequest{Target: "four"}); err != nil || out.Text != "b" || !strings.HasSuffix(w.Result, "\nb") {
		t.Errorf("%+v, told %q, %v", out, w.Result, err)
	}

	if _, err := ipc.Call(t.Context(), s.Client, ipc.ListAsks, ipc.AsksRequest{MaxInput: -1}); types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("a negative bound: %v", err)
	}
}
