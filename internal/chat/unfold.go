package chat

import (
	"slices"
	"strconv"
	"strings"

	"rnix/internal/tui"
)

// How much is kept of what calls have brought, and shown of one.
const (
	keptResults = 20
	keptBytes   = 4 << 20
	unfolded    = 400     // lines
	unfoldedRow = 8 << 10 // bytes
)

// results are what the last calls of the conversation have brought, and the commands that the person ran, the oldest first: Ctrl+O prints them whole.
type results struct {
	all   []result
	bytes int
	n     int // how many there were in all
	at    int // in all: the one that was unfolded last; len(all) = none yet
}

// result is what a call has brought.
type result struct {
	n    int    // its number
	head string // the call on one line
	of   string // how a command names the process that has it; empty = none does
	text string // clean, as far as it is shown
	more int    // lines behind it
	diff bool   // it is a difference
}

// keepResult keeps what a call has brought. One that has brought nothing counts, too: a person sees it above.
func keepResult(m *Model, of, head string, lines []string, diff bool) {
	u := &m.results
	u.n++
	shown := slices.Clone(lines[:min(len(lines), unfolded)])
	for i, l := range shown {
		shown[i] = bounded(l, unfoldedRow)
	}
	r := result{n: u.n, head: head, of: of, text: strings.Clone(strings.Join(shown, "\n")), more: len(lines) - len(shown), diff: diff}
	if r.text != "" {
		u.all = append(u.all, r)
		u.bytes += len(r.text)
	}
	for len(u.all) > keptResults || u.bytes > keptBytes && len(u.all) > 1 {
		u.bytes -= len(u.all[0].text)
		u.all = slices.Delete(u.all, 0, 1)
	}
	u.at = len(u.all)
}

// unfoldNext prints what the last call has brought as a whole; said again, what the one before it has.
func unfoldNext(m *Model) {
	u := &m.results
	switch {
	case len(u.all) == 0:
		m.say("there is no output to unfold")
		return
	case u.at == 0:
		u.at = len(u.all)
		m.say("no earlier output is kept; Ctrl+O begins with the last one again")
		return
	}
	u.at--
	r := &u.all[u.at]
	if m.out.kind == "unfold" {
		m.print("")
	}
	m.block("unfold")
	which := paint(m.t, dim, "  ("+ordinal(u.n-r.n+1)+"last)")
	m.print(tui.Cut(m.t, paint(m.t, dim, tui.Pick(m.t, "─ ", "- "))+r.head, max(m.md.w-tui.Cells(m.t, strip(which)), 10)) + which)
	for l := range strings.SplitSeq(r.text, "\n") {
		a := attr(0)
		if r.diff {
			a = diffAttr(l)
		}
		m.print(hardWrap(m.t, []span{{l, a}}, m.md.w)...)
	}
	if r.more > 0 {
		more := tui.Pick(m.t, "… ", "... ") + plural(r.more, "line", "lines") + " more"
		if r.of != "" {
			more += "; see: rnix steps " + r.of
		}
		m.print(paint(m.t, dim, more))
	}
	if u.at > 0 {
		m.say("Ctrl+O again prints the output before that one")
	}
}

// ordinal is the number of a thing that is counted from the end, before the word "last": "", "2nd ", "3rd ".
func ordinal(n int) string {
	if n == 1 {
		return ""
	}
	end := "th"
	if tens := n / 10 % 10; tens != 1 {
		switch n % 10 {
		case 1:
			end = "st"
		case 2:
			end = "nd"
		case 3:
			end = "rd"
		}
	}
	return strconv.Itoa(n) + end + " "
}
