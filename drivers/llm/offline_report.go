package llm

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
)

// The calls of a report, besides those that every look at a directory makes.
var (
	planWant = offlineWant{"plan", map[string]any{"steps": []string{
		"list the files", "read the README and what tells of the build", "look for TODO and FIXME", "ask git for the history", "write the report",
	}}}
	todoWant   = offlineWant{"grep", map[string]any{"pattern": `(//|#|--|;|%|\*|<!--|^\s*-)\s*(TODO|FIXME|XXX)\b`, "limit": 200}}
	logWant    = offlineWant{"shell", map[string]any{"command": logCommand, "timeout_ms": 20_000}}
	statusWant = offlineWant{"shell", map[string]any{"command": statusCommand, "timeout_ms": 20_000}}
)

// What is asked of git runs no program that the repository itself names: it may be a stranger's, and this is what Rnix does first. Those
// are the check of signatures, fsmonitor, the hooks of a written index, what git runs within submodules, what fetches missing objects, and filters: a
// repository that has filters of its own, or of which that is not known, is not asked how its files are.
const (
	noFetch       = "GIT_ALLOW_PROTOCOL=none GIT_NO_LAZY_FETCH=1 "
	logCommand    = noFetch + "git log --no-show-signature -n 10 --date=short --pretty='%h %ad %s'"
	statusCommand = "c=$(git config --show-scope --list) && ! printf '%s' \"$c\" | grep -q '^[lw][a-z]*.filter[.]' && " + noFetch + "git --no-optional-locks -c core.fsmonitor=false status --short --branch --ignore-submodules=dirty"
)

// reportJob describes the directory.
var reportJob = offlineJob{
	stages: func(t *offlineTurn) []offlineStage {
		stages := lookStages(t)
		stages[0].calls = append([]offlineWant{planWant}, stages[0].calls...)
		return append(stages,
			offlineStage{"I look for open ends.", []offlineWant{todoWant}},
			offlineStage{"I ask git for the history.", []offlineWant{logWant, statusWant}})
	},
	report: func(t *offlineTurn) (string, error) {
		var b strings.Builder
		writeReport(&b, t, findProject(t))
		return b.String(), nil
	},
}

func writeReport(b *strings.Builder, t *offlineTurn, p *project) {
	file, title, paragraph := p.readme()
	fmt.Fprintf(b, "# %s\n\n", cmp.Or(title, projectName(t), "This directory"))
	if paragraph != "" {
		fmt.Fprintf(b, "> %s\n>\n> (%s)\n\n", paragraph, file)
	} else if d := p.packageJSON().Description; d != "" {
		fmt.Fprintf(b, "> %s\n>\n> (package.json)\n\n", d)
	}
	for _, k := range p.kinds() {
		fmt.Fprintf(b, "- %s\n", k)
	}
	if t.req.WorkDir != "" {
		fmt.Fprintf(b, "- In %s\n", codeSpan(t.req.WorkDir))
	}
	if file == "" && len(p.top) > 0 {
		b.WriteString("- No README\n")
	}
	layoutSection(b, t, p)
	languageSection(b, t, p)
	testSection(b, p)
	historySection(b, t)
	todoSection(b, t)
}

func projectName(t *offlineTurn) string {
	if t.req.WorkDir == "" || t.req.WorkDir == "/" {
		return ""
	}
	return filepath.Base(t.req.WorkDir)
}

const layoutWidth = 76 // characters of a line of names

func layoutSection(b *strings.Builder, t *offlineTurn, p *project) {
	b.WriteString("\n## Files\n\n")
	if len(p.top) == 0 {
		if !t.offers("list_files") && !t.offers("glob") {
			b.WriteString(notAllowed("list_files") + "\n")
		} else if text, ok := t.result(listWant); !ok && text != "" {
			fmt.Fprintf(b, "They could not be listed: %s\n", shortened(oneLine(text), 300))
		} else {
			b.WriteString("There are none.\n")
		}
		return
	}
	var dirs, files []string
	for _, n := range p.top {
		if strings.HasSuffix(n, "/") {
			dirs = append(dirs, n)
		} else {
			files = append(files, n)
		}
	}
	writeNames(b, "Directories", dirs)
	writeNames(b, "Files", files)
	if len(p.notes) > 0 {
		b.WriteString(noteLine(p.notes))
	}
}

// writeNames writes names side by side, as many lines as it takes up to a limit.
func writeNames(b *strings.Builder, label string, names []string) {
	if len(names) == 0 {
		return
	}
	const limit = 40
	fmt.Fprintf(b, "    %-12s ", label)
	column := 0
	for i, n := range names {
		if i == limit {
			n = fmt.Sprintf("and %d more", len(names)-limit)
		}
		if column > 0 && column+len(n) > layoutWidth-17 {
			b.WriteString("\n" + strings.Repeat(" ", 17))
			column = 0
		}
		if column > 0 {
			b.WriteString("  ")
		}
		b.WriteString(n)
		if column += len(n) + 2; i == limit {
			break
		}
	}
	b.WriteString("\n")
}

