package step

import (
	"encoding/json"
	"slices"
	"strings"

	rnixctx "rnix/context"
)

// Trail is what an Outline has of a history besides its conversation: its steps, calls without a result, and where its files are
// kept. It is not to be changed.
type Trail struct {
	First, Last int             // numbers of the first and the last step that have ended; 0 = none has
	Origin      *ForkDetail     // nil = it is no fork
	Settled     json.RawMessage // of the latest spawn or resumed marker that says it; nil = none does
	Acts        int             // the last step in which a call was begun that may change something; 0 = none was
	Files       []FilesMark     // in the order of the records

	open  []Intent           // begun and without a result, in the order in which they began
	calls []rnixctx.ToolCall // of the last answer
}

// FilesMark is a snapshot of which a history tells.
type FilesMark struct {
	Step   int  // at the end of which it was taken; of one Before a call, under which it is kept
	Before bool // a call
	Snapshot
}

// Interrupted is that of a History.
func (t *Trail) Interrupted() []Intent { return t.open }

// add takes in a record. What a compaction does, compacted is told.
func (t *Trail) add(r *Record) {
	switch {
	case r.Message != nil:
		if r.Message.Role == rnixctx.RoleAssistant {
			t.calls = r.Message.ToolCalls
		}
	case r.Intent != nil:
		in := *r.Intent
		in.Input = nil
		for i := range t.calls {
			if t.calls[i].ID == in.CallID {
				in.Input = t.calls[i].Input
				break
			}
		}
		t.close(in.Step, in.CallID)
		t.open = append(t.open, in)
		if in.Effect != "none" {
			t.Acts = max(t.Acts, in.Step)
		}
		if in.Before != nil {
			t.mark(in.Before.Step, true, in.Before)
		}
	case r.Result != nil:
		t.close(r.Result.Step, r.Result.CallID)
	case r.Step != nil:
		n := r.Step.StepNumber
		if t.First == 0 {
			t.First = n
		}
		t.First, t.Last = min(t.First, n), max(t.Last, n)
		if r.Step.Files != nil {
			t.mark(n, false, r.Step.Files)
		}
	case r.Marker != nil:
		switch m := r.Marker; {
		case m.Name == MarkerFork && r.Seq == 1:
			var f ForkDetail
			if json.Unmarshal(m.Detail, &f) == nil {
				t.Origin = &f
			}
		case (m.Name == MarkerSpawn || m.Name == MarkerResumed) && len(m.Detail) > 0:
			t.Settled = slices.Clone(m.Detail)
		}
	}
}

// compacted says what the conversation is now.
func (t *Trail) compacted(ms []rnixctx.Message) {
	t.calls = nil
	for i := range slices.Backward(ms) {
		if ms[i].Role == rnixctx.RoleAssistant {
			t.calls = ms[i].ToolCalls
			return
		}
	}
}

func (t *Trail) close(step int, call string) {
	t.open = slices.DeleteFunc(t.open, func(o Intent) bool { return o.Step == step && o.CallID == call })
}

// mark notes a snapshot. What it has in common with the one before is in memory once, and nothing of the record stays.
func (t *Trail) mark(step int, before bool, s *Snapshot) {
	m := FilesMark{Step: step, Before: before, Snapshot: *s}
	var last FilesMark
	if n := len(t.Files); n > 0 {
		last = t.Files[n-1]
	}
	for _, f := range []struct {
		to  *string
		was string
	}{{&m.Kind, last.Kind}, {&m.ID, last.ID}, {&m.Root, last.Root}, {&m.Limited, last.Limited}} {
		if *f.to == f.was {
			*f.to = f.was
		} else {
			*f.to = strings.Clone(*f.to)
		}
	}
	t.Files = append(t.Files, m)
}
