package ipc

import (
	"rnix/internal/hosts"
	"rnix/internal/sandbox"
	"rnix/types"
)

// ExplainSandbox tells how the commands of a process that runs are confined, or one of its MCP servers, or the program that is its model.
var ExplainSandbox = Method[SandboxRequest, SandboxResponse]{Name: "explain_sandbox", Doc: "explain_sandbox tells what the commands of a process that runs, one of its MCP servers, or the program that is its model, may read, write and reach"}

// SandboxRequest names a process, and one of its MCP servers or its model; without these it asks about its commands.
type SandboxRequest struct {
	TargetRequest
	MCP   string `json:"mcp,omitempty"`
	Model bool   `json:"model,omitempty"` // NOT_FOUND if it is neither a program nor an agent CLI
}

// SandboxResponse is how the commands of a process, a server, or a model are confined. The longest of the paths that contain a file decides about it.
type SandboxResponse struct {
	PID       types.PID      `json:"pid"`
	UUID      types.UUID     `json:"uuid"`
	By        string         `json:"by"`                   // bwrap or landlock; off = not at all
	Read      []string       `json:"read,omitempty"`       // read and executed
	Write     []string       `json:"write,omitempty"`      // read and written
	Hidden    []string       `json:"hidden,omitempty"`     //
	Protected []string       `json:"protect,omitempty"`    // neither written nor made
	Net       string         `json:"net"`                  // none, hosts or open
	Hosts     []hosts.Said   `json:"hosts,omitempty"`      // what may be reached where net is hosts, and who has said so
	Traffic   []HostTraffic  `json:"traffic,omitempty"`    // of all that the process runs, in this run
	Limits    sandbox.Limits `json:"limits,omitzero"`      // of each command; 0 = none
	Bounds    []Bound        `json:"bounds,omitempty"`     // of all that the process has started together
	Gaps      []string       `json:"gaps,omitempty"`       // what is not enforced, in sentences
	Others    []string       `json:"unconfined,omitempty"` // what of a process this host does not confine, in words
	Program   string         `json:"program,omitempty"`    // which its model is: claude, cursor or an agent CLI; asked about its commands
}

// HostTraffic is what went to a host by the proxy and came from it. Of the many hosts of one process the last ones are counted together.
type HostTraffic struct {
	Host     string `json:"host"` // host:port
	Requests int64  `json:"requests"`
	Refused  int64  `json:"refused,omitempty"`
	Sent     int64  `json:"sent"` // bytes
	Received int64  `json:"received"`
}

// Bound is a limit of what all OS processes of a process use together.
type Bound struct {
	Name  string `json:"name"`            // memory (bytes) or processes (with threads)
	Value int64  `json:"value,omitempty"` // 0 = there is no limit
	Text  string `json:"text,omitempty"`  // the value as it is written in config.yaml
	Asked bool   `json:"asked,omitempty"` // somebody has set it; else it is the usual one
	By    string `json:"by,omitempty"`    // what enforces it: cgroup, or rlimit (for each command by itself); empty = nothing
	Why   string `json:"why,omitempty"`   // that no cgroup enforces it
}
