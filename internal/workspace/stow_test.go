package workspace

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"rnix/internal/plumbing"
	"rnix/types"
)

// portrait is all that can be seen of a workspace: each entry with its permissions and its bytes, and what git says of it.
func portrait(b *bench, dir string) map[string]string {
	b.Helper()
	out := map[string]string{}
	must(b, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		if d.Name() == ".git" {
			out[rel] = "git's"
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		out[rel] = info.Mode().String()
		switch {
		case d.Type() == fs.ModeSymlink:
			target, err := os.Readlink(p)
			out[rel] += " " + target
			return err
		case info.Mode().IsRegular():
			data, err := os.ReadFile(p)
			out[rel] += fmt.Sprintf(" %x", data)
			return err
		}
		return nil
	}))
	if _, err := os.Lstat(filepath.Join(dir, ".git")); err != nil {
		return out
	}
	for _, args := range []string{"status --porcelain=v2 --branch --untracked-files=all --ignored", "ls-files -s -v", "rev-parse HEAD", "diff --cached", "diff", "reflog", "sparse-checkout list", "log --all --oneline", "for-each-ref refs/heads", "fsck --no-dangling"} {
		text, _ := b.try(dir, strings.Fields("--no-optional-locks "+args)...) // what a repository cannot say it says again
		out["git "+args] = text
	}
	return out
}

func isFree() error { return nil }

// stowHome is a bench with a repository, of which a fork was made.
type stowHome struct {
	*bench
	repo, to string
}

func newStowHome(t *testing.T, change ...func(*Options)) *stowHome {
	b := newBench(t, change...)
	h := &stowHome{bench: b, repo: b.repo(map[string]string{"a": "1\n", "b": "2\n", "in/f": "f\n", "out/f": "f\n", ".gitignore": "*.o\n"})}
	h.to = forked(b, h.repo)
	return h
}

// nothingLeft checks that no rescue and nothing that was put away is left.
func (h *stowHome) nothingLeft() {
	h.Helper()
	all, err := h.List(h.Context(), h.id)
	for _, s := range all {
		if s.Rescue {
			h.Errorf("a rescue is left: %+v", s)
		}
	}
	left, _ := os.ReadDir(stowDir(h.git))
	aside, _ := filepath.Glob(filepath.Join(filepath.Dir(h.to), ".gone-*"))
	refs, _ := filepath.Glob(filepath.Join(h.git.base, "stores", "*", "repo.git", "refs", "rnix", "rescue", "*", "*"))
	if err != nil || len(left)+len(aside)+len(refs) > 0 {
		h.Errorf("left: %v %v %v %v", left, aside, refs, err)
	}
}

