package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/step"
	"rnix/types"
)

// slots is how many independent calls of a process run at once: further ones begin when a place is free.
const slots = 8

// stepper makes what is in a step.
type stepper struct{ *builder }

// stepStart begins a step.
func (b *builder) stepStart(n int, at time.Time) {
	if n := len(b.proc.kids); n > 0 {
		b.left = later(b.left, b.proc.kids[n-1].End())
	}
	b.step = b.span(b.proc, Step, fmt.Sprint(n), fmt.Sprintf("step %d", n), at)
	b.step.Step = n
	b.calls = map[callKey]*callState{}
}

func (b stepper) message(r *step.Record, at time.Time) {
	m := r.Message
	switch m.Role {
	case rnixctx.RoleAssistant:
		if r.Answer != nil {
			b.answer(r.Answer, m, at)
		}
		if b.step != nil {
			for _, c := range m.ToolCalls {
				b.calls[callKey{b.step.Step, c.ID}] = &callState{input: string(c.Input)}
			}
		}
	case rnixctx.RoleTool:
		if b.step != nil {
			if c := b.calls[callKey{b.step.Step, m.ToolCallID}]; c != nil {
				c.ended(m.Content)
				if c.answered = at; c.span != nil {
					c.span.Output = b.content(m.Content)
					b.outcome(c)
				}
			}
		}
	}
}

// answer ends a request to a model.
func (b stepper) answer(a *step.Answer, m *rnixctx.Message, at time.Time) {
	b.asked(a)
	began := later(at.Add(-a.ModelTime), b.step.Start)
	if b.model == nil {
		b.model = b.span(b.step, Model, fmt.Sprint(a.Step), "", began)
	}
	b.model.Start = began
	b.fill(a)
	b.model.Output = b.content(step.RawText(m))
	b.model.close(at, OK)
	b.model = nil
	b.endWaiting(at)
}

// asked sees to it that the step of an answer is in hand.
func (b stepper) asked(a *step.Answer) {
	if b.step != nil && b.step.Step != a.Step { // it was left, and another one has begun
		b.step.reach(b.clock.now)
		b.step, b.model = nil, nil
	}
	if b.step == nil {
		b.stepStart(a.Step, b.clock.past(earlier(a.Started, b.clock.now.Add(-a.ModelTime)), b.after()))
	}
}

// after is the end of what the process did last: before it, no step begins.
func (b stepper) after() time.Time {
	t := later(b.proc.Start, b.left)
	if n := len(b.proc.kids); n > 0 {
		t = later(t, b.proc.kids[n-1].End())
	}
	if n := len(b.gaps); n > 0 {
		t = later(t, b.gaps[n-1].End())
	}
	return t
}

// fill takes into the request in hand what an answer says.
func (b stepper) fill(a *step.Answer) {
	s := &b.model.Span
	s.Name = b.modelName(a.Provider, a.Model)
	s.Provider, s.Model, s.StopReason = a.Provider, a.Model, a.StopReason
	s.Tokens, s.PromptTokens, s.OutputTokens, s.CacheRead, s.CacheWrite = a.TokensUsed, a.Input, a.Output, a.CacheRead, a.CacheWrite
	s.Estimated, s.CostUSD = a.Estimated, a.CostUSD
	b.model.Input = b.promptOf(a.Prompt)
}

// summary shows what the model was asked for a summary of the conversation, within the step before whose question that was.
func (b stepper) summary(a *step.Answer, at time.Time) {
	b.asked(a)
	b.model = b.span(b.step, Model, fmt.Sprint(a.Step), "", later(at.Add(-a.ModelTime), b.step.Start))
	b.fill(a)
	b.model.close(at, OK)
	b.model = nil
}

// cutOff ends a request that was sent and has no answer.
func (b stepper) cutOff(a *step.Answer, at time.Time) {
	b.asked(a)
	began := later(at.Add(-a.ModelTime), b.step.Start)
	if b.model == nil {
		b.model = b.span(b.step, Model, fmt.Sprint(a.Step), "", began)
	}
	b.model.Start = began
	b.fill(a)
	b.model.close(at, Failed)
	b.model.Err, b.model.Code = "it was cut off before its answer", types.ErrCancelled
	b.model = nil
	b.endWaiting(at)
}

func (b stepper) intent(in *step.Intent, at time.Time) {
	if b.step == nil || b.step.Step != in.Step {
		b.stepStart(in.Step, later(b.after(), b.proc.Start))
	}
	k := callKey{in.Step, in.CallID}
	c := b.calls[k]
	if c == nil {
		c = &callState{}
		b.calls[k] = c
	}
	c.attempts++
	c.began = at
	c.span = b.span(b.step, Tool, fmt.Sprintf("%d %s", in.Step, in.CallID), in.Tool, at)
	s := &c.span.Span
	s.CallID, s.Attempt, s.Path, s.Effect, s.Child, s.Background = in.CallID, c.attempts, in.Path, in.Effect, in.Child, in.Background
	s.Verdict = step.LedgerInDoubt
	s.Input = b.content(c.input)
	if e := b.ledger[ledgerKey{k, c.attempts}]; e != nil {
		s.Verdict = e.Verdict
	}
}

func (b stepper) result(r *step.Result, at time.Time) {
	k := callKey{r.Step, r.CallID}
	c := b.calls[k]
	if c == nil || b.step == nil || b.step.Step != r.Step {
		return // of no answer that is there
	}
	switch {
	case c.span != nil && c.span.Open && c.span.Run == b.run:
		c.span.Dur = r.Duration
		if r.Duration <= 0 {
			c.span.Dur = at.Sub(c.span.Start)
		}
	case c.span != nil && c.span.Run != b.run: // decided without running it again
		b.judge(k, c)
		return
	case c.span == nil:
		b.late(c, r.CallID, r.Tool, at, r.Duration)
	default:
		return
	}
	c.span.Open, c.span.Status = false, OK
	if r.Error != "" || r.Code != "" {
		c.span.Status, c.span.Err, c.span.Code = Failed, bounded(r.Error), r.Code
	}
	b.clock.least(c.span.End())
	b.judge(k, c)
	b.outcome(c)
}

