package proc

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rnix/internal/sandbox"
	"rnix/types"
)

func init() {
	for _, rung := range []sandbox.Rung{sandbox.RungBwrap, sandbox.RungLandlock} {
		helpers["boxed by "+string(rung)] = func(dir string) { daemonThatConfines(dir, rung) }
	}
}

// daemonThatConfines starts a child in a box whose parts print that they run, and waits to be killed. Of its plan only the rung is
// another's: the test that runs it has proved it.
func daemonThatConfines(dir string, rung sandbox.Rung) {
	m, err := NewManager(dir, nil)
	if err != nil {
		panic(err)
	}
	host := sandbox.Host{Program: sandbox.FindBwrap(os.Getenv("PATH")), Bwrap: sandbox.Proof{Proved: rung == sandbox.RungBwrap}, Landlock: sandbox.Proof{Proved: rung == sandbox.RungLandlock}}
	work := filepath.Join(filepath.Dir(dir), "work")
	plan, err := sandbox.MakePlan(sandbox.Standard(sandbox.Place{Work: work}), host, sandbox.Disk{})
	if err != nil {
		panic(err)
	}
	spec := sh(`setsid sh -c 'echo $$; exec sleep 1000' & (setsid sh -c 'echo $$; exec sleep 1000' &) ; echo $$; wait`, os.Stdout)
	spec.Dir, spec.Box = work, &Box{Plan: plan}
	if _, err := m.Start(context.Background(), spec); err != nil {
		panic(err)
	}
	select {}
}

func TestKilledDaemonLeavesNothingOfABox(t *testing.T) {
	boxes(t, func(t *testing.T, _ *Manager, _ string, box *Box) {
		top, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		dir, work := filepath.Join(top, "children"), filepath.Join(top, "work")
		if err := os.Mkdir(work, 0o755); err != nil {
			t.Fatal(err)
		}
		killedAfter(t, "boxed by "+string(box.Plan.Rung), dir, 3) // what they print are their pids in the box
		if held, err := os.ReadDir(work); err != nil || len(held) == 0 && box.Plan.Rung == sandbox.RungBwrap {
			t.Errorf("nothing was held: %v", err)
		}
		m, err := NewManager(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		left, err := m.ReapSurvivors()
		if err != nil || len(left) != 1 || left[0].Err != nil {
			t.Errorf("%+v %v", left, err)
		}
		for _, pid := range left[0].Killed {
			if s, ok := statOf(pid); ok && !s.dead() {
				t.Errorf("process %d lives", pid)
			}
		}
		if held, err := os.ReadDir(work); err != nil || len(held) != 0 {
			t.Errorf("left in the work directory: %v %v", held, err)
		}
	})
}

// boxes calls f once for each rung that works here, with what confines the children of a work directory by it.
func boxes(t *testing.T, f func(t *testing.T, m *Manager, work string, box *Box)) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	m := newManager(t)
	host := sandbox.Probe(t.Context(), func(ctx context.Context, plan sandbox.Plan, c sandbox.Command) (int, string, error) {
		errs := NewRing(4 << 10)
		child, err := m.Start(ctx, Spec{Kind: KindShell, Path: c.Path, Args: c.Args, Dir: c.Dir, Env: c.Env, Stderr: errs, Box: &Box{Plan: plan}})
		if err != nil {
			return 0, "", err
		}
		exit := child.Wait()
		return exit.Code, errs.String(), exit.Err
	}, self, sandbox.FindBwrap(os.Getenv("PATH")))
	for rung, proof := range map[sandbox.Rung]sandbox.Proof{sandbox.RungBwrap: host.Bwrap, sandbox.RungLandlock: host.Landlock} {
		t.Run(string(rung), func(t *testing.T) {
			if !proof.Proved {
				t.Skipf("needs a host where %s works: %s", rung, proof.Reason)
			}
			work, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			policy := sandbox.Standard(sandbox.Place{Work: work})
			policy.Level = sandbox.Level(rung)
			plan, err := sandbox.MakePlan(policy, host, sandbox.Disk{})
			if err != nil {
				t.Fatal(err)
			}
			f(t, newManager(t), work, &Box{Plan: plan})
		})
	}
}

// boxed is a script that is confined.
func boxed(script string, out *lines, work string, box *Box) Spec {
	spec := sh(script, nil)
	if out != nil {
		spec.Stdout = out
	}
	spec.Dir, spec.Box = work, box
	return spec
}

func TestBoxedChildIsOneLikeOthers(t *testing.T) {
	boxes(t, func(t *testing.T, m *Manager, work string, box *Box) {
		var out, errs bytes.Buffer
		spec := sh(`read x; echo "$x"; pwd; echo wrong >&2; test ! -e /proc/self/fd/3 || echo open; exit 7`, nil)
		spec.Dir, spec.Box, spec.Stdout, spec.Stderr, spec.Input = work, box, &out, &errs, []byte("in\n")
		if e := start(t, m, spec).Wait(); e.Code != 7 || e.Cause != Exited || e.Left != 0 || out.String() != "in\n"+work+"\n" || errs.String() != "wrong\n" {
			t.Errorf("exit is %+v, output %q, errors %q", e, &out, &errs)
		}
		outside := filepath.Join(filepath.Dir(work), "outside")
		start(t, m, boxed("echo x >"+outside, nil, work, box)).Wait()
		if _, err := os.Stat(outside); err == nil {
			t.Error("it has written outside of its box")
		}
	})
}

