package llm_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rnixctx "rnix/context"
	"rnix/drivers/llm"
	"rnix/drivers/llm/llmtest"
	"rnix/types"
)

// way is a way to ask models, as the table has it.
type way struct {
	name string
	path string // where the vendor's API answers
	make func(llm.HTTPConfig) (llm.LLMDriver, error)
}

func ways() []way {
	return []way{
		{"Anthropic Messages", "", func(c llm.HTTPConfig) (llm.LLMDriver, error) { return llm.NewAnthropic(c) }},
		{"OpenAI Responses", "/v1", func(c llm.HTTPConfig) (llm.LLMDriver, error) { return llm.NewResponses(c) }},
		{"OpenAI Chat Completions", "/v1", func(c llm.HTTPConfig) (llm.LLMDriver, error) { return llm.NewOpenAI(c) }},
	}
}

// exchange asks a stand-in through a driver and returns what the driver made of the answer, and what it sent.
func (w way) exchange(t *testing.T, reply func(llmtest.Request) llmtest.Reply, change func(*llm.HTTPConfig), reqs ...llm.LLMRequest) (resps []*llm.LLMResponse, events []llm.StreamEvent, bodies []string, err error) {
	t.Helper()
	api, url := llmtest.NewAPI(t, reply)
	cfg := llm.HTTPConfig{BaseURL: url + w.path, Model: "m", CacheKey: true}
	if change != nil {
		change(&cfg)
	}
	d, err := w.make(cfg)
	if err != nil {
		return nil, nil, nil, err
	}
	if c, ok := d.(interface{ Close() error }); ok {
		defer func() { _ = c.Close() }()
	}
	for _, req := range reqs {
		stream, serr := d.Stream(t.Context(), req)
		if err = serr; err != nil {
			break
		}
		for ev := range stream {
			events = append(events, ev)
			if err = ev.Err; ev.Type == llm.EventDone {
				resps = append(resps, ev.Response)
			}
		}
	}
	for _, r := range api.Requests() {
		bodies = append(bodies, string(r.Body))
	}
	return resps, events, bodies, err
}

// asksFor is a request with one word.
func asksFor(word string) llm.LLMRequest {
	return llm.LLMRequest{SystemPrompt: "S", Session: "session-1", Tools: []llm.ToolSpec{{Name: "look", Schema: []byte(`{"type":"object"}`)}}, Messages: []rnixctx.Message{{Role: rnixctx.RoleUser, Content: word}}}
}

// shows is a request with a file of a type that a user has given, and one that a tool has.
func shows(media string) llm.LLMRequest {
	req := asksFor("x [a.png]")
	as := []rnixctx.Attachment{{Name: "a.png", Media: media, SHA256: "1", Bytes: 7, Width: 3, Height: 4}}
	req.Messages[0].Attachments = as
	req.Messages = append(req.Messages, rnixctx.Message{Role: rnixctx.RoleAssistant, ToolCalls: []rnixctx.ToolCall{{ID: "a", Name: "look", Input: []byte("{}")}, {ID: "b", Name: "look", Input: []byte("{}")}}},
		rnixctx.Message{Role: rnixctx.RoleTool, ToolCallID: "a", Content: "seen", Attachments: as}, rnixctx.Message{Role: rnixctx.RoleTool, ToolCallID: "b", Content: "no"})
	req.Attachment = func(rnixctx.Attachment) ([]byte, error) { return []byte("picture"), nil }
	return req
}

func always(r llmtest.Reply) func(llmtest.Request) llmtest.Reply {
	return func(llmtest.Request) llmtest.Reply { return r }
}

// ability is a line of the table: what it is, and what a stand-in sees of it.
type ability struct {
	what string
	see  func(t *testing.T, w way) bool
	says func(a llm.Abilities) bool // what the driver says of itself; nil = nothing
}

