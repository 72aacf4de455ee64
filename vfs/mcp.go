package vfs

import (
	"context"
	"encoding/json"

	"rnix/agent"
)

// MCPConfig says how to reach an MCP server, and for whom.
type MCPConfig struct {
	agent.MCPServer
	Dir   string // working directory of a stdio server
	Owner Caller // the process that it is mounted for
	// Pinned are the programs and scripts of a project that it starts, as a person has looked at them: nothing else is started in their place; nil =
	// no person has.
	Pinned *Pinned
}

// Pinned are files of a project by what they are.
type Pinned struct {
	Root  string // of the project, or of the copy of it in which the server works; without symbolic links
	Files []PinnedFile
}

// PinnedFile is a file that the command line of a server names.
type PinnedFile struct {
	Arg  int    // which argument names it, from 0; -1 = it is the command
	Flag string // what stands before it in the argument, such as --import=
	Path string // below the root, with slashes
	Sum  string // the SHA-256 of its contents, in hex
	Kind string // see trust.File
}

// MCPTransport is a connection to an MCP server. Implementations are safe for concurrent calls.
type MCPTransport interface {
	// Connect starts or reaches the server and initialises the protocol, within ctx.
	Connect(ctx context.Context) error
	// Call performs one method ("tools/list", "tools/call", "resources/list", "resources/read",
	// "prompts/list") and returns its result. Lists are complete: all pages are fetched, up to the
	// transport's caps.
	Call(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
	// Close ends the connection and every OS process that was started for it.
	Close() error
	// Ping checks that the server answers.
	Ping(ctx context.Context) error
}

// TransportFactory makes the transport for a configuration, without connecting.
type TransportFactory func(config MCPConfig) (MCPTransport, error)
