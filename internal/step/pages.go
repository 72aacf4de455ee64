package step

import (
	"cmp"
	"context"
	"slices"
	"strings"

	rnixctx "rnix/context"
	"rnix/types"
)

// PageQuery asks for a part of the steps of a history.
type PageQuery struct {
	After  int  // only steps with higher numbers; 0 = from the first on
	Before int  // only steps with lower numbers; 0 = to the last
	Limit  int  // at most so many, at least 1
	Last   bool // of those that there are the last ones; else the first ones
	Bare   bool // without answers, and without inputs and results of calls
	// Find picks the steps that have this text: in their line, answer, calls, inputs, results and errors. Small letters find
	// capital ones too. Empty = all.
	Find string
	// Span bounds how many step numbers are looked at with Find; at least 1.
	Span int
}

// StepPage is a part of the steps of a history. A step that was run twice is there once, as it was the second time.
type StepPage struct {
	Steps       []StepRecord // in their order, without their messages
	First, Last int          // numbers of the first and the last step of the history; 0 = there is none
	// After and Before are the cursors of the pages behind this one and before it; 0 = there is none.
	After, Before int
	Interrupted   []Intent // calls of these steps, and behind the last one, that were begun and have no result
	Open          *Answer  // of a page that reaches the end: the answer of a step that has not ended
	Damage        string   // as of History
}

// ReadPage reads a part of the steps of a history. The records say in the order of which steps they stand, so the place is found by
// halving, and no more is read than the page and a little before: what it costs does not grow with the history. Damage far from
// the page is not looked for. Errors are those of ReadHistory.
func ReadPage(ctx context.Context, j Journal, id types.UUID, q PageQuery) (StepPage, error) {
	r := &pageReader{ctx: ctx, j: j, id: id}
	p, err := r.page(q)
	if r.damaged == "" || err != nil {
		return p, err
	}
	h, err := ReadHistory(ctx, j, id) // what is in the way of halving: read it all, and say so
	if err != nil {
		return StepPage{}, err
	}
	return h.page(q), nil
}

// ReadStepBehind reads the step numbered n whose prompt ends with record seq; 0 = it was empty. It reads no more than is between that and
// the end of the step behind it. It reports false if that is not there, or cannot be read.
func ReadStepBehind(ctx context.Context, j Journal, id types.UUID, seq uint64, n int) (rec StepRecord, ok bool) {
	r := &pageReader{ctx: ctx, j: j, id: id}
	f := folder{q: PageQuery{Limit: 1}, from: n, to: n + 1, last: n + 1}
	r.records(max(seq, 1), f.add)
	if r.err != nil || r.damaged != "" || len(f.out) != 1 {
		return rec, false
	}
	return f.out[0], true
}

// pageReader finds steps in a history. err and damaged stay once they are set.
type pageReader struct {
	ctx     context.Context
	j       Journal
	id      types.UUID
	err     error
	damaged string
	end     uint64 // a number that no record has
}

// records calls yield for the records from one on until it returns false.
func (p *pageReader) records(from uint64, yield func(*Record) bool) {
	if p.err != nil || p.damaged != "" {
		return
	}
	for r, err := range p.j.Replay(p.ctx, p.id, from) {
		switch code := types.CodeOf(err); {
		case code == types.ErrStorage || code == types.ErrInvalid:
			p.damaged = err.Error()
			return
		case err != nil:
			p.err = err
			return
		case !yield(&r):
			return
		}
	}
}

// stepOf returns of which step a record is; 0 = it does not say. Along a history these numbers do not go back.
func stepOf(r *Record) int {
	switch {
	case r.Step != nil:
		return r.Step.StepNumber
	case r.Answer != nil:
		return r.Answer.Step
	case r.Intent != nil:
		return r.Intent.Step
	case r.Result != nil:
		return r.Result.Step
	}
	return 0
}

// ahead returns the step of the first record from one on that says it, and the number of that record; 0 = there is none.
func (p *pageReader) ahead(from uint64) (step int, seq uint64) {
	p.records(from, func(r *Record) bool {
		step, seq = stepOf(r), r.Seq
		return step == 0
	})
	if step == 0 {
		return 0, 0
	}
	return step, seq
}

// limit finds a number that is higher than those of all records, and less than twice as high.
func (p *pageReader) limit() {
	for p.end = 1; ; p.end *= 2 {
		there := false
		p.records(p.end, func(*Record) bool { there = true; return false })
		if !there {
			return
		}
	}
}

