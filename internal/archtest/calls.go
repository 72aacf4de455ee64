package archtest

import (
	"go/ast"
	"go/token"
	"strconv"
	"strings"
)

// printers are the packages that talk to the user themselves.
var printers = []string{"internal/cli", "cmd/*", "internal/tui"}

// checkPrint finds writing to standard output outside the faces. Tests may: an example must, and so must
// a test that starts itself again as a child.
func checkPrint(t *Tree, _ *Book) (out []Finding) {
	for _, f := range t.Files {
		if f.Test || matchesAny(printers, f.Pkg) {
			continue
		}
		t.calls(f, "fmt", func(call *ast.CallExpr, name string) {
			if strings.HasPrefix(name, "Print") {
				out = append(out, Finding{Key: f.Path, Pos: t.at(f, call.Pos()),
					Text: "fmt." + name + ": only the command line prints; take an io.Writer, or log"})
			}
		})
	}
	return out
}

// checkSleep finds tests that wait by the clock. In files with testing/synctest the clock is not real.
func checkSleep(t *Tree, _ *Book) (out []Finding) {
	for _, f := range t.Files {
		if !f.Test {
			continue
		}
		virtual := false
		for _, im := range t.imports(f) {
			virtual = virtual || im.Path == "testing/synctest"
		}
		if virtual {
			continue
		}
		t.calls(f, "time", func(call *ast.CallExpr, name string) {
			if name == "Sleep" {
				out = append(out, Finding{Key: f.Path, Pos: t.at(f, call.Pos()),
					Text: "time.Sleep in a test: wait for an event, or use testing/synctest"})
			}
		})
	}
	return out
}

// checkSkip finds tests that leave themselves out without naming what they need: the report at the end
// of the test run counts and names them by these words. What does not apply is left out without a skip.
func checkSkip(t *Tree, _ *Book) (out []Finding) {
	for _, f := range t.Files {
		if f.AST == nil { // suites are not named _test.go
			continue
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || sel.Sel.Name != "Skip" && sel.Sel.Name != "Skipf" && sel.Sel.Name != "SkipNow" {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); !ok || len(x.Name) > 2 {
				return true // not a *testing.T, B or TB
			}
			if sel.Sel.Name != "SkipNow" && len(call.Args) > 0 {
				lit, ok := call.Args[0].(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING {
					return true
				}
				if text, err := strconv.Unquote(lit.Value); err == nil && strings.HasPrefix(text, "needs ") {
					return true
				}
			}
			out = append(out, Finding{Key: f.Path, Pos: t.at(f, call.Pos()),
				Text: `a test that is skipped says what is missing: t.Skip("needs ...")`})
			return true
		})
	}
	return out
}
