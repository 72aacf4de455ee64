package mcpserve

import (
	"context"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// answered is a transport that knows which calls have not been answered. A session of the protocol that is
// being closed writes nothing any more, so who wants the last answers to arrive has to wait for them first.
type answered struct {
	mcp.Transport

	mu sync.Mutex
	// +checklocks:mu
	open int // calls that were read and not answered
	// +checklocks:mu
	none chan struct{} // if somebody waits: closed when open is 0
}

// Connect returns a connection that counts.
func (a *answered) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := a.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &answeredConn{c, a}, nil
}

// all returns a channel that is closed when no call is left without an answer.
func (a *answered) all() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.none == nil {
		a.none = make(chan struct{})
		if a.open == 0 {
			close(a.none)
		}
	}
	return a.none
}

// add counts n more calls.
func (a *answered) add(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	was := a.open
	if a.open += n; a.none != nil && was > 0 && a.open == 0 {
		select {
		case <-a.none: // a call that came later
		default:
			close(a.none)
		}
	}
}

type answeredConn struct {
	mcp.Connection
	count *answered
}

func (c *answeredConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if r, ok := m.(*jsonrpc.Request); ok && err == nil && r.IsCall() {
		c.count.add(1)
	}
	return m, err
}

func (c *answeredConn) Write(ctx context.Context, m jsonrpc.Message) error {
	err := c.Connection.Write(ctx, m)
	if _, ok := m.(*jsonrpc.Response); ok {
		c.count.add(-1)
	}
	return err
}
