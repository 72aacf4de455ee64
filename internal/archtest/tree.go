package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Tree is every source of the module.
type Tree struct {
	Module string // the module's path
	Fset   *token.FileSet
	Files  []*File           // Go files, sorted by path
	Texts  map[string][]byte // other files that people read: pages, scripts, go.mod
	Paths  map[string]bool   // every file and directory, but for what stands in one that is not read
}

// File is one Go file.
type File struct {
	Path string // from the root, with slashes
	Pkg  string // the directory, which is the package's path inside the module
	Src  []byte
	Test bool      // named _test.go
	Own  bool      // belongs to this module, not to one of its own below it
	AST  *ast.File // nil if the file does not parse
	Err  error     // why
}

// Load reads the tree below the root of fsys: not what begins with a dot or is called testdata, which
// the go command ignores too.
func Load(fsys fs.FS) (*Tree, error) {
	t := &Tree{Fset: token.NewFileSet(), Texts: map[string][]byte{}, Paths: map[string]bool{}}
	var nested []string
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		t.Paths[p] = true
		if d.IsDir() {
			if p != "." && name != ".ci" && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules") {
				return fs.SkipDir
			}
			return nil
		}
		if name == "go.mod" && p != "go.mod" {
			nested = append(nested, path.Dir(p))
		}
		if !d.Type().IsRegular() || path.Ext(name) != ".go" && !isText(p) {
			return nil
		}
		src, err := fs.ReadFile(fsys, p)
		if err != nil {
			return err
		}
		if path.Ext(name) != ".go" {
			t.Texts[p] = src
			return nil
		}
		f := &File{Path: p, Pkg: path.Dir(p), Src: src, Test: strings.HasSuffix(p, "_test.go")}
		f.AST, f.Err = parser.ParseFile(t.Fset, p, src, parser.ParseComments|parser.SkipObjectResolution)
		if f.Err != nil {
			f.AST = nil
		}
		t.Files = append(t.Files, f)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, f := range t.Files {
		f.Own = !slices.ContainsFunc(nested, func(dir string) bool { return f.Pkg == dir || strings.HasPrefix(f.Pkg, dir+"/") })
	}
	mod := strings.Fields(string(t.Texts["go.mod"]))
	if len(mod) < 2 || mod[0] != "module" {
		return nil, fmt.Errorf("go.mod: its first line names no module")
	}
	t.Module = mod[1]
	return t, nil
}

func isText(p string) bool {
	switch path.Ext(p) {
	case ".md", ".txt", ".yaml", ".sh", ".mod":
		return true
	case ".js":
		return strings.HasPrefix(p, pageTexts)
	}
	return p == "test" || p == "Makefile" || p == ".ci/run"
}

// imported is one import of a file.
type imported struct {
	Path string // as written
	Own  string // the package inside this module; "" for any other
	Name string // the local name; "" if none was given
	Line int
}

// imports returns the imports of f.
func (t *Tree) imports(f *File) []imported {
	if f.AST == nil {
		return nil
	}
	var out []imported
	for _, s := range f.AST.Imports {
		p, err := strconv.Unquote(s.Path.Value)
		if err != nil {
			continue
		}
		im := imported{Path: p, Line: t.Fset.Position(s.Pos()).Line}
		if own, ok := strings.CutPrefix(p, t.Module+"/"); ok {
			im.Own = own
		}
		if s.Name != nil {
			im.Name = s.Name.Name
		}
		out = append(out, im)
	}
	return out
}

// calls visits every call pkg.name(...) in f, where pkg is the import path of a package whose name is
// the path's last element.
func (t *Tree) calls(f *File, pkg string, visit func(call *ast.CallExpr, name string)) {
	local := ""
	for _, im := range t.imports(f) {
		if im.Path == pkg {
			local = im.Name
			if local == "" {
				local = path.Base(pkg)
			}
		}
	}
	if local == "" {
		return
	}
	ast.Inspect(f.AST, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == local {
					visit(call, sel.Sel.Name)
				}
			}
		}
		return true
	})
}

// at returns the position of a node of f.
func (t *Tree) at(f *File, pos token.Pos) string {
	return f.line(t.Fset.Position(pos).Line)
}

// line returns the position of a line of f.
func (f *File) line(n int) string { return fmt.Sprintf("%s:%d", f.Path, n) }

// packages returns the files of each package, keyed by its path and its name, tests of other packages apart.
func (t *Tree) packages() map[string][]*File {
	out := map[string][]*File{}
	for _, f := range t.Files {
		if f.AST != nil {
			out[f.Pkg+" "+f.AST.Name.Name] = append(out[f.Pkg+" "+f.AST.Name.Name], f)
		}
	}
	return out
}

// checkParse finds files that are not Go.
func checkParse(t *Tree, _ *Book) (out []Finding) {
	for _, f := range t.Files {
		if f.Err != nil {
			out = append(out, Finding{Key: f.Path, Pos: f.line(1), Text: "does not parse: " + f.Err.Error()})
		}
	}
	return out
}
