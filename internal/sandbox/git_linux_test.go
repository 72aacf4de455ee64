//go:build amd64 || arm64

package sandbox

import (
	"slices"
	"testing"
)

func TestGitIsNotLetToWhereALinkLeadsThatHasComeSince(t *testing.T) {
	git := GitProgram{Path: "/usr/bin/git"}
	files := tree("/usr/bin/git", "/h/me/p/.git -> /victim/.git", "/victim/.git/", "/h/me/q -> /victim", "/src/r/.git -> /victim/.git", "/src/s -> /victim", "/h/me/ignore", "/lib -> usr/lib", "/usr/lib/")
	call := GitCall{Read: []string{"/h/me/p", "/h/me/p/.git", "/h/me/q/.git", "/src/r/.git", "/src/s", "/h/me/ignore"}}
	plan, err := MakePlan(call.Policy(git), Host{Landlock: Proof{Proved: true}}, call.Files(files))
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, r := range plan.Rules {
		if within(r.Path, "/victim") {
			t.Errorf("it is let to %s", r.Path)
		}
		paths = append(paths, r.Path)
	}
	for _, want := range []string{"/h/me/p", "/src/r/.git", "/src/s", "/h/me/ignore", "/usr/lib"} { // the links are refused when the box is opened
		if !slices.Contains(paths, want) {
			t.Errorf("no rule for %s: %q", want, paths)
		}
	}
}
