package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"rnix/types"
	"rnix/vfs"
)

// errUnheard says that a child ended before it said anything about the question.
var errUnheard = errors.New("the program ended without an answer")

// claudeChild is a claude that runs and takes one question after the other. It belongs to one call at
// a time.
type claudeChild struct {
	*cliChild
	key        string // of how it was started
	promptFile string // "" once it is removed
	cost       float64
	seen       messagesHash // the conversation up to the last question
	said       *LLMResponse // the answer to it
	since      time.Time    // when it was last used
	idle       *time.Timer  // ends it while it is kept
}

func (c *claudeChild) removePrompt() {
	if c.promptFile != "" {
		_ = os.Remove(c.promptFile) // nothing depends on it, and it may be gone already
		c.promptFile = ""
	}
}

// end ends the child.
func (c *claudeChild) end(grace time.Duration) {
	c.stop(grace)
	c.removePrompt()
}

// finish waits for the end of a child whose input was closed, and says what was wrong with it, or "".
func (c *claudeChild) finish() string {
	timer := time.NewTimer(cliGrace)
	defer timer.Stop()
	select {
	case <-c.Done():
	case <-timer.C:
		c.end(0) // it has answered: that it lingers is no fault of the answer
		return ""
	}
	c.end(0)
	return c.how()
}

// how says in what way the child has ended, or "" for a good end.
func (c *claudeChild) how() string {
	end := c.Wait()
	switch {
	case end.Signal != 0:
		return fmt.Sprintf(" (signal %v)", end.Signal)
	case end.Code != 0:
		return fmt.Sprintf(" (exit code %d)", end.Code)
	}
	return ""
}

// ask puts one question and reads lines until the result. last closes the child's input: it ends after
// its answer. The error is errUnheard, for a child that ended at once, or a *types.SyscallError; then
// the child is of no more use.
func (c *claudeChild) ask(ctx context.Context, prompt string, tools, last bool, cfg ClaudeConfig, emit func(StreamEvent)) (*LLMResponse, error) {
	question, err := encode(map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": prompt}})
	if err != nil {
		return nil, err
	}
	idle := types.Errorf(types.ErrUnavailable, "Call", cfg.Name, "the answer broke off: nothing more came within %v", cfg.Idle)
	w := watch(ctx, cfg.FirstByte, types.Errorf(types.ErrTimeout, "Call", cfg.Name, "no answer within %v", cfg.FirstByte))
	defer w.stop()
	c.write(append(question, '\n'), last)
	t := claudeTurn{tools: tools, emit: emit, sent: len(prompt)}
	for {
		select {
		case line, ok := <-c.lines:
			if !ok {
				return nil, c.ended(&t)
			}
			c.removePrompt() // it has read it by now
			if t.line(line) {
				w.set(cfg.Idle, idle)
			}
			if t.result != nil {
				return c.conclude(&t)
			}
		case <-w.ctx.Done():
			if e := vfs.Ended(ctx, "Call", cfg.Name); e != nil {
				return nil, e
			}
			return nil, context.Cause(w.ctx)
		}
	}
}

// ended is the error of a child that ended without a result line.
func (c *claudeChild) ended(t *claudeTurn) error {
	c.stop(cliGrace)
	if !t.heard && t.stray == "" && c.stderr.Total() == 0 {
		return errUnheard
	}
	code := types.ErrDriver // a usage error, such as an option that this version does not know
	if t.began || c.Wait().Signal != 0 {
		code = types.ErrUnavailable
	}
	text := "the program ended without a result" + c.how()
	if t.stray != "" {
		text += "; it said: " + t.stray
	}
	return c.fail(code, text, nil)
}

// conclude makes the response, or the error, of a turn that has a result line.
func (c *claudeChild) conclude(t *claudeTurn) (*LLMResponse, error) {
	r := t.result
	if r.Subtype == "error_max_turns" && t.tools && t.text != "" {
		// It was asked for the object and went on to answer in words: these are its answer.
		*r = claudeResult{Result: t.text, Cost: r.Cost, Usage: r.Usage, StopReason: "end_turn"}
	}
	if r.IsError || r.Subtype != "" && r.Subtype != "success" {
		code, text, limit := t.problem()
		if limit != nil {
			limit.Message = redact(limit.Message, c.launch.secrets())
			return nil, types.Errorf(code, "Call", c.launch.provider, "%w", limit)
		}
		return nil, c.fail(code, text, nil)
	}
	resp := &LLMResponse{Content: r.Result, Reasoning: t.reasoning.String(), Model: t.model, StopReason: r.StopReason}
	if len(r.Structured) > 0 && string(r.Structured) != "null" {
		resp.Content = string(r.Structured)
	}
	if resp.CostUSD = max(r.Cost-c.cost, 0); r.Cost > c.cost { // it adds up over the session
		c.cost = r.Cost
	}
	u, known := r.Usage.tokens()
	resp.settle(u, known, t.sent)
	return resp, nil
}

// readAction turns the text of a text-only model's response into content and calls.
func readAction(resp *LLMResponse, req *LLMRequest) {
	if len(req.Tools) > 0 {
		resp.Content, resp.ToolCalls = ParseTextAction(resp.Content, req.Tools)
		numberCalls(resp.ToolCalls, req.Messages)
	}
	resp.StopReason = stopOf(resp.StopReason, resp.ToolCalls)
}

// claudeResult is the last line of a turn.
type claudeResult struct {
	Subtype    string          `json:"subtype"`
	IsError    bool            `json:"is_error"`
	Status     int             `json:"api_error_status"`
	Result     string          `json:"result"`
	Errors     []string        `json:"errors"`
	Structured json.RawMessage `json:"structured_output"`
	StopReason string          `json:"stop_reason"`
	Terminal   string          `json:"terminal_reason"`
	Cost       float64         `json:"total_cost_usd"`
	Usage      claudeUsage     `json:"usage"`
}

type claudeUsage struct {
	Input      count `json:"input_tokens"`
	Output     count `json:"output_tokens"`
	CacheRead  count `json:"cache_read_input_tokens"`
	CacheWrite count `json:"cache_creation_input_tokens"`
}

func (u *claudeUsage) tokens() (Usage, bool) {
	known := u.Input.said && u.Output.said && !u.Input.bad && !u.Output.bad && !u.CacheRead.bad && !u.CacheWrite.bad
	return Usage{Input: u.Input.n, Output: u.Output.n, CacheRead: u.CacheRead.n, CacheWrite: u.CacheWrite.n}, known
}
