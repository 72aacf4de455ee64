package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rnix/types"
	"rnix/vfs"
)

// errUnreachable marks requests that did not get an answer from the server's host.
var errUnreachable = errors.New("the server cannot be reached")

// errNotSent marks requests that cannot have reached the server, since no connection to it could be made. They can be made again.
var errNotSent = errors.New("no connection")

// protocolVersion is the header that tells a server which protocol was agreed upon.
const protocolVersion = "Mcp-Protocol-Version"

// httpClient reaches one server behind a URL.
type httpClient struct {
	url     *url.URL
	headers http.Header
	base    *http.Transport
}

// httpClient checks a configuration. The URL must use TLS unless it stays on this machine or private
// addresses are allowed.
func (f *factory) httpClient(config vfs.MCPConfig) (*httpClient, error) {
	u, err := url.Parse(config.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, types.Errorf(types.ErrInvalid, "", "", "url %q is not that of a server: it must begin with https:// (or http:// on this machine) and name a host", redactURL(config.URL))
	}
	g := guard{loopback: isLoopback(u.Hostname()), private: f.opts.AllowPrivate}
	if u.Scheme == "http" && !g.loopback && !g.private {
		return nil, types.Errorf(types.ErrInvalid, "", "", "url %q would send everything unprotected over the network: use https://", u.Redacted())
	}
	headers := http.Header{}
	for name, value := range config.Headers {
		headers.Set(name, value)
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second, Control: g.control}
	return &httpClient{url: u, headers: headers, base: &http.Transport{
		DialContext: dialer.DialContext, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 4,
		IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 10 * time.Second,
		MaxResponseHeaderBytes: 256 << 10, // no proxy: it would dial in the guard's place
	}}, nil
}

// isLoopback reports whether a host, as it is written, is this machine.
func isLoopback(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap().IsLoopback()
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// redactURL returns an URL that need not be one, without what follows a question mark.
func redactURL(s string) string {
	before, _, _ := strings.Cut(s, "?")
	return before
}

// link makes a connection, without connecting. Its requests end with life.
func (c *httpClient) link(life context.Context, lim limits) (link, error) {
	l := &httpLink{client: c, lim: lim}
	l.life, l.end = context.WithCancelCause(life)
	t := &mcp.StreamableClientTransport{
		Endpoint: c.url.Scheme + "://" + c.url.Host, MaxRetries: 2, MaxEventSize: lim.frame,
		DisableStandaloneSSE: true, // we want to hear nothing unasked
		HTTPClient:           &http.Client{Transport: l, CheckRedirect: c.redirect},
	}
	var err error
	l.conn, err = t.Connect(context.Background())
	return l, err
}

// redirect follows redirects only inside the same host.
func (c *httpClient) redirect(req *http.Request, via []*http.Request) error {
	if req.URL.Host != c.url.Host || req.URL.Scheme != c.url.Scheme {
		return types.Errorf(types.ErrPermission, "", "", "the server redirects to %s://%s: if that is right, write it into the configuration", req.URL.Scheme, req.URL.Host)
	}
	if len(via) >= 3 {
		return types.Errorf(types.ErrDriver, "", "", "the server redirects again and again")
	}
	return nil
}

// httpLink is one session with a server behind a URL. It performs its requests.
type httpLink struct {
	client  *httpClient
	lim     limits
	conn    mcp.Connection
	version atomic.Value // string; unset until the protocol is agreed upon
	life    context.Context
	end     context.CancelCauseFunc
}

func (l *httpLink) connection() mcp.Connection { return l.conn }
func (l *httpLink) negotiated(version string)  { l.version.Store(version) }
func (l *httpLink) notes(bool) string          { return "" }
func (l *httpLink) pid() int                   { return 0 }

// wait ends every request under way. The goroutines that read answers end with them.
func (l *httpLink) wait() {
	l.end(errClosed)
	l.client.base.CloseIdleConnections()
}

// RoundTrip performs one request: with the configured headers, no longer than the session lasts, and
// with an answer that is bounded unless it is a stream, whose events are. The path and the query come
// in only here, since they may hold a key and errors of a request name its address.
func (l *httpLink) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	end := func() { cancel(errClosed) }
	var stop func() bool
	if req.Method == http.MethodDelete { // the last request, which outlasts the session a little
		stop = time.AfterFunc(l.lim.grace, end).Stop
	} else {
		stop = context.AfterFunc(l.life, end)
	}
	release := func() { stop(); cancel(nil) }
	asked := req
	req = req.Clone(ctx)
	if req.Response == nil { // not a redirect, which has an address of its own
		*req.URL = *l.client.url
	}
	for name, values := range l.client.headers {
		req.Header[name] = values
	}
	if v, ok := l.version.Load().(string); ok && req.Header.Get(protocolVersion) == "" {
		req.Header.Set(protocolVersion, v)
	}
	resp, err := l.client.base.RoundTrip(req)
	if err == nil {
		err = refused(resp)
	} else if ctx.Err() == nil {
		err = unreachable(err)
	}
	if err != nil {
		release()
		return nil, err
	}
	resp.Request = asked
	body := &boundedBody{ReadCloser: resp.Body, release: release, left: int64(l.lim.frame), limit: l.lim.frame}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind == "text/event-stream" {
		body.left = -1
	}
	resp.Body = body
	return resp, nil
}

// unreachable is the error of a request that got no answer.
func unreachable(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return fmt.Errorf("%w (%w): %w", errUnreachable, errNotSent, err)
	}
	return fmt.Errorf("%w: %w", errUnreachable, err)
}

// refused makes an error of an answer that says that nobody but the user can help.
func refused(resp *http.Response) error {
	code := types.ErrAuth
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
	case http.StatusTooManyRequests:
		code = types.ErrRateLimited
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		code = types.ErrUnavailable
	default:
		return nil
	}
	_ = resp.Body.Close() // what it says is for browsers
	mend := ""
	if code == types.ErrAuth {
		mend = ": check the headers in the server's configuration"
	}
	return types.Errorf(code, "", "", "the server answered %s%s", resp.Status, mend)
}

// boundedBody is the body of an answer. It ends with an error after so many bytes.
type boundedBody struct {
	io.ReadCloser
	release func()
	left    int64 // bytes that may still be read; -1: any number
	limit   int
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left >= 0 {
		if b.left -= int64(n); b.left < 0 {
			return 0, fmt.Errorf("%w (at most %d bytes are read)", errTooLong, b.limit)
		}
	}
	return n, err
}

func (b *boundedBody) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}
