package ipc

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"rnix/internal/proc"
	"rnix/internal/sandbox"
)

// runBox runs a box, which is given a file under a number, and returns its exit status and what it wrote.
func runBox(ctx context.Context, b *sandbox.Box, number int, file *os.File) (status int, stdout, stderr string, err error) {
	c := exec.CommandContext(ctx, b.Path, b.Args...)
	c.Env = append([]string{"GORACE=atexit_sleep_ms=0"}, b.Env...)
	c.ExtraFiles = slices.Clone(b.Files)
	if file != nil {
		c.ExtraFiles = append(c.ExtraFiles, make([]*os.File, number-3-len(c.ExtraFiles))...)
		c.ExtraFiles = append(c.ExtraFiles, file)
	}
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err = c.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); exited {
		err = nil
	}
	return c.ProcessState.ExitCode(), out.String(), errs.String(), err
}

// In a box there is no socket that could be connected to, and no way to make one.
func TestAChannelIsUsedFromABox(t *testing.T) {
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		t.Fatal(err)
	}
	host := sandbox.Probe(t.Context(), func(ctx context.Context, b *sandbox.Box) (int, string, error) {
		status, _, stderr, err := runBox(ctx, b, 0, nil)
		return status, stderr, err
	}, self, sandbox.FindBwrap(os.Getenv("PATH")))
	for rung, proof := range map[sandbox.Rung]sandbox.Proof{sandbox.RungBwrap: host.Bwrap, sandbox.RungLandlock: host.Landlock} {
		t.Run(string(rung), func(t *testing.T) {
			if !proof.Proved {
				t.Skipf("needs a host where %s works: %s", rung, proof.Reason)
			}
			h := host.Without(sandbox.RungLandlock)
			if rung == sandbox.RungLandlock {
				h = host.Without(sandbox.RungBwrap)
			}
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			plan, err := sandbox.MakePlan(sandbox.Standard(sandbox.Place{Work: dir, Temp: dir, Tools: []string{self}}), h, sandbox.Disk{})
			if err != nil {
				t.Fatal(err)
			}
			_, child, _ := openChannel(t, channelOn(t), 9)
			b, err := plan.Open(self, sandbox.Command{Path: self, Env: []string{envRole + "=channel=" + channelPrefix + strconv.Itoa(proc.ChannelFD)}, Dir: dir, Keep: []int{proc.ChannelFD}})
			if err != nil {
				t.Fatal(err)
			}
			status, out, errs, err := runBox(t.Context(), b, proc.ChannelFD, child)
			if err != nil || status != 0 || out != "9 true <nil>\n" {
				t.Errorf("%d %q %q %v", status, out, errs, err)
			}
			if _, err := b.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
