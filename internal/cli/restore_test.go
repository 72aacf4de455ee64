package cli

import (
	"strings"
	"testing"
)

func TestRestoreAsksWhereAPersonIsAndRefusesElsewhere(t *testing.T) {
	f := newPastFake(t)
	f.restore = someRestore
	if r := f.run("restore", "3", "--step", "2"); r.code != ExitBlocked || f.calls() != "restore dry=true" || !strings.Contains(r.err, "--force") {
		t.Errorf("%+v %s", r, f.calls())
	}
	for answer, want := range map[string]int{"y\n": 0, "n\n": ExitCancelled, "\n": ExitCancelled} {
		f.mu.Lock()
		f.seen = nil
		f.mu.Unlock()
		typed := false
		code, out, said := f.onTerminal(func(s string) string {
			if !typed && strings.Contains(s, "[y/N]") {
				typed = true
				return answer
			}
			return ""
		}, nil, "restore", "3", "--step", "2")
		done := strings.Contains(f.calls(), "dry=false")
		if code != want || !strings.HasPrefix(f.calls(), "restore dry=true") || done != (want == 0) || !strings.Contains(out, "to remove  b.go") {
			t.Errorf("%q: code %d, %s\n%s\n%s", answer, code, f.calls(), out, said)
		}
	}
}
