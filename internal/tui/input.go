package tui

import (
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"
)

// input is a line that is being typed. What is pasted into it may have several lines; only Enter sends it.
type input struct {
	label string
	text  []rune // clean
	at    int    // the cursor
	left  int    // the first rune that is shown
	live  func(*Model, string)
	enter func(*Model, string) tea.Cmd
	leave func(*Model) // what Esc does besides
}

// maxInput is the longest text in characters that can be typed or pasted.
const maxInput = 64 << 10

// insert puts text in at the cursor, cleaned: what is pasted may come from anywhere.
func (in *input) insert(t *Theme, text string) {
	clean := []rune(t.clean(strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")))
	clean = clean[:min(len(clean), maxInput-min(len(in.text), maxInput))]
	in.text = append(in.text[:in.at:in.at], append(clean, in.text[in.at:]...)...)
	in.at += len(clean)
}

// cut takes the runes from i to j away.
func (in *input) cut(i, j int) {
	i, j = max(i, 0), min(j, len(in.text))
	in.text = append(in.text[:i:i], in.text[j:]...)
	if in.at > i {
		in.at = max(i, in.at-(j-i))
	}
}

func (in *input) move(n int) { in.at = max(min(in.at+n, len(in.text)), 0) }

// word returns where the word before the cursor begins.
func (in *input) word() int {
	i := in.at
	for i > 0 && unicode.IsSpace(in.text[i-1]) {
		i--
	}
	for i > 0 && !unicode.IsSpace(in.text[i-1]) {
		i--
	}
	return i
}

// inputKeys are those that edit a line.
func inputKeys() []binding {
	edit := func(f func(*input)) func(*Model) tea.Cmd {
		return func(m *Model) tea.Cmd {
			f(m.input)
			m.input.changed(m)
			return nil
		}
	}
	return []binding{
		key(inInput, "enter", "send it", "send", enterInput),
		key(inInput, "esc ctrl+c", "give it up", "give up", act(leaveInput)),
		key(inInput, "alt+enter ctrl+j shift+enter", "a line break", "", edit(func(in *input) { in.insert(&Theme{}, "\n") })),
		key(inInput, "left ctrl+b", "a character to the left", "", edit(func(in *input) { in.move(-1) })),
		key(inInput, "right ctrl+f", "a character to the right", "", edit(func(in *input) { in.move(1) })),
		key(inInput, "home ctrl+a", "the beginning", "", edit(func(in *input) { in.at = 0 })),
		key(inInput, "end ctrl+e", "the end", "", edit(func(in *input) { in.at = len(in.text) })),
		key(inInput, "backspace ctrl+h", "delete the character before", "", edit(func(in *input) { in.cut(in.at-1, in.at) })),
		key(inInput, "delete ctrl+d", "delete this character", "", edit(func(in *input) { in.cut(in.at, in.at+1) })),
		key(inInput, "ctrl+w", "delete the word before", "", edit(func(in *input) { in.cut(in.word(), in.at) })),
		key(inInput, "ctrl+u", "delete all before", "", edit(func(in *input) { in.cut(0, in.at) })),
		key(inInput, "ctrl+k", "delete the rest", "", edit(func(in *input) { in.cut(in.at, len(in.text)) })),
	}
}

// changed tells who wants to know while the line is typed.
func (in *input) changed(m *Model) {
	if in.live != nil {
		in.live(m, string(in.text))
	}
}

func enterInput(m *Model) tea.Cmd {
	in := m.input
	m.input = nil
	return in.enter(m, string(in.text))
}

func leaveInput(m *Model) {
	in := m.input
	m.input = nil
	if in.leave != nil {
		in.leave(m)
	}
}

// paste takes pasted text in; where nothing is typed it is nothing, least of all keys.
func paste(m *Model, text string) tea.Cmd {
	if m.input == nil || m.ask != nil {
		m.say("nothing takes text here; s says something to the agent, and then you can paste")
		return nil
	}
	m.input.insert(m.env.t, text)
	m.input.changed(m)
	return nil
}

// view returns the line in at most w cells, and the cell of the cursor.
func (in *input) view(t *Theme, w int) (string, int) {
	label := t.cut(in.label, w/2) + " "
	room := max(w-t.cells(label)-1, 1)
	if in.left > in.at {
		in.left = in.at
	}
	shown := func(from, to int) string {
		return strings.ReplaceAll(string(in.text[from:to]), "\n", t.pick("⏎", "\\n"))
	}
	if in.at-in.left > 4*room {
		in.left = in.at - 4*room
	}
	for in.left < in.at && t.cells(shown(in.left, in.at)) > room {
		in.left++
	}
	before := shown(in.left, in.at)
	after := shown(in.at, min(len(in.text), in.at+2*room))
	return t.paint(bold, label) + before + t.cut(after, max(room-t.cells(before), 0)), t.cells(label) + t.cells(before)
}

// question is a text that waits for one of its answers. Any other key is no answer.
type question struct {
	text    string // clean
	answers []binding
}

// putQuestion asks; no answers are taken but those and Esc.
func putQuestion(m *Model, text string, answers ...binding) {
	for i := range answers {
		do := answers[i].do
		answers[i].do = func(m *Model) tea.Cmd { m.ask = nil; return do(m) }
	}
	answers = append(answers, key(inQuestion, "n esc q ctrl+c", "nothing", "no", act(func(m *Model) { m.ask = nil })))
	m.ask = &question{text, answers}
}
