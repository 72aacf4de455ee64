package loop

import (
	"context"
	"strings"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/step"
	"rnix/types"
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
	if p, err = makeRoom(ctx, l, p); err != nil {
		return nil, err
	}
	start := time.Now()
	resp, err := l.once(ctx, p)
	for n, before := 0, p.Tokens+1; tooLong(err) && n < maxShrink && p.Tokens < before; n++ {
		before = p.Tokens
		if p, err = shorten(ctx, l, p, &shortening{target: p.Tokens / 2, wish: l.cfg.Compactor.Wanted(), tight: true, plain: n > 0}); err != nil {
			return nil, err
		}
		resp, err = l.once(ctx, p)
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

// size estimates the tokens of a request: the prompt and the tools that go with it.
func (l *Loop) size(p *rnixctx.PromptResult) int { return p.Tokens + l.toolTokens() }

// toolTokens estimates the tokens of the tools, which are ASCII but for a few words.
func (l *Loop) toolTokens() int { return len(l.cfg.Specs) / 4 }

// maxCount is more tokens than any answer has; a count beyond it is nonsense, and could overflow a sum.
const maxCount = 1 << 40

// sane reports whether all counts can be true. Nothing at all can: the offline planner has no tokens.
func (u Usage) sane() bool {
	for _, n := range []int{u.Input, u.Output, u.CacheRead, u.CacheWrite} {
		if n < 0 || n > maxCount {
			return false
		}
	}
	return true
}

// count adds an answer's usage. Nonsense is replaced by our own estimate, marked as such: a budget must
// not be passed by a wrong count. Drivers have estimated already where a provider does not count.
func (l *Loop) count(p *rnixctx.PromptResult, resp *Response, rec *step.StepRecord) {
	u := resp.Usage
	if !u.sane() {
		u = Usage{Input: l.size(p), Output: rnixctx.EstimateTokens(resp.Content), Estimated: true}
	}
	resp.Usage = u
	used := u.Input + u.Output + u.CacheRead + u.CacheWrite
	l.counted = counted{}
	if sent := u.Input + u.CacheRead + u.CacheWrite; sent > 0 && p.Tokens > 0 && resp.Metered == nil {
		l.scale = min(max(float64(sent)/float64(l.size(p)), 0.5), 4)
		if !u.Estimated {
			l.cfg.Budget.Counted(resp.Provider, resp.Model, l.weighed(p, sent, &l.weight), sent)
			if !l.cfg.Several {
				l.counted = counted{p.Generation, p.EncodedLen(), sent, attachedTokens(l, p)}
			}
		}
	}
	cost := costOf(l, resp)
	if resp.Model != "" {
		l.progress.Model = resp.Model
	}
	if resp.Provider != "" {
		l.progress.Provider = resp.Provider
	}
	rec.TokensUsed, rec.StopReason = used, resp.StopReason
	rec.RawResponse = step.RawText(&rnixctx.Message{Content: resp.Content, ToolCalls: resp.ToolCalls})
	rec.Input, rec.Output, rec.CacheRead, rec.CacheWrite, rec.Estimated = u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Estimated
	rec.Provider, rec.Model, rec.CostUSD, rec.CostFrom = resp.Provider, resp.Model, cost.USD, cost.From
	rec.Metered = resp.Metered != nil
	spent(l, rec.Answer(), step.AddSpending)
}

// costOf settles the budget and returns what an answer costs.
func costOf(l *Loop, resp *Response) Cost {
	if m := resp.Metered; m != nil {
		l.cfg.Budget.Settle(nil)
		return *m
	}
	return l.cfg.Budget.Settle(resp)
}
