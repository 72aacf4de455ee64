package kernel

import (
	"bytes"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	rnixctx "rnix/context"
	"rnix/internal/event"
	"rnix/internal/redact"
	"rnix/types"
)

// thinking is the category of what a model thinks.
const thinking = "think"

// speechMax is how much of an answer under way is kept for those who listen, in bytes. What is longer begins later for them; its lines are in the log.
const speechMax = 1 << 20

// speech is what a model says: the answer under way, as far as it has come. Its lines go into the event log when they are complete, and what was said since
// then is here for those who listen. It is state and not a queue: a listener that reads late reads more at once, and one that does not read costs nothing.
type speech struct {
	p      *Process
	answer uint64 // its number: see event.Event.Answer
	events *event.Log
	ears   *ears

	mu     sync.Mutex
	voices [2]voice  // +checklocks:mu
	parts  []stretch // +checklocks:mu
	// Most answers have no more.
	few [2]stretch // +checklocks:mu
	// What may still be written into the log, in bytes.
	room int // +checklocks:mu
}

// voice is what a model thinks, or what it says aloud. The speech's lock guards it.
type voice struct {
	name  string // the category of its lines
	clean redact.Writer
	rest  string // the beginning of a character whose end has not come
	text  []byte // without secrets
	base  int    // what came before text, in bytes
	lines int    // what is in the log already
}

// stretch is what a voice said until the other one spoke.
type stretch struct {
	voice int
	from  int    // its first byte
	after uint64 // the last event that was in the log when it began
}

// newSpeech begins the next answer of a process.
func newSpeech(p *Process, events *event.Log, secrets *redact.Set, all *ears) *speech {
	s := &speech{p: p, answer: max(uint64(time.Now().UnixMicro()), p.answer+1), events: events, ears: all, room: listenMax}
	p.answer = s.answer
	for i, name := range [...]string{thinking, output} {
		v := &s.voices[i]
		*v = voice{name: name}
		v.clean.Reset(secrets, v)
	}
	s.parts = s.few[:0]
	p.speech.Store(s)
	return s
}

// say adds to a voice: 0 is what it thinks, 1 what it says.
func (s *speech) say(i int, text string) {
	s.mu.Lock()
	v := &s.voices[i]
	if n := len(s.parts); n == 0 || s.parts[n-1].voice != i {
		if n > 0 {
			s.closeLocked(&s.voices[s.parts[n-1].voice])
		}
		s.parts = append(s.parts, stretch{i, v.base + len(v.text), s.events.Last()})
	}
	v.add(text)
	s.linesLocked(v)
	s.mu.Unlock()
	s.ears.heard(s.p.UUID)
}

// note writes a line about the answer into the log, among its lines.
func (s *speech) note(category, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lineLocked(&event.Event{Name: category, Text: text})
}

// end brings what is left into the log. Nothing may be said after it.
func (s *speech) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.p.speech.CompareAndSwap(s, nil)
	for i := range s.voices {
		v := &s.voices[i]
		_, _ = v.clean.WriteString(strings.ToValidUTF8(v.rest, "\uFFFD")) // a voice takes all
		_ = v.clean.Flush()
		s.linesLocked(v)
		s.closeLocked(v)
	}
}

// lineLocked writes a line into the log, as long as the answer has room there.
//
// +checklocks:s.mu
func (s *speech) lineLocked(e *event.Event) {
	if s.room <= 0 {
		return
	}
	e.Text = rnixctx.Elide(e.Text, 4*maxLine)
	if s.room -= listenLine + len(e.Text); s.room <= 0 {
		e.Text = "[what follows is too much for the log]"
	}
	e.Kind, e.PID, e.UUID = event.LogLine, s.p.PID, s.p.UUID
	s.events.Put(e)
}

// add takes what was said, which may end within a character.
func (v *voice) add(text string) {
	if v.rest != "" {
		text, v.rest = v.rest+text, ""
	}
	whole := len(text)
	for i := 1; i <= min(utf8.UTFMax-1, len(text)); i++ {
		if c := text[len(text)-i]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRuneInString(text[len(text)-i:]) {
				whole = len(text) - i
			}
			break
		}
	}
	v.rest = strings.Clone(text[whole:])
	_, _ = v.clean.WriteString(strings.ToValidUTF8(text[:whole], "\uFFFD")) // a voice takes all
}

// Write implements io.Writer for what was said, without its secrets.
func (v *voice) Write(p []byte) (int, error) {
	v.text = append(v.text, p...)
	return len(p), nil
}

// WriteString is Write for a text.
func (v *voice) WriteString(text string) (int, error) {
	v.text = append(v.text, text...)
	return len(text), nil
}

// linesLocked brings the lines of a voice into the log that are complete, and of one that is long what is there.
//
// +checklocks:s.mu
func (s *speech) linesLocked(v *voice) {
	for {
		open := v.text[v.lines-v.base:]
		i := bytes.IndexByte(open, '\n')
		switch {
		case i >= 0:
			s.emitLocked(v, i, i+1)
		case len(open) > maxLine:
			s.emitLocked(v, len(open), len(open))
		default:
			s.trimLocked(v)
			return
		}
	}
}

// emitLocked writes the next n bytes of a voice into the log, as a line that covers so many.
//
// +checklocks:s.mu
func (s *speech) emitLocked(v *voice, n, covers int) {
	from := v.lines - v.base
	s.lineLocked(&event.Event{Name: v.name, Text: string(v.text[from : from+n]), Answer: s.answer, At: v.lines, Total: covers})
	v.lines += covers
}

