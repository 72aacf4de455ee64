package kernel

import (
	"strings"
	"testing"

	rnixctx "rnix/context"
	"rnix/internal/redact"
)

// A secret that lies where a line of the log is cut is taken out whole: no part of it is shown.
func TestNoPartOfASecretIsShownWhereALineOfTheLogIsCut(t *testing.T) {
	const secret = "sk-0123456789abcdefghij0123456789"
	set := new(redact.Set)
	set.Add(redact.Secret{Name: "KEY", Value: secret})
	k := &activity{secrets: set}
	for at := range 2 * traceMax {
		line := k.logText(strings.Repeat("x", at) + secret + strings.Repeat("y", 2*traceMax-at))
		if strings.Contains(line, secret[:8]) || strings.Contains(line, secret[len(secret)-8:]) {
			t.Fatalf("behind %d bytes: %s", at, line)
		}
	}
}

func TestTracedTextIsCutAsAllTexts(t *testing.T) {
	for n := range traceMax + 3*rnixctx.Slack {
		text := strings.Repeat("ö", n/2) + strings.Repeat("x", n%2)
		if got, want := excerpt([]byte(text)), rnixctx.Elide(text, traceMax); got != want {
			t.Fatalf("%d bytes: %q and %q", n, got, want)
		}
	}
}
