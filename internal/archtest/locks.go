package archtest

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
)

// annotation is what the analyzer of locks reads: a name of a lock and nothing else. ignored says that it does not look, and why.
var (
	annotation = regexp.MustCompile(`^// \+checklocks(read|acquire|acquireread|release|releaseread|exclude|excludewrite|alias)?:[\w.=]+$`)
	ignored    = regexp.MustCompile(`^// \+checklocks(ignore|force): \w+`)
)

const annotated = "+checklocks"

// checkLocks finds annotations of locks that the analyzer does not read, or reads as another field's: it silently takes an
// annotation with other text in its comment as none, and counts lines of fields, not names.
func checkLocks(t *Tree, _ *Book) (out []Finding) {
	for _, f := range t.Files {
		if f.AST == nil {
			continue
		}
		add := func(pos token.Pos, text string) {
			out = append(out, Finding{Key: f.Path, Pos: t.at(f, pos), Text: text})
		}
		for _, g := range f.AST.Comments {
			for _, c := range g.List {
				if strings.Contains(c.Text, annotated) && !annotation.MatchString(c.Text) && !ignored.MatchString(c.Text) {
					add(c.Pos(), "the analyzer does not read this annotation: let it stand alone in its comment, above the field; an exception has a reason behind a colon")
				}
			}
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			if s, ok := n.(*ast.StructType); ok {
				for _, l := range shifted(s) {
					add(l.Pos(), "the analyzer takes the annotations behind this line for those of other fields: give each field a line of its own")
				}
			}
			return true
		})
	}
	return out
}

// shifted returns the lines with several fields that stand before an annotated one, or are it.
func shifted(s *ast.StructType) []*ast.Field {
	var out, lines []*ast.Field
	for _, l := range s.Fields.List {
		if len(l.Names) > 1 {
			lines = append(lines, l)
		}
		if guarded(l.Doc) || guarded(l.Comment) {
			out = lines
		}
	}
	return out
}

func guarded(g *ast.CommentGroup) bool {
	if g == nil {
		return false
	}
	for _, c := range g.List {
		if annotation.MatchString(c.Text) {
			return true
		}
	}
	return false
}
