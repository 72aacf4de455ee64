package testcase

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// Run is what came of a case. The directory in which it ran stands as Workspace in all texts.
type Run struct {
	Exit   int
	Reason string
	Result string
	Calls  []Call // those of the case's process, then those of each process below it, in the order of their starts
	Before map[string][]byte
	After  map[string][]byte // the files of the workspace; nil = they were not looked at
	Part   bool              // Before is not all that was there: what looks at many files will find others
}

// Call is a call that was made.
type Call struct {
	Process int
	Step    int
	Tool    string
	Input   string // as the model wrote it
	Error   string // its code; empty = it succeeded
	Output  string

	args any // Input, read; nil = not yet
}

// Problem is one thing that is not as expected.
type Problem struct {
	At   string `json:"at"` // file:line
	What string `json:"what"`
	Diff string `json:"diff,omitempty"`
}

// Compare says what of a run is not as a case expects it, confirmed or not.
func (c *Case) Compare(r *Run) (out []Problem) {
	say := func(key, diff, format string, args ...any) {
		out = append(out, Problem{At: c.At(key), What: fmt.Sprintf(format, args...), Diff: diff})
	}
	e := &c.Expect
	if e.Exit != nil && *e.Exit != r.Exit {
		say("expect.exit", "", "the exit code is %d (%s), and should be %d", r.Exit, oneLine(r.Reason), *e.Exit)
	}
	if e.Result != nil {
		if why := matchText(e.Result.text(), r.Result); why != "" {
			diff := quoted(r.Result)
			if e.Result.Equals != nil {
				diff = lineDiff(*e.Result.Equals, r.Result)
			}
			say("expect.result", diff, "the result %s", why)
		}
	}
	if e.Calls != nil {
		if what, diff := compareCalls(e.Calls, r.Calls); what != "" {
			say("expect.calls", diff, "%s", what)
		}
	}
	if e.Files != nil && r.After != nil {
		c.compareFiles(r, say)
	}
	return out
}

func (c *Case) compareFiles(r *Run, say func(key, diff, format string, args ...any)) {
	status := Statuses(r.Before, r.After)
	named := map[string]bool{}
	for i := range c.Expect.Files.List {
		x, key := &c.Expect.Files.List[i], fmt.Sprintf("expect.files.list[%d]", i)
		path := filepath.ToSlash(filepath.Clean(x.Path))
		named[path] = true
		got, there := r.After[path]
		was := cmp.Or(status[path], StatusUnchanged)
		switch {
		case x.Status == StatusDeleted:
			if there {
				say(key, "", "%s is there, and should be deleted", path)
			} else if was != StatusDeleted {
				say(key, "", "%s was never there, and should be deleted", path)
			}
			continue
		case !there:
			say(key, "", "%s is not there", path)
			continue
		case x.Status != "" && x.Status != was:
			say(key, "", "%s is %s, and should be %s", path, was, x.Status)
		}
		if x.Same != "" {
			want, err := c.Content(x.Same)
			if err != nil {
				say(key+".same", "", "%v", err)
			} else if string(want) != string(got) {
				say(key+".same", lineDiff(string(want), string(got)), "%s is not the same as %s", path, x.Same)
			}
		}
		if why := matchParts(x.Contains, x.Lacks, x.Matches, string(got)); why != "" {
			say(key, quoted(string(got)), "%s %s", path, why)
		}
	}
	if c.Expect.Files.Others == "any" {
		return
	}
	for _, path := range slices.Sorted(maps.Keys(status)) {
		if !named[path] {
			say("expect.files", lineDiff(string(r.Before[path]), string(r.After[path])), "%s is %s, and nothing was said of it", path, status[path])
		}
	}
}

// Statuses says which files are not the same, and how.
func Statuses(before, after map[string][]byte) map[string]string {
	out := map[string]string{}
	for path, b := range after {
		if was, there := before[path]; !there {
			out[path] = StatusAdded
		} else if string(was) != string(b) {
			out[path] = StatusChanged
		}
	}
	for path := range before {
		if _, there := after[path]; !there {
			out[path] = StatusDeleted
		}
	}
	return out
}

// How much of texts is shown.
const (
	maxQuoted = 4 << 10 // bytes
	maxLines  = 2000    // of each side of a difference; more are not compared line by line
	around    = 3       // lines that are the same, around those that are not
)

// quoted is a text with a bar before each line.
func quoted(s string) string {
	if !utf8.ValidString(s) {
		return fmt.Sprintf("| %d bytes that are no text\n", len(s))
	}
	return "| " + strings.ReplaceAll(strings.TrimRight(brief(s, maxQuoted), "\n"), "\n", "\n| ") + "\n"
}

// lineDiff shows two texts, line by line: those of want alone with -, those of got alone with +.
func lineDiff(want, got string) string {
	if !utf8.ValidString(want) || !utf8.ValidString(got) {
		return fmt.Sprintf("- %d bytes\n+ %d bytes\n", len(want), len(got))
	}
	a, b := splitLines(want), splitLines(got)
	if len(a) > maxLines || len(b) > maxLines {
		i := 0
		for i < min(len(a), len(b)) && a[i] == b[i] {
			i++
		}
		a, b = a[i:min(len(a), i+20)], b[i:min(len(b), i+20)]
	}
	var lines []string
	j := 0
	for i, at := range align(len(a), len(b), func(i, j int) bool { return a[i] == b[j] }) {
		if at < 0 {
			lines = append(lines, "- "+a[i])
			continue
		}
		for ; j < at; j++ {
			lines = append(lines, "+ "+b[j])
		}
		j = at + 1
		lines = append(lines, "  "+a[i])
	}
	for ; j < len(b); j++ {
		lines = append(lines, "+ "+b[j])
	}
	return strings.Join(near(lines), "\n") + "\n"
}

// near leaves out lines that are the same and far from any that is not.
func near(lines []string) (out []string) {
	keep := make([]bool, len(lines))
	for i, l := range lines {
		if strings.HasPrefix(l, "  ") {
			continue
		}
		for k := max(i-around, 0); k <= min(i+around, len(lines)-1); k++ {
			keep[k] = true
		}
	}
	for i, l := range lines {
		switch {
		case keep[i]:
			out = append(out, brief(l, 400))
		case i == 0 || keep[i-1]:
			out = append(out, "  ...")
		}
	}
	return out
}

func splitLines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}
