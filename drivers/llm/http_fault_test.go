package llm_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"rnix/drivers/llm"
	"rnix/drivers/llm/llmtest"
	"rnix/internal/soak"
	"rnix/types"
)

// both runs f against both HTTP drivers, each with an API that follows script.
func both(t *testing.T, script func(llmtest.Request) llmtest.Reply, f func(t *testing.T, d llm.LLMDriver, api *llmtest.API), change ...func(*llm.HTTPConfig)) {
	t.Helper()
	t.Run("anthropic", func(t *testing.T) {
		d, api := anthropic(t, script, change...)
		f(t, d, api)
	})
	t.Run("openai", func(t *testing.T) {
		d, api := openai(t, script, change...)
		f(t, d, api)
	})
}

func reply(r llmtest.Reply) func(llmtest.Request) llmtest.Reply {
	return func(llmtest.Request) llmtest.Reply { return r }
}

func TestRefusalsHaveTheRightCode(t *testing.T) {
	for _, c := range []struct {
		name string
		r    llmtest.Reply
		code types.ErrCode
		text string
	}{
		{"bad key", llmtest.Reply{Status: 401, Text: "invalid key"}, types.ErrAuth, "invalid key"},
		{"forbidden", llmtest.Reply{Status: 403, Text: "not for you"}, types.ErrAuth, ""},
		{"no credit", llmtest.Reply{Status: 400, Text: "Your credit balance is too low"}, types.ErrAuth, "no credit"},
		{"quota", llmtest.Reply{Status: 429, Raw: `{"error":{"message":"pay","type":"insufficient_quota","code":"insufficient_quota"}}`}, types.ErrAuth, "no credit"},
		{"no model", llmtest.Reply{Status: 404, Text: "model: fake-1"}, types.ErrNotFound, `no model "fake-1"`},
		{"bad request", llmtest.Reply{Status: 400, Text: "temperature: too hot"}, types.ErrInvalid, "too hot"},
		{"too long 1", llmtest.Reply{Status: 400, Text: "prompt is too long: 200001 tokens > 200000 maximum"}, types.ErrInvalid, "prompt is too long"},
		{"too long 2", llmtest.Reply{Status: 400, Raw: `{"error":{"message":"This model's maximum context length is 8192 tokens","code":"context_length_exceeded"}}`}, types.ErrInvalid, "prompt is too long"},
		{"too long 3", llmtest.Reply{Status: 400, Raw: `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`}, types.ErrInvalid, "prompt is too long"},
		{"too large", llmtest.Reply{Status: 413, Text: "Request too large"}, types.ErrInvalid, "prompt is too long"},
		{"no tools 1", llmtest.Reply{Status: 400, Raw: `{"error":{"message":"registry/gemma does not support tools","type":"api_error"}}`}, types.ErrInvalid, "does not support tool calls"},
		{"no tools 2", llmtest.Reply{Status: 500, Raw: `{"error":{"code":500,"message":"tools param requires --jinja flag"}}`}, types.ErrInvalid, "does not support tool calls"},
		{"limit", llmtest.Reply{Status: 429, Text: "slow down"}, types.ErrRateLimited, "slow down"},
		{"overloaded", llmtest.Reply{Status: 529, Text: "overloaded"}, types.ErrUnavailable, "overloaded"},
		{"broken", llmtest.Reply{Status: 500, Raw: "<html>oops</html>"}, types.ErrUnavailable, "500"},
		{"gateway", llmtest.Reply{Status: 502, Raw: "upstream is away\nstack"}, types.ErrUnavailable, "upstream is away"},
		{"detail", llmtest.Reply{Status: 422, Raw: `{"detail":[{"loc":["body"],"msg":"field required"}]}`}, types.ErrInvalid, "field required"},
		{"web page", llmtest.Reply{Raw: "<html>welcome</html>", Header: http.Header{"Content-Type": {"text/html; charset=utf-8"}}}, types.ErrDriver, "check base_url"},
		{"json", llmtest.Reply{Raw: `{"ok":true}`, Header: http.Header{"Content-Type": {"application/json"}}}, types.ErrDriver, "check base_url"},
		{"json error with 200", llmtest.Reply{Raw: `{"error":{"type":"authentication_error","message":"who?"}}`, Header: http.Header{"Content-Type": {"application/json"}}}, types.ErrAuth, "who?"},
		{"garbage", llmtest.Reply{Raw: "data: {\"a\n\ndata: x\n\n", Header: http.Header{"Content-Type": {"text/event-stream"}}}, types.ErrUnavailable, "garbled"},
		{"plain text", llmtest.Reply{Raw: "hello", Header: http.Header{"Content-Type": {"text/plain"}}}, types.ErrUnavailable, "cut"},
		{"nothing", llmtest.Reply{Raw: " "}, types.ErrUnavailable, "cut"},
		{"cut", llmtest.Reply{Text: "half", Cut: true}, types.ErrUnavailable, "cut"},
		{"reset", llmtest.Reply{Text: "half", Reset: true}, types.ErrUnavailable, ""},
		{"overloaded inside", llmtest.Reply{Text: "half", MidError: "overloaded_error"}, types.ErrUnavailable, ""},
		{"limit inside", llmtest.Reply{Text: "half", MidError: "rate_limit_error"}, types.ErrRateLimited, ""},
		{"refused inside", llmtest.Reply{Text: "half", MidError: "invalid_request_error"}, types.ErrInvalid, ""},
		{"elsewhere", llmtest.Reply{Status: 307, Raw: " ", Header: http.Header{"Location": {"http://127.0.0.1:1/steal"}}}, types.ErrDriver, "check base_url"},
	} {
		t.Run(c.name, func(t *testing.T) {
			both(t, reply(c.r), func(t *testing.T, d llm.LLMDriver, _ *llmtest.API) {
				_, err := d.Call(t.Context(), llm.LLMRequest{Intent: "hi"})
				if types.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.text) {
					t.Errorf("error is %v with code %s, want %s with %q", err, types.CodeOf(err), c.code, c.text)
				}
				if s := fmt.Sprintf("HTTP %d", c.r.Status); c.r.Status >= 400 && strings.Count(err.Error(), s) != 1 || strings.Count(err.Error(), "Call ") > 1 {
					t.Errorf("%v does not name %s once, or the call twice", err, s)
				}
			})
		})
	}
}

