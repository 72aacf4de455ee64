package testcase

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ExpectedDir is the directory of a case in which expected files lie.
const ExpectedDir = "expected"

// maxProposed is how many calls are proposed; of more, the first ones, among others.
const maxProposed = 300

// Texts that are longer than this, in bytes, are not proposed whole: nobody reads them, and a case has a largest size.
const (
	maxResult  = 64 << 10
	maxArgs    = 4 << 10 // of all arguments of a call together
	resultEnds = 500     // of a result that is longer, of its beginning and its end
)

// outputs are tools that bring the same thing of the same files; of those that look at many files, only if all are there.
var outputs = map[string]struct{ many bool }{"read_file": {}, "grep": {true}, "glob": {true}, "list_files": {true}}

// Propose writes what came of a run as expectations, which a person has to confirm, and returns the files that they
// refer to, by their paths in the directory of the case.
func Propose(r *Run) (string, map[string][]byte) {
	var b strings.Builder
	b.WriteString("# What follows is a proposal: it says what came of the run that it was made of. Read each part, take out what does\n" +
		"# not matter, and write confirmed: true there. Until all of them are confirmed, the case fails.\nexpect:\n")
	fmt.Fprintf(&b, "  exit: %d\n", r.Exit)
	b.WriteString("  result:\n    confirmed: false\n")
	if n := len(r.Result); n > maxResult {
		begin, end := strings.ToValidUTF8(r.Result[:resultEnds], ""), strings.ToValidUTF8(r.Result[n-resultEnds:], "")
		fmt.Fprintf(&b, "    # Of its %d bytes, the beginning and the end.\n    contains: [%s, %s]\n", n, inline(begin), inline(end))
	} else {
		fmt.Fprintf(&b, "    equals: %s\n", text(r.Result, "      "))
	}
	list, match := r.Calls, MatchExact
	if len(list) > maxProposed {
		list, match = list[:maxProposed], MatchOrdered
	}
	fmt.Fprintf(&b, "  calls:\n    confirmed: false\n    match: %s # or %s, %s, %s\n", match, MatchUnordered, MatchOrdered, MatchContains)
	if len(list) == 0 {
		b.WriteString("    list: []\n")
	} else {
		b.WriteString("    list:\n")
	}
	for i := range list {
		b.WriteString("      - " + proposed(&list[i], r.Part) + "\n")
	}
	files := map[string][]byte{}
	if r.After == nil {
		return b.String(), files
	}
	status := Statuses(r.Before, r.After)
	fmt.Fprintf(&b, "  files:\n    confirmed: false\n    others: %s # or any\n", StatusUnchanged)
	if len(status) == 0 {
		return b.String(), files
	}
	b.WriteString("    list:\n")
	for _, path := range slices.Sorted(maps.Keys(status)) {
		fmt.Fprintf(&b, "      - {path: %s, status: %s", inline(path), status[path])
		if content, there := r.After[path]; there {
			same := ExpectedDir + "/" + path
			files[same] = content
			fmt.Fprintf(&b, ", same: %s", inline(same))
		}
		b.WriteString("}\n")
	}
	return b.String(), files
}

// proposed is a call as an expectation in one line. part says that not all files are there.
func proposed(c *Call, part bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "{tool: %s", inline(c.Tool))
	if c.Process > 0 {
		fmt.Fprintf(&b, ", process: %d", c.Process)
	}
	if input := shortArgs(c.Input); input != "" {
		fmt.Fprintf(&b, ", args: %s", flow(input))
	}
	fmt.Fprintf(&b, ", error: %s", inline(c.Error))
	looks, same := outputs[c.Tool]
	if line := firstLine(c.Output); c.Error == "" && same && !(looks.many && part) && line != "" {
		fmt.Fprintf(&b, ", output: {contains: [%s]}", inline(line))
	}
	b.WriteString("}")
	return b.String()
}

// shortArgs is the input of a call without its longest arguments, where it is long: what is not named is not compared.
// It is empty if the input is no object.
func shortArgs(input string) string {
	args, ok := argsOf(input).(map[string]any)
	if !ok || len(input) <= maxArgs {
		if ok {
			return input
		}
		return ""
	}
	written := map[string]json.RawMessage{}
	if json.Unmarshal([]byte(input), &written) != nil {
		return ""
	}
	keys := slices.SortedFunc(maps.Keys(args), func(a, b string) int {
		return cmp.Or(len(written[b])-len(written[a]), strings.Compare(a, b))
	})
	for left := len(input); len(keys) > 0 && left > maxArgs; keys = keys[1:] {
		left -= len(written[keys[0]])
		delete(written, keys[0])
	}
	b, err := json.Marshal(written)
	if err != nil {
		return ""
	}
	return string(b)
}

// firstLine is the first line of an output that says something, cut where it is long.
func firstLine(s string) string {
	for line := range strings.Lines(s) {
		if line = strings.TrimRight(line, "\r\n"); strings.TrimSpace(line) != "" {
			if len(line) > 120 {
				line = strings.ToValidUTF8(line[:120], "")
			}
			return line
		}
	}
	return ""
}

// Updated returns the text of a case with its expectations written anew. What stands before them stays. Expectations
// that are not the last thing in the file cannot be replaced: then it returns false.
func Updated(src string, expect string) (string, bool) {
	lines := strings.SplitAfter(src, "\n")
	at := -1
	for i, l := range lines {
		if strings.HasPrefix(l, "expect:") {
			at = i
			continue
		}
		if at >= 0 && strings.TrimSpace(l) != "" && !strings.HasPrefix(l, " ") && !strings.HasPrefix(l, "#") {
			return "", false
		}
	}
	if at < 0 {
		return "", false
	}
	for at > 0 && strings.HasPrefix(lines[at-1], "#") {
		at--
	}
	return strings.Join(lines[:at], "") + expect, true
}
