package llm

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"rnix/types"
)

// The defaults of AnthropicDriver.
const (
	anthropicURL     = "https://api.anthropic.com"
	anthropicKey     = "ANTHROPIC_API_KEY"
	anthropicVersion = "2023-06-01"
	anthropicTokens  = 16_384
)

// AnthropicDriver asks models over the Messages API.
type AnthropicDriver struct {
	http    *httpClient
	refused refusals
}

var _ LLMDriver = (*AnthropicDriver)(nil)

// NewAnthropic returns a driver for the Messages API of Anthropic, or of a server that speaks it. A
// bad configuration is INVALID. The caller closes the driver.
func NewAnthropic(cfg HTTPConfig) (*AnthropicDriver, error) {
	cfg.Name = cmp.Or(cfg.Name, "anthropic")
	if cfg.BaseURL == "" {
		cfg.BaseURL, cfg.APIKeyEnv = anthropicURL, cmp.Or(cfg.APIKeyEnv, anthropicKey)
	}
	cfg.BaseURL = strings.TrimSuffix(strings.TrimRight(cfg.BaseURL, "/"), "/v1")
	cfg.MaxTokens = cmp.Or(cfg.MaxTokens, anthropicTokens)
	c, err := newHTTPClient(cfg)
	if err != nil {
		return nil, err
	}
	return &AnthropicDriver{http: c}, nil
}

// Info describes the driver.
func (d *AnthropicDriver) Info() DriverInfo {
	c := d.http.cfg
	return DriverInfo{Name: c.Name, Driver: "anthropic", Model: c.Model, NativeTools: true, Aside: true, ContextWindow: c.ContextWindow,
		MaxAnswer: c.MaxTokens, ExtraAnswer: max(c.Thinking, 0),
		Abilities: Abilities{Tools: ToolsNative, Streams: true, Effort: true, Thinking: true, Thoughts: true, Cache: true, Bounded: true, Images: true, Documents: true}}
}

// Close drops idle connections.
func (d *AnthropicDriver) Close() error { return d.http.close() }

// Call performs one completion.
func (d *AnthropicDriver) Call(ctx context.Context, req LLMRequest) (*LLMResponse, error) {
	return attempt(ctx, d, req, func(StreamEvent) {})
}

// Stream performs one completion and delivers it in pieces.
func (d *AnthropicDriver) Stream(ctx context.Context, req LLMRequest) (<-chan StreamEvent, error) {
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
		header := http.Header{"Anthropic-Version": {anthropicVersion}}
		if key != "" {
			header.Set("X-Api-Key", key)
		}
		for {
			a := anthropicAnswer{http: d.http, model: req.Model, emit: emit}
			err := d.http.do(ctx, exchange{path: anthropicPath, header: header, key: key, model: req.Model, body: body, each: a.each})
			if err == nil {
				resp := a.response(sentBytes(body, req))
				identify(resp.ToolCalls, req.Messages)
				return resp, nil
			}
			if !d.refused.learn(err, req) { // which is said before anything is answered
				return nil, err
			}
			if body, err = d.encode(req); err != nil {
				return nil, err
			}
		}
	}), nil
}

func noModel(provider string) error {
	return types.Errorf(types.ErrInvalid, "Call", provider, "no model: name one in the request, or set default_model of the provider")
}
