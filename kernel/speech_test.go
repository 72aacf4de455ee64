package kernel

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"rnix/internal/event"
	"rnix/internal/redact"
	"rnix/types"
)

// hearer reads what a client with a slow eye sees of a process: lines of the log, and pieces.
type hearer struct {
	t     *rapid.T
	cur   *event.Cursor
	heard Heard
	texts map[string]string
	notes int
}

func (h *hearer) log(n int) {
	for range n {
		e, ok, err := h.cur.TryNext()
		var missed *event.Missed
		switch {
		case errors.As(err, &missed):
			continue
		case err != nil || !ok:
			return
		case e.Answer == 0:
			h.notes++
			continue
		}
		h.take(e.Name, lineText(&h.heard, &e))
	}
}

// lineText is what a line adds to what was heard.
func lineText(h *Heard, e *event.Event) string {
	line, ok := h.Line(e)
	if !ok {
		return ""
	}
	if len(line.Text) < line.Total {
		return line.Text + "\n"
	}
	return line.Text
}

func (h *hearer) pieces(s *speech) {
	said, _ := s.pieces(&h.heard, h.cur.Pos()-1)
	for i := range said {
		if said[i].Text == "" {
			h.t.Fatal("an empty piece")
		}
		h.take(said[i].Name, said[i].Text)
	}
}

func (h *hearer) take(name, text string) {
	if !utf8.ValidString(text) {
		h.t.Fatalf("half a character: %q", text)
	}
	h.texts[name] += text
}

func aSpeaker() (*Process, *event.Log, *ears) {
	return &Process{PID: 1, UUID: types.NewUUID()}, event.New(1 << 16), &ears{}
}

// However late and in whatever order a client looks at the log and at the answer under way, it has each byte of each answer once.
func TestAnswersAreHeardWholeAndOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, log, all := aSpeaker()
		h := &hearer{t: t, cur: log.Cursor(1), texts: map[string]string{}}
		want := map[string]string{}
		notes := 0
		for range rapid.IntRange(1, 3).Draw(t, "answers") {
			s := newSpeech(p, log, nil, all)
			said := map[string]string{}
			for range rapid.IntRange(0, 30).Draw(t, "acts") {
				switch rapid.IntRange(0, 5).Draw(t, "act") {
				case 0, 1:
					i := rapid.IntRange(0, 1).Draw(t, "voice")
					text := rapid.SampledFrom([]string{"a", "word ", "\n", "one\ntwo\nthr", "ü", "\xe2\x82", "\xac", "\xff", "€uro\n\n", strings.Repeat("long ", 900), ""}).Draw(t, "text")
					s.say(i, text)
					said[[]string{thinking, output}[i]] += text
				case 2:
					s.note("warning", "x")
					notes++
				case 3:
					h.log(rapid.IntRange(0, 10).Draw(t, "events"))
				default:
					h.pieces(s)
				}
			}
			s.end()
			for name, text := range said {
				want[name] += strings.ToValidUTF8(text, "\uFFFD")
			}
		}
		h.log(1 << 20)
		for name := range want {
			// Bytes that are no character may be one mark or several, as they come together or not.
			if once(h.texts[name]) != once(want[name]) {
				t.Fatalf("%s: heard\n%q\nof\n%q", name, h.texts[name], want[name])
			}
		}
		if h.notes != notes {
			t.Fatalf("heard %d notes of %d", h.notes, notes)
		}
	})
}

func once(s string) string {
	for strings.Contains(s, "\uFFFD\uFFFD") {
		s = strings.ReplaceAll(s, "\uFFFD\uFFFD", "\uFFFD")
	}
	return s
}

func TestWhatIsSaidBehindAnEventComesBehindIt(t *testing.T) {
	p, log, all := aSpeaker()
	s := newSpeech(p, log, nil, all)
	s.say(0, "I think")
	before := log.Last()
	log.Append(event.Event{Kind: event.Compacted, PID: p.PID, UUID: p.UUID})
	s.say(1, "so")
	var h Heard
	said, more := s.pieces(&h, before)
	if len(said) != 1 || said[0].Text != "I think" || said[0].Kind != event.Piece || !more {
		t.Fatalf("before the event: %v, more %t", said, more)
	}
	said, more = s.pieces(&h, log.Last())
	if len(said) != 1 || said[0].Text != "so" || said[0].Name != output || more {
		t.Fatalf("behind the event: %v, more %t", said, more)
	}
	if said, _ := s.pieces(&h, log.Last()); said != nil {
		t.Fatalf("twice: %v", said)
	}
}

func TestASecretThatIsSaidInPiecesIsNeverHeard(t *testing.T) {
	const secret = "sk-live-0123456789abcdef"
	set := new(redact.Set)
	set.Add(redact.Secret{Name: "KEY", Value: secret})
	p, log, all := aSpeaker()
	s := newSpeech(p, log, set, all)
	var h Heard
	seen := ""
	for _, c := range "The key is " + secret + ", isn't it?\nYes" {
		s.say(1, string(c))
		said, _ := s.pieces(&h, log.Last())
		for i := range said {
			seen += said[i].Text
		}
	}
	s.end()
	for cur := log.Cursor(1); ; {
		e, ok, _ := cur.TryNext()
		if !ok {
			break
		}
		if strings.Contains(e.Text, "0123") {
			t.Errorf("in the log: %q", e.Text)
		}
		seen += lineText(&h, &e)
	}
	if strings.Contains(seen, "sk-live") || !strings.HasPrefix(seen, "The key is ") || !strings.HasSuffix(seen, ", isn't it?\nYes") {
		t.Errorf("heard: %q", seen)
	}
}

func TestALongAnswerIsForgottenFromItsBeginning(t *testing.T) {
	p, log, all := aSpeaker()
	s := newSpeech(p, log, nil, all)
	line := strings.Repeat("x", 99) + "\n"
	for range 5 * speechMax / len(line) {
		s.say(1, line)
	}
	s.mu.Lock()
	kept := cap(s.voices[1].text)
	s.mu.Unlock()
	if n := kept; n > 4*speechMax {
		t.Errorf("%d bytes are kept of an answer", n)
	}
	var h Heard
	said, _ := s.pieces(&h, log.Last())
	if n := len(said); n != 1 || said[0].At == 0 || said[0].At+len(said[0].Text) != 5*speechMax/len(line)*100 {
		t.Errorf("late: %d pieces, the first from byte %d", n, said[0].At)
	}
	s.end()
}

func TestListenersAreToldWhoSpeaks(t *testing.T) {
	s := newSys(t)
	one, two := s.Listen(), s.Listen()
	id := types.NewUUID()
	s.ears.heard(id)
	for _, l := range []*Listener{one, two} {
		select {
		case <-l.More():
		default:
			t.Fatal("not told")
		}
		if _, ok := l.Spoke()[id]; !ok || len(l.Spoke()) > 0 {
			t.Fatal("not told of it once")
		}
	}
	one.Close()
	one.Close()
	s.ears.heard(id)
	if len(one.Spoke()) > 0 || len(two.Spoke()) != 1 {
		t.Error("a listener that was closed is told, or the other one is not")
	}
	two.Close()
	if s.ears.all.Load() != nil {
		t.Error("listeners are left")
	}
}

func TestWhatAListenerHasGotIsNotWrittenTo(t *testing.T) {
	s := newSys(t)
	l := s.Listen()
	defer l.Close()
	for range 2 { // of nothing, and of one
		got := l.Spoke()
		n := len(got)
		s.ears.heard(types.NewUUID())
		if len(got) != n {
			t.Fatalf("there were %d, and now %d", n, len(got))
		}
	}
}
