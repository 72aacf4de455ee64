package fsck

import (
	"fmt"

	rnixctx "rnix/context"
	"rnix/internal/step"
)

// references checks that records belong together. What it finds has a right checksum: a program has
// written it so, and nothing can be mended without losing something.
func (h *history) references() {
	c := checker{h: h}
	for i := range h.records {
		c.at = h.places[i]
		c.record(&h.records[i])
	}
	if err := rnixctx.Legal(h.state.Conversation()); err != nil && len(c.calls) == 0 {
		h.find(Finding{File: step.StepsFile, Severity: Error, What: fmt.Sprintf("the conversation is in an order that no provider takes: %v; fork from an earlier step", err)})
	}
}

// checker follows the records of a history.
type checker struct {
	h        *history
	at       place
	messages int             // in the conversation
	asked    map[string]bool // calls of the last answer; true = answered
	begun    map[string]bool // those that were begun
	calls    []string        // what was wrong with them
}

func (c *checker) wrong(format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	if c.calls = append(c.calls, what); len(c.calls) <= maxFaults {
		c.h.find(Finding{File: step.StepsFile, Line: c.at.line, Offset: c.at.offset, Severity: Error, What: what + "; fork from an earlier step"})
	}
}

func (c *checker) record(r *step.Record) {
	switch r.Kind {
	case step.KindMessage:
		c.messages++
		c.message(r.Message)
	case step.KindIntent:
		if _, ok := c.asked[r.Intent.CallID]; !ok {
			c.wrong("the call %q was begun, and the answer before has no such call", r.Intent.CallID)
		}
		if c.begun == nil {
			c.begun = map[string]bool{}
		}
		c.begun[r.Intent.CallID] = true
	case step.KindResult:
		if !c.begun[r.Result.CallID] {
			c.wrong("the call %q has ended, and was not begun", r.Result.CallID)
		}
	case step.KindStep:
		if r.Step.MessageCount < 0 || r.Step.MessageCount > c.messages {
			c.wrong("step %d says that its prompt had %d messages, and there are %d", r.Step.StepNumber, r.Step.MessageCount, c.messages)
		}
	case step.KindMarker:
		if ms, ok := step.Compacted(r.Marker); ok {
			c.messages = len(ms)
		}
	}
}

func (c *checker) message(m *rnixctx.Message) {
	switch m.Role {
	case rnixctx.RoleAssistant:
		c.asked, c.begun = map[string]bool{}, map[string]bool{}
		for _, call := range m.ToolCalls {
			c.asked[call.ID] = false
		}
	case rnixctx.RoleTool:
		if answered, ok := c.asked[m.ToolCallID]; !ok {
			c.wrong("the call %q is answered, and was not asked for", m.ToolCallID)
		} else if answered {
			c.wrong("the call %q is answered twice", m.ToolCallID)
		}
		if c.asked != nil {
			c.asked[m.ToolCallID] = true
		}
	}
}

// snapshots asks for each snapshot that the records name.
func (o *Options) snapshots(h *history) {
	if o.Snapshots == nil {
		return
	}
	seen := map[step.Snapshot]bool{}
	for i := range h.records {
		var s *step.Snapshot
		switch r := &h.records[i]; {
		case r.Step != nil:
			s = r.Step.Files
		case r.Intent != nil:
			s = r.Intent.Before
		}
		if s == nil || seen[*s] {
			continue
		}
		seen[*s] = true
		if err := o.Snapshots(h.id, *s); err != nil {
			h.find(Finding{File: step.StepsFile, Line: h.places[i].line, Offset: h.places[i].offset, Severity: Warning,
				What: fmt.Sprintf("the snapshot %s of the files after step %d is not there: %v", s.ID, s.Step, err)})
		}
	}
}

// inputs looks for what a process was given with its intent. Nothing can bring back what is lost; what
// the process was told of it is in the conversation.
func (o *Options) inputs(h *history) {
	was, err := h.state.Was()
	if err != nil {
		return // it was never begun, or the records say more about it
	}
	for _, ref := range was.Inputs {
		if _, err := step.ReadInput(o.FS, h.dir, ref); err != nil {
			h.find(Finding{File: step.InputFile(ref.Name), Severity: Error, What: fmt.Sprintf("the input cannot be relied on: %v", err)})
		}
	}
}
