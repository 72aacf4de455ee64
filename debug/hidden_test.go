package debug_test

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"rnix/debug"
	"rnix/internal/hidden"
	"rnix/internal/redact"
)

// unseen are pieces that a screen shows nothing of.
var unseen = []string{"\x1b[01;31m\x1b[K", "\x1b[m\x1b[K", "\x1b]8;;https://example.org/a\x1b\\", "\x1b]0;title\x07", "\x00", "\x08", "\u009b31m", "\x1b(B", "\u200b", "\ufeff", "\u2060", "\r\n", "\x1b\x1b[1m", "\x7f", "\u200d", "\u200c", "\u202e", "\U000e0101", "\u180b", "\u009d\u009d"}

// What a person sees, and what is put together from it, has no secret: colours and whatever else is taken away from a text before it
// is shown hide none, wherever they stand, and wherever the text was cut into pieces.
func TestNothingThatNoScreenShowsHidesASecret(t *testing.T) {
	const secret = "sk-canary/4711+abc"
	s := new(redact.Set)
	s.Add(redact.Secret{Name: "S0", Value: secret})
	if got := s.String("a:\x1b[01;31m\x1b[Ksk-can\x1b[m\x1b[Kary/4711+abc\n"); got != "a:\x1b[01;31m\x1b[K[secret S0]\n" {
		t.Errorf("%q", got)
	}
	if got := s.String("\x1bsk-canary/4711+abc \x1b[3sk-canary/4711+abc"); got != "\x1b[secret S0] \x1b[3[secret S0]" {
		t.Errorf("a sequence that its first letter seems to end: %q", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{"", "x", "\x1b[1m", "sk-can", "é"}).Draw(t, "before")
		for i := range len(secret) {
			if rapid.IntRange(0, 3).Draw(t, "gap") == 0 {
				text += rapid.SampledFrom(unseen).Draw(t, "unseen")
			}
			text += secret[i : i+1]
		}
		text += rapid.SampledFrom([]string{"", "\n", "\x1b[0m tail", "é"}).Draw(t, "behind")
		var out bytes.Buffer
		w := s.Writer(&out)
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			if _, err := w.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		for name, clean := range map[string]string{"at once": s.String(text), "in pieces": out.String()} {
			seen := strings.NewReplacer("\n", "", "\r", "").Replace(hidden.Strip(debug.Sanitize(clean)))
			if strings.Contains(seen, secret) || !strings.Contains(clean, "[secret S0]") {
				t.Fatalf("%s: %q shows %q", name, text, seen)
			}
		}
	})
}
