package harness

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rnix/agent"
	"rnix/types"
)

// codex is OpenAI's Codex, `codex exec` with JSON lines. It hears nothing while it runs.
type codex struct{}

// codexKeys are the variables by which it logs in, beside what it keeps in the user's home.
var codexKeys = []string{"CODEX_API_KEY", "OPENAI_API_KEY", "CODEX_HOME"}

// headerVariables is how the variables begin that hold headers of MCP servers.
const headerVariables = "RNIX_MCP_"

func (codex) Name() string { return "codex" }

func (codex) Can() Abilities {
	return Abilities{Resume: true, OwnToolsOff: true, Hook: true, Begins: true, Fixed: true, Images: true}
}

// Command uses the user's own home of codex, in which the login is. With NoOwnTools the user's
// configuration there does not count; what cannot be switched off then, a tool that patches files, is
// refused by a sandbox that only reads. An MCP server that cannot be started fails the session. Whether a
// project's own settings count, codex decides by what the user has told it of the project; Place.Trusted has
// no say in it.
func (c codex) Command(s agent.Spec, at Place) (*Command, error) {
	b := begin(c.Name(), &s, at, codexKeys...)
	switch {
	case s.MaxTurns > 0:
		b.refuse("it cannot be limited to %d turns", s.MaxTurns)
	case s.MaxBudgetUSD > 0:
		b.refuse("it cannot be limited to %v dollars: it does not say what it costs", s.MaxBudgetUSD)
	case len(s.AllowedTools) > 0:
		b.refuse("it has no list of allowed tools (%s); a sandbox level says what it may do", strings.Join(s.AllowedTools, ", "))
	case len(s.DisallowedTools) > 0:
		b.refuse("it has no list of forbidden tools (%s); a sandbox level says what it may do", strings.Join(s.DisallowedTools, ", "))
	case s.NoOwnTools && s.SandboxLevel != "" && s.SandboxLevel != SandboxReadOnly:
		b.refuse("its own tools are switched off by a sandbox that only reads, so the level cannot be %s", s.SandboxLevel)
	case at.MCPConfig != "" && len(s.MCPServers) == 0:
		b.refuse("it reads no file of MCP servers (%s): they have to be in the Spec", at.MCPConfig)
	}
	b.arg("exec")
	if s.Resume != "" {
		b.arg("resume")
	}
	b.arg("--json", "--skip-git-repo-check")
	config := func(key string, value any) { b.arg("-c", key+"="+toml(value)) }
	config("approval_policy", "never")
	config("analytics.enabled", false)
	config("check_for_update_on_startup", false)
	c.gateway(b, config)
	if s.Model != "" {
		config("model", s.Model)
	}
	if s.Effort != "" {
		config("model_reasoning_effort", s.Effort)
	}
	if s.BaseInstructions != "" {
		config("model_instructions_file", b.file("instructions.md", []byte(s.BaseInstructions)))
	}
	if s.SystemPromptAppend != "" {
		config("developer_instructions", s.SystemPromptAppend)
	}
	level := s.SandboxLevel
	if s.NoOwnTools {
		level = SandboxReadOnly
		b.arg("--ignore-user-config", "--ignore-rules")
		for _, feature := range []string{"shell_tool", "unified_exec", "view_image", "multi_agent", "goals", "sleep_tool"} {
			b.arg("--disable", feature)
		}
		config("agents.enabled", false)
		config("web_search", "disabled")
		config("include_environment_context", false)
		config("skills.include_instructions", false)
		b.arg("-c", "tools.experimental_request_user_input={enabled=false}")
	}
	if at.Confined && !s.NoOwnTools {
		level = SandboxFull
	}
	if at.Judged && !s.NoOwnTools {
		c.judge(b)
	}
	switch level {
	case SandboxFull:
		config("sandbox_mode", "danger-full-access")
	case SandboxReadOnly, SandboxWorkspace:
		config("sandbox_mode", level)
	}
	headers := 0
	for i := range s.MCPServers {
		c.server(b, &s.MCPServers[i], &headers)
	}
	if headers > 0 { // its shells do not see them
		b.arg("-c", `shell_environment_policy.exclude=["`+headerVariables+`*"]`)
	}
	for _, file := range b.shown(&s) {
		if strings.Contains(file, ",") { // which separates files
			b.refuse("an image cannot be shown to it from %q, since there is a comma in the path; set XDG_DATA_HOME to a directory without one", file)
		}
		b.arg("--image=" + file)
	}
	if s.Resume != "" {
		b.arg(s.Resume)
	}
	b.arg("-")
	b.cmd.Stdin = []byte(s.Prompt)
	return b.finish(&s)
}

