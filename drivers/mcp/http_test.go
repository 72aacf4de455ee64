package mcp

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rnix/agent"
	"rnix/types"
	"rnix/vfs"
)

// site is a server behind a URL, and what it saw.
type site struct {
	*httptest.Server
	handler atomic.Value // http.Handler

	mu   sync.Mutex
	seen []*http.Request // +checklocks:mu
}

func newSite(t *testing.T, h http.Handler) *site {
	t.Helper()
	s := &site{}
	s.handler.Store(&h)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.seen = append(s.seen, r)
		s.mu.Unlock()
		(*s.handler.Load().(*http.Handler)).ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *site) requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*http.Request(nil), s.seen...)
}

func goodHandler(t *testing.T, opts *mcp.StreamableHTTPOptions) http.Handler {
	server := goodServer(nil)
	t.Cleanup(func() {
		for s := range server.Sessions() { // those that nobody ended
			_ = s.Close()
		}
	})
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, opts)
}

func behind(url string) vfs.MCPConfig {
	return vfs.MCPConfig{MCPServer: agent.MCPServer{Name: "srv", Type: "http", URL: url, Headers: map[string]string{"X-Key": "k"}}}
}

func TestServerBehindAURLIsMountedUsedAndLeft(t *testing.T) {
	for name, opts := range map[string]*mcp.StreamableHTTPOptions{"stream": {}, "json": {JSONResponse: true}, "stateless": {Stateless: true}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			s := newSite(t, goodHandler(t, opts))
			b.mustMount(t, behind(s.URL))
			if name == "stateless" { // such a server cannot hear of a cancelled call
				if got := b.mustCall(t, "echo", `{"x":1}`); got != `{"x":1}` {
					t.Errorf("echo: %s", got)
				}
			} else {
				exercise(t, b)
			}
			if err := b.Unmount(at); err != nil {
				t.Fatal(err)
			}
			all := s.requests()
			for i, r := range all {
				if r.Header.Get("X-Key") != "k" {
					t.Errorf("%s came without the header", r.Method)
				}
				if v := r.Header.Get(protocolVersion); i > 0 && v != "2025-11-25" {
					t.Errorf("request %d (%s) names the protocol %q", i, r.Method, v)
				}
			}
			if last := all[len(all)-1]; name != "stateless" && last.Method != http.MethodDelete {
				t.Errorf("the last request is a %s", last.Method)
			}
		})
	}
}

func TestRefusalsOfAHostAreClear(t *testing.T) {
	status := func(code int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>", code) })
	}
	other := newSite(t, goodHandler(t, nil))
	for name, c := range map[string]struct {
		handler http.Handler
		code    types.ErrCode
		text    string
	}{
		"401":      {status(401), types.ErrAuth, "headers"},
		"403":      {status(403), types.ErrAuth, "headers"},
		"429":      {status(429), types.ErrRateLimited, "429"},
		"503":      {status(503), types.ErrUnavailable, "503"},
		"404":      {status(404), types.ErrDriver, "Not Found"},
		"redirect": {http.RedirectHandler(other.URL+"/mcp", http.StatusTemporaryRedirect), types.ErrPermission, "redirects to"},
		"html": {http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<html>welcome</html>"))
		}), types.ErrDriver, "text/html"},
		"silent": {http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // only then the end of the request is noticed
			<-r.Context().Done()
		}), types.ErrTimeout, "mount_timeout"},
		"long": {http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for range 10 {
				_, _ = w.Write([]byte(strings.Repeat(" ", 1<<20)))
			}
		}), types.ErrDisconnected, "too long"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			s := newSite(t, c.handler)
			cfg := behind(s.URL + "/mcp")
			if name == "silent" {
				cfg.MountTimeout = agent.Duration(300 * time.Millisecond)
			}
			err := b.Mount(at, cfg)
			first := name == "404" && types.CodeOf(err) == types.ErrDisconnected // the end of the connection may be noticed first
			if err == nil || types.CodeOf(err) != c.code && !first || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v", err)
			}
		})
	}
	if n := len(other.requests()); n > 0 {
		t.Errorf("%d requests went to another host", n)
	}
}

func TestURLsThatLeadAstrayAreRefused(t *testing.T) {
	b := newBench(t)
	s := newSite(t, goodHandler(t, nil))
	_, port, _ := strings.Cut(strings.TrimPrefix(s.URL, "http://"), ":")
	for url, code := range map[string]types.ErrCode{
		"http://example.com/mcp":            types.ErrInvalid,
		"ftp://127.0.0.1/":                  types.ErrInvalid,
		"https://":                          types.ErrInvalid,
		"https://169.254.169.254/latest":    types.ErrPermission,
		"https://10.0.0.1/mcp":              types.ErrPermission,
		"https://[fd00:ec2::254]/":          types.ErrPermission,
		"https://[::ffff:192.168.1.1]/":     types.ErrPermission,
		"https://[64:ff9b::7f00:1]:" + port: types.ErrPermission,
		"https://0.0.0.0:" + port:           types.ErrPermission,
		"http://127.0.0.1:1/nobody":         types.ErrUnavailable,
	} {
		if err := b.Mount(at, behind(url)); types.CodeOf(err) != code {
			t.Errorf("%s: %v", url, err)
		}
	}
	if n := len(s.requests()); n > 0 {
		t.Errorf("%d requests came through", n)
	}
	b.mustMount(t, behind("http://localhost:"+port))
}

func TestGuardTellsAddressesApart(t *testing.T) {
	for addr, open := range map[string][3]bool{ // nothing allowed, loopback allowed, private allowed
		"93.184.216.34":      {true, true, true},
		"2606:4700::1":       {true, true, true},
		"127.0.0.1":          {false, true, true},
		"::1":                {false, true, true},
		"::ffff:127.0.0.1":   {false, true, true},
		"10.1.2.3":           {false, false, true},
		"192.168.0.1":        {false, false, true},
		"100.64.0.1":         {false, false, true},
		"fd12::1":            {false, false, true},
		"100.100.100.200":    {false, false, false},
		"169.254.169.254":    {false, false, false},
		"fe80::1%eth0":       {false, false, false},
		"fd00:ec2::254":      {false, false, false},
		"0.0.0.0":            {false, false, false},
		"::":                 {false, false, false},
		"224.0.0.1":          {false, false, false},
		"255.255.255.255":    {false, false, false},
		"64:ff9b::a9fe:a9fe": {false, false, false},
		"64:ff9b::5db8:d822": {true, true, true},
		"2002:0a00:0001::1":  {false, false, true},
		"2002:7f00:0001::1":  {false, false, true},
		"64:ff9b::127.0.0.1": {false, false, true},
		"2001:0:1234::abcd":  {false, false, false},
	} {
		a := netip.MustParseAddr(addr)
		for i, g := range []guard{{}, {loopback: true}, {private: true}} {
			if got := g.refuses(a) == ""; got != open[i] {
				t.Errorf("%s with %+v: open is %v (%s)", addr, g, got, g.refuses(a))
			}
		}
	}
}
