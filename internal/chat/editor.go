package chat

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"rnix/internal/tui"
)

// editor is the text that a person types. A long paste is one character of it, which is shown as [pasted 214 lines].
type editor struct {
	text   []rune
	at     int
	pastes []string // what the characters from fold on stand for
	bytes  int      // of all pastes

	history []string
	place   int    // in history; len(history) = what is being typed
	draft   string // what was being typed
}

// Folds and limits.
const (
	fold      = '\uE000' // the character of the first paste
	maxFolds  = 256
	foldLines = 8
	foldBytes = 1000
	maxText   = 1 << 20 // of all that is sent, in bytes
	maxRunes  = 64 << 10
)

// tidy returns text as it is sent: valid, with one kind of line break, and without other control characters.
func tidy(s string) string {
	s = strings.ReplaceAll(strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n"), "\r", "\n")
	return strings.Map(func(r rune) rune {
		if r >= fold && r < fold+maxFolds || unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, s)
}

// insert puts typed text in at the cursor.
func (e *editor) insert(s string) {
	r := []rune(tidy(s))
	r = r[:min(len(r), max(maxRunes-len(e.text), 0))]
	e.put(r)
}

func (e *editor) put(r []rune) {
	e.text = append(e.text[:e.at:e.at], append(r, e.text[e.at:]...)...)
	e.at += len(r)
}

// paste puts pasted text in, folded if it is long. It returns why it cannot, or "".
func (e *editor) paste(s string) string {
	s = tidy(s)
	long := len(s) > foldBytes || strings.Count(s, "\n") >= foldLines
	switch {
	case e.bytes+len(s) > maxText:
		return fmt.Sprintf("the paste has %s bytes, and a message at most %s: put it into a file, and name that with @", tui.Number(len(s)), tui.Number(maxText))
	case !long:
		e.insert(s)
	case len(e.pastes) == maxFolds:
		return "there are too many pastes in this message"
	default:
		e.put([]rune{fold + rune(len(e.pastes))})
		e.pastes = append(e.pastes, s)
		e.bytes += len(s)
	}
	return ""
}

// label is how a folded paste is shown.
func (e *editor) label(r rune) string {
	s := e.pastes[r-fold]
	if n := strings.Count(strings.TrimRight(s, "\n"), "\n") + 1; n > 1 {
		return fmt.Sprintf("[pasted %s lines]", tui.Number(n))
	}
	return fmt.Sprintf("[pasted %s bytes]", tui.Number(len(s)))
}

func (e *editor) folded(r rune) bool { return r >= fold && int(r-fold) < len(e.pastes) }

// value returns the text with all that was pasted.
func (e *editor) value() string {
	var b strings.Builder
	for _, r := range e.text {
		if e.folded(r) {
			b.WriteString(e.pastes[r-fold])
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func (e *editor) empty() bool { return len(e.text) == 0 }

// set puts a text in the place of what is there.
func (e *editor) set(s string) {
	e.text, e.at, e.pastes, e.bytes = nil, 0, nil, 0
	s = tidy(s)
	if len(s) > foldBytes { // however much it is: what could not be sent is not lost
		e.pastes, e.bytes, s = []string{s}, len(s), string(fold)
	}
	e.put([]rune(s))
}

// take returns the text and empties the editor; the text is in the history from now on.
func (e *editor) take() string {
	s := e.value()
	e.set("")
	e.remember(s)
	return s
}

func (e *editor) remember(s string) {
	if n := len(e.history); strings.TrimSpace(s) != "" && (n == 0 || e.history[n-1] != s) {
		e.history = append(e.history, s)
	}
	e.place, e.draft = len(e.history), ""
}

// walk goes through the history: back with -1, forth with 1. It reports whether there was something.
func (e *editor) walk(d int) bool {
	to := e.place + d
	if to < 0 || to > len(e.history) {
		return false
	}
	if e.place == len(e.history) {
		e.draft = e.value()
	}
	if e.place = to; to == len(e.history) {
		e.set(e.draft)
	} else {
		e.set(e.history[to])
	}
	return true
}

// cut takes the runes from i to j away.
func (e *editor) cut(i, j int) {
	i, j = max(i, 0), min(j, len(e.text))
	if i >= j {
		return
	}
	e.text = append(e.text[:i:i], e.text[j:]...)
	if e.at > i {
		e.at = max(i, e.at-(j-i))
	}
	if len(e.text) == 0 {
		e.pastes, e.bytes = nil, 0
	}
}

// start and stop are the ends of the line of the cursor.
func (e *editor) start() int {
	i := e.at
	for i > 0 && e.text[i-1] != '\n' {
		i--
	}
	return i
}

func (e *editor) stop() int {
	i := e.at
	for i < len(e.text) && e.text[i] != '\n' {
		i++
	}
	return i
}

// word returns the beginning of the word before the cursor.
func (e *editor) word() int {
	i := e.at
	for i > 0 && unicode.IsSpace(e.text[i-1]) {
		i--
	}
	for i > 0 && !unicode.IsSpace(e.text[i-1]) {
		i--
	}
	return i
}

// next returns the end of the word behind the cursor.
func (e *editor) next() int {
	i := e.at
	for i < len(e.text) && unicode.IsSpace(e.text[i]) {
		i++
	}
	for i < len(e.text) && !unicode.IsSpace(e.text[i]) {
		i++
	}
	return i
}

// vertical moves the cursor a line up or down. It reports whether there was one.
func (e *editor) vertical(d int) bool {
	col := e.at - e.start()
	if d < 0 {
		s := e.start()
		if s == 0 {
			return false
		}
		e.at = s - 1
		e.at = min(e.start()+col, s-1)
		return true
	}
	s := e.stop()
	if s == len(e.text) {
		return false
	}
	e.at = s + 1
	e.at = min(s+1+col, e.stop())
	return true
}

// key does what a key means in a text, and reports whether it means something.
func (e *editor) key(name string) bool {
	switch name {
	case "left", "ctrl+b":
		e.at = max(e.at-1, 0)
	case "right", "ctrl+f":
		e.at = min(e.at+1, len(e.text))
	case "alt+left", "alt+b", "ctrl+left":
		e.at = e.word()
	case "alt+right", "alt+f", "ctrl+right":
		e.at = e.next()
	case "home", "ctrl+a":
		e.at = e.start()
	case "end", "ctrl+e":
		e.at = e.stop()
	case "backspace", "ctrl+h":
		e.cut(e.at-1, e.at)
	case "delete":
		e.cut(e.at, e.at+1)
	case "ctrl+w", "alt+backspace":
		e.cut(e.word(), e.at)
	case "alt+d":
		e.cut(e.at, e.next())
	case "ctrl+u":
		e.cut(e.start(), e.at)
	case "ctrl+k":
		e.cut(e.at, e.stop())
	case "alt+enter", "shift+enter", "ctrl+j":
		e.insert("\n")
	case "up":
		return e.vertical(-1) || e.walk(-1)
	case "down":
		return e.vertical(1) || e.walk(1)
	case "ctrl+p":
		return e.walk(-1)
	case "ctrl+n":
		return e.walk(1)
	default:
		return false
	}
	return true
}

// rows returns the text in rows of at most w cells, and where the cursor is.
func (e *editor) rows(t *tui.Theme, w int) (rows []string, x, y int) {
	w = max(w, 4)
	var b strings.Builder
	width := 0
	next := func() {
		rows = append(rows, b.String())
		b.Reset()
		width = 0
	}
	for i := 0; i <= len(e.text); i++ {
		piece, painted := "", ""
		if i < len(e.text) {
			switch r := e.text[i]; {
			case r == '\n':
			case e.folded(r):
				piece = e.label(r)
				painted = tui.Paint(t, tui.Cyan, piece)
			case r == '\t':
				piece, painted = "  ", "  "
			case r < utf8.RuneSelf && r >= ' ':
				piece, painted = string(r), string(r)
			default:
				piece = tui.Clean(t, string(r))
				painted = piece
			}
		}
		n := tui.Cells(t, piece)
		if width+n > w || i == e.at && width >= w {
			next()
		}
		if i == e.at {
			x, y = width, len(rows)
		}
		b.WriteString(painted)
		if width += n; i < len(e.text) && e.text[i] == '\n' {
			next()
		}
	}
	return append(rows, b.String()), x, y
}
