package agent

import (
	"strings"
	"time"
)

// Spec is what a command line of an agent is started with, whichever it is. What one cannot do, its
// driver refuses; nothing is left out silently.
type Spec struct {
	Prompt string // the task; handed over on standard input
	// Attachments are shown to the model with the prompt, whose text names them.
	Attachments []Attachment
	CWD         string // absolute
	// Env are variables for this session, over the environment that it is composed with.
	Env map[string]string

	Model              string
	Effort             string
	MaxTurns           int     // 0 = no limit
	MaxBudgetUSD       float64 // 0 = no limit
	BaseInstructions   string  // in place of the command line's own; empty = its own
	SystemPromptAppend string

	// Autonomous says that nobody is there to be asked.
	Autonomous      bool
	SandboxLevel    string // read-only, workspace-write, full; empty = the command line's own
	AllowedTools    []string
	DisallowedTools []string
	// NoOwnTools switches off all tools that are the command line's own.
	NoOwnTools bool
	MCPServers []MCPServerConfig

	// Resume is the command line's own id of the session to go on with; empty = a new one.
	Resume string
	// Timeout bounds the session, Silence the time in which the command line says nothing. 0 = no limit.
	Timeout time.Duration
	Silence time.Duration
}

// Attachment is an image or a document that goes along with a text.
type Attachment struct {
	Name  string // by which a person knows it
	Media string // its media type, such as image/png
	Data  []byte
}

// Image reports whether it is an image, and no document.
func (a *Attachment) Image() bool { return strings.HasPrefix(a.Media, "image/") }

// The types of an MCPServerConfig.
const (
	MCPStdio = "stdio"
	MCPHTTP  = "http"
)

// MCPServerConfig is one MCP server that a session is given.
type MCPServerConfig struct {
	Name    string
	Type    string // MCPStdio or MCPHTTP; empty = stdio
	Command string // of stdio
	Args    []string
	Env     map[string]string
	URL     string // of http
	Headers map[string]string
}
