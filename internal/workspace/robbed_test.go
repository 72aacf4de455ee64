package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rnix/internal/plumbing"
	"rnix/types"
)

// goers are the ways in which a workspace goes. Each must keep, or refuse, the same.
var goers = map[string]func(h *stowHome) error{
	"put away":  func(h *stowHome) error { _, err := Stow(h.Context(), h.Keeper, h.to, isFree); return err },
	"removed":   func(h *stowHome) error { _, err := h.Remove(h.Context(), h.to); return err },
	"discarded": func(h *stowHome) error { _, err := h.Discard(h.Context(), h.to); return err },
}

// plainFork makes a fork of a directory that is no repository.
func plainFork(h *stowHome) {
	plain := h.dir()
	h.write(plain, map[string]string{"a": "1\n"})
	h.to = forked(h.bench, plain)
}

// Nothing that is in no rescue goes with a workspace, whichever way that goes.
func TestNoWorkspaceGoesWithWhatNoRescueHolds(t *testing.T) {
	t.Parallel()
	states := map[string]struct {
		want    string
		prepare func(h *stowHome)
	}{
		"a repository in a plain directory": {"nested/.git", func(h *stowHome) {
			plainFork(h)
			h.write(h.to, map[string]string{"nested/n": "n\n"})
			h.user(filepath.Join(h.to, "nested"), "init", "-q")
			h.user(filepath.Join(h.to, "nested"), "add", "n")
			h.user(filepath.Join(h.to, "nested"), "commit", "-qm", "nowhere else")
		}},
		"a plain directory that became a repository": {".git", func(h *stowHome) {
			plainFork(h)
			h.user(h.to, "init", "-q")
			h.user(h.to, "add", "a")
			h.user(h.to, "commit", "-qm", "nowhere else")
		}},
		"a file that a process writes": {"works there", func(h *stowHome) {
			f, err := os.OpenFile(filepath.Join(h.to, "log"), os.O_CREATE|os.O_WRONLY, 0o600)
			must(h, err)
			h.Cleanup(func() { _ = f.Close() })
		}},
	}
	for how, goes := range goers {
		for name, st := range states {
			t.Run(how+"/"+name, func(t *testing.T) {
				t.Parallel()
				h := newStowHome(t)
				h.bench.TB = t
				st.prepare(h)
				before := portrait(h.bench, h.to)
				if err := goes(h); types.CodeOf(err) != types.ErrConflict || !strings.Contains(err.Error(), st.want) {
					t.Errorf("%v", err)
				}
				if _, err := os.Lstat(h.to); err != nil {
					t.Fatal("it is gone: ", err)
				}
				same(t, "what stays", before, portrait(h.bench, h.to))
			})
		}
	}
}

// What is staged only is kept, also when git has the index, had it when it was killed, or has not settled a conflict in it.
func TestWhatIsStagedOnlyIsKeptFromAnIndexThatIsNotGitsToWrite(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(h *stowHome, gitDir string){
		"locked": func(h *stowHome, gitDir string) { h.write(gitDir, map[string]string{"index.lock": ""}) },
		"in a conflict": func(h *stowHome, _ string) {
			h.write(h.repo, map[string]string{"b": "theirs\n"})
			h.user(h.repo, "commit", "-qam", "theirs")
			h.write(h.to, map[string]string{"b": "mine\n"})
			h.user(h.to, "commit", "-qm", "mine", "b")
			_, _ = h.try(h.to, "merge", "main")
			h.write(h.to, map[string]string{"a": "staged, and nowhere else\n"})
			h.user(h.to, "add", "a")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newStowHome(t)
			gitDir := plumbing.Registration(filepath.Join(h.repo, ".git"), h.to)
			h.write(h.to, map[string]string{"a": "staged, and nowhere else\n"})
			if name == "locked" {
				h.user(h.to, "add", "a")
			}
			prepare(h, gitDir)
			h.write(h.to, map[string]string{"a": "changed\n"})
			ran := filepath.Join(h.dir(), "ran")
			h.write(h.repo, map[string]string{".git/info/attributes": "* filter=evil\n"})
			h.user(h.repo, "config", "filter.evil.clean", "touch "+ran+"; cat")
			rep, err := h.Remove(t.Context(), h.to)
			must(t, err)
			st, err := h.storeOf(t.Context(), h.id, rep.Rescue.Common, "sha1")
			must(t, err)
			if text, err := h.try(h.home, "--git-dir="+st.gitDir(), "show", rep.Rescue.Pin+"^2:a"); err != nil || text != "staged, and nowhere else\n" {
				t.Errorf("%v %s", err, text)
			}
			if _, err := os.Lstat(ran); err == nil {
				t.Error("a filter of the repository was run")
			}
		})
	}
}

