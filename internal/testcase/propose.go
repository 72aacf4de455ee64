package testcase

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ExpectedDir is the directory of a case in which expected files lie.
const ExpectedDir = "expected"

// maxProposed is how many calls are proposed; of more, the first ones, among others.
const maxProposed = 300

// outputs are tools that bring the same thing of the same files.
var outputs = []string{"read_file", "grep", "glob", "list_dir"}

// Propose writes what came of a run as expectations, which a person has to confirm, and returns the files that they
// refer to, by their paths in the directory of the case.
func Propose(r *Run) (string, map[string][]byte) {
	var b strings.Builder
	b.WriteString("# What follows is a proposal: it says what came of the run that it was made of. Read each part, take out what does\n" +
		"# not matter, and write confirmed: true there. Until all of them are confirmed, the case fails.\nexpect:\n")
	fmt.Fprintf(&b, "  exit: %d\n", r.Exit)
	fmt.Fprintf(&b, "  result:\n    confirmed: false\n    equals: %s\n", text(r.Result, "      "))
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
		b.WriteString("      - " + proposed(&list[i]) + "\n")
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

// proposed is a call as an expectation in one line.
func proposed(c *Call) string {
	var b strings.Builder
	fmt.Fprintf(&b, "{tool: %s", inline(c.Tool))
	if c.Process > 0 {
		fmt.Fprintf(&b, ", process: %d", c.Process)
	}
	if isObject(argsOf(c.Input)) {
		fmt.Fprintf(&b, ", args: %s", flow(c.Input))
	}
	fmt.Fprintf(&b, ", error: %s", inline(c.Error))
	if line := firstLine(c.Output); c.Error == "" && slices.Contains(outputs, c.Tool) && line != "" {
		fmt.Fprintf(&b, ", output: {contains: [%s]}", inline(line))
	}
	b.WriteString("}")
	return b.String()
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