func abilities() []ability {
	twice := llmtest.Reply{Reasoning: "hm", ToolCalls: []llmtest.ToolCall{{ID: "a", Name: "look", Input: "{}"}, {ID: "b", Name: "look", Input: "{}"}}}
	return []ability{
		{"text while the model writes it", func(t *testing.T, w way) bool {
			_, events, _, _ := w.exchange(t, always(llmtest.Reply{Text: "one two three", Chunks: 3}), nil, asksFor("x"))
			n := 0
			for _, e := range events {
				if e.Type == llm.EventText {
					n++
				}
			}
			return n == 3
		}, func(a llm.Abilities) bool { return a.Streams }},
		{"tools in the form of the API, several calls in one answer", func(t *testing.T, w way) bool {
			r, _, bodies, _ := w.exchange(t, always(twice), nil, asksFor("x"))
			return len(r) == 1 && len(r[0].ToolCalls) == 2 && strings.Contains(bodies[0], `"name":"look"`)
		}, func(a llm.Abilities) bool { return a.Tools == llm.ToolsNative }},
		{"what the model thinks is shown", func(t *testing.T, w way) bool {
			_, events, _, _ := w.exchange(t, always(twice), nil, asksFor("x"))
			for _, e := range events {
				if e.Type == llm.EventReasoning {
					return true
				}
			}
			return false
		}, nil},
		{"and goes back with its calls", func(t *testing.T, w way) bool {
			r, _, _, err := w.exchange(t, always(twice), nil, asksFor("x"))
			if err != nil {
				return false
			}
			next := asksFor("x")
			next.Messages = append(next.Messages, rnixctx.Message{Role: rnixctx.RoleAssistant, ToolCalls: r[0].ToolCalls, Reasoning: r[0].Blocks},
				rnixctx.Message{Role: rnixctx.RoleTool, ToolCallID: "a"}, rnixctx.Message{Role: rnixctx.RoleTool, ToolCallID: "b"})
			_, _, bodies, err := w.exchange(t, nil, nil, next)
			return err == nil && strings.Contains(bodies[0], "hm")
		}, func(a llm.Abilities) bool { return a.Thoughts }},
		{"`reasoning_effort`", func(t *testing.T, w way) bool {
			_, _, bodies, err := w.exchange(t, nil, func(c *llm.HTTPConfig) { c.Effort = "high" }, asksFor("x"))
			return err == nil && strings.Contains(bodies[0], `"high"`)
		}, func(a llm.Abilities) bool { return a.Effort }},
		{"`thinking`: tokens to think with", func(t *testing.T, w way) bool {
			_, _, bodies, err := w.exchange(t, nil, func(c *llm.HTTPConfig) { c.Thinking = 2000 }, asksFor("x"))
			return err == nil && strings.Contains(bodies[0], "2000")
		}, func(a llm.Abilities) bool { return a.Thinking }},
		{"the vendor's prompt cache is asked for", func(t *testing.T, w way) bool {
			_, _, bodies, err := w.exchange(t, nil, nil, asksFor("x"))
			return err == nil && (strings.Contains(bodies[0], "cache_control") || strings.Contains(bodies[0], `"prompt_cache_key":"session-1"`))
		}, func(a llm.Abilities) bool { return a.Cache }},
		{"tokens from the cache are counted apart", func(t *testing.T, w way) bool {
			r, _, _, err := w.exchange(t, always(llmtest.Reply{Text: "x", Usage: &llmtest.Usage{Input: 5, Output: 2, CacheRead: 7}}), nil, asksFor("x"))
			return err == nil && r[0].Usage == llm.Usage{Input: 5, Output: 2, CacheRead: 7}
		}, nil},
		{"the length of an answer is bounded for a budget", func(t *testing.T, w way) bool {
			req := asksFor("x")
			req.MaxTokens = 777
			_, _, bodies, err := w.exchange(t, nil, nil, req)
			return err == nil && strings.Contains(bodies[0], ":777")
		}, func(a llm.Abilities) bool { return a.Bounded }},
		{"images are shown, of a user and of a tool", func(t *testing.T, w way) bool {
			_, _, bodies, err := w.exchange(t, nil, nil, shows("image/png"))
			return err == nil && strings.Count(bodies[0], "cGljdHVyZQ==") == 2
		}, func(a llm.Abilities) bool { return a.Images }},
		{"and PDFs", func(t *testing.T, w way) bool {
			_, _, bodies, err := w.exchange(t, nil, nil, shows("application/pdf"))
			return err == nil && strings.Count(bodies[0], "cGljdHVyZQ==") == 2
		}, func(a llm.Abilities) bool { return a.Documents }},
		{"a prompt that is too long is recognised", func(t *testing.T, w way) bool {
			_, _, _, err := w.exchange(t, always(llmtest.Reply{Status: 400, Text: "prompt is too long: 9 tokens"}), nil, asksFor("x"))
			return types.CodeOf(err) == types.ErrInvalid && strings.Contains(err.Error(), "prompt is too long")
		}, nil},
		{"a rate limit is recognised, with the wait that the vendor names", func(t *testing.T, w way) bool {
			_, _, _, err := w.exchange(t, always(llmtest.Reply{Status: 429, Text: "slow", Header: map[string][]string{"Retry-After": {"7"}}}), nil, asksFor("x"))
			return types.CodeOf(err) == types.ErrRateLimited && strings.Contains(err.Error(), "7s")
		}, nil},
	}
}

// TestTheTableOfAbilitiesIsTrue measures what each way to ask models can do against a stand-in of the vendor's server, compares it with what the driver says of itself, and with docs/guides/abilities.md.
// go test ./drivers/llm -run TableOfAbilities -update writes that file.
func TestTheTableOfAbilitiesIsTrue(t *testing.T) {
	var b strings.Builder
	b.WriteString("# What models are used for\n\nMade by `TestTheTableOfAbilitiesIsTrue`, which asks stand-ins of the vendors' servers through each driver; do not edit it. Whether a single model can do it, its vendor says.\n" +
		"`rnix models` shows the same for each provider, also for models that are programs.\n\n|")
	for _, w := range ways() {
		b.WriteString(" | " + w.name)
	}
	b.WriteString(" |\n|---|" + strings.Repeat("---|", len(ways())) + "\n")
	for _, a := range abilities() {
		b.WriteString("| " + a.what)
		for _, w := range ways() {
			can := a.see(t, w)
			word := "no"
			if can {
				word = "yes"
			}
			b.WriteString(" | " + word)
			if a.says == nil {
				continue
			}
			d, err := w.make(llm.HTTPConfig{BaseURL: "http://127.0.0.1:1", CacheKey: true})
			if err != nil {
				t.Fatal(err)
			}
			if says := a.says(d.Info().Abilities); says != can {
				t.Errorf("%s, %s: the driver says %v, its server sees %v", w.name, a.what, says, can)
			}
		}
		b.WriteString(" |\n")
	}
	file := filepath.Join("..", "..", "docs", "guides", "abilities.md")
	if flag.Lookup("update").Value.String() == "true" { // of the tests inside the package
		if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	was, err := os.ReadFile(file)
	if err != nil || string(was) != b.String() {
		t.Errorf("%s is not what the drivers do; write it anew with: go test ./drivers/llm -run TableOfAbilities -update\n%v\n%s", file, err, b.String())
	}
}
