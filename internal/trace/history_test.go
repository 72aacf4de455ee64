package trace

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/event"
	"rnix/internal/step"
	"rnix/types"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// teller writes histories as a process does, with a clock of its own.
type teller struct {
	t       *testing.T
	id      types.UUID
	now     time.Time // true time
	off     time.Duration
	records []step.Record
	events  []event.Event
	step    int
	began   time.Time
	msgs    int
}

func tell(t *testing.T, id byte, at time.Time) *teller {
	x := &teller{t: t, id: types.UUID{15: id}, now: at}
	x.mark(step.Marker{Name: step.MarkerSpawn, PID: types.PID(id), Text: "do it"})
	x.message(rnixctx.Message{Role: rnixctx.RoleUser, Content: "do it"}, nil)
	return x
}

func (x *teller) add(r step.Record) {
	r.V, r.Seq, r.Time = 1, uint64(len(x.records)+1), x.now.Add(x.off)
	x.records = append(x.records, r)
}

func (x *teller) pass(d time.Duration) *teller { x.now = x.now.Add(d); return x }

func (x *teller) mark(m step.Marker) *teller {
	if m.Name == step.MarkerSpawn || m.Name == step.MarkerResumed {
		m.Detail, _ = json.Marshal(step.Settled{ProcInfo: step.ProcInfo{ProcStatus: types.ProcStatus{UUID: x.id, PID: m.PID, Name: fmt.Sprintf("p%d", x.id[15]), Model: "m"}}})
	}
	x.add(step.Record{Kind: step.KindMarker, Marker: &m})
	return x
}

func (x *teller) message(m rnixctx.Message, a *step.Answer) {
	x.msgs++
	x.add(step.Record{Kind: step.KindMessage, Message: &m, Answer: a})
}

func (x *teller) exit(code int, reason string) *teller {
	return x.mark(step.Marker{Name: step.MarkerExit, PID: types.PID(x.id[15]), Exit: &types.ExitStatus{Code: code, Reason: reason}})
}

// begin begins a step, of which an event tells.
func (x *teller) begin() *teller {
	x.step++
	x.began = x.now
	x.events = append(x.events, event.Event{Kind: event.StepStarted, Time: x.now.Add(x.off), Step: x.step})
	return x
}

func (x *teller) event(k event.Kind, text string) *teller {
	x.events = append(x.events, event.Event{Kind: k, Time: x.now.Add(x.off), Text: text})
	return x
}

// ask lets the model answer with calls after a while.
func (x *teller) ask(took time.Duration, calls ...string) *teller {
	started := x.began.Add(x.off)
	x.pass(took)
	m := rnixctx.Message{Role: rnixctx.RoleAssistant, Content: "I look."}
	for _, name := range calls {
		m.ToolCalls = append(m.ToolCalls, rnixctx.ToolCall{ID: fmt.Sprintf("c%d", len(m.ToolCalls)), Name: name, Input: json.RawMessage(`{}`)})
	}
	x.message(m, &step.Answer{Step: x.step, Prompt: x.msgs, Started: started, ModelTime: took, Model: "m", TokensUsed: 10, Input: 8, Output: 2, CostUSD: 0.5})
	return x
}

// start announces a call.
func (x *teller) start(call int, tool string, child byte, background bool) *teller {
	in := &step.Intent{Step: x.step, CallID: fmt.Sprintf("c%d", call), Tool: tool, Path: "/dev/" + tool, Effect: "external", Background: background}
	if child > 0 {
		in.Child = &types.UUID{15: child}
	}
	x.add(step.Record{Kind: step.KindIntent, Intent: in})
	return x
}

// result ends a call that took so long.
func (x *teller) result(call int, tool string, took time.Duration, problem string) *teller {
	r := &step.Result{Step: x.step, CallID: fmt.Sprintf("c%d", call), Tool: tool, Duration: took, Error: problem}
	if problem != "" {
		r.Code = types.ErrDriver
	}
	x.add(step.Record{Kind: step.KindResult, Result: r})
	x.message(rnixctx.Message{Role: rnixctx.RoleTool, ToolCallID: r.CallID, Content: "out", IsError: problem != ""}, nil)
	return x
}

// answers ends a call with a text, and without an error.
func (x *teller) answers(call int, tool, text string) *teller {
	x.result(call, tool, 0, "")
	x.records[len(x.records)-1].Message.Content = text
	return x
}

// gaveUp makes the last answer one that says that the task has failed.
func (x *teller) gaveUp() *teller {
	x.records[len(x.records)-1].Answer.StopReason = "task_failed"
	return x
}

// done ends the step.
func (x *teller) done() *teller { return x.fails("") }

