// Package archtest keeps the house as ARCHITECTURE.md describes it: which package may import which,
// the rules of CONTRIBUTING.md that a machine can check, and that the pages are whole: names, links, indexes.
//
// It owns the rules and three texts: floors.txt, modules.txt and exceptions.txt. It reads and parses
// every source itself, through the file system that it is given: a check that asked the go command
// would be cached while the sources change. It knows no package of the product.
package archtest

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
)

// Finding is one place that breaks a rule.
type Finding struct {
	Rule string
	// Key is what an exception of this finding names: a file, a package or a type.
	Key  string
	Pos  string // file:line
	Text string // what is wrong, and the mend
}

// String returns "file:line: text".
func (f Finding) String() string { return f.Pos + ": " + f.Text }

// Rule is one check of the whole tree.
type Rule struct {
	Name  string
	check func(*Tree, *Book) []Finding
}

// Rules returns all rules, in the order in which they are reported.
func Rules() []Rule {
	return []Rule{
		{"parse", checkParse},
		{"floors", checkFloors},
		{"only", checkOnly},
		{"never", checkNever},
		{"set", checkSet},
		{"named", checkNamed},
		{"page", checkPage},
		{"names", checkNames},
		{"links", checkLinks},
		{"index", checkIndex},
		{"decisions", checkDecisions},
		{"long-page", checkLongPages},
		{"modules", checkModules},
		{"rnixctx", checkContextName},
		{"package-name", checkPackageName},
		{"package-comment", checkPackageComment},
		{"doc-comment", checkDocComments},
		{"long-file", checkLength},
		{"many-methods", checkMethods},
		{"reach", checkReach},
		{"faces", checkFaces},
		{"small", checkSmall},
		{"plain", checkPlain},
		{"gofmt", checkFormat},
		{"unfinished", checkUnfinished},
		{"machine-path", checkMachinePaths},
		{"words", checkWords},
		{"print", checkPrint},
		{"sleep", checkSleep},
		{"skip", checkSkip},
		{"locks", checkLocks},
	}
}

// Check reads the module at the root of fsys and returns the findings of each rule that no exception
// covers. Exceptions that cover nothing are findings of the rule "exceptions". The error is about the
// texts or the reading, never about a finding.
func Check(fsys fs.FS) (map[string][]Finding, error) {
	book, err := ReadBook(fsys)
	if err != nil {
		return nil, err
	}
	tree, err := Load(fsys)
	if err != nil {
		return nil, err
	}
	out := map[string][]Finding{}
	used := map[string]bool{}
	for _, r := range Rules() {
		for _, f := range r.check(tree, book) {
			f.Rule = r.Name
			if e, ok := book.exception(f); ok {
				used[e.id()] = true
				continue
			}
			out[r.Name] = append(out[r.Name], f)
		}
	}
	for _, e := range book.Exceptions {
		if !used[e.id()] {
			out["exceptions"] = append(out["exceptions"], Finding{Rule: "exceptions", Key: e.Key, Pos: e.Pos,
				Text: fmt.Sprintf("nothing breaks the rule %s at %s any more: remove the line", e.Rule, e.Key)})
		}
	}
	for _, fs := range out {
		slices.SortFunc(fs, func(a, b Finding) int { return cmp.Or(cmp.Compare(a.Pos, b.Pos), cmp.Compare(a.Text, b.Text)) })
	}
	return out, nil
}
