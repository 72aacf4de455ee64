package permit

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func shell(command string) *Call {
	in, _ := json.Marshal(map[string]string{"command": command})
	return &Call{Tool: "shell", Path: ShellPath, Input: in, Dir: "/w"}
}

func file(tool, path string) *Call {
	in, _ := json.Marshal(map[string]string{"path": path})
	return &Call{Tool: tool, Path: "/dev/workspace", Input: in, Dir: "/w"}
}

func TestRulesAboutCommands(t *testing.T) {
	for _, c := range []struct {
		command, pattern string
		covered          bool
		touches          Sure
	}{
		{"git status", "git *", true, Yes},
		{"git", "git *", true, Yes},
		{"git log | head -3", "git *", false, Yes},
		{"git x; rm y", "git *", false, Yes},
		{"git x; rm y", "rm *", false, Yes},
		{"git log $(rm y)", "git *", false, Yes},
		{"git log $(rm y)", "rm *", false, Yes},
		{"git log `rm y`", "git *", false, Yes},
		{"git log <(rm y)", "git *", false, Yes},
		{"git log > ~/.bashrc", "git *", false, Yes},
		{"git log 2>&1 >/dev/null", "git *", true, Yes},
		{"git log >&2", "git *", true, Yes},
		{"git log >&out", "git *", false, Yes},
		{"git log >&2x", "git *", false, Yes},
		{"git log &>out", "git *", false, Yes},
		{"git log <<E\n$(rm y)\nE", "git *", false, Yes},
		{"GIT_SSH_COMMAND=x git fetch", "git *", false, Yes},
		{"PATH=.; git fetch", "git *", false, Yes},
		{"git() { rm y; }; git x", "git *", false, Yes},
		{"git add *.go", "git *", true, Yes},
		{"git add *.go", "git add x", false, Maybe},
		{"g\"i\"t 'status'", "git status", true, Yes},
		{`gi\t status`, "git status", true, Yes},
		{"$x push", "git push", false, Maybe},
		{"$x push", "git *", false, Maybe},
		{"/usr/bin/git push", "git push", false, Yes},
		{"./git push", "git *", false, Yes},
		{"env A=1 git push -f", "git push *", false, Yes},
		{"timeout 5 git push", "git push", false, Yes},
		{"timeout 5 go test ./...", "timeout * go test *", true, Yes},
		{"sh -c 'git push'", "git push", false, Yes},
		{"bash -lc \"cd x && git push\"", "git push", false, Yes},
		{"bash -c \"$y\"", "git push", false, Maybe},
		{"bash script.sh", "git push", false, Maybe},
		{"echo 'git push' | sh", "git push", false, Maybe},
		{"eval git push", "git push", false, Yes},
		{"xargs git push", "git push", false, Yes},
		{". ./x.sh", "git push", false, Maybe},
		{"if [ -f x ]; then git push; fi", "git push", false, Yes},
		{"if [ -f x ]; then git pull; fi", "git push", false, No},
		{"for f in a b; do git add $f; done", "git *", true, Yes},
		{"git 'unfinished", "git *", false, Maybe},
		{"", "git *", false, No},
		{"# git push", "git push", false, No},
		{"x=1", "git *", false, No},
		{"export PATH=.", "git *", false, No},
		{"go test ./... && git push origin main", "git push *", false, Yes},
		{"go test -run X ./...", "go test *", true, Yes},
		{"go testx", "go test *", false, No},
		{"git push origin main --force", "git push * --force", true, Yes},
		{"git push", "git push * --force", false, No},
		{strings.Repeat("env ", 300) + "git push", "git push", false, Yes},
		{strings.Repeat("env ", 3000) + "git push", "git push", false, Maybe},
		{"env -S 'git push'", "git push", false, Maybe},
		{"env --split-string='git push'", "git push", false, Maybe},
		{"watch 'git push'", "git push", false, Maybe},
		{"timeout 5 git commit -m 'rm x'", "git commit *", false, Yes},
		{"timeout 5 git commit -m 'rm x'", "rm *", false, Maybe},
		{`find . -name x -exec git push \;`, "git push *", false, Yes},
		{"find . -name $x", "git push *", false, No},
		{"x='push --force'; git $x", "git push --force *", false, Maybe},
		{"git {push,--force}", "git push --force *", false, Maybe},
		{"git $x push", "git push", false, Maybe},
		{"hash -p /usr/bin/git x; x push", "git push", false, Maybe},
		{"alias x='git push'", "git push", false, Maybe},
		{"PS4='$(git push)'; set -x; ls", "git push", false, Maybe},
		{"[[ -f x ]] && git y", "git *", true, Yes},
		{"git a[0]", "rm *", false, No},
	} {
		call := shell(c.command)
		rule, err := Parse("shell " + c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got := rule.covers(call); got != c.covered {
			t.Errorf("%q covers %q: %v", c.pattern, c.command, got)
		}
		if got := rule.touches(call); got != c.touches {
			t.Errorf("%q touches %q: %v, want %v", c.pattern, c.command, got, c.touches)
		}
	}
}

// What bash does with a line that looks like one that is covered, and is not.
func TestWhatIsNotCovered(t *testing.T) {
	git, rm := Rule{"shell", "git *"}, Rule{"shell", "rm *"}
	for _, c := range []struct {
		command string
		rm      Sure
	}{
		{"git x \\\r\nrm y", Maybe}, // the parser takes \\\r\n for one line
		{"git\rx", Maybe},
		{"git x \\\x00\nrm y", Maybe},
		{"for PATH in ./evil; do git x; done", No},
		{"for http_proxy in a; do git x; done", No},
		{"select PATH in a; do git x; done", No},
		{"for ((PATH=1;;)); do git x; done", No},
		{"git $((PATH=1))", No},
		{"git ${PATH:=x}", No},
		{"{ git x; } {PATH}</dev/null", No},
		{"git x </dev/tcp/localhost/1", No},
		{"git x; [[ 'a[$(rm y)]' -eq 0 ]]", Maybe},
		{"git x; [[ -v 'a[$(rm y)]' ]]", Maybe},
		{`git x; [[ "a[\$(rm y)]" -eq 0 ]]`, Maybe},
		{"for x in '$(rm y)'; do git ${x@P}; done", Maybe},
		{"for x in 'a[$(rm y)]'; do git $((x)); done", Maybe},
		{"for x in 'a[$(rm y)]'; do git ${!x}; done", Maybe},
		{"for x in 'b[$(rm y)]'; do git ${a[x]}; done", Maybe},
		{"for x in 'b[$(rm y)]'; do git ${y:x}; done", Maybe},
		{strings.Repeat("x", maxLine+1), Maybe},
		{strings.Repeat("(", 100_000) + "git", Maybe},
	} {
		if c := shell(c.command); git.covers(c) {
			t.Errorf("%q is covered", cut(c.Command()))
		}
		if got := rm.touches(shell(c.command)); got < c.rm {
			t.Errorf("%q runs rm: %v", cut(c.command), got)
		}
	}
}

// A command line of the greatest length is read soon, whatever stands in it.
func TestReadsSoon(t *testing.T) {
	rule := Rule{"shell", "git * a * b * c"}
	for _, text := range []string{"env ", "/bin/env ", "sh ", "(", "$(", "${a:-", "if ", "a[", "[[ ! ", "{ ", "case x in x) ", "git a b "} {
		line := strings.Repeat(text, (maxLine-100)/len(text))
		start := time.Now()
		rule.touches(shell("env " + line + "-c 'x;x;x;x'"))
		rule.touches(shell("env " + strings.Repeat(text, maxArguments/2) + "-c 'x;x;x;x'"))
		rule.touches(shell("git " + line))
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%q, again and again, takes %v", text, took)
		}
	}
}

