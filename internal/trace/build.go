package trace

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/compose"
	"rnix/internal/event"
	"rnix/internal/step"
	"rnix/types"
)

// node is a span while the trace is made.
type node struct {
	Span
	up    *node
	kids  []*node
	after []types.UUID // of a process: see Source
	nodes []compose.Status
	// told is what a call answered of its own failure, though it was made well: see step.Failure.Answered. Its status is
	// Failed, and what it is in has not failed for that.
	told string
	// through are spans outside of its own for which it waited: a child that it had not started itself, or
	// not in this attempt.
	through []*node
}

// builder makes the spans of one history. The zero value of the times: it has not happened.
type builder struct {
	src   *Source
	texts *texts
	clock clock
	proc  *node
	ids   map[string]int
	run   int
	pid   types.PID
	why   string // why nobody runs; "" = somebody does

	step    *node
	left    time.Time // the end of the steps before the latest one
	model   *node     // the request that has no answer yet
	calls   map[callKey]*callState
	pause   *node
	waiting *node
	prompt  int                // how many messages the step's prompt had
	said    []*rnixctx.Message // the conversation, if content is asked for
	ledger  map[ledgerKey]*step.LedgerEntry
	gaps    []*node
	pauses  []*node
}

type callKey struct {
	step int
	id   string
}

type ledgerKey struct {
	callKey
	attempt int
}

// callState is a call of the step in hand.
type callState struct {
	span     *node // the latest attempt; nil = it was not begun
	attempts int
	began    time.Time // when its batch was written down
	answered time.Time
	said     string // the end of what it answered
	input    string
}

// build makes the spans of a source, without those of others. now is when it was read.
func build(src *Source, now time.Time, texts *texts) *node {
	b := &builder{src: src, texts: texts, ids: map[string]int{}, calls: map[callKey]*callState{}, ledger: map[ledgerKey]*step.LedgerEntry{}}
	h := src.History
	info := h.Info()
	b.proc = &node{Span: Span{UUID: h.UUID, Kind: Process, PID: info.PID, Name: cmp.Or(info.Name, info.Agent, line(info.Intent, nameLength), "process"), Status: Open,
		Agent: info.Agent, Body: info.Kind, Intent: line(info.Intent, 200), Provider: info.Provider, Model: info.Model, Damage: h.Damage}}
	b.proc.ID = b.id("process")
	b.proc.after, b.proc.nodes = src.After, src.Nodes
	calls := h.Ledger()
	if src.Live {
		calls = h.LiveLedger()
	}
	for i := range calls {
		e := &calls[i]
		b.ledger[ledgerKey{callKey{e.Step, e.CallID}, e.Attempt}] = e
	}
	copied := uint64(0)
	if r := h.Records; len(r) > 0 && r[0].Marker != nil && r[0].Marker.Name == step.MarkerFork {
		var f step.ForkDetail
		if json.Unmarshal(r[0].Marker.Detail, &f) == nil {
			copied = f.Records + 1
		}
	}
	events := src.Events
	for i := range h.Records {
		r := &h.Records[i]
		if r.Seq <= copied {
			b.remember(r) // it is its origin's, but the conversation goes on from there
			continue
		}
		for len(events) > 0 && events[0].Time.Before(r.Time) && !early(b, &events[0]) {
			b.event(&events[0])
			events = events[1:]
		}
		b.record(r)
	}
	for i := range events {
		b.event(&events[i])
	}
	b.finish(now)
	return b.proc
}

// early reports whether an event tells of a step behind the one in hand: a clock was set, and it seems to come
// sooner than it does.
func early(b *builder, e *event.Event) bool {
	return e.Kind == event.StepStarted && b.step != nil && e.Step > b.step.Step && b.why == ""
}

// id returns the id of a span. Several with the same key are numbered in their order.
func (b *builder) id(key string) string {
	b.ids[key]++
	sum := sha256.Sum256(fmt.Appendf(b.src.History.UUID[:], "%s#%d", key, b.ids[key]))
	return hex.EncodeToString(sum[:8])
}