// startOf returns a record before which no step ends that has a higher number than n, and shortly behind which the next one begins.
func (p *pageReader) startOf(n int) uint64 {
	const close = 16 // records
	low, high := uint64(1), p.end
	for n > 0 && low+close < high {
		middle := low + (high-low)/2
		switch step, seq := p.ahead(middle); {
		case step == 0 || step > n:
			high = middle
		default:
			low = max(middle, min(seq, high-1))
		}
	}
	return low
}

// firstStep returns the number of the first step that has ended; 0 = none has.
func (p *pageReader) firstStep() (n int) {
	p.records(1, func(r *Record) bool {
		if r.Step != nil {
			n = r.Step.StepNumber
		}
		return n == 0
	})
	return n
}

// lastStep returns the number of the last step that has ended; 0 = none has.
func (p *pageReader) lastStep(first int) (n int) {
	begun := first
	low, high := uint64(1), p.end
	for low+1 < high && p.err == nil && p.damaged == "" {
		middle := low + (high-low)/2
		if step, seq := p.ahead(middle); step > 0 {
			low, begun = max(middle, seq), max(begun, step)
		} else {
			high = middle
		}
	}
	for back := 1; n == 0 && first > 0 && p.err == nil && p.damaged == ""; back *= 4 {
		p.records(p.startOf(max(begun-1-back, 0)), func(r *Record) bool {
			if r.Step != nil {
				n = max(n, r.Step.StepNumber)
			}
			return true
		})
	}
	return n
}

func (p *pageReader) page(q PageQuery) (StepPage, error) {
	p.limit()
	var out StepPage
	out.First = p.firstStep()
	out.Last = p.lastStep(out.First)
	from, to := q.bounds(out.First, out.Last)
	var f folder
	for width := q.Limit + 1; ; width *= 4 {
		start := from
		switch {
		case q.Find != "" && q.Last:
			start = max(from, to-q.Span)
		case q.Find != "":
			to = min(to, from+q.Span)
		case q.Last:
			start = max(from, to-width)
		}
		f = folder{q: q, from: start, to: to, last: out.Last}
		p.records(p.startOf(start-1), f.add)
		if !q.Last || q.Find != "" || len(f.out) > q.Limit || start == from || p.err != nil || p.damaged != "" {
			out.cut(&f, start, to)
			return out, p.err
		}
	}
}

// bounds returns the numbers that are asked for: from the first to before the second.
func (q *PageQuery) bounds(first, last int) (from, to int) {
	from, to = max(first, q.After+1), last+1
	if q.Before > 0 {
		to = min(to, q.Before)
	}
	return from, max(to, from)
}

// cut makes the page of what was found between two numbers.
func (out *StepPage) cut(f *folder, from, to int) {
	out.Steps, out.Interrupted = f.out, f.interrupted()
	n := len(out.Steps)
	switch {
	case n > f.q.Limit && f.q.Last:
		out.Steps = out.Steps[n-f.q.Limit:]
		from = out.Steps[0].StepNumber
	case n > f.q.Limit:
		out.Steps = out.Steps[:f.q.Limit]
		to = out.Steps[f.q.Limit-1].StepNumber + 1
	}
	if to <= out.Last {
		out.After = to - 1
	} else {
		out.Open = f.answer
	}
	if from > out.First && out.First > 0 {
		out.Before = from
	}
	out.Interrupted = slices.DeleteFunc(out.Interrupted, func(in Intent) bool {
		return in.Step < from || in.Step >= to && to <= out.Last
	})
}

// folder collects the steps between two numbers from the records in their order, beginning at most one step before.
type folder struct {
	q        PageQuery
	from, to int // to: the first one that is not wanted
	last     int // of the history
	out      []StepRecord
	behind   []rnixctx.Message // the last answer and what came behind it
	answer   *Answer           // what is known of it; nil = nothing
	open     []Intent
}

