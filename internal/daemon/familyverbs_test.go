package daemon_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rnix/ipc"
	"rnix/types"
)

// does runs a command that must work, and says what is wrong if it does not.
func (c *kindred) does(args ...string) []string {
	c.t.Helper()
	code, text := c.rnix(args...)
	if code == types.ExitOK {
		return nil
	}
	return []string{fmt.Sprintf("rnix %s: exit %d: %s", strings.Join(args, " "), code, text)}
}

// couple is a parent that waits for a child, whose model thinks until the gates are opened.
func couple(t *testing.T, back bool) (c *kindred, top *relative) {
	c = newKindred(t)
	kid := []*relative{{name: "p1x1", turns: 1}}
	if top = (&relative{name: "p1", turns: 1}); back {
		top.back = kid
	} else {
		top.front = kid
	}
	c.grow(top)
	c.shut("p1x1")
	c.start(top)
	c.runs("p1", "p1x1")
	return c, top
}

// whole opens the gates, and says which members do not come to their end, once and whole.
func (c *kindred) whole(top *relative) (wrong []string) {
	c.t.Helper()
	c.open()
	if left := c.ends(top); len(left) > 0 {
		return left
	}
	wrong = c.judge(func(string) bool { return false })
	f := c.family()
	for _, m := range top.all() {
		if p := f[m.name]; p.Exit == nil || p.Exit.Code != types.ExitOK {
			wrong = append(wrong, fmt.Sprintf("%s has ended with %v", m.name, p.Exit))
		}
	}
	return wrong
}

// arranged fails the test if a step that leads to a scenario does not work.
func arranged(t *testing.T, wrong []string) {
	t.Helper()
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
}

// names reports whether a text says of which process it speaks.
func names(text string, p ipc.Proc) bool {
	return strings.Contains(text, "PID "+p.PID.String()) || strings.Contains(text, p.Name)
}

// A process is what each of its PIDs names, also when it was suspended and resumed in one life of the daemon.
func TestProcessIsNamedByItsPIDHoweverItWasSuspended(t *testing.T) { // A1
	parked := func(t *testing.T) (c *kindred, top *relative, pid string) {
		c, top = couple(t, false)
		arranged(t, c.does("pause", "p1x1"))
		c.crash()
		until(t, "p1 is suspended, as its child is", func() bool { return c.family()["p1"].State == "suspended" })
		return c, top, c.family()["p1"].PID.String()
	}
	t.Run("suspended, it is killed", func(t *testing.T) {
		c, _, pid := parked(t)
		arranged(t, c.does("kill", "-9", pid))
	})
	t.Run("running again, it is paused", func(t *testing.T) {
		c, top, pid := parked(t)
		arranged(t, c.does("resume", "p1x1"))
		c.runs("p1")
		if now := c.family()["p1"].PID.String(); now == pid {
			t.Fatalf("PID %s is that of its last run", now)
		}
		wrong := c.does("pause", pid)
		if standsPaused(c.family()["p1"]) {
			arranged(t, c.does("resume", pid))
		}
		for _, w := range c.whole(top) {
			t.Error(w)
		}
		allRight(t, wrong)
	})
}

// What a person has paused as a tree goes on as a tree, or the person is told what does not.
func TestFamilyOfWhichTheHeadIsResumedGoesOnOrTellsWhatStaysPaused(t *testing.T) { // A2
	c, _ := couple(t, false)
	arranged(t, c.does("pause", "--subtree", "p1"))
	code, text := c.rnix("resume", "p1")
	var wrong []string
	if code != types.ExitOK {
		wrong = append(wrong, text)
	}
	if kid := c.family()["p1x1"]; standsPaused(kid) && !names(text, kid) {
		wrong = append(wrong, fmt.Sprintf("p1x1 stays paused, p1 waits for it, and all that was said is: %s", text))
	}
	allRight(t, wrong)
}

