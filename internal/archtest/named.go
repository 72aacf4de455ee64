package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
)

// Named is one line "named package Names... <- packages...": these names of a package are named by those others alone, and by itself.
type Named struct {
	Package   string
	Names     []string
	Importers []string
}

// checkNamed finds who names what others have behind an interface. Tests obey too: what they are given is what there is.
func checkNamed(t *Tree, b *Book) (out []Finding) {
	for _, f := range t.Files {
		if f.AST == nil || !f.Own {
			continue
		}
		for _, im := range t.imports(f) {
			for _, n := range b.Named {
				if im.Own != n.Package || f.Pkg == n.Package || matchesAny(n.Importers, f.Pkg) {
					continue
				}
				local := im.Name
				if local == "" {
					local = path.Base(im.Own)
				}
				ast.Inspect(f.AST, func(node ast.Node) bool {
					sel, ok := node.(*ast.SelectorExpr)
					if !ok {
						return true
					}
					if x, ok := sel.X.(*ast.Ident); ok && x.Name == local && slices.Contains(n.Names, sel.Sel.Name) {
						out = append(out, Finding{Key: f.Path, Pos: t.at(f, sel.Pos()),
							Text: fmt.Sprintf("it names %s.%s, which only %v may: take an interface", n.Package, sel.Sel.Name, n.Importers)})
					}
					return true
				})
			}
		}
	}
	return out
}

// readNamed reads a line "named package Names... <- packages...".
func readNamed(words []string) (Named, error) {
	i := slices.Index(words, "<-")
	if i < 3 || i == len(words)-1 {
		return Named{}, fmt.Errorf("%q: use \"named package Names... <- packages...\"", words)
	}
	return Named{Package: words[1], Names: words[2:i], Importers: words[i+1:]}, nil
}
