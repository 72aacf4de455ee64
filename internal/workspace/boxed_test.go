package workspace

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"rnix/internal/gitbox"
	"rnix/internal/proc"
	"rnix/internal/sandbox"
)

// confined lets every git of a manager run in its box, as the daemon does. It skips the test where that cannot be.
func confined(t testing.TB, procs *proc.Manager, home, data string) *gitbox.Boxes {
	t.Helper()
	self, err := os.Getenv(programVariable), error(nil)
	if self == "" {
		self, err = os.Executable()
	}
	if err != nil {
		t.Fatal(err)
	}
	run := func(ctx context.Context, plan sandbox.Plan, c sandbox.Command) (int, string, error) {
		errs := proc.NewRing(4 << 10)
		child, err := procs.Start(ctx, proc.Spec{Kind: proc.KindShell, Path: c.Path, Args: c.Args, Dir: c.Dir, Env: c.Env, Stderr: errs, Box: &proc.Box{Plan: plan}})
		if err != nil {
			return 0, "", err
		}
		exit := child.Wait()
		return exit.Code, errs.String(), exit.Err
	}
	host := sandbox.Probe(t.Context(), run, self, "")
	if !host.Landlock.Proved {
		t.Skipf("needs a host where Landlock works: %s", host.Landlock.Reason)
	}
	boxes := &gitbox.Boxes{Host: func() sandbox.Host { return host }, Home: home, Data: data, Start: procs.Start, Log: slog.New(slog.DiscardHandler)}
	proc.Confine(procs, boxes.Box)
	return boxes
}

// programVariable names the program that is the helper of boxes; else it is this one. Figures are those of the real program.
const programVariable = "RNIX_TEST_PROGRAM"

// boxed says that this run of the tests confines every git; see newBench.
var boxed = os.Getenv("RNIX_TEST_BOXED") != ""

func dataOf(dir string) string { return filepath.Join(dir, "data") }

// BenchmarkGit measures what a box adds to a git, by what it may start.
func BenchmarkGit(b *testing.B) {
	for _, c := range []struct {
		name  string
		boxed bool
		call  call
	}{
		{"bare", false, call{args: []string{"rev-parse", "HEAD"}}},
		{"looks", true, call{args: []string{"rev-parse", "HEAD"}}},
		{"writes", true, call{args: []string{"update-ref", "refs/x", "HEAD"}}},
		{"tools", true, call{user: true, mine: true, args: []string{"update-index", "-q", "--refresh"}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := newBench(b)
			repo := w.repo(map[string]string{"a.txt": "a\n"})
			if c.boxed {
				confined(b, w.opts.Procs, w.home, w.opts.Dir)
			}
			call := c.call
			call.dir = repo
			if !call.user {
				call.args = append([]string{"--git-dir=" + filepath.Join(repo, ".git")}, call.args...)
			}
			if call.mine {
				call.env = inert(nil, true)
			}
			for b.Loop() {
				if _, err := w.git.run(b.Context(), w.id, call); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
