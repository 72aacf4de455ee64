package ipc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rnix/internal/proc"
	"rnix/types"
)

// A road is an address on the loopback of this machine at which the wire is spoken with what works for some processes and has lost the descriptor of
// its channel. Whose a connection is, is looked up when it comes, by the processes that have its other end: all of them must work for one process, and
// that one must have a road. Who is not, is told so and hung up on; of what it says nothing is read but to be thrown away.

const (
	maxPerRoad  = 128                    // connections of one process that are open at once
	maxLooking  = 2                      // connections at once of which it is looked whose they are: who connects all the time takes no more of the daemon
	refuseTime  = time.Second            // for the words to one that is refused to be taken by the system, and for its request to come before
	maxHeard    = 16                     // connections at once whose request is waited for before it is refused
	mostHeard   = 64 << 10               // bytes of such a request
	acceptPause = 100 * time.Millisecond // before the next try when the system gives no connection
)

// road is the listener. It is there for as long as a process has a road.
type road struct {
	all      *Channels
	listener net.Listener
	looking  chan struct{} // has room for maxLooking
	hearing  chan struct{} // has room for maxHeard
	quit     chan struct{} // closed by close
	once     sync.Once

	mu sync.Mutex
	// +checklocks:mu
	owners map[types.PID]*traveller
}

// traveller is a process that has a road. What stands behind uses is guarded by the road's mu.
type traveller struct {
	owner types.PID
	uses  int
	over  bool // the process has none any more
	conns map[*roadConn]struct{}
}

// Road opens a road of a process: until end, which may be called more than once, what works for the process may connect to address (host:port), and
// acts for it as over a channel. The address is the same for all that are open at once. end ends the connections, too. It fails with UNAVAILABLE after
// Close, and if no address can be listened at.
func (l *Channels) Road(owner types.PID) (address string, end func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return "", nil, types.Errorf(types.ErrUnavailable, "Open", "", "no road can be opened: the daemon is stopping")
	}
	if l.road == nil {
		at, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			return "", nil, types.Errorf(types.ErrUnavailable, "Open", "", "agent CLIs in the sandbox cannot reach the daemon: %w", err)
		}
		l.road = &road{all: l, listener: at, looking: make(chan struct{}, maxLooking), hearing: make(chan struct{}, maxHeard), quit: make(chan struct{}), owners: map[types.PID]*traveller{}}
		l.work.Go(l.road.accept) // ends with the listener; waited for by Close
	}
	r := l.road
	r.enter(owner)
	return r.listener.Addr().String(), sync.OnceFunc(func() { l.leave(r, owner) }), nil
}

// leave takes a road from a process. The listener goes with the last one.
func (l *Channels) leave(r *road, owner types.PID) {
	l.mu.Lock()
	conns, last := r.leave(owner)
	if last && l.road == r {
		l.road = nil
	}
	l.mu.Unlock()
	if last {
		r.close()
	}
	for _, c := range conns {
		_ = c.Close()
	}
}

// forget lets the next road have another listener than r.
func (l *Channels) forget(r *road) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.road == r {
		l.road = nil
	}
}

func (r *road) enter(owner types.PID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.owners[owner] == nil {
		r.owners[owner] = &traveller{owner: owner, conns: map[*roadConn]struct{}{}}
	}
	r.owners[owner].uses++
}

// leave returns the connections that have to end, and whether nobody has a road any more.
func (r *road) leave(owner types.PID) (conns []*roadConn, last bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.owners[owner]
	if t.uses--; t.uses == 0 {
		delete(r.owners, owner)
		t.over = true
		for c := range t.conns {
			conns = append(conns, c)
		}
	}
	return conns, len(r.owners) == 0
}

func (r *road) close() {
	r.once.Do(func() {
		close(r.quit)
		_ = r.listener.Close() // again is no news
	})
}

// accept takes connections until the road is closed.
func (r *road) accept() {
	for {
		conn, err := r.listener.Accept()
		if err != nil {
			if !passing(err) {
				r.lost(err)
				return
			}
			select {
			case <-time.After(acceptPause):
				continue
			case <-r.quit:
				return
			}
		}
		if hungUp(conn) { // nobody is told anything, so who only connects costs nothing
			_ = conn.Close()
			continue
		}
		select {
		case r.looking <- struct{}{}:
		case <-r.quit:
			_ = conn.Close()
			return
		}
		r.all.work.Go(func() { // ends when the connection has been given on; waited for by Close
			r.admit(conn)
			<-r.looking
		})
	}
}

