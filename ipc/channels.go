package ipc

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"rnix/types"
)

// maxPerChannel is how many connections may be open over one channel: more than the commands that anybody starts side by side, and few
// enough that an agent does not take the descriptors of the others.
const maxPerChannel = 64

// Channels are the channels of a daemon to what works for its processes, and their road, and a net.Listener of the connections that come over them.
// Who calls over one of these is known from the beginning (Peer.Settle), whatever its PID is. What comes over a channel is from anybody
// whom an agent lets run: it is bounded, and all that is wrong with it is that nothing is answered. Safe for concurrent use.
type Channels struct {
	log   *slog.Logger
	owner func(pid int) (owner types.PID, inside bool)
	conns chan net.Conn
	quit  chan struct{}  // closed by Close
	work  sync.WaitGroup // of the road

	mu sync.Mutex
	// +checklocks:mu
	open   map[*channel]struct{}
	closed bool  // +checklocks:mu
	road   *road // +checklocks:mu
}

// NewChannels returns a listener without channels. owner says for which process one of the operating system works, as proc.Manager.Owner does. log may be nil.
func NewChannels(owner func(pid int) (owner types.PID, inside bool), log *slog.Logger) *Channels {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Channels{log: log, owner: owner, conns: make(chan net.Conn), quit: make(chan struct{}), open: map[*channel]struct{}{}}
}

// Open makes a channel of a process and returns the end for its child, which the caller closes once the child has it, and what ends the
// channel and all connections that came over it; that may be called more than once. It fails with UNAVAILABLE after Close, and EXHAUSTED if
// the system gives no sockets.
func (l *Channels) Open(owner types.PID) (child *os.File, end func(), err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, types.Errorf(types.ErrExhausted, "Open", "", "cannot make the channel of process %d: %w", owner, err)
	}
	child = os.NewFile(uintptr(pair[1]), "channel of a child")
	c := &channel{all: l, owner: owner, socket: os.NewFile(uintptr(pair[0]), "channel"), conns: map[*channelConn]struct{}{}}
	l.mu.Lock()
	closed := l.closed
	if !closed {
		l.open[c] = struct{}{}
	}
	l.mu.Unlock()
	if closed {
		c.end()
		_ = child.Close()
		return nil, nil, types.Errorf(types.ErrUnavailable, "Open", "", "no channel can be opened: the daemon is stopping")
	}
	go c.listen() // ended by end, or when nobody has the other end any more
	return child, c.end, nil
}

// Accept waits for the next connection.
func (l *Channels) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.quit:
		return nil, net.ErrClosed
	}
}

// Addr says what this is.
func (l *Channels) Addr() net.Addr { return &net.UnixAddr{Name: "channels", Net: "unixpacket"} }

// Close ends the channels and the road: no connection comes over them any more, and none can be opened. Connections that came go on, as those of
// every listener: the server that has them ends them.
func (l *Channels) Close() error {
	l.mu.Lock()
	again := l.closed
	l.closed = true
	open := make([]*channel, 0, len(l.open))
	for c := range l.open {
		open = append(open, c)
	}
	road := l.road
	l.mu.Unlock()
	if road != nil {
		road.close()
	}
	if !again {
		close(l.quit)
	}
	for _, c := range open {
		c.deafen()
	}
	l.work.Wait()
	return nil
}

// channel is our end of one.
type channel struct {
	all    *Channels
	owner  types.PID
	socket *os.File

	mu sync.Mutex
	// +checklocks:mu
	conns map[*channelConn]struct{}
	// +checklocks:mu
	given int  // connections that are open or being made
	over  bool // +checklocks:mu
}

// peer returns for whom a connection over the channel acts: for nobody once the channel has ended.
func (c *channel) peer() (owner types.PID, inside bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return 0, true
	}
	return c.owner, true
}

// deafen lets no more connections come.
func (c *channel) deafen() { _ = c.socket.Close() } // again is no news

