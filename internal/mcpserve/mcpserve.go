// Package mcpserve makes Rnix an MCP server, over standard input and output or over HTTP. What it offers
// comes from a Source: the tools of one session of an agent's command line (Session), or processes for a
// client of the user's (Processes). It owns the two transports, who may connect, and the signs of life
// of long calls. It knows the socket and nothing behind it: each call becomes a call of an ipc client.
package mcpserve

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rnix/internal/kernelmcp"
)

// serverName is what the server calls itself to clients.
const serverName = "rnix"

// Source is what a server offers.
type Source interface {
	// options are those of the protocol's server.
	options() *mcp.ServerOptions
	// install adds what is offered to a server that nobody is connected to yet.
	install(s *mcp.Server)
	// lost is closed when the source has nothing to offer any more; why says what happened then. A source
	// that nothing of the kind happens to returns nil.
	lost() <-chan struct{}
	why() error
}

// newServer returns a server that offers what a source has. Its calls end with ctx.
func newServer(ctx context.Context, src Source, version string) *mcp.Server {
	return kernelmcp.NewServer(ctx, version, src.options(), src.install)
}