// A tree that is paused is resumed as a tree, also when another daemon has come meanwhile.
func TestPausedFamilyIsResumedAfterARestart(t *testing.T) { // B2
	for name, resume := range map[string]func(c *kindred) []string{
		"as a tree": func(c *kindred) []string { return c.does("resume", "--subtree", "p1") },
		"the head, then the child": func(c *kindred) (wrong []string) {
			code, text := c.rnix("resume", "p1")
			if kid := c.family()["p1x1"]; code != types.ExitOK || standsPaused(kid) && !names(text, kid) {
				wrong = append(wrong, fmt.Sprintf("exit %d, and p1x1, for which p1 waits, is %s (%s): %s", code, kid.State, kid.Wait, text))
			}
			until(t, "p1 has found what it waits for", func() bool { f := c.family(); return f["p1"].State == "suspended" || !standsPaused(f["p1x1"]) })
			if standsPaused(c.family()["p1x1"]) {
				arranged(t, c.does("resume", "p1x1"))
			}
			return wrong
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, top := couple(t, false)
			arranged(t, c.does("pause", "--subtree", "p1"))
			c.crash()
			if f := c.family(); !standsPaused(f["p1"]) || !standsPaused(f["p1x1"]) {
				t.Fatalf("%+v", f)
			}
			wrong := resume(c)
			allRight(t, append(wrong, c.whole(top)...))
		})
	}
	t.Run("the child, which takes its parent along", func(t *testing.T) {
		c, top := couple(t, false)
		arranged(t, c.does("pause", "--subtree", "p1"))
		c.crash()
		arranged(t, c.does("resume", "p1x1"))
		for _, w := range c.whole(top) {
			t.Error(w)
		}
	})
}

// The children of a supervisor that is paused as a tree go on with it after a restart.
func TestPausedSupervisorIsResumedWithItsChildrenAfterARestart(t *testing.T) { // B2
	c := newKindred(t)
	a, b := c.grow(&relative{name: "s1", turns: 1}), c.grow(&relative{name: "s2", turns: 1})
	c.shut("s1", "s2")
	supervise(t, c.s, "supervisors: [{name: top, children: [{name: s1, intent: s1, model: m, restart: temporary}, {name: s2, intent: s2, model: m, restart: temporary}]}]")
	c.runs("s1", "s2")
	arranged(t, c.does("pause", "--subtree", "top"))
	c.crash()
	if f := c.family(); !standsPaused(f["s1"]) || !standsPaused(f["s2"]) {
		t.Fatalf("%+v", f)
	}
	wrong := c.does("resume", "--subtree", "top")
	c.open()
	wrong = append(append(wrong, c.ends(a)...), c.ends(b)...)
	allRight(t, append(append(wrong, c.whole(a)...), c.whole(b)...))
}

// slowly is the beginning of a server that takes its time while a file says so: until another one is there, or for two seconds.
const slowly = `#!/bin/sh
n=0
while [ -e slow ] && [ ! -e late ] && [ $n -lt 100 ]; do sleep 0.02; n=$((n+1)); done
`

