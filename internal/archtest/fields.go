package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"strings"
)

// Set is one line "set package Type.Field...": who makes a value of such a type gives it the field.
type Set struct {
	Package string
	Fields  map[string]string // by type
}

// checkSet finds values that lack a field which they must be given, because what stands in for it is not for this program. Tests and the package
// itself are free.
func checkSet(t *Tree, b *Book) (out []Finding) {
	for _, f := range t.Files {
		if f.AST == nil || f.Test || !f.Own {
			continue
		}
		for _, im := range t.imports(f) {
			for _, s := range b.Sets {
				if im.Own != s.Package {
					continue
				}
				name := im.Name
				if name == "" {
					name = path.Base(im.Own)
				}
				ast.Inspect(f.AST, func(n ast.Node) bool {
					lit, ok := n.(*ast.CompositeLit)
					if !ok {
						return true
					}
					sel, ok := lit.Type.(*ast.SelectorExpr)
					if !ok {
						return true
					}
					if x, ok := sel.X.(*ast.Ident); !ok || x.Name != name {
						return true
					}
					if field := s.Fields[sel.Sel.Name]; field != "" && !gives(lit, field) {
						out = append(out, Finding{Key: f.Path, Pos: t.at(f, lit.Pos()),
							Text: fmt.Sprintf("a %s.%s without %s: this program gives it one", s.Package, sel.Sel.Name, field)})
					}
					return true
				})
			}
		}
	}
	return out
}

// gives reports whether a literal names a field.
func gives(lit *ast.CompositeLit, field string) bool {
	for _, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if key, ok := kv.Key.(*ast.Ident); ok && key.Name == field {
				return true
			}
		}
	}
	return false
}

// readSet reads a line "set package Type.Field...".
func readSet(words []string) (Set, error) {
	s := Set{Package: words[1], Fields: map[string]string{}}
	for _, w := range words[2:] {
		typ, field, ok := strings.Cut(w, ".")
		if !ok {
			return s, fmt.Errorf("%q is no Type.Field", w)
		}
		s.Fields[typ] = field
	}
	return s, nil
}
