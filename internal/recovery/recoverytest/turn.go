package recoverytest

import (
	"encoding/json"
	"fmt"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/step"
	"rnix/types"
)

// turn writes one step, or what a crash leaves of it.
func (t *teller) turn() {
	if t.odd(10) {
		t.marker(step.Marker{Name: step.MarkerPause, PID: t.pid})
		t.commit()
		t.marker(step.Marker{Name: step.MarkerResume, PID: t.pid})
		t.commit()
	}
	if t.odd(10) {
		detail := json.RawMessage(`{"n":` + fmt.Sprint(t.step) + `}`)
		if t.chance(30) {
			detail = json.RawMessage("null")
		}
		t.marker(step.Marker{Name: step.MarkerNote, PID: t.pid, Text: fmt.Sprint("note", t.r.IntN(3)), Detail: detail})
		t.commit()
	}
	if t.odd(10) {
		t.marker(step.Marker{Name: step.MarkerName, PID: t.pid, Text: []string{"", "night", "day"}[t.r.IntN(3)]})
		t.commit()
	}
	if t.odd(8) {
		t.compact()
	}
	t.letters()
	t.step++
	rec := &step.StepRecord{StepNumber: t.step, MessageCount: len(t.ms), Timestamp: time.Now(), ModelTime: time.Millisecond, Duration: time.Second,
		TokensUsed: 1 + t.r.IntN(500), Input: 3, Output: 4, Estimated: t.odd(5), CostUSD: float64(t.r.IntN(1000)) / 997,
		Provider: "p", Model: fmt.Sprint("m", t.r.IntN(3)), Summary: "does something"}
	for t.odd(12) {
		t.cutOff()
	}
	switch n := t.r.IntN(100); {
	case t.o.Plain || n < 80:
		t.tools(rec)
	case n < 85: // no answer
		rec.TokensUsed, rec.CostUSD, rec.Action, rec.Error = 0, 0, "text", "unavailable"
		t.record(rec)
		t.exit()
	case n < 90: // an empty one
		rec.Action = "text"
		t.record(rec)
		t.user("[Your last answer was empty.]")
	default:
		t.say(rec)
	}
}

// cutOff has a request cut off: by a pause, and it is asked again, or by the end of the run.
func (t *teller) cutOff() {
	a := &step.Answer{Step: t.step, Prompt: len(t.ms), Started: time.Now().UTC().Round(0), ModelTime: time.Millisecond, Provider: "p", Model: fmt.Sprint("m", t.r.IntN(3)),
		Input: 1 + t.r.IntN(300), Output: t.r.IntN(20), Estimated: true}
	if a.TokensUsed = a.Input + a.Output; t.chance(50) {
		a.CostUSD, a.CostFrom = float64(t.r.IntN(1000))/997, "built-in"
	}
	m, err := step.CutOffMarker(t.pid, a)
	if err != nil && t.err == nil {
		t.err = err
	}
	t.marker(m)
	t.commit()
}

func (p *pen) compact() {
	ms, report := rnixctx.Compact(p.ms, 50+p.r.IntN(400))
	detail, err := step.CompactionDetail(ms, nil, false)
	if err != nil && p.err == nil {
		p.err = err
	}
	p.ms = ms
	m := step.Marker{Name: step.MarkerCompaction, PID: p.pid, Text: report.String(), Detail: detail}
	p.add(step.Record{Kind: step.KindMarker, Marker: &m}, func() error { return p.w.Marker(&m) })
}

func (p *pen) record(rec *step.StepRecord) {
	p.add(step.Record{Kind: step.KindStep, Step: rec}, func() error { return p.w.Step(rec) })
	p.commit()
}

// answer writes a model's answer.
func (p *pen) answer(rec *step.StepRecord, m rnixctx.Message) {
	if m.Content = p.text(30); m.Content == "" && len(m.ToolCalls) == 0 {
		m.Content = "so be it"
	}
	m.Role, rec.RawResponse = rnixctx.RoleAssistant, m.Content
	if p.odd(10) {
		m.Reasoning = []rnixctx.Block{{Provider: "p", Data: json.RawMessage(`{"signature": "<abc>"}`)}}
	}
	p.ms = append(p.ms, m)
	r := step.Record{Kind: step.KindMessage, Message: &m}
	if !p.o.NoAnswers {
		r.Answer = rec.Answer()
	}
	p.add(r, func() error {
		if r.Answer == nil {
			return p.w.Message(&m)
		}
		return p.w.Answer(&m, r.Answer)
	})
}

// say writes a step whose answer is text: the result, or cut.
func (t *teller) say(rec *step.StepRecord) {
	rec.Action = "text"
	t.answer(rec, rnixctx.Message{})
	more := t.chance(40)
	if more {
		t.user("[Your answer was cut at the output limit.]")
	}
	if t.chance(10) { // torn between two lines
		t.crash(rec, nil)
		return
	}
	t.record(rec)
	if !more {
		t.exit()
	}
}

var effects = []string{"none", "idempotent", "reversible", "external"}

// tools writes a step whose answer has calls.
func (t *teller) tools(rec *step.StepRecord) {
	var m rnixctx.Message
	calls := make([]call, 1+t.r.IntN(5))
	for i := range calls {
		calls[i] = t.call(i)
		m.ToolCalls = append(m.ToolCalls, calls[i].ToolCall)
	}
	t.answer(rec, m)
	t.run(rec, calls)
}

