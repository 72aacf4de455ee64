package llm

import (
	"cmp"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"rnix/internal/pattern"
)

// The calls with which every look at a directory begins.
var (
	listWant = offlineWant{"list_files", map[string]any{"path": "."}}
	globWant = offlineWant{"glob", map[string]any{"pattern": "**/*", "limit": 20_000}}
)

// told are the files at the top of a directory that say what it is. The first of each name that is
// there is read.
var told = [][]string{
	{"README.md", "README", "README.txt", "README.rst", "README.adoc", "Readme.md", "readme.md"},
	{"go.mod"}, {"package.json"}, {"Cargo.toml"}, {"pyproject.toml"}, {"setup.py"}, {"pytest.ini"},
	{"Makefile", "makefile", "GNUmakefile"},
}

func readWant(name string) offlineWant {
	return offlineWant{"read_file", map[string]any{"path": name, "limit": 400}}
}

// lookStages lists a directory and reads the files that say what it is.
func lookStages(t *offlineTurn) []offlineStage {
	look := offlineStage{"I look at the files.", []offlineWant{listWant, globWant}}
	read := offlineStage{say: "I read the files that say what this is."}
	for _, n := range findProject(t).telling() {
		read.calls = append(read.calls, readWant(n))
	}
	return []offlineStage{look, read}
}

// project is what the tools have told about a directory so far.
type project struct {
	top   []string          // entries of the directory; those of directories end with a slash
	files []string          // all files
	notes []string          // what was too much for the tools
	text  map[string]string // content of the files that were read, by name
}

func findProject(t *offlineTurn) *project {
	p := &project{text: map[string]string{}}
	if text, ok := t.result(globWant); ok {
		lines, notes := resultLines(text)
		p.files, p.notes = nonEmpty(lines), notes
		for i, f := range p.files {
			p.files[i] = strings.TrimPrefix(f, "./")
		}
	}
	if text, ok := t.result(listWant); ok {
		lines, notes := resultLines(text)
		for _, l := range nonEmpty(lines) {
			p.top = append(p.top, entryName(l))
		}
		p.notes = append(p.notes, notes...)
	} else {
		for _, f := range p.files {
			dir, _, below := strings.Cut(f, "/")
			if below {
				dir += "/"
			}
			p.top = append(p.top, dir)
		}
	}
	slices.Sort(p.top)
	p.top, p.notes = slices.Compact(p.top), slices.Compact(p.notes)
	p.notes = slices.DeleteFunc(p.notes, func(n string) bool { return strings.HasPrefix(n, "left out: ") }) // .git and the like
	for _, n := range p.telling() {
		if text, ok := t.result(readWant(n)); ok {
			p.text[n] = unnumbered(text)
		}
	}
	return p
}

var (
	sizeTail   = pattern.New(`(\t|\s{2,}| )\(?\d+( bytes| B)?\)?$`)
	lineNumber = pattern.New(`(?m)^ *\d+\t`)
)

// entryName returns the name in a line of a listing.
func entryName(line string) string {
	name, _, _ := strings.Cut(line, " -> ")
	return strings.TrimPrefix(sizeTail().ReplaceAllString(name, ""), "./")
}

// unnumbered returns the text of a file from the answer of read_file.
func unnumbered(text string) string {
	lines, _ := resultLines(text)
	return lineNumber().ReplaceAllString(strings.Join(lines, "\n"), "")
}

func (p *project) has(name string) bool { return slices.Contains(p.top, name) }

// telling returns the names of the files that are worth reading.
func (p *project) telling() (names []string) {
	for _, group := range told {
		for _, n := range group {
			if p.has(n) {
				names = append(names, n)
				break
			}
		}
	}
	return names
}

// testCommand is how a project is tested, and how that is known.
type testCommand struct{ command, why string }

var makeTest = pattern.New(`(?m)^(test|check)\s*:[^=]?`)

