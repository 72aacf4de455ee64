package daemon_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

// The budgets of the children of a supervisor are raised with one command, and each that has waited for its own goes on; so do those that draw on
// the supervisor's.
func TestBudgetsBelowASupervisorAreRaisedTogether(t *testing.T) {
	for name, file := range map[string]string{
		"each has its own":      "supervisors: [{name: top, children: [{name: s1, intent: s1, model: m, restart: temporary, context_budget: 150}, {name: s2, intent: s2, model: m, restart: temporary, context_budget: 150}]}]",
		"the supervisor's":      "supervisors: [{name: top, context_budget: 300, children: [{name: s1, intent: s1, model: m, restart: temporary}, {name: s2, intent: s2, model: m, restart: temporary}]}]",
		"after another restart": "",
	} {
		t.Run(name, func(t *testing.T) {
			c := newKindred(t)
			a, b := c.grow(&relative{name: "s1", turns: 4}), c.grow(&relative{name: "s2", turns: 4})
			again := file == ""
			if again {
				file = "supervisors: [{name: top, children: [{name: s1, intent: s1, model: m, restart: temporary, context_budget: 150}, {name: s2, intent: s2, model: m, restart: temporary, context_budget: 150}]}]"
			}
			supervise(t, c.s, file)
			until(t, "both wait for a budget", func() bool {
				f := c.family()
				return f["s1"].State == "suspended" && f["s2"].State == "suspended"
			})
			if again {
				c.crash()
			}
			wrong := c.does("budget", "add", "--subtree", "top", "--tokens", "1000000")
			wrong = append(append(wrong, c.ends(a)...), c.ends(b)...)
			for _, w := range append(append(wrong, c.whole(a)...), c.whole(b)...) {
				t.Error(w)
			}
		})
	}
}

// A paused family with a member that has a git work tree of its own is resumed as a whole, also where the data directory lies now; of a member of which
// the work tree is gone, the person is told, and the others go on.
func TestFamilyWithWorkTreesIsResumed(t *testing.T) {
	for _, what := range []string{"after a crash", "in a data directory that was renamed", "of which a work tree is gone"} {
		t.Run(what, func(t *testing.T) {
			c := newKindred(t)
			p := newProject(t, c.s)
			top, kid := c.grow(&relative{name: "p1"}), c.grow(&relative{name: "p2", turns: 1})
			c.shut("p1", "p2")
			c.s.Spawn(ipc.SpawnRequest{Intent: "p1", ProcSpec: types.ProcSpec{Name: "p1", Model: "fake"}, Cwd: p.dir})
			c.runs("p1")
			made := c.s.Spawn(ipc.SpawnRequest{Intent: "p2", ProcSpec: types.ProcSpec{Name: "p2", Model: "fake"}, Parent: "p1", Cwd: p.dir, Worktree: &ipc.WorktreeRequest{}})
			c.runs("p2")
			arranged(t, c.does("pause", "--subtree", "p1"))
			gone := false
			switch {
			case strings.Contains(what, "renamed"):
				c.s.Stop()
				moveData(t, c.s)
				c.s.Start()
				c.s.Settle()
			case strings.Contains(what, "gone"):
				gone = true
				c.crash()
				if err := os.RemoveAll(made.Worktree.Dir); err != nil {
					t.Fatal(err)
				}
			default:
				c.crash()
			}
			code, text := c.rnix("resume", "--subtree", "p1")
			if code != 0 || gone != names(text, c.family()["p2"]) && gone || gone != strings.Contains(text, "is gone") {
				t.Errorf("exit %d: %s", code, text)
			}
			c.open()
			for _, left := range c.ends(top) {
				t.Error(left)
			}
			if gone {
				if s := c.family()["p2"]; s.State != "suspended" {
					t.Errorf("p2 is %s", s.State)
				}
				return
			}
			for _, left := range c.ends(kid) {
				t.Error(left)
			}
			in := detail(t, c.s, "p2").WorkDir
			if b, err := os.ReadFile(filepath.Join(in, "effects")); err != nil || strings.Count(string(b), "p2.") != 2 || strings.Contains(what, "renamed") != strings.Contains(in, "-moved") {
				t.Errorf("in %s: %q %v", in, b, err)
			}
		})
	}
}