func (x *teller) fails(problem string) *teller {
	x.add(step.Record{Kind: step.KindStep, Step: &step.StepRecord{StepNumber: x.step, Timestamp: x.began.Add(x.off), Duration: x.now.Sub(x.began), Action: "tool_call", Summary: "looks", Error: problem}})
	return x
}

func (x *teller) source() Source {
	x.t.Helper()
	h, err := step.Fold(x.id, func(yield func(step.Record, error) bool) {
		for _, r := range x.records {
			if !yield(r, nil) {
				return
			}
		}
	})
	if err != nil {
		x.t.Fatal(err)
	}
	return Source{History: h, Events: x.events}
}

// of makes the trace of tellers and checks what is true of each trace.
func of(t *testing.T, now time.Time, sources ...Source) *Trace {
	t.Helper()
	tr := Of(sources, now)
	check(t, tr)
	return tr
}

// Of makes the trace of sources.
func Of(sources []Source, now time.Time) *Trace {
	m := NewMaker(now)
	for i := range sources {
		m.Add(&sources[i])
	}
	return m.Trace()
}

// failer is a test of either kind.
type failer interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// check checks what is true of every trace.
func check(t failer, tr *Trace) {
	t.Helper()
	at := map[string]*Span{}
	for i := range tr.Spans {
		s := &tr.Spans[i]
		up := at[s.Parent]
		switch {
		case at[s.ID] != nil || len(s.ID) != 16:
			t.Errorf("the id %q is not one of its own: %+v and %+v", s.ID, at[s.ID], s)
		case i == 0 != (up == nil):
			t.Errorf("the parent of %+v does not stand before it", s)
		case s.Dur < 0 || s.IdleNs < 0 || s.IdleNs > s.Dur:
			t.Errorf("%s %s lasts %s, idle %s", s.Kind, s.Name, s.Dur, s.IdleNs)
		case up != nil && s.Start.Before(up.Start):
			t.Errorf("%s %s begins %s before what it is in: %s %s", s.Kind, s.Name, up.Start.Sub(s.Start), up.Kind, up.Name)
		case up != nil && s.Kind != Process && s.UUID == up.UUID && s.End().After(up.End()):
			t.Errorf("%s %s ends %s after what it is in: %s %s", s.Kind, s.Name, s.End().Sub(up.End()), up.Kind, up.Name)
		}
		if s.Open != (s.Status == Open) {
			t.Errorf("open %t, status %s: %+v", s.Open, s.Status, s)
		}
		at[s.ID] = s
	}
	root := tr.Root()
	if root == nil {
		return
	}
	var sum time.Duration
	own := map[string]time.Duration{}
	last := root.Start
	for _, p := range tr.Critical {
		s := at[p.Span]
		switch {
		case s == nil:
			t.Fatalf("a part of no span: %+v", p)
		case !p.To.After(p.From) || p.From.Before(last):
			t.Errorf("parts overlap or are empty: %+v behind %s", p, last)
		case p.From.Before(s.Start) || p.To.After(s.End()):
			t.Errorf("%s to %s is not within %s %s: %s to %s", p.From, p.To, s.Kind, s.Name, s.Start, s.End())
		case !s.Critical:
			t.Errorf("it is not said that the path goes through %+v", s)
		}
		last = p.To
		sum += p.To.Sub(p.From)
		own[p.Span] += p.To.Sub(p.From)
	}
	if sum != root.Dur-root.IdleNs {
		t.Errorf("the parts add up to %s, and the root took %s, %s of it idle", sum, root.Dur, root.IdleNs)
	}
	for id, s := range at {
		if s.CriticalNs != own[id] {
			t.Errorf("%s %s: %s of the path, and parts of %s", s.Kind, s.Name, s.CriticalNs, own[id])
		}
	}
}

// path is the critical path in a few words.
func path(tr *Trace) string {
	names := map[string]string{}
	for _, s := range tr.Spans {
		names[s.ID] = string(s.Kind) + " " + s.Name
		if s.Kind == Step {
			names[s.ID] = fmt.Sprintf("step %d of %d", s.Step, s.UUID[15])
		}
	}
	out := ""
	for i, p := range tr.Critical {
		if i > 0 {
			out += ", "
		}
		out += fmt.Sprintf("%s %s", names[p.Span], p.To.Sub(p.From))
	}
	return out
}

func chain(tr *Trace) (out string) {
	for i, b := range tr.Blame {
		if i > 0 {
			out += " > "
		}
		out += fmt.Sprintf("%s %s", b.Kind, b.Name)
	}
	return out
}

func find(t *testing.T, tr *Trace, kind Kind, name string) *Span {
	t.Helper()
	for i := range tr.Spans {
		if s := &tr.Spans[i]; s.Kind == kind && s.Name == name {
			return s
		}
	}
	t.Fatalf("no %s %q in %+v", kind, name, tr.Spans)
	return nil
}
