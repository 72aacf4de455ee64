package daemon_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnix/ipc"
	"rnix/types"
)

// lingers is a server that tells when it starts and when it is to leave, and takes its time for that: to start as long as a file says so, and to
// leave as long as it is given.
const lingers = `#!/bin/sh
trap '' TERM
echo > starting
n=0
while [ -e slow ] && [ ! -e late ] && [ $n -lt 200 ]; do sleep 0.02; n=$((n+1)); done
` + counts + `
echo > leaving
while [ ! -e left ] && [ $n -lt 400 ]; do sleep 0.02; n=$((n+1)); done
`

// lingering has the daemon know that server.
func lingering(t *testing.T) *kindred {
	c := newKindred(t)
	c.s.Write("serve.sh", lingers)
	configure(t, c.s, "mcp.yaml", "servers:\n  counts:\n    command: sh\n    args: ["+filepath.Join(c.s.Work, "serve.sh")+"]\n")
	t.Cleanup(func() { c.s.Write("left", ""); c.s.Write("late", "") })
	return c
}

// appears waits until a file of the server is there.
func (c *kindred) appears(file string) {
	c.t.Helper()
	until(c.t, file, func() bool { return has(c.s, file) })
}

// beside runs a command beside the test, and returns what waits for it: nil if it has worked.
func (c *kindred) beside(args ...string) (wait func() []string) {
	wrong := make(chan []string, 1)
	go func() { wrong <- c.does(args...) }() // ends with the command
	return func() []string { return <-wrong }
}

// Whoever is resumed while its parent ends, or is being suspended, is resumed when that has left: no command is refused because it came at that moment.
func TestResumeWaitsForAParentThatLeaves(t *testing.T) { // B19
	for name, resume := range map[string][]string{"alone": {"resume", "p2"}, "as a tree": {"resume", "--subtree", "p1"}} {
		for how, leave := range map[string][]string{"is suspended": {"resume", "p1", "--max-steps", "40"}, "is killed": {"kill", "p1"}} {
			if name == "as a tree" && how == "is killed" { // there is no tree of it any more
				continue
			}
			t.Run(how+", its child is resumed "+name, func(t *testing.T) {
				c := lingering(t)
				top, kid := c.grow(&relative{name: "p1"}), c.grow(&relative{name: "p2"})
				c.shut("p1", "p2")
				c.s.Spawn(ipc.SpawnRequest{Intent: "p1", ProcSpec: types.ProcSpec{Name: "p1", Model: "fake"}, MCP: []string{"counts"}})
				c.runs("p1")
				c.s.Spawn(ipc.SpawnRequest{Intent: "p2", ProcSpec: types.ProcSpec{Name: "p2", Model: "fake"}, Parent: "p1"})
				c.runs("p2")
				arranged(t, c.does("pause", "p1"))
				if name == "alone" {
					arranged(t, c.does("kill", "-9", "p2"))
					until(t, "the child has ended", func() bool { return over(c.family()["p2"]) })
				} else {
					arranged(t, c.does("pause", "p2"))
				}
				leaves := c.beside(leave...)
				c.appears("leaving")
				for _, wrong := range c.does(resume...) {
					t.Error(wrong)
				}
				c.s.Write("left", "")
				for _, wrong := range leaves() {
					if !strings.Contains(wrong, "another client has resumed it") { // the other command was quicker, and did the same
						t.Error(wrong)
					}
				}
				c.open()
				for _, left := range append(c.ends(top), c.ends(kid)...) {
					t.Error(left)
				}
				for _, wrong := range c.judge(func(name string) bool { return name == "p1" && how == "is killed" }) {
					t.Error(wrong)
				}
			})
		}
	}
}

// A family that is resumed goes on whatever becomes of its head before all of it is there.
func TestFamilyIsResumedThoughItsHeadLeavesMeanwhile(t *testing.T) { // B19
	for how, leave := range map[string][]string{"is suspended": {"resume", "p1", "--max-steps", "40"}, "is killed": {"kill", "-9", "p1"}} {
		t.Run("the head "+how, func(t *testing.T) {
			c := lingering(t)
			c.s.Write("left", "")
			top, kid := c.grow(&relative{name: "p1"}), c.grow(&relative{name: "p2"})
			c.shut("p1", "p2")
			c.start(top)
			c.runs("p1")
			c.s.Spawn(ipc.SpawnRequest{Intent: "p2", ProcSpec: types.ProcSpec{Name: "p2", Model: "fake"}, Parent: "p1", MCP: []string{"counts"}})
			c.runs("p2")
			arranged(t, c.does("pause", "p2"))
			c.crash()
			c.runs("p1")
			arranged(t, c.does("pause", "p1"))
			c.s.Write("slow", "")
			if err := os.Remove(filepath.Join(c.s.Work, "starting")); err != nil {
				t.Fatal(err)
			}
			resumes := c.beside("resume", "--subtree", "p1")
			c.appears("starting")
			arranged(t, c.does(leave...))
			if how == "is killed" {
				until(t, "the head has ended", func() bool { return c.family()["p1"].State == "dead" })
			}
			c.s.Write("late", "")
			for _, wrong := range resumes() {
				if how == "is suspended" || !strings.Contains(wrong, "has ended") {
					t.Error(wrong)
				}
			}
			c.open()
			for _, left := range append(c.ends(top), c.ends(kid)...) {
				t.Error(left)
			}
			if p := c.family()["p2"]; p.Exit == nil || p.Exit.Code != types.ExitOK {
				t.Errorf("p2 has ended with %v", p.Exit)
			}
		})
	}
}

// A signal that comes while a process is being suspended counts: what is killed then has ended, and what is paused stays paused.
func TestSignalToAProcessThatIsBeingSuspendedCounts(t *testing.T) {
	for _, signal := range [][]string{{"kill", "-9"}, {"kill"}, {"pause"}, {"kill", "-9", "--subtree"}, {"pause", "--subtree"}} {
		t.Run(strings.Join(signal, " "), func(t *testing.T) {
			c := lingering(t)
			c.grow(&relative{name: "p1", turns: 3})
			c.s.Spawn(ipc.SpawnRequest{Intent: "p1", ProcSpec: types.ProcSpec{Name: "p1", Model: "fake", ContextBudget: new(150)}, MCP: []string{"counts"}})
			c.appears("leaving")
			arranged(t, c.does(append(signal, "p1")...))
			c.s.Write("left", "")
			c.rnix("budget", "add", "p1", "--tokens", "100000") // it is taken while it leaves; what has ended has none
			left := c.ends(&relative{name: "p1"})
			if p := c.family()["p1"]; signal[0] == "kill" && len(left) > 0 || signal[0] == "pause" && !standsPaused(p) {
				t.Errorf("it is %s (%s, %v)", p.State, p.Wait, p.Exit)
			}
		})
	}
}