// span begins a span below up.
func (b *builder) span(up *node, kind Kind, key, name string, at time.Time) *node {
	n := &node{up: up, Span: Span{ID: b.id(string(kind) + " " + key), Parent: up.ID, PID: b.pid, UUID: b.src.History.UUID, Kind: kind, Name: name,
		Start: at, Open: true, Status: Open, Run: b.run}}
	if b.step != nil && kind != Process {
		n.Step = b.step.Step
	}
	up.kids = append(up.kids, n)
	return n
}

// close ends a span.
func (n *node) close(at time.Time, status Status) {
	n.Dur, n.Open, n.Status = max(at.Sub(n.Start), 0), false, status
}

// reach makes a span that is open last up to at.
func (n *node) reach(at time.Time) { n.Dur = max(n.Dur, at.Sub(n.Start)) }

func (b *builder) record(r *step.Record) {
	m := r.Marker
	if m != nil && (m.Name == step.MarkerSpawn || m.Name == step.MarkerResumed) {
		b.begin(m, r.Time)
		return
	}
	if b.run == 0 { // damaged: nothing has begun
		b.begin(&step.Marker{PID: b.proc.PID}, r.Time)
	}
	if m != nil && m.Name == step.MarkerInterrupted {
		b.end("the daemon ended without warning")
		return
	}
	if b.why != "" { // between two runs: mail, limits
		b.remember(r)
		return
	}
	var took time.Duration
	if r.Answer != nil {
		took = r.Answer.ModelTime
	}
	at := b.clock.behind(r.Time, took)
	switch r.Kind {
	case step.KindMessage:
		stepper{b}.message(r, at)
	case step.KindIntent:
		stepper{b}.intent(r.Intent, at)
	case step.KindResult:
		stepper{b}.result(r.Result, at)
	case step.KindStep:
		stepper{b}.stepEnd(r.Step, at)
	case step.KindMarker:
		b.marker(m, at)
	}
	b.remember(r)
}

func (b *builder) marker(m *step.Marker, at time.Time) {
	switch m.Name {
	case step.MarkerPause:
		if b.pause == nil {
			b.pause = &node{Span: Span{Kind: Wait, Name: "paused", Start: at, Run: b.run, PID: b.pid}}
		}
	case step.MarkerResume:
		b.endPause(at, false)
	case step.MarkerCutOff:
		if a, ok := step.CutOff(m); ok {
			stepper{b}.cutOff(a, at)
		}
	case step.MarkerCompaction:
		if a, ok := step.SummedUp(m); ok {
			stepper{b}.summary(a, at)
		}
	case step.MarkerExit:
		b.proc.Exit, b.proc.Output = m.Exit, b.content(m.Text)
		b.end("")
		b.why = "it has ended"
	case step.MarkerSuspended:
		b.proc.Exit = m.Exit
		b.end("suspended: " + m.Text)
	case step.MarkerDaemonStop:
		b.end("the daemon was stopped")
	}
}

// begin begins a run.
func (b *builder) begin(m *step.Marker, raw time.Time) {
	if b.run > 0 && b.why == "" {
		b.end("the daemon ended without warning")
	}
	was := b.clock.now
	b.run++
	b.pid = m.PID
	if b.run == 1 {
		var s step.Settled
		if json.Unmarshal(m.Detail, &s) == nil && m.Name == step.MarkerSpawn && s.CreatedAt.Before(raw) && raw.Sub(s.CreatedAt) < time.Hour {
			b.clock.at(s.CreatedAt)
		}
	}
	at := b.clock.at(raw)
	if b.run == 1 {
		b.proc.Start, b.proc.Run = at, 1
		if m.Name == step.MarkerSpawn {
			var s step.Settled
			if json.Unmarshal(m.Detail, &s) == nil && s.CreatedAt.Before(raw) && raw.Sub(s.CreatedAt) < time.Hour {
				b.proc.Start = s.CreatedAt.Round(0)
			}
		}
	} else {
		gap := &node{Span: Span{Kind: Wait, Name: b.why, Start: was, Dur: at.Sub(was), Idle: true, Status: OK, Run: b.run - 1, IdleNs: at.Sub(was), PID: b.proc.PID}}
		b.gaps = append(b.gaps, gap)
	}
	b.proc.PID = cmp.Or(b.proc.PID, m.PID)
	b.why, b.proc.Exit, b.proc.Runs = "", nil, b.run
}

