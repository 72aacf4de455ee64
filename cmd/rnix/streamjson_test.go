package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"rnix/agent"
	"rnix/drivers/llm/llmtest"
	"rnix/internal/harness"
	"rnix/internal/testenv"
)

// sdkFields are the fields that the vendor's own readers demand, by the type of a line and of a block: those that parse_message of claude-agent-sdk for Python reads
// without a default (src/claude_agent_sdk/_internal/message_parser.py of anthropics/claude-agent-sdk-python at 008e361d), and those that the types of
// @anthropic-ai/claude-agent-sdk 0.3.328 (sdk.d.ts) demand, but for the ones that docs/guides/naming-and-output.md names as left out. Older releases of the first raise on
// other types of lines.
var sdkFields = map[string]string{
	"system":         "subtype uuid session_id",
	"system/init":    "cwd model tools mcp_servers slash_commands skills plugins",
	"assistant":      "message.content message.model message.id message.role message.stop_reason message.usage parent_tool_use_id uuid session_id",
	"user":           "message.content message.role parent_tool_use_id uuid session_id",
	"stream_event":   "event.type parent_tool_use_id uuid session_id",
	"result":         "subtype duration_ms duration_api_ms is_error num_turns session_id uuid stop_reason permission_denials",
	"result/success": "result total_cost_usd usage modelUsage",
	"result/error":   "errors",

	"block text":        "text",
	"block thinking":    "thinking signature",
	"block tool_use":    "id name input",
	"block tool_result": "tool_use_id content",
}

// sdkEnds are the subtypes of results that the vendor's types have.
var sdkEnds = []string{"success", "error_during_execution", "error_max_turns", "error_max_budget_usd", "error_max_structured_output_retries"}

type jsonObject = map[string]any

// lined is a run whose lines are read as those of claude.
type lined struct {
	t     *testing.T
	lines []jsonObject
	raw   []string
}

func readLines(t *testing.T, out string) *lined {
	t.Helper()
	l := &lined{t: t, raw: strings.Split(strings.TrimSpace(out), "\n")}
	seen := map[string]bool{}
	for _, text := range l.raw {
		var o jsonObject
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		id, _ := o["uuid"].(string)
		if seen[id] {
			t.Errorf("a line has the uuid of another one: %s", text)
		}
		seen[id] = true
		l.lines = append(l.lines, o)
		l.demand(o, text)
	}
	if first := l.lines[0]; first["type"] != "system" || first["subtype"] != "init" {
		t.Errorf("the first line is %s", l.raw[0])
	}
	return l
}

// demand checks that a line has the fields that readers need.
func (l *lined) demand(o jsonObject, text string) {
	l.t.Helper()
	kind, _ := o["type"].(string)
	sub, _ := o["subtype"].(string)
	if sdkFields[kind] == "" {
		l.t.Errorf("a line of a type that the vendor's readers do not know: %s", text)
	}
	kinds := []string{kind, kind + "/" + sub}
	if kind == "result" {
		if !slices.Contains(sdkEnds, sub) || o["is_error"] != (sub != "success") {
			l.t.Errorf("no end of the vendor's: %s", text)
		}
		switch {
		case o["end"] == "detached":
			kinds = kinds[:1]
		case sub != "success":
			kinds[1] = "result/error"
		}
	}
	for _, k := range kinds {
		for field := range strings.FieldsSeq(sdkFields[k]) {
			if !has(o, strings.Split(field, ".")) {
				l.t.Errorf("%s: no field %s in %s", k, field, text)
			}
		}
	}
	message, _ := o["message"].(jsonObject)
	list, _ := message["content"].([]any)
	for _, b := range list {
		b := b.(jsonObject)
		kind, _ := b["type"].(string)
		if sdkFields["block "+kind] == "" {
			l.t.Errorf("a block of a type that is not known: %s", text)
		}
		for field := range strings.FieldsSeq(sdkFields["block "+kind]) {
			if !has(b, []string{field}) {
				l.t.Errorf("block %s: no field %s in %s", kind, field, text)
			}
		}
		if _, ok := b["input"].(jsonObject); kind == "tool_use" && !ok {
			l.t.Errorf("an input that is no object: %s", text)
		}
	}
}