// hungUp reports whether the other end has closed a connection over which nothing came.
func hungUp(conn net.Conn) bool {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return true
	}
	over := false
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		n, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		over = err == nil && n == 0 || err == unix.ECONNRESET
	})
	return over || err != nil
}

// passing reports whether the next connection may be taken all the same.
func passing(err error) bool {
	for _, no := range []error{unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.ENOBUFS, unix.ECONNABORTED} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

// lost lets the next road have another listener, if this one has ended before it was closed.
func (r *road) lost(err error) {
	select {
	case <-r.quit:
	default:
		r.all.log.Error("agent CLIs that run cannot reach the daemon any more", "err", err)
		r.all.forget(r)
		r.close()
	}
}

// admit gives a connection to the server, or refuses it.
func (r *road) admit(conn net.Conn) {
	owner, err := proc.OwnerOfOther(conn, r.all.owner)
	if err != nil {
		r.turnAway(conn, types.Errorf(types.ErrPermission, "Connect", "", "this address is for the commands of agent CLIs in the sandbox, and no other program may use it: %w", err))
		return
	}
	c, err := r.take(owner, conn)
	if err != nil {
		r.turnAway(conn, err)
		return
	}
	select {
	case r.all.conns <- c:
	case <-r.quit:
		_ = c.Close()
	case <-r.all.quit:
		_ = c.Close()
	}
}

// turnAway refuses a connection once it has asked: many clients take an answer that comes before for a fault of the connection. In a flood it is refused at once.
func (r *road) turnAway(conn net.Conn, why error) {
	select {
	case r.hearing <- struct{}{}:
	default:
		refuse(conn, why)
		return
	}
	r.all.work.Go(func() { // ends with the connection or refuseTime; waited for by Close
		defer func() { <-r.hearing }()
		heard := make(chan struct{})
		defer close(heard)
		r.all.work.Go(func() { // ends with the one above
			select {
			case <-heard:
			case <-r.quit:
				_ = conn.Close()
			}
		})
		_ = conn.SetReadDeadline(time.Now().Add(refuseTime)) // sockets have deadlines
		_, _ = conn.Read(make([]byte, 1))                    // it may ask nothing
		tell(conn, why)
		_, _ = io.CopyN(io.Discard, conn, mostHeard) // an answer may be lost with what is not read
		_ = conn.Close()
	})
}

// take makes a connection of what works for a process.
func (r *road) take(owner types.PID, conn net.Conn) (*roadConn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.owners[owner]
	switch {
	case t == nil:
		return nil, types.Errorf(types.ErrPermission, "Connect", "", "this address is for the commands of agent CLIs in the sandbox, and process %d has none that runs", owner)
	case len(t.conns) >= maxPerRoad:
		return nil, types.Errorf(types.ErrExhausted, "Connect", "", "process %d has as many connections to the daemon as it may have (%d); end commands that run beside this one, such as rnix watch", owner, maxPerRoad)
	}
	c := &roadConn{Conn: conn, road: r, of: t}
	t.conns[c] = struct{}{}
	return c, nil
}

// roadConn is our end of a connection that came over a road.
type roadConn struct {
	net.Conn
	road *road
	of   *traveller
	once sync.Once
}

// peer returns for whom the connection acts: for nobody once the process has no road any more.
func (c *roadConn) peer() (owner types.PID, inside bool) {
	c.road.mu.Lock()
	defer c.road.mu.Unlock()
	if c.of.over {
		return 0, true
	}
	return c.of.owner, true
}

// Close closes the connection and gives its place back.
func (c *roadConn) Close() error {
	err := net.ErrClosed
	c.once.Do(func() {
		err = c.Conn.Close()
		c.road.mu.Lock()
		delete(c.of.conns, c)
		c.road.mu.Unlock()
	})
	return err
}

// refuse tells a program that connected why it is hung up on, and does that.
func refuse(conn net.Conn, why error) {
	tell(conn, why)
	_ = conn.Close() // what is lost of it was nothing
}

// tell answers whatever a program asks, as the last that is said to it.
func tell(conn net.Conn, why error) {
	wire := types.ToWire(why)
	var body bytes.Buffer
	_ = json.NewEncoder(&body).Encode(failure{Error: wire}) // it holds texts
	_ = conn.SetWriteDeadline(time.Now().Add(refuseTime))   // sockets have deadlines
	_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s",
		statusOf[wire.Code], http.StatusText(statusOf[wire.Code]), body.Len(), body.Bytes())
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // it may have gone
	}
}
