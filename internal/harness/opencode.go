package harness

import (
	"encoding/json"
	"path/filepath"
	"strings"

	"rnix/agent"
	"rnix/types"
)

// opencode is opencode, `opencode run` with JSON lines. It hears nothing while it runs.
type opencode struct{}

// opencodeKeys are the usual variables by which its providers log in, beside what it keeps in the user's
// home.
var opencodeKeys = []string{"OPENCODE_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY"}

// opencodeReaders are the tools of its own that change nothing.
var opencodeReaders = []string{"read", "glob", "grep", "list", "webfetch", "websearch", "codesearch", "todowrite", "todoread"}

func (opencode) Name() string { return "opencode" }

func (opencode) Can() Abilities {
	return Abilities{Resume: true, OwnToolsOff: true, CountsCost: true, Hook: true, Images: true, Documents: true}
}

// opencodeConfig is what a session adds to the user's configuration.
type opencodeConfig struct {
	AutoUpdate   bool                     `json:"autoupdate"`
	Share        string                   `json:"share"`
	Instructions []string                 `json:"instructions,omitempty"`
	Agent        map[string]opencodeAgent `json:"agent"`
	MCP          map[string]opencodeMCP   `json:"mcp,omitempty"`
	Permission   map[string]string        `json:"permission,omitempty"`
	Plugin       []string                 `json:"plugin,omitempty"`
	// Of the gateway.
	Provider map[string]opencodeProvider `json:"provider,omitempty"`
	Enabled  []string                    `json:"enabled_providers,omitempty"`
}

type opencodeAgent struct {
	Disable bool            `json:"disable,omitempty"`
	Mode    string          `json:"mode,omitempty"`
	Prompt  string          `json:"prompt,omitempty"`
	Tools   map[string]bool `json:"tools,omitempty"`
}

type opencodeMCP struct {
	Type        string            `json:"type"`
	Command     []string          `json:"command,omitempty"`
	Environment map[string]string `json:"environment,omitempty"`
	URL         string            `json:"url,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	Enabled     bool              `json:"enabled"`
}

// Command writes a configuration for an agent of the session's own. opencode has no sandbox: what it may
// not do is a tool that it does not have, so that who may write only the workspace has no shell.
func (c opencode) Command(s agent.Spec, at Place) (*Command, error) {
	b := begin(c.Name(), &s, at, opencodeKeys...)
	switch {
	case s.MaxTurns > 0:
		b.refuse("it cannot be limited to %d turns", s.MaxTurns)
	case s.MaxBudgetUSD > 0:
		b.refuse("it cannot be limited to %v dollars", s.MaxBudgetUSD)
	case s.Model != "" && !strings.Contains(s.Model, "/"):
		b.refuse("a model is named with its provider, provider/model, and %q is not", s.Model)
	case at.MCPConfig != "" && len(s.MCPServers) == 0:
		b.refuse("it reads no file of MCP servers (%s): they have to be in the Spec", at.MCPConfig)
	}
	b.arg("run", "--format", "json")
	if s.Resume != "" {
		b.arg("--session=" + s.Resume)
	} else {
		b.arg("--title=rnix") // else it asks the model for one
	}
	if s.Model != "" {
		b.arg("--model=" + s.Model)
	}
	if s.Effort != "" {
		b.arg("--variant=" + s.Effort)
	}
	for _, file := range b.shown(&s) {
		b.arg("--file=" + file)
	}
	own := opencodeAgent{Mode: "primary", Prompt: s.BaseInstructions}
	conf := opencodeConfig{Share: "disabled", Agent: map[string]opencodeAgent{"title": {Disable: true}}, Permission: c.permissions(b, &s)}
	if s.NoOwnTools {
		own.Tools = map[string]bool{"*": false}
	} else if at.Judged {
		conf.Plugin = []string{c.judge(b)}
	}
	for _, m := range s.MCPServers {
		if s.NoOwnTools {
			own.Tools[m.Name+"_*"] = true
		}
		if conf.MCP == nil {
			conf.MCP = map[string]opencodeMCP{}
		}
		if m.Type == agent.MCPHTTP {
			conf.MCP[m.Name] = opencodeMCP{Type: "remote", URL: m.URL, Headers: m.Headers, Enabled: true}
		} else {
			conf.MCP[m.Name] = opencodeMCP{Type: "local", Command: append([]string{m.Command}, m.Args...), Environment: m.Env, Enabled: true}
		}
	}
	if own.Prompt != "" || own.Tools != nil {
		conf.Agent["rnix"] = own
		b.arg("--agent=rnix")
	}
	if s.SandboxLevel == SandboxFull {
		b.arg("--auto")
	}
	if !at.Trusted {
		b.set("OPENCODE_DISABLE_PROJECT_CONFIG", "1") // and with it the project's instructions
		if !s.NoOwnTools {
			conf.Instructions = append(conf.Instructions, filepath.Join(s.CWD, "AGENTS.md"))
		}
	}
	if s.SystemPromptAppend != "" {
		conf.Instructions = append(conf.Instructions, b.file("append.md", []byte(s.SystemPromptAppend)))
	}
	c.gateway(b, &conf)
	data, err := json.MarshalIndent(conf, "", "  ")
	if err != nil {
		b.refuse("its configuration cannot be written: %w", err)
	}
	b.set("OPENCODE_CONFIG", b.file("opencode.json", data), "OPENCODE_DISABLE_AUTOUPDATE", "1", "OPENCODE_DISABLE_TERMINAL_TITLE", "1")
	b.cmd.Stdin = []byte(s.Prompt)
	return b.finish(&s)
}

// permissions says what it may use; nil = the user's own. Later rules go before earlier ones only if they
// are more special, so there is one general rule.
func (opencode) permissions(b *builder, s *agent.Spec) map[string]string {
	p := map[string]string{}
	switch {
	case s.NoOwnTools:
		p["*"] = "deny"
	case s.SandboxLevel == SandboxFull:
		p["*"] = "allow"
	case s.SandboxLevel != "" || len(s.AllowedTools) > 0:
		p["*"] = "deny"
		for _, t := range opencodeReaders {
			p[t] = "allow"
		}
		if s.SandboxLevel == SandboxWorkspace {
			p["edit"] = "allow"
		}
	}
	if len(p) > 0 {
		for _, m := range s.MCPServers {
			p[m.Name+"_*"] = "allow"
		}
	}
	for _, list := range []struct {
		tools []string
		rule  string
	}{{s.AllowedTools, "allow"}, {s.DisallowedTools, "deny"}} {
		for _, t := range list.tools {
			if !plainID(strings.TrimSuffix(t, "*")) || t == "" || t == "*" {
				b.refuse("%q is no name of a tool, such as bash or edit", t)
			}
			p[t] = list.rule
		}
	}
	return p
}

func (opencode) ToolName(server, tool string) string { return server + "_" + tool }

// Kept is a database, which the program reads.
func (opencode) Kept(session string, _ func(string) string) Kept {
	return Kept{Args: []string{"export", session}, CallIDs: true}
}

func (opencode) Steer(string, ...agent.Attachment) ([]byte, error) {
	return nil, types.Errorf(types.ErrUnavailable, "Steer", "opencode", "opencode hears nothing while it runs; end the session and resume it with what you have to say")
}

func (opencode) Interrupt() ([]byte, error) {
	return nil, types.Errorf(types.ErrUnavailable, "Interrupt", "opencode", "opencode cannot be told to end a turn; SIGTERM ends it, and the session can be resumed")
}

// Lines does without what was used before: opencode says what each request has used.
func (opencode) Lines(agent.UsageEvent) Lines { return &opencodeLines{} }
