package vfs

import (
	"context"
	"encoding/json"
	"time"

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
	// Tell is told what becomes of the server after it was mounted; nil = nobody is. It may be called from any goroutine, and must not block.
	Tell func(MCPNews)
}

// MCPNews is something that has become of a mounted server.
type MCPNews struct {
	Kind   MCPNewsKind
	Reason error      // of NewsLost and NewsFailed
	Tools  ToolChange // of NewsTools
	Stream string     // of NewsLine: stderr, or the level of a message, such as info
	Line   string     // of NewsLine, without its end
}

// MCPNewsKind says what has become of a server.
type MCPNewsKind int

const (
	// NewsLost: its connection has ended. The next call connects again.
	NewsLost MCPNewsKind = iota + 1
	// NewsFailed: it could not be connected again, or not reloaded. A later call tries once more.
	NewsFailed
	// NewsBack: it is connected again.
	NewsBack
	// NewsList: it says that its tools have changed. The mount manager hears it, and tells NewsTools in its place.
	NewsList
	// NewsLine: it has said a line for people. It is one of few: lines that come too fast, or are too many, are left out and counted.
	NewsLine
	// NewsTools: its tools are different from what was told last.
	NewsTools
)

// MCPState is how the connection to a server is.
type MCPState struct {
	State  string    // one of the constants below
	Since  time.Time // of this state
	Reason error     // of lost and failed
	OSPID  int       // of a server that is an OS child, while it runs; 0 = it is none
}

// The states of a server. Part of the wire format.
const (
	MCPStarting   = "starting"   // for the first time
	MCPRunning    = "running"    // it answered last
	MCPRestarting = "restarting" // by a call, or a reload
	MCPLost       = "lost"       // the next call connects again
	MCPFailed     = "failed"     // it could not be started, or not again
)

// MCPStater is a transport that says how its connection is.
type MCPStater interface {
	State() MCPState
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

// MCPCloser is a transport that is closed for a reason, which calls under way are told.
type MCPCloser interface {
	CloseFor(reason error) error
}

// MCPDropper is a transport whose connection can be ended without closing it, for a reason: its next call connects again, and tells NewsBack.
type MCPDropper interface {
	Drop(reason error)
}

// TransportFactory makes the transport for a configuration, without connecting.
type TransportFactory func(config MCPConfig) (MCPTransport, error)
