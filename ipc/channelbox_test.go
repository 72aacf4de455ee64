package ipc

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"rnix/internal/proc"
	"rnix/internal/sandbox"
)

// In a box there is no socket that could be connected to, and no way to make one.
func TestAChannelIsUsedFromABox(t *testing.T) {
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		t.Fatal(err)
	}
	m, err := proc.NewManager(filepath.Join(t.TempDir(), "children"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	m.Channels = proc.Channels{DataDir: "/data", Open: channelOn(t).Open}
	run := func(plan sandbox.Plan, c sandbox.Command) (proc.ExitInfo, string, string, error) {
		var out, errs bytes.Buffer
		child, err := m.Start(t.Context(), proc.Spec{Kind: proc.KindShell, Owner: 9, Path: c.Path, Args: c.Args, Dir: c.Dir, Env: append([]string{"GORACE=atexit_sleep_ms=0"}, c.Env...),
			Stdout: &out, Stderr: &errs, Box: &proc.Box{Plan: plan, Self: self}})
		if err != nil {
			return proc.ExitInfo{}, "", "", err
		}
		return child.Wait(), out.String(), errs.String(), nil
	}
	host := sandbox.Probe(t.Context(), func(_ context.Context, plan sandbox.Plan, c sandbox.Command) (int, string, error) {
		exit, _, errs, err := run(plan, c)
		return exit.Code, errs, err
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
			exit, out, errs, err := run(plan, sandbox.Command{Path: self, Env: []string{envRole + "=channel=" + channelPrefix + strconv.Itoa(proc.ChannelFD)}, Dir: dir})
			if err != nil || exit.Code != 0 || out != "9 true <nil>\n" {
				t.Errorf("%+v %q %q %v", exit, out, errs, err)
			}
		})
	}
}
