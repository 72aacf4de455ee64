package web

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"rnix/types"
)

// How much there may be at a time. A page has three streams and a few short calls, and a browser opens six connections
// to a server, over all its tabs; so who meets a limit does something else than look.
const (
	maxCalls    = 24  // calls under way of one session
	maxCallsAll = 192 // of all
	maxConns    = 192 // connections that anybody may have; beyond them only who was let in is served
	maxConnsAll = 512 // beyond them nobody is
)

// entrance is the listener. It counts the connections, so that those of strangers, whom nothing keeps from connecting,
// do not take the place of those who were let in.
type entrance struct {
	net.Listener
	open atomic.Int64
}

// arrived is a connection that was counted.
type arrived struct {
	net.Conn
	late   bool // there were maxConns before it
	forget func()
}

func (c *arrived) Close() error {
	c.forget()
	return c.Conn.Close()
}

// Accept returns the next connection that there is room for. Those before it are hung up on.
func (e *entrance) Accept() (net.Conn, error) {
	for {
		c, err := e.Listener.Accept()
		if err != nil {
			return nil, err
		}
		n := e.open.Add(1)
		if n <= maxConnsAll {
			return &arrived{c, n > maxConns, sync.OnceFunc(func() { e.open.Add(-1) })}, nil
		}
		// It fits into what the kernel keeps for a new connection, so nobody waits here.
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = c.Write([]byte("HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 5\r\nContent-Length: 0\r\n\r\n"))
		_ = c.Close()
		e.open.Add(-1)
	}
}

// lateKey is where the context of a request says that its connection is one too many.
type lateKey struct{}

func markLate(ctx context.Context, c net.Conn) context.Context {
	if a, ok := c.(*arrived); ok && a.late {
		return context.WithValue(ctx, lateKey{}, true)
	}
	return ctx
}

// crowdedOut reports whether there is no room for a request: it came late, from who was not let in. The next request needs a
// connection of its own then, which may find room. Who has a link may always use it.
func (s *Server) crowdedOut(w http.ResponseWriter, r *http.Request) bool {
	if r.Context().Value(lateKey{}) == nil {
		return false
	}
	w.Header().Set("Connection", "close")
	return r.URL.Path != "/login" && !s.doors.hasCookie(r)
}

// begin notes that a call of a session is under way, until end is called. The error says that the browser was not let in, or
// that too much is under way.
func (d *doors) begin(r *http.Request, now time.Time) (end func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.find(r)
	if s == nil {
		return nil, errStranger
	}
	s.used = now
	switch {
	case s.calls >= maxCalls:
		return nil, types.Errorf(types.ErrExhausted, "Call", "", "%d calls of this browser are under way, and more may not be: close some tabs of the dashboard, then try again", s.calls)
	case d.calls >= maxCallsAll:
		return nil, types.Errorf(types.ErrExhausted, "Call", "", "%d calls of all browsers are under way, and more may not be: close some tabs of the dashboard, then try again", d.calls)
	}
	s.calls++
	d.calls++
	return sync.OnceFunc(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		s.calls--
		d.calls--
	}), nil
}
