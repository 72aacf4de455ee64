package profile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"slices"
	"strings"

	"rnix/agent"
	"rnix/internal/config"
	"rnix/internal/permit"
	"rnix/internal/sandbox"
	"rnix/internal/step"
	"rnix/internal/workspace"
	"rnix/types"
)

// Settings is what a history keeps of the configuration of its process, so that a later run finds the
// same again: where it comes from, never the values of variables. Part of the on-disk format.
type Settings struct {
	Cwd       string   `json:"cwd"`                     // whose project counts
	Trust     bool     `json:"trust_project,omitempty"` // it was asked for; what rnix trust says is looked up again
	MCP       []string `json:"mcp,omitempty"`           // servers besides the agent's
	Offered   []string `json:"offered_mcp,omitempty"`   // of the project's .mcp.json, which it has if it can
	NoMCP     bool     `json:"no_mcp,omitempty"`        // it has none but those of MCP
	Variables []string `json:"variables,omitempty"`     // names of those that the client had
	Names     []string `json:"env,omitempty"`           // of those that its OS children see besides the agent's
	Lent      []string `json:"lent_env,omitzero"`       // the variables of the agent that has started it; null = none has
	// Sandbox is how its commands are confined; null = as the configuration says, in a history of an earlier version.
	Sandbox *sandbox.Settings `json:"sandbox,omitempty"`
	// Permissions are the rules about which of its calls a person is asked; null = as the configuration says, in a history of an earlier version.
	Permissions *permit.Settings `json:"permissions,omitempty"`
	// Servers has a hash of each MCP server of the agent, for projects that are trusted.
	Servers map[string]string `json:"servers,omitempty"`
	// What the client asked for, which its children's models depend on.
	Provider         string `json:"provider,omitempty"`
	Model            string `json:"model,omitempty"`
	FallbackProvider string `json:"fallback_provider,omitempty"`
	FallbackModel    string `json:"fallback_model,omitempty"`
	Tools            string `json:"tools,omitempty"` // of agents' command lines
	Member
	// Tree is the git work tree that was made for it; null = none.
	Tree *workspace.Tree `json:"tree,omitempty"`
}

// serverSums returns a hash of each server that an agent has: of what is run, or of where it is.
func serverSums(ag *agent.Agent) map[string]string {
	out := map[string]string{}
	for i := range ag.MCPConfigs {
		if b, err := json.Marshal(&ag.MCPConfigs[i]); err == nil { // it holds texts only
			sum := sha256.Sum256(b)
			out[ag.MCPConfigs[i].Name] = hex.EncodeToString(sum[:16])
		}
	}
	return out
}

// Changed returns a server of which the project's files say something else than when the project was
// trusted; "" if there is none. An agent may have written it there.
func (s *Settings) Changed(ag *agent.Agent) string {
	for name, sum := range serverSums(ag) {
		if s.Trust && s.Servers[name] != sum {
			return name
		}
	}
	return ""
}

// Wish is what the client asked for.
func (s *Settings) Wish() config.Wish {
	return config.Wish{Provider: s.Provider, Model: s.Model, FallbackProvider: s.FallbackProvider, FallbackModel: s.FallbackModel}
}

// Settings returns what the history of a process with this profile keeps of it; mcp are the servers that it was given besides the agent's.
func (p *Profile) Settings(ag *agent.Agent, mcp []string) (json.RawMessage, error) {
	s := Settings{Cwd: p.Cwd, Trust: p.TrustAsked(), MCP: mcp, Offered: p.OfferedMCP, NoMCP: p.NoMCP, Names: p.Names, Lent: p.Lent, Provider: p.Asked.Provider, Model: p.Asked.Model,
		FallbackProvider: p.Asked.FallbackProvider, FallbackModel: p.Asked.FallbackModel, Tools: p.tools, Member: p.Member, Sandbox: new(p.Sandbox), Permissions: new(p.Permissions)}
	if p.Trust {
		s.Servers = serverSums(ag)
	}
	for _, kv := range p.Env {
		if name, _, ok := strings.Cut(kv, "="); ok {
			s.Variables = append(s.Variables, name)
		}
	}
	slices.Sort(s.Variables)
	s.Variables = slices.Compact(s.Variables)
	b, err := json.Marshal(&s)
	if err != nil {
		return nil, types.Errorf(types.ErrInternal, "Spawn", "", "encode: %w", err)
	}
	return b, nil
}

// WithTree puts a work tree into the settings of a process, or with nil takes it out.
func WithTree(raw json.RawMessage, t *workspace.Tree) (json.RawMessage, error) {
	return with(raw, func(s *Settings) { s.Tree = t })
}

// WithSandbox puts into the settings of a process how its commands are confined.
func WithSandbox(raw json.RawMessage, is sandbox.Settings) (json.RawMessage, error) {
	return with(raw, func(s *Settings) { s.Sandbox = &is })
}

// with returns the settings of a process after a change.
func with(raw json.RawMessage, change func(s *Settings)) (json.RawMessage, error) {
	var s Settings
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, types.Errorf(types.ErrInternal, "Spawn", "", "settings: %w", err)
		}
	}
	change(&s)
	b, err := json.Marshal(&s)
	if err != nil {
		return nil, types.Errorf(types.ErrInternal, "Spawn", "", "settings: %w", err)
	}
	return b, nil
}

// SettingsIn returns the settings that a history has kept. One without any worked in its directory.
func SettingsIn(was *step.Settled) Settings {
	var s Settings
	if len(was.Settings) == 0 || json.Unmarshal(was.Settings, &s) != nil {
		s = Settings{}
	}
	if s.Cwd == "" {
		s.Cwd = was.WorkDir
	}
	return s
}

// Missing returns the names of variables that the first run had and environ has not, which is the daemon's if it is empty.
func (s *Settings) Missing(environ []string) []string {
	if len(environ) == 0 {
		environ = os.Environ()
	}
	lookup := lookupIn(environ)
	var out []string
	for _, name := range s.Variables {
		if _, ok := lookup(name); !ok && !strings.HasPrefix(name, "RNIX_") {
			out = append(out, name)
		}
	}
	return out
}
