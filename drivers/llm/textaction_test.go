package llm

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	rnixctx "rnix/context"
)

var updateGolden = flag.Bool("update", false, "write the golden files")

// textTools are what a kernel offers: two tools and its own actions.
var textTools = []ToolSpec{
	{"read_file", "Read a file.", json.RawMessage(`{"type":"object", "properties":{"path":{"type":"string"}},"required":["path"]}`)},
	{"shell", "Run a command.", json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}`)},
	{"plan", "Write down the steps.", json.RawMessage(`{"type":"object","properties":{"steps":{"type":"array","items":{"type":"string"}}},"required":["steps"]}`)},
	{"spawn", "Start another agent.", json.RawMessage(`{"type":"object","properties":{"intent":{"type":"string"},"agent":{"type":"string"}},"required":["intent"]}`)},
	{"complete", "Finish the task.", json.RawMessage(`{"type":"object","properties":{"result":{"type":"string"}},"required":["result"]}`)},
}

func textCall(name, input string) rnixctx.ToolCall {
	return rnixctx.ToolCall{Name: name, Input: json.RawMessage(input)}
}

func TestTextActionIsFoundInWhateverItIsWrapped(t *testing.T) {
	read := []rnixctx.ToolCall{textCall("read_file", `{"path":"a"}`)}
	object := `{"action":"tool_call","tool":"read_file","input":{"path":"a"}}`
	cases := []struct {
		name, text, content string
		calls               []rnixctx.ToolCall
	}{
		{"bare", object, "", read},
		{"space", "\n\n " + object + "\n", "", read},
		{"fenced", "```json\n" + object + "\n```", "", read},
		{"fence without a language", "```\n" + object + "\n```\n", "", read},
		{"prose around", "I look at `a`.\n\n" + object + "\n\nThen we see.", "I look at `a`.\n\n\n\nThen we see.", read},
		{"prose and fence", "First:\n```json\n" + object + "\n```\nDone.", "First:\n\nDone.", read},
		{"behind code with braces", "func f() { if x { y() } }\n" + object, "func f() { if x { y() } }", read},
		{"another object before", `The file holds {"a":1}. ` + object, `The file holds {"a":1}.`, read},
		{"thought", `{"thought":"look first","action":"tool_call","tool":"read_file","input":{"path":"a"}}`, "look first", read},
		{"openai names", `{"action":"tool_call","name":"read_file","arguments":"{\"path\":\"a\"}"}`, "", read},
		{"the tool as action", `{"action":"read_file","path":"a"}`, "", read},
		{"the tool as action with input", `{"action":"read_file","input":{"path":"a"}}`, "", read},
		{"no input", `{"action":"tool_call","tool":"shell"}`, "", []rnixctx.ToolCall{textCall("shell", `{}`)}},
		{"raw newline in a string", "{\"action\":\"tool_call\",\"tool\":\"shell\",\"input\":{\"command\":\"a\n\tb\x01\"}}", "", []rnixctx.ToolCall{textCall("shell", `{"command":"a\n\tb\u0001"}`)}},
		{"unknown tool stays a call", `{"action":"tool_call","tool":"fly","input":{}}`, "", []rnixctx.ToolCall{textCall("fly", `{}`)}},
		{"several", `{"action":"tool_calls","calls":[{"tool":"read_file","input":{"path":"a"}},{"tool":"shell","input":{"command":"ls"}}]}`, "",
			[]rnixctx.ToolCall{textCall("read_file", `{"path":"a"}`), textCall("shell", `{"command":"ls"}`)}},
		{"several in a row", object + "\n" + `{"action":"complete","result":"ok"}`, "", []rnixctx.ToolCall{read[0], textCall("complete", `{"result":"ok"}`)}},
		{"a list of actions", "[" + object + ",\n" + object + "]", "", []rnixctx.ToolCall{read[0], read[0]}},
		{"complete", `{"action":"complete","result":"all {good}"}`, "", []rnixctx.ToolCall{textCall("complete", `{"result":"all {good}"}`)}},
		{"complete with an object", `{"action":"complete","result":{"n":1}}`, "", []rnixctx.ToolCall{textCall("complete", `{"result":"{\"n\":1}"}`)}},
		{"complete as a tool", `{"action":"tool_call","tool":"complete","input":{"result":"x"}}`, "", []rnixctx.ToolCall{textCall("complete", `{"result":"x"}`)}},
		{"plan", `{"action":"plan","steps":["a","b"],"thought":"why"}`, "why", []rnixctx.ToolCall{textCall("plan", `{"steps":["a","b"]}`)}},
		{"spawn", `{"action":"spawn","intent":"look","agent":"explorer"}`, "", []rnixctx.ToolCall{textCall("spawn", `{"agent":"explorer","intent":"look"}`)}},
		{"text", `{"action":"text","content":"hello"}`, "hello", nil},

		{"no action", "just words", "just words", nil},
		{"json without an action", `{"result":"x"}`, `{"result":"x"}`, nil},
		{"unknown action", `{"action":"click","x":1}`, `{"action":"click","x":1}`, nil},
		{"an action that is not offered", `{"action":"specialize","skill":"x"}`, `{"action":"specialize","skill":"x"}`, nil},
		{"no tool", `{"action":"tool_call","input":{}}`, `{"action":"tool_call","input":{}}`, nil},
		{"empty calls", `{"action":"tool_calls","calls":[]}`, `{"action":"tool_calls","calls":[]}`, nil},
		{"an action deeper down", `{"x":{"action":"complete","result":"r"}}`, `{"x":{"action":"complete","result":"r"}}`, nil},
		{"two with prose", "either " + object + " or " + object, "either " + object + " or " + object, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			content, calls := ParseTextAction(c.text, textTools)
			if content != c.content {
				t.Errorf("content = %q, want %q", content, c.content)
			}
			if d := cmp.Diff(c.calls, calls); d != "" {
				t.Errorf("calls (-want +got):\n%s", d)
			}
		})
	}
}

func TestCompleteIsTextWhereItIsNotOffered(t *testing.T) {
	content, calls := ParseTextAction(`{"action":"complete","result":"done"}`, textTools[:2])
	if content != "done" || calls != nil {
		t.Errorf("got %q %v", content, calls)
	}
}

func TestCutOffCallComesBackAsACallToMend(t *testing.T) {
	content, calls := ParseTextAction(`{"action":"tool_call","tool":"shell","input":{"command":"cat <<E`, textTools)
	if content != "" || len(calls) != 1 || calls[0].Name != "shell" || calls[0].ParseError == "" || !json.Valid(calls[0].Input) {
		t.Errorf("got %q %+v", content, calls)
	}
}

func TestActionTextIsReadBack(t *testing.T) {
	for _, calls := range [][]rnixctx.ToolCall{
		{textCall("read_file", `{"path":"<a>"}`)},
		{textCall("read_file", `{"path":"a"}`), textCall("complete", `{"result":"x"}`)},
	} {
		_, got := ParseTextAction(actionText(calls), textTools)
		if d := cmp.Diff(calls, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
}

func TestCallsGetIdsThatTheConversationDoesNotHave(t *testing.T) {
	calls := make([]rnixctx.ToolCall, 2)
	numberCalls(calls, []rnixctx.Message{{ToolCalls: []rnixctx.ToolCall{{ID: "call-7"}, {ID: "toolu_1"}}}})
	if calls[0].ID != "call-8" || calls[1].ID != "call-9" {
		t.Errorf("got %v", calls)
	}
}

func TestActionSchemaAcceptsTheFormsThatThePromptShows(t *testing.T) {
	c := jsonschema.NewCompiler()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(ActionSchema(textTools))))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AddResource("action.json", doc); err != nil {
		t.Fatal(err)
	}
	s := c.MustCompile("action.json")
	for text, ok := range map[string]bool{
		`{"action":"tool_call","tool":"shell","input":{"command":"ls"}}`:              true,
		`{"action":"tool_calls","calls":[{"tool":"shell","input":{"command":"ls"}}]}`: true,
		`{"action":"complete","result":"x","thought":"y"}`:                            true,
		`{"action":"plan","steps":["a"]}`:                                             true,
		`{"action":"tool_call","tool":"fly","input":{}}`:                              false,
		`{"action":"dance"}`: false, `{"result":"x"}`: false, `{"action":"complete","result":1}`: false,
	} {
		v, _ := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err := s.Validate(v); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
	if ActionSchema(nil) != nil || TextToolPrompt(nil) != "" {
		t.Error("without tools there is nothing to say")
	}
}

func TestTextToolPromptIsTheSameEachTime(t *testing.T) {
	goldenFile(t, "texttools.md", TextToolPrompt(textTools))
}

func FuzzParseTextAction(f *testing.F) {
	f.Add(`x {"action":"tool_call","tool":"shell","input":{"command":"ls"}} y`)
	f.Add("```json\n{\"action\":\"tool_calls\",\"calls\":[{\"tool\":\"a\"}]}\n```")
	f.Add(`{"action":"complete","result":{"a":[1]}}{"action":"plan"}`)
	f.Add(`{"action":"tool_call","tool":"shell","input":"\u0001`)
	f.Add(strings.Repeat(`{"a":`, 50) + `"action"`)
	f.Fuzz(func(t *testing.T, text string) {
		content, calls := ParseTextAction(text, textTools)
		if len(calls) == 0 && !strings.Contains(text, `"text"`) && !strings.Contains(text, `\u`) && content != text {
			t.Errorf("text without an action was changed: %q", content)
		}
		for _, c := range calls {
			if c.Name == "" || !json.Valid(c.Input) {
				t.Errorf("call %+v", c)
			}
		}
	})
}

// goldenFile compares got with testdata/name.
func goldenFile(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *updateGolden {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", file, d)
	}
}
