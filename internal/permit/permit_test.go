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

func TestTheStrictestLayerDecides(t *testing.T) {
	user := Rules{Ask: []string{"shell"}, Allow: []string{"shell go test *"}, Deny: []string{"shell git push *"}}
	for command, want := range map[string]Decision{
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
	if v := (Settings{Layers: []Rules{user}, Refuse: true}).Judge(shell("go vet")); v != (Verdict{Deny, "shell", true}) {
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
