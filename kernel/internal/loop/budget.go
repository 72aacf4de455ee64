package loop

import (
	"context"
	"errors"
	"math"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/event"
	"rnix/internal/step"
	"rnix/types"
	"rnix/vfs"
)

// Broke says that a budget is used up, or that too little of it is left for another answer. The process is
// suspended.
type Broke struct {
	Wait types.Suspension // of kind types.SuspendBudget
	Hint string           // the command that lets it go on, without the name of the process
	Log  string           // what the log says of it besides; may be empty
	// Purse is the budget; nil = no other one would help.
	Purse *step.PurseWait
}

// Error says what it waits for.
func (b *Broke) Error() string { return b.Wait.SuspendReason }

// Cost is what an answer costs.
type Cost struct {
	USD  float64
	From string // provider, or where the price stands; empty = nobody knows
}

// Budget is what a process may use. Its methods are called from the loop's goroutine.
type Budget interface {
	// Spent returns the limit that is used up, of the process or of one above it; nil if there is none.
	Spent() *Broke
	// PerByte estimates how many tokens a byte of a prompt has, at most, by what was counted of the model's prompts so
	// far. counted is false if that is none.
	PerByte() (tokens float64, counted bool)
	// Counted takes what a provider has counted of a prompt that its model has answered.
	Counted(provider, model string, q Prompt, tokens int)
	// Reserve sets aside what the next answer can take at most, and
	// returns how many tokens the answer may have; 0 = as many as the model likes. It may wait for others. The
	// error is a *Broke if too little is left.
	Reserve(ctx context.Context, q Prompt) (answer int, err error)
	// Settle counts what an answer has taken in place of what was set aside, and returns what it costs. No
	// answer is nil.
	Settle(r *Response) Cost
	// CutOff is Settle for a request that has no answer and may be billed: r has an estimate of what it took.
	CutOff(r *Response) Cost
}

// outOfBudget suspends the process. A step that is open stays so: what was answered is paid for, and is
// done when there is more budget.
func outOfBudget(l *Loop, b *Broke, said string) End {
	if b.Log != "" {
		l.host.Emit(event.Event{Kind: event.LogLine, Name: "warning", Text: b.Log})
	}
	return End{Exit: types.ExitStatus{Code: types.ExitBudget, Reason: types.ReasonBudget}, Result: said,
		Wait: b.Wait, Hint: b.Hint, Purse: b.Purse}
}

// counted is what a provider has counted of a prompt.
type counted struct {
	generation uint64 // of the conversation
	bytes      int    // of the conversation, as it was sent
	tokens     int    // of the whole prompt; 0 = nothing was counted
	attached   int    // what bounds the images and documents that were in it, in tokens
}

// promptRoom is what a provider may add to a prompt, in tokens: its own words about tools, and the frame. In what was
// counted it is contained.
const promptRoom = 1024

// holds reports whether what was counted is the beginning of a conversation of so many bytes.
func (c counted) holds(generation uint64, conversation int) bool {
	return c.tokens > 0 && c.generation == generation && conversation >= c.bytes
}

// promptSize estimates the tokens of a prompt, rather too many. What a provider has counted stays as it is as long as
// the conversation only grows; the rest has perByte tokens in a byte.
func (c counted) promptSize(generation uint64, conversation, whole int, perByte float64, known bool) int {
	if c.holds(generation, conversation) {
		return c.tokens + int(math.Ceil(float64(conversation-c.bytes)*perByte))
	}
	n := int(math.Ceil(float64(whole) * perByte))
	if !known {
		n += promptRoom
	}
	return n
}

// once reserves what an answer may take and asks. What was reserved is settled by count, or here if there is no
// answer.
func (l *Loop) once(ctx context.Context, p *rnixctx.PromptResult) (*Response, error) {
	bound := bound(l, p)
	n, err := l.cfg.Budget.Reserve(ctx, l.weighed(p, bound, &l.weight))
	if err != nil {
		return nil, err
	}
	began := time.Now()
	resp, err := l.host.Ask(ctx, l.req.bytes(p, n))
	if err != nil {
		return nil, noAnswer(ctx, l, p, bound, n, began, err)
	}
	return resp, nil
}

// bound estimates the tokens of a prompt with the system prompt as it stands, rather too many.
func bound(l *Loop, p *rnixctx.PromptResult) int {
	if now := l.cfg.Now; now != nil {
		if l.req.tell(now.System()) {
			l.counted = counted{} // of another prompt
		}
		if o := now.Offer(); l.req.offer(o.Specs) {
			l.cfg.Specs, l.cfg.Weight, l.cfg.Tools, l.counted = o.Specs, o.Weight, o.Tools, counted{}
		}
	}
	perByte, known := l.cfg.Budget.PerByte()
	n := l.counted.promptSize(p.Generation, p.EncodedLen(), l.req.size(p), perByte, known)
	if l.counted.holds(p.Generation, p.EncodedLen()) {
		return n + max(attachedTokens(l, p)-l.counted.attached, 0)
	}
	return n + attachedTokens(l, p)
}

// attachedTokens bounds what the images and documents of a prompt take, in tokens.
func attachedTokens(l *Loop, p *rnixctx.PromptResult) int {
	return rnixctx.Most(l.progress.Model, p.Images, p.Pages)
}

// noAnswer settles what was reserved for an answer that has not come, and returns why it has not. If the vendor may bill
// it all the same, it counts, by our estimate, and once more if the model is asked again. It is apart so that little is
// on the stack of a process that waits for its model.
func noAnswer(ctx context.Context, l *Loop, p *rnixctx.PromptResult, bound, n int, began time.Time, err error) error {
	c, sent := errors.AsType[*vfs.CutOff](err)
	if !sent {
		l.cfg.Budget.Settle(nil)
		return err
	}
	u := Usage{Input: min(l.size(p), bound), Output: c.Answer, Estimated: true} // no more than was reserved
	if n > 0 {
		u.Output = min(u.Output, n)
	}
	cost := l.cfg.Budget.CutOff(&Response{Provider: c.Provider, Model: c.Model, Usage: u})
	a := &step.Answer{Step: l.progress.Step, Prompt: len(p.Messages), Started: began, ModelTime: time.Since(began), Provider: c.Provider, Model: c.Model,
		TokensUsed: u.Input + u.Output, Input: u.Input, Output: u.Output, Estimated: true, CostUSD: cost.USD, CostFrom: cost.From}
	spent(l, a, step.AddCutOff)
	if werr := l.host.CutOff(ctx, a); werr != nil {
		return werr
	}
	return err
}

// spent adds what an answer took, or may have taken, to what is published.
func spent(l *Loop, a *step.Answer, add func([]step.Spending, *step.Answer) []step.Spending) {
	if a.Metered { // it counts already
		l.host.Progress(l.progress)
		return
	}
	l.progress.Tokens += a.TokensUsed
	l.progress.Estimated = l.progress.Estimated || a.Estimated
	l.progress.CostUSD += a.CostUSD
	l.progress.Unpriced += a.Unpriced()
	l.progress.Spending = add(l.progress.Spending, a)
	l.host.Progress(l.progress)
}
