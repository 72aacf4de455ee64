package archtest

import (
	"bytes"
	"fmt"
	"go/format"
	"regexp"
	"slices"
	"strings"
)

// The longest files, in lines.
const (
	maxLines     = 400
	maxTestLines = 800
)

// checkLength finds files that are too long to be read in one go.
func checkLength(t *Tree, _ *Book) (out []Finding) {
	for _, f := range t.Files {
		limit := maxLines
		if f.Test {
			limit = maxTestLines
		}
		if n := bytes.Count(f.Src, []byte("\n")); n > limit {
			out = append(out, Finding{Key: f.Path, Pos: f.line(n), Text: fmt.Sprintf(
				"%d lines, over %d: divide it by aspect, or give a reason in %s", n, limit, exceptionsFile)})
		}
	}
	return out
}

// checkFormat finds files that gofmt would change.
func checkFormat(t *Tree, _ *Book) (out []Finding) {
	for _, f := range t.Files {
		if f.AST == nil {
			continue
		}
		want, err := format.Source(f.Src)
		if err != nil || bytes.Equal(want, f.Src) {
			continue
		}
		have, line := bytes.Split(f.Src, []byte("\n")), 1
		for i, l := range bytes.Split(want, []byte("\n")) {
			if i >= len(have) || !bytes.Equal(l, have[i]) {
				line = i + 1
				break
			}
		}
		out = append(out, Finding{Key: f.Path, Pos: f.line(line), Text: "gofmt would change it: run gofmt -w " + f.Path})
	}
	return out
}

// The names are put together so that this file does not break its own rules.
var (
	unfinished  = regexp.MustCompile(`^(//|/\*)?[\s*]*(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b`)
	machinePath = regexp.MustCompile(`(^|[^\w.~$}])(/wo` + `rk/|/ho` + `me/[a-z]|/Use` + `rs/[a-z]|/ro` + `ot/)`)
)

// checkUnfinished finds comments that promise work instead of doing it.
func checkUnfinished(t *Tree, _ *Book) (out []Finding) {
	for _, f := range t.Files {
		if f.AST == nil {
			continue
		}
		for _, g := range f.AST.Comments {
			for _, c := range g.List {
				for i, l := range strings.Split(c.Text, "\n") {
					if unfinished.MatchString(l) {
						out = append(out, Finding{Key: f.Path, Pos: f.line(t.Fset.Position(c.Pos()).Line + i),
							Text: "an unfinished mark: finish it, or leave it out and say so in docs/guides/limits.md"})
					}
				}
			}
		}
	}
	return out
}

// checkMachinePaths finds paths that exist on one machine only, in all files but tests.
func checkMachinePaths(t *Tree, _ *Book) (out []Finding) {
	look := func(path string, text []byte) {
		for i, l := range bytes.Split(text, []byte("\n")) {
			if m := machinePath.FindSubmatch(l); m != nil {
				out = append(out, Finding{Key: path, Pos: fmt.Sprintf("%s:%d", path, i+1),
					Text: fmt.Sprintf("%q is a path of somebody's machine: use a relative one, or ~", m[2])})
			}
		}
	}
	for _, f := range t.Files {
		if !f.Test {
			look(f.Path, f.Src)
		}
	}
	for path, text := range t.Texts {
		look(path, text)
	}
	return out
}

// checkPackageName finds names that say nothing.
func checkPackageName(t *Tree, _ *Book) (out []Finding) {
	empty := []string{"util", "utils", "common", "helper", "helpers", "base", "manager", "managers", "misc", "shared"}
	seen := map[string]bool{}
	for _, f := range t.Files {
		if f.AST == nil || seen[f.Pkg] {
			continue
		}
		if name := strings.TrimSuffix(f.AST.Name.Name, "_test"); slices.Contains(empty, name) {
			seen[f.Pkg] = true
			out = append(out, Finding{Key: f.Pkg, Pos: t.at(f, f.AST.Name.Pos()),
				Text: fmt.Sprintf("package %s: name it after what it holds", name)})
		}
	}
	return out
}
