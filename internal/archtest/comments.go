package archtest

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// checkPackageComment finds packages without a comment that begins "Package x", and commands without
// one that begins "Command x".
func checkPackageComment(t *Tree, _ *Book) (out []Finding) {
	for _, files := range t.packages() {
		first := files[0]
		if !slices.ContainsFunc(files, func(f *File) bool { return !f.Test }) {
			continue
		}
		want := "Package " + first.AST.Name.Name + " "
		if first.AST.Name.Name == "main" {
			want = "Command "
		}
		if !slices.ContainsFunc(files, func(f *File) bool { return f.AST.Doc != nil && strings.HasPrefix(f.AST.Doc.Text(), want) }) {
			out = append(out, Finding{Key: first.Pkg, Pos: t.at(first, first.AST.Name.Pos()),
				Text: fmt.Sprintf("the package has no comment that begins %q: say what it owns and what it does not know", strings.TrimSpace(want))})
		}
	}
	return out
}

// selfEvident are methods whose name is their whole contract.
var selfEvident = []string{"String", "Error", "Unwrap", "Is", "As", "Read", "Write", "Close", "Stat", "Len", "Less", "Swap",
	"MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText", "UnmarshalYAML", "MarshalYAML", "ServeHTTP", "RoundTrip"}

// checkDocComments finds exported types, functions and methods of packages whose comment is missing or
// begins with another word than their name, and exported constants and variables without any.
func checkDocComments(t *Tree, _ *Book) (out []Finding) {
	for _, f := range t.Files {
		if f.AST == nil || f.Test || f.AST.Name.Name == "main" {
			continue
		}
		missing := func(name *ast.Ident, doc *ast.CommentGroup) {
			if name.IsExported() && !begins(doc, name.Name) {
				out = append(out, Finding{Key: f.Path, Pos: t.at(f, name.Pos()),
					Text: fmt.Sprintf("the comment of %s is missing or begins with another word: say what it promises", name.Name)})
			}
		}
		for _, d := range f.AST.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					missing(d.Name, d.Doc)
				} else if ast.IsExported(receiver(d)) && !slices.Contains(selfEvident, d.Name.Name) {
					missing(d.Name, d.Doc)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						doc := s.Doc
						if doc == nil {
							doc = d.Doc
						}
						missing(s.Name, doc)
					case *ast.ValueSpec:
						if d.Doc == nil && s.Doc == nil && s.Comment == nil && s.Names[0].IsExported() {
							missing(s.Names[0], nil)
						}
					}
				}
			}
		}
	}
	return out
}

// begins reports whether the first sentence of doc is about name.
func begins(doc *ast.CommentGroup, name string) bool {
	if doc == nil {
		return false
	}
	words := strings.Fields(doc.Text())
	for len(words) > 1 && slices.Contains([]string{"A", "An", "The"}, words[0]) {
		words = words[1:]
	}
	return len(words) > 0 && strings.TrimRight(words[0], ",:;.") == name
}

// receiver returns the name of the type that a method belongs to.
func receiver(d *ast.FuncDecl) string {
	typ := d.Recv.List[0].Type
	for {
		switch x := typ.(type) {
		case *ast.StarExpr:
			typ = x.X
		case *ast.IndexExpr:
			typ = x.X
		case *ast.IndexListExpr:
			typ = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// maxMethods is how many methods a type may have before it is really two.
const maxMethods = 20