// server adds an MCP server. Arguments can be seen by everybody on the machine, so the values of variables
// are in a file that a shell reads, and those of headers in variables.
func (codex) server(b *builder, m *agent.MCPServerConfig, headers *int) {
	key := "mcp_servers." + m.Name + "."
	config := func(name string, value any) { b.arg("-c", key+name+"="+toml(value)) }
	config("required", true)
	config("default_tools_approval_mode", "approve")
	config("tool_timeout_sec", int(maxToolTime.Seconds())) // else a minute
	if m.Type == agent.MCPHTTP {
		config("url", m.URL)
		if len(m.Headers) == 0 {
			return
		}
		var pairs []string
		for _, h := range sortedKeys(m.Headers) {
			*headers++
			name := headerVariables + strconv.Itoa(*headers)
			b.set(name, m.Headers[h])
			b.cmd.Secrets = append(b.cmd.Secrets, name)
			pairs = append(pairs, toml(h)+"="+toml(name))
		}
		b.arg("-c", key+"env_http_headers={"+strings.Join(pairs, ",")+"}")
		return
	}
	command, args := m.Command, m.Args
	if len(m.Env) > 0 {
		var script strings.Builder
		for _, n := range sortedKeys(m.Env) {
			if !variable(n) || strings.ContainsRune(m.Env[n], 0) {
				b.refuse("the variable %q of the MCP server %s cannot be set", n, m.Name)
			}
			fmt.Fprintf(&script, "export %s='%s'\n", n, strings.ReplaceAll(m.Env[n], "'", `'\''`))
		}
		file := b.file("mcp-"+m.Name+".env", []byte(script.String()))
		command, args = "/bin/sh", append([]string{"-c", `. "$0" && exec "$@"`, file, m.Command}, m.Args...)
	}
	config("command", command)
	config("args", slices.Clone(args))
}

// variable reports whether a shell takes a name for that of a variable.
func variable(name string) bool {
	for i, r := range name {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_' || i > 0 && r >= '0' && r <= '9') {
			return false
		}
	}
	return name != ""
}

func sortedKeys(m map[string]string) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// toml is a text, a bool or a list of texts as a value of TOML, which is almost as JSON has it.
func toml(v any) string {
	if list, ok := v.([]string); ok && list == nil {
		return "[]"
	}
	b, err := json.Marshal(v)
	if err != nil {
		return `""` // not for these types
	}
	return strings.ReplaceAll(string(b), "\x7f", `\u007f`)
}

// ToolName is the name of a namespace, and of the tool in it.
func (codex) ToolName(server, tool string) string { return "mcp__" + server + "." + tool }

// Kept is a file for each session, below a directory for each day.
func (codex) Kept(session string, env func(string) string) Kept {
	return keptFiles(env, "CODEX_HOME", ".codex", "sessions/*/*/*/*"+session+".jsonl")
}

func (codex) Steer(string, ...agent.Attachment) ([]byte, error) {
	return nil, types.Errorf(types.ErrUnavailable, "Steer", "codex", "codex hears nothing while it runs; end the session and resume it with what you have to say")
}

func (codex) Interrupt() ([]byte, error) {
	return nil, types.Errorf(types.ErrUnavailable, "Interrupt", "codex", "codex cannot be told to end a turn; SIGTERM ends it, and the session can be resumed")
}

func (codex) Lines(before agent.UsageEvent) Lines { return newCodexLines(before) }
