package loop

import (
	"context"
	"strings"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/step"
	"rnix/types"
)

// The context is compacted when the prompt passes fullAt of the window, down to keepAt of it.
const (
	fullAt = 0.80
	keepAt = 0.50
)

// maxShrink is how often a prompt that the provider calls too long is made shorter, by half each time.
const maxShrink = 8

// ask has the model answer, compacting the conversation before when it is near its window, and again
// for as long as the provider says that the prompt is too long. It fills in what rec says of the model.
func (l *Loop) ask(ctx context.Context, rec *step.StepRecord) (*Response, error) {
	p, err := l.host.Prompt()
	if err != nil {
		return nil, err
	}
	if w := float64(l.cfg.Window); w > 0 && float64(p.Tokens)*l.scale > fullAt*w {
		if p, err = l.compact(p, int(keepAt*w/l.scale)); err != nil {
			return nil, err
		}
	}
	start := time.Now()
	resp, err := l.host.Ask(ctx, l.req.bytes(p))
	for n, before := 0, p.Tokens+1; tooLong(err) && n < maxShrink && p.Tokens < before; n++ {
		before = p.Tokens
		if p, err = l.compact(p, p.Tokens/2); err != nil {
			return nil, err
		}
		resp, err = l.host.Ask(ctx, l.req.bytes(p))
	}
	rec.MessageCount = len(p.Messages)
	rec.ModelTime = time.Since(start)
	if err != nil {
		return nil, err
	}
	l.count(p, resp, rec)
	return resp, nil
}

// tooLong reports whether the provider refused the prompt for its length.
func tooLong(err error) bool {
	return err != nil && types.CodeOf(err) == types.ErrInvalid && strings.Contains(err.Error(), "prompt is too long")
}

func (l *Loop) compact(p *rnixctx.PromptResult, target int) (*rnixctx.PromptResult, error) {
	system := rnixctx.EstimateTokens(p.SystemPrompt)
	ms, report := rnixctx.Compact(p.Messages, max(target-system, 500))
	if err := l.host.Compact(ms, report); err != nil {
		return nil, err
	}
	return l.host.Prompt()
}

// count adds an answer's usage. A provider that counts nothing or nonsense is corrected upwards by
// our own estimate, marked as such: a budget must not be passed by a wrong count.
func (l *Loop) count(p *rnixctx.PromptResult, resp *Response, rec *step.StepRecord) {
	u := resp.Usage
	if u.Input < 0 || u.Output < 0 || u.CacheRead < 0 || u.CacheWrite < 0 {
		u = Usage{Input: p.Tokens, Output: rnixctx.EstimateTokens(resp.Content), Estimated: true}
	}
	used := u.Input + u.Output + u.CacheRead + u.CacheWrite
	if sent := u.Input + u.CacheRead + u.CacheWrite; sent > 0 && p.Tokens > 0 {
		l.scale = min(max(float64(sent)/float64(p.Tokens), 0.5), 4)
	}
	l.progress.Tokens += used
	l.progress.Estimated = l.progress.Estimated || u.Estimated
	l.progress.CostUSD += max(resp.CostUSD, 0)
	if resp.Model != "" {
		l.progress.Model = resp.Model
	}
	if resp.Provider != "" {
		l.progress.Provider = resp.Provider
	}
	l.host.Progress(l.progress)

	rec.TokensUsed, rec.StopReason = used, resp.StopReason
	rec.RawResponse = step.RawText(&rnixctx.Message{Content: resp.Content, ToolCalls: resp.ToolCalls})
	rec.Input, rec.Output, rec.CacheRead, rec.CacheWrite, rec.Estimated = u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Estimated
	rec.Provider, rec.Model, rec.CostUSD = resp.Provider, resp.Model, resp.CostUSD
}
