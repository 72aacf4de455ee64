package ipc

import "encoding/json"

// ListTools lists what every agent may be offered; the tools of MCP servers are told by MCPTest.
var ListTools = Method[ProjectRequest, ToolsResponse]{Name: "list_tools", Doc: "list_tools lists the tools of the devices and of the kernel, with the schemas of their inputs"}

// ToolsResponse is the tools, by device.
type ToolsResponse struct {
	Tools    []ToolInfo `json:"tools"`
	Problems []string   `json:"problems,omitempty"` // of configuration files, file:line:column
}

// ToolInfo is one tool as a model is offered it.
type ToolInfo struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Path        string          `json:"path,omitempty"` // what is opened for a call; empty = nothing outside of the process
	Op          string          `json:"op,omitempty"`   // which operation of the device
	Effect      string          `json:"effect"`         // none, idempotent, reversible, external: what a call does to the world
	Offered     bool            `json:"offered"`        // agents are offered it here, if they may open its path
	InputSchema json.RawMessage `json:"input_schema"`   // JSON Schema of the input
}
