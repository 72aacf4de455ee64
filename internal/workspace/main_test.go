package workspace

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"rnix/internal/plumbing/gittest"
	"rnix/internal/proc"
	"rnix/internal/sandbox"
	"rnix/types"
)

// The test program is the inner helper of boxes, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.Word {
		os.Exit(sandbox.Helper(os.Args[2:]))
	}
	// As the daemon is: who adopts the orphans of its git need not read the process table to see that there are none.
	if err := proc.BecomeSubreaper(); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// bench is a keeper with a home of its own.
type bench struct {
	testing.TB
	*Keeper
	home string
	id   types.UUID
}

// remembered returns what the keeper remembers of the history.
func (b *bench) remembered() *history {
	b.turns.mu.Lock()
	defer b.turns.mu.Unlock()
	return b.turns.histories[b.id]
}

func newBench(t testing.TB, change ...func(*Options)) *bench {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	dir := real(t, t.TempDir())
	procs, err := proc.NewManager(filepath.Join(dir, "children"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(procs.Close)
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if boxed {
		confined(t, procs, home, dataOf(dir))
	}
	opts := Options{Procs: procs, Dir: filepath.Join(dir, "data"), Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}}
	for _, c := range change {
		c(&opts)
	}
	return &bench{t, New(opts), home, types.NewUUID()}
}

func real(t testing.TB, dir string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// dir returns a new empty directory.
func (b *bench) dir() string { b.Helper(); return real(b, b.TempDir()) }

// user runs the user's git.
func (b *bench) user(dir string, args ...string) string {
	b.Helper()
	out, err := b.try(dir, args...)
	if err != nil {
		b.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return out
}

func (b *bench) try(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.home, "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=u", "GIT_AUTHOR_EMAIL=u@x", "GIT_COMMITTER_NAME=u", "GIT_COMMITTER_EMAIL=u@x"}
	cmd.Env = append(cmd.Env, gittest.Quiet()...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// repo returns a repository with some files, all committed.
func (b *bench) repo(files map[string]string) string {
	b.Helper()
	dir := b.dir()
	b.write(dir, files)
	config, _ := os.ReadFile(filepath.Join(b.home, ".gitconfig")) // there is none, or it says what becomes of the files
	gittest.Commit(b, dir, string(config), func(args ...string) { b.user(dir, args...) })
	return dir
}

func (b *bench) write(dir string, files map[string]string) {
	b.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
}

func (b *bench) take(dir string, step int) Snapshot {
	b.Helper()
	s, err := b.Take(context.Background(), dir, b.id, step)
	if err != nil {
		b.Fatalf("Take of step %d: %v", step, err)
	}
	return s
}

func (b *bench) ref(s Snapshot, step int) Ref {
	return Ref{UUID: b.id, Step: step, Kind: s.Kind, ID: s.ID, Root: s.Root}
}

// restored writes a snapshot into a new directory and returns that.
func (b *bench) restored(ref Ref) string {
	b.Helper()
	to := filepath.Join(b.dir(), "to")
	rep, err := b.Restore(context.Background(), ref, to, RestoreOpts{})
	if err != nil || len(rep.Kept) > 0 {
		b.Fatalf("Restore of step %d: %v, kept %q", ref.Step, err, rep.Kept)
	}
	return to
}

// tree describes every file below a directory but .git and what skip names: type, x, and all bytes.
func tree(t testing.TB, dir string, skip ...string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		if d.Name() == ".git" || contains(skip, rel) {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err != nil || d.IsDir() {
			return err
		}
		if d.Type() == fs.ModeSymlink {
			target, err := os.Readlink(p)
			out[rel] = "link " + target
			return err
		}
		data, err := os.ReadFile(p)
		out[rel] = fmt.Sprintf("x=%v %x", info.Mode()&0o100 != 0, data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

func same(t testing.TB, what string, want, got map[string]string) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// belongings is everything of a repository that is the user's and not ours.
func (b *bench) belongings(dir string) map[string]string {
	b.Helper()
	gitDir := strings.TrimSpace(b.user(dir, "rev-parse", "--absolute-git-dir"))
	common := strings.TrimSpace(b.user(dir, "rev-parse", "--path-format=absolute", "--git-common-dir"))
	out := map[string]string{}
	for _, d := range []string{gitDir, common} {
		err := filepath.WalkDir(d, func(p string, e fs.DirEntry, err error) error {
			if os.IsNotExist(err) {
				return nil
			}
			if err != nil {
				return err
			}
			if e.IsDir() {
				return nil
			}
			data, err := os.ReadFile(p)
			out[p] = fmt.Sprintf("%x", sha256.Sum256(data))
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	out["status"] = b.user(dir, "--no-optional-locks", "status", "--porcelain=v2", "--branch", "--untracked-files=all")
	out["stash"] = b.user(dir, "stash", "list")
	out["refs"] = b.user(dir, "for-each-ref")
	return out
}