// A supervisor and a workflow are resumed with all of theirs at a start or not at all, and by one command then.
func TestFewerThanAllAreResumedWithAllOfASupervisorOrAWorkflow(t *testing.T) {
	for kind, resume := range map[string][]string{"supervisor": {"resume", "top"}, "supervisor as a tree": {"resume", "--subtree", "top"}, "workflow": {"resume", "flow"}, "workflow by its own command": {"compose", "resume", "flow"}} {
		t.Run(kind, func(t *testing.T) {
			c := newKindred(t)
			configure(t, c.s, "config.yaml", "daemon: {auto_resume_max: 2}\n")
			c.s.Stop()
			c.s.Start()
			c.s.Settle()
			lone := c.grow(&relative{name: "p3"})
			c.grow(&relative{name: "s1", turns: 1})
			c.grow(&relative{name: "s2", turns: 1})
			c.shut("s1", "s2", "p3")
			head, below := "top", ""
			if strings.HasPrefix(kind, "supervisor") {
				supervise(t, c.s, "supervisors: [{name: top, children: [{name: s1, intent: s1, model: m, restart: temporary}, {name: s2, intent: s2, model: m, restart: temporary}]}]")
			} else {
				head, below = "flow", "flow/"
				c.s.Write("flow.yaml", "name: flow\nagents:\n  s1: {intent: s1, model: m}\n  s2: {intent: s2, model: m}\n")
				arranged(t, c.does("compose", "up", "-d", "-f", filepath.Join(c.s.Work, "flow.yaml")))
			}
			c.runs(below+"s1", below+"s2")
			c.start(lone)
			c.runs("p3")
			c.crash()
			f := c.family()
			if f["p3"].State != "running" {
				t.Errorf("p3 is %s", f["p3"].State)
			}
			for _, name := range []string{head, below + "s1", below + "s2"} {
				if f[name].State != "suspended" || !strings.Contains(f[name].Wait, "auto_resume_max: 2") {
					t.Errorf("%s is %s (%s)", name, f[name].State, f[name].Wait)
				}
			}
			wrong := c.does(resume...)
			c.open()
			for _, name := range []string{below + "s1", below + "s2"} {
				wrong = append(wrong, c.ends(&relative{name: name})...)
			}
			for _, w := range append(wrong, c.whole(lone)...) {
				t.Error(w)
			}
		})
	}
}

// A member of a family whose record is damaged, or was deleted, keeps no other from what is done to all: the person is told of it.
func TestFamilyWithADamagedMemberIsResumedPausedAndKilled(t *testing.T) {
	for what, harm := range map[string]func(t *testing.T, dir string){
		"is damaged": func(t *testing.T, dir string) { write(t, filepath.Join(dir, step.StepsFile), "{\"no\": 1}\n{}\n{}\n") },
		"is gone": func(t *testing.T, dir string) {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run("the record of one "+what, func(t *testing.T) {
			c := newKindred(t)
			top := c.grow(&relative{name: "p1", back: []*relative{{name: "p1x1"}, {name: "p1x2"}, {name: "p1x3"}}})
			c.shut("p1x1", "p1x2", "p1x3")
			c.start(top)
			c.runs("p1", "p1x1", "p1x2", "p1x3")
			arranged(t, c.does("pause", "--subtree", "p1"))
			bad := c.family()["p1x2"]
			c.s.Kill()
			harm(t, filepath.Join(c.s.Data, "steps", bad.UUID.String()))
			c.s.Start()
			c.s.Settle()
			code, text := c.rnix("resume", "--subtree", "p1")
			f := c.family()
			if code != 0 || what == "is damaged" && !strings.Contains(text, "PID "+bad.PID.String()) {
				t.Errorf("exit %d: %s", code, text)
			}
			for _, name := range []string{"p1", "p1x1", "p1x3"} {
				if f[name].State != "running" {
					t.Errorf("%s is %s (%s): %s", name, f[name].State, f[name].Wait, text)
				}
			}
			for _, verb := range []string{"pause", "kill"} {
				code, text = c.rnix(verb, "--subtree", "p1")
				f = c.family()
				for _, name := range []string{"p1", "p1x1", "p1x3"} {
					if code != 0 || verb == "pause" && !standsPaused(f[name]) {
						t.Errorf("%s: %s is %s (%s), exit %d: %s", verb, name, f[name].State, f[name].Wait, code, text)
					}
				}
			}
			until(t, "all have ended", func() bool {
				f := c.family()
				return over(f["p1"]) && over(f["p1x1"]) && over(f["p1x3"])
			})
		})
	}
}
