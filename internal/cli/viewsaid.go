package cli

import (
	"strings"

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
}

// says shows what a model says: of the process that is watched as it comes, of a child when its line is complete. Thoughts are details.
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
		*s = said{answer: e.Answer, whole: true, at: map[string]int{}}
	}
	at := max(e.At, s.at[e.Name])
	text = text[min(at-e.At, len(text)):]
	s.at[e.Name] = at + len(text)
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
