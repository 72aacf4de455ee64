package ipc

import (
	"net"
	"sync"
	"time"

	"rnix/types"
)

// inner is a road that lies in a box which has a network of its own: who connects there is what runs in the box, and works for its process. Nothing is looked up.
type inner struct {
	all   *Channels
	owner types.PID

	mu sync.Mutex
	// +checklocks:mu
	conns map[*innerConn]struct{}
	over  bool // +checklocks:mu
}

// Inside has those who connect to a listener act for a process, as over a channel, until the listener is closed; then it ends their connections and returns. The listener
// is in the network of a box of the process, and of nothing else.
func (l *Channels) Inside(owner types.PID, at net.Listener) {
	r := &inner{all: l, owner: owner, conns: map[*innerConn]struct{}{}}
	defer r.end()
	for {
		conn, err := at.Accept()
		if err != nil && !passing(err) {
			return
		}
		if err != nil {
			select {
			case <-time.After(acceptPause):
				continue
			case <-l.quit:
				return
			}
		}
		c, err := r.take(conn)
		if err != nil {
			refuse(conn, err)
			continue
		}
		select {
		case l.conns <- c:
		case <-l.quit:
			_ = c.Close()
			return
		}
	}
}

// take makes a connection of the process.
func (r *inner) take(conn net.Conn) (*innerConn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.conns) >= maxPerRoad {
		return nil, types.Errorf(types.ErrExhausted, "Connect", "", "process %d has as many connections to the daemon as it may have (%d); end commands that run beside this one, such as rnix watch", r.owner, maxPerRoad)
	}
	c := &innerConn{Conn: conn, of: r}
	r.conns[c] = struct{}{}
	return c, nil
}

// end ends the connections.
func (r *inner) end() {
	r.mu.Lock()
	r.over = true
	conns := make([]*innerConn, 0, len(r.conns))
	for c := range r.conns {
		conns = append(conns, c)
	}
	r.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
}

// peer returns for whom a connection acts: for nobody once the box has ended.
func (r *inner) peer() (owner types.PID, inside bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return 0, true
	}
	return r.owner, true
}

// innerConn is our end of a connection that came from inside of a box.
type innerConn struct {
	net.Conn
	of   *inner
	once sync.Once
}

// Close closes the connection and gives its place back.
func (c *innerConn) Close() error {
	err := net.ErrClosed
	c.once.Do(func() {
		err = c.Conn.Close()
		c.of.mu.Lock()
		delete(c.of.conns, c)
		c.of.mu.Unlock()
	})
	return err
}
