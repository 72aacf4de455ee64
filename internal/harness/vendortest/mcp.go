package vendortest

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"strings"

	"rnix/agent"
	"rnix/drivers/llm/llmtest"
)

// asServer is the variable that makes a test's binary an MCP server.
const asServer = "RNIX_VENDORTEST_MCP"

// ServedMCP serves MCP on standard input and output if this process was started as MCPServer says, and
// reports whether it was. TestMain calls it first, and returns if so.
func ServedMCP() bool {
	if os.Getenv(asServer) == "" {
		return false
	}
	serve(os.Stdin, os.Stdout)
	return true
}

// MCPServer is a server of that name that the test's own binary serves, with two tools: echo gives back
// its text, with the value of the server's variable RNIX_VENDORTEST_MCP before it, and fail fails.
func MCPServer(name, value string) (agent.MCPServerConfig, error) {
	exe, err := os.Executable()
	return agent.MCPServerConfig{Name: name, Command: exe, Env: map[string]string{asServer: value}}, err
}

// serve answers requests until the end of its input.
func serve(in io.Reader, out io.Writer) {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var req struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Protocol  string `json:"protocolVersion"`
				Name      string `json:"name"`
				Arguments struct {
					Text string `json:"text"`
				} `json:"arguments"`
			} `json:"params"`
		}
		if json.Unmarshal(line, &req) != nil || len(req.ID) == 0 {
			continue // a notification
		}
		answer := map[string]any{"jsonrpc": "2.0", "id": req.ID}
		switch req.Method {
		case "initialize":
			answer["result"] = map[string]any{"protocolVersion": req.Params.Protocol, "capabilities": map[string]any{"tools": map[string]any{}}, "serverInfo": map[string]string{"name": "vendortest", "version": "1"}}
		case "ping":
			answer["result"] = map[string]any{}
		case "tools/list":
			schema := map[string]any{"type": "object", "properties": map[string]any{"text": map[string]string{"type": "string"}}}
			answer["result"] = map[string]any{"tools": []any{
				map[string]any{"name": "echo", "description": "gives back its text", "inputSchema": schema},
				map[string]any{"name": "fail", "description": "fails", "inputSchema": schema},
			}}
		case "tools/call":
			text := os.Getenv(asServer) + " " + req.Params.Arguments.Text
			answer["result"] = map[string]any{"content": []any{map[string]string{"type": "text", "text": text}}, "isError": req.Params.Name == "fail"}
		default:
			answer["error"] = map[string]any{"code": -32601, "message": "no such method"}
		}
		b, err := json.Marshal(answer)
		if err != nil {
			return
		}
		if _, err := out.Write(append(b, '\n')); err != nil {
			return
		}
	}
}

// contains reports whether a message has a text in it.
func contains(m llmtest.Message, text string) bool { return strings.Contains(m.Text, text) }
