package confine

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"rnix/agent"
	"rnix/internal/proc"
	"rnix/internal/sandbox"
	"rnix/internal/step"
	"rnix/types"
	"rnix/vfs"
)

// What an entry names, which a project can write, gives nothing of Rnix's own, of other agents and of credentials, however it names it.
func TestServerIsNotGivenWhatBelongsToRnix(t *testing.T) {
	w := newWorld(t)
	w.can(sandbox.RungBwrap)
	other := filepath.Join(w.Data, "homes", "other", ".claude", "session")
	cloud := filepath.Join(w.Home, ".config", "gcloud", "legacy", "x")
	tool := filepath.Join(w.Home, "opt", "bin", "x")
	for _, path := range []string{other, cloud, tool} {
		put(t, path, "x")
	}
	for name, m := range map[string]agent.MCPServer{
		"a directory":   {Args: []string{filepath.Dir(other), filepath.Dir(cloud)}},
		"a file":        {Args: []string{other, "--file=" + cloud}},
		"the program":   {Command: other},
		"a PATH":        {Env: map[string]string{"PATH": filepath.Dir(other) + ":" + filepath.Dir(cloud) + ":" + w.Data + ":" + filepath.Dir(tool)}},
		"another way":   {Args: []string{filepath.Join(w.Home, "way"), filepath.Join(w.Home, "way", "other")}},
		"one to a file": {Args: []string{filepath.Join(w.Home, "file")}},
	} {
		t.Run(name, func(t *testing.T) {
			_ = os.Symlink(filepath.Join(w.Data, "homes"), filepath.Join(w.Home, "way"))
			_ = os.Symlink(cloud, filepath.Join(w.Home, "file"))
			p := w.policyOf(t, m)
			for _, path := range []string{other, cloud, filepath.Join(filepath.Dir(cloud), "y"), w.Data + "/x"} {
				if p.Allows(path, sandbox.AccessRead) {
					t.Errorf("it reads %s", path)
				}
			}
			if m.Env != nil && !p.Allows(tool, sandbox.AccessRead) {
				t.Error("it does not read where its programs are")
			}
		})
	}
}

// A path in the work directory is what a person has seen, not what a command has since made of it.
func TestServerIsNotLedAwayByLinksOfCommands(t *testing.T) {
	w := newWorld(t)
	w.can(sandbox.RungBwrap)
	notes, ssh := filepath.Join(w.Home, "notes"), filepath.Join(w.Home, ".ssh", "keys")
	put(t, filepath.Join(notes, "x"), "x")
	put(t, filepath.Join(ssh, "x"), "x")
	for name, to := range map[string]string{"planted": notes, "second": filepath.Join(w.work, "planted"), "key": ssh, "hooks": filepath.Join(w.work, ".git", "hooks"), "inside": filepath.Join(w.work, "sub")} {
		if err := os.Symlink(to, filepath.Join(w.work, name)); err != nil {
			t.Fatal(err)
		}
	}
	user := filepath.Join(w.Home, "users")
	if err := os.Symlink(filepath.Join(w.work, "planted"), user); err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(w.work, name) }
	for _, m := range []agent.MCPServer{
		{Args: []string{in("planted")}}, {Args: []string{in("planted/x")}}, {Command: in("second/x")}, {Args: []string{in("second")}}, {Args: []string{user}},
		{Env: map[string]string{"PATH": in("planted")}},
	} {
		if p := w.policyOf(t, m); p.Allows(filepath.Join(notes, "x"), sandbox.AccessRead) {
			t.Errorf("%+v is led away", m)
		}
	}
	for _, s := range []agent.ServerSandbox{{Write: []string{"planted"}}, {Write: []string{"key"}}, {Write: []string{"hooks"}}, {Read: []string{"planted/x"}}, {Write: []string{user}}} {
		_, err := w.Server(vfs.MCPConfig{MCPServer: agent.MCPServer{Name: "s", Sandbox: s}, Owner: w.caller}, w.caller.Env)
		if types.CodeOf(err) != types.ErrConflict {
			t.Errorf("%+v: %v", s, err)
		}
	}
	p := w.policyOf(t, agent.MCPServer{Args: []string{notes}, Sandbox: agent.ServerSandbox{Write: []string{"inside"}}})
	if !p.Allows(filepath.Join(notes, "x"), sandbox.AccessRead) || !p.Allows(in("sub/x"), sandbox.AccessWrite) {
		t.Error("it lacks what a person has said")
	}
}

