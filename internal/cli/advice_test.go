package cli

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// adviceList says for each command that the sources print as advice which test follows it.
const adviceList = "testdata/advice.txt"

// TestEveryAdviceIsFollowedByATest compares the commands that stand in the texts of the program with the list: each is
// a command with flags that exist, and is followed by a test where it is printed, or has a reason why it cannot be.
func TestEveryAdviceIsFollowedByATest(t *testing.T) {
	found := advices(t)
	listed := map[string]string{}
	text, err := os.ReadFile(adviceList)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		file, rest, _ := strings.Cut(line, " | ")
		command, by, ok := strings.Cut(rest, " | ")
		key := file + " | " + command
		switch {
		case !ok || by == "":
			t.Errorf("%s:%d: want FILE | COMMAND | SCRIPT, TestNAME or reason: WHY", adviceList, i+1)
		case listed[key] != "":
			t.Errorf("%s:%d: %s stands there twice", adviceList, i+1, key)
		case !slices.Contains(found, key):
			t.Errorf("%s:%d: no source prints %s", adviceList, i+1, key)
		}
		listed[key] = by
		if err := follows(command, by); err != nil {
			t.Errorf("%s:%d: %v", adviceList, i+1, err)
		}
	}
	for _, key := range found {
		if listed[key] == "" {
			t.Errorf("%s has no test that runs it where it is printed; list one in %s", key, adviceList)
		}
	}
}

// follows reports whether the test is there and follows the command: a script does so with "advised".
func follows(command, by string) error {
	if why, ok := strings.CutPrefix(by, "reason: "); ok {
		if len(why) < 10 {
			return errors.New("a reason is a sentence")
		}
		return nil
	}
	if strings.HasPrefix(by, "Test") {
		for _, pattern := range []string{"*_test.go", "../daemon/*_test.go", "../web/*_test.go", "../tui/*_test.go", "../workspace/*_test.go", "../../cmd/rnix/*_test.go"} {
			files, err := filepath.Glob(pattern)
			if err != nil {
				return err
			}
			for _, f := range files {
				text, err := os.ReadFile(f)
				if err != nil {
					return err
				}
				if strings.Contains(string(text), "func "+by+"(") {
					return nil
				}
			}
		}
		return fmt.Errorf("there is no test %s", by)
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "cmd", "rnix", "testdata", "script", by+".txt"))
	if err != nil {
		return err
	}
	want := slices.DeleteFunc(strings.Fields(command), func(w string) bool {
		return strings.Trim(w, "ABCDEFGHIJKLMNOPQRSTUVWXYZ.\"'") == "" || strings.Contains(w, "%")
	})
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "advised ") && !slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(line, w) }) {
			return nil
		}
	}
	return fmt.Errorf("script %s has no line \"advised\" with all of %q", by, want)
}

// advices returns the commands in the texts of the sources: file | command.
func advices(t *testing.T) []string {
	t.Helper()
	root := newRoot(&app{out: &output{}, host: Host{Name: "rnix"}})
	var out []string
	err := filepath.WalkDir(filepath.Join("..", ".."), func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(filepath.ToSlash(path), "../../")
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if slices.Contains([]string{"node_modules", "testdata", ".git", "dist", "test", "bench", "docs", "examples", "benchtable", "devtools", "testenv", "soak", "recoverytest"}, d.Name()) {
				return fs.SkipDir
			}
			return nil
		case strings.HasSuffix(name, "_test.go"):
			return nil
		}
		var texts []string
		switch filepath.Ext(name) {
		case ".go":
			texts, err = goTexts(path)
		case ".js":
			var text []byte
			text, err = os.ReadFile(path)
			texts = slices.DeleteFunc(strings.Split(string(text), "\n"), func(l string) bool { return strings.HasPrefix(strings.TrimSpace(l), "//") })
		}
		if err != nil {
			return err
		}
		for _, text := range texts {
			for _, c := range commandsIn(root, text) {
				if err := known(root, c); err != nil {
					t.Errorf("%s: %q: %v", name, c, err)
				}
				if key := name + " | " + c; !slices.Contains(out, key) {
					out = append(out, key)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// goTexts returns the texts in a Go file but those of help. What is put into a text stands there as %s.
func goTexts(path string) ([]string, error) {
	src, err := os.ReadFile(path)
	if err != nil || !slices.ContainsFunc([]string{"rnix ", "git ", "kill -"}, func(s string) bool { return bytes.Contains(src, []byte(s)) }) {
		return nil, err // no command stands in it
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var out []string
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && slices.Contains([]string{"Short", "Long", "Example", "Use"}, key.Name) {
				return false
			}
		case *ast.CallExpr: // of a flag
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && (strings.HasSuffix(f.Sel.Name, "Var") || strings.HasSuffix(f.Sel.Name, "VarP")) {
				return false
			}
		case *ast.BinaryExpr:
			if text, ok := joined(n); ok {
				out = append(out, text)
				return false
			}
		case *ast.BasicLit:
			if text, ok := joined(n); ok {
				out = append(out, text)
			}
		}
		return true
	})
	return out, nil
}

func joined(e ast.Expr) (text string, literal bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, err := strconv.Unquote(e.Value)
			return text, err == nil
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			a, aok := joined(e.X)
			b, bok := joined(e.Y)
			return a + b, aok || bok
		}
	}
	return "%s", false
}

