package tui

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"rnix/runtime/statehome"
)

// style is how a piece of text stands out: parameters of SGR. The colours are of the sixteen that every terminal has, and of
// those only such as can be read on light and on dark ground; what matters is never said by colour alone.
type style string

const (
	plain   style = ""
	bold    style = "1"
	dim     style = "2"
	reverse style = "7"
	red     style = "31"
	green   style = "32"
	yellow  style = "33"
	cyan    style = "36"
)

// Theme is how things are drawn on one terminal. It belongs to the goroutine of the program.
type Theme struct {
	ASCII bool // what we draw is ASCII
	Pure  bool // what agents write, too: the terminal knows nothing else
	Color bool
	Bare  bool // no sequences at all: it is no terminal
	// method is how the terminal counts cells: it says so itself, after the start.
	method ansi.Method
}

// NewTheme returns how to draw for an environment: RNIX_ASCII, NO_COLOR, TERM and the locale decide.
func NewTheme(env statehome.Lookup) *Theme {
	get := func(name string) string { v, _ := env(name); return v }
	t := &Theme{Color: get("NO_COLOR") == "" && get("TERM") != "dumb"}
	if a := get("RNIX_ASCII"); a != "" && a != "0" {
		t.ASCII = true
	}
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} { // the first that is set counts
		v := strings.ToLower(get(name))
		if v == "" {
			continue
		}
		if !strings.Contains(v, "utf-8") && !strings.Contains(v, "utf8") {
			// C and POSIX are what nobody has chosen: most such terminals know UTF-8, but not for sure.
			t.ASCII, t.Pure = true, true
		}
		break
	}
	return t
}

// paint returns text in a style. Text must be clean.
func (t *Theme) paint(st style, text string) string {
	switch {
	case st == plain || text == "" || t.Bare:
		return text
	case !t.Color && st[0] == '3': // the attributes are no colours
		return text
	}
	return "\x1b[" + string(st) + "m" + text + "\x1b[m"
}

// chooseID returns the first of two forms, or the second where only ASCII is drawn.
func (t *Theme) pick(uni, ascii string) string {
	if t.ASCII {
		return ascii
	}
	return uni
}

// What is drawn, in both forms.
func (t *Theme) dot() string      { return t.pick(" · ", " | ") }
func (t *Theme) ellipsis() string { return t.pick("…", "~") }
func (t *Theme) arrow(desc bool) string {
	if desc {
		return t.pick("▼", "v")
	}
	return t.pick("▲", "^")
}
