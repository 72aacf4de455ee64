package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// riddles are words that a text for users does without: it says who does what, in the field's terms.
var riddles = regexp.MustCompile(`(?i)\b(nobody|somebody|whose|is none of|goes on|stands still|by itself|likewise|of its own)\b`)

// worktrees is the one thing of which the words are good: git calls it so.
var worktrees = regexp.MustCompile(`git work ?tree of its own`)

// pageTexts is the directory of the page that the browser shows.
const pageTexts = "internal/web/app/src/"

// checkWords finds riddles in the texts of the program: literals of packages that are part of it, and lines of the page.
func checkWords(t *Tree, _ *Book) (out []Finding) {
	look := func(key, pos, text string) {
		text = worktrees.ReplaceAllString(text, "")
		if m := riddles.FindString(text); m != "" {
			out = append(out, Finding{Key: key, Pos: pos, Text: fmt.Sprintf("%q is no word for users: say who does what (is paused, is resumed, its own, want a or b)", m)})
		}
	}
	for _, f := range t.Files {
		if f.AST == nil || f.Test || forTests(f.Pkg) {
			continue
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil {
					at := t.Fset.Position(lit.Pos()).Line
					for i, l := range strings.Split(text, "\n") {
						look(f.Path, f.line(at+i), l)
					}
				}
			}
			return true
		})
	}
	for name, text := range t.Texts {
		if !strings.HasPrefix(name, pageTexts) || path.Ext(name) != ".js" {
			continue
		}
		for i, l := range strings.Split(string(text), "\n") {
			code, _, _ := strings.Cut(l, "// ")
			look(name, fmt.Sprintf("%s:%d", name, i+1), code)
		}
	}
	return out
}

// forTests reports whether a package is there for those who work on the program, and not a part of it.
func forTests(pkg string) bool {
	if strings.HasSuffix(pkg, "test") {
		return true
	}
	return slices.Contains([]string{"internal/archtest", "internal/benchtable", "internal/soak", "internal/testenv", "internal/testreport"}, pkg)
}
