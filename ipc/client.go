package ipc

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rnix/internal/proc"
	"rnix/runtime/env"
	"rnix/runtime/statehome"
	"rnix/types"
)

// Client talks to one daemon. It may be used by several goroutines; each call that is under way has
// a connection of its own, and idle ones are used again.
//
// The client speaks HTTP/1.1 with its own few lines and not through net/http: that takes a sixth off
// the time from fork to exit of a short command.
type Client struct {
	socket string
	uid    uint32 // whose daemon we talk to

	mu sync.Mutex
	// +checklocks:mu
	idle   []*conn // the one used last stands last
	closed bool    // +checklocks:mu
}

// How many connections a client keeps for later, and how long: shorter than the server would.
const (
	maxIdle  = 4
	idleLife = idleTimeout / 2
)

// NewClient returns a client of the daemon that listens on socket, or has the channel or the road whose address it is. It does not connect yet.
func NewClient(socket string) *Client { return &Client{socket: socket, uid: uint32(os.Geteuid())} }

// Connect returns a client that has a connection to the daemon on socket. If no daemon runs there,
// the error has the code SERVICE_UNAVAILABLE. Ensure starts one instead.
func Connect(ctx context.Context, socket string) (*Client, error) {
	c := NewClient(socket)
	cn, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	c.keep(cn)
	return c, nil
}

// Socket returns the path of the daemon's socket, or the address of the channel or the road to it.
func (c *Client) Socket() string { return c.socket }

// Close closes the idle connections. Calls and streams that are under way go on.
func (c *Client) Close() error {
	c.mu.Lock()
	idle := c.idle
	c.idle, c.closed = nil, true
	c.mu.Unlock()
	for _, cn := range idle {
		_ = cn.Close()
	}
	return nil
}

// Call calls m and returns its answer. An error of the daemon comes back as the SyscallError that it
// was. There is no time limit but ctx, whose end closes the connection and so ends the call in the
// daemon too. A call is never sent twice: when the connection breaks before the answer is complete,
// the error has the code DEVICE_DISCONNECTED and the call may or may not have been done.
func Call[Req, Resp any](ctx context.Context, c *Client, m Method[Req, Resp], req Req) (Resp, error) {
	var answer envelope[Resp]
	body, err := c.call(ctx, m.Name, m.Path(), req)
	if err != nil {
		return answer.Data, err
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return answer.Data, types.Errorf(types.ErrInternal, m.Name, c.socket, "the daemon's answer is not what this program understands; are they of the same version? %w", err)
	}
	if answer.OK {
		return answer.Data, nil
	}
	var zero Resp
	return zero, refusal(m.Name, c.socket, answer.Error)
}

// refusal returns the error of an answer that is not ok.
func refusal(name, socket string, w *types.WireError) error {
	if w == nil {
		return types.Errorf(types.ErrInternal, name, socket, "the daemon refused and did not say why")
	}
	return w.FromWire()
}

// call sends a request and returns the body of the answer.
func (c *Client) call(ctx context.Context, name, path string, req any) ([]byte, error) {
	msg, err := request(name, path, req, 0)
	if err != nil {
		return nil, err
	}
	cn, err := c.conn(ctx)
	if err != nil {
		return nil, err
	}
	var body []byte
	var reusable bool
	err = cn.during(ctx, func() error {
		res, err := cn.exchange(msg)
		if err != nil {
			return err
		}
		reusable = res.keep
		body, err = res.all()
		return err
	})
	if err != nil {
		_ = cn.Close()
		return nil, broken(ctx, name, c.socket, err)
	}
	if reusable {
		c.keep(cn)
	} else {
		_ = cn.Close()
	}
	return body, nil
}

// broken returns what a failed exchange means to the caller.
func broken(ctx context.Context, name, socket string, err error) error {
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, context.DeadlineExceeded):
		return types.Errorf(types.ErrTimeout, name, "", "%w", cause)
	case cause != nil:
		return types.Errorf(types.ErrCancelled, name, "", "%w", cause)
	}
	if typed, ok := err.(*types.SyscallError); ok {
		return types.Errorf(typed.Code, name, socket, "%w", typed.Err) // nonsense, not an interruption
	}
	return types.Errorf(types.ErrDisconnected, name, socket, "the daemon closed the connection before it had answered (has it stopped?): %w", err)
}

