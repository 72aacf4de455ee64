// Package mcpserve makes Rnix an MCP server, over standard input and output or over HTTP. What it offers
// comes from a Source: the tools of one session of an agent's command line (Session), or processes for a
// client of the user's (Processes). It owns the two transports, who may connect, and the signs of life
// of long calls. It knows the socket and nothing behind it: each call becomes a call of an ipc client.
package mcpserve

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
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
	s := mcp.NewServer(&mcp.Implementation{Name: serverName, Title: "Rnix", Version: version}, src.options())
	src.install(s)
	s.AddReceivingMiddleware(endingWith(ctx), withProgress)
	return s
}

// endingWith ends what is asked of a server with the life of the server, besides that of the client.
func endingWith(life context.Context) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			ctx, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			defer context.AfterFunc(life, func() { cancel(context.Cause(life)) })()
			return next(ctx, method, req)
		}
	}
}

// progressEvery is the time between two signs of life of a call. Clients that give up after a minute of
// silence do not, then.
const progressEvery = 10 * time.Second

// withProgress tells a client that has asked for it, every ten seconds, that its call goes on.
func withProgress(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		call, ok := req.(*mcp.CallToolRequest)
		if !ok || call.Params == nil || call.Params.GetProgressToken() == nil {
			return next(ctx, method, req)
		}
		ticking, stop := context.WithCancel(ctx)
		var tick sync.WaitGroup
		tick.Go(func() { // owned by this call, which ends it and waits for it
			began := time.Now()
			t := time.NewTicker(progressEvery)
			defer t.Stop()
			for {
				select {
				case <-ticking.Done():
					return
				case <-t.C:
				}
				s := math.Round(time.Since(began).Seconds())
				// One that does not arrive is no reason to end the call.
				_ = call.Session.NotifyProgress(ticking, &mcp.ProgressNotificationParams{ProgressToken: call.Params.GetProgressToken(),
					Progress: s, Message: fmt.Sprintf("%s: %.0f s", call.Params.Name, s)})
			}
		})
		defer tick.Wait()
		defer stop()
		return next(ctx, method, req)
	}
}
