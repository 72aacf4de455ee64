package worktree

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"rnix/types"
)

func TestABaseThatIsRequiredIsLiterallyABranch(t *testing.T) {
	for _, base := range []string{"", "HEAD", "@", "refs/heads/main", "refs/remotes/origin/main", "refs/tags/v1", "a..b", "main@{1}", "a//b", "a b", "a~1", "a^", "a:b", "a?", "a*", "a[b", `a\b`,
		"a\x01b", "a\x7fb", ".a", "a/.b", "a.", "a./b", "a.lock", "a.lock/b", "-x", "/a", "a/", strings.Repeat("a", 1025)} {
		for _, skip := range []bool{false, true} {
			f := &fake{}
			m := manager(t, Options{CommandRunner: f.plain})
			_, err := m.Provision(t.Context(), ProvisionSpec{SessionID: "s", Strategy: StrategyWorktreeAdd, ParentRepoPath: "/p", BaseRef: base, RequireBranchBase: true, SkipBaseFetch: skip})
			if types.CodeOf(err) != types.ErrInvalid || !errors.Is(err, ErrInvalidBaseRef) || len(f.calls) > 0 {
				t.Errorf("%q: %v, calls %q", base, err, f.calls)
			}
		}
	}
	for _, base := range []string{"main", "release/1.2", "origin/main", "a.b", "lock"} {
		s, err := ProvisionSpec{SessionID: "s", Strategy: StrategyWorktreeAdd, ParentRepoPath: "/p", BaseRef: base, RequireBranchBase: true}.settled()
		if err != nil || s.BaseRef != base {
			t.Errorf("%q: %q, %v", base, s.BaseRef, err)
		}
	}
}

func TestACheckoutThatRequiresItsBaseBeginsThere(t *testing.T) {
	bare, clone := origin(t)
	m := manager(t, Options{})
	for id, s := range map[string]ProvisionSpec{
		"clone":  {RepoURL: bare, BaseRef: "main", Branch: "agent/clone"},
		"itself": {RepoURL: bare, BaseRef: "main"},
		"tree":   {Strategy: StrategyWorktreeAdd, ParentRepoPath: clone, BaseRef: "main", Branch: "agent/tree"},
		"stale":  {Strategy: StrategyWorktreeAdd, ParentRepoPath: clone, BaseRef: "main", Branch: "agent/stale", SkipBaseFetch: true},
	} {
		want := git(t, clone, "rev-parse", "origin/main")
		if id != "stale" {
			want = commitAt(t, bare, "main", id+".txt")
		}
		s.SessionID, s.RequireBranchBase = id, true
		if _, err := m.Provision(t.Context(), s); err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		if r, err := m.Result(id); err != nil || r.BaseSHA != want || r.BaseRef != "main" {
			t.Errorf("%s: %+v, %v; want %s", id, r, err, want)
		}
		if err := m.Teardown(t.Context(), id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func TestWhatIsNotAtItsBaseIsTakenBack(t *testing.T) {
	bare, clone := origin(t)
	git(t, bare, "tag", "v1", "main")
	git(t, clone, "branch", "mine")
	git(t, clone, "checkout", "-q", "-b", "ahead")
	git(t, clone, "commit", "-q", "--allow-empty", "-m", "work")
	tip := git(t, clone, "rev-parse", "ahead")
	git(t, clone, "checkout", "-q", "main")
	git(t, clone, "branch", "only-here")
	m := manager(t, Options{})
	for name, tt := range map[string]struct {
		spec ProvisionSpec
		want error
	}{
		"a tag of a remote":  {ProvisionSpec{RepoURL: bare, BaseRef: "v1"}, ErrInvalidBaseRef},
		"a tag, and skipped": {ProvisionSpec{Strategy: StrategyWorktreeAdd, ParentRepoPath: clone, BaseRef: "v1", SkipBaseFetch: true}, ErrInvalidBaseRef},
		"a branch of ours":   {ProvisionSpec{Strategy: StrategyWorktreeAdd, ParentRepoPath: clone, Branch: "only-here"}, ErrInvalidBaseRef},
		"commits of its own": {ProvisionSpec{Strategy: StrategyWorktreeAdd, ParentRepoPath: clone, Branch: "ahead", BaseRef: "main"}, ErrNotAtBase},
	} {
		tt.spec.SessionID, tt.spec.RequireBranchBase = "s", true
		if _, err := m.Provision(t.Context(), tt.spec); !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.spec.base()) {
			t.Errorf("%s: %v", name, err)
		}
		if list, err := m.Sessions(); err != nil || len(list) > 0 || exists(m.ParentDir()+"/s") {
			t.Errorf("%s: known %q, %v", name, list, err)
		}
	}
	if now := git(t, clone, "rev-parse", "ahead"); now != tip {
		t.Errorf("the branch was at %s and is at %s", tip, now)
	}
	if list := strings.Split(git(t, clone, "worktree", "list", "--porcelain"), "\n"); slices.ContainsFunc(list[1:], func(l string) bool { return strings.HasPrefix(l, "worktree ") }) {
		t.Errorf("git knows %q", list)
	}
}
