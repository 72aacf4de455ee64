package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/step"
	"rnix/types"
)

const (
	// keepAt is the part of the window to which the context is compacted when the prompt passes rnixctx.FullAt of it.
	keepAt = 0.50
	// turnsAt is the part of that which the last turns may have that a summary leaves as they are.
	turnsAt = 0.25
	// leastRoom is the least that a conversation is compacted to, in tokens.
	leastRoom = 500
	// worthAt is the part of the window that a summary has to free at least: it costs a whole prompt, and in a small window each step would pay for one.
	worthAt = 0.10
)

// Compactor is what a loop needs of its process to make the conversation shorter. All methods are called from the loop's goroutine.
type Compactor interface {
	// Wanted returns the wish of a person for a compaction that is not met yet; the zero value is none.
	Wanted() Wish
	// Aside is Host.Ask for a question that is no part of the conversation.
	Aside(ctx context.Context, request []byte) (*Response, error)
	// Compact replaces the conversation by a shorter one and records that, with what a model has taken to sum it up; nil = none was asked. In one
	// record, so that a crash leaves all of it or nothing. No messages leave it as it is. met is the number of the wish that is met with it, and so are earlier ones;
	// a later one, which came while it was made, is left.
	Compact(ms []rnixctx.Message, report rnixctx.Compaction, took *step.Answer, met uint64) error
}

// Wish is that of a person for a compaction.
type Wish struct {
	Number uint64 // each has a higher one in a run; 0 = there is none
	Focus  string // what is to be kept above all, in words
}

// shortening is how a conversation is to be compacted.
type shortening struct {
	target int  // tokens that the prompt may have, without the tools
	keep   int  // tokens that the last turns may have that stay as they are
	wish   Wish // that is met with it
	wanted bool // by a person, whatever room there is
	tight  bool // the prompt as it is was too long for the model
	plain  bool // without a model
}

// makeRoom compacts the conversation before a question if it is near the window of the model, or if a person has asked for it.
func makeRoom(ctx context.Context, l *Loop, p *rnixctx.PromptResult) (*rnixctx.PromptResult, error) {
	w := float64(l.cfg.Window)
	full := w > 0 && float64(l.size(p))*l.scale > rnixctx.FullAt*w
	for before := uint64(0); ; full = false { // a wish that comes meanwhile is met, too
		s := &shortening{target: p.Tokens, wish: l.cfg.Compactor.Wanted(), wanted: !full}
		switch {
		case full:
			s.target = int(keepAt*w/l.scale) - l.toolTokens()
			s.keep = int(turnsAt * float64(s.target))
		case s.wish.Number <= before:
			return p, nil
		}
		var err error
		if p, err = shorten(ctx, l, p, s); err != nil {
			return nil, err
		}
		before = s.wish.Number
	}
}

// shorten makes the conversation shorter: a model sums it up, or else what is oldest is left out; where a model cannot answer now, nothing is. It is a record of its own, written when all is done.
// The error is that of the record, of the end of ctx, or ErrHeld.
func shorten(ctx context.Context, l *Loop, p *rnixctx.PromptResult, s *shortening) (*rnixctx.PromptResult, error) {
	room := max(s.target-rnixctx.EstimateTokens(p.SystemPrompt), leastRoom)
	plan := rnixctx.PlanSummary(p.Messages, s.keep)
	asked := s.wanted || s.wish.Number > 0 // by somebody, also where the window is full
	var took *step.Answer
	var failed string
	switch {
	case plan == nil && s.wanted:
		return recompact(l, s, nil, rnixctx.Compaction{Failed: "there is only one turn"}, nil)
	case s.plain || !l.cfg.Aside || plan == nil || !asked && !worth(l, p, plan):
	default:
		summary, answer, err := summarise(ctx, l, p, s, room)
		if err != nil && answer == nil && (errors.Is(err, ErrHeld) || ctx.Err() != nil) {
			return nil, err
		}
		if took = answer; err == nil {
			ms, report := plan.Apply(summary, planOf(l), room)
			return recompact(l, s, ms, report, took)
		}
		failed = rnixctx.Elide(reason(err), 200)
		switch {
		case types.CodeOf(err) == types.ErrStorage:
			return nil, err
		case passing(err) && s.wanted:
			return recompact(l, s, nil, rnixctx.Compaction{Failed: failed}, took)
		case passing(err) && !s.tight: // the question meets the same, and waits for its end: nothing has to be left out for that
			return p, nil
		}
	}
	if s.wanted {
		room = max(room/2, leastRoom)
	}
	ms, report := rnixctx.Compact(p.Messages, room)
	if !asked && took == nil && report.Dropped+report.Shortened == 0 { // it is as short as it gets
		return p, nil
	}
	if report.Failed = failed; asked && report.Dropped+report.Shortened == 0 {
		report.Failed, ms = cmp.Or(failed, "there is nothing to leave out"), nil
	}
	return recompact(l, s, ms, report, took)
}

