package testcase

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"rnix/internal/soak"
	"rnix/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func parse(t testing.TB, src string) *Case {
	t.Helper()
	c, err := Parse(t.TempDir(), "case.yaml", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const least = "version: \"1\"\nintent: do\nexpect:\n"

func TestEachMistakeHasItsPlace(t *testing.T) {
	for src, want := range map[string]string{
		"": "case.yaml:1:1: the file is empty",
		"version: \"1\"\nintent: x\nfrob: 1\nexpect: {exit: 0}":                               "case.yaml:3:1: frob: unknown key",
		"version: \"2\"\nintent: x\nexpect: {exit: 0}":                                        "case.yaml:1:10: version: \"2\" is not known",
		"version: \"1\"\nintent: x\n":                                                         "expect: missing",
		"version: \"1\"\nexpect: {exit: 0}":                                                   "intent: missing",
		least + "  exit: zero":                                                                "case.yaml:4:9:",
		least + "  calls: {match: some}":                                                      `case.yaml:4:18: expect.calls.match: invalid value "some": want one of`,
		least + "  calls: {list: [{args: {a: 1}}]}":                                           "tool: missing",
		least + "  calls: {list: [{tool: x, match: regexp, args: {a: \"(\"}}]}":               "missing closing )",
		least + "  result: {matches: \"[\"}":                                                  "missing closing ]",
		least + "  result: {equals: a, contains: [b]}":                                        "says everything",
		least + "  files: {list: [{path: ../x}]}":                                             "is not a path in the workspace",
		least + "  files: {list: [{path: /etc/passwd}]}":                                      "is not a path in the workspace",
		least + "  files: {list: [{path: a}, {path: a}]}":                                     "stands here twice",
		least + "  files: {list: [{path: a, status: deleted, same: x}]}":                      "has no content",
		"version: \"1\"\nintent: x\ntimeout: 2h\nexpect: {exit: 0}":                           "is not between 1s and 1h",
		"version: \"1\"\nintent: x\nscript: /etc/passwd\nexpect: {exit: 0}":                   "begins at the case's directory",
		"version: \"1\"\nintent: x\noverlay: {../x: y}\nexpect: {exit: 0}":                    "write a path in the workspace",
		"version: \"1\"\nintent: [\n":                                                         "case.yaml:",
		"version: \"1\"\nintent: &a x\nname: *a\nexpect: {exit: 0}":                           "aliases",
		"version: \"1\"\nintent: x\nexpect: {exit: 0}\nname: " + strings.Repeat("n", maxFile): "larger than",
		"version: \"1\"\nintent: \xff\nexpect: {exit: 0}":                                     "is not text",
	} {
		_, err := Parse("/c", "case.yaml", []byte(src))
		if types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %s", src, err, want)
		}
	}
	if _, err := Read(t.TempDir()); types.CodeOf(err) != types.ErrNotFound {
		t.Errorf("an empty directory: %v", err)
	}
}

func TestWhatNobodyHasConfirmedIsNamed(t *testing.T) {
	c := parse(t, least+"  result: {confirmed: false, equals: a}\n  calls:\n    confirmed: false\n  files: {others: any}\n")
	if got := fmt.Sprint(c.Unconfirmed(), c.At(c.Unconfirmed()[1])); got != "[expect.result.confirmed expect.calls.confirmed]case.yaml:6" {
		t.Error(got)
	}
	if c := parse(t, least+"  result: {confirmed: true, equals: a}\n"); len(c.Unconfirmed()) != 0 {
		t.Error(c.Unconfirmed())
	}
}