// A killed child is resumed although its parent is paused, and however long that takes: nobody above it ends meanwhile and takes it
// along.
func TestKilledChildOfAPausedParentIsResumed(t *testing.T) { // B3
	c := newKindred(t)
	top, kid := c.grow(&relative{name: "p1"}), c.grow(&relative{name: "p2"})
	c.shut("p1", "p2")
	c.start(top)
	c.s.Write("serve.sh", slowly+strings.TrimPrefix(counts, "#!/bin/sh\n"))
	configure(t, c.s, "mcp.yaml", "servers:\n  counts:\n    command: sh\n    args: ["+filepath.Join(c.s.Work, "serve.sh")+"]\n")
	c.s.Spawn(ipc.SpawnRequest{Intent: "p2", ProcSpec: types.ProcSpec{Name: "p2", Model: "fake"}, Parent: "p1", MCP: []string{"counts"}})
	c.runs("p1", "p2")
	arranged(t, c.does("pause", "p1"))
	arranged(t, c.does("kill", "-9", "p2"))
	until(t, "the child has ended", func() bool { p := c.family()["p2"]; return p.State == "zombie" || p.State == "dead" })
	c.open()
	c.s.Write("slow", "")
	watched := make(chan struct{})
	go func() { // ends with the parent, or when the test says so
		defer close(watched)
		for tick := time.NewTicker(10 * time.Millisecond); !over(c.family()["p1"]) && !has(c.s, "late"); <-tick.C {
		}
		c.s.Write("late", "")
	}()
	wrong := c.does("resume", "p2")
	if len(wrong) > 0 && !standsPaused(c.family()["p1"]) {
		wrong = append(wrong, "p1 was paused, and is not any more, although nothing was resumed")
	}
	c.s.Write("late", "")
	<-watched
	wrong = append(wrong, c.ends(kid)...)
	if standsPaused(c.family()["p1"]) {
		arranged(t, c.does("resume", "p1"))
	}
	wrong = append(append(wrong, c.ends(top)...), c.whole(kid)...)
	allRight(t, append(wrong, c.whole(top)...))
}

// A tree is paused as a tree, also if its head is only on disk, or was.
func TestTreeWithItsHeadOnDiskIsPausedAsATree(t *testing.T) { // B7
	t.Run("it is", func(t *testing.T) {
		c, top := couple(t, true)
		arranged(t, c.does("pause", "p1"))
		c.crash()
		c.runs("p1x1")
		for _, w := range c.pausedWhole(top, "p1x1") {
			t.Error(w)
		}
	})
	t.Run("it was, and goes on", func(t *testing.T) {
		c, top := parted(t)
		allRight(t, c.pausedWhole(top, "p1", "p1x1", "p1x2"))
	})
}

// pausedWhole pauses a tree, says which of its members are not paused then, and lets them go on.
func (c *kindred) pausedWhole(top *relative, all ...string) []string {
	c.t.Helper()
	wrong := c.does("pause", "--subtree", top.name)
	f := c.family()
	for _, name := range all {
		if p := f[name]; !standsPaused(p) {
			wrong = append(wrong, fmt.Sprintf("%s is %s (%s)", name, p.State, p.Wait))
		}
	}
	below := top.all()
	slices.Reverse(below)
	for _, m := range below {
		if standsPaused(c.family()[m.name]) {
			arranged(c.t, c.does("resume", m.name))
		}
	}
	for _, w := range c.whole(top) {
		c.t.Error(w)
	}
	return wrong
}

// parted is a parent that was suspended while a child in the background ran, and goes on.
func parted(t *testing.T) (c *kindred, top *relative) {
	c = newKindred(t)
	top = c.grow(&relative{name: "p1", front: []*relative{{name: "p1x1"}}, back: []*relative{{name: "p1x2"}}})
	c.shut("p1x1", "p1x2")
	c.start(top)
	c.runs("p1", "p1x1", "p1x2")
	arranged(t, c.does("pause", "p1x1"))
	c.crash()
	until(t, "p1 is suspended, as the child is for which it waits", func() bool { return c.family()["p1"].State == "suspended" })
	arranged(t, c.does("resume", "p1x1"))
	c.runs("p1", "p1x1", "p1x2")
	return c, top
}

// A tree is resumed as a tree, also if its head was suspended while a descendant ran.
func TestTreeWithItsHeadThatWasOnDiskIsResumedAsATree(t *testing.T) { // B20
	c, top := parted(t)
	arranged(t, c.does("pause", "p1x2"))
	wrong := c.does("resume", "--subtree", "p1")
	if p := c.family()["p1x2"]; standsPaused(p) {
		wrong = append(wrong, "p1x2 is paused, and p1 was resumed with all below it")
		arranged(t, c.does("resume", "p1x2"))
	}
	for _, w := range c.whole(top) {
		t.Error(w)
	}
	allRight(t, wrong)
}