// Devices do not tell upper from lower case in the names of fields.
func TestFieldsThatLookLikeOthers(t *testing.T) {
	for _, input := range []string{`{"command":"git x","Command":"rm y"}`, `{"COMMAND":"rm y"}`, `{"command":"git x","Cwd":"evil"}`} {
		c := &Call{Tool: "shell", Path: ShellPath, Input: []byte(input), Dir: "/w"}
		if r := (Rule{"shell", "git *"}); r.covers(c) {
			t.Errorf("%s is covered", input)
		}
		if r := (Rule{"shell", "rm *"}); r.touches(c) != Maybe {
			t.Errorf("%s: %v", input, r.touches(c))
		}
		for _, g := range []Grant{{Tool: "shell", Exact: "git x"}, {Tool: "shell", Match: "git *"}, {Tool: "shell"}} {
			if g.Covers(c, time.Now()) {
				t.Errorf("%v covers %s", g, input)
			}
		}
		if _, err := NewGrant(1, c, ForProcess, "", time.Time{}); err == nil || !strings.Contains(err.Error(), "taken for another") {
			t.Errorf("%s: %v", input, err)
		}
	}
	c := &Call{Tool: "write_file", Path: "/dev/workspace", Input: []byte(`{"path":"docs/a","Path":"src/a"}`), Dir: "/w"}
	if r := (Rule{"write_file", "docs/**"}); r.covers(c) {
		t.Error("a rule covers a file beside another")
	}
}