func languageSection(b *strings.Builder, t *offlineTurn, p *project) {
	b.WriteString("\n## Languages\n\n")
	if !t.offers("glob") {
		b.WriteString(notAllowed("glob") + "\n")
		return
	}
	counts, other := p.counts()
	if len(counts) == 0 {
		b.WriteString("No file of a language that is known by its name.\n")
		return
	}
	const limit = 8
	for i := limit; i < len(counts); i++ {
		other += counts[i].files
	}
	counts = counts[:min(limit, len(counts))]
	if other > 0 {
		counts = append(counts, langCount{"other", other})
	}
	width := len("Language")
	for _, c := range counts {
		width = max(width, len(c.language))
	}
	fmt.Fprintf(b, "| %-*s | Files |      |                      |\n|%s|------:|-----:|----------------------|\n", width, "Language", strings.Repeat("-", width+2))
	for _, c := range counts {
		part := float64(c.files) / float64(len(p.files))
		bar := strings.Repeat("█", max(int(part*20+0.5), 1))
		fmt.Fprintf(b, "| %-*s | %5d | %3.0f%% | %s%s |\n", width, c.language, c.files, part*100, bar, strings.Repeat(" ", 20-len([]rune(bar))))
	}
	fmt.Fprintf(b, "\n%s in all.\n", plural(len(p.files), "file"))
}

func testSection(b *strings.Builder, p *project) {
	b.WriteString("\n## Tests\n\n")
	all := p.tests()
	if len(all) == 0 {
		b.WriteString("No test command found in the files at the top.\n")
	}
	for i, c := range all {
		if i == 0 {
			fmt.Fprintf(b, "Run them with %s (from %s).", codeSpan(c.command), c.why)
		} else {
			fmt.Fprintf(b, " Also %s (from %s).", codeSpan(c.command), c.why)
		}
	}
	if len(all) > 0 {
		b.WriteString(" They were not run now: say \"run the tests\".\n")
	}
	if n := p.testFiles(""); n > 0 {
		fmt.Fprintf(b, "Files with tests: %d.\n", n)
	}
}

func historySection(b *strings.Builder, t *offlineTurn) {
	b.WriteString("\n## History\n\n")
	if !t.offers("shell") {
		b.WriteString(notAllowed("shell") + "\n")
		return
	}
	commits, ok := output(t, logWant)
	if !ok {
		fmt.Fprintf(b, "No git history: %s\n", cmp.Or(shortened(oneLine(strings.Join(commits, " ")), 200), "git gave no answer"))
		return
	}
	if status, ok := output(t, statusWant); ok && len(status) > 0 {
		branch := strings.TrimPrefix(strings.TrimSpace(strings.TrimPrefix(status[0], "##")), "No commits yet on ")
		branch, tracking, _ := strings.Cut(branch, "...")
		fmt.Fprintf(b, "On branch %s", codeSpan(branch))
		if i := strings.IndexByte(tracking, '['); i >= 0 {
			fmt.Fprintf(b, " %s", tracking[i:])
		}
		b.WriteString(", " + changes(status[1:]) + ".\n\n")
	}
	if len(commits) == 0 {
		b.WriteString("No commits yet.\n")
		return
	}
	for _, c := range commits {
		fmt.Fprintf(b, "    %s\n", shortened(c, 100))
	}
}

// changes counts the lines of git status --short.
func changes(lines []string) string {
	fresh, changed := 0, 0
	for _, l := range lines {
		if strings.HasPrefix(l, "??") {
			fresh++
		} else {
			changed++
		}
	}
	var parts []string
	if changed > 0 {
		parts = append(parts, plural(changed, "file")+" changed")
	}
	if fresh > 0 {
		parts = append(parts, plural(fresh, "file")+" not tracked")
	}
	if len(parts) == 0 {
		return "nothing changed"
	}
	return strings.Join(parts, ", ")
}

// output returns the lines that a command wrote; ok says that it succeeded.
func output(t *offlineTurn, w offlineWant) (lines []string, ok bool) {
	text, ran := t.result(w)
	m := exitLine().FindStringSubmatch(strings.TrimSpace(text))
	lines, _ = resultLines(text)
	if len(lines) == 1 && strings.TrimSpace(lines[0]) == "(no output)" {
		lines = nil
	}
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " \r")
	}
	return lines, ran && (m == nil || m[2] == "0")
}

func todoSection(b *strings.Builder, t *offlineTurn) {
	b.WriteString("\n## Open ends\n\n")
	if !t.offers("grep") {
		b.WriteString(notAllowed("grep") + "\n")
		return
	}
	text, ok := t.result(todoWant)
	found, notes := matches(text)
	switch {
	case !ok:
		fmt.Fprintf(b, "The search for TODO and FIXME did not work: %s\n", shortened(oneLine(text), 300))
	case len(found) == 0:
		b.WriteString("No comment with TODO, FIXME or XXX.\n")
	default:
		b.WriteString("Comments with TODO, FIXME or XXX: " + matchList(found, notes, 15))
	}
}