// late adds the span of a call of which no record says when it began.
func (b stepper) late(c *callState, id, tool string, end time.Time, took time.Duration) {
	began := b.step.Start
	for _, n := range b.step.kids {
		if n.Kind == Model {
			began = later(began, n.End())
		}
	}
	c.span = b.span(b.step, Tool, fmt.Sprintf("%d %s", b.step.Step, id), tool, later(began, end.Add(-took)))
	c.span.CallID = id
	c.span.Input = b.content(c.input)
	c.span.close(end, OK)
	c.span.Dur = min(c.span.Dur, took)
}

// judge takes over what the ledger says of a call.
func (b stepper) judge(k callKey, c *callState) {
	if e := b.ledger[ledgerKey{k, c.attempts}]; e != nil {
		c.span.Verdict, c.span.Path = e.Verdict, cmp.Or(c.span.Path, e.Path)
		if c.span.Err == "" && e.Error != "" {
			c.span.Err, c.span.Code = bounded(e.Error), e.Code
		}
	}
}

// settle decides what an open call of a process that lives, or has ended, is: the ledger says it.
func (b stepper) settle(k callKey, c *callState, at time.Time) {
	b.judge(k, c)
	if v := c.span.Verdict; v == step.LedgerFailed && !b.src.Live {
		c.span.close(at, Failed)
		b.outcome(c)
	}
}

// stepEnd ends a step.
func (b stepper) stepEnd(s *step.StepRecord, at time.Time) {
	if b.step != nil && b.step.Step != s.StepNumber {
		b.step.reach(at)
		b.step, b.model = nil, nil
	}
	if b.step == nil { // of an early version, or without an answer
		b.stepStart(s.StepNumber, b.clock.past(earlier(s.Timestamp, at.Add(-s.Duration)), b.after()))
	}
	b.unanswered(s, at)
	b.batch()
	for i := range s.ToolCalls {
		b.ranWithout(&s.ToolCalls[i], at)
	}
	end := at
	for _, n := range b.step.kids {
		end = later(end, n.End())
	}
	b.clock.least(end)
	b.step.close(end, OK)
	b.step.Name = strings.TrimSpace(b.step.Name + ": " + line(cmp.Or(s.Summary, s.Action), 160))
	if s.Error != "" {
		b.step.Status, b.step.Err = Failed, bounded(s.Error)
	}
	b.step, b.model, b.calls = nil, nil, map[callKey]*callState{}
}

// unanswered ends the request of a step that no answer has ended: it failed, or no record says more.
func (b stepper) unanswered(s *step.StepRecord, at time.Time) {
	if b.model == nil && slices.ContainsFunc(b.step.kids, func(n *node) bool { return n.Kind == Model && n.Status == OK }) {
		return
	}
	if b.model == nil && s.ModelTime <= 0 {
		return
	}
	end := at
	if s.Error == "" { // of an early version: the calls come behind it
		end = earlier(at, b.step.Start.Add(s.ModelTime))
	}
	began := later(b.step.Start, end.Add(-s.ModelTime))
	if b.model == nil {
		b.model = b.span(b.step, Model, fmt.Sprint(s.StepNumber), "", began)
	}
	b.model.Start = began
	b.fill(s.Answer())
	b.model.close(end, OK)
	if s.Error != "" {
		b.model.Status, b.model.Err = Failed, bounded(s.Error)
	}
	b.model = nil
	b.endWaiting(end)
}

// ranWithout adds a call that needed no record before it ran.
func (b stepper) ranWithout(done *step.Call, at time.Time) {
	k := callKey{b.step.Step, done.ID}
	c := b.calls[k]
	if c == nil {
		c = &callState{}
		b.calls[k] = c
	}
	if c.span == nil {
		end := at
		if !c.answered.IsZero() {
			end = c.answered
		}
		b.late(c, done.ID, done.Name, end, done.Duration)
		if done.Error != "" || done.Code != "" {
			c.span.Status, c.span.Err, c.span.Code = Failed, bounded(done.Error), done.Code
		}
		b.judge(k, c)
	}
	c.span.Path = cmp.Or(c.span.Path, done.Path)
	if c.said == "" {
		c.ended(done.Result)
	}
	b.outcome(c)
	if c.span.Output == "" {
		c.span.Output = b.content(cmp.Or(done.Result, done.Error))
	}
}

// batch moves the calls that were announced together, and of which no more than some run at once, to when
// they began.
func (b stepper) batch() {
	var all []*node
	flush := func() {
		if len(all) > slots {
			spread(all)
		}
		all = nil
	}
	for _, n := range b.step.kids {
		if n.Kind != Tool || n.Open {
			continue
		}
		if len(all) > 0 && (n.Start.Sub(all[0].Start) > tiny || n.Run != all[0].Run || n.Start.After(all[0].End())) {
			flush()
		}
		all = append(all, n)
	}
	flush()
}

// spread gives each of calls that began together the moment in which a place was free for it.
func spread(calls []*node) {
	free := make([]time.Time, slots)
	for i := range free {
		free[i] = calls[0].Start
	}
	for _, n := range calls {
		i := 0
		for j := range free {
			if free[j].Before(free[i]) {
				i = j
			}
		}
		n.Start = later(n.Start, free[i])
		free[i] = n.End()
	}
}
