// Package egress is the way out of a box whose network is its own: an HTTP proxy that connects programs to the hosts that they may reach, and to no other. It
// listens inside of the box (proc.Inner), so who connects is what runs in that box.
//
// It looks up a name only when the name is allowed, checks the address that it gets, and connects to that address. What it refuses it tells.
package egress

import (
	"cmp"
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"code.dny.dev/ssrf"
	"golang.org/x/sys/unix"

	"rnix/internal/hosts"
	"rnix/internal/sandbox"
)

// Bounds of what one client has.
const (
	maxConns    = 128              // connections at once
	maxAll      = 2048             // of all clients of a Proxy, each with one to a host
	maxHeader   = 64 << 10         // bytes of the header of a request
	headerTime  = 30 * time.Second // for that
	restTime    = 2 * time.Minute  // of a connection between two requests
	lookupTime  = 20 * time.Second
	connectTime = 15 * time.Second // for each address
	idleTime    = time.Hour        // of a connection to a host over which nothing comes or goes
	refuseTime  = time.Second      // for the words to one that is refused to be taken by the system
)

// Proxy connects clients. The zero value looks up names and connects as this machine does. Safe for concurrent use.
type Proxy struct {
	Lookup func(ctx context.Context, name string) ([]netip.Addr, error)         // nil = the resolver of this machine
	Dial   func(ctx context.Context, network, address string) (net.Conn, error) // nil = a connection of this machine; network is tcp
	Own    func() []netip.Addr                                                  // the addresses of this machine; nil = those of its interfaces

	open atomic.Int64 // connections of clients
}

// room bounds the connections of all clients: by maxAll, and to a quarter of the files that this program may have open.
var room = sync.OnceValue(func() int64 {
	var files unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &files) != nil {
		return maxAll
	}
	return max(min(maxAll, int64(min(files.Cur, 1<<20))/8), 1)
})

// Client is what runs in one box. Its fields are set before it is served.
type Client struct {
	Rules hosts.Rules
	Who   string // whose connections these are, in refusals; empty = those of commands
	// Judge decides about a host, which rules name or not, and may wait for a person, until ctx ends; nil = what rules name is allowed.
	Judge func(ctx context.Context, to hosts.Target, named bool) Verdict
	// Refused is told each refusal, but no host twice for the same reason; nil = nobody is told.
	Refused func(sandbox.Refusal)
	Counts  *Counts // nil = nothing is counted
	End     func()  // called when nothing is served any more; nil = nothing is to be done
}

// who names whose connections these are.
func (c *Client) who() string { return cmp.Or(c.Who, "commands") }

// Verdict is what a Judge has decided.
type Verdict struct {
	Allow bool
	Why   string // of a refusal: a sentence that names the host; empty = no rule names it
	Over  error  // it is not known, since ctx has ended
}