func TestServerThatIsNotThereIsUnavailable(t *testing.T) {
	d, err := llm.NewOpenAI(llm.HTTPConfig{BaseURL: "http://127.0.0.1:1/v1", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Call(t.Context(), llm.LLMRequest{Intent: "hi"}); types.CodeOf(err) != types.ErrUnavailable || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("error is %v", err)
	}
}

func TestRetryAfterIsRead(t *testing.T) {
	inAnHour := time.Now().Add(time.Hour)
	for name, c := range map[string]struct {
		h        http.Header
		min, max time.Duration
	}{
		"seconds":     {http.Header{"Retry-After": {"7"}}, 7 * time.Second, 7 * time.Second},
		"fraction":    {http.Header{"Retry-After": {"0.5"}}, time.Second / 2, time.Second / 2},
		"ms":          {http.Header{"Retry-After-Ms": {"250"}, "Retry-After": {"9"}}, 250 * time.Millisecond, 250 * time.Millisecond},
		"date":        {http.Header{"Retry-After": {inAnHour.UTC().Format(http.TimeFormat)}}, 50 * time.Minute, time.Hour},
		"past":        {http.Header{"Retry-After": {"-3"}}, 0, 0},
		"nonsense":    {http.Header{"Retry-After": {"soon"}}, 0, 0},
		"overflow":    {http.Header{"Retry-After": {"1e300"}}, 0, 0},
		"none":        {nil, 0, 0},
		"used up":     {http.Header{"Anthropic-Ratelimit-Tokens-Reset": {inAnHour.Format(time.RFC3339)}, "Anthropic-Ratelimit-Tokens-Remaining": {"0"}, "Anthropic-Ratelimit-Requests-Reset": {time.Now().Add(time.Second).Format(time.RFC3339)}}, 50 * time.Minute, time.Hour},
		"duration":    {http.Header{"X-Ratelimit-Reset-Tokens": {"6m0s"}, "X-Ratelimit-Remaining-Tokens": {"0"}, "X-Ratelimit-Reset-Requests": {"1h"}}, 6 * time.Minute, 6 * time.Minute},
		"none marked": {http.Header{"X-Ratelimit-Reset-Tokens": {"20s"}, "X-Ratelimit-Reset-Requests": {"10s"}}, 10 * time.Second, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, reply(llmtest.Reply{Status: 429, Text: "slow down", Header: c.h}), func(t *testing.T, d llm.LLMDriver, _ *llmtest.API) {
				_, err := d.Call(t.Context(), llm.LLMRequest{Intent: "hi"})
				var limit *llm.RateLimit
				if !errors.As(err, &limit) || limit.RetryAfter < c.min || limit.RetryAfter > c.max {
					t.Errorf("error is %v, want a wait of %v to %v", err, c.min, c.max)
				}
			})
		})
	}
}

func TestSilenceIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		r    llmtest.Reply
		code types.ErrCode
		text string
		set  func(c *llm.HTTPConfig)
	}{
		"no first byte": {llmtest.Reply{Delay: time.Hour}, types.ErrTimeout, "no answer within", func(c *llm.HTTPConfig) { c.FirstByteTimeout = 100 * time.Millisecond }},
		"no content":    {llmtest.Reply{Text: "half", Ping: 20 * time.Millisecond}, types.ErrUnavailable, "no piece of the answer came for", func(c *llm.HTTPConfig) { c.SilenceTimeout = 200 * time.Millisecond }},
		"stall":         {llmtest.Reply{Text: "half", Hang: true}, types.ErrUnavailable, "stalled", func(c *llm.HTTPConfig) { c.IdleTimeout = 100 * time.Millisecond }},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, reply(c.r), func(t *testing.T, d llm.LLMDriver, _ *llmtest.API) {
				_, err := d.Call(t.Context(), llm.LLMRequest{Intent: "hi"})
				if types.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.text) {
					t.Errorf("error is %v", err)
				}
			}, c.set)
		})
	}
}

func TestHugeAnswerIsRefusedInBoundedMemory(t *testing.T) {
	size := soak.Pick(t, "MiB of the largest answer", 4, 64)
	r := llmtest.Reply{Text: strings.Repeat("x", 1<<20), Endless: true}
	both(t, reply(r), func(t *testing.T, d llm.LLMDriver, _ *llmtest.API) {
		_, err := d.Call(t.Context(), llm.LLMRequest{Intent: "hi"})
		if types.CodeOf(err) != types.ErrDriver || !strings.Contains(err.Error(), fmt.Sprintf("larger than %d MiB", size)) {
			t.Errorf("error is %v", err)
		}
	}, func(c *llm.HTTPConfig) {
		if size < 64 { // which is the default
			c.MaxAnswer = int64(size) << 20
		}
	})
}

func TestKeysAreSentAndNeverShown(t *testing.T) {
	t.Setenv("TEST_LLM_KEY", "sk-very-secret-123\n")
	withKey := func(c *llm.HTTPConfig) {
		c.APIKeyEnv, c.Headers = "TEST_LLM_KEY", map[string]string{"X-Gateway": "gate-secret"}
	}
	for _, status := range []int{401, 400, 429, 500} {
		script := reply(llmtest.Reply{Status: status, Text: "not good: sk-very-secret-123 and gate-secret"})
		both(t, script, func(t *testing.T, d llm.LLMDriver, api *llmtest.API) {
			_, err := d.Call(t.Context(), llm.LLMRequest{Intent: "hi"})
			if err == nil || strings.Contains(err.Error(), "secret-123") || strings.Contains(err.Error(), "gate-secret") || strings.Count(err.Error(), "Call ") != 1 {
				t.Errorf("error is %v", err)
			}
			h := api.Requests()[0].Header
			if h.Get("X-Api-Key")+h.Get("Authorization") == "" || h.Get("X-Gateway") != "gate-secret" {
				t.Errorf("headers are %v", h)
			}
			var limit *llm.RateLimit
			if errors.As(err, &limit) && strings.Contains(limit.Message, "secret-123") {
				t.Errorf("limit is %v", limit)
			}
		}, withKey)
	}
}