// commandsIn returns the commands in a text, each as far as its words are those of a command.
func commandsIn(root *cobra.Command, text string) []string {
	var out []string
	begin := regexp.MustCompile(`(?:^|[^\w-./])(rnix [a-z][a-z-]+|git (?:-|[a-z])|kill -)`)
	end := regexp.MustCompile("[`;,()<>\n]|: ")
	for _, at := range begin.FindAllStringSubmatchIndex(text, -1) {
		words := strings.Fields(end.Split(text[at[2]:], 2)[0])
		if words[0] == "git" && !strings.HasPrefix(words[1], "-") && !slices.Contains([]string{"worktree", "stash", "merge", "submodule", "switch", "commit"}, words[1]) {
			continue
		}
		if words[0] == "rnix" {
			c, n := root, 1
			for ; n < len(words); n++ {
				i := slices.IndexFunc(c.Commands(), func(c *cobra.Command) bool { return c.Name() == words[n] || c.HasAlias(words[n]) })
				if i < 0 {
					break
				}
				c = c.Commands()[i]
			}
			if n == 1 {
				continue // "rnix needs a terminal"
			}
			for ; n < len(words) && argument(words[n]); n++ {
			}
			words = words[:n]
		}
		out = append(out, strings.TrimRight(strings.Join(words, " "), ".?"))
	}
	return out
}

// argument reports whether a word behind a command belongs to it, and not to the sentence.
func argument(word string) bool {
	return word != "|" && (strings.ContainsAny(word[:1], "-%\"'.$") || strings.ToUpper(word) == word)
}

// known checks that a command of this program has the flags that are named, and takes the arguments, if there are any.
func known(root *cobra.Command, command string) error {
	words := strings.Fields(command)
	if words[0] != "rnix" {
		return nil
	}
	c, rest, err := root.Find(words[1:])
	if err != nil {
		return err
	}
	if c.Args != nil && slices.ContainsFunc(rest, func(w string) bool { return !strings.HasPrefix(w, "-") }) {
		if err := parses(words[1:]); err != nil && !strings.Contains(err.Error(), " needs ") { // a text may go on with a word
			return err
		}
	}
	for _, w := range words {
		if name, ok := strings.CutPrefix(w, "--"); ok && !slices.Contains([]string{"", "help"}, name) && c.Flag(name) == nil && c.InheritedFlags().Lookup(name) == nil {
			return fmt.Errorf("there is no flag %s", w)
		}
	}
	return nil
}

// parses checks that the command takes these words. What stands for something else is a number, which is a name too.
func parses(words []string) error {
	a, err := newApp(Host{Args: []string{}, Dir: "/"})
	if err != nil {
		return err
	}
	c, rest, err := newRoot(a).Find(signalFlags(words))
	if err != nil {
		return err
	}
	rest = slices.Clone(rest)
	for i, w := range rest {
		if strings.Contains(w, "%") || strings.ToUpper(w) == w && strings.ToLower(w) != w && !strings.HasPrefix(w, "-") {
			rest[i] = "1"
		}
	}
	if err := c.ParseFlags(rest); err != nil {
		return err
	}
	if err := c.ValidateArgs(c.Flags().Args()); err != nil {
		return err
	}
	return c.ValidateFlagGroups()
}
