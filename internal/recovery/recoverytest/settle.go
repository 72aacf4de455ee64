package recoverytest

import (
	"rnix/internal/step"
	"rnix/types"
)

// settle does what a new run does with the step that was broken off: what was not begun is run, what is
// in doubt is run again or told, and the step gets its record. It may crash again.
func (t *teller) settle() {
	rec, calls := t.open, t.calls
	if t.o.NoAnswers {
		rec.TokensUsed, rec.CostUSD = 0, 0 // nobody knows any more
	}
	rec.ToolCalls = nil
	for i := range calls {
		c := &calls[i]
		switch {
		case c.answered:
			continue
		case c.begun > 0 && !t.ended(rec.StepNumber, c.ID) && c.effect != "external" || c.begun == 0:
			if t.batch(rec, calls[i:i+1], false) {
				t.crash(rec, calls)
				return
			}
			continue
		case c.begun > 0 && !t.ended(rec.StepNumber, c.ID) && c.child != nil: // found again
			t.intend(rec, c)
			t.commit()
			t.result(rec, c)
		case c.begun > 0 && !t.ended(rec.StepNumber, c.ID):
			c.err = "Tool " + c.Name + ": its outcome is unknown"
			if t.chance(40) {
				c.err = "Tool " + c.Name + ": " + step.SkippedText
			}
			res := &step.Result{Step: rec.StepNumber, CallID: c.ID, Tool: c.Name, Error: c.err, Code: types.ErrInDoubt}
			t.add(step.Record{Kind: step.KindResult, Result: res}, func() error { return t.w.Result(res) })
		}
		t.reply(c, "its outcome is unknown")
	}
	if len(calls) == 0 { // a text whose record was torn off
		rec.Action = "text"
		t.open = nil
		t.record(rec)
		return
	}
	t.finish(rec, calls)
}

// ended reports whether the latest attempt of a call of the open step has a result.
func (p *pen) ended(n int, id string) bool {
	ended := false
	for _, r := range p.story.Records {
		switch {
		case r.Intent != nil && r.Intent.Step == n && r.Intent.CallID == id:
			ended = false
		case r.Result != nil && r.Result.Step == n && r.Result.CallID == id:
			ended = true
		}
	}
	return ended
}