// Serve serves a client until the listener is closed. Then it ends what is open, waits for that, and returns.
func (p *Proxy) Serve(l net.Listener, c *Client) {
	ctx, stop := context.WithCancel(context.Background())
	s := &server{proxy: p, client: c, told: map[string]bool{}}
	quiet := log.New(discard{}, "", 0) // what a client does wrong it is told itself
	s.transport = &http.Transport{DialContext: s.dial, DisableCompression: true, MaxIdleConnsPerHost: 4, MaxIdleConns: 32, IdleConnTimeout: restTime, ExpectContinueTimeout: time.Second}
	s.forward = &httputil.ReverseProxy{Rewrite: rewrite, Transport: s.transport, FlushInterval: -1, ErrorHandler: s.failed, ErrorLog: quiet}
	srv := &http.Server{
		Handler: s, ReadHeaderTimeout: headerTime, IdleTimeout: restTime, MaxHeaderBytes: maxHeader, ErrorLog: quiet, DisableGeneralOptionsHandler: true,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	_ = srv.Serve(&bounded{Listener: l, s: s}) // that it is closed is how it ends
	stop()
	_ = srv.Close()
	s.end()
	s.transport.CloseIdleConnections()
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// server serves one client.
type server struct {
	proxy     *Proxy
	client    *Client
	transport *http.Transport
	forward   *httputil.ReverseProxy
	work      sync.WaitGroup // requests, and connections to hosts

	mu sync.Mutex
	// +checklocks:mu
	over bool
	// +checklocks:mu
	open int // connections of the client
	// +checklocks:mu
	conns map[*outConn]struct{} // to hosts
	// +checklocks:mu
	told map[string]bool // what was refused, by host and reason
}

// enter admits one piece of work; the caller calls work.Done.
func (s *server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.work.Add(1)
	}
	return !s.over
}

// end ends all connections and waits for what is under way.
func (s *server) end() {
	s.mu.Lock()
	s.over = true
	var conns []*outConn
	for c := range s.conns {
		conns = append(conns, c)
	}
	s.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
	s.work.Wait()
}

// mostTold bounds how many refusals of one client are told apart.
const mostTold = 64

// refuse tells a refusal, once.
func (s *server) refuse(r *refusal) {
	s.mu.Lock()
	key := r.kind + " " + r.Target
	again := s.told[key] || len(s.told) >= mostTold
	if !again {
		s.told[key] = true
	}
	s.mu.Unlock()
	if s.client.Counts != nil && r.host != "" {
		s.client.Counts.refused(r.host)
	}
	if !again && s.client.Refused != nil {
		s.client.Refused(r.Refusal)
	}
}

// way is where a host that is allowed is.
type way struct {
	to    hosts.Target
	addrs []netip.Addr
}

// find decides about a host and looks it up. The error is a *refusal, or why it is not found.
func (s *server) find(ctx context.Context, to hosts.Target) (w way, err error) {
	w.to = to
	if to.Addr.IsValid() { // nobody is asked about what is refused anyway
		if err := s.check(to, to.Addr); err != nil {
			return w, err
		}
	}
	_, named := s.client.Rules.Match(to)
	v := Verdict{Allow: named}
	if s.client.Judge != nil {
		v = s.client.Judge(ctx, to, named)
	}
	switch {
	case v.Over != nil:
		return w, v.Over
	case !v.Allow:
		return w, notAllowed(s.client.who(), to, v.Why, s.client.Rules)
	case to.Addr.IsValid():
		w.addrs = []netip.Addr{to.Addr}
		return w, nil
	}
	lookup := s.proxy.Lookup
	if lookup == nil {
		lookup = resolve
	}
	ctx, stop := context.WithTimeout(ctx, lookupTime)
	defer stop()
	found, err := lookup(ctx, to.Name)
	if err != nil {
		return w, err
	}
	for _, ip := range found {
		ip = ip.Unmap()
		if no := s.check(to, ip); no != nil {
			err = no
		} else if !slices.Contains(w.addrs, ip) {
			w.addrs = append(w.addrs, ip)
		}
	}
	switch {
	case len(w.addrs) > 0:
		return w, nil
	case err == nil:
		err = errors.New("no address is known")
	}
	return w, err
}

// check refuses an address of a host that is not public, unless a rule names it.
func (s *server) check(to hosts.Target, ip netip.Addr) error {
	ip = ip.Unmap()
	if s.client.Rules.Names(to, ip) {
		return nil
	}
	if what := s.proxy.notPublic(ip); what != "" {
		return private(s.client.who(), to, ip, what)
	}
	return nil
}

// guard knows the addresses that are not those of hosts on the Internet, among them that of Azure's services for its machines.
var guard = sync.OnceValue(func() *ssrf.Guardian {
	return ssrf.New(ssrf.WithAnyPort(), ssrf.WithDeniedV4Prefixes(netip.MustParsePrefix("168.63.129.16/32")))
})

// notPublic says what an address is that is not of a host on the Internet; empty = it is one.
func (p *Proxy) notPublic(ip netip.Addr) string {
	switch {
	case ip.IsLoopback():
		return "an address of this machine"
	case ip.IsLinkLocalUnicast():
		return "a link-local address, as services for metadata have"
	case guard().SafeAddr(ip) != nil:
		return "a private or reserved address"
	}
	own := p.Own
	if own == nil {
		own = interfaces
	}
	if slices.Contains(own(), ip) {
		return "an address of this machine"
	}
	return ""
}

// resolve looks up a name as this machine does.
func resolve(ctx context.Context, name string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
}

// interfaces returns the addresses of the interfaces of this machine.
func interfaces() (out []netip.Addr) {
	list, _ := net.InterfaceAddrs() // what cannot be known is not there
	for _, a := range list {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			out = append(out, prefix.Addr().Unmap())
		}
	}
	return out
}
