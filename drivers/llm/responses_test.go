package llm_test

import (
	"encoding/json"
	"strings"
	"testing"

	rnixctx "rnix/context"
	"rnix/drivers/llm"
	"rnix/drivers/llm/llmtest"
	"rnix/types"
)

func responses(t *testing.T, script func(llmtest.Request) llmtest.Reply, change ...func(*llm.HTTPConfig)) (*llm.ResponsesDriver, *llmtest.API) {
	t.Helper()
	api, url := llmtest.NewChatAPI(t, script)
	cfg := llm.HTTPConfig{BaseURL: url, Model: "fake-1"}
	for _, f := range change {
		f(&cfg)
	}
	d, err := llm.NewResponses(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d, api
}

func TestResponsesPassesTheSuite(t *testing.T) {
	llmtest.Run(t, func(t *testing.T) llm.LLMDriver { d, _ := responses(t, llmtest.SuiteScript); return d }, llmtest.Caps{})
}

// asked is a request of the driver, as the API sees it.
type sentResponses struct {
	Store        *bool
	Include      []string
	CacheKey     string `json:"prompt_cache_key"`
	MaxTokens    int    `json:"max_output_tokens"`
	Instructions string
	Reasoning    map[string]string
	Input        []struct {
		Type, Role, Output, Arguments string
		Encrypted                     string `json:"encrypted_content"`
		CallID                        string `json:"call_id"`
	}
}

func sentTo(t *testing.T, api *llmtest.API, n int) (out sentResponses) {
	t.Helper()
	if err := json.Unmarshal(api.Requests()[n].Body, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestWhatAModelThoughtGoesBackWithItsCalls says that reasoning comes encrypted, is kept in the message, and goes back before the calls to which it led,
// also after the message has been on disk.
func TestWhatAModelThoughtGoesBackWithItsCalls(t *testing.T) {
	d, api := responses(t, func(r llmtest.Request) llmtest.Reply {
		if r.N == 0 {
			return llmtest.Reply{Reasoning: "First I look.", Text: "I look.", ToolCalls: []llmtest.ToolCall{{ID: "c1", Name: "look", Input: `{"a":1}`}, {ID: "c2", Name: "look", Input: `{}`}},
				Usage: &llmtest.Usage{Input: 10, Output: 7, CacheRead: 4}}
		}
		return llmtest.Reply{Text: "done"}
	}, func(c *llm.HTTPConfig) { c.CacheKey, c.Effort = true, "high" })
	req := llm.LLMRequest{SystemPrompt: "S", Session: "id", Messages: []rnixctx.Message{{Role: rnixctx.RoleUser, Content: "go"}}}
	r, err := d.Call(t.Context(), req)
	if err != nil || r.Content != "I look." || r.Reasoning != "First I look." || len(r.ToolCalls) != 2 || len(r.Blocks) != 1 || r.StopReason != "tool_use" || r.Usage != (llm.Usage{Input: 10, Output: 7, CacheRead: 4}) {
		t.Fatalf("%+v %v", r, err)
	}
	first := sentTo(t, api, 0)
	if first.Store == nil || *first.Store || strings.Join(first.Include, "") != "reasoning.encrypted_content" || first.CacheKey != "id" || first.Instructions != "S" || first.Reasoning["effort"] != "high" {
		t.Errorf("%+v", first)
	}
	said := rnixctx.Message{Role: rnixctx.RoleAssistant, Content: r.Content, ToolCalls: r.ToolCalls, Reasoning: r.Blocks}
	disk, err := json.Marshal(said)
	if err == nil {
		said = rnixctx.Message{}
		err = json.Unmarshal(disk, &said)
	}
	if err != nil {
		t.Fatal(err)
	}
	req.Messages = append(req.Messages, said, rnixctx.Message{Role: rnixctx.RoleTool, ToolCallID: "c1", Content: "seen"}, rnixctx.Message{Role: rnixctx.RoleTool, ToolCallID: "c2", Content: "no", IsError: true})
	if r, err = d.Call(t.Context(), req); err != nil || r.Content != "done" {
		t.Fatalf("%+v %v", r, err)
	}
	var kinds []string
	second := sentTo(t, api, 1)
	for _, i := range second.Input {
		kinds = append(kinds, i.Type)
	}
	if got := strings.Join(kinds, " "); got != "message reasoning message function_call function_call function_call_output function_call_output" || second.Input[1].Encrypted != "sealed:First I look." || second.Input[6].Output != "Error: no" {
		t.Errorf("%s %+v", got, second.Input)
	}
	// Another provider's model does not get it.
	other, api := responses(t, nil, func(c *llm.HTTPConfig) { c.Name = "other" })
	if _, err := other.Call(t.Context(), req); err != nil || strings.Contains(string(api.Requests()[0].Body), "sealed") {
		t.Errorf("%v", err)
	}
}

func TestThoughtsThatTheVendorDoesNotKnowAreLeftOut(t *testing.T) {
	d, api := responses(t, func(r llmtest.Request) llmtest.Reply {
		if strings.Contains(string(r.Body), "sealed") {
			return llmtest.Reply{Status: 400, Text: "The encrypted content gAAA could not be verified."}
		}
		return llmtest.Reply{Text: "ok"}
	})
	block := rnixctx.Block{Provider: "openai", Data: json.RawMessage(`{"at":0,"item":{"type":"reasoning","id":"r","summary":[],"encrypted_content":"sealed"}}`)}
	req := llm.LLMRequest{Messages: []rnixctx.Message{{Role: rnixctx.RoleUser, Content: "go"}, {Role: rnixctx.RoleAssistant, Content: "well", Reasoning: []rnixctx.Block{block}}, {Role: rnixctx.RoleUser, Content: "on"}}}
	if r, err := d.Call(t.Context(), req); err != nil || r.Content != "ok" || len(api.Requests()) != 2 || len(sentTo(t, api, 1).Include) != 1 {
		t.Fatalf("%+v %v, asked %d times", r, err, len(api.Requests()))
	}
}

func TestWhatAModelDoesNotTakeIsLearned(t *testing.T) {
	d, api := responses(t, func(r llmtest.Request) llmtest.Reply {
		for option, message := range map[string]string{
			`"include"`:          "Encrypted content is not supported with this model.",
			`"summary"`:          "Your organization must be verified to generate reasoning summaries.",
			`"prompt_cache_key"`: "Unknown parameter: 'prompt_cache_key'.",
		} {
			if r.Model == "small" && strings.Contains(string(r.Body), option) {
				return llmtest.Reply{Status: 400, Text: message}
			}
		}
		return llmtest.Reply{Text: "ok"}
	}, func(c *llm.HTTPConfig) { c.CacheKey = true })
	for range 2 {
		if r, err := d.Call(t.Context(), llm.LLMRequest{Intent: "x", Model: "small", Session: "s"}); err != nil || r.Content != "ok" {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	n := len(api.Requests())
	if n < 3 || n > 5 {
		t.Errorf("asked %d times", n)
	}
	if _, err := d.Call(t.Context(), llm.LLMRequest{Intent: "x", Model: "large", Session: "s"}); err != nil || sentTo(t, api, n).CacheKey != "s" || len(sentTo(t, api, n).Include) != 1 {
		t.Errorf("another model is asked without: %v %+v", err, sentTo(t, api, n))
	}
}

func TestVariantsOfResponsesAreUnderstood(t *testing.T) {
	const begin = `{"type":"response.created","response":{"model":"m-1","status":"in_progress"}}`
	for _, c := range []struct {
		name  string
		r     llmtest.Reply
		code  types.ErrCode
		check func(r *llm.LLMResponse) bool
	}{
		{"a message that does not come in pieces", stream(begin, `{"type":"response.output_item.added","item":{"type":"message"}}`, `{"type":"response.output_item.done","item":{"type":"message","content":[{"type":"output_text","text":"ok"}]}}`,
			`{"type":"response.completed","response":{"usage":{"input_tokens":7,"output_tokens":2,"input_tokens_details":{"cached_tokens":3},"output_tokens_details":{"reasoning_tokens":1}}}}`), "",
			func(r *llm.LLMResponse) bool {
				return r.Content == "ok" && r.Model == "m-1" && r.Usage == llm.Usage{Input: 4, Output: 2, CacheRead: 3} && r.StopReason == "end_turn"
			}},
		{"events that are newer than we", stream(begin, `{"type":"response.new_thing","x":1}`, `{"type":"response.output_text.delta","delta":"ok"}`, `{"type":"response.completed","response":{}}`), "",
			func(r *llm.LLMResponse) bool { return r.Content == "ok" && r.Usage.Estimated }},
		{"a refusal", stream(`{"type":"response.refusal.delta","delta":"no"}`, `{"type":"response.completed","response":{}}`), "",
			func(r *llm.LLMResponse) bool { return r.Content == "no" && r.StopReason == "refusal" }},
		{"cut by its bound", llmtest.Reply{Text: "half", Stop: "max_output_tokens"}, "", func(r *llm.LLMResponse) bool { return r.Content == "half" && r.StopReason == "max_tokens" }},
		{"filtered", llmtest.Reply{Text: "half", Stop: "content_filter"}, "", func(r *llm.LLMResponse) bool { return r.StopReason == "refusal" }},
		{"arguments that are none", llmtest.Reply{ToolCalls: []llmtest.ToolCall{{ID: "a", Name: "x", Input: "{"}}}, "", func(r *llm.LLMResponse) bool { return r.ToolCalls[0].ParseError != "" }},
		{"reasoning that is not encrypted", stream(`{"type":"response.reasoning_text.delta","delta":"hm"}`, `{"type":"response.output_item.done","item":{"type":"reasoning","id":"r"}}`, `{"type":"response.completed","response":{}}`), "",
			func(r *llm.LLMResponse) bool { return r.Reasoning == "hm" && len(r.Blocks) == 0 }},
		{"failed", stream(begin, `{"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"slow down"}}}`), types.ErrRateLimited, nil},
		{"too long", stream(begin, `{"type":"response.failed","response":{"error":{"code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}}}`), types.ErrInvalid, nil},
		{"an error event", stream(begin, `{"type":"error","code":"server_error","message":"oops"}`), types.ErrUnavailable, nil},
		{"another end", stream(begin, `{"type":"response.incomplete","response":{"incomplete_details":{"reason":"new"}}}`), types.ErrUnavailable, nil},
		{"cut off", stream(begin, `{"type":"response.output_text.delta","delta":"ok"}`), types.ErrUnavailable, nil},
		{"garbled", stream(begin, `{"type":`), types.ErrUnavailable, nil},
		{"no item", stream(begin, `{"type":"response.output_item.done","item":7}`), types.ErrUnavailable, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, _ := responses(t, reply(c.r))
			resp, err := d.Call(t.Context(), llm.LLMRequest{Intent: "x"})
			if types.CodeOf(err) != c.code || err == nil && !c.check(resp) {
				t.Errorf("%+v, %v", resp, err)
			}
		})
	}
}
