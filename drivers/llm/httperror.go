package llm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"rnix/types"
)

// problem is what a provider says went wrong, as far as it can be told.
type problem struct {
	status  int    // of HTTP; 0 = it was said inside a stream
	kind    string // the provider's word: type and code
	message string
	limit   *RateLimit // how long to wait; nil if it was not said
}

// explain reads the body of an error in any of the shapes that are in use.
func explain(body []byte) problem {
	var outer struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Type    string          `json:"type"`
		Code    any             `json:"code"`
		Detail  json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(body, &outer) != nil {
		return problem{}
	}
	var inner struct {
		Message string `json:"message"`
		Type    string `json:"type"`
		Code    any    `json:"code"`
	}
	if json.Unmarshal(outer.Error, &inner) == nil && inner.Message != "" {
		return problem{kind: words(inner.Type, inner.Code), message: inner.Message}
	}
	for _, raw := range []json.RawMessage{outer.Error, outer.Detail} {
		var text string
		if json.Unmarshal(raw, &text) == nil && text != "" {
			return problem{kind: words(outer.Type, outer.Code), message: text}
		}
	}
	if outer.Message == "" && len(outer.Detail) > 0 && !bytes.Equal(outer.Detail, []byte("null")) {
		outer.Message = string(outer.Detail)
	}
	return problem{kind: words(outer.Type, outer.Code), message: outer.Message}
}

func words(kind string, code any) string {
	if s, ok := code.(string); ok {
		return kind + " " + s
	}
	return kind
}

// refused turns an answer that is not 200 into an error.
func (c *httpClient) refused(x exchange, resp *http.Response, body []byte) error {
	p := explain(body)
	p.status = resp.StatusCode
	if p.message == "" {
		p.message = firstLine(body, resp.Header.Get("Content-Type"))
	}
	if d := retryAfter(resp.Header, time.Now()); d > 0 || p.status == http.StatusTooManyRequests {
		p.limit = &RateLimit{RetryAfter: d, Message: p.message, Account: ofAccount(resp.Header, p.message)}
	}
	err := c.cleaned(x, c.problem(p, x.model))
	if r, ok := errors.AsType[*refusedKey](err); ok {
		r.key = x.key
	}
	return err
}

// firstLine shortens an explanation that is plain text; that of a web page says nothing.
func firstLine(body []byte, contentType string) string {
	if strings.Contains(contentType, "html") || bytes.HasPrefix(bytes.TrimSpace(body), []byte("<")) {
		return ""
	}
	line, _, _ := strings.Cut(strings.TrimSpace(strings.ToValidUTF8(string(body), "")), "\n")
	return line[:min(len(line), 300)]
}

// text is what the provider said, with the HTTP status or, inside a stream, its own word for the failure.
func (p problem) text() string {
	message := strings.ToValidUTF8(p.message, "")
	if len(message) > 1000 {
		message = strings.ToValidUTF8(message[:1000], "") + "..."
	}
	status := strings.TrimSpace(p.kind)
	if p.status != 0 {
		status = strings.TrimSpace(fmt.Sprintf("HTTP %d %s", p.status, http.StatusText(p.status)))
	}
	switch {
	case message == "":
		return cmp.Or(status, "it does not say why")
	case status == "" || strings.Contains(message, status):
		return message
	}
	return message + " (" + status + ")"
}

// problem classifies what a provider said.
func (c *httpClient) problem(p problem, model string) error {
	message := p.text()
	fail := func(code types.ErrCode, format string, args ...any) error {
		return types.Errorf(code, "Call", c.cfg.Name, format, args...)
	}
	text := strings.ToLower(p.kind + " " + message)
	has := func(any ...string) bool {
		for _, s := range any {
			if strings.Contains(text, s) {
				return true
			}
		}
		return false
	}
	switch {
	case has("insufficient_quota", "credit balance", "billing_error") || p.status == http.StatusPaymentRequired:
		return fail(types.ErrAuth, "the account has no credit: %s", message)
	case p.status == http.StatusUnauthorized || p.status == http.StatusForbidden || p.status == 0 && has("authentication_error", "permission_error", "invalid_api_key"):
		if c.cfg.APIKeyEnv == "" {
			return fail(types.ErrAuth, "the server refuses the request: %s", message)
		}
		return fail(types.ErrAuth, "%w", &refusedKey{name: c.cfg.APIKeyEnv, message: message})
	case p.status == http.StatusTooManyRequests || p.status == 0 && has("rate_limit", "too many requests"):
		limit := p.limit
		if limit == nil {
			limit = &RateLimit{}
		}
		limit.Message, limit.Account = message, limit.Account || ofAccount(nil, message)
		return fail(types.ErrRateLimited, "%w", limit)
	case noTools(text):
		return fail(types.ErrInvalid, "the server or the model %q does not support tool calls: %s", model, message)
	case p.status >= 500 || p.status == http.StatusRequestTimeout || p.status == http.StatusConflict || p.status == http.StatusTooEarly:
		if p.status == http.StatusNotImplemented {
			return fail(types.ErrDriver, "%s", message)
		}
		if p.limit != nil {
			return fail(types.ErrUnavailable, "%w", p.limit)
		}
		return fail(types.ErrUnavailable, "%s", message)
	case p.status == http.StatusRequestEntityTooLarge || tooLong(text):
		return fail(types.ErrInvalid, "prompt is too long: %s", message)
	case p.status == http.StatusNotFound || has("model_not_found", "not_found_error"):
		return fail(types.ErrNotFound, "no model %q at %s: %s", model, c.base, message)
	case p.status >= 300 && p.status < 400:
		return fail(types.ErrDriver, "%w", errRedirect)
	case p.status >= 400 || has("invalid_request"):
		return fail(types.ErrInvalid, "%s", message)
	}
	return fail(types.ErrUnavailable, "%s", message)
}

