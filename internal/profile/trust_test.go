package profile

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rnix/agent"
	"rnix/internal/trust"
	"rnix/types"
	"rnix/vfs"
)

// trust remembers the project as its files are now.
func (h *host) trust() {
	h.t.Helper()
	dir, err := filepath.EvalSymlinks(filepath.Join(h.dir, "home/p"))
	if err != nil {
		h.t.Fatal(err)
	}
	files, err := trust.Look(dir)
	if err == nil {
		err = trust.In(h.UserDir).Put(trust.Entry{Dir: dir, Since: time.Now(), Files: files})
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

func servers(ag *agent.Agent) (out []string) {
	for _, s := range ag.MCPConfigs {
		out = append(out, s.Name)
	}
	return out
}

func TestAProjectIsTrustedAsItWasLookedAt(t *testing.T) {
	h := newHost(t)
	h.write("home/p/.mcp.json", `{"mcpServers":{"local":{"command":"./s.sh"}}}`)
	h.write("home/p/s.sh", "one\n")
	refused := func(p *Profile) {
		t.Helper()
		if _, err := p.Load("own", []string{"local"}); types.CodeOf(err) != types.ErrPermission || p.Trusts() {
			t.Errorf("%v, trusts %t", err, p.Trusts())
		}
	}
	has := func(p *Profile, what string) bool {
		return slices.ContainsFunc(p.Problems, func(s string) bool { return strings.Contains(s, what) })
	}
	before := h.read(false)
	refused(before)

	h.trust()
	p := h.read(false)
	ag, err := p.Load("own", []string{"local"})
	if err != nil || !slices.Equal(servers(ag), []string{"local"}) || !p.Trusts() || p.TrustAsked() {
		t.Fatalf("%v, %v", servers(ag), err)
	}
	refused(before) // it was read before

	// What a history keeps asks for no trust: a resume looks again.
	raw, err := p.Settings(ag, nil)
	var s Settings
	if err != nil || json.Unmarshal(raw, &s) != nil || s.Trust {
		t.Errorf("%s, %v", raw, err)
	}

	// Whoever changes a file ends the trust, also for what runs already; what was asked for holds.
	h.write("home/p/s.sh", "two\n")
	refused(p)
	changed := h.read(false)
	refused(changed)
	if !has(changed, "has changed since you trusted it (s.sh)") {
		t.Errorf("%q", changed.Problems)
	}
	for name, asked := range map[string]*Profile{"run --trust-project": h.read(true), "trust: true of a supervisor": p.Trusting()} {
		if ag, err := asked.Load("own", []string{"local"}); err != nil || len(servers(ag)) != 1 || !asked.TrustAsked() {
			t.Errorf("%s: %v", name, err)
		}
	}

	// And back: what was looked at is trusted again.
	h.write("home/p/s.sh", "one\n")
	if again := h.read(false); !again.Trusts() || has(again, "changed") {
		t.Errorf("%q", again.Problems)
	}
	if _, err := p.Load("own", []string{"local"}); err != nil {
		t.Error(err)
	}
	h.write("config/trust/"+filepath.Base(onlyEntry(t, h)), "{")
	broken := h.read(false)
	refused(broken)
	if !has(broken, "whether the project is trusted cannot be told") {
		t.Errorf("%q", broken.Problems)
	}
}

// A server of the project starts where a person has looked at what it is: in the project, and in copies of it that are no other.
func TestWhatWorksInACopyOfAProjectIsTrustedAsTheProject(t *testing.T) {
	h := newHost(t)
	h.write("home/p/.mcp.json", `{"mcpServers":{"local":{"command":"./s.sh"}}}`)
	h.write("home/p/s.sh", "one\n")
	h.trust()
	p := h.read(false)
	made := 0
	var pinned *vfs.Pinned
	guarded := Guarded(func(cfg vfs.MCPConfig) (vfs.MCPTransport, error) { made++; pinned = cfg.Pinned; return nil, nil })
	start := func(p *Profile, name, dir string) error {
		_, err := guarded(vfs.MCPConfig{MCPServer: agent.MCPServer{Name: name, Command: "./s.sh"}, Dir: filepath.Join(h.dir, dir), Owner: vfs.Caller{Profile: p}})
		return err
	}
	h.write("home/p/sub/x", "")
	h.write("home/p/tool/s.sh", "one\n")
	h.write("copy/.rnix/agents/own/agent.yaml", "name: own\ndescription: d\n") // without .mcp.json, as what git ignores
	h.write("copy/s.sh", "two\n")                                              // which no .mcp.json of the copy names
	h.write("agents/.rnix/agents/own/agent.yaml", "name: own\ndescription: worse\n")
	h.write("scripts/.mcp.json", `{"mcpServers":{"local":{"command":"./s.sh"}}}`)
	h.write("scripts/s.sh", "two\n")
	h.write("same/.mcp.json", `{"mcpServers":{"local":{"command":"./s.sh"}}}`)
	h.write("same/s.sh", "one\n")
	for dir, want := range map[string]string{"home/p": "", "home/p/sub": "sub/s.sh, which is not there", "same": "", "agents": ".rnix/agents/own/agent.yaml", "scripts": "s.sh", "copy": "s.sh", "home/p/tool": "tool/s.sh (added)", "gone": "gone (cannot be looked at)"} {
		err := start(p, "local", dir)
		if want == "" && err != nil || want != "" && (types.CodeOf(err) != types.ErrPermission || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", dir, err, want)
		}
		if trusts := p.TrustsIn(filepath.Join(h.dir, dir)); trusts != (want == "") && dir != "copy" && dir != "home/p/tool" && dir != "home/p/sub" {
			t.Errorf("%s: trusts %t", dir, trusts)
		}
	}
	h.write("home/p/plain/x", "")
	h.write("home/p/sub/.claude/settings.json", "{}\n")
	h.write("home/p/sub/below/x", "")
	for dir, want := range map[string]bool{"home/p/plain": true, "home/p/sub": false, "home/p/sub/below": false} {
		if trusts := p.TrustsIn(filepath.Join(h.dir, dir)); trusts != want {
			t.Errorf("%s: trusts %t", dir, trusts)
		}
	}
	inner := filepath.Join(h.dir, "home/repo/in")
	if err := os.MkdirAll(filepath.Join(inner, ".rnix"), 0o755); err != nil {
		t.Fatal(err)
	}
	h.write("home/repo/opencode.json", "{}\n")
	if !p.TrustsIn(inner) {
		t.Error("settings above the project count, though it is in no repository")
	}
	h.write("home/repo/.git/HEAD", "")
	if p.TrustsIn(inner) {
		t.Error("settings of the repository around the project are trusted")
	}
	if err := start(p, "local", "same"); err != nil || pinned == nil || len(pinned.Files) != 1 || pinned.Root != resolved(t, filepath.Join(h.dir, "same")) ||
		pinned.Files[0] != (vfs.PinnedFile{Arg: -1, Path: "s.sh", Sum: "2c8b08da5ce60398e1f19af0e5dccc744df274b826abe585eaba68c525434806"}) { // sha256sum of "one\n"
		t.Errorf("%+v, %v", pinned, err)
	}
	if err := start(p, "of the user", "scripts"); err != nil || pinned != nil {
		t.Error(err)
	}
	if err := start(h.read(true), "local", "scripts"); err != nil || made != 5 {
		t.Errorf("%v, %d made", err, made)
	}
	h.write("home/p/s.sh", "two\n")
	if err := start(p, "local", "home/p"); types.CodeOf(err) != types.ErrPermission || p.TrustsIn(p.Cwd) {
		t.Error(err)
	}
}

func resolved(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func onlyEntry(t *testing.T, h *host) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(h.UserDir, "trust", "*.json"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	return found[0]
}