// end ends the channel and its connections. It does not wait for listen, which may be closing what it was sent.
func (c *channel) end() {
	c.deafen()
	c.all.mu.Lock()
	delete(c.all.open, c)
	c.all.mu.Unlock()
	c.mu.Lock()
	c.over = true
	conns := make([]*channelConn, 0, len(c.conns))
	for conn := range c.conns {
		conns = append(conns, conn)
	}
	c.mu.Unlock()
	for _, conn := range conns {
		_ = conn.Close()
	}
}

// listen answers what comes over the channel.
func (c *channel) listen() {
	defer c.deafen()
	raw, err := c.socket.SyscallConn()
	if err != nil {
		return // it has been closed
	}
	for {
		var word string
		var got []int
		var failed error
		hungUp := false
		if err := raw.Read(func(fd uintptr) bool {
			word, got, failed = receive(int(fd))
			if failed == nil && word == "" {
				hungUp = abandoned(int(fd)) // an empty message looks like the end
			}
			return failed != unix.EAGAIN
		}); err != nil {
			return
		}
		switch {
		case failed == nil && word == channelAsk && len(got) == 1:
			c.give(got[0])
		case hungUp:
			dropAll(got)
			return
		case failed != nil && failed != unix.ECONNRESET: // ENOMEM and its like: what was sent is lost, and its sender learns that
			c.all.log.Warn("a message over a channel was lost", "process", c.owner, "err", failed)
		}
		dropAll(got)
	}
}

// abandoned reports whether nobody can send to a socket any more.
func abandoned(fd int) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	_, err := unix.Poll(p, 0)
	return err == nil && p[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
}

// give makes a connection and sends its other end to where a client waits. The caller closes that.
func (c *channel) give(to int) {
	if checkSocketKind(to, unix.SOCK_SEQPACKET) != nil {
		return
	}
	say := func(word string, rights []byte) error {
		return unix.Sendmsg(to, []byte(word), rights, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
	}
	if !c.reserve() {
		_ = say(channelFull, nil) // whoever does not take it learns nothing
		return
	}
	conn, theirs, err := c.connection()
	if err != nil {
		c.release(nil)
		_ = say(channelFull, nil)
		return
	}
	err = say(channelGiven, unix.UnixRights(theirs))
	_ = unix.Close(theirs)
	if err != nil {
		_ = conn.Close()
		return
	}
	select {
	case c.all.conns <- conn:
	case <-c.all.quit:
		_ = conn.Close()
	}
}

// connection makes a connection for which there is room, and the descriptor of its other end.
func (c *channel) connection() (conn *channelConn, theirs int, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, -1, err
	}
	f := os.NewFile(uintptr(pair[0]), "connection")
	nc, err := net.FileConn(f)
	_ = f.Close() // nc has another
	conn = &channelConn{channel: c, Conn: nc}
	if err == nil && !c.note(conn) {
		err = errors.Join(net.ErrClosed, nc.Close())
	}
	if err != nil {
		_ = unix.Close(pair[1])
		return nil, -1, err
	}
	return conn, pair[1], nil
}

// reserve takes a place among the connections.
func (c *channel) reserve() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || c.given >= maxPerChannel {
		return false
	}
	c.given++
	return true
}

// note puts a connection among those that end with the channel.
func (c *channel) note(conn *channelConn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.conns[conn] = struct{}{}
	}
	return !c.over
}

// release gives a place back; conn may be nil.
func (c *channel) release(conn *channelConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.given--
	delete(c.conns, conn)
}

// channelConn is our end of a connection that came over a channel.
type channelConn struct {
	net.Conn
	channel *channel
	once    sync.Once
}

// Close closes the connection and gives its place back.
func (c *channelConn) Close() error {
	err := net.ErrClosed
	c.once.Do(func() {
		err = c.Conn.Close()
		c.channel.release(c)
	})
	return err
}
