//go:build amd64 || arm64

package sandbox

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The test program is the inner helper, too, and the programs that attack from inside a box.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Word {
		os.Exit(Helper(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == attackWord {
		os.Exit(attackInside(os.Args[2:]))
	}
	goleak.VerifyTestMain(m)
}

// patience bounds each command of a test; none comes near it.
const patience = time.Minute

// output is what a command has done.
type output struct {
	status         int
	stdout, stderr string
}

// start starts a box and waits for it, as internal/proc does.
func start(ctx context.Context, b *Box, change func(*exec.Cmd)) (output, error) {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	c := exec.CommandContext(ctx, b.Path, b.Args...)
	c.Env = b.Env
	c.WaitDelay = time.Second // something left behind may hold the pipes
	if change != nil {
		change(c)
	}
	var out, errs bytes.Buffer
	stderr, printed, err := os.Pipe()
	if err != nil {
		return output{}, err
	}
	all := b.Inherited([3]*os.File{nil, nil, printed})
	if own := len(all) - 3; len(c.ExtraFiles) > own { // what a test gives it besides
		all = append(all, c.ExtraFiles[own:]...)
	}
	c.Stdout, c.Stderr, c.ExtraFiles = &out, all[2], all[3:]
	err = c.Start()
	_ = printed.Close()
	copied := make(chan struct{})
	go func() { // ends with the command, and is waited for
		defer close(copied)
		_, _ = io.Copy(&errs, stderr)
	}()
	if err == nil {
		if err = b.Started(); err != nil {
			_ = c.Wait()
		} else {
			err = c.Wait()
		}
	}
	_ = stderr.SetReadDeadline(time.Now().Add(c.WaitDelay)) // as above
	<-copied
	_ = stderr.Close()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok || errors.Is(err, exec.ErrWaitDelay) {
		_ = exit
		err = nil
	}
	status := -1
	if c.ProcessState != nil {
		status = c.ProcessState.ExitCode()
	}
	return output{status, out.String(), errs.String()}, err
}

// run is how the test probes; the program is that of the test.
func run(t testing.TB) Run {
	return func(ctx context.Context, plan Plan, c Command) (int, string, error) {
		b, err := plan.Open(c)
		if err != nil {
			return 0, "", err
		}
		out, err := start(ctx, b, nil)
		if _, e := b.Close(); err == nil {
			err = e
		}
		return out.status, out.stderr, err
	}
}

// programVariable names this test program as it is without the race detector: hundreds of helpers and attackers start, and none of them has
// a second goroutine.
const programVariable = "RNIX_TEST_SANDBOX"

// self returns the path of this test program.
func self(t testing.TB) string {
	t.Helper()
	path, err := os.Getenv(programVariable), error(nil)
	if path == "" {
		path, err = os.Executable()
	}
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// probed returns this host, with one rung only; it skips the test where that one is not offered.
func probed(t testing.TB, rung Rung) Host {
	t.Helper()
	h := Probe(t.Context(), run(t), self(t), FindBwrap(os.Getenv("PATH")))
	proof, other := h.Bwrap, RungLandlock
	if rung == RungLandlock {
		proof, other = h.Landlock, RungBwrap
	}
	if proof.Untried || strings.HasPrefix(proof.Reason, "it does not hold: ") { // the host offers it, and we do not confine with it
		t.Fatalf("%s: %s", rung, proof.Reason)
	}
	if !proof.Proved {
		t.Skipf("needs a host where %s works: %s", rung, proof.Reason)
	}
	return h.Without(other)
}

func eachRung(t *testing.T, f func(t *testing.T, h Host, rung Rung)) {
	for _, rung := range []Rung{RungBwrap, RungLandlock} {
		t.Run(string(rung), func(t *testing.T) { f(t, probed(t, rung), rung) })
	}
}

// directory returns a new directory with its real path.
func directory(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// write makes a file with the directories above it.
func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func lines(text string) []string { return strings.Split(strings.TrimSpace(text), "\n") }
