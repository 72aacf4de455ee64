// Package kernelmcp is what all MCP servers of this program have in common, and the one that serves the tools of the kernel to the session of an
// agent's command line: over HTTP, or by what internal/mcpserve has.
package kernelmcp

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Name is what the servers call themselves to clients.
const Name = "rnix"

// NewServer returns a server that offers what install adds to it. Its calls end with ctx.
func NewServer(ctx context.Context, version string, options *mcp.ServerOptions, install func(*mcp.Server)) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: Name, Title: "Rnix", Version: version}, options)
	install(s)
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
