package llm

import (
	"cmp"
	"context"
	"strings"
	"sync"

	"rnix/types"
)

// ResponsesDriver asks models over the Responses API of OpenAI. The vendor keeps nothing (store is false): what a model has thought comes
// encrypted, and goes back with the calls to which it led.
type ResponsesDriver struct {
	http *httpClient
	// What of a request a model has turned out not to take: keys are the model and the option, values are true.
	without sync.Map
	refused refusals
}

var _ LLMDriver = (*ResponsesDriver)(nil)

// Options that not every model, or not every account, may use.
const (
	optEncrypted = "reasoning.encrypted_content"
	optSummary   = "reasoning.summary"
	optCacheKey  = "prompt_cache_key"
)

// NewResponses returns a driver for OpenAI, or for the server at cfg.BaseURL, which usually ends with /v1. The key is taken as by
// NewOpenAI. A bad configuration is INVALID. The caller closes the driver.
func NewResponses(cfg HTTPConfig) (*ResponsesDriver, error) {
	cfg.Name = cmp.Or(cfg.Name, "openai")
	if cfg.BaseURL == "" {
		cfg.BaseURL, cfg.APIKeyEnv = openaiURL, cmp.Or(cfg.APIKeyEnv, openaiKey)
	}
	cfg.BaseURL = strings.TrimSuffix(strings.TrimRight(cfg.BaseURL, "/"), "/responses")
	if cfg.Thinking != 0 {
		return nil, types.Errorf(types.ErrInvalid, "Configure", cfg.Name, "thinking is not known to this driver: use reasoning_effort")
	}
	c, err := newHTTPClient(cfg)
	if err != nil {
		return nil, err
	}
	return &ResponsesDriver{http: c}, nil
}

// Info describes the driver.
func (d *ResponsesDriver) Info() DriverInfo { return openaiInfo(d.http) }

// Close drops idle connections.
func (d *ResponsesDriver) Close() error { return d.http.close() }

// Call performs one completion.
func (d *ResponsesDriver) Call(ctx context.Context, req LLMRequest) (*LLMResponse, error) {
	return attempt(ctx, d, req, func(StreamEvent) {})
}

// Stream performs one completion and delivers it in pieces.
func (d *ResponsesDriver) Stream(ctx context.Context, req LLMRequest) (<-chan StreamEvent, error) {
	if req.Model = cmp.Or(req.Model, d.http.cfg.Model); req.Model == "" {
		return nil, noModel(d.http.cfg.Name)
	}
	forget := false // what was thought before
	body, err := d.encode(req, forget)
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
			a := responsesAnswer{http: d.http, model: req.Model, emit: emit}
			err := d.http.do(ctx, exchange{path: responsesPath, header: bearer(key), key: key, model: req.Model, body: body, each: a.each})
			if err == nil {
				resp := a.response(sentBytes(body, req))
				identify(resp.ToolCalls, req.Messages)
				return resp, nil
			}
			switch {
			case a.begun || types.CodeOf(err) != types.ErrInvalid:
				return nil, err
			case !forget && foreign(err.Error()):
				forget = true
			case !d.learn(req.Model, err.Error()) && !d.refused.learn(err, req):
				return nil, err
			}
			if body, err = d.encode(req, forget); err != nil {
				return nil, err
			}
		}
	}), nil
}

// foreign reports whether a refusal is about reasoning that comes from another model or account: it is left out then.
func foreign(text string) bool {
	text = strings.ToLower(text)
	return strings.Contains(text, "could not be verified") || strings.Contains(text, "could not be decrypted") || strings.Contains(text, "invalid_encrypted_content")
}

// learn reports whether a refusal was about something that the model can be asked without, from now on.
func (d *ResponsesDriver) learn(model, text string) bool {
	text = strings.ToLower(text)
	option := ""
	switch {
	case strings.Contains(text, "encrypted content") || strings.Contains(text, "encrypted_content"):
		option = optEncrypted
	case strings.Contains(text, "reasoning summar") || strings.Contains(text, optSummary):
		option = optSummary
	case strings.Contains(text, optCacheKey):
		option = optCacheKey
	default:
		return false
	}
	_, known := d.without.LoadOrStore(model+"\x00"+option, true)
	return !known
}

func (d *ResponsesDriver) takes(model, option string) bool {
	_, no := d.without.Load(model + "\x00" + option)
	return !no
}
