package cli

import (
	"bytes"
	"strings"
	"testing"
)

func TestHelpFitsTheTerminal(t *testing.T) {
	text := "Fetch gets\nwhat is there, and a long line follows it here.\n\nFlags:\n      --name string a name that\n      is much longer than the\n      line\n  short          fits\n  $ rnix run \"an example\"\n"
	want := "Fetch gets what is there, and a\nlong line follows it here.\n\nFlags:\n      --name string a name that\n      is much longer than the\n      line\n  short          fits\n  $ rnix run \"an example\"\n"
	if got := fit(text, 32); got != want {
		t.Errorf("%s", got)
	}
	if got := fit("      --name string   a name that is much longer than the line", 50); got != "      --name string   a name that is much longer\n                      than the line" {
		t.Errorf("%s", got)
	}
	if got := fit("  go run ./cmd/x --with many words in a line", 30); got != "  go run ./cmd/x --with many\n  words in a line" {
		t.Errorf("%s", got)
	}
	if got := fit(text, 0); got != text {
		t.Errorf("%s", got)
	}
}

// All that a command's help says is still there at 80 columns, and no line is longer that could be broken.
func TestHelpOfEachCommandFitsInto80Columns(t *testing.T) {
	for _, args := range [][]string{{"help"}, {"help", "run"}, {"help", "web"}, {"help", "chat"}, {"help", "compose", "up"}, {"help", "exit-codes"}, {"help", "environment"}} {
		show := func(env ...string) string {
			var out, errs bytes.Buffer
			if code := Main(t.Context(), Host{Args: args, Environ: env, Out: &out, Err: &errs, In: strings.NewReader("")}); code != 0 {
				t.Fatalf("%v: %d %s", args, code, errs.String())
			}
			return out.String()
		}
		whole, fits := show(), show("COLUMNS=80")
		if a, b := strings.Fields(whole), strings.Fields(fits); strings.Join(a, " ") != strings.Join(b, " ") {
			t.Errorf("%v says something else at 80 columns:\n%s", args, fits)
		}
		for line := range strings.Lines(fits) {
			if n := cells(strings.TrimRight(line, "\n")); n > 80 && len(strings.Fields(line)) > 1 {
				t.Errorf("%v: %d cells: %s", args, n, line)
			}
		}
	}
}