// The same command elsewhere is another call.
func TestGrantsOfTheSameCallAgain(t *testing.T) {
	in := func(cwd string) *Call {
		return &Call{Tool: "shell", Path: ShellPath, Input: []byte(`{"command":"make","cwd":"` + cwd + `"}`), Dir: "/w"}
	}
	g, err := NewGrant(1, in("a"), ForProcess, "", time.Time{})
	if err != nil || !g.Covers(in("a"), time.Now()) || g.Covers(in("evil"), time.Now()) || g.Covers(shell("make"), time.Now()) {
		t.Errorf("%+v %v", g, err)
	}
}

func TestRulesAboutFiles(t *testing.T) {
	for _, c := range []struct {
		path, pattern string
		covered       bool
		touches       Sure
	}{
		{"docs/a.md", "docs/**", true, Yes},
		{"/w/docs/a.md", "docs/**", true, Yes},
		{"docs/../src/a.go", "docs/**", false, No},
		{"../docs/a.md", "docs/**", false, No},
		{"../x.md", "*.md", false, No},
		{"deep/x.md", "*.md", true, Yes},
		{"/etc/passwd", "/etc/**", true, Yes},
		{"", "docs/**", false, Maybe},
	} {
		rule, err := Parse("write_file " + c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got := rule.covers(file("write_file", c.path)); got != c.covered {
			t.Errorf("%q covers %q: %v", c.pattern, c.path, got)
		}
		if got := rule.touches(file("write_file", c.path)); got != c.touches {
			t.Errorf("%q touches %q: %v", c.pattern, c.path, got)
		}
	}
	for rule, want := range map[string]Sure{"/dev/workspace": Yes, "/dev": Yes, "/dev/work": No, "write_*": Yes, "*": Yes, "edit": No} {
		r, err := Parse(rule)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.touches(file("write_file", "a")); got != want {
			t.Errorf("%s: %v", rule, got)
		}
	}
	both := &Call{Tool: "move", Path: "/dev/workspace", Input: []byte(`{"from":"docs/a","to":"src/a"}`), Dir: "/w"}
	if r, _ := Parse("move docs/**"); r.covers(both) || r.touches(both) != Yes {
		t.Error("a rule about one of two files covers both")
	}
}

// A link leads to what a rule is about, and out of what one covers.
func TestRulesAboutFilesBehindLinks(t *testing.T) {
	for _, c := range []struct {
		path, real, pattern string
		covered             bool
		touches             Sure
	}{
		{"s/a", "/real/secrets/a", "secrets/**", false, Yes},
		{"docs/out/a", "/real/src/a", "docs/**", false, Yes},
		{"docs/a", "/real/docs/a", "docs/**", true, Yes},
		{"docs/a", "", "docs/**", false, Yes},
		{"s/a", "", "secrets/**", false, Maybe},
		{"s/a", "/etc/a", "/etc/**", false, Yes},
	} {
		call := file("write_file", c.path)
		call.Real = func(name string) string {
			if name == "/w" {
				return "/real"
			}
			return c.real
		}
		r := Rule{"write_file", c.pattern}
		if r.covers(call) != c.covered || r.touches(call) != c.touches {
			t.Errorf("%+v: %v %v", c, r.covers(call), r.touches(call))
		}
	}
}

func TestTheStrictestLayerDecides(t *testing.T) {
	user := Rules{Ask: []string{"shell"}, Allow: []string{"shell go test *"}, Deny: []string{"shell git push *"}}
	for command, want := range map[string]Decision{
		"env sh -c 'git push'": Deny, "nice -n 5 timeout 3 bash -ec 'cd x && git push'": Deny, "xargs sh -c 'ls; sh -c \"git push\"'": Deny, "env sh -c \"$x\"": Ask,
		"go test ./...": Allow, "go vet": Ask, "git push": Deny, "go test ./... && git push": Deny, "go test x; $y push": Ask,
	} {
		if v := (Settings{Layers: []Rules{user}}).Judge(shell(command)); v.Decision != want {
			t.Errorf("%s: %v", command, v)
		}
	}
	loose := Rules{Allow: []string{"*"}}
	s := Settings{}.With(user).With(loose)
	if v := s.Judge(shell("go vet")); v.Decision != Ask {
		t.Errorf("another layer took back what one asks about: %v", v)
	}
	if v := (Settings{Layers: []Rules{user}, Refuse: true}).Judge(shell("go vet")); v != (Verdict{Decision: Deny, Rule: "shell", Unasked: true}) {
		t.Errorf("without a person: %v", v)
	}
	if v := (Settings{Layers: []Rules{{Ask: []string{"shell (later syntax"}}}}).Judge(file("read_file", "x")); v.Decision != Ask && v.Decision != Allow {
		t.Error(v)
	}
	if v := (Settings{}).Judge(shell("rm -rf /")); v.Decision != Allow {
		t.Errorf("without rules: %v", v)
	}
}

// A meet allows no more than either side, whatever the call.
func TestMeetAllowsNoMore(t *testing.T) {
	sides := []Settings{{}, Settings{}.With(Rules{Ask: []string{"shell"}, Allow: []string{"shell git *"}}), Settings{}.With(Rules{Deny: []string{"shell git *"}}),
		Settings{}.With(Rules{Ask: []string{"*"}, Allow: []string{"shell"}}), {Refuse: true}}
	calls := []*Call{shell("git status"), shell("ls"), shell("git x; ls"), file("write_file", "a"), shell("$x")}
	rank := map[Decision]int{Allow: 0, Ask: 1, Deny: 2}
	for _, a := range sides {
		for _, b := range sides {
			for _, c := range calls {
				if m := rank[Meet(a, b).Judge(c).Decision]; m < rank[a.Judge(c).Decision] || m < rank[b.Judge(c).Decision] {
					t.Errorf("%v and %v allow more together: %v", a, b, c.On())
				}
			}
		}
	}
}

func TestGrants(t *testing.T) {
	now := time.Now()
	exact, err := NewGrant(1, shell("git status"), ForProcess, "", time.Time{})
	if err != nil || !exact.Covers(shell("git status"), now) || exact.Covers(shell("git status -s"), now) {
		t.Errorf("%v %v", exact, err)
	}
	git, err := NewGrant(2, shell("git status"), ForFamily, "git *", now.Add(time.Hour))
	if err != nil || !git.Covers(shell("git push"), now) || git.Covers(shell("git x; rm y"), now) || git.Covers(shell("git push"), now.Add(time.Hour)) {
		t.Errorf("%v %v", git, err)
	}
	if git.Covers(file("write_file", "git"), now) {
		t.Error("a grant counts for another tool")
	}
	if _, err := NewGrant(3, shell("git status; rm x"), ForFamily, "git *", time.Time{}); err == nil || !strings.Contains(err.Error(), "does not cover") {
		t.Errorf("a grant that does not cover its call: %v", err)
	}
}

func TestRulesThatAreNone(t *testing.T) {
	for _, text := range []string{"", "  ", "/", "/dev/", "/dev/../x", "shell\ngit", "sh(x)", "write_file [", strings.Repeat("x", maxRule+1)} {
		if _, err := Parse(text); err == nil {
			t.Errorf("%q is taken for a rule", text)
		}
	}
	if r, err := Parse("shell  git   push *"); err != nil || r.String() != "shell git push *" {
		t.Error(r, err)
	}
}

func FuzzCommands(f *testing.F) {
	for _, s := range []string{"git x; rm y", "sh -c 'env git'", "a $(b `c`)", "x() { y; }", "<<E\n$(a)\nE"} {
		f.Add(s, "git *")
	}
	f.Fuzz(func(t *testing.T, command, pattern string) {
		r, err := Parse("shell " + pattern)
		if err != nil {
			return
		}
		if c := shell(command); r.covers(c) && r.touches(c) == No {
			t.Errorf("%q covers %q, and does not touch it", pattern, command)
		}
	})
}

// A grant without a pattern is for the same call, also of a tool of which it is not known what it acts on.
func TestAGrantWithoutAPatternIsForTheSameCall(t *testing.T) {
	call := func(in string) *Call {
		return &Call{Tool: "close_issue", Path: "/mnt/mcp/tracker", Input: []byte(in), Dir: "/w"}
	}
	long := strings.Repeat("x", 2*maxExact)
	for in, other := range map[string]string{`{"name":"a"}`: `{"name":"b"}`, `{}`: `{"name":"a"}`, `{"text":"` + long + `"}`: `{"text":"` + long + `y"}`} {
		g, err := NewGrant(1, call(in), ForFamily, "", time.Time{})
		if err != nil || !g.Covers(call(in), time.Now()) || g.Covers(call(other), time.Now()) || len(g.Exact) > maxExact {
			t.Errorf("%.40s: %.80v %v", in, g, err)
		}
	}
	if g, err := NewGrant(1, call(`{"name": "a"}`), ForFamily, "", time.Time{}); err != nil || !g.Covers(call(`{"name":"a"}`), time.Now()) {
		t.Errorf("blanks make it another call: %v %v", g, err)
	}
}

func TestSeveralRulesCoverALineTogether(t *testing.T) {
	s := Settings{Layers: []Rules{{Ask: []string{"shell"}, Allow: []string{"shell go test *", "shell go vet *", "shell printf *", "shell read *", "shell cd *", "shell set *", "read_file"}, Deny: []string{"shell git push *"}}}}
	for command, want := range map[string]Decision{
		"go vet ./... && go test ./...":             Allow,
		"go vet -h; go test -h | go test":           Allow,
		"go vet ./... && go run .":                  Ask,
		"go vet ./... && go test ./... > out":       Ask,
		"go vet $(go test) && go test $(rm -rf x)":  Ask,
		"X=1 go vet && go test":                     Ask,
		"go vet && go test && git push origin main": Deny,
		"go vet && $X":                              Ask,
		"":                                          Ask,
		"printf x; go test":                         Allow,
		"printf -v PATH %s ./evil; go test":         Ask,
		"printf $X; go test":                        Ask,
		"read PATH; go test":                        Ask,
		"set -k; go test":                           Ask,
		"cd ./evil && go test":                      Ask,
	} {
		if v := s.Judge(shell(command)); v.Decision != want {
			t.Errorf("%q: %v, want %v", command, v, want)
		}
	}
}
