package cli

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"rnix/ipc"
	"rnix/types"
)

// resultLine is the last line of stream-json.
type resultLine struct {
	lineHead                         // success, error_max_turns, error_max_budget_usd, error_max_structured_output_retries, error_during_execution
	IsError    bool                  `json:"is_error"`
	Duration   int64                 `json:"duration_ms"`
	APITime    int64                 `json:"duration_api_ms"` // how long its models were asked
	Turns      int                   `json:"num_turns"`       // its steps
	Result     string                `json:"result"`
	Stop       *string               `json:"stop_reason"`              // of the last answer
	CostUSD    *float64              `json:"total_cost_usd,omitempty"` // with its children and theirs; left out if nobody knows any of it
	Usage      *apiUsage             `json:"usage,omitempty"`          // of its own answers; left out if it could not be read
	Models     map[string]modelUsage `json:"modelUsage,omitzero"`      // likewise
	Denied     []deniedCall          `json:"permission_denials"`
	Structured json.RawMessage       `json:"structured_output,omitempty"` // as of runData
	Errors     []string              `json:"errors,omitempty"`
	Terminal   string                `json:"terminal_reason,omitempty"`

	// What is ours.
	End       string    `json:"end"` // success, error, error_budget, ..., interrupted, suspended, detached
	OK        bool      `json:"ok"`
	PID       types.PID `json:"pid,omitempty"`
	Failed    int       `json:"failed_calls,omitempty"`
	Tokens    int       `json:"tokens_used"`
	Estimated bool      `json:"estimated,omitempty"`
	OwnUSD    float64   `json:"cost_usd,omitempty"`
	Unpriced  int       `json:"unpriced_tokens,omitempty"` // of an unknown price, of all of total_cost_usd
	ExitCode  *int      `json:"exit_code,omitempty"`       // of the process; left out if it has not ended
	Reason    string    `json:"exit_reason,omitempty"`
	types.Denials
	MCPDown  []string         `json:"mcp_down,omitempty"` // as of runData
	Error    *types.WireError `json:"error,omitempty"`
	Worktree *ipc.Worktree    `json:"worktree,omitempty"`
}

type (
	modelUsage struct {
		Input      int     `json:"inputTokens"`
		Output     int     `json:"outputTokens"`
		CacheRead  int     `json:"cacheReadInputTokens"`
		CacheWrite int     `json:"cacheCreationInputTokens"`
		CostUSD    float64 `json:"costUSD"`
	}
	// deniedCall is a call that was refused, with its id and input if this stream had it.
	deniedCall struct {
		Tool   string          `json:"tool_name"`
		CallID string          `json:"tool_use_id,omitempty"`
		Input  json.RawMessage `json:"tool_input,omitempty"`
		Text   string          `json:"text"`
		Why    string          `json:"why"`
	}
	// refusedCall is a call whose result says that it may not be made.
	refusedCall struct {
		call   callBlock
		result string
	}
)

// refusal begins the result of a call that may not be made.
const refusal = "error (permission): "

// resultOf is the last line of a stream about a process that ended so, or about none.
func (t *lineStream) resultOf(r *ipc.WaitResponse, end string, err error) *resultLine {
	l := &resultLine{IsError: err != nil, Duration: r.ElapsedMs, Turns: r.Steps, Result: r.Result, Denied: []deniedCall{}, End: end, OK: err == nil, PID: r.PID, Failed: r.FailedCalls,
		Tokens: r.TokensUsed, Estimated: r.Estimated, OwnUSD: r.CostUSD, Unpriced: r.Unpriced, Reason: r.Exit.Reason, Denials: r.Denials, MCPDown: r.MCPDown}
	l.lineHead = t.head("result", "")
	l.Subtype, l.Terminal = t.claudeEnd(r, end)
	usd := r.CostUSD
	if r.FamilyTokens > 0 {
		usd, l.Unpriced = r.FamilyUSD, r.FamilyUnpriced
	}
	some := t.spawn == nil || t.totals.known || r.Steps > 0 || r.TokensUsed > 0 // else it may have cost something since
	if usd > 0 || l.Unpriced == 0 && some {
		l.CostUSD = &usd
	}
	if r.Exit.Code != types.ExitOK || end == "success" {
		l.ExitCode = &r.Exit.Code
	}
	l.Denied = append(l.Denied, t.denied(r.Denials.Denials)...)
	if err != nil {
		l.Error = types.ToWire(err)
		l.Errors = []string{l.Error.Message}
	}
	if a := &t.totals; a.known {
		l.APITime, l.Usage, l.Models, l.Stop = a.asked.Milliseconds(), &a.usage, map[string]modelUsage{}, stopOf(a.stop)
		maps.Copy(l.Models, a.models)
	}
	return l
}

// end writes the last line of a stream, behind the end of a message that is still open.
func (t *lineStream) end(l *resultLine) {
	if t.partial {
		t.write(t.pieces.broken())
		t.pieces = answerPieces{}
	}
	t.out.object(l)
}

// denied returns the calls of denials, which are in the order in which they were refused.
func (t *lineStream) denied(list []types.Denial) (out []deniedCall) {
	refused := slices.Clone(t.refused)
	for i := range list {
		d := deniedCall{Tool: list[i].Tool, Text: list[i].Text, Why: list[i].Why}
		rule := d.Why[:strings.LastIndexByte(d.Why, '"')+1]
		at := slices.IndexFunc(refused, func(c refusedCall) bool {
			return c.call.Name == d.Tool && (rule != "" && strings.Contains(c.result, rule) || strings.Contains(c.result, "a person has refused this call"))
		})
		if at >= 0 {
			d.CallID, d.Input = refused[at].call.ID, refused[at].call.Input
			refused = slices.Delete(refused, at, at+1)
		}
		out = append(out, d)
	}
	return out
}

