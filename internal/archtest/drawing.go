package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	floorLine = regexp.MustCompile(`^\W*(\d+) (\w+)(\s.*)?$`)
	ruled     = regexp.MustCompile(`^\s*[─═]`)
)

// checkPage compares the drawing of the house in ARCHITECTURE.md with floors.txt: each floor has its line, "N name packages",
// and what follows up to the next floor or rule stands on it.
func checkPage(t *Tree, b *Book) (out []Finding) {
	drawn, here, own := map[int]bool{}, -1, ownPackages(t)
	eachLine(t, housePage, func(n int, line string, code bool) {
		found := func(format string, args ...any) {
			out = append(out, Finding{Key: housePage, Pos: fmt.Sprintf("%s:%d", housePage, n), Text: fmt.Sprintf(format, args...)})
		}
		switch m := floorLine.FindStringSubmatch(line); {
		case !code || ruled.MatchString(line):
			here = -1
		case m != nil:
			here, _ = strconv.Atoi(m[1]) // digits
			if here >= len(b.Floors) || b.Floors[here].Name != m[2] {
				found("%s has no floor %d %s", floorsFile, here, m[2])
				here = -1
				break
			}
			drawn[here], line = true, m[3]
			fallthrough
		case here >= 0:
			for _, word := range strings.Fields(line) {
				for _, pkg := range own {
					if r, ok := b.find(pkg); ok && matches(word, pkg) && r.floor != here {
						found("%s stands on floor %d, not on floor %d", pkg, r.floor, here)
					}
				}
			}
		}
	})
	for _, f := range b.Floors {
		if !drawn[f.Number] {
			out = append(out, Finding{Key: housePage, Pos: housePage + ":1", Text: fmt.Sprintf("no drawing has a line \"%d %s\", as %s has", f.Number, f.Name, floorsFile)})
		}
	}
	return out
}

func ownPackages(t *Tree) (out []string) {
	for _, f := range t.Files { // sorted by path, but a directory may stand between the files of the one above
		if f.Own && !slices.Contains(out, f.Pkg) {
			out = append(out, f.Pkg)
		}
	}
	return out
}

var (
	pathName = regexp.MustCompile(`(?:^|[^\w/.~<>$-])([a-z]+(?:/[\w.*-]*[\w*])+)`)
	goName   = regexp.MustCompile(`\b([A-Za-z]\w*)\.([A-Za-z]\w*)\b`)
	fileEnd  = regexp.MustCompile(`^(go|md|txt|json|jsonl|yaml|log|lock|sock|tar|git|sh)$`)
)

// checkNames finds names in ARCHITECTURE.md, and in the pages below it that say how things are inside, that the code does not
// have: paths of files and packages, package.Name and Type.Name. Only what stands in blocks and spans of code counts.
func checkNames(t *Tree, _ *Book) (out []Finding) {
	names := declared(t)
	for _, page := range pages(t) {
		if dir := path.Dir(page); page != housePage && dir != internalsDir && dir != decisionsDir {
			continue
		}
		eachLine(t, page, func(n int, line string, code bool) {
			spans := []string{line}
			if !code {
				spans = codeSpan.FindAllString(line, -1)
			}
			for _, s := range spans {
				for _, m := range pathName.FindAllStringSubmatch(s, -1) {
					if top, _, _ := strings.Cut(m[1], "/"); t.Paths[top] && !t.has(m[1]) {
						out = append(out, Finding{Key: page, Pos: fmt.Sprintf("%s:%d", page, n), Text: fmt.Sprintf("there is no %s", m[1])})
					}
				}
				for _, m := range goName.FindAllStringSubmatch(s, -1) {
					if of, ok := names[m[1]]; ok && !of[m[2]] && !fileEnd.MatchString(m[2]) {
						out = append(out, Finding{Key: page, Pos: fmt.Sprintf("%s:%d", page, n), Text: fmt.Sprintf("%s has no %s", m[1], m[2])})
					}
				}
			}
		})
	}
	return out
}

// has reports whether a file or directory has this path, in which a * stands for a part of a name.
func (t *Tree) has(name string) bool {
	if !strings.Contains(name, "*") {
		return t.Paths[name]
	}
	for p := range t.Paths {
		if matches(name, p) {
			return true
		}
	}
	return false
}

// declared returns, by the name of a package and by that of each exported type, what is declared in that package, or beside that
// type: functions, types, values, methods and fields. Packages and types of one name are taken together.
func declared(t *Tree) map[string]map[string]bool {
	in := map[string]map[string]bool{}
	types := map[string][]string{} // the packages that declare one
	for _, f := range t.Files {
		if f.AST == nil || f.Test {
			continue
		}
		pkg := f.AST.Name.Name
		if in[pkg] == nil {
			in[pkg] = map[string]bool{}
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				in[pkg][n.Name.Name] = true
				return false
			case *ast.TypeSpec:
				in[pkg][n.Name.Name] = true
				if n.Name.IsExported() {
					types[n.Name.Name] = append(types[n.Name.Name], pkg)
				}
			case *ast.ValueSpec:
				for _, id := range n.Names {
					in[pkg][id.Name] = true
				}
			case *ast.Field:
				for _, id := range n.Names {
					in[pkg][id.Name] = true
				}
			}
			return true
		})
	}
	out := map[string]map[string]bool{}
	for name, pkgs := range types {
		out[name] = map[string]bool{}
		for _, pkg := range pkgs {
			for id := range in[pkg] {
				out[name][id] = true
			}
		}
	}
	for pkg, ids := range in {
		out[pkg] = ids
	}
	return out
}