func has(o jsonObject, path []string) bool {
	v, ok := o[path[0]]
	if len(path) == 1 || !ok {
		return ok
	}
	below, ok := v.(jsonObject)
	return ok && has(below, path[1:])
}

// of returns the lines of a type.
func (l *lined) of(kind string) (out []jsonObject) {
	for _, o := range l.lines {
		if o["type"] == kind {
			out = append(out, o)
		}
	}
	return out
}

func (l *lined) result() jsonObject {
	l.t.Helper()
	all := l.of("result")
	if len(all) != 1 || l.lines[len(l.lines)-1]["type"] != "result" {
		l.t.Fatalf("%d results, and the last line is %s", len(all), l.raw[len(l.raw)-1])
	}
	return all[0]
}

// events are what our own reader of claude's lines makes of them, without what it does not know.
func (l *lined) events() (out []agent.Event) {
	cli, err := harness.Lookup("claude")
	if err != nil {
		l.t.Fatal(err)
	}
	reader := cli.Lines(agent.UsageEvent{})
	for _, line := range l.raw {
		for _, e := range reader.Line([]byte(line)) {
			if s, ok := e.(agent.SystemEvent); ok && strings.HasPrefix(s.Subtype, "rnix_") {
				continue
			}
			out = append(out, e)
		}
	}
	if e := reader.End(harness.Exit{}); e != nil {
		l.t.Errorf("the reader says at the end: %+v", e)
	}
	return out
}

// streamed puts the pieces of each answer together as the vendor's libraries do, and compares them with its message.
func (l *lined) streamed(partial bool) (answers int) {
	l.t.Helper()
	var open jsonObject
	messages := map[any]jsonObject{}
	for i, o := range l.lines {
		if o["type"] == "assistant" {
			m := o["message"].(jsonObject)
			if made := messages[m["id"]]; made != nil {
				if diff := gocmp.Diff(made, m); diff != "" {
					l.t.Errorf("put together of pieces it is otherwise (-pieces +message):\n%s", diff)
				}
				answers++
			} else if partial {
				l.t.Errorf("no pieces of %s", l.raw[i])
			}
		}
		if o["type"] != "stream_event" {
			continue
		}
		e := o["event"].(jsonObject)
		n := -1
		if index, ok := e["index"].(float64); ok {
			n = int(index)
		}
		blocks := func() []any { return open["content"].([]any) }
		switch kind := e["type"].(string); kind {
		case "message_start":
			open = e["message"].(jsonObject)
		case "content_block_start":
			if n != len(blocks()) {
				l.t.Errorf("block %d is begun as %d", len(blocks()), n)
			}
			open["content"] = append(blocks(), e["content_block"])
		case "content_block_delta":
			b, d := blocks()[n].(jsonObject), e["delta"].(jsonObject)
			switch d["type"] {
			case "text_delta":
				b["text"] = b["text"].(string) + d["text"].(string)
			case "thinking_delta":
				b["thinking"] = b["thinking"].(string) + d["thinking"].(string)
			case "input_json_delta":
				var input any
				if err := json.Unmarshal([]byte(d["partial_json"].(string)), &input); err != nil {
					l.t.Error(err)
				}
				b["input"] = input
			default:
				l.t.Errorf("a delta of an unknown type: %s", l.raw[i])
			}
		case "content_block_stop":
			if n != len(blocks())-1 {
				l.t.Errorf("block %d is ended as %d", len(blocks())-1, n)
			}
		case "message_delta":
			open["stop_reason"], open["usage"] = e["delta"].(jsonObject)["stop_reason"], e["usage"]
		case "message_stop":
			messages[open["id"]], open = open, nil
		default:
			l.t.Errorf("an event of an unknown type: %s", l.raw[i])
		}
	}
	return answers
}

