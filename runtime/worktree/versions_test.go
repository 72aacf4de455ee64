package worktree

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rnix/internal/plumbing"
)

// otherGit puts a git before the installed one that does what that one does and ends as it ends, and
// says of a branch in use what versions of the other kind say: before 2.42, or after.
func otherGit(t *testing.T, words string) {
	t.Helper()
	real, err := exec.LookPath("git")
	if err != nil {
		t.Skip("needs git")
	}
	version, err := exec.Command("git", "version").Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the installed git is %s", strings.TrimSpace(string(version)))
	bin := t.TempDir()
	script := `#!/bin/sh
err=$(mktemp "${TMPDIR:-/tmp}/git.XXXXXX") || exit 1
` + real + ` "$@" 2>"$err"
code=$?
sed -e "s/is already checked out at/` + words + `/" -e "s/is already used by worktree at/` + words + `/" "$err" >&2
rm -f "$err"
exit $code
`
	write(t, filepath.Join(bin, "git"), script)
	if err := os.Chmod(filepath.Join(bin, "git"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
}

func TestABranchInUseIsUnderstoodInTheWordsOfAllVersions(t *testing.T) {
	for name, words := range map[string]string{"before 2.42": "is already checked out at", "since 2.42": "is already used by worktree at", "some other day": "is in the hands of"} {
		t.Run(name, func(t *testing.T) {
			_, clone := origin(t)
			git(t, clone, "worktree", "add", "-q", "-b", "agent/s", "../other")
			otherGit(t, words)
			out, err := exec.Command("git", "-C", clone, "worktree", "add", "../third", "agent/s").CombinedOutput()
			if !exited(err, 128) || !strings.Contains(string(out), words) {
				t.Fatalf("git says %q, %v", out, err)
			}
			asked := 0
			m := manager(t, Options{RetryDelay: time.Millisecond, OwnershipProber: func(context.Context, string) (bool, error) {
				if asked++; asked == 2 {
					git(t, clone, "worktree", "remove", "../other")
				}
				return true, nil
			}})
			added(t, m, clone, "s")
			if r, err := m.Result("s"); err != nil || r.Attempts != 3 || asked != 2 {
				t.Errorf("%+v, asked %d times, %v", r, asked, err)
			}
		})
	}
}

func TestABranchThatIsGivenBackBeforeAnybodyLooksIsTriedAgain(t *testing.T) {
	for _, words := range []string{"is already checked out at", "is already used by worktree at"} {
		_, clone := origin(t)
		git(t, clone, "worktree", "add", "-q", "-b", "agent/s", "../other")
		otherGit(t, words)
		given := false
		m := manager(t, Options{RetryDelay: time.Millisecond, EnvCommandRunner: func(ctx context.Context, env []string, name string, args ...string) ([]byte, error) {
			out, err := execute(ctx, env, name, args...)
			if plumbing.Verb(args) == "worktree" && err != nil && !given && indexOf(args, "-b") < 0 {
				given = true
				git(t, clone, "worktree", "remove", "../other")
			}
			if plumbing.Verb(args) == "worktree" && indexOf(args, "list") > 0 && !given {
				return nil, nil // it was in use, and nobody has seen by whom
			}
			return out, err
		}})
		added(t, m, clone, "s")
		if r, err := m.Result("s"); err != nil || r.Attempts != 2 || !given {
			t.Errorf("%s: %+v, %v", words, r, err)
		}
	}
}
