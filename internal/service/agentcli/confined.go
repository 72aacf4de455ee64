package agentcli

import (
	"context"
	"encoding/json"
	"net"
	"sync"

	"rnix/drivers/harness"
	"rnix/internal/kernelmcp"
	"rnix/ipc"
	"rnix/types"
	"rnix/vfs"

	clis "rnix/internal/harness"
)

// Boxes says how agent CLIs are confined. *confine.Service is one.
type Boxes interface {
	CLI(c vfs.Caller, cli clis.CLI, program, dir string, readOnly bool) (harness.Confined, error)
}

// Confine says how an agent CLI is confined.
func (d *Service) Confine(c vfs.Caller, cli clis.CLI, program, dir string, readOnly bool) (harness.Confined, error) {
	return d.Boxes.CLI(c, cli, program, dir, readOnly)
}

// road is the way from agent CLIs in the sandbox to the kernel: an MCP server over HTTP. Their own servers cannot connect to the socket, and do not have
// the channel, since Bun and Python close what they have inherited. It is opened for the first of them.
type road struct {
	mu      sync.Mutex
	address string             // +checklocks:mu
	end     context.CancelFunc // +checklocks:mu
	done    chan struct{}      // +checklocks:mu
	closed  bool               // +checklocks:mu
}

// open returns the address, and listens there from now on, as serve does.
func (r *road) open(serve func(ctx context.Context, l net.Listener)) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return "", types.Errorf(types.ErrUnavailable, "Session", "", "the daemon ends")
	case r.address != "":
		return r.address, nil
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", types.Errorf(types.ErrUnavailable, "Session", "", "the kernel cannot be reached by agent CLIs in the sandbox: %w", err)
	}
	ctx, end := context.WithCancel(context.Background())
	done := make(chan struct{})
	r.address, r.end, r.done = "http://"+l.Addr().String()+"/mcp", end, done
	go func() { // ends with ctx; waited for by close
		defer close(done)
		serve(ctx, l)
	}()
	return r.address, nil
}

// close ends what open has begun.
func (r *road) close() {
	r.mu.Lock()
	end, done := r.end, r.done
	r.closed = true
	r.mu.Unlock()
	if end != nil {
		end()
		<-done
	}
}

// Close ends the way to the kernel.
func (d *Service) Close() error {
	d.road.close()
	return nil
}

// serve serves the kernel to agent CLIs in the sandbox.
func (d *Service) serve(ctx context.Context, l net.Listener) {
	err := kernelmcp.Serve(ctx, l, d.Version, func(credential string) (r ipc.SessionToolsResponse, run kernelmcp.Run, err error) {
		r, err = d.tools(ctx, nil, ipc.SessionToolsRequest{Credential: credential})
		return r, func(ctx context.Context, name string, input json.RawMessage) (ipc.SessionCallResponse, error) {
			return d.call(ctx, nil, ipc.SessionCallRequest{Credential: credential, Name: name, Input: input})
		}, err
	}, d.Owner)
	if ctx.Err() == nil {
		d.Log.Error("the way of agent CLIs in the sandbox to the kernel has ended", "err", err)
	}
}