// streamer is somebody with the program, a daemon of their own, and a stand-in of the vendor's API.
type streamer struct {
	t   *testing.T
	dir string
	env []string
}

func newStreamer(t *testing.T, script func(llmtest.Request) llmtest.Reply) *streamer {
	t.Helper()
	_, url := llmtest.NewMessagesAPI(t, script)
	dir, err := os.MkdirTemp("", "rnix") // a short name: a socket lies in it
	if err != nil {
		t.Fatal(err)
	}
	s := &streamer{t: t, dir: filepath.Join(dir, "work")}
	home, run, data := filepath.Join(dir, "home"), filepath.Join(dir, "run"), filepath.Join(dir, "data")
	for _, d := range []string{home, run, s.dir} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s.env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "RNIX_DATA_DIR=" + data, "XDG_RUNTIME_DIR=" + run, "TERM=dumb", "GORACE=atexit_sleep_ms=0",
		"ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL=" + url, cmp.Or(os.Getenv("RNIX_TEST_LEVEL"), testenv.SandboxOff)}
	t.Cleanup(func() { stopDaemon(t, s.env, data, dir) })
	return s
}

func (s *streamer) command(args ...string) *exec.Cmd {
	c := exec.Command("rnix", append([]string{"run", "--model", "anthropic/claude-sonnet-4-5", "--output-format", "stream-json"}, args...)...)
	c.Env, c.Dir = s.env, s.dir
	return c
}

func (s *streamer) run(code int, args ...string) *lined {
	s.t.Helper()
	c := s.command(args...)
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.Output()
	if got := c.ProcessState.ExitCode(); got != code || errs.Len() > 0 {
		s.t.Errorf("%v: exit code %d, want %d; %v; %s", args, got, code, err, &errs)
	}
	return readLines(s.t, string(out))
}

func call(name, input string) llmtest.ToolCall { return llmtest.ToolCall{Name: name, Input: input} }

// tour is a model that shows what there is.
func tour(r llmtest.Request) llmtest.Reply {
	u := &llmtest.Usage{Input: 100, Output: 20, CacheRead: 30, CacheWrite: 5}
	first := ""
	for _, m := range r.Messages {
		if m.Role == "user" && m.Text != "" {
			first = m.Text
			break
		}
	}
	_, told := r.LastResult()
	switch {
	case strings.Contains(first, "be a child"):
		return llmtest.Reply{Text: "I was a child.", Usage: u}
	case strings.Contains(first, "fail"):
		return llmtest.Reply{Status: 401, Text: "invalid x-api-key"}
	case strings.Contains(first, "hang"):
		return llmtest.Reply{Text: "I begin\nand ", Hang: true}
	case strings.Contains(first, "on and on"):
		return llmtest.Reply{Text: "Once more.", ToolCalls: []llmtest.ToolCall{call("shell", `{"command":"true"}`)}, Usage: u}
	case !told:
		return llmtest.Reply{Reasoning: "Hm.\nI look.", Text: "I look\nat it.", Chunks: 3, Usage: u,
			ToolCalls: []llmtest.ToolCall{call("shell", `{"command":"echo hello"}`), call("read_file", `{"path":"nothing.txt"}`)}}
	case r.Turns() == 1:
		return llmtest.Reply{Usage: u, ToolCalls: []llmtest.ToolCall{call("spawn", `{"intent":"be a child"}`), call("ask", `{"question":"Which one?"}`)}}
	}
	return llmtest.Reply{Text: "All is done.", Usage: u}
}