// call makes up a call. Providers number calls anew in each answer.
func (t *teller) call(i int) call {
	c := call{effect: effects[t.r.IntN(len(effects))]}
	c.ID = fmt.Sprintf("call_%d", i)
	input := func(v any) {
		b, err := json.Marshal(v)
		if err != nil && t.err == nil {
			t.err = err
		}
		c.Input = b
	}
	c.Name = "tool_" + c.effect
	input(map[string]string{"path": "src/" + t.text(3), "text": t.text(40)})
	switch n := t.r.IntN(100); {
	case t.o.Plain:
	case n < 6:
		c.Name, c.own = "plan", true
		input(map[string]any{"steps": []string{"look " + t.text(3), "act"}})
	case n < 12:
		c.Name, c.own = "replan", true
		input(map[string]any{"reason": "found <more>", "steps": []string{"again"}})
	case n < 18:
		c.problem = true
		c.Name = "no_such_tool"
	case n < 28:
		id := types.NewUUID()
		c.Name, c.effect, c.child = "spawn", "external", &id
		input(map[string]string{"intent": t.text(5)})
	case n < 34:
		c.Input = json.RawMessage(`{"command": "a < b && c", "n": 1.50}`) // as a model writes it
	}
	return c
}

// run performs what is left of the calls, and records the step. At any line it may end.
func (t *teller) run(rec *step.StepRecord, calls []call) {
	refuse := t.odd(4)
	for i := 0; i < len(calls); {
		j := i + 1 + t.r.IntN(min(len(calls)-i, 3))
		for ; t.odd(3); refuse = true {
			// a pause held it, and the process was ended there
		}
		if t.batch(rec, calls[i:j], refuse) {
			t.crash(rec, calls)
			return
		}
		i = j
	}
	if t.odd(10) {
		t.user("[The same calls have given the same answers.]")
	}
	t.finish(rec, calls)
	if refuse && !t.over {
		t.end()
	}
}

// finish writes the record of a step whose calls have been answered.
func (t *teller) finish(rec *step.StepRecord, calls []call) {
	rec.Action = "tool_call"
	for i := range calls {
		c := &calls[i]
		done := step.Call{ID: c.ID, Name: c.Name, Path: "/dev/" + c.effect, Input: string(c.Input), Result: "r", Duration: time.Millisecond}
		if c.err != "" {
			done.Error, done.Code = c.err, types.ErrDriver
		}
		rec.ToolCalls = append(rec.ToolCalls, done)
	}
	if t.odd(30) {
		rec.Files = t.snapshot(rec.StepNumber)
	}
	t.open, t.calls = nil, nil
	t.record(rec)
}

// crash leaves a step as it is: the machine has stopped.
func (t *teller) crash(rec *step.StepRecord, calls []call) {
	t.commit()
	t.open, t.calls, t.over = rec, calls, true
}

// batch runs calls side by side. It reports whether the machine stopped in it.
func (t *teller) batch(rec *step.StepRecord, calls []call, refuse bool) (crashed bool) {
	stop := func() bool { return t.odd(1) || t.err != nil }
	for i := range calls {
		if refuse {
			calls[i].problem, calls[i].err = true, "not run"
		}
		if t.intend(rec, &calls[i]) && stop() {
			return true
		}
	}
	t.commit()
	if t.odd(4) {
		return true
	}
	for i := range calls {
		if c := &calls[i]; c.begun > 0 {
			if t.odd(15) {
				c.err = "it failed <badly>"
			}
			t.result(rec, c)
			if stop() {
				return true
			}
		}
	}
	for i := range calls {
		t.reply(&calls[i], t.text(60))
		if stop() {
			return true
		}
	}
	return false
}

// intend announces a call, if it has an effect.
func (p *pen) intend(rec *step.StepRecord, c *call) bool {
	if c.own || c.problem {
		return false
	}
	c.begun++
	in := &step.Intent{Step: rec.StepNumber, CallID: c.ID, Tool: c.Name, Path: "/dev/" + c.effect, Input: c.Input, Effect: c.effect, Child: c.child,
		Key: fmt.Sprintf("%d/%s", rec.StepNumber, c.ID)}
	if c.effect == "reversible" {
		in.Before = p.snapshot(rec.StepNumber - 1)
	}
	p.add(step.Record{Kind: step.KindIntent, Intent: in}, func() error { return p.w.Intent(in) })
	return true
}

func (p *pen) result(rec *step.StepRecord, c *call) {
	res := &step.Result{Step: rec.StepNumber, CallID: c.ID, Tool: c.Name, Output: "r", Duration: time.Millisecond, Error: c.err}
	if c.err != "" {
		res.Code = types.ErrDriver
	}
	p.add(step.Record{Kind: step.KindResult, Result: res}, func() error { return p.w.Result(res) })
}

func (p *pen) reply(c *call, text string) {
	c.answered = true
	p.message(rnixctx.Message{Role: rnixctx.RoleTool, ToolCallID: c.ID, Content: text, IsError: c.err != "" || c.problem})
}
