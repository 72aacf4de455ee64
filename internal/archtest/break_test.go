package archtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const drawing = "```\n 1 engines  high  context   run\n────\n 0 words    low  low2\n            p/*  suite  internal/archtest\n```\n"

// sound is a small module that breaks no rule. Each case below changes a file or adds one.
var sound = map[string]string{
	"go.mod":                    "module m\n\nrequire example.org/x v1.0.0\n\nrequire (\n\texample.org/y v1.0.0 // indirect\n)\n",
	floorsFile:                  "floor 0 words low low2 internal/archtest suite p/*\nfloor 1 engines context high\nsuites suite\nonly os/exec <- high\nnever low2 -> suite\nset low Opts.Run\nnamed low Disk OpenDisk <- context\nsmall low2 9\nplain low\n",
	modulesFile:                 "example.org/x <- high: it saves much\n",
	exceptionsFile:              "# none\n",
	housePage:                   "# House\n\n" + drawing + "\n`low.Do` in `low/low.go`, all of `p/*`, and `x.jsonl`: [more](docs/README.md), [here](#house).\n",
	docsIndex:                   "# Pages\n\n[a](a.md), [decisions](decisions/README.md), [the house](../ARCHITECTURE.md#house), [web](https://example.org/x#y)\n",
	"docs/a.md":                 "# A page\n\n`[no](link.md)`\n\n```\n[no](link.md)\n```\n",
	decisionTable:               "# Decisions\n\n| [001](001-one.md) | One `thing` |\n",
	"docs/decisions/001-one.md": "# 1. One `thing`\n\nSo be it.\n",
	"low/low.go":                "// Package low is low.\npackage low\n\n// Do does.\nfunc Do() {}\n",
	"low2/low2.go":              "// Package low2 is beside it.\npackage low2\n\nimport _ \"m/low\"\n",
	"high/high.go":              "// Package high is high.\npackage high\n\nimport (\n\t_ \"os/exec\"\n\n\t_ \"example.org/x/sub\"\n\n\trnixctx \"m/context\"\n\t_ \"m/low\"\n)\n\nvar _ = rnixctx.X\n",
	"context/c.go":              "// Package context is ours.\npackage context\n\n// X is a value.\nvar X int\n",
	"suite/suite.go":            "// Package suite is a suite.\npackage suite\n",
	"low/low_test.go":           "package low_test\n\nimport (\n\t_ \"os/exec\"\n\n\t_ \"m/low\"\n\t_ \"m/suite\"\n)\n",
	"p/a/a.go":                  "// Package a is one of many.\npackage a\n",
	"p/b/b.go":                  "// Package b is one of many.\npackage b\n",
	"tool/go.mod":               "module tool\n",
	"tool/main.go":              "// Command tool is a module of its own.\npackage main\n\nimport _ \"m/high\"\n\nfunc main() {}\n",
	"x/testdata/y.go":           "not Go, and nobody's business",
	"low/wait_test.go":          "package low\n\nimport (\n\t\"testing/synctest\"\n\t\"time\"\n)\n\nvar _ = synctest.Wait\n\nfunc f() { time.Sleep(1) }\n",
}

// TestASoundModuleIsLeftAlone says that the rules find nothing where nothing is wrong.
func TestASoundModuleIsLeftAlone(t *testing.T) {
	for rule, fs := range check(t, "", "") {
		t.Errorf("%s: %v", rule, fs)
	}
}

