package confine

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"rnix/agent"
	"rnix/internal/profile"
	"rnix/internal/sandbox"
	"rnix/kernel"
	"rnix/types"
	"rnix/vfs"
)

// claude starts claude as a CLI for a process and returns its home.
func (w *world) claude(t *testing.T, c vfs.Caller, readOnly bool) string {
	t.Helper()
	got, err := w.CLI(c, lookup(t, "claude"), "claude", filepath.Join(w.Data, "session"), readOnly)
	if err != nil || got.Home == "" {
		t.Fatalf("%+v %v", got, err)
	}
	t.Cleanup(got.Done)
	return got.Home
}

func TestAgentsWithOtherRightsShareNoHome(t *testing.T) {
	w := newWorld(t)
	w.can(sandbox.RungBwrap)
	all := processes{1: {MCPMounts: []string{"/mnt/mcp/1-github"}}}
	w.Kernel = func() Kernel { return all }
	first := w.claude(t, w.caller, false)

	// another process of the same rights, started from another shell; and the same one, resumed
	again := w.caller
	again.PID, again.UUID = 2, types.NewUUID()
	again.Scratch, again.Inputs, again.Env = filepath.Join(w.Data, "scratch"), filepath.Join(w.Data, "inputs"), []string{"PATH=/usr/bin:" + w.Home + "/other"}
	all[2] = kernel.Info{MCPMounts: []string{"/mnt/mcp/2-github"}}
	if got := w.claude(t, again, false); got != first {
		t.Errorf("another process of the same rights has another home")
	}

	homes := map[string]string{"the first": first}
	check := func(what, home string) {
		t.Helper()
		for name, other := range homes {
			if other == home {
				t.Errorf("%s shares the home of %s", what, name)
			}
		}
		homes[what] = home
	}
	check("one that only reads", w.claude(t, w.caller, true))
	for what, change := range map[string]func(c *vfs.Caller, s *sandbox.Settings){
		"one from which a path is hidden":      func(_ *vfs.Caller, s *sandbox.Settings) { s.Hide = []string{w.work + "/private"} },
		"one that reads more":                  func(_ *vfs.Caller, s *sandbox.Settings) { s.Read = []string{w.Home + "/more"} },
		"one that writes more":                 func(_ *vfs.Caller, s *sandbox.Settings) { s.Write = []string{w.Home + "/more"} },
		"one with the network":                 func(_ *vfs.Caller, s *sandbox.Settings) { s.Net = sandbox.NetOpen },
		"one that is confined otherwise":       func(_ *vfs.Caller, s *sandbox.Settings) { s.Level = sandbox.LevelBwrap },
		"one that writes nothing there":        func(_ *vfs.Caller, s *sandbox.Settings) { s.Within = []string{} },
		"one with more roots to read":          func(c *vfs.Caller, _ *sandbox.Settings) { c.ReadRoots = []string{w.Home + "/roots"} },
		"one that works in a part":             func(c *vfs.Caller, _ *sandbox.Settings) { c.WorkDir = filepath.Join(w.work, "sub") },
		"one without a shell":                  func(c *vfs.Caller, _ *sandbox.Settings) { c.PID = 3 },
		"one with some devices alone":          func(c *vfs.Caller, _ *sandbox.Settings) { c.PID = 4 },
		"one without the server":               func(c *vfs.Caller, _ *sandbox.Settings) { c.PID = 5 },
		"one whose parent let it have no more": func(_ *vfs.Caller, s *sandbox.Settings) { s.Protect = []string{w.work + "/Makefile"} },
	} {
		all[3] = kernel.Info{Rights: kernel.Rights{Denied: []string{"/dev/shell"}}, MCPMounts: []string{"/mnt/mcp/3-github"}}
		all[4] = kernel.Info{Rights: kernel.Rights{Allowed: []string{"/dev/fs", "/mnt/mcp/4-github"}}, MCPMounts: []string{"/mnt/mcp/4-github"}}
		all[5] = kernel.Info{}
		c, p := w.caller, &profile.Profile{Sandbox: sandbox.Usual(), Lookup: w.profile.Lookup}
		change(&c, &p.Sandbox)
		c.Profile = p
		check(what, w.claude(t, c, false))
	}
	model, err := w.Model(w.caller, "claude", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(model.Done)
	i := slices.IndexFunc(model.Box.Env, func(kv string) bool { return len(kv) > 5 && kv[:5] == "HOME=" })
	check("a model", model.Box.Env[i][5:])
}

// What an agent that a person has started has the one that it starts in the same directory has too, and so the home.
func TestAChildWithTheRightsOfItsParentSharesTheHome(t *testing.T) {
	w := newWorld(t)
	w.can(sandbox.RungBwrap)
	parent := w.claude(t, w.caller, false)
	child, err := profile.Confined(w.profile, &agent.Agent{}, w.Below(1))
	if err != nil {
		t.Fatal(err)
	}
	c := w.caller
	c.UUID, c.Profile = types.NewUUID(), child
	if got := w.claude(t, c, false); got != parent {
		t.Error("it has another home")
	}
}

func TestHomesGoWhenNothingIsLeftThatUsesThem(t *testing.T) {
	w := newWorld(t)
	w.can(sandbox.RungBwrap)
	home := w.claude(t, w.caller, false)
	old := filepath.Join(homes(w.Data), "of-an-earlier-version")
	put(t, filepath.Join(old, "x"), "")
	there := func(path string) bool { _, err := os.Lstat(path); return err == nil }
	later := time.Now().Add(cacheAge + time.Hour)
	sweepHomes(&w.Own, time.Now())
	if !there(home) || !there(old) {
		t.Error("one that was just used is gone")
	}
	sweepHomes(&w.Own, later)
	if !there(home) || there(old) {
		t.Errorf("that of a history that can go on is there: %v; one that nothing uses: %v", there(home), there(old))
	}
	w.over[w.caller.UUID] = true
	sweepHomes(&w.Own, time.Now().Add(cacheAge-time.Hour))
	if !there(home) {
		t.Error("one that was used not long ago is gone, and a person could resume what has ended")
	}
	sweepHomes(&w.Own, later)
	if there(home) || there(home+used) {
		t.Error("it is left")
	}
	put(t, filepath.Join(homes(w.Data), "lost"+used, w.caller.UUID.String()), "")
	sweepHomes(&w.Own, later)
	if left, err := os.ReadDir(homes(w.Data)); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}