// What a run writes is what the vendor's readers, and our own, read of claude.
func TestLinesOfARunAreReadAsThoseOfClaude(t *testing.T) {
	t.Parallel()
	s := newStreamer(t, tour)
	for _, flags := range [][]string{nil, {"--include-partial-messages"}} {
		l := s.run(0, append(flags, "show me")...)
		if flags == nil && len(l.of("stream_event")) > 0 {
			t.Error("there are pieces")
		}
		if n := l.streamed(flags != nil); flags != nil && n != 3 {
			t.Errorf("%d answers of pieces", n)
		}
		init := l.lines[0]
		if tools := init["tools"].([]any); !slices.Contains(tools, any("shell")) || !slices.Contains(tools, any("spawn")) || init["cwd"] != s.dir || init["model"] != "claude-sonnet-4-5" {
			t.Errorf("the first line is %v", init)
		}
		var heard []agent.Event
		names := map[string]string{}
		usages := 0
		for _, e := range l.events() {
			switch e := e.(type) {
			case agent.InitEvent:
				if e.SessionID == "" || e.SessionID != init["session_id"] || len(e.Tools) == 0 {
					t.Errorf("%+v", e)
				}
				continue
			case agent.AssistantTextEvent:
				if e.Delta {
					continue
				}
			case agent.ToolUseEvent:
				names[e.ToolUseID] = e.ToolName
				heard = append(heard, agent.ToolUseEvent{ToolName: e.ToolName, Input: e.Input})
				continue
			case agent.ToolResultEvent:
				if names[e.ToolUseID] != e.ToolName {
					t.Errorf("the result of no call: %+v", e)
				}
				heard = append(heard, agent.ToolResultEvent{ToolName: e.ToolName, IsError: e.IsError})
				continue
			case agent.UsageEvent:
				usages++
				if e != (agent.UsageEvent{Model: "claude-sonnet-4-5", Input: 100, Output: 20, CacheRead: 30, CacheWrite: 5}) {
					t.Errorf("%+v", e)
				}
				continue
			}
			heard = append(heard, e)
		}
		want := []agent.Event{
			agent.AssistantTextEvent{Text: "I look\nat it."},
			agent.ToolUseEvent{ToolName: "shell", Input: json.RawMessage(`{"command":"echo hello"}`)}, agent.ToolUseEvent{ToolName: "read_file", Input: json.RawMessage(`{"path":"nothing.txt"}`)},
			agent.ToolResultEvent{ToolName: "shell"}, agent.ToolResultEvent{ToolName: "read_file", IsError: true},
			agent.ToolUseEvent{ToolName: "spawn", Input: json.RawMessage(`{"intent":"be a child"}`)}, agent.ToolUseEvent{ToolName: "ask", Input: json.RawMessage(`{"question":"Which one?"}`)},
			agent.ToolResultEvent{ToolName: "spawn"}, agent.ToolResultEvent{ToolName: "ask"},
			agent.AssistantTextEvent{Text: "All is done."},
			agent.ResultEvent{Success: true, Message: "All is done.", Turns: 3},
		}
		end := heard[len(heard)-1].(agent.ResultEvent)
		if u := end.Usage; u == nil || u.Input != 300 || u.Output != 60 || u.CacheRead != 90 || u.CacheWrite != 15 || u.CostUSD <= 0 {
			t.Errorf("the run took %+v", u)
		}
		end.Usage = nil
		heard[len(heard)-1] = end
		if diff := gocmp.Diff(want, heard); diff != "" || usages != 3 {
			t.Errorf("%v: %d usages (-want +got):\n%s", flags, usages, diff)
		}
		thought := l.of("assistant")[0]["message"].(jsonObject)["content"].([]any)[0].(jsonObject)
		if thought["type"] != "thinking" || thought["thinking"] != "Hm.\nI look." {
			t.Errorf("it thought %v", thought)
		}
		r := l.result()
		model := r["modelUsage"].(jsonObject)["claude-sonnet-4-5"].(jsonObject)
		if own, all := r["cost_usd"].(float64), r["total_cost_usd"].(float64); own <= 0 || all <= own || model["costUSD"] != own || r["stop_reason"] != "end_turn" || r["terminal_reason"] != "completed" {
			t.Errorf("the result is %v", r)
		}
		if strings.Contains(strings.Join(l.raw, ""), `"type":"event"`) || !strings.Contains(strings.Join(l.raw, ""), `"subtype":"rnix_event"`) {
			t.Error("events are not in lines of ours")
		}
	}
}

