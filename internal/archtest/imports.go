package archtest

import (
	"fmt"
	"slices"
	"strings"
)

// checkFloors finds imports that go up, or sideways to the right, and packages that stand on no floor.
// Tests obey the same rule, but may use the suites and their own package.
func checkFloors(t *Tree, b *Book) (out []Finding) {
	homeless := map[string]bool{}
	for _, f := range t.Files {
		if !f.Own {
			continue
		}
		here, ok := b.find(f.Pkg)
		if !ok {
			if !homeless[f.Pkg] {
				homeless[f.Pkg] = true
				out = append(out, Finding{Key: f.Pkg, Pos: f.line(1),
					Text: fmt.Sprintf("package %s stands on no floor: add it to %s", f.Pkg, floorsFile)})
			}
			continue
		}
		for _, im := range t.imports(f) {
			if im.Own == "" || f.Test && (im.Own == f.Pkg || slices.Contains(b.Suites, im.Own)) {
				continue
			}
			there, ok := b.find(im.Own)
			if !ok || there.before(here) {
				continue // a package without a floor is reported where it lies
			}
			out = append(out, Finding{Key: f.Path, Pos: f.line(im.Line), Text: fmt.Sprintf(
				"%s (floor %d, %s) imports %s (floor %d, %s), which does not stand before it: let the lower one state an interface",
				f.Pkg, here.floor, b.Floors[here.floor].Name, im.Own, there.floor, b.Floors[there.floor].Name)})
		}
	}
	return out
}

// checkOnly finds imports of packages that are kept for a few importers. Tests are free to use what is
// not ours, and their own package.
func checkOnly(t *Tree, b *Book) (out []Finding) {
	for _, f := range t.Files {
		if !f.Own {
			continue
		}
		for _, im := range t.imports(f) {
			if f.Test && (im.Own == "" || im.Own == f.Pkg) {
				continue
			}
			name := im.Path
			if im.Own != "" {
				name = im.Own
			}
			for _, o := range b.Only {
				if matchesAny(o.Packages, name) && !matchesAny(o.Importers, f.Pkg) {
					out = append(out, Finding{Key: f.Path, Pos: f.line(im.Line), Text: fmt.Sprintf(
						"%s imports %s, which only %s may", f.Pkg, name, strings.Join(o.Importers, " and "))})
				}
			}
		}
	}
	return out
}

// checkNever finds imports that a line refuses though the floors allow them. Tests obey it, too, for their own package's sake.
func checkNever(t *Tree, b *Book) (out []Finding) {
	for _, f := range t.Files {
		if !f.Own {
			continue
		}
		for _, im := range t.imports(f) {
			for _, n := range b.Never {
				if im.Own != "" && matchesAny(n.Importers, f.Pkg) && matchesAny(n.Packages, im.Own) {
					out = append(out, Finding{Key: f.Path, Pos: f.line(im.Line), Text: fmt.Sprintf(
						"%s imports %s, which it must not: give it a type that it owns", f.Pkg, im.Own)})
				}
			}
		}
	}
	return out
}

// checkContextName finds imports of our context package under a name that is the standard library's.
func checkContextName(t *Tree, _ *Book) (out []Finding) {
	for _, f := range t.Files {
		for _, im := range t.imports(f) {
			if im.Own == "context" && im.Name != "rnixctx" {
				out = append(out, Finding{Key: f.Path, Pos: f.line(im.Line), Text: fmt.Sprintf("import it as rnixctx %q", im.Path)})
			}
		}
	}
	return out
}

// checkModules compares the direct requirements of go.mod with modules.txt, and the imports of other
// people's modules with the importers that stand there.
func checkModules(t *Tree, b *Book) (out []Finding) {
	required := directRequirements(string(t.Texts["go.mod"]))
	used := map[string]bool{}
	for _, f := range t.Files {
		if !f.Own {
			continue
		}
		for _, im := range t.imports(f) {
			i := slices.IndexFunc(b.Modules, func(m Module) bool { return im.Path == m.Path || strings.HasPrefix(im.Path, m.Path+"/") })
			if i < 0 {
				continue
			}
			m := b.Modules[i]
			used[m.Path] = true
			testing := f.Test || slices.Contains(b.Suites, f.Pkg)
			if !testing && !slices.Contains(m.Importers, "any") && !matchesAny(m.Importers, f.Pkg) {
				out = append(out, Finding{Key: f.Path, Pos: f.line(im.Line), Text: fmt.Sprintf(
					"%s imports %s, which %s keeps for %s", f.Pkg, im.Path, modulesFile, strings.Join(m.Importers, " "))})
			}
		}
	}
	for _, path := range required {
		if !slices.ContainsFunc(b.Modules, func(m Module) bool { return m.Path == path }) {
			out = append(out, Finding{Key: path, Pos: "go.mod:1", Text: path + " is required directly: say in " + modulesFile + " who may import it, and why it is worth it"})
		}
	}
	for _, m := range b.Modules {
		if !slices.Contains(required, m.Path) {
			out = append(out, Finding{Key: m.Path, Pos: m.Pos, Text: m.Path + " is not required by go.mod: remove the line"})
		} else if !used[m.Path] {
			out = append(out, Finding{Key: m.Path, Pos: m.Pos, Text: m.Path + " is imported by nobody: remove it here and in go.mod"})
		}
	}
	return out
}

// directRequirements returns the modules that a go.mod requires itself.
func directRequirements(gomod string) (out []string) {
	block := false
	for line := range strings.Lines(gomod) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
			continue
		case words[0] == "require" && len(words) > 1 && words[1] == "(":
			block = true
			continue
		case words[0] == ")":
			block = false
			continue
		case words[0] == "require":
			words = words[1:]
		case !block:
			continue
		}
		if len(words) >= 2 && !strings.Contains(line, "// indirect") {
			out = append(out, words[0])
		}
	}
	return out
}
