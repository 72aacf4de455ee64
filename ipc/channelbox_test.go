package ipc

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"rnix/internal/proc"
	"rnix/internal/sandbox"
	"rnix/types"
)

// In a box there is no socket that could be connected to, and no way to make one.
func TestAChannelIsUsedFromABox(t *testing.T) {
	l := channelOn(t)
	inBoxes(t, l.Open, nil, func(t *testing.T, run func(sandbox.Net, string) (int, string)) {
		if code, out := run(sandbox.NetNone, channelPrefix+strconv.Itoa(proc.ChannelFD)); code != 0 || out != "9 true <nil>\n" {
			t.Errorf("%d %q", code, out)
		}
	})
}

// A box with a network of its own, or with none, has no way to the loopback of this machine.
func TestARoadIsReachedWithTheNetworkAlone(t *testing.T) {
	var m *proc.Manager
	l := roadOn(t, func(pid int) (types.PID, bool) { return m.Owner(pid) })
	address, _ := openRoad(t, l, 9)
	inBoxes(t, l.Open, func(made *proc.Manager) { m = made }, func(t *testing.T, run func(sandbox.Net, string) (int, string)) {
		if code, out := run(sandbox.NetOpen, address); code != 0 || out != "9 true <nil>\n" {
			t.Errorf("%d %q", code, out)
		}
		if code, out := run(sandbox.NetNone, address); code != 1 || !strings.Contains(out, "the daemon does not listen here any more") && !strings.Contains(out, "as in a sandbox without a network") {
			t.Errorf("without the network: %d %q", code, out)
		}
	})
}

// inBoxes tries something with each mechanism: run plays a client with an address in a box that has this network, for process 9.
func inBoxes(t *testing.T, open func(types.PID) (*os.File, func(), error), made func(*proc.Manager), try func(t *testing.T, run func(sandbox.Net, string) (code int, out string))) {
	t.Helper()
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
	if m.Channels = (proc.Channels{DataDir: "/data", Open: open}); made != nil {
		made(m)
	}
	run := func(plan sandbox.Plan, c sandbox.Command) (proc.ExitInfo, string, string, error) {
		var out, errs bytes.Buffer
		child, err := m.Start(t.Context(), proc.Spec{Kind: proc.KindShell, Owner: 9, Path: c.Path, Args: c.Args, Dir: c.Dir, Env: append([]string{"GORACE=atexit_sleep_ms=0"}, c.Env...),
			Stdout: &out, Stderr: &errs, Box: &proc.Box{Plan: plan}})
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
			try(t, func(net sandbox.Net, address string) (int, string) {
				policy := sandbox.Standard(sandbox.Place{Work: dir, Temp: dir, Tools: []string{self}})
				policy.Net = net
				plan, err := sandbox.MakePlan(policy, h, sandbox.Disk{})
				if err != nil {
					t.Fatal(err)
				}
				exit, out, errs, err := run(plan, sandbox.Command{Path: self, Env: []string{envRole + "=channel=" + address}, Dir: dir})
				if err != nil {
					t.Fatalf("%q %v", errs, err)
				}
				return exit.Code, out
			})
		})
	}
}