func TestArgumentsAreMatchedAsTheCaseSays(t *testing.T) {
	for _, c := range []struct {
		mode, want, got, why string
	}{
		{ArgsSubset, `{"a":1}`, `{"a":1.0,"b":2}`, ""},
		{ArgsExact, `{"a":1}`, `{"a":1,"b":2}`, "b is 2, and should not be there"},
		{ArgsExact, `{"a":{"b":[1,"x",null,true]}}`, `{"a":{"b":[1,"x",null,true]}}`, ""},
		{ArgsSubset, `{"a":{"b":[1,2]}}`, `{"a":{"b":[1]}}`, "a.b is [1], and should have 2 values"},
		{ArgsSubset, `{"a":{"b":1}}`, `{"a":{"b":"1"}}`, `a.b is "1", and should be 1`},
		{ArgsSubset, `{"a":null}`, `{}`, "a is missing, and should be null"},
		{ArgsRegexp, `{"a":"^go (test|vet)"}`, `{"a":"go vet ./...","b":1}`, ""},
		{ArgsRegexp, `{"a":"^go$"}`, `{"a":"go vet"}`, `a is "go vet", and does not match ^go$`},
		{ArgsRegexp, `{"a":"^[0-9]+$","b":3}`, `{"a":42,"b":3}`, ""},
		{ArgsSubset, `{"a":1}`, `not json`, ` is "not json", and should be an object`},
		{ArgsSubset, `{"a":1e300}`, `{"a":10e299}`, ""},
		{ArgsSubset, `{"a":1}`, `{"a":1e999999}`, `a is "1e999999", and should be 1`},
		{ArgsSubset, `{"a":12345678901234567890}`, `{"a":12345678901234567891}`, "a is 12345678901234567891, and should be 12345678901234567890"},
	} {
		if why := matchArgs(c.mode, "", argsOf(c.want), argsOf(c.got)); why != c.why {
			t.Errorf("%s %s %s: %q", c.mode, c.want, c.got, why)
		}
	}
}

// anyValue is some JSON value.
func anyValue(depth int) *rapid.Generator[any] {
	scalars := []*rapid.Generator[any]{rapid.Just[any](nil), rapid.Map(rapid.Bool(), toAny), rapid.Map(rapid.StringMatching(`[a-z$(.]{0,4}`), toAny), rapid.Map(rapid.Float64Range(-1e9, 1e9), toAny), rapid.Map(rapid.Int64(), toAny)}
	if depth == 0 {
		return rapid.OneOf(scalars...)
	}
	return rapid.OneOf(append(scalars, rapid.Map(rapid.SliceOfN(anyValue(depth-1), 0, 3), toAny), rapid.Map(rapid.MapOfN(rapid.StringMatching(`[a-c]`), anyValue(depth-1), 0, 3), toAny))...)
}

func toAny[T any](v T) any { return any(v) }

func TestEveryValueMatchesItself(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := rapid.MapOfN(rapid.StringMatching(`[a-d]`), anyValue(2), 0, 4).Draw(rt, "args")
		b, err := json.Marshal(m)
		if err != nil {
			rt.Fatal(err)
		}
		for _, mode := range []string{ArgsExact, ArgsSubset} {
			if why := matchArgs(mode, "", value(m), argsOf(string(b))); why != "" {
				rt.Fatalf("%s: %s: %s", mode, b, why)
			}
		}
		more := maps.Clone(m)
		more["zz"] = 1
		b, _ = json.Marshal(more)
		if why := matchArgs(ArgsSubset, "", value(m), argsOf(string(b))); why != "" {
			rt.Fatalf("one key more: %s", why)
		}
		if why := matchArgs(ArgsExact, "", value(m), argsOf(string(b))); why == "" {
			rt.Fatal("one key more is exact")
		}
	})
}

// listOf is expected calls of tools named by letters.
func listOf(tools string) (out []CallExpect) {
	for _, r := range tools {
		out = append(out, CallExpect{Tool: string(r)})
	}
	return out
}

func madeOf(tools string) (out []Call) {
	for _, r := range tools {
		out = append(out, Call{Tool: string(r), Input: "{}"})
	}
	return out
}

func TestOrderAndNumberOfCalls(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		want := rapid.StringMatching(`[ab]{0,6}`).Draw(rt, "want")
		got := rapid.StringMatching(`[abc]{0,8}`).Draw(rt, "got")
		for mode, fits := range map[string]bool{MatchExact: want == got, MatchUnordered: letters(want) == letters(got), MatchOrdered: subsequence(want, got), MatchContains: contained(want, got)} {
			what, diff := compareCalls(&CallsExpect{Match: mode, List: listOf(want)}, madeOf(got))
			if (what == "") != fits {
				rt.Fatalf("%s: %q in %q: %q", mode, want, got, what)
			}
			if what != "" && diff == "" {
				rt.Fatalf("%s: no difference is shown", mode)
			}
		}
	})
}

func letters(s string) string {
	b := []byte(s)
	slices.Sort(b)
	return string(b)
}

func subsequence(s, in string) bool {
	for _, r := range s {
		i := strings.IndexRune(in, r)
		if i < 0 {
			return false
		}
		in = in[i+1:]
	}
	return true
}

