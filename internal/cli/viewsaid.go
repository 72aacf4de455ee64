package cli

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"rnix/debug"
	"rnix/internal/event"
	"rnix/ipc"
	"rnix/types"
)

// spokenMax is how much of an answer is kept to know the result again, in bytes.
const spokenMax = 1 << 20

// said is what the view has shown of the answers of a process.
type said struct {
	answer uint64
	voice  string         // that spoke last
	at     map[string]int // what was shown, in bytes by voice
	line   string         // of a child, which has begun
	text   strings.Builder
	whole  bool // text is the answer from its beginning

	held []*heldAnswer // what was said where no terminal is, and is not printed yet
}

// heldAnswer is what a model says in one answer, as far as it is held back.
type heldAnswer struct {
	number uint64
	text   strings.Builder
	cut    bool // a part of it is missing in text
}

// says shows what a model says: of the process that is watched as it comes, of a child when its line is complete. Thoughts are details. Where no
// terminal is, it is held back until the answer is there.
func (v *view) says(e *ipc.Event) {
	text := e.Text
	if e.Kind == event.LogLine && len(text) < e.Total {
		text += "\n"
	}
	s := v.said[e.PID]
	if s == nil {
		s = &said{}
		v.said[e.PID] = s
	}
	if s.answer != e.Answer {
		*s = said{answer: e.Answer, whole: true, at: map[string]int{}, held: s.held}
	}
	at := max(e.At, s.at[e.Name])
	text = text[min(at-e.At, len(text)):]
	s.at[e.Name] = at + len(text)
	if !speaks(v.out) {
		s.hold(e, at, text)
		return
	}
	thinks := e.Name == "think"
	if e.Name != s.voice && s.voice != "" {
		v.rest(e.PID)
	}
	s.voice = e.Name
	if !thinks {
		if s.whole = s.whole && at == s.text.Len() && s.text.Len() < spokenMax; s.whole {
			s.text.WriteString(text)
		}
	}
	st := plain
	if thinks {
		if st = dim; !v.out.verbose {
			return
		}
	}
	if e.PID == v.pid {
		v.out.voice.speak(&v.out.err, v.out.live, st, text)
		return
	}
	s.line += text
	for {
		line, rest, ok := strings.Cut(s.line, "\n")
		if !ok {
			break
		}
		s.line = rest
		v.say("%s   %s", v.agent(e.PID), v.out.err.paint(st, oneLine(line)))
	}
	if e.Kind == event.LogLine {
		v.rest(e.PID) // it is complete
	}
}

// hold keeps a line of an answer, which begins at a byte of it, until it is known whether the answer is the result: that is printed once, on standard
// output.
func (s *said) hold(e *ipc.Event, at int, text string) {
	n := len(s.held) - 1
	if n < 0 || s.held[n].number != e.Answer {
		s.held = append(s.held, &heldAnswer{number: e.Answer})
		n++
	}
	a := s.held[n]
	a.cut = a.cut || at != a.text.Len() || e.Total-len(e.Text) > 1 || len(e.Text) > e.Total
	a.text.WriteString(text)
}

// release prints what was held back of what the model of a process says, in whole lines.
func (v *view) release(pid types.PID) {
	s := v.said[pid]
	if s == nil {
		return
	}
	for _, a := range s.held {
		for line := range strings.SplitSeq(debug.Sanitize(a.text.String()), "\n") {
			if line = strings.TrimRight(line, " \t"); line != "" {
				v.say("%s   %s", v.agent(pid), line)
			}
		}
	}
	s.held = nil
}

// left prints what was held back of all processes, whose ends are not seen here.
func (v *view) left() {
	for _, pid := range slices.Sorted(maps.Keys(v.said)) {
		v.release(pid)
	}
}

// end prints what was held back and is not the result. The result may be what several answers say together, of which the output limit has cut all but the
// last, or the end of one.
func (v *view) end(result string) {
	s := v.said[v.pid]
	if s == nil {
		return
	}
	result = strings.TrimSpace(result)
	for i := range s.held {
		var all strings.Builder
		for _, a := range s.held[i:] {
			all.WriteString(a.text.String())
		}
		if strings.TrimSpace(all.String()) == result {
			s.held = s.held[:i]
			break
		}
	}
	if n := len(s.held) - 1; n >= 0 && result != "" {
		last := s.held[n]
		before, ends := strings.CutSuffix(strings.TrimSpace(last.text.String()), result)
		if r, _ := utf8.DecodeLastRuneInString(before); ends && r != ' ' && !unicode.IsLetter(r) && !unicode.IsDigit(r) { // and not in the middle of a sentence
			last.text.Reset()
			last.text.WriteString(before)
		} else if last.cut { // it cannot be told from the result
			s.held = s.held[:n]
		}
	}
	v.release(v.pid)
}

// rest ends the line that a process has begun: it says something else now.
func (v *view) rest(pid types.PID) {
	s := v.said[pid]
	switch {
	case s == nil:
	case pid == v.pid:
		v.out.voice.breakLine(&v.out.err, v.out.live)
	case s.line != "":
		v.say("%s   %s", v.agent(pid), oneLine(s.line))
		s.line = ""
	}
}

// spoke notes at the end of a step what its answer was, if it is on the terminal as a whole.
func (v *view) spoke(pid types.PID) {
	v.rest(pid)
	if s := v.said[pid]; s != nil && pid == v.pid {
		if v.out.voice.last = ""; s.whole {
			v.out.voice.last = s.text.String()
		}
	}
}
