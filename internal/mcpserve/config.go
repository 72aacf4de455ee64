package mcpserve

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"rnix/types"
)

// Clients are the programs for which Config knows how to set Rnix up.
func Clients() []string { return []string{"claude", "codex"} }

// Setup is how a client reaches the server.
type Setup struct {
	Program string   // absolute; with Args what the client runs
	Args    []string //
	Pass    []string // names of variables that the program needs, and that a client might keep from it
	URL     string   // over HTTP instead; empty = it runs the program
}

// TokenEnv is the variable in which a client over HTTP has the token: it stands in no file then.
const TokenEnv = "RNIX_MCP_TOKEN"

// Config returns the block that a user puts into a client's configuration. No value of a variable is in it.
func Config(client string, s Setup) (string, error) {
	switch client {
	case "claude":
		return claudeConfig(s)
	case "codex":
		return codexConfig(s), nil
	}
	return "", types.Errorf(types.ErrInvalid, "Config", "", "no client %q is known; known: %s", client, strings.Join(Clients(), ", "))
}

func claudeConfig(s Setup) (string, error) {
	type server struct {
		Type    string            `json:"type"`
		Command string            `json:"command,omitempty"`
		Args    []string          `json:"args,omitempty"`
		URL     string            `json:"url,omitempty"`
		Headers map[string]string `json:"headers,omitempty"`
	}
	entry := server{Type: "stdio", Command: s.Program, Args: s.Args}
	if s.URL != "" {
		entry = server{Type: "http", URL: s.URL, Headers: map[string]string{"Authorization": "Bearer ${" + TokenEnv + "}"}}
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(map[string]map[string]server{"mcpServers": {serverName: entry}}); err != nil {
		return "", types.Errorf(types.ErrInternal, "Config", "", "%w", err)
	}
	return b.String(), nil
}

func codexConfig(s Setup) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[mcp_servers.%s]\n", serverName)
	if s.URL != "" {
		fmt.Fprintf(&b, "url = %s\nbearer_token_env_var = %s\n", tomlString(s.URL), tomlString(TokenEnv))
	} else {
		fmt.Fprintf(&b, "command = %s\nargs = %s\n", tomlString(s.Program), tomlList(s.Args))
		if len(s.Pass) > 0 {
			fmt.Fprintf(&b, "env_vars = %s\n", tomlList(s.Pass))
		}
	}
	b.WriteString("tool_timeout_sec = 3600\n")
	return b.String()
}

func tomlList(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = tomlString(s)
	}
	return "[" + strings.Join(slices.Clip(quoted), ", ") + "]"
}

// tomlString quotes a string. What JSON escapes, TOML escapes likewise.
func tomlString(s string) string {
	b, _ := json.Marshal(s) // strings always can
	return string(b)
}
