package llm_test

import (
	"net/http"
	"strings"
	"testing"

	rnixctx "rnix/context"
	"rnix/drivers/llm"
	"rnix/drivers/llm/llmtest"
	"rnix/types"
)

// stream is a raw answer of the given data lines.
func stream(lines ...string) llmtest.Reply {
	raw := ""
	for _, l := range lines {
		raw += "data: " + l + "\n\n"
	}
	return llmtest.Reply{Raw: raw, Header: http.Header{"Content-Type": {"text/event-stream"}}}
}

func TestVariantsOfServersAreUnderstood(t *testing.T) {
	for _, c := range []struct {
		name  string
		r     llmtest.Reply
		check func(r *llm.LLMResponse) bool
	}{
		{"every call has index 0", stream(
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{\"n\":1}"}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"b","function":{"name":"y","arguments":"{}"}}]}}]}`, `[DONE]`),
			func(r *llm.LLMResponse) bool {
				return len(r.ToolCalls) == 2 && r.ToolCalls[1].ID == "b" && string(r.ToolCalls[0].Input) == `{"n":1}`
			}},
		{"no index, no id, arguments as an object", stream(
			`{"choices":[{"delta":{"tool_calls":[{"function":{"name":"x","arguments":{"n":1}}},{"function":{"name":"y","arguments":"{}"}}]},"finish_reason":"stop"}]}`, `[DONE]`),
			func(r *llm.LLMResponse) bool {
				return len(r.ToolCalls) == 2 && string(r.ToolCalls[0].Input) == `{"n":1}` && r.ToolCalls[1].ID != r.ToolCalls[0].ID && r.StopReason == "tool_use"
			}},
		{"the name in every piece", stream(
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{"}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"}"}}]}}]}`, `[DONE]`),
			func(r *llm.LLMResponse) bool {
				return len(r.ToolCalls) == 1 && r.ToolCalls[0].Name == "x" && string(r.ToolCalls[0].Input) == "{}"
			}},
		{"reasoning", stream(`{"choices":[{"delta":{"reasoning":"hm"}}]}`, `{"choices":[{"delta":{"content":"ok"},"finish_reason":"length"}]}`, `[DONE]`),
			func(r *llm.LLMResponse) bool {
				return r.Reasoning == "hm" && r.Content == "ok" && r.StopReason == "max_tokens" && len(r.Blocks) == 0
			}},
		{"text in parts, usage of groq", stream(`{"choices":[{"delta":{"content":[{"type":"text","text":"ok"}]}}],"x_groq":{"usage":{"prompt_tokens":7,"completion_tokens":1}}}`, `[DONE]`),
			func(r *llm.LLMResponse) bool { return r.Content == "ok" && r.Usage == llm.Usage{Input: 7, Output: 1} }},
		{"cache of deepseek", stream(`{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":1,"prompt_cache_hit_tokens":5}}`, `[DONE]`),
			func(r *llm.LLMResponse) bool { return r.Usage == llm.Usage{Input: 2, Output: 1, CacheRead: 5} }},
		{"refusal", stream(`{"choices":[{"delta":{"refusal":"no"},"finish_reason":"stop"}]}`, `[DONE]`),
			func(r *llm.LLMResponse) bool { return r.Content == "no" && r.StopReason == "refusal" }},
		{"no line behind the end", llmtest.Reply{Raw: "data: {\"choices\":[{\"delta\":{\"content\":\"ok\"}}]}\r\n\r\ndata: [DONE]"},
			func(r *llm.LLMResponse) bool { return r.Content == "ok" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, _ := openai(t, reply(c.r))
			resp, err := d.Call(t.Context(), llm.LLMRequest{Intent: "x"})
			if err != nil || !c.check(resp) {
				t.Errorf("%+v, %v", resp, err)
			}
		})
	}
}

