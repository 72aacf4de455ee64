package ipc

import (
	"encoding/json"
	"time"

	"rnix/agent"
	"rnix/types"
)

// ProjectRequest names the directory whose project configuration counts.
type ProjectRequest struct {
	Cwd          string   `json:"cwd,omitempty"`
	Env          []string `json:"env,omitempty"` // as in SpawnRequest
	TrustProject bool     `json:"trust_project,omitempty"`
}

// ProvidersRequest asks for the providers that a spawn from Cwd would see.
type ProvidersRequest struct {
	ProjectRequest
	Agent    string `json:"agent,omitempty"`
	Provider string `json:"provider,omitempty"`
}

// ProvidersResponse is the providers.
type ProvidersResponse struct {
	Chosen    string     `json:"chosen"`
	Why       string     `json:"why"`
	Providers []Provider `json:"providers"`
	Problems  []string   `json:"problems,omitempty"` // of configuration files, file:line:column
	Mistakes  []string   `json:"mistakes,omitempty"` // those of the problems because of which no agent starts
	Warnings  []string   `json:"warnings,omitempty"` // those of the problems that are none: what they concern counts all the same
}

// Provider is one model provider.
type Provider struct {
	Name      string `json:"name"`
	Driver    string `json:"driver"`
	Path      string `json:"path"` // in the VFS
	Model     string `json:"model,omitempty"`
	Available bool   `json:"available"`
	Detail    string `json:"detail"` // why, or why not and how to mend it
	Source    string `json:"source"` // built-in, environment, or a file
	// AtOnce is how many calls it gets at once, the others wait; 0 = any number.
	AtOnce int `json:"concurrency,omitempty"`
	// AtOnceFrom says where that is set: "default", or the key and its file; empty = nowhere, since any number may run.
	AtOnceFrom string `json:"concurrency_from,omitempty"`
}

// ProviderTraffic is of the whole daemon, and names no process.
var ProviderTraffic = Method[Empty, ProviderCallsResponse]{Name: "provider_calls", Doc: "provider_calls says how many calls each provider runs now, how many wait, and since when"}

// ProviderCallsResponse is the traffic of the providers that are in use now, of all agents of the daemon. Its list is never null.
type ProviderCallsResponse struct {
	Providers []ProviderCalls `json:"providers"`
}

// ProviderCalls are the calls of one provider as one configuration has it: those that run, and those that wait for a place.
type ProviderCalls struct {
	Provider string    `json:"provider"`
	Running  int       `json:"running"`
	Waiting  int       `json:"waiting"`
	AtOnce   int       `json:"concurrency,omitempty"`      // how many run at once; 0 = any number
	From     string    `json:"concurrency_from,omitempty"` // as AtOnceFrom of Provider
	Oldest   time.Time `json:"oldest_since,omitzero"`      // since when the first of those waits; zero = none does
}

// AgentsResponse is the agents.
type AgentsResponse struct {
	Agents   []AgentInfo `json:"agents"`
	Problems []string    `json:"problems,omitempty"`
}

// AgentInfo is one agent.
type AgentInfo struct {
	agent.Manifest
	Scope  string `json:"scope"` // project, user, built-in
	Source string `json:"source"`
}

// SkillsResponse is the skills.
type SkillsResponse struct {
	Skills   []agent.Skill `json:"skills"`
	Problems []string      `json:"problems,omitempty"`
}

// MCPListResponse is the MCP servers.
type MCPListResponse struct {
	Servers  []MCPServerInfo `json:"servers"`
	Mounts   []MCPMount      `json:"mounts"`
	Problems []string        `json:"problems,omitempty"`
}

// MCPServerInfo is one configured server. Values of its environment and headers are not shown.
type MCPServerInfo struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Command  string `json:"command"` // command line or URL
	Source   string `json:"source"`
	Disabled bool   `json:"disabled,omitempty"`
	Problem  string `json:"problem,omitempty"` // why it cannot be used; empty = it can
}

// MCPMount is one mounted server.
type MCPMount struct {
	Path  string    `json:"path"`
	PID   types.PID `json:"pid"` // of the process that has it; 0 = mounted by a person
	Since time.Time `json:"since"`
	Tools int       `json:"tools"`
	// State is starting, running, restarting, lost (the next call connects again) or failed, StateSince since when, and Reason why it is lost or has failed, without secrets. Agents are
	// told the reason of their own servers only.
	State      string    `json:"state,omitempty"`
	StateSince time.Time `json:"state_since,omitzero"`
	Reason     string    `json:"reason,omitempty"`
	OSPID      int       `json:"os_pid,omitempty"` // of its program, while it runs
}

// MCPReloadRequest picks servers of running processes: those of this name, and of this process. What is empty picks all.
type MCPReloadRequest struct {
	Server  string `json:"server,omitempty"`
	Process string `json:"process,omitempty"`
}

// MCPReloadResponse says of each server that was picked what came of it, in the order of their paths.
type MCPReloadResponse struct {
	Servers []MCPReloaded `json:"servers"`
}

// MCPReloaded is one server that was started anew. Tools are named as models see them.
type MCPReloaded struct {
	Path    string           `json:"path"`
	PID     types.PID        `json:"pid"`
	Server  string           `json:"server"`
	Tools   int              `json:"tools"` // how many it has now
	Added   []string         `json:"added,omitempty"`
	Removed []string         `json:"removed,omitempty"`
	Changed []string         `json:"changed,omitempty"` // another description, input, or effect
	Error   *types.WireError `json:"error,omitempty"`   // why it could not be started, or was left as it was
}

// MCPMountRequest asks for a server at a path: one of the configuration, or a command that is one on stdin and stdout.
type MCPMountRequest struct {
	ProjectRequest
	Path    string   `json:"path"`              // /mnt/mcp/NAME
	Server  string   `json:"server,omitempty"`  // exactly one of Server and Command
	Command []string `json:"command,omitempty"` // the program and its arguments
}

// MCPUnmountRequest names a mount.
type MCPUnmountRequest struct {
	Path string `json:"path"`
}

// MCPTestRequest names a configured server.
type MCPTestRequest struct {
	ProjectRequest
	Server string `json:"server"`
}

// MCPTestResponse says what the server offers and how long it took.
type MCPTestResponse struct {
	ConnectMs int64           `json:"connect_ms"`
	Tools     json.RawMessage `json:"tools"`
	Resources json.RawMessage `json:"resources,omitempty"`
}
