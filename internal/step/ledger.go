package step

import (
	"strings"
	"time"
	"unicode/utf8"

	rnixctx "rnix/context"
	"rnix/types"
)

// LedgerVerdict says what became of one attempt of a call. Part of the wire format.
type LedgerVerdict = types.LedgerVerdict

// The verdicts.
const (
	LedgerDone     LedgerVerdict = "done"
	LedgerFailed   LedgerVerdict = "failed"
	LedgerRunning  LedgerVerdict = "running"              // its process lives; see LiveLedger
	LedgerInDoubt  LedgerVerdict = "in doubt"             // begun, without a result, and nothing was decided yet
	LedgerAgain    LedgerVerdict = "run again"            // cut off; the next attempt follows
	LedgerUndone   LedgerVerdict = "undone and run again" // cut off, its files put back; the next attempt follows
	LedgerTold     LedgerVerdict = "told unknown"         // cut off, and the model was told that nobody knows
	LedgerSkipped  LedgerVerdict = "skipped"              // cut off, and a person has decided not to run it again
	LedgerAttached LedgerVerdict = "attached"             // cut off, and the process that it had started was found again
	LedgerNotBegun LedgerVerdict = "not begun"
)

// SkippedText stands in the error of the result that is recorded for a call which a person has decided
// not to run again. Part of the on-disk format: the ledger tells by it.
const SkippedText = "A person has decided that it is not to be run again."

// ledgerText is the longest text in bytes that a LedgerEntry keeps of a result or an error.
const ledgerText = 200

// LedgerEntry is one attempt of one call. A call that was cut off and begun again has an entry for each
// time, so that the history of an effect can be read from top to bottom.
type LedgerEntry struct {
	Step    int           `json:"step"`
	Run     int           `json:"run"` // which run of the history began it, or asked for it, from 1
	CallID  string        `json:"call_id"`
	Attempt int           `json:"attempt"` // from 1; 0 = not begun
	Tool    string        `json:"tool"`
	Path    string        `json:"path,omitempty"`
	Effect  string        `json:"effect,omitempty"`
	Key     string        `json:"key,omitempty"`
	Child   *types.UUID   `json:"child,omitempty"` // the process that it starts
	Began   time.Time     `json:"began,omitzero"`
	Ended   time.Time     `json:"ended,omitzero"` // when the end was recorded: of calls side by side, when the last had ended
	Took    time.Duration `json:"duration_ns,omitempty"`
	Verdict LedgerVerdict `json:"verdict"`
	Result  string        `json:"result,omitempty"` // first line of what the model was told, bounded
	Error   string        `json:"error,omitempty"`  // first line, bounded
	Code    types.ErrCode `json:"code,omitempty"`
}

// Ledger returns every call of the history, in the order in which they were asked for; a later attempt
// stands where it was begun. It says of a call without a result that it is in doubt, also if it is just
// running: see LiveLedger.
func (h *History) Ledger() []LedgerEntry { return h.ledger(false) }

// LiveLedger is Ledger for a history whose process lives: what its run has begun and not ended is running.
func (h *History) LiveLedger() []LedgerEntry { return h.ledger(true) }

func (h *History) ledger(live bool) []LedgerEntry {
	var l ledger
	for i := range h.Records {
		r := &h.Records[i]
		switch r.Kind {
		case KindMessage:
			l.message(r.Message)
		case KindIntent:
			l.intent(r.Intent, r.Time)
		case KindResult:
			l.result(r.Result, r.Time)
		case KindStep:
			l.close(r.Step)
		case KindMarker:
			if r.Marker.Name == MarkerSpawn || r.Marker.Name == MarkerResumed {
				l.run++
			}
		}
	}
	for i := range l.entries {
		if e := &l.entries[i]; live && e.Verdict == LedgerInDoubt && e.Run == l.run {
			e.Verdict = LedgerRunning
		}
	}
	return l.entries
}

// ledger folds records into entries.
type ledger struct {
	entries []LedgerEntry
	open    map[string]*ledgerCall // of the last answer, by id
	run     int
	step    int // last one that has ended
}

// ledgerCall is a call of the last answer.
type ledgerCall struct {
	at       int // index of the latest attempt
	answered bool
}

func (l *ledger) message(m *rnixctx.Message) {
	switch m.Role {
	case rnixctx.RoleAssistant:
		l.open = make(map[string]*ledgerCall, len(m.ToolCalls))
		for _, c := range m.ToolCalls {
			l.put(LedgerEntry{Step: l.step + 1, CallID: c.ID, Tool: c.Name})
		}
	case rnixctx.RoleTool:
		if c := l.open[m.ToolCallID]; c != nil && !c.answered {
			c.answered = true
			l.entries[c.at].answered(m)
		}
	}
}