func TestRefusedOptionsAreLearned(t *testing.T) {
	d, api := openai(t, func(r llmtest.Request) llmtest.Reply {
		for option, message := range map[string]string{
			`"max_tokens"`:     "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
			`"stream_options"`: "Unknown field: stream_options",
		} {
			if strings.Contains(string(r.Body), option) {
				return llmtest.Reply{Status: 400, Text: message}
			}
		}
		return llmtest.Reply{Text: "ok"}
	})
	for range 2 {
		if resp, err := d.Call(t.Context(), llm.LLMRequest{Intent: "x", MaxTokens: 100}); err != nil || resp.Content != "ok" {
			t.Fatalf("%+v, %v", resp, err)
		}
	}
	if n := len(api.Requests()); n != 4 {
		t.Errorf("asked %d times, want 3 and then 1", n)
	}
}

func TestTheVendorsServerIsToldTheSession(t *testing.T) {
	knows := true
	api, url := llmtest.NewChatAPI(t, func(r llmtest.Request) llmtest.Reply {
		if !knows && strings.Contains(string(r.Body), "prompt_cache_key") {
			return llmtest.Reply{Status: 400, Text: "Unknown parameter: prompt_cache_key"}
		}
		return llmtest.Reply{Text: "ok"}
	})
	ask := func(vendor bool) (bodies []string) {
		d, err := llm.NewOpenAI(llm.HTTPConfig{BaseURL: url + "/v1", Model: "m", CacheKey: vendor})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		before := len(api.Requests())
		for range 2 {
			if _, err := d.Call(t.Context(), llm.LLMRequest{Intent: "x", Session: "the-session"}); err != nil {
				t.Fatal(err)
			}
		}
		for _, r := range api.Requests()[before:] {
			bodies = append(bodies, string(r.Body))
		}
		return bodies
	}
	if b := ask(true); len(b) != 2 || !strings.Contains(b[0], `"prompt_cache_key":"the-session"`) || !strings.Contains(b[1], `"prompt_cache_key":"the-session"`) {
		t.Errorf("the vendor's was told %q", b)
	}
	if b := ask(false); len(b) != 2 || strings.Contains(b[0], "prompt_cache_key") {
		t.Errorf("another one was told %q", b)
	}
	knows = false
	if b := ask(true); len(b) != 3 || strings.Contains(b[1], "prompt_cache_key") || strings.Contains(b[2], "prompt_cache_key") {
		t.Errorf("one that does not know it was told %q", b)
	}
}

func TestRefusalThatStaysIsNotRepeated(t *testing.T) {
	d, api := openai(t, reply(llmtest.Reply{Status: 400, Text: "max_completion_tokens is too large"}))
	_, err := d.Call(t.Context(), llm.LLMRequest{Intent: "x", MaxTokens: 100})
	if types.CodeOf(err) != types.ErrInvalid || len(api.Requests()) != 2 {
		t.Errorf("asked %d times: %v", len(api.Requests()), err)
	}
}

func TestReasoningGoesBackWithItsCalls(t *testing.T) {
	d, api := openai(t, func(r llmtest.Request) llmtest.Reply {
		if r.N == 0 {
			return llmtest.Reply{Reasoning: "because", ToolCalls: []llmtest.ToolCall{{ID: "1", Name: "look", Input: "{}"}}}
		}
		return llmtest.Reply{Text: "ok"}
	})
	resp, err := d.Call(t.Context(), llm.LLMRequest{Intent: "x"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.Call(t.Context(), llm.LLMRequest{Messages: []rnixctx.Message{{Role: rnixctx.RoleUser, Content: "x"},
		{Role: rnixctx.RoleAssistant, ToolCalls: resp.ToolCalls, Reasoning: resp.Blocks}, {Role: rnixctx.RoleTool, ToolCallID: "1", IsError: true}}})
	if body := string(api.Requests()[1].Body); err != nil || !strings.Contains(body, `"content":null,"reasoning_content":"because"`) || !strings.Contains(body, `"Error: (no output)"`) {
		t.Errorf("%s, %v", body, err)
	}
}