// tests returns all the ways that the files tell of, the most likely first.
func (p *project) tests() (all []testCommand) {
	add := func(command, why string) { all = append(all, testCommand{command, why}) }
	if p.has("go.mod") {
		add("go test ./...", "go.mod")
	}
	if s := p.packageJSON().Scripts["test"]; s != "" && !strings.Contains(s, "no test specified") {
		add("npm test", "scripts.test of package.json ("+codeSpan(s)+")")
	}
	if p.has("Cargo.toml") {
		add("cargo test", "Cargo.toml")
	}
	python := p.has("pyproject.toml") || p.has("setup.py") || p.has("pytest.ini")
	if p.has("pytest.ini") || strings.Contains(p.text["pyproject.toml"], "pytest") || python && p.testFiles("Python") > 0 {
		add("python3 -m pytest", "its Python tests")
	}
	for _, n := range told[len(told)-1] {
		if m := makeTest().FindStringSubmatch(p.text[n]); m != nil {
			add("make "+m[1], "the target of its "+n)
		}
	}
	return all
}

// test returns the most likely way, or the zero value.
func (p *project) test() testCommand {
	if all := p.tests(); len(all) > 0 {
		return all[0]
	}
	return testCommand{}
}

// packageJSON is the part of a package.json that is of use.
type packageJSON struct {
	Name        string            `json:"name"`
	Version     string            `json:"version"`
	Description string            `json:"description"`
	Scripts     map[string]string `json:"scripts"`
}

func (p *project) packageJSON() (pkg packageJSON) {
	if json.Unmarshal([]byte(p.text["package.json"]), &pkg) != nil {
		return packageJSON{}
	}
	return pkg
}

var (
	goModule  = pattern.New(`(?m)^module\s+(\S+)`)
	goVersion = pattern.New(`(?m)^go\s+(\S+)`)
	tomlName  = pattern.New(`(?m)^name\s*=\s*["']([^"']+)["']`)
)

// kinds says what sort of project it is, one line each.
func (p *project) kinds() (out []string) {
	if m := goModule().FindStringSubmatch(p.text["go.mod"]); m != nil {
		s := "Go module " + codeSpan(m[1])
		if v := goVersion().FindStringSubmatch(p.text["go.mod"]); v != nil {
			s += ", go " + v[1]
		}
		out = append(out, s)
	}
	if pkg := p.packageJSON(); p.has("package.json") {
		out = append(out, strings.TrimSpace("Node package "+codeSpan(cmp.Or(pkg.Name, "without a name"))+" "+pkg.Version))
	}
	for _, k := range [][2]string{{"Cargo.toml", "Rust crate "}, {"pyproject.toml", "Python project "}} {
		if m := tomlName().FindStringSubmatch(p.text[k[0]]); m != nil {
			out = append(out, k[1]+codeSpan(m[1]))
		}
	}
	return out
}

// readme returns the title and the first paragraph of the README.
func (p *project) readme() (file, title, paragraph string) {
	for _, n := range told[0] {
		if text, ok := p.text[n]; ok {
			title, paragraph = summary(text)
			return n, title, paragraph
		}
	}
	return "", "", ""
}

var (
	markdownImage = pattern.New(`\[?!\[[^\]]*\]\([^)]*\)(\]\([^)]*\))?`)
	markdownLink  = pattern.New(`\[([^\]]+)\]\([^)]*\)`)
	htmlTag       = pattern.New(`<!--.*?-->|</?[a-zA-Z][^>]*>`)
	underline     = pattern.New(`^(=+|-+|~+)$`)
)

// summary finds the first heading and the first paragraph behind it, or the first paragraph if there
// is no heading, of a Markdown text.
func summary(text string) (title, paragraph string) {
	var lines []string
	early, fenced := "", false // early is a paragraph before the heading
	for l := range strings.Lines(text) {
		l = strings.TrimSpace(htmlTag().ReplaceAllString(markdownImage().ReplaceAllString(l, ""), ""))
		l = markdownLink().ReplaceAllString(l, "$1")
		fence := strings.HasPrefix(l, "```")
		if fence {
			fenced = !fenced
		}
		heading := strings.HasPrefix(l, "#") && !fenced
		if heading && title == "" {
			title, lines = strings.TrimSpace(strings.Trim(l, "#")), nil
			continue
		}
		if underline().MatchString(l) && len(lines) == 1 && title == "" {
			title, lines = lines[0], nil
			continue
		}
		if l != "" && !heading && !fence && !fenced && !underline().MatchString(l) {
			lines = append(lines, strings.TrimSpace(strings.TrimLeft(l, "> ")))
			continue
		}
		if len(lines) > 0 && title != "" {
			break
		}
		early, lines = cmp.Or(early, strings.Join(lines, " ")), nil
	}
	return title, shortened(cmp.Or(strings.Join(lines, " "), early), 400)
}