// tooLong reports whether a refusal is about the length of the prompt, in the words of the known servers.
func tooLong(text string) bool {
	for _, s := range []string{"prompt is too long", "context_length_exceeded", "maximum context length", "exceed_context_size", "context size",
		"context window", "context length", "request_too_large", "input is too long", "input length", "reduce the length"} {
		if strings.Contains(text, s) {
			return true
		}
	}
	return false
}

// noTools reports whether a refusal is about tools as such.
func noTools(text string) bool {
	if !strings.Contains(text, "tool") && !strings.Contains(text, "function call") {
		return false
	}
	for _, s := range []string{"not support", "unsupported", "--jinja", "tool-call-parser", "enable-auto-tool-choice"} {
		if strings.Contains(text, s) {
			return true
		}
	}
	return false
}

// ofAccount reports whether an answer says that a limit is of the account and not of the model alone. The limits per minute and day of Anthropic and OpenAI are
// of a model, also where the message names the organization.
func ofAccount(h http.Header, message string) bool {
	switch h.Get("Anthropic-Ratelimit-Unified-Representative-Claim") { // others, such as seven_day_opus, are of models
	case "five_hour", "seven_day":
		return true
	}
	message = strings.ToLower(message)
	for _, s := range []string{"account's rate limit", "concurrent connections", "spend limit", "all models", "free-models-per"} {
		if strings.Contains(message, s) {
			return true
		}
	}
	return false
}

// longest is the longest wait that is believed.
const longest = 366 * 24 * time.Hour

// retryAfter returns how long a provider asks to wait; 0 if it does not say, or says something odd.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return plausible(ms / 1000)
	}
	if v := strings.TrimSpace(h.Get("Retry-After")); v != "" {
		if s, err := strconv.ParseFloat(v, 64); err == nil {
			return plausible(s)
		}
		if t, err := http.ParseTime(v); err == nil {
			return plausible(t.Sub(now).Seconds())
		}
	}
	return resetOf(h, now)
}

func plausible(seconds float64) time.Duration {
	if math.IsNaN(seconds) || seconds <= 0 || seconds > longest.Seconds() {
		return 0
	}
	return time.Duration(seconds * float64(time.Second))
}

// resetOf reads the headers that say when each limit is free again: the latest of those that are used
// up counts, and if none is marked so, the earliest of all.
func resetOf(h http.Header, now time.Time) time.Duration {
	var used, soonest time.Duration
	for name := range h {
		prefix, isReset := strings.CutSuffix(strings.ToLower(name), "-reset")
		remaining := prefix + "-remaining"
		if what, ok := strings.CutPrefix(strings.ToLower(name), "x-ratelimit-reset-"); ok {
			isReset, remaining = true, "x-ratelimit-remaining-"+what
		}
		if !isReset || !strings.Contains(strings.ToLower(name), "ratelimit-") {
			continue
		}
		d := reset(h.Get(name), now)
		if d <= 0 {
			continue
		}
		if h.Get(remaining) == "0" {
			used = max(used, d)
		}
		if soonest == 0 || d < soonest {
			soonest = d
		}
	}
	if used > 0 {
		return used
	}
	return soonest
}

// reset reads a time (RFC 3339), a duration ("6m0s"), a Unix time or a number of seconds.
func reset(v string, now time.Time) time.Duration {
	if t, err := time.Parse(time.RFC3339, v); err == nil {
		return plausible(t.Sub(now).Seconds())
	}
	if d, err := time.ParseDuration(v); err == nil {
		return plausible(d.Seconds())
	}
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		if s > 1e9 {
			s -= float64(now.Unix())
		}
		return plausible(s)
	}
	return 0
}
