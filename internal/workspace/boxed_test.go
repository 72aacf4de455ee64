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
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := func(ctx context.Context, plan sandbox.Plan, c sandbox.Command) (int, string, error) {
		errs := proc.NewRing(4 << 10)
		child, err := procs.Start(ctx, proc.Spec{Kind: proc.KindShell, Path: c.Path, Args: c.Args, Dir: c.Dir, Env: c.Env, Stderr: errs, Box: &proc.Box{Plan: plan, Self: self}})
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
	boxes := &gitbox.Boxes{Host: func() sandbox.Host { return host }, Self: self, Home: home, Data: data, Start: procs.Start, Log: slog.New(slog.DiscardHandler)}
	proc.Confine(procs, boxes.Box)
	return boxes
}

// boxed says that this run of the tests confines every git; see newBench.
var boxed = os.Getenv("RNIX_TEST_BOXED") != ""

func dataOf(dir string) string { return filepath.Join(dir, "data") }