// A lock that git has left comes back with nothing: no git has it any more.
func TestALockOfGitsDoesNotComeBackWithAWorkspace(t *testing.T) {
	t.Parallel()
	h := newStowHome(t)
	h.write(h.to, map[string]string{"a": "staged\n"})
	h.user(h.to, "add", "a")
	h.write(h.to, map[string]string{"a": "changed\n"})
	before := portrait(h.bench, h.to)
	h.write(plumbing.Registration(filepath.Join(h.repo, ".git"), h.to), map[string]string{"index.lock": ""})
	if _, err := Stow(t.Context(), h.Keeper, h.to, isFree); err != nil {
		t.Fatal(err)
	}
	h.user(h.repo, "gc", "-q", "--prune=now")
	if said, err := Unstow(t.Context(), h.Keeper, h.id); err != nil || said != "" {
		t.Fatal(said, err)
	}
	same(t, "what came back", before, portrait(h.bench, h.to))
	h.user(h.to, "add", "a")
}

// Whose files are and what is attached to them comes back with a workspace; what cannot be given back keeps it where it is.
func TestOwnersAndAttributesComeBackWithAWorkspace(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(h *stowHome){"git": func(*stowHome) {}, "plain": plainFork} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newStowHome(t)
			prepare(h)
			h.write(h.to, map[string]string{"in/new": "n\n", "theirs": "t\n"})
			dir, file, theirs := filepath.Join(h.to, "in"), filepath.Join(h.to, "in", "new"), filepath.Join(h.to, "theirs")
			for _, path := range []string{dir, file} {
				if err := unix.Lsetxattr(path, "user.note", []byte("mine"), 0); err != nil {
					t.Skip("needs a file system with extended attributes: ", err)
				}
			}
			if os.Geteuid() == 0 {
				must(t, os.Symlink("nowhere", filepath.Join(h.to, "link")))
				must(t, os.Lchown(filepath.Join(h.to, "link"), 1234, 1235))
				must(t, os.Chown(theirs, 1234, 1235))
				must(t, os.Chmod(theirs, 0o4755))
			}
			must(t, os.Chmod(file, 0o444))
			mark := func() string {
				var out strings.Builder
				for _, path := range []string{dir, file, theirs, filepath.Join(h.to, "link")} {
					info, err := os.Lstat(path)
					if err != nil {
						continue
					}
					user, group, _ := ownerOf(info)
					has, err := attributesOf(path)
					fmt.Fprintf(&out, "%s %v %d:%d %q %v\n", path, info.Mode(), user, group, has, err)
				}
				return out.String()
			}
			before := mark()
			if _, err := Stow(t.Context(), h.Keeper, h.to, isFree); err != nil {
				t.Fatal(err)
			}
			if said, err := Unstow(t.Context(), h.Keeper, h.id); err != nil || said != "" {
				t.Fatal(said, err)
			}
			if after := mark(); after != before || !strings.Contains(after, "mine") {
				t.Errorf("%s\nwant\n%s", after, before)
			}
			h.nothingLeft()
		})
	}
}

// A call that could run the filters of a repository is refused, unless it says that there are none.
func TestNoCallOfGitRunsFiltersByAccident(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, args := range [][]string{{"write-tree"}, {"-c", "core.sparseCheckout=false", "add", "-A"}, {"diff-files", "--quiet"}} {
		c := call{args: append([]string{"--git-dir=" + filepath.Join(b.dir(), ".git")}, args...)}
		if _, err := b.git.run(t.Context(), b.id, c); types.CodeOf(err) != types.ErrInternal || !strings.Contains(err.Error(), "filters") {
			t.Errorf("%q: %v", args, err)
		}
		c.env = inert(nil, false)
		if filters(b.git.base, c) {
			t.Errorf("%q is refused", args)
		}
	}
}
