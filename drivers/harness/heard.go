package harness

import (
	"slices"
	"strings"

	"rnix/agent"
	"rnix/internal/harness"
)

// prompt stands among what a command line was told for the prompt, as which it says something else than it was given.
const prompt = ""

// heard notes that it has taken a text in. What it has heard after the end of a turn begins another one.
func (t *turnState) heard(text string) {
	t.final, t.hears = nil, true
	from, to := heardOf(t.unheard, text)
	t.unheard = slices.Delete(t.unheard, from, to)
}

// heardOf returns which of the texts that a command line was told are the one that it has taken in: one of them, or several
// that follow each other, with a line break between two. That is how claude takes in what was said between two turns. A text that
// nobody has told it is the first.
func heardOf(told []words, text string) (from, to int) {
	for from = range told {
		all := ""
		for to = from; to < len(told); to++ {
			if to > from {
				all += "\n"
			}
			if all += told[to].text; all == text || told[from].text == prompt && to > from && strings.HasSuffix(text, all) {
				return from, to + 1
			}
		}
	}
	return 0, min(1, len(told))
}

// tells takes in what a command line says of its turns, and reports whether it was that.
func (t *turnState) tells(e *agent.SystemEvent) bool {
	switch e.Subtype {
	case harness.SystemHeard:
		t.heard(e.Message)
	case harness.SystemBeside:
		t.more = t.beside && e.Message == "" && t.final != nil
		t.beside = e.Message != ""
	case harness.SystemTurn:
		t.final, t.more = nil, false
	default:
		return false
	}
	return true
}
