package harness

import (
	"slices"
	"strings"
	"testing"
)

func TestWhatIsHeardTogetherIsHeard(t *testing.T) {
	for _, c := range []struct{ told, text, left string }{
		{"a|b", "a", "b"},
		{"a|b", "b", "a"},
		{"a|b", "a\nb", ""},
		{"a|b|c", "a\nb", "c"},
		{"a|b|c", "b\nc", "a"},
		{"a\nb|c", "a\nb\nc", ""},
		{"|a|b", "the prompt", "a|b"},
		{"|a|b", "a", "|b"},
		{"|a|b", "the prompt\na", "b"},
		{"|a|b", "the prompt\nof two lines\na\nb", ""},
		{"|a|b", "the prompt, a", "a|b"},
		{"a|a", "a", "a"},
		{"a|b", "", "b"},
		{"|a", "", "a"},
		{"a|b", "something else", "b"},
	} {
		var told []words
		for _, text := range strings.Split(c.told, "|") {
			told = append(told, words{text: text})
		}
		from, to := heardOf(told, c.text)
		var rest []string
		for _, w := range slices.Delete(told, from, to) {
			rest = append(rest, w.text)
		}
		if left := strings.Join(rest, "|"); left != c.left {
			t.Errorf("told %q, heard %q: %q is left, not %q", c.told, c.text, left, c.left)
		}
	}
	if from, to := heardOf(nil, "a"); from != 0 || to != 0 {
		t.Error(from, to)
	}
}

// As claude does with what is said between two turns.
func TestWhatIsHeardTogetherIsNotToldAgain(t *testing.T) {
	b := newBench(t, false, begun+heard+shell+"read A; read B; "+`printf '%s\n' '{"kind":"system","subtype":"heard","message":"be quick\nand good"}'`+"\n"+finish+hang)
	b.ask()
	b.say("be quick")
	b.say("and good")
	if r := b.ask(); r.Content != "all done" || len(b.starts) != 1 {
		t.Errorf("%+v, started with %+v", r, b.starts)
	}
}
