package harness

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"rnix/agent"
)

// claude is Claude Code, `claude -p` with JSON lines both ways.
type claude struct{}

// claudeKeys are the variables by which it logs in, beside what it keeps in the user's home.
var claudeKeys = []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR"}

// claudeReaders are the tools of its own that change nothing.
const claudeReaders = "Read,Glob,Grep,WebFetch,WebSearch"

// kernelServer is the MCP server that is allowed when a configuration file says which there are.
const kernelServer = "rnix"

func (claude) Name() string { return "claude" }

func (claude) Can() Abilities {
	return Abilities{Resume: true, Steer: true, Interrupt: true, OwnToolsOff: true, Turns: true, Dollars: true, CountsCost: true, Images: true, Documents: true}
}

// Command asks for partial messages, since only these say how many tokens an answer has cost, and for
// the user's messages again, which say when one has been taken in. The user's own settings count, but
// for NoOwnTools; MCP servers are only those that are given. Nobody is ever asked for a permission: what is
// not allowed is refused, unless whoever runs it has allowed it (Place.Judged).
func (c claude) Command(s agent.Spec, at Place) (*Command, error) {
	b := begin(c.Name(), &s, at, claudeKeys...)
	b.arg("-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose", "--include-partial-messages", "--replay-user-messages")
	if s.Resume != "" {
		b.arg("--resume=" + s.Resume)
	}
	if s.Model != "" {
		b.arg("--model=" + s.Model)
	}
	if s.Effort != "" {
		if s.Effort == "minimal" { // another vendor's word
			s.Effort = "low"
		}
		b.arg("--effort=" + s.Effort)
	}
	if s.MaxTurns > 0 {
		b.arg("--max-turns=" + strconv.Itoa(s.MaxTurns))
	}
	if s.MaxBudgetUSD > 0 {
		b.arg("--max-budget-usd=" + strconv.FormatFloat(s.MaxBudgetUSD, 'f', -1, 64))
	}
	if s.BaseInstructions != "" {
		b.arg("--system-prompt-file=" + b.file("system.md", []byte(s.BaseInstructions)))
	}
	if s.SystemPromptAppend != "" {
		b.arg("--append-system-prompt-file=" + b.file("append.md", []byte(s.SystemPromptAppend)))
	}
	if s.Resume != "" && s.BaseInstructions+s.SystemPromptAppend != "" { // else it sends the ones that it has recorded
		b.arg("--system-prompt-snapshot=off")
	}
	c.tools(b, &s)
	settings := map[string]any{} // claude takes one --settings, the last
	if env := c.gateway(b); env != nil {
		settings["env"] = env
	}
	b.set("MCP_TOOL_TIMEOUT", strconv.FormatInt(maxToolTime.Milliseconds(), 10), "CLAUDE_CODE_MAX_RETRIES", "2", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1",
		"DISABLE_AUTOUPDATER", "1", "DISABLE_TELEMETRY", "1", "DISABLE_ERROR_REPORTING", "1")
	var err error
	if b.cmd.Stdin, err = c.Steer(s.Prompt, s.Attachments...); err != nil {
		return nil, err
	}
	if at.Judged && !s.NoOwnTools {
		first, err := c.judgeFirst()
		if err != nil {
			return nil, err
		}
		b.cmd.Stdin = append(first, b.cmd.Stdin...)
		settings["disableAllHooks"] = false // whatever files say
	}
	if len(settings) > 0 {
		data, err := json.Marshal(settings)
		if err != nil {
			b.refuse("its settings cannot be written: %w", err)
		}
		b.arg("--settings=" + string(data)) // nothing in it is a secret
	}
	b.cmd.KeepStdin = true
	return b.finish(&s)
}

// tools says which tools it has and may use.
func (claude) tools(b *builder, s *agent.Spec) {
	config := b.at.MCPConfig
	if config == "" && len(s.MCPServers) > 0 {
		data, err := mcpConfig(s.MCPServers)
		if err != nil {
			b.refuse("the MCP servers cannot be written: %w", err)
		}
		config = b.file("mcp.json", data)
	}
	allowed := slices.Clone(s.AllowedTools)
	if config != "" {
		b.arg("--mcp-config", config)
		for _, m := range s.MCPServers {
			allowed = append(allowed, "mcp__"+m.Name)
		}
		if len(s.MCPServers) == 0 {
			allowed = append(allowed, "mcp__"+kernelServer)
		}
	}
	b.arg("--strict-mcp-config")
	if !b.at.Trusted && !s.NoOwnTools { // without its settings, a project's instructions are those of a directory that was added
		b.arg("--setting-sources=user", "--add-dir", s.CWD)
		b.set("CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD", "1")
	}
	switch {
	case s.NoOwnTools:
		b.arg("--tools", "", "--setting-sources", "", "--disable-slash-commands", "--permission-mode=dontAsk")
	case s.SandboxLevel == SandboxFull:
		b.arg("--dangerously-skip-permissions")
	case s.SandboxLevel == SandboxReadOnly:
		b.arg("--tools", claudeReaders, "--permission-mode=dontAsk")
	case s.SandboxLevel == "" && len(s.AllowedTools) > 0:
		b.arg("--permission-mode=dontAsk")
	case b.at.Confined: // what it may is bounded there, and nobody could give it a permission
		b.arg("--dangerously-skip-permissions")
		b.set("IS_SANDBOX", "1") // it works as root, too
	default:
		b.arg("--permission-mode=acceptEdits")
	}
	for _, list := range []struct {
		flag  string
		tools []string
	}{{"--allowedTools=", allowed}, {"--disallowedTools=", s.DisallowedTools}} {
		for _, t := range list.tools {
			if strings.TrimSpace(t) == "" || strings.ContainsAny(t, "\n\r") {
				b.refuse("%q is no name of a tool", t)
			}
		}
		if len(list.tools) > 0 {
			b.arg(list.flag + strings.Join(list.tools, ","))
		}
	}
}

func (claude) ToolName(server, tool string) string { return "mcp__" + server + "__" + tool }

// Kept is a file for each session, in a directory for each project.
func (claude) Kept(session string, env func(string) string) Kept {
	k := keptFiles(env, "CLAUDE_CONFIG_DIR", ".claude", "projects/*/"+session+".jsonl")
	k.CallIDs = true
	return k
}

// Steer is heard before the next request to the model, or begins the next turn. What is shown stands before the text, in one message with it: that is
// never put together with another, and is heard by its one text.
func (claude) Steer(text string, shown ...agent.Attachment) ([]byte, error) {
	var content any = text
	if len(shown) > 0 {
		blocks := make([]any, 0, len(shown)+1)
		for i := range shown {
			kind := "document"
			if shown[i].Image() {
				kind = "image"
			}
			blocks = append(blocks, map[string]any{"type": kind, "source": map[string]any{"type": "base64", "media_type": shown[i].Media, "data": shown[i].Data}})
		}
		content = append(blocks, map[string]any{"type": "text", "text": text})
	}
	return jsonLine(map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": content}})
}

// Interrupt ends the turn with a ResultEvent whose Subtype is WhyInterrupted. It does nothing between turns.
func (claude) Interrupt() ([]byte, error) {
	return jsonLine(map[string]any{"type": "control_request", "request_id": "stop-" + rand.Text()[:8], "request": map[string]any{"subtype": "interrupt"}})
}

// Lines does without what was used before: claude says what each turn has used.
func (claude) Lines(agent.UsageEvent) Lines { return &claudeLines{} }

// jsonLine is a value as one line of JSON, with its end.
func jsonLine(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out) // which escapes line ends, and writes one
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return out.Bytes(), err
}