// TestEachRuleCanFail breaks every rule at least once. A rule without a case fails the test: a check
// that cannot fail is worse than none.
func TestEachRuleCanFail(t *testing.T) {
	long := "// Package low is low.\npackage low\n" + strings.Repeat("\n// x\n", 250)
	many := "// Package low is low.\npackage low\n\n// T is too much.\ntype T struct{}\n"
	wide := "// Package low is low.\npackage low\n\n// I is too much.\ntype I interface {\n"
	for _, c := range "abcdefghijklmnopqrstu" {
		many += "\nfunc (T) " + string(c) + "() {}\n"
		wide += "\t" + string(c) + "()\n"
	}
	lent := "// Package low is low.\npackage low\n\n// T is too much.\ntype T struct{}\n\ntype a struct{ *T }\n\ntype b struct{ a }\n\ntype c struct{ *T }\n"
	for _, m := range "abcdefghijklmnopqrstu" {
		for _, of := range []string{"T", "a", "b", "c"} {
			lent += "\nfunc (" + of + ") " + string(m) + "() {}\n"
		}
	}
	face := "// Package low is low.\npackage low\n\n// T is a face.\ntype T struct{}\n\nfunc (T) long() {" + strings.Repeat("\n", 17) + "}\n"
	for i := range 2 * 20 {
		face += fmt.Sprintf("\nfunc (T) m%d() {}\n", i)
	}
	cases := []struct{ rule, file, text, want string }{
		{"parse", "low/bad.go", "package", "low/bad.go:1: does not parse"},
		{"floors", "low/up.go", "package low\n\nimport _ \"m/high\"\n", "low/up.go:3: low (floor 0, words) imports high (floor 1, engines)"},
		{"floors", "low/side.go", "package low\n\nimport _ \"m/low2\"\n", "low/side.go:3: low (floor 0, words) imports low2"},
		{"floors", "p/a/side.go", "package a\n\nimport _ \"m/p/b\"\n", "imports p/b"},
		{"floors", "low/up_test.go", "package low\n\nimport _ \"m/high\"\n", "imports high"},
		{"floors", "lost/lost.go", "// Package lost is nowhere.\npackage lost\n", "stands on no floor"},
		{"never", "low2/never.go", "package low2\n\nimport _ \"m/suite\"\n", "low2/never.go:3: low2 imports suite, which it must not"},
		{"only", "low/run.go", "package low\n\nimport _ \"os/exec\"\n", "low/run.go:3: low imports os/exec, which only high may"},
		{"set", "low2/x.go", "package low2\n\nimport \"m/low\"\n\nvar _ = low.Opts{Dir: \"x\"}\n", "low2/x.go:5: a low.Opts without Run"},
		{"set", "low2/x.go", "package low2\n\nimport l \"m/low\"\n\nvar _ = &l.Opts{}\n", "without Run"},
		{"set", "low2/x.go", "package low2\n\nimport l \"m/low\"\n\nvar _ = l.Opts{Run: nil}\n", ""},
		{"named", "low2/x.go", "package low2\n\nimport l \"m/low\"\n\nfunc f(*l.Disk) {}\n", "low2/x.go:5: it names low.Disk, which only [context] may"},
		{"named", "high/x_test.go", "package high\n\nimport \"m/low\"\n\nvar _ = low.OpenDisk\n", "high/x_test.go:5: it names low.OpenDisk"},
		{"named", "context/x.go", "package context\n\nimport \"m/low\"\n\nvar _ = low.OpenDisk\n", ""},
		{"page", housePage, "nothing", "no drawing has a line \"1 engines\""},
		{"page", housePage, "```\n 1 engines high low2\n 0 words low\n```\n", "ARCHITECTURE.md:2: low2 stands on floor 0, not on floor 1"},
		{"page", housePage, "```\n 1 engines high\n 0 words low\n   context\n```\n", "ARCHITECTURE.md:4: context stands on floor 1"},
		{"page", housePage, "```\n 1 engines high\n 0 words low\n 2 words low\n```\n", "has no floor 2 words"},
		{"names", housePage, drawing + "see `low/gone.go`\n", "ARCHITECTURE.md:7: there is no low/gone.go"},
		{"names", housePage, "```\nlow/*.js\n```\n", "ARCHITECTURE.md:2: there is no low/*.js"},
		{"names", "docs/internals/x.md", "calls `low.Done`\n", "docs/internals/x.md:1: low has no Done"},
		{"names", "docs/decisions/001-one.md", "calls `Opts.Done`, a name that `type Opts` lacks\n", ""},
		{"links", "docs/a.md", "[b](b.md)\n", "docs/a.md:1: the link to docs/b.md is broken: no such file"},
		{"links", "p/a/README.md", "![b](../../../b.png)\n", "p/a/README.md:1: the link to ../b.png"},
		{"links", "docs/a.md", "[b](../ARCHITECTURE.md#floor)\n", "docs/a.md:1: the link to ARCHITECTURE.md#floor is broken: no such heading"},
		{"links", "docs/a.md", "# It's `x`, **y**\n\n[b](#its-x-y), <img src=\"../low\">\n", ""},
		{"index", "docs/b.md", "# Not listed\n", "docs/b.md:1: docs/README.md does not link this page"},
		{"index", "docs/decisions/002-two.md", "# 2. Two\n", "docs/decisions/002-two.md:1: docs/README.md does not link this page"},
		{"decisions", "docs/decisions/two.md", "# 2. Two\n", "is called NNN-title.md"},
		{"decisions", "docs/decisions/001-two.md", "# 1. Two\n", "001-one.md has this number"},
		{"decisions", "docs/decisions/001-one.md", "# 1. Another\n", "lacks its line: | [001](001-one.md) | Another |"},
		{"decisions", "docs/decisions/001-one.md", "# One\n", "does not begin \"# 1. \""},
		{"long-page", "README.md", strings.Repeat("word ", 751), "README.md:1: 751 words, over 750"},
		{"long-page", "README.md", strings.Repeat("word ", 750), ""},
		{"long-page", housePage, drawing + strings.Repeat("word ", 1600), "words, over 1600"},
		{"modules", "low/x.go", "package low\n\nimport _ \"example.org/x\"\n", "keeps for high"},
		{"modules", "go.mod", "module m\n\nrequire (\n\texample.org/x v1.0.0\n\texample.org/z v1.0.0\n)\n", "example.org/z is required directly"},
		{"modules", "go.mod", "module m\n", "not required by go.mod"},
		{"modules", "high/high.go", "// Package high is high.\npackage high\n", "imported by nobody"},
		{"rnixctx", "high/c.go", "package high\n\nimport \"m/context\"\n\nvar _ = context.X\n", "high/c.go:3: import it as rnixctx"},
		{"package-name", "p/a/u.go", "// Package util is empty.\npackage util\n", "package util"},
		{"package-comment", "low/low.go", "// low is low.\npackage low\n", "no comment that begins \"Package low\""},
		{"package-comment", "tool/main.go", "// Tool.\npackage main\n", "begins \"Command\""},
		{"doc-comment", "low/d.go", "package low\n\nfunc Naked() {}\n", "low/d.go:3: the comment of Naked"},
		{"doc-comment", "low/d.go", "package low\n\n// It is a type.\ntype Naked int\n", "comment of Naked"},
		{"doc-comment", "low/d.go", "package low\n\n// T is a type.\ntype T int\n\nfunc (*T) Run() {}\n\nfunc (T) String() string { return \"\" }\n", "comment of Run"},
		{"doc-comment", "low/d.go", "package low\n\nconst Naked = 1\n", "comment of Naked"},
		{"long-file", "low/low.go", long, "over 400"},
		{"long-file", "low/low_test.go", "package low\n" + strings.Repeat("\n// x\n", 250), ""},
		{"long-file", "low/low_test.go", "package low\n" + strings.Repeat("\n// x\n", 450), "over 800"},
		{"many-methods", "low/low.go", many, "low/low.go:5: T has 21 methods"},
		{"many-methods", "low/low.go", wide + "}\n", "I has 21 methods"},
		{"faces", "low/low.go", face, "low/low.go:7: T.long has 16 lines, over 15"},
		{"faces", "low/low.go", strings.Replace(face, "\n\n\n", "\n\n", 1), ""},
		{"reach", "low/low.go", lent, "low/low.go:5: 84 methods stand over T"},
		{"small", "low2/more.go", "package low2\n" + strings.Repeat("\n", 9), "low2: 14 lines, over 9"},
		{"small", "low2/more.go", "package low2\n", ""},
		{"plain", "low/x.go", "package low\n\ntype t int\n\nfunc (t) do() {}\n\ntype u struct{ *t }\n", "low/x.go:7: u is nothing but another type"},
		{"plain", "low/x.go", "package low\n\nimport \"io\"\n\ntype u struct{ io.Reader }\n", "u is nothing but another type"},
		{"plain", "low/x.go", "package low\n\ntype deps struct{ x int }\n\ntype u struct{ deps }\n", ""},
		{"gofmt", "low/low.go", "// Package low is low.\npackage low\n\nvar  x int\n", "low/low.go:4: gofmt would change it"},
		{"unfinished", "low/x.go", "package low\n\n// TO" + "DO: later\n", "low/x.go:3: an unfinished mark"},
		{"unfinished", "low/x.go", "package low\n\n/*\n * FIX" + "ME\n */\n", "low/x.go:4: an unfinished mark"},
		{"machine-path", "low/x.go", "package low\n\nconst x = \"/ho" + "me/me/x\"\n", "low/x.go:3:"},
		{"machine-path", "README.md", "see /wo" + "rk/x\n", "README.md:1:"},
		{"words", "low/x.go", "package low\n\nconst x = `it\ngoes on by itself`\n", "low/x.go:4: \"goes on\""},
		{"words", "low/x.go", "package low\n\nconst x = \"a directory of its own\"\n", "\"of its own\""},
		{"words", "low/x.go", "package low\n\n// nobody\nconst x = \"a git work tree of its own\"\n", ""},
		{"words", "internal/web/app/src/x.js", "const a = 'nobody';\n", "internal/web/app/src/x.js:1:"},
		{"words", "internal/web/app/src/x.js", "const a = 1; // nobody\n", ""},
		{"print", "low/x.go", "package low\n\nimport \"fmt\"\n\nfunc f() { fmt.Println() }\n", "low/x.go:5: fmt.Println"},
		{"print", "low/x.go", "package low\n\nimport say \"fmt\"\n\nfunc f() { say.Printf(\"\") }\n", "fmt.Printf"},
		{"sleep", "low/x_test.go", "package low\n\nimport \"time\"\n\nfunc f() { time.Sleep(1) }\n", "low/x_test.go:5: time.Sleep"},
		{"skip", "low/x_test.go", "package low\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) { t.Skip(\"flaky\") }\n", "says what is missing"},
		{"skip", "low/x_test.go", "package low\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) { t.SkipNow() }\n", "says what is missing"},
		{"skip", "suite/s.go", "package suite\n\nimport \"testing\"\n\nfunc run(t *testing.T) { t.Skip(\"the device is read-only\") }\n", "says what is missing"},
		{"locks", "low/x.go", "package low\n\ntype t struct {\n\tmu int\n\tx  int // of all; +check" + "locks:mu\n}\n", "low/x.go:5: the analyzer does not read"},
		{"locks", "low/x.go", "package low\n\ntype t struct {\n\tmu int\n\tx  int // +check" + "locks:mu; of all\n}\n", "does not read"},
		{"locks", "low/x.go", "package low\n\n// +check" + "locksforce\nvar x int\n", "does not read"},
		{"locks", "low/x.go", "package low\n\n// +check" + "locksforce: it is made here\nvar x int\n", ""},
		{"locks", "low/x.go", "package low\n\ntype t struct {\n\ta, b int\n\tmu   int\n\tx    int // +check" + "locks:mu\n}\n", "low/x.go:4: the analyzer takes"},
		{"locks", "low/x.go", "package low\n\ntype t struct {\n\tmu int\n\t// +check" + "locks:mu\n\tx    int // of all\n\ta, b int\n}\n", ""},
		{"exceptions", exceptionsFile, "long-file low/low.go: it was long once\n", "exceptions.txt:1: nothing breaks the rule long-file"},
	}
	for _, c := range cases {
		found := check(t, c.file, c.text)[c.rule]
		if c.want == "" { // near the limit, and allowed
			if len(found) > 0 {
				t.Errorf("%s with %s: unexpected %v", c.rule, c.file, found)
			}
			continue
		}
		if !slices.ContainsFunc(found, func(f Finding) bool { return strings.Contains(f.String(), c.want) }) {
			t.Errorf("%s with %s:\n%s\nwant a finding with %q, got %v", c.rule, c.file, c.text, c.want, found)
		}
	}
	for _, r := range Rules() {
		if !slices.ContainsFunc(cases, func(c struct{ rule, file, text, want string }) bool { return c.rule == r.Name && c.want != "" }) {
			t.Errorf("no case breaks the rule %s", r.Name)
		}
	}
}

