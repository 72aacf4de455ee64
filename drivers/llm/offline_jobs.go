package llm

import (
	"errors"
	"fmt"
	"regexp"
	"sort"
	"strconv"
	"strings"

	rnixctx "rnix/context"

	"rnix/internal/pattern"
)

const (
	offlineShown   = 100       // lines of matches or file names in a report
	offlineOutput  = 12 << 10  // bytes of a command's output in a report
	offlineTimeout = 1_800_000 // ms that a command may take: a test suite may be slow
)

// runJob runs a command and reports.
func runJob(command string) offlineJob {
	want := shellWant(command)
	return offlineJob{
		stages: func(*offlineTurn) []offlineStage {
			return []offlineStage{{"I run the command.", []offlineWant{want}}}
		},
		report: func(t *offlineTurn) (string, error) {
			if !t.offers("shell") {
				return "", fmt.Errorf("cannot run %q: this process has no tool shell; allow /dev/shell to it", shortened(command, 80))
			}
			return "# The " + strings.TrimPrefix(outcome(t, want), "the ") + "\n\n" + commandSection(t, want, command), nil
		},
		failed: func(t *offlineTurn) bool { return commandFailed(t, want) },
	}
}

func shellWant(command string) offlineWant {
	return offlineWant{"shell", map[string]any{"command": command, "timeout_ms": offlineTimeout}}
}

// testJob works out how a project is tested, does it and reports.
var testJob = offlineJob{
	stages: func(t *offlineTurn) []offlineStage {
		stages := lookStages(t)
		if cmd := findProject(t).test(); cmd.command != "" {
			stages = append(stages, offlineStage{"I run the tests: " + cmd.command, []offlineWant{shellWant(cmd.command)}})
		}
		return stages
	},
	report: func(t *offlineTurn) (string, error) {
		if !t.offers("shell") {
			return "", errors.New("cannot run the tests: this process has no tool shell; allow /dev/shell to it")
		}
		cmd := findProject(t).test()
		if cmd.command == "" {
			return "", errors.New("cannot run the tests: found no go.mod, package.json with a test script, Cargo.toml, Python tests or Makefile with a test target here; say which command: run `...`")
		}
		want := shellWant(cmd.command)
		return "# Tests: " + outcome(t, want) + "\n\n" + commandSection(t, want, cmd.command) + "\nThe command follows from " + cmd.why + ".\n", nil
	},
	failed: func(t *offlineTurn) bool { return commandFailed(t, shellWant(findProject(t).test().command)) },
}

var exitLine = pattern.New(`\[(exit code (-?\d+)[^\]]*|timed out[^\]]*|killed[^\]]*|[^\]]*signal[^\]]*)\]\s*$`)

// cutOff is how the answer to a call begins that was ended from outside.
var cutOff = pattern.New(`^error \((in doubt|cancelled)\)`)

// commandFailed reports whether a command has failed, or has not come to its end.
func commandFailed(t *offlineTurn, w offlineWant) bool {
	text, ok := t.result(w)
	m := exitLine().FindStringSubmatch(strings.TrimSpace(text))
	return !ok || m != nil && m[2] != "0"
}

// callFailed reports whether a call has failed.
func callFailed(w offlineWant) func(*offlineTurn) bool {
	return func(t *offlineTurn) bool { _, ok := t.result(w); return !ok }
}

// outcome says in a few words how a command ended.
func outcome(t *offlineTurn, w offlineWant) string {
	text, ok := t.result(w)
	m := exitLine().FindStringSubmatch(strings.TrimSpace(text))
	switch {
	case !ok && cutOff().MatchString(text):
		return "the command was cut off, and how far it came is not known"
	case !ok:
		return "the command could not be run"
	case m == nil:
		return "the command ended"
	case m[2] == "0":
		return "the command succeeded"
	case m[2] != "":
		return "the command failed with exit code " + m[2]
	}
	return "the command did not end: " + m[1]
}

// commandSection is a command with its output. A long output keeps its head and its tail.
func commandSection(t *offlineTurn, w offlineWant, command string) string {
	text, ok := t.result(w)
	if text = strings.TrimSpace(text); text == "" {
		text = "(no answer)"
	}
	text = rnixctx.Elide(text, offlineOutput)
	if !ok {
		return "Command: " + codeSpan(command) + "\n\n" + indentBlock(text)
	}
	return indentBlock("$ "+command+"\n"+text) + "\n"
}

