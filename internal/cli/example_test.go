package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"mvdan.cc/sh/v3/syntax"
)

// TestEachExampleInTheHelpIsACommandThatIsTaken reads the examples as a shell does, and gives each command of this program
// that stands in one, also in a pipe or a substitution, to the real parser.
func TestEachExampleInTheHelpIsACommandThatIsTaken(t *testing.T) {
	a, err := newApp(Host{Args: []string{}, Dir: "/"})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	walk(newRoot(a), func(c *cobra.Command) {
		for line := range strings.Lines(c.Example) {
			file, err := syntax.NewParser().Parse(strings.NewReader(line), "")
			if err != nil {
				t.Errorf("%s: %s: %v", c.CommandPath(), strings.TrimSpace(line), err)
				continue
			}
			for _, words := range callsIn(file) {
				if words[0] != "rnix" {
					continue
				}
				n++
				if err := parses(words[1:]); err != nil {
					t.Errorf("%s: %q: %v", c.CommandPath(), words, err)
				}
			}
		}
	})
	if n < 100 {
		t.Errorf("only %d commands were found in the examples", n)
	}
}

// callsIn returns the words of each command. What is only known when it runs stands there as "1".
func callsIn(file *syntax.File) (out [][]string) {
	syntax.Walk(file, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		var words []string
		for _, w := range call.Args {
			words = append(words, wordOf(w.Parts))
		}
		if slices.Contains([]string{"env", "exec", "nohup"}, words[0]) && len(words) > 1 {
			words = words[1:]
		}
		out = append(out, words)
		return true
	})
	return out
}

func wordOf(parts []syntax.WordPart) string {
	var b strings.Builder
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			b.WriteString(p.Value)
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			b.WriteString(wordOf(p.Parts))
		default:
			b.WriteString("1")
		}
	}
	return b.String()
}
