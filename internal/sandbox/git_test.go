package sandbox

import (
	"slices"
	"testing"
)

func TestPolicyOfAGit(t *testing.T) {
	git := GitProgram{Path: "/usr/bin/git", Core: "/usr/lib/git-core", Loader: "/usr/lib64/ld.so"}
	call := GitCall{Write: []string{"/src/p/.git"}, Programs: []string{"/usr/bin/false"}, Agents: []string{"/src/p", "/h/me/.rnix"}, Tools: []string{"/h/me/bin", "/src/p/bin", "/src", "/tmp/bin", "/h/me/.rnix/tmp"}}
	for starts, want := range map[Starts][]string{
		StartsNothing: {"/usr/bin/git", "/usr/lib64/ld.so"},
		StartsGit:     {"/usr/bin/git", "/usr/bin/false", "/usr/lib64/ld.so", "/usr/lib/git-core/git"},
	} {
		call.Starts = starts
		if p := call.Policy(git).Canonical(); !slices.Equal(sortPaths(p.Run), sortPaths(want)) || p.Single != (starts == StartsNothing) {
			t.Errorf("%d: %v, single %v", starts, p.Run, p.Single)
		}
	}
	call.Starts = StartsTools
	p := call.Policy(git)
	for path, want := range map[string]bool{"/usr/bin/sh": true, "/h/me/bin/x": true, "/usr/lib/git-core/git-shell": true, "/src/p/bin/x": false, "/src/q/x": false, "/tmp/bin/x": false, "/h/me/.rnix/tmp/x": false, "/h/me/x": false} {
		if got := slices.ContainsFunc(p.Run, func(tree string) bool { return within(path, tree) }); got != want {
			t.Errorf("%s can be executed: %v, want %v", path, got, want)
		}
	}
	if p.Net != NetNone || p.Access("/src/p/.git/x") != AccessWrite || p.Access("/src/p/x") != AccessRead || p.Access("/dev/null") != AccessWrite || p.Access("/dev/tty") != AccessRead {
		t.Error(p.Explain())
	}
}

func TestPolicyOfAGitThatReadsLittle(t *testing.T) {
	p := GitCall{Read: []string{"/h/me/p"}}.Policy(GitProgram{Path: "/h/git/bin/git", Core: "/h/git/core", Loader: "/usr/lib64/ld.so", Libs: []string{"/h/git/lib/libz.so"}})
	for path, want := range map[string]Access{"/h/me/p/.git/x": AccessRead, "/h/me/q": AccessNone, "/h/git/bin/git": AccessRead, "/h/git/core/x": AccessRead, "/h/git/lib/libz.so": AccessRead, "/h/git/lib/x": AccessNone, "/usr/lib/x": AccessRead, "/etc/x": AccessRead, "/tmp/x": AccessNone} {
		if got := p.Access(path); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}

func TestMeetOfWhatMayBeExecuted(t *testing.T) {
	some := Everything()
	some.Run, some.Single = []string{"/usr", "/opt/x"}, true
	other := Everything()
	other.Run = []string{"/usr/bin", "/opt"}
	if got := Meet(some, other); !slices.Equal(got.Run, []string{"/opt/x", "/usr/bin"}) || !got.Single {
		t.Errorf("%v, single %v", got.Run, got.Single)
	}
	if got := Meet(Everything(), other); !slices.Equal(got.Run, other.Run) && !slices.Equal(got.Run, []string{"/opt", "/usr/bin"}) || got.Single {
		t.Errorf("%v, single %v", got.Run, got.Single)
	}
	other.Run = []string{"/nowhere"}
	if got := Meet(some, other); got.Run == nil || len(got.Run) != 0 {
		t.Errorf("nothing in common gives %#v", got.Run)
	}
	if got := Everything().Canonical(); got.Run != nil {
		t.Errorf("everything gives %v", got.Run)
	}
	bwrap := Host{Program: "/usr/bin/bwrap", Bwrap: Proof{Proved: true}}
	other.Level = LevelBwrap
	if _, err := MakePlan(other, bwrap, Disk{}); err == nil {
		t.Error("bubblewrap is said to limit what is executed")
	}
}
