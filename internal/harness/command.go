package harness

import (
	"encoding/json"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"rnix/agent"
	"rnix/types"
)

// maxArgument is how long one argument, or one variable, may be on Linux, in bytes.
const maxArgument = 128<<10 - 1

// maxToolTime is how long a command line waits for an answer of an MCP server. Whoever serves the tool ends what
// takes too long, and a call may wait for a person.
const maxToolTime = 7 * 24 * time.Hour

// The sandbox levels of a Spec.
const (
	SandboxReadOnly  = "read-only"
	SandboxWorkspace = "workspace-write"
	SandboxFull      = "full"
)

// builder puts a Command together and keeps the first thing that is wrong.
type builder struct {
	name string
	at   Place
	cmd  Command
	err  error
}

// begin checks what no command line could do. credentials are variables that the program may have from
// the user.
func begin(name string, s *agent.Spec, at Place, credentials ...string) *builder {
	b := &builder{name: name, at: at, cmd: Command{Program: at.Program, Env: map[string]string{}}}
	if b.cmd.Program == "" {
		b.cmd.Program = name
	}
	for _, n := range credentials {
		if v := at.user(n); v != "" {
			b.cmd.Env[n] = v
			if !strings.HasSuffix(n, "_URL") && !strings.HasSuffix(n, "_DIR") {
				b.cmd.Secrets = append(b.cmd.Secrets, n)
			}
		}
	}
	b.direct()
	switch {
	case strings.TrimSpace(s.Prompt) == "":
		b.refuse("the prompt is empty: say what the agent has to do")
	case strings.ContainsRune(s.Prompt, 0):
		b.refuse("the prompt has a NUL character in it")
	case !filepath.IsAbs(s.CWD):
		b.refuse("the directory %q is not absolute", s.CWD)
	case at.Dir != "" && !filepath.IsAbs(at.Dir):
		b.refuse("the directory for its files, %q, is not absolute", at.Dir)
	case s.MaxTurns < 0:
		b.refuse("%d turns are less than none; 0 means no limit", s.MaxTurns)
	case s.MaxBudgetUSD < 0 || math.IsNaN(s.MaxBudgetUSD) || math.IsInf(s.MaxBudgetUSD, 0):
		b.refuse("%v dollars are no budget; 0 means no limit", s.MaxBudgetUSD)
	case !slices.Contains([]string{"", SandboxReadOnly, SandboxWorkspace, SandboxFull}, s.SandboxLevel):
		b.refuse("there is no sandbox level %q; there are %s, %s, %s", s.SandboxLevel, SandboxReadOnly, SandboxWorkspace, SandboxFull)
	case !plainID(s.Resume):
		b.refuse("%q is no id of a session", s.Resume)
	case s.NoOwnTools && len(s.AllowedTools) > 0:
		b.refuse("its own tools cannot be allowed (%s) and switched off at once", strings.Join(s.AllowedTools, ", "))
	}
	if can := all[name].Can(); s.Attachments != nil {
		for i := range s.Attachments {
			if why := can.Refuses(name, &s.Attachments[i]); why != "" {
				b.refuse("%s", why)
			}
		}
	}
	seen := map[string]bool{}
	for i := range s.MCPServers {
		b.server(&s.MCPServers[i], seen)
	}
	return b
}

// plainID reports whether an id is empty or can stand as an argument.
func plainID(id string) bool {
	return len(id) <= 200 && !strings.HasPrefix(id, "-") && !strings.ContainsFunc(id, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	})
}

// server checks one MCP server.
func (b *builder) server(m *agent.MCPServerConfig, seen map[string]bool) {
	switch {
	case m.Name == "" || !plainID(m.Name):
		b.refuse("an MCP server has the name %q; letters, digits, - and _ make one", m.Name)
	case seen[m.Name]:
		b.refuse("two MCP servers have the name %q", m.Name)
	case (m.Type == "" || m.Type == agent.MCPStdio) && m.Command == "":
		b.refuse("the MCP server %q has no command", m.Name)
	case m.Type == agent.MCPHTTP && m.URL == "":
		b.refuse("the MCP server %q has no url", m.Name)
	case m.Type != "" && m.Type != agent.MCPStdio && m.Type != agent.MCPHTTP:
		b.refuse("the MCP server %q has the type %q; there are %s and %s", m.Name, m.Type, agent.MCPStdio, agent.MCPHTTP)
	}
	seen[m.Name] = true
}

// refuse notes that the command cannot be made.
func (b *builder) refuse(format string, args ...any) {
	if b.err == nil {
		b.err = types.Errorf(types.ErrInvalid, "Command", b.name, format, args...)
	}
}

// arg adds arguments.
func (b *builder) arg(args ...string) { b.cmd.Args = append(b.cmd.Args, args...) }

// file adds a file and returns its path.
func (b *builder) file(name string, data []byte) string {
	if b.at.Dir == "" {
		b.refuse("there is no directory for its file %s", name)
		return ""
	}
	b.cmd.Files = append(b.cmd.Files, File{Name: name, Data: data})
	return filepath.Join(b.at.Dir, filepath.FromSlash(name))
}

// set adds variables of the command line's own.
func (b *builder) set(pairs ...string) {
	for i := 0; i < len(pairs); i += 2 {
		b.cmd.Env[pairs[i]] = pairs[i+1]
	}
}

// finish adds the variables of the Spec, checks what the system would refuse, and returns the command.
func (b *builder) finish(s *agent.Spec) (*Command, error) {
	maps.Copy(b.cmd.Env, s.Env)
	for _, a := range b.cmd.Args {
		if len(a) > maxArgument || strings.ContainsRune(a, 0) {
			b.refuse("an argument is too long, or has a NUL character in it: %.80q", a)
		}
	}
	for n, v := range b.cmd.Env {
		if n == "" || strings.ContainsAny(n, "=\x00") || strings.ContainsRune(v, 0) || len(n)+len(v) > maxArgument-1 {
			b.refuse("the variable %q cannot be set", n)
		}
	}
	if b.err != nil {
		return nil, b.err
	}
	return &b.cmd, nil
}

// mcpServer is one server in claude's form of a configuration.
type mcpServer struct {
	Type    string            `json:"type"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
}

// mcpConfig is a configuration file in claude's form.
func mcpConfig(servers []agent.MCPServerConfig) ([]byte, error) {
	all := map[string]mcpServer{}
	for _, m := range servers {
		if m.Type == agent.MCPHTTP {
			all[m.Name] = mcpServer{Type: agent.MCPHTTP, URL: m.URL, Headers: m.Headers}
		} else {
			all[m.Name] = mcpServer{Type: agent.MCPStdio, Command: m.Command, Args: m.Args, Env: m.Env}
		}
	}
	return json.MarshalIndent(map[string]any{"mcpServers": all}, "", "  ")
}