func contained(s, in string) bool {
	for _, r := range s {
		if !strings.ContainsRune(in, r) {
			return false
		}
		in = strings.Replace(in, string(r), "", 1)
	}
	return true
}

func TestAssignmentFindsAPairForEachWhereThereIsOne(t *testing.T) {
	// The first would take the only call that the second fits.
	list := []CallExpect{{Tool: "x"}, {Tool: "x", Args: map[string]any{"a": int64(1)}}}
	made := []Call{{Tool: "x", Input: `{"a":1}`}, {Tool: "x", Input: `{"a":2}`}}
	if what, diff := compareCalls(&CallsExpect{Match: MatchUnordered, List: list}, made); what != "" {
		t.Error(what, diff)
	}
}

func TestDifferencesSayWhatIsDifferent(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "expected"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "expected", "a"), []byte("one\ntwo\nthree\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := parse(t, least+`  exit: 0
  result: {equals: "all\nwell"}
  calls:
    list:
      - {tool: read_file, args: {path: a}}
      - {tool: write_file, args: {path: b}, error: ""}
  files:
    list:
      - {path: a, status: changed, same: expected/a}
      - {path: gone, status: deleted}
`)
	c.Dir = dir
	r := &Run{Exit: 1, Reason: "failed", Result: "all\nbad", Calls: []Call{{Tool: "read_file", Input: `{"path":"a"}`}, {Tool: "write_file", Input: `{"path":"c"}`}},
		Before: map[string][]byte{"a": []byte("one\n"), "gone": nil, "same": []byte("x")}, After: map[string][]byte{"a": []byte("one\nzwei\nthree\n"), "gone": nil, "same": []byte("y")}}
	var got []string
	for _, p := range c.Compare(r) {
		got = append(got, p.At+" "+p.What+"\n"+p.Diff)
	}
	want := []string{
		"case.yaml:4 the exit code is 1 (failed), and should be 0\n",
		"case.yaml:5 the result is not as expected\n  all\n- well\n+ bad\n",
		"case.yaml:7 1 expected call was not made, 1 call was not expected\n  read_file {\"path\":\"a\"}\n- write_file {\"path\":\"b\"}\n" +
			"    the call write_file {\"path\":\"c\"}: path is \"c\", and should be \"b\"\n+ write_file {\"path\":\"c\"}\n",
		"case.yaml:12 a is not the same as expected/a\n  one\n- two\n+ zwei\n  three\n",
		"case.yaml:13 gone is there, and should be deleted\n",
		"case.yaml:11 same is changed, and nothing was said of it\n- x\n+ y\n",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestProposalsFitTheRunThatTheyWereMadeOf(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		texts := rapid.OneOf(rapid.String(), rapid.StringMatching(`( ?[a-z:#\-"'\\{}@]{0,9}\n?){0,5}`))
		r := &Run{Exit: rapid.IntRange(0, 6).Draw(rt, "exit"), Result: strings.ToValidUTF8(texts.Draw(rt, "result"), "?"), Before: map[string][]byte{"a": []byte("1")}, After: map[string][]byte{}}
		for range rapid.IntRange(0, 4).Draw(rt, "calls") {
			in, _ := json.Marshal(map[string]any{"path": texts.Draw(rt, "arg"), "n": rapid.Int64().Draw(rt, "n")})
			r.Calls = append(r.Calls, Call{Tool: rapid.SampledFrom([]string{"read_file", "shell"}).Draw(rt, "tool"), Input: string(in), Output: texts.Draw(rt, "output"),
				Error: rapid.SampledFrom([]string{"", "NOT_FOUND"}).Draw(rt, "error"), Process: rapid.IntRange(0, 2).Draw(rt, "process")})
		}
		if rapid.Bool().Draw(rt, "changed") {
			r.After["b"] = []byte(texts.Draw(rt, "b"))
		}
		expect, files := Propose(r)
		head := Head{Name: "n", Intent: strings.ToValidUTF8("do "+texts.Draw(rt, "intent"), "?")}
		dir, err := os.MkdirTemp("", "rnixcase")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		for name, b := range files {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
				rt.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
				rt.Fatal(err)
			}
		}
		c, err := Parse(dir, "case.yaml", []byte(head.Text()+expect))
		if err != nil {
			rt.Fatalf("%v\n%s", err, head.Text()+expect)
		}
		if c.Intent != head.Intent {
			rt.Fatalf("intent %q was read as %q", head.Intent, c.Intent)
		}
		if p := c.Compare(r); len(p) > 0 {
			rt.Fatalf("%+v\n%s", p, expect)
		}
		if n := len(c.Unconfirmed()); n != 3 {
			rt.Fatalf("%d parts to confirm", n)
		}
		again, ok := Updated(head.Text()+expect, expect)
		if !ok || again != head.Text()+expect {
			rt.Fatalf("updating what is the same gives\n%s", again)
		}
	})
}

