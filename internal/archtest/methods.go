package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
)

// checkMethods finds types with too many methods, interfaces included.
func checkMethods(t *Tree, _ *Book) (out []Finding) {
	for _, files := range t.packages() {
		m := methodsOf(t, files)
		for name, n := range m.own {
			if n > maxMethods {
				out = append(out, Finding{Key: files[0].Pkg + "." + name, Pos: m.where[name],
					Text: fmt.Sprintf("%s has %d methods, over %d: it is two types, or give a reason in %s", name, n, maxMethods, exceptionsFile)})
			}
		}
	}
	return out
}

// maxReach is how many methods may stand over one state.
const maxReach = 80

// checkReach counts the methods over one state: those of a type, and those of the types that are nothing but a place for more of its methods
// (struct{ *X }). The key has the number rounded up to tens, so that an exception holds only what there is.
func checkReach(t *Tree, _ *Book) (out []Finding) {
	for _, files := range t.packages() {
		m := methodsOf(t, files)
		reach := map[string]int{}
		for name, n := range m.own {
			reach[m.base(name)] += n
		}
		for name, n := range reach {
			if n > maxReach {
				out = append(out, Finding{Key: fmt.Sprintf("%s.%s<=%d", files[0].Pkg, name, (n+9)/10*10), Pos: m.where[name],
					Text: fmt.Sprintf("%d methods stand over %s, with those of types that embed it and nothing else, over %d: they are several services", n, name, maxReach)})
			}
		}
	}
	return out
}

// A type with more methods than this is a face: it hands each call on, so that none of its methods has more than maxFaceLines lines
// between its braces.
const (
	maxFace      = 2 * maxMethods
	maxFaceLines = 15
)

// checkFaces finds methods that do too much themselves, on types that are there to hand calls on.
func checkFaces(t *Tree, _ *Book) (out []Finding) {
	for _, files := range t.packages() {
		m := methodsOf(t, files)
		for _, f := range files {
			for _, d := range f.AST.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if f.Test || !ok || fn.Recv == nil || fn.Body == nil || m.own[receiver(fn)] <= maxFace {
					continue
				}
				if n := t.Fset.Position(fn.Body.Rbrace).Line - t.Fset.Position(fn.Body.Lbrace).Line - 1; n > maxFaceLines {
					name := receiver(fn) + "." + fn.Name.Name
					out = append(out, Finding{Key: f.Pkg + "." + name, Pos: t.at(f, fn.Pos()),
						Text: fmt.Sprintf("%s has %d lines, over %d: %s has %d methods, which hand calls on to the parts that do the work", name, n, maxFaceLines, receiver(fn), m.own[receiver(fn)])})
				}
			}
		}
	}
	return out
}

// methods is what there is of methods in a package.
type methods struct {
	own   map[string]int    // by type; an interface has those that it asks for
	where map[string]string // the type
	lends map[string]string // a type that is nothing but another one, embedded
}

// base returns the type whose state the methods of a type stand over.
func (m *methods) base(name string) string {
	for n := 0; m.lends[name] != "" && n < 10; n++ {
		name = m.lends[name]
	}
	return name
}

func methodsOf(t *Tree, files []*File) *methods {
	m := &methods{own: map[string]int{}, where: map[string]string{}, lends: map[string]string{}}
	for _, f := range files {
		if f.Test {
			continue
		}
		for _, d := range f.AST.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil {
					m.own[receiver(d)]++
				}
			case *ast.GenDecl:
				if d.Tok != token.TYPE {
					continue
				}
				for _, s := range d.Specs {
					s := s.(*ast.TypeSpec)
					m.where[s.Name.Name] = t.at(f, s.Pos())
					switch is := s.Type.(type) {
					case *ast.InterfaceType:
						m.own[s.Name.Name] += is.Methods.NumFields()
					case *ast.StructType:
						if lent := embedded(is); lent != "" {
							m.lends[s.Name.Name] = lent
						}
					}
				}
			}
		}
	}
	return m
}

// embedded returns the type of the package that is all there is in a struct, embedded; "" if it is another struct.
func embedded(s *ast.StructType) string {
	if len(s.Fields.List) != 1 || len(s.Fields.List[0].Names) > 0 {
		return ""
	}
	e := s.Fields.List[0].Type
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	if id, ok := e.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}
