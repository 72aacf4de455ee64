package plumbing

import (
	"reflect"
	"slices"
	"testing"
)

// said is a configuration of the user, who has git lfs, and of a repository that says more than it should.
const said = "global\x00filter.lfs.clean\ngit-lfs clean\x00global\x00user.name\nme\x00" +
	"local\x00filter.evil.a.smudge\nsh\x00local\x00filter.evil.a.required\ntrue\x00worktree\x00core.sshcommand\nssh -x\x00local\x00merge.ours.driver\nsh\x00" +
	"local\x00section.flag\x00local\x00user.name\nnobody\x00local\x00core.bare\nFalse\x00"

func TestWhatARepositorySaysItselfIsToldFromTheUsersOwn(t *testing.T) {
	c := ParseConfig([]byte(said))
	if v, ok := c.Get("user.name"); v != "nobody" || !ok {
		t.Errorf("the last value of a key: %q, %v", v, ok)
	}
	if v, ok := c.Get("section.flag"); v != "" || !ok {
		t.Errorf("a key without a value: %q, %v", v, ok)
	}
	if v, ok := c.Get("user.email"); v != "" || ok {
		t.Errorf("a key that is not there: %q, %v", v, ok)
	}
	if !c.Says("core.bare", "false", "no") || c.Says("core.bare", "true") || !c.Says("section.flag", "true") || c.Says("section.other", "true", "") {
		t.Error("Says")
	}
	var programs []string
	for _, e := range c.Local() {
		if e.RunsProgram() {
			programs = append(programs, e.Text)
		}
	}
	if want := []string{"filter.evil.a.smudge\nsh", "core.sshcommand\nssh -x", "merge.ours.driver\nsh"}; !slices.Equal(programs, want) {
		t.Errorf("programs of the repository: %q", programs)
	}
	off := func(name string) []Setting {
		return []Setting{{name + ".clean", ""}, {name + ".smudge", ""}, {name + ".process", ""}, {name + ".required", "false"}}
	}
	if got := c.Local().FiltersOff(); !slices.Equal(got, off("filter.evil.a")) {
		t.Errorf("filters of the repository: %q", got)
	}
	if got := c.FiltersOff(); !slices.Equal(got, append(off("filter.lfs"), off("filter.evil.a")...)) {
		t.Errorf("all filters: %q", got)
	}
	if got := c.MergesOff(); !slices.Equal(got, []Setting{{"merge.ours.driver", "false"}}) {
		t.Errorf("ways of merging: %q", got)
	}
	if got := c.Filters("clean", "process"); len(got) != 1 || got[0].Section() != "filter.lfs" || got[0].Local() {
		t.Errorf("filters with clean: %+v", got)
	}
}

func TestOutputOfGitIsRead(t *testing.T) {
	odd := "1 M. N... 100644"
	status := "1 .M N... 100644 100644 100644 aa bb a b.txt\x00u UU N... 100644 100644 100644 100644 aa bb cc both.txt\x00" +
		"1 .M SC.. 160000 160000 160000 aa bb sub\x00? new.txt\x00! old.log\x00"
	got, bad := ParseStatus([]byte(status))
	want := []Status{{'1', ".M", false, "100644", "aa", "a b.txt"}, {'u', "UU", false, "", "", "both.txt"}, {'1', ".M", true, Gitlink, "aa", "sub"},
		{Kind: '?', Path: "new.txt"}, {Kind: '!', Path: "old.log"}}
	if bad != "" || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %q", got, bad)
	}
	if _, bad := ParseStatus([]byte(status + odd + "\x00")); bad != odd {
		t.Errorf("a line that is cut off: %q", bad)
	}
	tracked := ParseTracked([]byte("H 100644 aa 0\ta\tb.txt\x00S 160000 bb 0\tsub\x00what\x00"))
	if !slices.Equal(tracked, []Tracked{{'H', "100644", "aa", "a\tb.txt"}, {'S', Gitlink, "bb", "sub"}}) {
		t.Errorf("%+v", tracked)
	}
	trees := ParseWorktrees([]byte("worktree /r\x00HEAD aa\x00branch refs/heads/main\x00\x00worktree /w\x00HEAD bb\x00detached\x00\x00"))
	if !slices.Equal(trees, []Worktree{{"/r", "refs/heads/main"}, {"/w", ""}}) {
		t.Errorf("%+v", trees)
	}
	if a := Answers([]byte("true\nsha1\n/a\n"), 3); !slices.Equal(a, []string{"true", "sha1", "/a"}) {
		t.Errorf("%q", a)
	}
	for _, out := range []string{"", "true\nsha1\n", "true\nsha1\n/a\nb\n"} { // nothing, one left out, a path with a line end
		if a := Answers([]byte(out), 3); a != nil {
			t.Errorf("%q: %q", out, a)
		}
	}
}

// Both kinds of git have every setting without which a repository names what they run.
func TestNoGitRunsHooks(t *testing.T) {
	offline := Offline()
	for _, s := range closed {
		if i := slices.Index(offline, s.Key+"="+s.Value); i < 1 || offline[i-1] != "-c" || !slices.Contains(Online(), s) {
			t.Errorf("%v is missing", s)
		}
	}
	for _, s := range []string{"protocol.allow=never", "credential.helper=", "core.hooksPath=/dev/null", "core.fsmonitor=false", "--no-replace-objects"} {
		if !slices.Contains(offline, s) {
			t.Errorf("a git without a server has not %s", s)
		}
	}
}