// add takes in a record and reports whether the next one is wanted.
func (f *folder) add(r *Record) bool {
	switch {
	case r.Message != nil:
		if r.Message.Role == rnixctx.RoleAssistant {
			f.behind, f.answer = f.behind[:0:0], r.Answer
		}
		f.behind = append(f.behind, *r.Message)
	case r.Intent != nil:
		in := *r.Intent
		if len(f.behind) > 0 {
			for _, c := range f.behind[0].ToolCalls {
				if c.ID == in.CallID {
					in.Input = c.Input
				}
			}
		}
		f.open = slices.DeleteFunc(f.open, func(o Intent) bool { return o.Step == in.Step && o.CallID == in.CallID })
		f.open = append(f.open, in)
	case r.Result != nil:
		f.open = slices.DeleteFunc(f.open, func(o Intent) bool { return o.Step == r.Result.Step && o.CallID == r.Result.CallID })
	case r.Step != nil:
		return f.step(r.Step)
	}
	return true
}

// step is add for the end of a step. It goes on to the end of the history where the last step is wanted: what was begun behind it
// belongs to the page.
func (f *folder) step(s *StepRecord) bool {
	behind := f.behind
	if a := f.answer; a != nil && (a.Step != s.StepNumber || a.Prompt != s.MessageCount) { // of one that was cut off
		behind = nil
	}
	f.behind, f.answer = nil, nil
	if s.StepNumber >= f.to && f.to <= f.last || !f.q.Last && len(f.out) > f.q.Limit && s.StepNumber > f.out[f.q.Limit].StepNumber {
		return false
	}
	if s.StepNumber < f.from || s.StepNumber >= f.to {
		return true
	}
	rec := s.filled(behind)
	if n := len(f.out); n > 0 && f.out[n-1].StepNumber == rec.StepNumber {
		f.out = f.out[:n-1]
	}
	if f.q.Find != "" && !rec.has(f.q.Find) {
		return true
	}
	if f.q.Bare {
		rec = s.bare()
	}
	f.out = append(f.out, rec)
	if f.q.Last && len(f.out) > 2*f.q.Limit+1 {
		f.out = append(f.out[:0], f.out[len(f.out)-f.q.Limit-1:]...)
	}
	return true
}

func (f *folder) interrupted() []Intent {
	slices.SortStableFunc(f.open, func(a, b Intent) int { return cmp.Compare(a.Step, b.Step) })
	return f.open
}

// bare returns the record as it stands on the disk, but with the error of its first call.
func (s *StepRecord) bare() StepRecord {
	b := *s
	if len(b.ToolCalls) > 0 {
		b.ToolPath, b.ToolError = b.ToolCalls[0].Path, b.ToolCalls[0].Error
	}
	return b
}

// has reports whether a filled record has a text, as PageQuery.Find says.
func (s *StepRecord) has(text string) bool {
	fold := strings.ToLower(text) == text
	in := func(t string) bool {
		if fold {
			t = strings.ToLower(t)
		}
		return strings.Contains(t, text)
	}
	if in(s.Action) || in(s.Summary) || in(s.Error) || in(s.RawResponse) {
		return true
	}
	return slices.ContainsFunc(s.ToolCalls, func(c Call) bool {
		return in(c.Name) || in(c.Path) || in(c.Input) || in(c.Result) || in(c.Error) || in(string(c.Code))
	})
}

// page is ReadPage of a history that was read whole.
func (h *History) page(q PageQuery) StepPage {
	var out StepPage
	for i := range h.Steps {
		n := h.Steps[i].StepNumber
		if out.First == 0 {
			out.First = n
		}
		out.First, out.Last = min(out.First, n), max(out.Last, n)
	}
	from, to := q.bounds(out.First, out.Last)
	switch {
	case q.Find != "" && q.Last:
		from = max(from, to-q.Span)
	case q.Find != "":
		to = min(to, from+q.Span)
	}
	f := folder{q: q, from: from, to: to, last: out.Last, open: slices.Clone(h.Interrupted), answer: h.OpenAnswer()}
	for i := range h.Steps {
		s := h.Steps[i]
		again := i+1 < len(h.Steps) && h.Steps[i+1].StepNumber == s.StepNumber
		if again || s.StepNumber < from || s.StepNumber >= to || q.Find != "" && !s.has(q.Find) {
			continue
		}
		if q.Bare {
			s.strip()
		}
		f.out = append(f.out, s)
	}
	out.cut(&f, from, to)
	out.Damage = h.Damage
	return out
}

// strip takes out what only messages say.
func (s *StepRecord) strip() {
	s.RawResponse, s.ToolInput, s.ToolResult = "", "", ""
	s.ToolCalls = slices.Clone(s.ToolCalls)
	for i := range s.ToolCalls {
		s.ToolCalls[i].Input, s.ToolCalls[i].Result = "", ""
	}
}