// findJob searches the files for a text.
func findJob(what string, ignoreCase bool) offlineJob {
	in := map[string]any{"pattern": regexp.QuoteMeta(what), "limit": 1000}
	if ignoreCase {
		in["ignore_case"] = true
	}
	want := offlineWant{"grep", in}
	return offlineJob{
		stages: func(*offlineTurn) []offlineStage {
			return []offlineStage{{"I search the files.", []offlineWant{want}}}
		},
		report: func(t *offlineTurn) (string, error) {
			if !t.offers("grep") {
				return "", fmt.Errorf("cannot search for %q: this process has no tool grep; allow /dev/fs to it", what)
			}
			text, ok := t.result(want)
			title := "# Where " + codeSpan(what) + " occurs\n\n"
			if !ok {
				return title + "The search did not work:\n\n" + indentBlock(text), nil
			}
			found, notes := matches(text)
			if len(found) == 0 {
				return title + "Nowhere." + noteLine(notes), nil
			}
			return title + matchList(found, notes, offlineShown), nil
		},
		failed: callFailed(want),
	}
}

// filesJob lists files by name.
func filesJob(pattern string) offlineJob {
	want := offlineWant{"glob", map[string]any{"pattern": pattern, "limit": 1000}}
	return offlineJob{
		stages: func(*offlineTurn) []offlineStage {
			return []offlineStage{{"I look for the files.", []offlineWant{want}}}
		},
		report: func(t *offlineTurn) (string, error) {
			if !t.offers("glob") {
				return "", fmt.Errorf("cannot look for %q: this process has no tool glob; allow /dev/fs to it", pattern)
			}
			text, ok := t.result(want)
			title := "# Files named " + codeSpan(pattern) + "\n\n"
			if !ok {
				return title + "The search did not work:\n\n" + indentBlock(text), nil
			}
			lines, notes := resultLines(text)
			names := nonEmpty(lines)
			if len(names) == 0 {
				return title + "There are none." + noteLine(notes), nil
			}
			sort.Strings(names)
			var b strings.Builder
			b.WriteString(title + plural(len(names), "file") + ".\n\n")
			for i, n := range names {
				if i == offlineShown {
					fmt.Fprintf(&b, "- and %d more\n", len(names)-i)
					break
				}
				b.WriteString("- " + codeSpan(n) + "\n")
			}
			return b.String() + noteLine(notes), nil
		},
		failed: callFailed(want),
	}
}

// grepMatch is a line that grep has found.
type grepMatch struct {
	file string
	line int
	text string
}

var grepLine = pattern.New(`^(.+?):(\d+):\s*(.*)$`)

// matches reads the answer of grep.
func matches(text string) (found []grepMatch, notes []string) {
	lines, notes := resultLines(text)
	for _, l := range lines {
		if m := grepLine().FindStringSubmatch(l); m != nil {
			n, _ := strconv.Atoi(m[2])
			found = append(found, grepMatch{m[1], n, strings.TrimSpace(m[3])})
		}
	}
	return found, notes
}

// matchList writes matches, file by file in the order of their names.
func matchList(found []grepMatch, notes []string, limit int) string {
	sort.SliceStable(found, func(i, j int) bool { return found[i].file < found[j].file })
	files := 0
	for i := range found {
		if i == 0 || found[i].file != found[i-1].file {
			files++
		}
	}
	var b strings.Builder
	b.WriteString(plural(len(found), "line") + " in " + plural(files, "file") + ".\n")
	for i, m := range found {
		if i == limit {
			fmt.Fprintf(&b, "\n... and %d more.\n", len(found)-i)
			break
		}
		if i == 0 || m.file != found[i-1].file {
			b.WriteString("\n" + codeSpan(m.file) + "\n\n")
		}
		fmt.Fprintf(&b, "    %5d  %s\n", m.line, shortened(m.text, 160))
	}
	return b.String() + noteLine(notes)
}

// noteLine passes on what a tool noted, such as that it stopped early.
func noteLine(notes []string) string {
	if len(notes) == 0 {
		return ""
	}
	return "\n(" + strings.Join(notes, "; ") + ")\n"
}

func nonEmpty(lines []string) (out []string) {
	for _, l := range lines {
		if l = strings.TrimSpace(l); l != "" {
			out = append(out, l)
		}
	}
	return out
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "y") {
		noun = noun[:len(noun)-1] + "ie"
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// codeSpan writes s as code in Markdown, whatever backticks it has.
func codeSpan(s string) string {
	s = strings.ReplaceAll(s, "\n", " ")
	if !strings.Contains(s, "`") {
		return "`" + s + "`"
	}
	return "`` " + s + " ``"
}

// indentBlock writes text as a block of code in Markdown.
func indentBlock(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ") + "\n"
}
