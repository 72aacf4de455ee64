package tui

import (
	"strings"
	"testing"
)

func TestTheDashboardShowsTheTreeAndWhatIsKnownOfTheChosenOne(t *testing.T) {
	a, c, d := proc(1, 0, "lead"), proc(2, 1, "review"), proc(3, 1, "tests")
	c.State, c.PausedAt = stateSuspended, begin
	b := newBench(t, false, a, c, d, proc(4, 0, "other"))
	b.run()
	for _, want := range []string{"lead", "├ ⏸ review", "└ ● tests", "1 Detail", "uuid       " + uuid(1).String(), "4 running · 10,000 tokens · $0.10"} {
		b.sees(want)
	}
	b.press("down")
	b.run()
	b.sees("uuid       " + uuid(2).String())
}

func TestTheHelpComesFromTheTableOfKeys(t *testing.T) {
	b := newBench(t, false, proc(1, 0, "lead"))
	b.press("?")
	text := b.help
	var all strings.Builder
	for _, p := range text.parts {
		all.WriteString(p.text + "\n")
	}
	for _, k := range b.keys {
		if (k.place == inList || k.place == inDash || k.place == anywhere) && !strings.Contains(all.String(), k.what) {
			t.Errorf("the help lacks %q", k.what)
		}
	}
}
