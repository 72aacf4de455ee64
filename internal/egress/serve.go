package egress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"strings"
	"sync"
	"time"

	"rnix/internal/hosts"
	"rnix/internal/sandbox"
)

// bounded is a listener that refuses more connections than a client may have.
type bounded struct {
	net.Listener
	s *server
}

// Accept waits for the next connection for which there is room.
func (b *bounded) Accept() (net.Conn, error) {
	for {
		conn, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		r := b.s.admit()
		if r == nil {
			return &inConn{Conn: conn, s: b.s}, nil
		}
		b.s.refuse(r)
		_ = conn.SetWriteDeadline(time.Now().Add(refuseTime)) // sockets have deadlines
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", r.status, http.StatusText(r.status), len(r.Error())+1, r.Error()+"\n")
		_ = conn.Close() // what is lost of it was nothing
	}
}

// admit gives a connection of the client a place, or says why there is none.
func (s *server) admit() *refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open >= maxConns {
		return full()
	}
	if most := room(); s.proxy.open.Add(1) > most {
		s.proxy.open.Add(-1)
		return crowded(most)
	}
	s.open++
	return nil
}

// inConn is a connection of the client, which gives its place back.
type inConn struct {
	net.Conn
	s    *server
	once sync.Once
}

// Close closes the connection.
func (c *inConn) Close() error {
	err := net.ErrClosed
	c.once.Do(func() {
		err = c.Conn.Close()
		c.s.mu.Lock()
		c.s.open--
		c.s.mu.Unlock()
		c.s.proxy.open.Add(-1)
	})
	return err
}

// CloseWrite says that no more comes.
func (c *inConn) CloseWrite() error { return closeWrite(c.Conn) }

// closeWrite ends one direction of a connection, or all of one that has no directions.
func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// wayKey is under what the context of a request has its way.
type wayKey struct{}

// ServeHTTP answers one request.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		panic(http.ErrAbortHandler) // to return would be to say that all is well
	}
	defer s.work.Done()
	to, err := targetOf(r)
	var found way
	if err == nil {
		r.URL.Host = to.String() // under which the transport keeps its connections
		found, err = s.find(r.Context(), to)
	}
	switch {
	case err != nil:
		s.failed(w, r, err)
	case r.Method == http.MethodConnect:
		s.tunnel(w, r, found)
	default:
		s.count(to)
		s.forward.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), wayKey{}, found)))
	}
}

func (s *server) count(to hosts.Target) {
	if s.client.Counts != nil {
		s.client.Counts.request(to.String())
	}
}

// targetOf returns to where a request goes.
func targetOf(r *http.Request) (to hosts.Target, err error) {
	switch {
	case r.Method == http.MethodConnect:
		to, err = hosts.ParseTarget(r.RequestURI, 0)
	case r.URL.Host == "":
		return to, wrong("it names no host, as requests to a proxy do; this is the proxy of the sandbox, and no server")
	case r.URL.Scheme != "http":
		return to, wrong("for %s it must use CONNECT", cut(r.URL.Scheme))
	case r.URL.User != nil:
		return to, wrong("a name and a password stand before the host")
	default:
		to, err = hosts.ParseTarget(r.URL.Host, 80)
	}
	if err != nil {
		return to, wrong("%v", err)
	}
	return to, nil
}

func cut(text string) string { return text[:min(len(text), 40)] }

// rewrite makes the request to the host of one to the proxy. What is between the client and the proxy alone is taken out before.
func rewrite(r *httputil.ProxyRequest) {
	for name := range r.Out.Header {
		if strings.HasPrefix(name, "Proxy-") {
			r.Out.Header.Del(name)
		}
	}
	r.Out.Host = strings.TrimSuffix(r.Out.URL.Host, ":80")
}

// failed answers a request that does not get to its host.
func (s *server) failed(w http.ResponseWriter, r *http.Request, err error) {
	status, text := http.StatusBadGateway, ""
	no, ok := errors.AsType[*refusal](err)
	switch {
	case ok:
		s.refuse(no)
		status, text = no.status, no.Error()
	case r.Context().Err() != nil:
		panic(http.ErrAbortHandler) // it is not waited for any more; to return would be to say that all is well
	default:
		text = fmt.Sprintf("%s%s, and could not connect to it: %v", sandbox.ProxyFailed, r.URL.Host, err)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Proxy-Status", "rnix")
	w.Header().Set("Connection", "close") // what comes behind it may be the rest of what was not understood
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, text) // it may have gone
}

