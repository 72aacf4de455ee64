package kernelmcp

import (
	"context"
	"net"
	"sync"

	"rnix/types"
)

type callerKey struct{}

// caller is who has made a connection. Once it is known, it stays.
type caller struct {
	conn net.Conn

	mu sync.Mutex
	// +checklocks:mu
	owner types.PID // for which it works
	// +checklocks:mu
	known bool // whether that could be told
}

func withCaller(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, callerKey{}, &caller{conn: c})
}

var errOther = types.Errorf(types.ErrPermission, "Caller", "", "a command of another process may not call for this session")

// looks is how often it is looked who has a connection: a program that starts another shares it with that for a moment.
const looks = 5

// worksFor reports whether all processes that have the other end of a connection work for a process.
func (c *caller) worksFor(pid types.PID, owner func(pid int) (types.PID, bool)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n := 0; n < looks && !c.known; n++ {
		inode, err := OtherEnd(c.conn)
		if err != nil {
			return false
		}
		c.owner, c.known = ownerOf(func(among []int) []int { return Holders(inode, among) }, owner)
	}
	return c.known && c.owner == pid
}

// ownerOf returns for which one process all work that holders returns, of some or of all; false if that cannot be told.
func ownerOf(holders func(among []int) []int, owner func(pid int) (types.PID, bool)) (types.PID, bool) {
	pids := holders(nil)
	var of types.PID
	for i, p := range pids {
		who, inside := owner(p)
		if !inside || i > 0 && who != of {
			return 0, false
		}
		of = who
	}
	return of, len(pids) > 0 && len(holders(pids)) == len(pids) // none has ended, and its number is another's
}

// limited accepts so many connections at once as room has room for; others wait.
type limited struct {
	net.Listener
	room chan struct{}
}

func (l *limited) Accept() (net.Conn, error) {
	l.room <- struct{}{} // a server closes its connections when it ends
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.room
		return nil, err
	}
	return &counted{Conn: c, leave: sync.OnceFunc(func() { <-l.room })}, nil
}

type counted struct {
	net.Conn
	leave func()
}

func (c *counted) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