// conn returns a connection, an idle one if there is one that the daemon has not closed.
func (c *Client) conn(ctx context.Context) (*conn, error) {
	for {
		c.mu.Lock()
		n := len(c.idle)
		if n == 0 {
			c.mu.Unlock()
			return c.dial(ctx)
		}
		cn := c.idle[n-1]
		c.idle = c.idle[:n-1]
		c.mu.Unlock()
		if time.Since(cn.used) < idleLife && cn.alive() {
			return cn, nil
		}
		_ = cn.Close()
	}
}

func (c *Client) keep(cn *conn) {
	cn.used = time.Now()
	c.mu.Lock()
	full := c.closed || len(c.idle) >= maxIdle
	if !full {
		c.idle = append(c.idle, cn)
	}
	c.mu.Unlock()
	if full {
		_ = cn.Close()
	}
}

// nobody listens: the causes of a failed connect that mean that no daemon runs.
func nobodyListens(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}

// dial connects, and refuses a daemon of another user.
func (c *Client) dial(ctx context.Context) (*conn, error) {
	const op = "Connect"
	if fd, ok := channelOf(c.socket); ok { // whoever has given it to us is whom we work for
		nc, err := dialChannel(ctx, fd, c.socket)
		if err != nil {
			return nil, err
		}
		return newConn(nc), nil
	}
	if at, ok := roadOf(c.socket); ok {
		nc, err := dialRoad(ctx, at, c.socket)
		if err != nil {
			return nil, err
		}
		return newConn(nc), nil
	}
	if err := statehome.CheckSocketPath(c.socket); err != nil {
		return nil, err
	}
	var d net.Dialer
	nc, err := d.DialContext(ctx, "unix", c.socket)
	for wait := 5 * time.Millisecond; errors.Is(err, syscall.EAGAIN); wait = min(2*wait, 200*time.Millisecond) {
		// The queue of connections is full: the daemon is there and does not keep up.
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		nc, err = d.DialContext(ctx, "unix", c.socket)
	}
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, broken(ctx, op, c.socket, err)
	case nobodyListens(err):
		return nil, types.Errorf(types.ErrUnavailable, op, c.socket, "no daemon runs here; start it with: rnix daemon start (%w)", cause(err))
	case errors.Is(err, syscall.EPERM): // of socket(2): a path that may not be connected to gives EACCES
		return nil, types.Errorf(types.ErrPermission, op, c.socket, "no Unix socket can be made here, as in a sandbox: %w; the commands of an agent reach the daemon over the channel that %s names", cause(err), env.ChannelVar)
	case errors.Is(err, fs.ErrPermission):
		return nil, types.Errorf(types.ErrPermission, op, c.socket, "this socket is not yours: %w", cause(err))
	default:
		return nil, types.Errorf(types.ErrUnavailable, op, c.socket, "%w", cause(err))
	}
	if p, err := peerOf(nc); err != nil || p.UID != c.uid {
		_ = nc.Close()
		if err != nil {
			return nil, types.Errorf(types.ErrPermission, op, c.socket, "the system does not tell who listens: %w", err)
		}
		return nil, types.Errorf(types.ErrPermission, op, c.socket, "uid %d listens here, and you are uid %d; nothing was sent", p.UID, c.uid)
	} else if warden, inside := proc.Within(p.PID); inside {
		_ = nc.Close()
		return nil, types.Errorf(types.ErrPermission, op, c.socket, "process %d listens here, which an agent has started (below the warden with pid %d): it is not your daemon, and nothing was sent to it. Look at what it is, end it, and stop the daemon with: kill %d", p.PID, warden, warden)
	}
	return newConn(nc), nil
}

// cause returns the system's part of a network error, which names the path a second time.
func cause(err error) error {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}