func TestBoxedChildThatCannotStartIsAnError(t *testing.T) {
	boxes(t, func(t *testing.T, m *Manager, work string, box *Box) {
		spec := boxed("", nil, work, box)
		spec.Path = filepath.Join(work, "none")
		if _, err := m.Start(t.Context(), spec); types.CodeOf(err) != types.ErrPermission || !strings.Contains(err.Error(), "none: no such file") {
			t.Error(err)
		}
		if all := m.All(); len(all) != 0 {
			t.Errorf("left behind: %+v", all)
		}
	})
}

func TestBoxedChildObeysSignals(t *testing.T) {
	boxes(t, func(t *testing.T, m *Manager, work string, box *Box) {
		out := newLines(t)
		c := start(t, m, boxed(`trap 'echo bye >said; exit 3' TERM; echo 1; while :; do sleep 0.01; done`, out, work, box))
		out.pid(t)
		if e := c.Stop(time.Minute); e.Code != 3 || e.Cause != Stopped {
			t.Errorf("exit is %+v", e)
		}
		if text, _ := os.ReadFile(filepath.Join(work, "said")); string(text) != "bye\n" {
			t.Errorf("it said %q", text)
		}
		out = newLines(t)
		c = start(t, m, boxed(`trap '' TERM; echo 1; while :; do sleep 0.01; done`, out, work, box))
		out.pid(t)
		if e := c.Stop(50 * time.Millisecond); e.Code != 128+int(syscall.SIGKILL) {
			t.Errorf("exit is %+v", e)
		}
	})
}

func TestNothingOfABoxIsLeft(t *testing.T) {
	boxes(t, func(t *testing.T, m *Manager, work string, box *Box) {
		for name, script := range map[string]string{
			"in the background": `sleep 1000 & setsid sleep 1000 & echo 1; until [ -e go ]; do :; done`,
			"orphans":           `setsid sh -c 'sleep 1000 & exit' ; env -i ` + lookup(t, "setsid") + ` ` + lookup(t, "sleep") + ` 1000 & echo 1; until [ -e go ]; do :; done`,
			"still running":     `setsid sleep 1000 & (setsid sh -c 'trap "" TERM; sleep 1000; sleep 1000' &) ; echo 1; exec sleep 1000`,
		} {
			out := newLines(t)
			c := start(t, m, boxed(script, out, work, box))
			out.pid(t)
			for len(c.tree.find()) < 3 { // what hides and is left before it was seen is ended with the daemon, of which this test has none
				<-time.After(time.Millisecond)
			}
			if name == "still running" {
				c.Kill()
			} else if err := os.WriteFile(filepath.Join(work, "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			c.Wait()
			if err := os.RemoveAll(filepath.Join(work, "go")); err != nil {
				t.Fatal(err)
			}
			c.tree.mu.Lock()
			for id := range c.tree.known {
				mustBeGone(t, id)
			}
			c.tree.mu.Unlock()
			mustBeGone(t, c.entry.Leader)
		}
	})
}

func TestBoxedChildStandsStill(t *testing.T) {
	boxes(t, func(t *testing.T, m *Manager, work string, box *Box) {
		out := newLines(t)
		c := start(t, m, boxed(`i=0; echo 1; (while :; do echo x >>ticks; done) & wait`, out, work, box))
		out.pid(t)
		size := func() int64 {
			s, err := os.Stat(filepath.Join(work, "ticks"))
			if err != nil {
				return 0
			}
			return s.Size()
		}
		for size() == 0 {
			<-time.After(time.Millisecond)
		}
		if n := c.freeze(); n < 2 {
			t.Errorf("%d processes stand still", n)
		}
		at := size()
		<-time.After(50 * time.Millisecond) // one that is not frozen writes thousands of lines
		if now := size(); now != at {
			t.Errorf("it went on, from %d to %d", at, now)
		}
		c.thaw()
		for size() == at {
			<-time.After(time.Millisecond)
		}
		c.freeze()
		if e := c.Kill(); e.Cause != Stopped {
			t.Errorf("exit is %+v", e)
		}
		mustBeGone(t, c.entry.Leader)
	})
}

func TestBoxedChildEndsWithItsContext(t *testing.T) {
	boxes(t, func(t *testing.T, m *Manager, work string, box *Box) {
		ctx, cancel := context.WithCancel(t.Context())
		c, err := m.Start(ctx, boxed("sleep 1000", nil, work, box))
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if e := c.Wait(); e.Cause != Cancelled {
			t.Errorf("exit is %+v", e)
		}
	})
}

// The first process of a box is one that the command sees: what it was started with is there to be read, and must not be what this program was started
// with, keys and all.
func TestABoxHasNothingOfTheEnvironmentOfThisProgram(t *testing.T) {
	t.Setenv("RNIX_TEST_CANARY", "canary-of-this-program")
	boxes(t, func(t *testing.T, m *Manager, work string, box *Box) {
		var out bytes.Buffer
		spec := boxed(`cat /proc/1/environ /proc/self/environ; for p in /proc/[0-9]*; do cat "$p/environ" 2>/dev/null; done; echo; echo read`, nil, work, box)
		spec.Stdout = &out
		c, err := m.Start(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		c.Wait()
		if text := out.String(); !strings.Contains(text, "read") || strings.Contains(text, "canary-of-this-program") {
			t.Errorf("%q", text)
		}
	})
}
