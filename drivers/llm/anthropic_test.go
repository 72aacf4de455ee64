package llm_test

import (
	"encoding/json"
	"strings"
	"testing"

	rnixctx "rnix/context"
	"rnix/drivers/llm"
	"rnix/drivers/llm/llmtest"
)

func TestThinkingGoesBackUnchanged(t *testing.T) {
	d, api := anthropic(t, func(r llmtest.Request) llmtest.Reply {
		if r.N == 0 {
			return llmtest.Reply{Reasoning: "let me <think>", ToolCalls: []llmtest.ToolCall{{ID: "t1", Name: "look", Input: `{}`}}}
		}
		return llmtest.Reply{Text: "done"}
	})
	req := llm.LLMRequest{Messages: []rnixctx.Message{{Role: rnixctx.RoleUser, Content: "go"}}}
	resp, err := d.Call(t.Context(), req)
	if err != nil || resp.Reasoning != "let me <think>" || len(resp.Blocks) != 1 {
		t.Fatalf("%+v, %v", resp, err)
	}
	foreign := rnixctx.Block{Provider: "another", Data: json.RawMessage(`{"type":"alien"}`)}
	req.Messages = append(req.Messages,
		rnixctx.Message{Role: rnixctx.RoleAssistant, ToolCalls: resp.ToolCalls, Reasoning: append(resp.Blocks, foreign)},
		rnixctx.Message{Role: rnixctx.RoleTool, ToolCallID: "t1", Content: "found"})
	if _, err := d.Call(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	body := string(api.Requests()[1].Body)
	if !strings.Contains(body, `{"signature":"fake","thinking":"let me <think>","type":"thinking"}`) || strings.Contains(body, "alien") {
		t.Errorf("second request is %s", body)
	}
}

func TestCacheMarksStandWhereTheNextRequestNeedsThem(t *testing.T) {
	d, api := anthropic(t, nil)
	req := llm.LLMRequest{SystemPrompt: "Be brief.", Tools: []llm.ToolSpec{{Name: "a"}, {Name: "b"}}}
	for i := range 4 {
		req.Messages = append(req.Messages, rnixctx.Message{Role: rnixctx.RoleUser, Content: strings.Repeat("q", i+1)})
		resp, err := d.Call(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		req.Messages = append(req.Messages, rnixctx.Message{Role: rnixctx.RoleAssistant, Content: resp.Content})
	}
	var stripped []string
	mark := `,"cache_control":{"type":"ephemeral"}`
	for i, r := range api.Requests() {
		body := string(r.Body)
		if n := strings.Count(body, mark); n != min(i+3, 4) {
			t.Errorf("request %d has %d marks: %s", i, n, body)
		}
		stripped = append(stripped, strings.TrimSuffix(strings.ReplaceAll(body, mark, ""), "]}"))
	}
	for i := 1; i < len(stripped); i++ {
		if !strings.HasPrefix(stripped[i], stripped[i-1]) {
			t.Errorf("request %d does not begin like the one before:\n%s\n%s", i, stripped[i-1], stripped[i])
		}
	}
}

func TestThinkingAndEffortAreAskedFor(t *testing.T) {
	for _, c := range []struct {
		thinking int
		sent     string // "" = nothing
		most     int    // tokens of an answer, with those to think with
	}{
		{2000, `{"type":"enabled","budget_tokens":2000}`, 2500},
		{-1, `{"type":"adaptive"}`, 500},
		{0, "", 500},
	} {
		d, api := anthropic(t, nil, func(h *llm.HTTPConfig) { h.Thinking, h.Effort, h.MaxTokens = c.thinking, "low", 500 })
		for _, effort := range []string{"", "high"} {
			if _, err := d.Call(t.Context(), llm.LLMRequest{Intent: "x", Effort: effort}); err != nil {
				t.Fatal(err)
			}
		}
		for i, want := range []string{"low", "high"} {
			var body struct {
				MaxTokens int             `json:"max_tokens"`
				Thinking  json.RawMessage `json:"thinking"`
				Output    struct {
					Effort string `json:"effort"`
				} `json:"output_config"`
			}
			if err := json.Unmarshal(api.Requests()[i].Body, &body); err != nil {
				t.Fatal(err)
			}
			if string(body.Thinking) != c.sent || body.MaxTokens != c.most || body.Output.Effort != want {
				t.Errorf("thinking %d: request %d is %s", c.thinking, i, api.Requests()[i].Body)
			}
		}
	}
}

func TestNeighboursBecomeOneMessage(t *testing.T) {
	d, api := anthropic(t, nil)
	_, err := d.Call(t.Context(), llm.LLMRequest{Messages: []rnixctx.Message{
		{Role: rnixctx.RoleUser, Content: "one"}, {Role: rnixctx.RoleUser, Content: ""},
		{Role: rnixctx.RoleAssistant, Content: "two", ToolCalls: []rnixctx.ToolCall{{ID: "a", Name: "x"}, {ID: "b", Name: "y"}}},
		{Role: rnixctx.RoleTool, ToolCallID: "a", Content: "A"}, {Role: rnixctx.RoleTool, ToolCallID: "b", Content: "B"},
		{Role: rnixctx.RoleUser, Content: "three"}, {Role: rnixctx.RoleAssistant, Content: "four"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var roles []string
	for _, m := range api.Requests()[0].Messages {
		roles = append(roles, m.Role+":"+m.Text)
	}
	if got := strings.Join(roles, "|"); got != "user:one(empty)|assistant:two|user:three|assistant:four|user:Continue." {
		t.Errorf("messages are %s", got)
	}
}