// stowStates are states of a workspace that is put away and comes back as it was.
var stowStates = map[string]func(h *stowHome){
	"as it was made": func(*stowHome) {},
	"work of all kinds": func(h *stowHome) {
		h.write(h.to, map[string]string{"a": "changed\n", "new": "n\n", "deep/er/new": "n\n", "x.o": strings.Repeat("o", 2*smallFile), "y.o": "small", "staged": "s\n", ".agent/state.json": "{}"})
		h.user(h.to, "add", "staged")
		h.write(h.to, map[string]string{"staged": "and changed\n"})
		must(h, os.Remove(filepath.Join(h.to, "b")))
		must(h, os.Symlink("nowhere", filepath.Join(h.to, "link")))
		must(h, os.MkdirAll(filepath.Join(h.to, "empty/deep"), 0o755))
		must(h, os.Mkdir(filepath.Join(h.to, "shut"), 0o700))
		must(h, os.Chmod(filepath.Join(h.to, "new"), 0o600))
		must(h, os.Chmod(filepath.Join(h.to, "deep/er/new"), 0o755))
		must(h, os.Chmod(filepath.Join(h.to, "a"), 0o755|fs.ModeSetuid))
		must(h, os.Chmod(filepath.Join(h.to, "in"), 0o755|fs.ModeSetgid))
	},
	"on a branch with commits": func(h *stowHome) {
		h.user(h.to, "checkout", "-q", "-b", "rnix/x")
		h.write(h.to, map[string]string{"a": "mine\n"})
		h.user(h.to, "commit", "-qam", "mine")
		h.write(h.to, map[string]string{"a": "mine, and more\n"})
	},
	"detached, and a commit that nothing holds": func(h *stowHome) {
		h.write(h.to, map[string]string{"a": "first\n"})
		h.user(h.to, "commit", "-qam", "left behind")
		h.user(h.to, "reset", "-q", "--hard", "HEAD^")
		h.write(h.to, map[string]string{"a": "second\n"})
		h.user(h.to, "commit", "-qam", "checked out")
	},
	"sparse": func(h *stowHome) {
		h.user(h.to, "sparse-checkout", "set", "in")
		h.write(h.to, map[string]string{"in/f": "changed\n"})
	},
	"with an empty submodule": func(h *stowHome) {
		sub := h.bench.repo(map[string]string{"s": "s\n"})
		h.user(h.to, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", sub, "sub")
		h.user(h.to, "commit", "-qm", "sub")
		head := strings.TrimSpace(h.user(h.to, "rev-parse", "HEAD"))
		must(h, os.RemoveAll(filepath.Join(plumbing.Registration(filepath.Join(h.repo, ".git"), h.to), "modules")))
		h.user(h.repo, "worktree", "remove", "--force", h.to)
		h.user(h.repo, "worktree", "add", "-q", "--detach", h.to, head)
	},
	"a fork of a fork": func(h *stowHome) {
		first := h.to
		h.write(first, map[string]string{"a": "of the first\n"})
		h.to = filepath.Join(filepath.Dir(first), "second")
		_, err := h.Checkout(h.Context(), h.id, h.ref(h.take(first, 2), 2), h.to)
		must(h, err)
		h.write(h.to, map[string]string{"new": "of the second\n"})
	},
	"plain": func(h *stowHome) {
		plain := h.dir()
		h.write(plain, map[string]string{"a": "1\n", "deep/b": "2\n"})
		h.to = forked(h.bench, plain)
		h.write(h.to, map[string]string{"new": "n\n"})
		must(h, os.Mkdir(filepath.Join(h.to, "empty"), 0o700))
		must(h, os.Chmod(filepath.Join(h.to, "a"), 0o640))
		must(h, os.Mkdir(filepath.Join(h.to, "shared"), 0o755))
		must(h, os.Chmod(filepath.Join(h.to, "shared"), 0o777|fs.ModeSticky))
	},
}

// A workspace that is put away is gone, with what its repository knew of it, and comes back as it was; then nothing of the way is left.
func TestAWorkspaceThatIsPutAwayComesBackAsItWas(t *testing.T) { // B5, C-6
	t.Parallel()
	for name, prepare := range stowStates {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newStowHome(t)
			prepare(h)
			before := portrait(h.bench, h.to)
			if freed, err := Stow(t.Context(), h.Keeper, h.to, isFree); err != nil || freed == 0 {
				t.Fatal(freed, err)
			}
			if _, err := os.Lstat(h.to); !os.IsNotExist(err) {
				t.Errorf("it is there: %v", err)
			}
			if list := h.user(h.repo, "worktree", "list"); strings.Contains(list, h.to+" ") {
				t.Errorf("its repository knows it: %s", list)
			}
			h.user(h.repo, "gc", "-q", "--prune=now")
			if swept, err := h.Sweep(t.Context()); err != nil {
				t.Errorf("%+v %v", swept, err)
			}
			again := New(h.opts) // the next daemon
			if notes := SettleStowed(t.Context(), again); len(notes) > 0 {
				t.Error(notes)
			}
			h.Keeper = again
			if said, err := Unstow(t.Context(), h.Keeper, h.id); err != nil || said != "" {
				t.Fatal(said, err)
			}
			same(t, "what came back", before, portrait(h.bench, h.to))
			h.nothingLeft()
			if said, err := Unstow(t.Context(), h.Keeper, h.id); err != nil || said != "" {
				t.Error("again:", said, err)
			}
			if _, err := h.Remove(t.Context(), h.to); err != nil && !strings.Contains(err.Error(), "too large") {
				t.Errorf("what came back cannot be removed: %v", err)
			}
		})
	}
}

