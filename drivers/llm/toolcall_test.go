package llm

import (
	"encoding/json"
	"strings"
	"testing"

	rnixctx "rnix/context"
)

// checkCalls checks what the kernel relies on in every answer.
func checkCalls(t *testing.T, r *LLMResponse) {
	t.Helper()
	seen := map[string]bool{}
	for _, c := range r.ToolCalls {
		if c.ID == "" || seen[c.ID] {
			t.Fatalf("id %q is empty or stands twice", c.ID)
		}
		seen[c.ID] = true
		if !json.Valid(c.Input) || c.ParseError == "" && c.Input[0] != '{' {
			t.Fatalf("input %q of %+v", c.Input, c)
		}
	}
}

func TestArgumentsThatAreNoObjectAreKeptAsText(t *testing.T) {
	for _, c := range []struct {
		args, input string
		bad         bool
	}{
		{"", "{}", false},
		{` {"a": 1} `, `{"a": 1}`, false},
		{`{"a":`, `"{\"a\":"`, true},
		{`[1]`, `"[1]"`, true},
		{`null`, `"null"`, true},
		{`hello "you"`, `"hello \"you\""`, true},
		{`{} {}`, `"{} {}"`, true},
	} {
		got := makeCall("1", "tool", c.args)
		if string(got.Input) != c.input || (got.ParseError != "") != c.bad {
			t.Errorf("%q: input %s, error %q", c.args, got.Input, got.ParseError)
		}
		if back := inputObject(got); back[0] != '{' || !json.Valid(back) {
			t.Errorf("%q goes back as %s", c.args, back)
		}
	}
}

func TestIDsAreUniqueInTheConversation(t *testing.T) {
	calls := []rnixctx.ToolCall{{ID: "call_0"}, {ID: ""}, {ID: "x"}, {ID: "x"}, {ID: strings.Repeat("y", 1000)}}
	identify(calls, []rnixctx.Message{{ToolCalls: []rnixctx.ToolCall{{ID: "call_0"}}}})
	seen := map[string]bool{"call_0": true}
	for _, c := range calls {
		if c.ID == "" || len(c.ID) > 100 || seen[c.ID] {
			t.Errorf("id %q", c.ID)
		}
		seen[c.ID] = true
	}
	if calls[2].ID != "x" {
		t.Errorf("a good id became %q", calls[2].ID)
	}
}

func TestConversationIsAlwaysLegal(t *testing.T) {
	call := func(ids ...string) rnixctx.Message {
		m := rnixctx.Message{Role: rnixctx.RoleAssistant}
		for _, id := range ids {
			m.ToolCalls = append(m.ToolCalls, rnixctx.ToolCall{ID: id, Name: "t", Input: json.RawMessage(`{}`)})
		}
		return m
	}
	say := func(r rnixctx.Role, text string) rnixctx.Message { return rnixctx.Message{Role: r, Content: text} }
	answer := func(id string) rnixctx.Message {
		return rnixctx.Message{Role: rnixctx.RoleTool, ToolCallID: id, Content: "ok"}
	}
	for name, ms := range map[string][]rnixctx.Message{
		"none":           nil,
		"begins wrong":   {say(rnixctx.RoleAssistant, "hi")},
		"lost answer":    {say(rnixctx.RoleUser, "x"), call("a", "b"), answer("b"), say(rnixctx.RoleUser, "y")},
		"lost at end":    {say(rnixctx.RoleUser, "x"), call("a")},
		"answer twice":   {say(rnixctx.RoleUser, "x"), call("a"), answer("a"), answer("a")},
		"orphan first":   {answer("z"), say(rnixctx.RoleUser, "x")},
		"system inside":  {say(rnixctx.RoleUser, "x"), say(rnixctx.RoleSystem, "be kind")},
		"silent":         {say(rnixctx.RoleUser, "x"), say(rnixctx.RoleAssistant, " \n"), say(rnixctx.RoleUser, "y")},
		"only silence":   {say(rnixctx.RoleAssistant, "")},
		"same id twice":  {say(rnixctx.RoleUser, "x"), call("a", "a", ""), answer("a")},
		"stranger":       {say("robot", "x")},
		"empty question": {say(rnixctx.RoleUser, "")},
	} {
		t.Run(name, func(t *testing.T) {
			got := conversation(LLMRequest{Intent: "go", Messages: ms})
			if err := rnixctx.Legal(got); err != nil || len(got) == 0 {
				t.Fatalf("%v: %+v", err, got)
			}
			for _, m := range anthropicMessages(shown{messages: got}, "p") {
				for _, b := range m.Content {
					if len(m.Content) == 0 || b.Type == "text" && strings.TrimSpace(b.Text) == "" {
						t.Errorf("empty content in %+v", m)
					}
				}
			}
		})
	}
}
