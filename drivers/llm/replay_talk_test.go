package llm_test

import (
	"strings"
	"testing"

	rnixctx "rnix/context"
	"rnix/drivers/llm"
	"rnix/types"
)

const talks = `
version: "1"
conversations:
  - system: one file
    prompt: 'Read (?P<file>\S+) for (\w+)'
    responses:
      - content: Reading $${file}.
        tool_calls:
          - {name: read_file, input: {path: "${file}", deep: [{who: "${2}"}], n: 3}}
          - {name: raw, input: "{\"x\": \"${1}\"}"}
      - content: "first ${result.1}, last ${result}, ${0}"
  - prompt: '^Read'
    responses: [{content: any reader}]
  - system: one file
    responses: [{content: "${result}"}]
`

func TestReplayPlaysTheConversationThatFits(t *testing.T) {
	d := replay(t, talks)
	first := rnixctx.Message{Role: rnixctx.RoleUser, Content: "Please Read a/${b}.go for ann"}
	r, err := d.Call(t.Context(), llm.LLMRequest{Session: "a", SystemPrompt: "You read one file.", Messages: []rnixctx.Message{first}})
	if err != nil || r.Content != "Reading ${file}." || len(r.ToolCalls) != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	// What is put in is no template itself, and cannot leave its place.
	if got := string(r.ToolCalls[0].Input); got != `{"deep":[{"who":"ann"}],"n":3,"path":"a/${b}.go"}` {
		t.Errorf("input is %s", got)
	}
	if got := string(r.ToolCalls[1].Input); got != `{"x": "a/${b}.go"}` {
		t.Errorf("input is %s", got)
	}
	told := []rnixctx.Message{first, {Role: rnixctx.RoleAssistant, Content: r.Content, ToolCalls: r.ToolCalls},
		{Role: rnixctx.RoleTool, ToolCallID: r.ToolCalls[0].ID, Content: "one\n"}, {Role: rnixctx.RoleTool, ToolCallID: r.ToolCalls[1].ID, Content: "two"}}
	const want = "first one, last two, Read a/${b}.go for ann"
	for _, session := range []string{"a", "resumed"} {
		if r, err = d.Call(t.Context(), llm.LLMRequest{Session: session, SystemPrompt: "You read one file.", Messages: told}); err != nil || r.Content != want {
			t.Errorf("%s: %+v, %v", session, r, err)
		}
	}
	if _, err = d.Call(t.Context(), llm.LLMRequest{Session: "a", Messages: told}); types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), "2 responses and was asked for response 3") {
		t.Errorf("error is %v", err)
	}

	if r, err = d.Call(t.Context(), llm.LLMRequest{Session: "b", Intent: "Read all"}); err != nil || r.Content != "any reader" {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err = d.Call(t.Context(), llm.LLMRequest{Session: "c", Intent: "Write"}); types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), `no conversation that begins with "Write"`) {
		t.Errorf("error is %v", err)
	}
	if _, err = d.Call(t.Context(), llm.LLMRequest{Session: "d", SystemPrompt: "one file", Intent: "x"}); types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), "${result} stands for nothing here: the conversation has 0 results") {
		t.Errorf("error is %v", err)
	}
}

func TestMistakesInConversationsAreNamed(t *testing.T) {
	for in, want := range map[string]string{
		"responses: []\nconversations: [{prompt: x}]":                                          "responses and conversations: write one of them",
		"conversations: [{prompt: '('}]":                                                       "conversation 1: prompt: error parsing regexp",
		"conversations: [{}, {system: '*'}]":                                                   "script.yaml:2:21: conversation 2: system: error parsing regexp",
		"conversations: [{responses: [{content: '${1}'}]}]":                                    "script.yaml:2:30: conversation 1: response 1: ${1} stands for nothing",
		"conversations: [{prompt: '(a)', responses: [{content: '${2}'}]}]":                     "${2} stands for nothing",
		"conversations: [{responses: [{content: '${result.0}'}]}]":                             "${result.0} stands for nothing",
		"conversations: [{responses: [{tool_calls: [{name: x, input: {a: ['${nosuch}']}}]}]}]": "response 1: ${nosuch} stands for nothing",
		"conversations: [{responses: [{error: {code: OOPS}}]}]":                                `conversation 1: response 1: invalid error code "OOPS"`,
		"conversations: [{reponses: []}]":                                                      `unknown key "reponses"`,
	} {
		_, err := llm.ParseReplay("", "script.yaml", []byte("version: \"1\"\n"+in+"\n"))
		if types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
	}
}
