package profile

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rnix/agent"
	"rnix/internal/trust"
	"rnix/types"
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

func onlyEntry(t *testing.T, h *host) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(h.UserDir, "trust", "*.json"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	return found[0]
}