// tunnel connects a client with a host, whatever they say to each other.
func (s *server) tunnel(w http.ResponseWriter, r *http.Request, to way) {
	s.count(to.to)
	out, err := s.connect(r.Context(), to)
	if err != nil {
		s.failed(w, r, err)
		return
	}
	defer out.Close()
	in, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		s.failed(w, r, err)
		return
	}
	defer in.Close()
	stop := context.AfterFunc(r.Context(), func() { _ = in.Close() }) // that of a hijacked request ends with the server
	defer stop()
	_ = in.SetDeadline(time.Time{}) // sockets have deadlines
	if _, err := io.WriteString(in, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	early, _ := buffered.Peek(buffered.Reader.Buffered()) // more is not read from it: it would take the end of one direction for that of both
	var sent sync.WaitGroup
	sent.Go(func() { // ends with one of the connections; waited for below
		_, err := io.Copy(out, io.MultiReader(bytes.NewReader(early), in))
		if err == nil {
			err = closeWrite(out)
		}
		if err != nil {
			_ = out.Close()
		}
	})
	if _, err = io.Copy(in, out); err == nil {
		err = closeWrite(in)
	}
	if err != nil { // nobody takes any more
		_ = in.Close()
		_ = out.Close()
	}
	sent.Wait()
}

// dial connects the transport to the host of a request.
func (s *server) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	to, ok := ctx.Value(wayKey{}).(way)
	if !ok {
		return nil, errors.New("it is not known where to")
	}
	return s.connect(ctx, to)
}

// connect connects to one of the addresses of a host.
func (s *server) connect(ctx context.Context, to way) (net.Conn, error) {
	dial := s.proxy.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	var errs []error
	for _, ip := range to.addrs {
		conn, err := within(ctx, dial, netip.AddrPortFrom(ip, to.to.Port))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if out := s.watched(conn, to.to.String()); out != nil {
			return out, nil
		}
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	return nil, errors.Join(errs...)
}

func within(ctx context.Context, dial func(context.Context, string, string) (net.Conn, error), at netip.AddrPort) (net.Conn, error) {
	ctx, stop := context.WithTimeout(ctx, connectTime)
	defer stop()
	return dial(ctx, "tcp", at.String())
}

// outConn is a connection to a host: it is counted, and ends when nothing comes or goes for long.
type outConn struct {
	net.Conn
	s     *server
	count *Count
	idle  *time.Timer
	once  sync.Once
}

// watched makes the connection to a host one of the server's; nil = that has ended.
func (s *server) watched(conn net.Conn, host string) *outConn {
	c := &outConn{Conn: conn, s: s}
	if s.client.Counts != nil {
		c.count = s.client.Counts.of(host)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return nil
	}
	if s.conns == nil {
		s.conns = map[*outConn]struct{}{}
	}
	s.conns[c] = struct{}{}
	c.idle = time.AfterFunc(idleTime, func() { _ = c.Close() })
	return c
}

// Read reads, and counts that.
func (c *outConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.moved(0, n)
	return n, err
}

// Write writes, and counts that.
func (c *outConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.moved(n, 0)
	return n, err
}

func (c *outConn) moved(sent, received int) {
	if sent+received > 0 {
		c.idle.Reset(idleTime)
	}
	if c.count != nil {
		c.count.sent.Add(int64(sent))
		c.count.received.Add(int64(received))
	}
}

// CloseWrite says that no more comes.
func (c *outConn) CloseWrite() error { return closeWrite(c.Conn) }

// Close closes the connection.
func (c *outConn) Close() error {
	err := net.ErrClosed
	c.once.Do(func() {
		c.idle.Stop()
		err = c.Conn.Close()
		c.s.mu.Lock()
		delete(c.s.conns, c)
		c.s.mu.Unlock()
	})
	return err
}