// end ends a run: what is open stays so, up to here.
func (b *builder) end(why string) {
	at := b.clock.now
	b.endPause(at, true)
	b.endWaiting(at)
	for k, c := range b.calls {
		if c.span != nil && c.span.Open && c.span.Run == b.run {
			c.span.reach(at)
			if why == "" { // it has ended, so this has, too, unless the ledger says that nobody knows
				stepper{b}.settle(k, c, at)
			}
		}
	}
	if b.model != nil { // it has no answer, and is asked again
		b.model.reach(at)
		if b.step != nil {
			b.step.reach(at)
		}
		b.model, b.step = nil, nil
	}
	if b.step != nil {
		b.step.reach(at)
	}
	b.proc.reach(at)
	b.why = cmp.Or(why, "it has ended")
}

// finish ends what the records do not end.
func (b *builder) finish(now time.Time) {
	p := &b.proc.Span
	if b.run == 0 {
		p.Start, p.Open = now.Round(0), true
		return
	}
	if b.why == "" && b.src.Live {
		if at := now.Round(0).Add(b.clock.shift); at.After(b.clock.now) {
			b.clock.now = at
		}
		b.end("")
	} else if b.why == "" {
		b.end("the daemon ended without warning")
	}
	b.place()
	b.sum(b.proc)
	switch {
	case b.src.Live || p.Exit == nil:
		p.Open, p.Status = true, Open
	case b.why == "it has ended":
		p.Status = OK
		if p.Exit.Code != types.ExitOK {
			p.Status, p.Err, p.Code = Failed, bounded(p.Exit.Reason), types.CodeOf(p.Exit.Err)
			code(b.proc)
		}
	default:
		p.Open, p.Status, p.Code = true, Open, types.CodeOf(p.Exit.Err)
	}
	stepCodes(b.proc)
	if p.Status == Open && !b.src.Live {
		p.Err = bounded(b.why)
	}
	p.Input = b.content(b.src.History.Info().Intent)
	if !b.src.Content {
		p.Input = ""
	}
}

// sum adds up what the models of a process took.
func (b *builder) sum(n *node) {
	for _, k := range n.kids {
		if k.Kind == Model {
			p := &b.proc.Span
			p.Tokens, p.PromptTokens, p.OutputTokens = p.Tokens+k.Tokens, p.PromptTokens+k.PromptTokens, p.OutputTokens+k.OutputTokens
			p.CacheRead, p.CacheWrite, p.CostUSD, p.Estimated = p.CacheRead+k.CacheRead, p.CacheWrite+k.CacheWrite, p.CostUSD+k.CostUSD, p.Estimated || k.Estimated
		}
		b.sum(k)
	}
}

// event takes from an event what no record says: that a step was begun, and waits.
func (b *builder) event(e *event.Event) {
	if b.run == 0 || b.why != "" {
		return
	}
	switch e.Kind {
	case event.StepStarted:
		if b.step == nil {
			at := b.clock.at(e.Time)
			b.stepStart(e.Step, at)
			b.model = b.span(b.step, Model, fmt.Sprint(e.Step), b.modelName("", ""), at)
		}
	case event.Waiting:
		at := b.clock.at(e.Time)
		b.endWaiting(at)
		if e.Text != "" {
			b.waiting = &node{Span: Span{Kind: Wait, Name: line(e.Text, 200), Start: at, Run: b.run, PID: b.pid}}
		}
	case event.LogLine, event.ServerLine, event.Syscall, event.SyscallBegun, event.Exited: // that it still ran then is all that they say
		b.clock.at(e.Time)
	}
}

func (b *builder) endPause(at time.Time, open bool) {
	if b.pause != nil {
		b.pause.close(at, OK)
		if open {
			b.pause.Open, b.pause.Status = true, Open
		}
		b.pauses = append(b.pauses, b.pause)
		b.pause = nil
	}
}

func (b *builder) endWaiting(at time.Time) {
	if b.waiting != nil {
		b.waiting.close(at, OK)
		b.pauses = append(b.pauses, b.waiting)
		b.waiting = nil
	}
}

// modelName is what a request to a model is called.
func (b *builder) modelName(provider, model string) string {
	return cmp.Or(model, b.proc.Model, provider, b.proc.Provider, "model")
}

// nameLength bounds the name of a process that has only its intent, in characters.
const nameLength = 60