// A run that ends otherwise says so in words that the vendor's readers know, and in ours.
func TestEndsOfARunAreThoseOfClaude(t *testing.T) {
	t.Parallel()
	s := newStreamer(t, tour)
	for _, c := range []struct {
		code         int
		args         []string
		subtype, end string
	}{
		{13, []string{"fail"}, "error_during_execution", "error"},
		{3, []string{"--max-steps", "2", "on and on"}, "error_max_turns", "error_max_steps"},
		{4, []string{"--budget", "200", "on and on"}, "error_max_budget_usd", "suspended"},
	} {
		l := s.run(c.code, append([]string{"--include-partial-messages"}, c.args...)...)
		r := l.result()
		if errs := r["errors"].([]any); r["subtype"] != c.subtype || r["end"] != c.end || len(errs) != 1 || errs[0] == "" {
			t.Errorf("%v: %v", c.args, r)
		}
		if e, ok := l.events()[len(l.events())-1].(agent.ResultEvent); !ok || e.Success {
			t.Errorf("%v: %+v", c.args, e)
		}
	}
	l := s.run(0, "--ask", "shell", "show me")
	if d := l.result()["permission_denials"].([]any); len(d) != 1 || !has(d[0].(jsonObject), []string{"tool_use_id"}) || gocmp.Diff(d[0].(jsonObject)["tool_input"], any(jsonObject{"command": "echo hello"})) != "" {
		t.Errorf("refused: %v", d)
	}
	c := s.command("--include-partial-messages", "hang")
	var errs bytes.Buffer
	out, said := new(bytes.Buffer), make(chan struct{})
	c.Stdout, c.Stderr = &waitFor{to: out, text: "text_delta", there: said}, &errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-said:
	case <-time.After(time.Minute):
		t.Error("it says nothing")
	}
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	_ = c.Wait()
	l = readLines(t, out.String())
	l.streamed(true)
	if r := l.result(); r["subtype"] != "error_during_execution" || r["end"] != "interrupted" || r["terminal_reason"] != "aborted_streaming" || c.ProcessState.ExitCode() != 130 {
		t.Errorf("%v: %v; %s", c.ProcessState, r, &errs)
	}
	if e, ok := l.events()[len(l.events())-1].(agent.ResultEvent); !ok || e.Subtype != harness.WhyInterrupted {
		t.Errorf("%+v", e)
	}
	d := s.run(0, "-d", "show me").lines[1] // it knows nothing of the end
	if d["end"] != "detached" || has(d, []string{"total_cost_usd"}) || has(d, []string{"exit_code"}) {
		t.Errorf("%v", d)
	}
	// Nothing was started.
	c = exec.Command("rnix", "run", "--provider", "nobody", "--output-format", "stream-json", "x y")
	c.Env, c.Dir = s.env, s.dir
	text, _ := c.Output()
	var r jsonObject
	if err := json.Unmarshal(text, &r); err != nil || r["session_id"] != "" {
		t.Errorf("%v: %s", err, text)
	}
	(&lined{t: t}).demand(r, string(text))
}

// waitFor says when a text was written.
type waitFor struct {
	to    *bytes.Buffer
	text  string
	there chan struct{}
	said  bool
}

func (w *waitFor) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	if !w.said && bytes.Contains(w.to.Bytes(), []byte(w.text)) {
		w.said = true
		close(w.there)
	}
	return n, err
}