func TestLongTextsAreProposedInPart(t *testing.T) {
	long := "begins <script>\x1b[31m " + strings.Repeat("a", 5<<20) + " ends"
	input, _ := json.Marshal(map[string]any{"path": "out.html", "content": long, "n": json.Number("12345678901234567890")})
	r := &Run{Result: long, Calls: []Call{{Tool: "write_file", Input: string(input)}, {Tool: "read_file", Input: `{"path":"out.html"}`, Output: long}}}
	expect, _ := Propose(r)
	if len(expect) > 16<<10 {
		t.Fatalf("%d bytes are proposed", len(expect))
	}
	c, err := Parse(t.TempDir(), "case.yaml", []byte((&Head{Name: "n", Intent: "i"}).Text()+expect))
	if err != nil {
		t.Fatal(err)
	}
	if p := c.Compare(r); len(p) > 0 {
		t.Errorf("it does not fit the run that it was made of: %+v", p)
	}
	for what, spoil := range map[string]func(r *Run){
		"the end of the result":       func(r *Run) { r.Result = strings.TrimSuffix(long, "ends") },
		"the beginning of the result": func(r *Run) { r.Result = long[1:] },
		"an argument": func(r *Run) {
			r.Calls = []Call{{Tool: "write_file", Input: `{"path":"b","n":12345678901234567890}`}, r.Calls[1]}
		},
		"a number": func(r *Run) {
			r.Calls = []Call{{Tool: "write_file", Input: `{"path":"out.html","n":12345678901234567891}`}, r.Calls[1]}
		},
	} {
		other := *r
		spoil(&other)
		if len(c.Compare(&other)) == 0 {
			t.Errorf("%s may be another", what)
		}
	}
}

func TestWhatLooksAtManyFilesIsExpectedToFindThemOnlyIfAllAreThere(t *testing.T) {
	r := &Run{Calls: []Call{{Tool: "glob", Input: "{}", Output: "left-out.go"}, {Tool: "list_files", Input: "{}", Output: "left-out.go"}, {Tool: "read_file", Input: "{}", Output: "1\tkept"}}}
	for part, want := range map[bool]int{false: 2, true: 0} {
		r.Part = part
		expect, _ := Propose(r)
		if n := strings.Count(expect, "left-out.go"); n != want || !strings.Contains(expect, "kept") {
			t.Errorf("part=%v: %s", part, expect)
		}
	}
}