// shortened cuts s at a word, at no more than limit bytes.
func shortened(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	if i := strings.LastIndexByte(s[:limit], ' '); i > limit/2 {
		limit = i
	}
	return s[:limit] + " ..."
}

// languages are the kinds of files by their extension.
var languages = map[string]string{
	".go": "Go", ".rs": "Rust", ".py": "Python", ".js": "JavaScript", ".mjs": "JavaScript", ".cjs": "JavaScript", ".jsx": "JavaScript",
	".ts": "TypeScript", ".tsx": "TypeScript", ".c": "C", ".h": "C", ".cc": "C++", ".cpp": "C++", ".cxx": "C++", ".hpp": "C++",
	".java": "Java", ".kt": "Kotlin", ".scala": "Scala", ".swift": "Swift", ".rb": "Ruby", ".php": "PHP", ".cs": "C#", ".fs": "F#",
	".sh": "Shell", ".bash": "Shell", ".zsh": "Shell", ".fish": "Shell", ".ps1": "PowerShell", ".pl": "Perl", ".lua": "Lua", ".r": "R",
	".jl": "Julia", ".hs": "Haskell", ".ml": "OCaml", ".ex": "Elixir", ".exs": "Elixir", ".erl": "Erlang", ".clj": "Clojure", ".zig": "Zig",
	".dart": "Dart", ".vue": "Vue", ".svelte": "Svelte", ".html": "HTML", ".css": "CSS", ".scss": "CSS", ".sql": "SQL", ".proto": "Protocol Buffers",
	".md": "Markdown", ".rst": "reStructuredText", ".tex": "TeX", ".txt": "Text", ".json": "JSON", ".yaml": "YAML", ".yml": "YAML", ".toml": "TOML",
	".xml": "XML", ".tf": "Terraform", ".nix": "Nix", ".ipynb": "Notebook", ".csv": "CSV", ".asm": "Assembly", ".s": "Assembly",
}

// languageNames are the kinds of files that are known by their whole name.
var languageNames = map[string]string{"Makefile": "Make", "Dockerfile": "Docker", "CMakeLists.txt": "CMake", "go.mod": "Go", "go.sum": "Go"}

func language(file string) string {
	if l, ok := languageNames[path.Base(file)]; ok {
		return l
	}
	return languages[strings.ToLower(path.Ext(file))]
}

// langCount is a language and how many files are in it.
type langCount struct {
	language string
	files    int
}

// counts returns the languages, the most frequent first, and how many files are in none.
func (p *project) counts() (out []langCount, other int) {
	n := map[string]int{}
	for _, f := range p.files {
		if l := language(f); l != "" {
			n[l]++
		} else {
			other++
		}
	}
	for l, k := range n {
		out = append(out, langCount{l, k})
	}
	slices.SortFunc(out, func(a, b langCount) int {
		return cmp.Or(cmp.Compare(b.files, a.files), cmp.Compare(a.language, b.language))
	})
	return out, other
}

var testName = pattern.New(`(^|/)(test_[^/]*\.py|[^/]*_test\.(go|py|rs|cc|cpp)|[^/]*\.(test|spec)\.[cm]?[jt]sx?|[^/]*Test\.(java|kt)|[^/]*_(spec|test)\.rb)$|(^|/)(tests?|__tests__|spec)/[^/]+\.(rs|py|js|ts|rb)$`)

// testFiles counts the files that hold tests, of one language or, with "", of all.
func (p *project) testFiles(lang string) (n int) {
	for _, f := range p.files {
		if testName().MatchString(f) && (lang == "" || language(f) == lang) {
			n++
		}
	}
	return n
}

// oneLine puts a text on one line.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