// closeLocked brings a line without end into the log: what is said next is something else.
//
// +checklocks:s.mu
func (s *speech) closeLocked(v *voice) {
	if n := v.base + len(v.text) - v.lines; n > 0 {
		s.emitLocked(v, n, n)
	}
}

// trimLocked forgets the beginning of a long answer.
//
// +checklocks:s.mu
func (s *speech) trimLocked(v *voice) {
	if len(v.text) <= 2*speechMax {
		return
	}
	drop := min(len(v.text)-speechMax, v.lines-v.base)
	for drop < len(v.text) && !utf8.RuneStart(v.text[drop]) {
		drop++
	}
	v.text = append([]byte(nil), v.text[drop:]...)
	v.base += drop
	for len(s.parts) > 1 && s.parts[1].from < s.voices[s.parts[1].voice].base {
		s.parts = s.parts[1:]
	}
}

// Heard is how far a listener has heard the answers of a process. The zero value has heard nothing.
type Heard struct {
	answer uint64
	at     [2]int
}

// Line takes note of a line of the event log that is part of an answer. It returns the line without what has been heard of it as pieces, which may be all of its
// text: it is complete now. ok is false if more has been heard than this line.
func (h *Heard) Line(e *event.Event) (line event.Event, ok bool) {
	i := 0
	if e.Name == output {
		i = 1
	}
	switch {
	case e.Answer < h.answer:
		return line, false
	case e.Answer > h.answer:
		*h = Heard{answer: e.Answer}
	}
	line = *e
	from, end := h.at[i], e.At+e.Total
	h.at[i] = max(from, end)
	if from > e.At {
		line.Text = e.Text[min(from-e.At, len(e.Text)):]
		line.At, line.Total = from, end-from
	}
	return line, from <= end
}

// pieces returns what was said behind what h has heard, in its order, as far as it began behind no event later than upTo; and whether there is more.
func (s *speech) pieces(h *Heard, upTo uint64) (said []event.Event, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.answer < s.answer && len(s.parts) > 0 {
		if s.parts[0].after > upTo {
			return nil, true // the lines of the answer before are still to be heard
		}
		*h = Heard{answer: s.answer}
	}
	now := time.Now()
	for n, p := range s.parts {
		v := &s.voices[p.voice]
		end := v.base + len(v.text)
		for _, next := range s.parts[n+1:] {
			if next.voice == p.voice {
				end = next.from
				break
			}
		}
		from := max(h.at[p.voice], v.base)
		if from >= end {
			continue
		}
		if p.after > upTo {
			return said, true
		}
		said = append(said, event.Event{Time: now, PID: s.p.PID, UUID: s.p.UUID, Kind: event.Piece, Name: v.name, Text: string(v.text[from-v.base : end-v.base]),
			Answer: s.answer, At: from})
		h.at[p.voice] = end
	}
	return said, false
}

// ears are those who listen.
type ears struct {
	mu  sync.Mutex
	all atomic.Pointer[[]*Listener] // written under mu; nil while no one listens
}

// heard tells the listeners that a model has said something.
func (e *ears) heard(id types.UUID) {
	if all := e.all.Load(); all != nil {
		for _, l := range *all {
			l.note(id)
		}
	}
}

// Listener is told whose model says something. For one goroutine, which calls Close at the end.
type Listener struct {
	of   *ears
	more chan struct{} // has room for one

	mu    sync.Mutex
	spoke map[types.UUID]struct{} // +checklocks:mu
}

// Listen returns a listener, which has not heard yet what models are saying just now. It holds nothing up, and takes no more memory when it is slow.
func (k *KernelImpl) Listen() *Listener {
	e := &k.ears
	l := &Listener{of: e, more: make(chan struct{}, 1), spoke: map[types.UUID]struct{}{}}
	e.mu.Lock()
	all := []*Listener{l}
	if old := e.all.Load(); old != nil {
		all = append(all, *old...)
	}
	e.all.Store(&all)
	e.mu.Unlock()
	for _, p := range k.table.all() {
		if p.speech.Load() != nil {
			l.note(p.UUID)
		}
	}
	return l
}

// Hear returns what the model of a process has said behind what h has heard, as events of the kind Piece; of what began behind a later event than upTo nothing
// yet, and then more is set. A process that is not there, or whose model is silent, has nothing to hear.
func (k *KernelImpl) Hear(id types.UUID, h *Heard, upTo uint64) (said []event.Event, more bool) {
	if p, ok := k.table.byID(id); ok {
		if s := p.speech.Load(); s != nil {
			return s.pieces(h, upTo)
		}
	}
	return nil, false
}

func (l *Listener) note(id types.UUID) {
	l.mu.Lock()
	l.spoke[id] = struct{}{}
	l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
}

// More has something in it when a model has said something.
func (l *Listener) More() <-chan struct{} { return l.more }

// Spoke returns whose models have said something since the last call. What it returns is the caller's.
func (l *Listener) Spoke() map[types.UUID]struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	spoke := l.spoke
	if len(spoke) == 0 {
		return nil // and not what is written to without the caller
	}
	l.spoke = map[types.UUID]struct{}{}
	return spoke
}

// Close ends the listening. It may be called more than once.
func (l *Listener) Close() {
	e := l.of
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []*Listener
	if old := e.all.Load(); old != nil {
		for _, other := range *old {
			if other != l {
				all = append(all, other)
			}
		}
	}
	if all == nil {
		e.all.Store(nil)
		return
	}
	e.all.Store(&all)
}