func TestReportsAreReadByTheirReaders(t *testing.T) {
	r := NewReport([]Outcome{
		{Name: "good", Dir: "/c/good", Status: Passed, Took: time.Second},
		{Name: "bad <\x1b[1m>", Dir: "/c/bad", Status: Failed, Problems: []Problem{{At: "case.yaml:3", What: "the result is not as expected", Diff: "- a\n+ \x00]]>b\xff\n"}}},
		{Name: "slow", Dir: "/c/slow", Status: TimedOut, Problems: []Problem{{What: "not ended"}}},
		{Name: "todo", Dir: "/c/todo", Status: Unconfirmed},
		{Name: "cut", Dir: "/c/cut", Status: Interrupted, Problems: []Problem{{What: "it had not begun"}}},
	}, 3*time.Second)
	r.Online = "operation not permitted"
	if r.Total != 5 || r.Failed != 3 || r.Interrupted != 1 {
		t.Errorf("%+v", r)
	}
	b, err := r.JUnit()
	if err != nil {
		t.Fatal(err)
	}
	var got junitSuites
	if err := xml.Unmarshal(b, &got); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	if got.Tests != 5 || got.Failures != 2 || got.Errors != 2 || got.Suite.Cases[4].Error.Type != Interrupted || len(got.Suite.Facts) != 1 || !strings.Contains(got.Suite.Facts[0].Value, "operation not permitted") || got.Suite.Cases[1].Failure == nil || got.Suite.Cases[2].Error.Message != "not ended" || got.Suite.Cases[0].Failure != nil {
		t.Errorf("%s", b)
	}
	if b, err = r.JSON(); err != nil || !json.Valid(b) || !strings.Contains(string(b), `"status":"timeout"`) {
		t.Errorf("%s, %v", b, err)
	}
	text := r.Text()
	for _, want := range []string{"ok    good", "FAIL  bad", "case.yaml:3: the result is not as expected", "        - a\n", "STOP  cut", "note: the cases had the network of this machine, since it cannot be cut off here (operation not permitted); --offline require refuses that\n", "1 of 5 cases passed, 1 interrupted in 3s"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

func TestLongListsOfCallsAreCompared(t *testing.T) {
	var want, got strings.Builder
	random := rand.New(rand.NewPCG(1, 2))
	for range soak.Pick(t, "calls that are expected", 700, 2000) {
		r := rune('a' + random.IntN(3))
		want.WriteRune(r)
		if random.IntN(20) > 0 {
			got.WriteRune(r)
		}
	}
	if what, _ := compareCalls(&CallsExpect{List: listOf(want.String())}, madeOf(got.String())); what == "" {
		t.Error("calls are missing, and nothing is said")
	}
	for _, c := range []struct{ want, got, match, says string }{
		{"", strings.Repeat("a", maxCalls+1), MatchExact, "no more than"},
		{strings.Repeat("a", maxCalls+1), "", MatchExact, "no more than"},
		{strings.Repeat("a", 3000), strings.Repeat("a", 3000), MatchUnordered, "too many to compare in any order"},
		{strings.Repeat("a", 500), strings.Repeat("a", 500), MatchUnordered, ""},
		{strings.Repeat("a", 500), strings.Repeat("a", 499) + "b", MatchUnordered, "1 expected call was not made, 1 call was not expected"},
		{"x" + strings.Repeat("ab", 2000) + "x", "y" + strings.Repeat("acb", 3000) + "x", MatchExact, "not made"},
		{strings.Repeat("ab", 2000) + "x", "y" + strings.Repeat("acb", 3000) + "xy", MatchOrdered, ""},
		{strings.Repeat("ab", 2000) + "zx", "y" + strings.Repeat("acb", 3000) + "xy", MatchOrdered, "expected calls are not among"},
	} {
		if what, _ := compareCalls(&CallsExpect{Match: c.match, List: listOf(c.want)}, madeOf(c.got)); !strings.Contains(what, c.says) || what == "" != (c.says == "") {
			t.Errorf("%d and %d calls, %s: %q, want %q", len(c.want), len(c.got), c.match, what, c.says)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(least + "  exit: 0\n"))
	f.Add([]byte(least + "  calls: {match: exact, list: [{tool: a, args: {b: [1, {c: d}]}, match: regexp}]}\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		if c, err := Parse("/c", "case.yaml", src); err == nil {
			c.Compare(&Run{After: map[string][]byte{}})
			c.Unconfirmed()
		}
	})
}

// What a link leads to elsewhere is no part of a case, and stands in no report.
func TestACaseHasNothingThatLiesElsewhere(t *testing.T) {
	out, dir := t.TempDir(), t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(out, "key"), []byte("sk-private\n"), 0o600), os.WriteFile(filepath.Join(dir, "own"), []byte("own\n"), 0o600),
		os.Symlink(filepath.Join(out, "key"), filepath.Join(dir, "theirs")), os.Symlink(out, filepath.Join(dir, "there")), os.Symlink("own", filepath.Join(dir, "also"))); err != nil {
		t.Fatal(err)
	}
	c := parse(t, least+"  files: {list: [{path: a, same: theirs}]}\n")
	c.Dir = dir
	for _, p := range c.Compare(&Run{After: map[string][]byte{"a": []byte("x\n")}}) {
		if strings.Contains(p.What+p.Diff, "private") {
			t.Errorf("%+v", p)
		}
	}
	for name, code := range map[string]types.ErrCode{"theirs": types.ErrInvalid, "there/key": types.ErrInvalid, "there": types.ErrInvalid, "own": "", "also": ""} {
		if b, err := c.Content(name); types.CodeOf(err) != code || code == "" && string(b) != "own\n" {
			t.Errorf("%s: %q %v", name, b, err)
		}
	}
}