// worth reports whether a summary frees enough of the window, or of what was too long for a window that is not known.
func worth(l *Loop, p *rnixctx.PromptResult, plan *rnixctx.Summary) bool {
	window := float64(l.cfg.Window)
	if window == 0 {
		window = float64(l.size(p)) * l.scale
	}
	return float64(plan.Frees())*l.scale >= worthAt*window
}

// passing reports whether a model has not answered for a reason that goes by: a limit, a server that is away, a key that is not there.
func passing(err error) bool {
	switch types.CodeOf(err) {
	case types.ErrRateLimited, types.ErrUnavailable, types.ErrDisconnected, types.ErrAuth:
		return true
	}
	return false
}

func recompact(l *Loop, s *shortening, ms []rnixctx.Message, report rnixctx.Compaction, took *step.Answer) (*rnixctx.PromptResult, error) {
	if err := l.cfg.Compactor.Compact(ms, report, took, s.wish.Number); err != nil {
		return nil, err
	}
	return l.host.Prompt()
}

func planOf(l *Loop) string {
	if l.cfg.Now == nil {
		return ""
	}
	return l.cfg.Now.Plan()
}

// summarise asks the model for a summary, within the budget. answer is what it took; nil = there is no answer. It is counted already, and to be recorded with what
// becomes of it.
func summarise(ctx context.Context, l *Loop, p *rnixctx.PromptResult, s *shortening, room int) (summary string, answer *step.Answer, err error) {
	ms, generation := p.Messages, p.Generation
	if s.tight {
		ms, _ = rnixctx.Compact(ms, room)
		generation = math.MaxUint64 // of which nothing was counted
	}
	q, err := rnixctx.NewPrompt(p.SystemPrompt, append(ms[:len(ms):len(ms)], rnixctx.SummaryQuestion(s.wish.Focus)))
	if err != nil {
		return "", nil, err
	}
	q.Generation = generation
	most := bound(l, q)
	head := l.req.said
	head.Aside = true
	req, err := newRequest(head, l.req.specs)
	if err != nil {
		return "", nil, err
	}
	n, err := l.cfg.Budget.Reserve(ctx, l.weighed(q, most, new(weight)))
	if err != nil {
		if _, ok := errors.AsType[*Broke](err); ok {
			err = errors.New("too little of the budget is left for it")
		}
		return "", nil, err
	}
	began := time.Now()
	resp, err := l.cfg.Compactor.Aside(ctx, req.bytes(q, n))
	if err != nil {
		return "", nil, noAnswer(ctx, l, q, most, n, began, err)
	}
	answer = settle(l, q, resp, began)
	if summary = summaryIn(resp); summary == "" {
		return "", answer, errors.New("the model has written none")
	}
	return summary, answer, nil
}

// settle counts what a summary has taken.
func settle(l *Loop, q *rnixctx.PromptResult, resp *Response, began time.Time) *step.Answer {
	if !resp.Usage.sane() {
		resp.Usage = Usage{Input: l.size(q), Output: rnixctx.EstimateTokens(resp.Content), Estimated: true}
	}
	u := resp.Usage
	cost := l.cfg.Budget.Settle(resp)
	a := &step.Answer{Step: l.progress.Step, Prompt: len(q.Messages), Started: began, ModelTime: time.Since(began), Provider: resp.Provider, Model: resp.Model,
		TokensUsed: u.Input + u.Output + u.CacheRead + u.CacheWrite, Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite,
		Estimated: u.Estimated, CostUSD: cost.USD, CostFrom: cost.From, StopReason: resp.StopReason}
	spent(l, a, step.AddSpending)
	return a
}

// summaryIn returns the summary in an answer. A model that only knows actions gives it as the result of one.
func summaryIn(resp *Response) string {
	if text := strings.TrimSpace(resp.Content); text != "" || len(resp.ToolCalls) != 1 {
		return text
	}
	var in struct {
		Result string `json:"result"`
	}
	if resp.ToolCalls[0].Name != Meta[Complete].Name || json.Unmarshal(resp.ToolCalls[0].Input, &in) != nil {
		return ""
	}
	return strings.TrimSpace(in.Result)
}
