package confine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rnix/agent"
	"rnix/internal/proc"
	"rnix/internal/sandbox"
	"rnix/types"
	"rnix/vfs"
)

// policyOf returns how a server with this entry is confined.
func (w *world) policyOf(t *testing.T, m agent.MCPServer) sandbox.Policy {
	t.Helper()
	if m.Name == "" {
		m.Name = "some"
	}
	box, err := w.Server(vfs.MCPConfig{MCPServer: m, Owner: w.caller}, w.caller.Env)
	if err != nil {
		t.Fatal(err)
	}
	return box.Plan.Policy
}

func TestServerHasWhatItsEntrySaysAndNoMore(t *testing.T) {
	w := newWorld(t)
	w.can(sandbox.RungBwrap)
	for _, file := range []string{"app/package.json", "app/build/index.js", "alone/server", ".ssh/id", "notes/x"} {
		file = filepath.Join(w.Home, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	home := func(path string) string { return filepath.Join(w.Home, path) }
	sub := filepath.Join(w.work, "sub")
	for name, c := range map[string]struct {
		entry              agent.MCPServer
		reads, writes, not []string
		notRead            []string
		net                sandbox.Net
	}{
		"nothing": {reads: []string{w.work + "/a"}, not: []string{w.work + "/a", w.work + "/.git/x"}, notRead: []string{home("app/x"), w.Data + "/x"}, net: sandbox.NetOpen},
		"what its command line names": {entry: agent.MCPServer{Command: home("alone/server"), Args: []string{home("app/build/index.js"), "--dir=" + home("notes"), home(".ssh/id"), w.Home, w.Data, "/", home("none")}},
			reads: []string{home("alone/server"), home("app/package.json"), home("notes/x")}, not: []string{home("notes/x"), w.work + "/a"}, notRead: []string{home(".ssh/id"), home("other"), w.Data + "/x"}, net: sandbox.NetOpen},
		"the work directory": {entry: agent.MCPServer{Sandbox: agent.ServerSandbox{Net: sandbox.NetNone, Write: []string{"."}}},
			writes: []string{w.work + "/a"}, not: []string{w.work + "/.git/hooks/x", w.work + "/.mcp.json", w.work + "/.rnix/x"}, net: sandbox.NetNone},
		"paths": {entry: agent.MCPServer{Sandbox: agent.ServerSandbox{Read: []string{"~/app"}, Write: []string{"~/notes", "sub"}, Hide: []string{home("app/build")}}},
			reads: []string{home("app/package.json")}, writes: []string{home("notes/x"), sub + "/x"}, not: []string{w.work + "/a"}, notRead: []string{home("app/build/index.js")}, net: sandbox.NetOpen},
	} {
		t.Run(name, func(t *testing.T) {
			p := w.policyOf(t, c.entry)
			if p.Net != c.net {
				t.Errorf("network %s", p.Net)
			}
			for want, lists := range map[bool][2][]string{true: {c.reads, c.writes}, false: {c.notRead, c.not}} {
				for i, access := range []sandbox.Access{sandbox.AccessRead, sandbox.AccessWrite} {
					for _, path := range lists[i] {
						if p.Allows(path, access) != want {
							t.Errorf("%s, %v: %v, want %v", path, access, !want, want)
						}
					}
				}
			}
		})
	}
	off := agent.MCPServer{Sandbox: agent.ServerSandbox{Level: sandbox.LevelOff}}
	if p := w.policyOf(t, off); p.Level != sandbox.LevelOff {
		t.Error("a person cannot switch it off")
	}
	w.profile.Sandbox.Level = sandbox.LevelOff
	if p := w.policyOf(t, agent.MCPServer{Sandbox: agent.ServerSandbox{Level: sandbox.LevelBwrap}}); p.Level != sandbox.LevelOff {
		t.Error("that of a process without a sandbox is confined")
	}
}

// What a process was denied for where it runs, its server does not read either.
func TestServerOfAProcessInTheSandboxReadsNoMoreOfTheWorkDirectory(t *testing.T) {
	w := newWorld(t)
	w.can(sandbox.RungBwrap)
	w.profile.Sandbox.Within, w.profile.Sandbox.Hide = []string{"/elsewhere"}, []string{w.work}
	if p := w.policyOf(t, agent.MCPServer{}); p.Allows(w.work+"/a", sandbox.AccessRead) {
		t.Error(p.Explain())
	}
	if p := w.policyOf(t, agent.MCPServer{Sandbox: agent.ServerSandbox{Write: []string{"."}}}); p.Allows(w.work+"/a", sandbox.AccessWrite) {
		t.Error(p.Explain())
	}
}

func TestServersShareNothing(t *testing.T) {
	w := newWorld(t)
	w.can(sandbox.RungBwrap)
	commands, err := w.Box(proc.Spec{Kind: proc.KindShell, Owner: 1, Path: "sh", Dir: w.work, Env: w.caller.Env})
	if err != nil {
		t.Fatal(err)
	}
	envs := [][]string{commands.Env}
	policies := []sandbox.Policy{commands.Plan.Policy}
	for _, name := range []string{"a", "b"} {
		box, err := w.Server(vfs.MCPConfig{MCPServer: agent.MCPServer{Name: name}, Owner: w.caller}, w.caller.Env)
		if err != nil {
			t.Fatal(err)
		}
		envs, policies = append(envs, box.Env), append(policies, box.Plan.Policy)
	}
	for i, env := range envs {
		for _, kv := range env {
			name, dir, _ := strings.Cut(kv, "=")
			if name != "TMPDIR" && name != "XDG_CACHE_HOME" {
				continue
			}
			for j, p := range policies {
				if p.Allows(dir+"/x", sandbox.AccessWrite) != (i == j) || p.Allows(dir+"/x", sandbox.AccessRead) != (i == j) {
					t.Errorf("%s of %d, seen by %d: %s", name, i, j, dir)
				}
			}
		}
	}
	entries, _ := os.ReadDir(temps(w.Data))
	if len(entries) != 3 {
		t.Errorf("%v", entries)
	}
	w.over[w.caller.UUID] = true
	w.Ended(w.caller.UUID)
	_ = w.Close()
	if entries, _ = os.ReadDir(temps(w.Data)); len(entries) != 0 {
		t.Errorf("what is left of a process that has ended: %v", entries)
	}
}

func TestServerThatNobodyConfinesIsRefused(t *testing.T) {
	w := newWorld(t)
	if _, err := w.Box(proc.Spec{Kind: proc.KindMCP, Owner: 1, Path: "sh"}); types.CodeOf(err) != types.ErrPermission {
		t.Error(err)
	}
	if _, err := w.Server(vfs.MCPConfig{Owner: w.caller}, nil); types.CodeOf(err) != types.ErrPermission || !strings.Contains(err.Error(), "rnix doctor") {
		t.Errorf("where nothing can be confined: %v", err)
	}
	if _, err := w.Server(vfs.MCPConfig{Owner: vfs.Caller{PID: 3, WorkDir: w.work}}, nil); types.CodeOf(err) != types.ErrPermission {
		t.Errorf("of a process without a profile: %v", err)
	}
	w.profile.Servers = []agent.MCPEntry{{MCPServer: agent.MCPServer{Name: "has"}}}
	if _, err := w.ExplainServer(1, "none"); types.CodeOf(err) != types.ErrNotFound {
		t.Error(err)
	}
	w.can(sandbox.RungLandlock)
	if plan, err := w.ExplainServer(1, "has"); err != nil || plan.Rung != sandbox.RungLandlock || slices.Contains(plan.Policy.Write, w.work) {
		t.Errorf("%v %v", plan.Policy.Write, err)
	}
}