// histories are those of an index.
type histories []step.ProcInfo

func (h histories) List() []step.ProcInfo { return h }

func workedIn(dirs ...string) (h histories) {
	for _, dir := range dirs {
		h = append(h, step.ProcInfo{ProcStatus: types.ProcStatus{WorkDir: dir}})
	}
	return h
}

// What another agent has made of a path in its own directory leads nobody out of that.
func TestServerIsNotLedAwayByLinksOfAnotherAgent(t *testing.T) {
	w := newWorld(t)
	w.can(sandbox.RungBwrap)
	notes, beside, users := filepath.Join(w.Home, "notes"), filepath.Join(w.Home, "src", "q"), filepath.Join(w.Home, "users")
	put(t, filepath.Join(notes, "x"), "x")
	put(t, filepath.Join(beside, "data", "y"), "y")
	cache := filepath.Join(caches(w.Data), "other")
	if err := os.MkdirAll(cache, 0o700); err != nil {
		t.Fatal(err)
	}
	planted, inside, kept := filepath.Join(beside, "planted"), filepath.Join(beside, "inside"), filepath.Join(cache, "kept")
	for link, to := range map[string]string{planted: notes, inside: filepath.Join(beside, "data"), kept: notes, users: notes} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	reads := func(path, what string) bool {
		t.Helper()
		p := w.policyOf(t, agent.MCPServer{Args: []string{path}})
		return p.Allows(what, sandbox.AccessRead)
	}
	if !reads(planted, filepath.Join(notes, "x")) || reads(kept, filepath.Join(notes, "x")) {
		t.Error("nobody has worked there, or what is made for agents is not")
	}
	w.Index = workedIn(filepath.Join(w.Home, "elsewhere"), beside, "")
	for path, want := range map[string]bool{planted: false, filepath.Join(planted, "x"): false, users: true} {
		if reads(path, filepath.Join(notes, "x")) != want {
			t.Errorf("%s is followed: %v", path, !want)
		}
	}
	if !reads(inside, filepath.Join(beside, "data", "y")) {
		t.Error("a link that stays there is not followed")
	}
	_, err := w.Server(vfs.MCPConfig{MCPServer: agent.MCPServer{Name: "s", Sandbox: agent.ServerSandbox{Write: []string{planted}}}, Owner: w.caller}, w.caller.Env)
	if types.CodeOf(err) != types.ErrConflict {
		t.Errorf("it writes there: %v", err)
	}
}

// Whoever works above can make a link of the directory of a process that has been started: its commands are not led away by that.
func TestCommandsAreNotLedAwayFromTheirDirectory(t *testing.T) {
	w := newWorld(t)
	w.can(sandbox.RungBwrap)
	keys := filepath.Join(w.Home, ".ssh")
	put(t, filepath.Join(keys, "id"), "x")
	real := w.work
	w.caller.WorkDir = filepath.Join(w.Home, "users")
	if err := os.Symlink(real, w.caller.WorkDir); err != nil {
		t.Fatal(err)
	}
	spec := proc.Spec{Kind: proc.KindShell, Owner: 1, Path: "sh", Env: w.caller.Env}
	w.Index = workedIn(w.caller.WorkDir, filepath.Join(w.Home, "src"))
	if _, err := w.Box(spec); err != nil {
		t.Errorf("by a link of the user's: %v", err)
	}
	w.caller.WorkDir = filepath.Join(w.Home, "src", "q")
	if err := os.Symlink(keys, w.caller.WorkDir); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Box(spec); types.CodeOf(err) != types.ErrConflict {
		t.Errorf("by a link of another agent: %v", err)
	}
	w.Index = nil
	if _, err := w.Box(spec); err != nil {
		t.Errorf("where no agent works: %v", err)
	}
}