// What cannot be kept keeps a workspace where it is, as it is, and nothing is left of the try.
func TestAWorkspaceOfWhichNotAllCanBeKeptStays(t *testing.T) {
	t.Parallel()
	for want, prepare := range map[string]func(h *stowHome){
		"another repository": func(h *stowHome) {
			h.write(h.to, map[string]string{"nested/n": "n\n"})
			h.user(filepath.Join(h.to, "nested"), "init", "-q")
		},
		"it holds a repository": func(h *stowHome) { // a plain directory
			plain := h.dir()
			h.write(plain, map[string]string{"a": "1\n"})
			h.to = forked(h.bench, plain)
			h.write(h.to, map[string]string{"nested/n": "n\n"})
			h.user(filepath.Join(h.to, "nested"), "init", "-q")
		},
		`"sub/`: func(h *stowHome) {
			sub := h.bench.repo(map[string]string{"s": "s\n"})
			h.user(h.to, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", sub, "sub")
			h.user(h.to, "commit", "-qm", "sub")
		},
		`in the submodule "sub"`: func(h *stowHome) {
			sub := h.bench.repo(map[string]string{"s": "s\n"})
			h.user(h.to, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", sub, "sub")
			h.user(h.to, "commit", "-qm", "sub")
			h.write(h.to, map[string]string{"sub/s": "changed\n"})
		},
		`"pipe" is in no rescue`:  func(h *stowHome) { must(h, syscall.Mkfifo(filepath.Join(h.to, "pipe"), 0o600)) },
		"too large for a rescue":  func(h *stowHome) { h.write(h.to, map[string]string{"x.o": strings.Repeat("x", 3<<20)}) },
		`"large" is in no rescue`: func(h *stowHome) { h.write(h.to, map[string]string{"large": strings.Repeat("x", 3<<20)}) },
		"is locked":               func(h *stowHome) { h.user(h.repo, "worktree", "lock", h.to) },
		"half-way (CHERRY_PICK_HEAD)": func(h *stowHome) {
			h.write(h.repo, map[string]string{"a": "theirs\n"})
			h.user(h.repo, "commit", "-qam", "theirs")
			h.write(h.to, map[string]string{"a": "mine\n"})
			h.user(h.to, "commit", "-qam", "mine")
			_, _ = h.try(h.to, "cherry-pick", "main") // a conflict
		},
		"not the linked work tree": func(h *stowHome) {
			must(h, os.Remove(filepath.Join(h.to, ".git")))
			h.user(h.to, "init", "-q")
		},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			h := newStowHome(t, func(o *Options) { o.MaxCopyBytes = 2 << 20 })
			prepare(h)
			before := portrait(h.bench, h.to)
			if _, err := Stow(t.Context(), h.Keeper, h.to, isFree); types.CodeOf(err) != types.ErrConflict || !strings.Contains(err.Error(), want) {
				t.Errorf("%v", err)
			}
			same(t, "what stays", before, portrait(h.bench, h.to))
			h.nothingLeft()
		})
	}
}