// put adds an entry for what is now the latest attempt of a call.
func (l *ledger) put(e LedgerEntry) *ledgerCall {
	e.Run = l.run
	if e.Verdict == "" {
		e.Verdict = LedgerNotBegun
	}
	l.entries = append(l.entries, e)
	if l.open == nil {
		l.open = map[string]*ledgerCall{}
	}
	c := &ledgerCall{at: len(l.entries) - 1}
	l.open[e.CallID] = c
	return c
}

func (l *ledger) intent(in *Intent, at time.Time) {
	c := l.open[in.CallID]
	switch {
	case c == nil || l.entries[c.at].Step != in.Step && l.entries[c.at].Attempt > 0: // of no answer that is there
		c = l.put(LedgerEntry{Step: in.Step, CallID: in.CallID})
	case l.entries[c.at].Attempt > 0:
		before := &l.entries[c.at]
		before.again(in)
		c = l.put(LedgerEntry{Step: in.Step, CallID: in.CallID, Attempt: before.Attempt})
	}
	e := &l.entries[c.at]
	e.Step, e.Run, e.Attempt, e.Tool, e.Path, e.Effect, e.Key, e.Child = in.Step, l.run, e.Attempt+1, in.Tool, in.Path, in.Effect, in.Key, in.Child
	e.Began, e.Verdict = at, LedgerInDoubt
}

// again says what became of an attempt before the one that in announces.
func (e *LedgerEntry) again(in *Intent) {
	switch {
	case e.Verdict != LedgerInDoubt: // it has ended
	case e.Child != nil && in.Child != nil && *e.Child == *in.Child:
		e.Verdict = LedgerAttached
	case in.Effect == "reversible" && in.Before != nil:
		e.Verdict = LedgerUndone
	default:
		e.Verdict = LedgerAgain
	}
}

func (l *ledger) result(r *Result, at time.Time) {
	c := l.open[r.CallID]
	if c == nil || l.entries[c.at].Step != r.Step && l.entries[c.at].Attempt > 0 || !l.entries[c.at].Ended.IsZero() {
		c = l.put(LedgerEntry{Step: r.Step, CallID: r.CallID, Tool: r.Tool})
	}
	e := &l.entries[c.at]
	e.Ended, e.Took, e.Code, e.Error = at, r.Duration, r.Code, ledgerLine(r.Error)
	switch {
	case r.Code == types.ErrInDoubt && strings.Contains(r.Error, SkippedText):
		e.Verdict = LedgerSkipped
	case r.Code == types.ErrInDoubt:
		e.Verdict = LedgerTold
	case r.Error != "" || r.Code != "":
		e.Verdict = LedgerFailed
	default:
		e.Verdict = LedgerDone
		e.judge(r.Output)
	}
}

// answered notes what the model was told.
func (e *LedgerEntry) answered(m *rnixctx.Message) {
	switch {
	case m.IsError && e.Error == "":
		e.Error = ledgerLine(m.Content)
	case !m.IsError:
		e.Result = ledgerLine(m.Content)
	}
	switch {
	case e.Verdict == LedgerInDoubt: // no result was recorded, so it was said that there is none
		e.Verdict = LedgerTold
	case e.Verdict == LedgerNotBegun && !m.IsError: // the kernel's own need no intent
		e.Verdict = LedgerDone
	case e.Verdict == LedgerDone:
		e.judge(m.Content)
	}
}

// judge decides by its output whether a command that was run has failed: it has no error of its own.
func (e *LedgerEntry) judge(output string) {
	if f := FailureOf(e.Path, output, "", ""); f.Kind != "" {
		e.Verdict, e.Error = LedgerFailed, ledgerLine(f.Text)
	}
}

// close takes from the record of a step what no other record of a call says.
func (l *ledger) close(s *StepRecord) {
	for _, done := range s.ToolCalls {
		c := l.open[done.ID]
		if c == nil || l.entries[c.at].Tool != done.Name {
			continue
		}
		e := &l.entries[c.at]
		if e.Path == "" {
			e.Path = done.Path
		}
		if e.Code == "" {
			e.Code = done.Code
		}
		if e.Took == 0 {
			e.Took = done.Duration
		}
	}
	l.step = max(l.step, s.StepNumber)
	l.open = nil
}

// ledgerLine returns the first line of a text, bounded.
func ledgerLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	if len(s) <= ledgerText {
		return s
	}
	n := ledgerText
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
