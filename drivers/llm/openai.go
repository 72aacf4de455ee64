package llm

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"rnix/types"
)

// The defaults of OpenAIDriver.
const (
	openaiURL = "https://api.openai.com/v1"
	openaiKey = "OPENAI_API_KEY"
	// openaiTokens bounds an answer for which a bound is needed. Without need it is left to the server.
	openaiTokens = 16_384
)

// OpenAIDriver asks models over the Chat Completions API, which most servers speak: OpenAI, DeepSeek,
// Groq, OpenRouter, Ollama, llama.cpp, vLLM. Where they differ, it learns from their refusals.
type OpenAIDriver struct {
	http *httpClient

	// What the server turned out to want. Each changes at most once, and only away from its default.
	newTokens atomic.Bool // max_completion_tokens and not max_tokens
	noUsage   atomic.Bool // it does not know stream_options
	reasons   atomic.Bool // reasoning_content in every message with calls
	noKey     atomic.Bool // no prompt_cache_key
	refused   refusals
}

var _ LLMDriver = (*OpenAIDriver)(nil)

// NewOpenAI returns a driver for OpenAI, or for the server at cfg.BaseURL, which usually ends with /v1.
// Without a BaseURL of its own it takes the key from OPENAI_API_KEY; other servers get a key only if
// APIKeyEnv is set. A bad configuration is INVALID. The caller closes the driver.
func NewOpenAI(cfg HTTPConfig) (*OpenAIDriver, error) {
	cfg.Name = cmp.Or(cfg.Name, "openai")
	if cfg.BaseURL == "" {
		cfg.BaseURL, cfg.APIKeyEnv = openaiURL, cmp.Or(cfg.APIKeyEnv, openaiKey)
	}
	cfg.BaseURL = strings.TrimSuffix(strings.TrimRight(cfg.BaseURL, "/"), "/chat/completions")
	if cfg.Thinking != 0 {
		return nil, types.Errorf(types.ErrInvalid, "Configure", cfg.Name, "thinking is not known to this driver: use reasoning_effort")
	}
	c, err := newHTTPClient(cfg)
	if err != nil {
		return nil, err
	}
	d := &OpenAIDriver{http: c}
	d.noKey.Store(!cfg.CacheKey)
	if u, err := url.Parse(cfg.BaseURL); err == nil && u.Hostname() == "api.openai.com" {
		d.newTokens.Store(true)
	}
	return d, nil
}

// Info describes the driver.
func (d *OpenAIDriver) Info() DriverInfo { return openaiInfo(d.http) }

// openaiInfo describes a driver of OpenAI, whichever API it asks.
func openaiInfo(h *httpClient) DriverInfo {
	c := h.cfg
	return DriverInfo{Name: c.Name, Driver: "openai", Model: c.Model, NativeTools: true, Aside: true, ContextWindow: c.ContextWindow,
		MaxAnswer: cmp.Or(c.MaxTokens, openaiTokens),
		Abilities: Abilities{Tools: ToolsNative, Streams: true, Effort: true, Thoughts: true, Cache: c.CacheKey, Bounded: true, Images: true, Documents: true}}
}

// Close drops idle connections.
func (d *OpenAIDriver) Close() error { return d.http.close() }

// Call performs one completion.
func (d *OpenAIDriver) Call(ctx context.Context, req LLMRequest) (*LLMResponse, error) {
	return attempt(ctx, d, req, func(StreamEvent) {})
}

// Stream performs one completion and delivers it in pieces.
func (d *OpenAIDriver) Stream(ctx context.Context, req LLMRequest) (<-chan StreamEvent, error) {
	cfg := d.http.cfg
	if req.Model = cmp.Or(req.Model, cfg.Model); req.Model == "" {
		return nil, noModel(cfg.Name)
	}
	body, err := d.encode(req)
	if err != nil {
		return nil, err
	}
	return Produce(ctx, func(ctx context.Context, emit func(StreamEvent)) (*LLMResponse, error) {
		ctx, cancel := d.http.within(ctx, req)
		defer cancel()
		key, err := d.http.key(ctx)
		if err != nil {
			return nil, err
		}
		for {
			a := openaiAnswer{http: d.http, model: req.Model, emit: emit}
			err := d.http.do(ctx, exchange{path: openaiPath, header: bearer(key), key: key, model: req.Model, body: body, each: a.each})
			if err == nil {
				resp := a.response(sentBytes(body, req))
				identify(resp.ToolCalls, req.Messages)
				return resp, nil
			}
			if a.begun || !d.learn(err) && !d.refused.learn(err, req) {
				return nil, err
			}
			if body, err = d.encode(req); err != nil {
				return nil, err
			}
		}
	}), nil
}

func bearer(key string) http.Header {
	if key == "" {
		return http.Header{}
	}
	return http.Header{"Authorization": {"Bearer " + key}}
}

// learn reports whether a refusal was about something that can be said differently from now on.
func (d *OpenAIDriver) learn(err error) bool {
	if types.CodeOf(err) != types.ErrInvalid {
		return false
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "max_completion_tokens"):
		return d.newTokens.CompareAndSwap(false, true)
	case strings.Contains(text, "stream_options"):
		return d.noUsage.CompareAndSwap(false, true)
	case strings.Contains(text, "reasoning_content"):
		return d.reasons.CompareAndSwap(false, true)
	case strings.Contains(text, "prompt_cache_key"):
		return d.noKey.CompareAndSwap(false, true)
	}
	return false
}
