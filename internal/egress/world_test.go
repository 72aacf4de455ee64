package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"rnix/internal/hosts"
	"rnix/internal/sandbox"
)

// The test program is the inner helper of boxes, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.Word {
		os.Exit(sandbox.Helper(os.Args[2:]))
	}
	goleak.VerifyTestMain(m)
}

// world is a network: names, and servers at public addresses that are on the loopback in truth.
type world struct {
	mu      sync.Mutex
	names   map[string][]string // what is looked up; of several lists separated by "|", the first is given once
	servers map[string]string   // address:port to where it listens
	looked  []string            // +checklocks:mu
	dialed  []string            // +checklocks:mu
}

func (w *world) proxy() *Proxy {
	return &Proxy{Lookup: w.lookup, Dial: w.dial, Own: func() []netip.Addr { return []netip.Addr{netip.MustParseAddr("8.8.4.4")} }}
}

func (w *world) lookup(_ context.Context, name string) (out []netip.Addr, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looked = append(w.looked, name)
	list := w.names[name]
	if len(list) == 0 {
		return nil, errors.New("no such host")
	}
	if len(list) > 1 {
		w.names[name] = list[1:]
	}
	for text := range strings.FieldsSeq(list[0]) {
		out = append(out, netip.MustParseAddr(text))
	}
	return out, nil
}

func (w *world) dial(ctx context.Context, network, address string) (net.Conn, error) {
	w.mu.Lock()
	w.dialed = append(w.dialed, address)
	to, ok := w.servers[address]
	w.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("dial %s: connection refused", address)
	}
	return new(net.Dialer).DialContext(ctx, network, to)
}

func (w *world) seen() (looked, dialed string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.looked, " "), strings.Join(w.dialed, " ")
}

// serve serves h at a public address.
func (w *world) serve(t *testing.T, at string, h http.Handler) {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	w.listen(at, srv.Listener.Addr().String())
}

func (w *world) listen(at, where string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.servers == nil {
		w.servers = map[string]string{}
	}
	w.servers[at] = where
}

// client is one that is served.
type client struct {
	*Client
	t    *testing.T
	addr string
	stop func() // ends it, and waits

	mu   sync.Mutex
	told []sandbox.Refusal // +checklocks:mu
}

// client serves one with these rules.
func (w *world) client(t *testing.T, rules ...string) *client {
	t.Helper()
	return w.clientOf(t, w.proxy(), rules...)
}

// clientOf serves one with a proxy that others may have, too.
func (w *world) clientOf(t *testing.T, proxy *Proxy, rules ...string) *client {
	t.Helper()
	rs, err := hosts.ParseAll(rules)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t: t, addr: l.Addr().String()}
	c.Client = &Client{Rules: rs, Counts: &Counts{}, Refused: func(r sandbox.Refusal) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.told = append(c.told, r)
	}}
	ended := make(chan struct{})
	go func() { // ends with the listener; waited for by stop
		defer close(ended)
		proxy.Serve(l, c.Client)
	}()
	c.stop = sync.OnceFunc(func() {
		_ = l.Close()
		<-ended
	})
	t.Cleanup(c.stop)
	return c
}

func (c *client) refusals() (out []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.told {
		out = append(out, r.Target)
	}
	return out
}

// dial connects to the proxy.
func (c *client) dial() (net.Conn, *bufio.Reader) {
	c.t.Helper()
	conn, err := net.Dial("tcp", c.addr)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = conn.Close() })
	return conn, bufio.NewReader(conn)
}

// ask sends a text and returns the answer to it: its status and body.
func (c *client) ask(text string) (int, string) {
	c.t.Helper()
	conn, r := c.dial()
	defer conn.Close()
	if _, err := io.WriteString(conn, text); err != nil {
		c.t.Fatal(err)
	}
	return c.answer(r)
}

func (c *client) answer(r *bufio.Reader) (int, string) {
	c.t.Helper()
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return resp.StatusCode, err.Error()
	}
	return resp.StatusCode, string(body)
}

// connect opens a tunnel.
func (c *client) connect(host string) (net.Conn, *bufio.Reader) {
	c.t.Helper()
	conn, r := c.dial()
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", host, host)
	resp, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect})
	if err != nil || resp.StatusCode != 200 {
		c.t.Fatalf("%+v %v", resp, err)
	}
	return conn, r
}

// echo is a server that answers each line with itself, and says what it was sent when nothing more comes.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() { // ends with the listener; waited for below
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close()
				n := 0
				r := bufio.NewReader(conn)
				for {
					line, err := r.ReadString('\n')
					n += len(line)
					if err != nil {
						fmt.Fprintf(conn, "over after %d\n", n)
						return
					}
					_, _ = io.WriteString(conn, line)
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	return l.Addr().String()
}