// TestAnExceptionCoversOneFinding says that a listed reason silences its finding and no other.
func TestAnExceptionCoversOneFinding(t *testing.T) {
	fsys := module("low/d.go", "package low\n\nfunc Naked() {}\n")
	fsys["low/e.go"] = &fstest.MapFile{Data: []byte("package low\n\nfunc Bare() {}\n")}
	fsys[exceptionsFile] = &fstest.MapFile{Data: []byte("doc-comment low/d.go: a reason\n")}
	found, err := Check(fsys)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 || len(found["doc-comment"]) != 1 || found["doc-comment"][0].Key != "low/e.go" {
		t.Errorf("got %v, want one finding, in low/e.go", found)
	}
}

// TestBadTextsAreNamed says that a line that cannot be read stops the check and is named.
func TestBadTextsAreNamed(t *testing.T) {
	for file, text := range map[string]string{
		floorsFile:     "floor 1 words low\n",
		modulesFile:    "example.org/x: no importers\n",
		exceptionsFile: "no-such-rule low: x\n",
		"go.mod":       "\n",
	} {
		if _, err := Check(module(file, text)); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: got %v, want an error that names it", file, err)
		}
	}
}

// module returns sound with one file changed; "" changes none.
func module(file, text string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for p, s := range sound {
		fsys[p] = &fstest.MapFile{Data: []byte(s)}
	}
	if file != "" {
		fsys[file] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

func check(t *testing.T, file, text string) map[string][]Finding {
	t.Helper()
	found, err := Check(module(file, text))
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return found
}