func TestMissingKeyIsNamed(t *testing.T) {
	both(t, nil, func(t *testing.T, d llm.LLMDriver, api *llmtest.API) {
		_, err := d.Call(t.Context(), llm.LLMRequest{Intent: "hi"})
		if types.CodeOf(err) != types.ErrAuth || !strings.Contains(err.Error(), "set TEST_LLM_NONE") || len(api.Requests()) > 0 {
			t.Errorf("error is %v", err)
		}
	}, func(c *llm.HTTPConfig) { c.APIKeyEnv = "TEST_LLM_NONE" })
}

func TestBadConfigurationIsRefused(t *testing.T) {
	for _, c := range []llm.HTTPConfig{
		{BaseURL: "localhost:8080"}, {BaseURL: "ftp://x"}, {BaseURL: "http://"}, {BaseURL: "http://u:p@x"}, {BaseURL: "http://x?a=b"},
		{MaxTokens: -1}, {ContextWindow: -1}, {Thinking: -2}, {BaseURL: "http://x\x7f"},
	} {
		if _, err := llm.NewAnthropic(c); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%+v: %v", c, err)
		}
		if _, err := llm.NewOpenAI(c); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%+v: %v", c, err)
		}
	}
	both(t, nil, func(t *testing.T, d llm.LLMDriver, _ *llmtest.API) {
		if _, err := d.Call(t.Context(), llm.LLMRequest{Intent: "hi"}); types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), "no model") {
			t.Errorf("without a model: %v", err)
		}
	}, func(c *llm.HTTPConfig) { c.Model = "" })
}

func TestNonsenseUsageIsEstimated(t *testing.T) {
	for name, r := range map[string]llmtest.Reply{
		"missing":  {Text: "four words are here", NoUsage: true},
		"negative": {Text: "four words are here", Usage: &llmtest.Usage{Input: -5, Output: 3}},
		"overflow": {Text: "four words are here", Usage: &llmtest.Usage{Input: 5, Output: 1 << 60}},
		"zero":     {Text: "four words are here", Usage: &llmtest.Usage{}},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, reply(r), func(t *testing.T, d llm.LLMDriver, _ *llmtest.API) {
				resp, err := d.Call(t.Context(), llm.LLMRequest{Intent: "hi"})
				if err != nil || !resp.Usage.Estimated || resp.Usage.Input < 10 || resp.Usage.Output != 5 || resp.TokensUsed != resp.Usage.Total() {
					t.Errorf("%+v, %v", resp, err)
				}
			})
		})
	}
	both(t, reply(llmtest.Reply{Text: "x", Usage: &llmtest.Usage{Input: 10, Output: 2, CacheRead: 90}}), func(t *testing.T, d llm.LLMDriver, _ *llmtest.API) {
		resp, err := d.Call(t.Context(), llm.LLMRequest{Intent: "hi"})
		if err != nil || resp.Usage != (llm.Usage{Input: 10, Output: 2, CacheRead: 90}) {
			t.Errorf("%+v, %v", resp, err)
		}
	})
}

func TestCallsKeepTheirOrderAndTheirFaults(t *testing.T) {
	calls := []llmtest.ToolCall{{ID: "same", Name: "one", Input: `{"n":1}`}, {ID: "same2", Name: "two", Input: `{"n":`}, {ID: "z", Name: "three", Input: ""}}
	both(t, reply(llmtest.Reply{Text: "ok", ToolCalls: calls}), func(t *testing.T, d llm.LLMDriver, _ *llmtest.API) {
		resp, err := d.Call(t.Context(), llm.LLMRequest{Intent: "hi"})
		if err != nil || len(resp.ToolCalls) != 3 {
			t.Fatalf("%+v, %v", resp, err)
		}
		got := ""
		for _, c := range resp.ToolCalls {
			got += c.Name + " " + string(c.Input) + ";"
		}
		if got != `one {"n":1};two "{\"n\":";three {};` || resp.ToolCalls[1].ParseError == "" {
			t.Errorf("calls are %s %+v", got, resp.ToolCalls)
		}
	})
}