// failed is the last line of a stream of which no end of a process is known.
func (t *lineStream) failed(err error) *resultLine {
	l := t.resultOf(t.leftAt(), "error", err)
	l.Error = wireError(err)
	l.Errors = []string{l.Error.Message}
	return l
}

// claudeEnd are the names that readers of claude's lines know for an end.
func (t *lineStream) claudeEnd(r *ipc.WaitResponse, end string) (subtype, terminal string) {
	switch {
	case end == "success":
		return "success", "completed"
	case end == "detached":
		return "success", ""
	case end == "interrupted" && len(t.pieces.blocks) > 0:
		return "error_during_execution", "aborted_streaming"
	case end == "interrupted":
		return "error_during_execution", "aborted_tools"
	case r.Exit.MaxSteps():
		return "error_max_turns", "max_turns"
	case r.Exit.Code == types.ExitBudget && r.Exit.Reason == types.ReasonBudget: // and not a rate limit, a missing key, a child that waits
		return "error_max_budget_usd", "budget_exhausted"
	case t.out.exact && r.Exit.Code == types.ExitError && strings.HasPrefix(r.Exit.Reason, "the result "): // does not fit
		return "error_max_structured_output_retries", "structured_output_retry_exhausted"
	}
	return "error_during_execution", ""
}

// leftAt is what is known of a process that runs on without this client.
func (t *lineStream) leftAt() *ipc.WaitResponse {
	r := &ipc.WaitResponse{ElapsedMs: time.Since(t.begun).Milliseconds()}
	if t.spawn != nil {
		r.PID, r.UUID = t.spawn.PID, t.spawn.UUID
	}
	a := &t.totals
	r.Steps, r.TokensUsed, r.Estimated, r.CostUSD, r.Unpriced = a.after, a.tokens, a.usage.Estimated, a.costUSD, a.unpriced
	return r
}

// usageTotals adds up the usage of the answers of a process.
type usageTotals struct {
	after    int                     // the last step that is counted
	took     map[int]*ipc.StepAnswer // the answers whose messages are still to be written, by their steps
	open     *ipc.StepAnswer         // the answer of the step behind, which has not ended
	known    bool
	usage    apiUsage
	tokens   int
	costUSD  float64
	unpriced int // tokens of an unknown price
	asked    time.Duration
	models   map[string]modelUsage
	stop     string // why the last answer ended
}

// read counts the steps that are new since the last call.
func (t *usageTotals) read(ctx context.Context, c *ipc.Client, id types.UUID, patience time.Duration) error {
	for {
		r, err := callWithin(ctx, patience, c, ipc.ListSteps, ipc.StepsRequest{Target: id.String(), After: t.after, Limit: ipc.MaxPageSteps, Bare: true})
		if err != nil {
			return err
		}
		for i := range r.Steps {
			s := &r.Steps[i]
			a := &ipc.StepAnswer{Step: s.StepNumber, ModelTime: s.ModelTime, Provider: s.Provider, Model: s.Model, StopReason: s.StopReason, TokensUsed: s.TokensUsed, Output: s.Output,
				CacheRead: s.CacheRead, CacheWrite: s.CacheWrite, Estimated: s.Estimated, CostUSD: s.CostUSD, CostFrom: s.CostFrom}
			t.after = max(t.after, a.Step)
			t.add(a)
			t.note(a)
		}
		if t.open = r.Open; r.Open != nil {
			t.note(r.Open)
		}
		if r.Next == 0 || len(r.Steps) == 0 {
			t.known = true
			return nil
		}
	}
}

func (t *usageTotals) add(a *ipc.StepAnswer) {
	u := usageOf(a)
	sum := &t.usage
	sum.Input, sum.Output, sum.CacheRead, sum.CacheWrite = sum.Input+u.Input, sum.Output+u.Output, sum.CacheRead+u.CacheRead, sum.CacheWrite+u.CacheWrite
	sum.Estimated = sum.Estimated || u.Estimated
	t.tokens, t.costUSD, t.asked, t.stop = t.tokens+a.TokensUsed, t.costUSD+a.CostUSD, t.asked+a.ModelTime, a.StopReason
	if a.CostFrom == "" && a.CostUSD == 0 {
		t.unpriced += a.TokensUsed
	}
	if a.Model == "" {
		return
	}
	if t.models == nil {
		t.models = map[string]modelUsage{}
	}
	m := t.models[a.Model]
	m.Input, m.Output, m.CacheRead, m.CacheWrite = m.Input+u.Input, m.Output+u.Output, m.CacheRead+u.CacheRead, m.CacheWrite+u.CacheWrite
	m.CostUSD += a.CostUSD
	t.models[a.Model] = m
}

func (t *usageTotals) note(a *ipc.StepAnswer) {
	if t.took == nil {
		t.took = map[int]*ipc.StepAnswer{}
	}
	t.took[a.Step] = a
}

// take returns the answer of a step, whose message is written now; nil = it is not known. It forgets those before.
func (t *usageTotals) take(step int) *ipc.StepAnswer {
	a := t.took[step]
	maps.DeleteFunc(t.took, func(n int, _ *ipc.StepAnswer) bool { return n <= step })
	return a
}

// end adds the answer of a step that has not ended: it is paid for.
func (t *usageTotals) end() {
	if t.open != nil {
		t.add(t.open)
		t.open = nil
	}
}