func TestServerIsConfinedNoLessByAuto(t *testing.T) {
	for has, want := range map[sandbox.Level]sandbox.Level{sandbox.LevelBwrap: sandbox.LevelBwrap, sandbox.LevelLandlock: sandbox.LevelAuto, sandbox.LevelAuto: sandbox.LevelAuto} {
		s := serverSettings(sandbox.Settings{Level: has, Net: sandbox.NetNone}, agent.ServerSandbox{Level: sandbox.LevelAuto}, sandbox.Place{})
		if s.Level != want {
			t.Errorf("%s: %s", has, s.Level)
		}
	}
}

// A person lets a server run without a sandbox: what commands can change is not run so. In the PATH they change nothing.
func TestServerOutsideOfTheSandboxIsNotMadeByCommands(t *testing.T) {
	w := newWorld(t)
	w.can(sandbox.RungBwrap)
	good, script := filepath.Join(w.Home, "tools", "docker"), filepath.Join(w.work, "server.js")
	for _, path := range []string{good, script} {
		put(t, path, "#!")
		if err := os.Chmod(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	linked, bin := filepath.Join(w.work, "linked"), filepath.Join(w.work, ".venv", "bin")
	if err := errors.Join(os.Symlink(good, linked), os.MkdirAll(bin, 0o700)); err != nil {
		t.Fatal(err)
	}
	server := func(command string, args ...string) error {
		m := agent.MCPServer{Name: "s", Command: command, Args: args, Sandbox: agent.ServerSandbox{Level: sandbox.LevelOff}}
		_, err := w.Server(vfs.MCPConfig{MCPServer: m, Owner: w.caller}, w.caller.Env)
		return err
	}
	if err := server(good, "run", w.work); err != nil {
		t.Errorf("one that is the user's: %v", err)
	}
	for _, line := range [][]string{{"./server.js"}, {script}, {linked}, {good, script}, {good, linked}, {good, "server.js"}} {
		if err := server(line[0], line[1:]...); types.CodeOf(err) != types.ErrPermission {
			t.Errorf("%s: %v", line, err)
		}
	}
	for line, want := range map[string]sandbox.Net{script: sandbox.NetNone, "server.js": sandbox.NetNone, "run": sandbox.NetOpen} {
		if p := w.policyOf(t, agent.MCPServer{Command: good, Args: []string{line}}); p.Net != want {
			t.Errorf("%s: network %s", line, p.Net)
		}
	}
	if p := w.policyOf(t, agent.MCPServer{Command: script, Sandbox: agent.ServerSandbox{Net: sandbox.NetOpen}}); p.Net != sandbox.NetOpen {
		t.Error("a person cannot give one the network that commands can change")
	}
	byHand, person := agent.MCPServer{Name: "own", Command: script, Sandbox: agent.ServerSandbox{Level: sandbox.LevelOff}}, w.caller
	person.PID = 0
	if _, err := w.Server(vfs.MCPConfig{MCPServer: byHand, Owner: person}, w.caller.Env); err != nil {
		t.Errorf("one that a person mounts: %v", err)
	}
	w.caller.Env = []string{"PATH=" + bin + ":" + filepath.Dir(good)}
	if p := w.policyOf(t, agent.MCPServer{Sandbox: agent.ServerSandbox{Write: []string{"."}}}); p.Allows(filepath.Join(bin, "docker"), sandbox.AccessWrite) || !p.Allows(script, sandbox.AccessWrite) {
		t.Error("programs can be put where they are looked for")
	}
	w.profile.Sandbox.Level = sandbox.LevelOff
	if err := server(script); err != nil {
		t.Errorf("of an agent without a sandbox: %v", err)
	}
}
