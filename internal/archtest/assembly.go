package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"strconv"
)

// Small is one line "small package LINES": its files, without tests, have at most so many lines together.
type Small struct {
	Package string
	Lines   int
}

func readSmall(words []string) (Small, error) {
	n, err := strconv.Atoi(words[2])
	if err != nil || n < 1 {
		return Small{}, fmt.Errorf("small %s %q: give a number of lines", words[1], words[2])
	}
	return Small{words[1], n}, nil
}

// checkSmall finds packages that have more lines than they may.
func checkSmall(t *Tree, b *Book) (out []Finding) {
	lines := map[string]int{}
	for _, f := range t.Files {
		if !f.Test {
			lines[f.Pkg] += bytes.Count(f.Src, []byte("\n"))
		}
	}
	for _, s := range b.Small {
		if n := lines[s.Package]; n > s.Lines {
			out = append(out, Finding{Key: s.Package, Pos: s.Package, Text: fmt.Sprintf("%d lines, over %d: what it decides belongs to a service", n, s.Lines)})
		}
	}
	return out
}

// checkPlain finds, in the packages of the lines "plain packages...", types that are nothing but another one with methods: these lend it, and all
// who have one can do all that the other can.
func checkPlain(t *Tree, b *Book) (out []Finding) {
	for _, files := range t.packages() {
		if !matchesAny(b.Plain, files[0].Pkg) {
			continue
		}
		own := methodsOf(t, files).own
		for _, f := range files {
			for _, d := range f.AST.Decls {
				g, ok := d.(*ast.GenDecl)
				if f.Test || !ok || g.Tok != token.TYPE {
					continue
				}
				for _, s := range g.Specs {
					s := s.(*ast.TypeSpec)
					if is, ok := s.Type.(*ast.StructType); ok && lends(is, own) {
						out = append(out, Finding{Key: f.Pkg + "." + s.Name.Name, Pos: t.at(f, s.Pos()),
							Text: s.Name.Name + " is nothing but another type, embedded, and lends its methods: name the field, and write the methods that are meant"})
					}
				}
			}
		}
	}
	return out
}

// lends reports whether all that there is in a struct is a type with methods, embedded. One of another package is taken for one that has some.
func lends(s *ast.StructType, own map[string]int) bool {
	if len(s.Fields.List) != 1 || len(s.Fields.List[0].Names) > 0 {
		return false
	}
	here := embedded(s)
	return here == "" || own[here] > 0
}