// What stands in the way of a workspace that is to come back is named, with a way to its files, and nothing is changed; without it all is as it was.
func TestAWorkspaceThatCannotComeBackIsNotLost(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct{ in, out func(h *stowHome) }{
		"something else is in its place": {func(h *stowHome) { h.write(h.to, map[string]string{"mine": "m"}) }, func(h *stowHome) { must(h, os.RemoveAll(h.to)) }},
		"was moved from": {func(h *stowHome) { h.user(h.repo, "branch", "-f", "rnix/x", "main") }, func(h *stowHome) {
			h.user(h.repo, "branch", "-m", "rnix/x", "other")
		}},
		"is checked out in":       {func(h *stowHome) { h.user(h.repo, "checkout", "-q", "rnix/x") }, func(h *stowHome) { h.user(h.repo, "checkout", "-q", "main") }},
		"is gone: move that back": {func(h *stowHome) { must(h, os.Rename(h.repo, h.repo+"-away")) }, func(h *stowHome) { must(h, os.Rename(h.repo+"-away", h.repo)) }},
		"": {func(h *stowHome) {
			h.user(h.repo, "branch", "-D", "rnix/x")
			h.user(h.repo, "gc", "-q", "--prune=now")
		}, nil},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			h := newStowHome(t)
			stowStates["on a branch with commits"](h)
			before := portrait(h.bench, h.to)
			if _, err := Stow(t.Context(), h.Keeper, h.to, isFree); err != nil {
				t.Fatal(err)
			}
			c.in(h)
			said, err := Unstow(t.Context(), h.Keeper, h.id)
			if c.out == nil {
				if err != nil || !strings.Contains(said, "its branch rnix/x was gone, and was made again") {
					t.Fatal(said, err)
				}
			} else {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Fatalf("%q %v", said, err)
				}
				_, command, _ := strings.Cut(err.Error(), "can be had with: git ")
				back := filepath.Join(h.dir(), "back")
				h.user(h.home, strings.Fields(strings.NewReplacer(" DIR ", " "+back+" ", "'", "").Replace(command))...)
				if text, err := os.ReadFile(filepath.Join(back, "a")); err != nil || string(text) != "mine, and more\n" {
					t.Errorf("by the command: %q %v", text, err)
				}
				h.user(h.home, "--git-dir="+strings.Trim(strings.Fields(command)[0][len("--git-dir="):], "'"), "worktree", "remove", "--force", back)
				c.out(h)
				if _, err := Unstow(t.Context(), h.Keeper, h.id); err != nil {
					t.Fatal(err)
				}
			}
			after := portrait(h.bench, h.to)
			for _, name := range []string{"git log --all --oneline", "git for-each-ref refs/heads"} { // the user's branches
				delete(before, name)
				delete(after, name)
			}
			same(t, "what came back", before, after)
			h.nothingLeft()
		})
	}
}

// A history that is deleted leaves of what was put away one rescue, without the large files that git ignores, and a branch only if it holds commits.
func TestAWorkspaceThatIsGivenUpLeavesItsWork(t *testing.T) {
	t.Parallel()
	for _, work := range []bool{false, true} {
		h := newStowHome(t)
		branch, _, err := NewGrove(h.Keeper).Branch(t.Context(), h.id, h.to, filepath.Join(h.repo, ".git"), "rnix/x")
		must(t, err)
		h.write(h.to, map[string]string{"new": "n\n", "x.o": strings.Repeat("o", 2*smallFile)})
		if work {
			h.user(h.to, "commit", "-qam", "work", "--allow-empty")
		}
		if _, err := Stow(t.Context(), h.Keeper, h.to, isFree); err != nil {
			t.Fatal(err)
		}
		rec, err := Release(t.Context(), h.Keeper, h.id)
		if err != nil || rec == nil {
			t.Fatal(rec, err)
		}
		if HasBranch(t.Context(), h.Keeper, h.id, Tree{Common: filepath.Join(h.repo, ".git"), Branch: branch}) != work {
			t.Errorf("with work %v: the branch", work)
		}
		all, err := h.List(t.Context(), h.id)
		n := 0
		for _, s := range all {
			if s.Rescue && !s.Away && s.ID == rec.ID {
				n++
			} else if s.Rescue {
				t.Errorf("left: %+v", s)
			}
		}
		files := tree(t, h.restored(rec.Ref))
		if _, large := files["x.o"]; err != nil || n != 1 || large || files["new"] == "" {
			t.Errorf("%d rescues, %v, %v", n, files, err)
		}
		if again, err := Release(t.Context(), h.Keeper, h.id); again != nil || err != nil {
			t.Errorf("again: %+v %v", again, err)
		}
	}
}
