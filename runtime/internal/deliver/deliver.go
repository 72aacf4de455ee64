// Package deliver is the one way in which the runtime packages speak to a platform: requests of a
// session's API with credentials that are asked for at each attempt, time-outs, retries that obey what the
// platform says, and the fencing token of the lease under which they are made.
//
// It owns the rules of asking again. It does not know what is said, except for Feed, which posts the events
// of a cursor in order until the platform has them.
package deliver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"rnix/types"
)

// TokenHeader carries the fencing token of the lease under which a request is made. Part of the wire format.
const TokenHeader = "X-Fencing-Token"

// ErrFenced is in the chain of a request that the platform refused because another owner has the session, or
// because its fencing token is an old one (409).
var ErrFenced = errors.New("another owner has the session")

// Credentials are what a request says of who makes it. Fields that are empty are those of the last time.
type Credentials struct {
	WorkerID  string
	AuthToken string
}

// HTTPClient is net/http's, so that whoever takes one in a configuration need not import it.
type HTTPClient = http.Client

// Config says whom to ask and as whom. SessionID and BaseURL are required.
type Config struct {
	SessionID, BaseURL  string
	WorkerID, AuthToken string
	// Credentials is asked before each attempt. If it fails, or leaves a field empty, the last value is used.
	// nil = WorkerID and AuthToken.
	Credentials func(context.Context) (Credentials, error)
	// HTTPClient is used as it is, but follows no redirects unless it says how. nil = one of this client's own.
	HTTPClient *HTTPClient
	Timeout    time.Duration // of one request, with its credentials; 0 = 5 s
	Token      func() uint64 // the fencing token; 0 or nil = none
	Sleep      func(context.Context, time.Duration) error
	Logger     *slog.Logger // nil = slog.Default
}

// Bounds of what is read of an answer and shown of an error.
const (
	maxAnswer = 1 << 20
	maxShown  = 200
)

// Client asks one platform about one session. Safe for concurrent use. Close it.
type Client struct {
	cfg  Config
	base string // with the session's path, without a slash at its end
	http *http.Client
	own  *http.Transport // nil if the caller's client is used

	mu   sync.Mutex
	last Credentials // +checklocks:mu
}

// New checks a configuration: INVALID names the field that is missing or wrong.
func New(cfg Config) (*Client, error) {
	if strings.TrimSpace(cfg.SessionID) == "" {
		return nil, types.Errorf(types.ErrInvalid, "New", "SessionID", "is required")
	}
	if cfg.SessionID == "." || cfg.SessionID == ".." {
		return nil, types.Errorf(types.ErrInvalid, "New", "SessionID", "%q would be another path", cfg.SessionID)
	}
	var socket string
	if path, ok := strings.CutPrefix(strings.TrimSpace(cfg.BaseURL), "unix:"); ok && cfg.HTTPClient == nil {
		socket, cfg.BaseURL = path, "http://unix"
	}
	u, err := url.Parse(strings.TrimRight(strings.TrimSpace(cfg.BaseURL), "/"))
	switch {
	case strings.TrimSpace(cfg.BaseURL) == "":
		return nil, types.Errorf(types.ErrInvalid, "New", "BaseURL", "is required")
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, types.Errorf(types.ErrInvalid, "New", "BaseURL", "must be like https://host, http://host:port or unix:/path/to.sock")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, types.Errorf(types.ErrInvalid, "New", "BaseURL", "must have no user, query or fragment: the token is a separate setting")
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = 5 * time.Second
	}
	if cfg.Sleep == nil {
		cfg.Sleep = Sleep
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	c := &Client{cfg: cfg, base: u.String() + "/api/sessions/" + url.PathEscape(cfg.SessionID),
		last: Credentials{cfg.WorkerID, cfg.AuthToken}}
	if cfg.HTTPClient == nil {
		c.own = &http.Transport{Proxy: http.ProxyFromEnvironment, IdleConnTimeout: 90 * time.Second, MaxIdleConnsPerHost: 2,
			MaxResponseHeaderBytes: 64 << 10, TLSHandshakeTimeout: 5 * time.Second, ForceAttemptHTTP2: true}
		if socket != "" {
			c.own.Proxy = nil
			c.own.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", socket)
			}
		}
		c.http = &http.Client{Transport: c.own}
	} else {
		own := *cfg.HTTPClient
		c.http = &own
	}
	if c.http.CheckRedirect == nil { // a token is for the host that it was configured for
		c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	return c, nil
}

// Sleep waits for d, or until the context ends, whose cause it then returns.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Call is one request below a session: GET, or, with a Body, POST.
type Call struct {
	Endpoint string                // such as "activity"
	Body     func(Credentials) any // made anew for each attempt
	Timeout  time.Duration         // of one attempt; 0 = that of the client
}

// Reply is what the platform answered, with a status of 2xx.
type Reply struct {
	Status int
	Body   []byte // at most 1 MiB
	Token  uint64 // under which the request was made
}

// Do makes one attempt. A failure has a *Failure in its chain that says what to do about it, unless the
// context has ended: then it is CANCELLED.
func (c *Client) Do(ctx context.Context, call Call) (Reply, error) {
	timeout := call.Timeout
	if timeout <= 0 {
		timeout = c.cfg.Timeout
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	who := c.credentials(limited)
	r, err := c.attempt(limited, call, who)
	if err != nil && ctx.Err() != nil {
		return r, types.Errorf(types.ErrCancelled, "Post", call.Endpoint, "%w", context.Cause(ctx))
	}
	return r, err
}

func (c *Client) attempt(ctx context.Context, call Call, who Credentials) (reply Reply, err error) {
	method, body := http.MethodGet, []byte(nil)
	if call.Body != nil {
		method = http.MethodPost
		if body, err = json.Marshal(call.Body(who)); err != nil {
			return reply, fail(call, &Failure{Verdict: Refused, Err: err})
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+"/"+call.Endpoint, bytes.NewReader(body))
	if err != nil {
		return reply, fail(call, &Failure{Verdict: Refused, Err: err})
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if who.AuthToken != "" {
		req.Header.Set("Authorization", "Bearer "+who.AuthToken)
	}
	if c.cfg.Token != nil {
		if reply.Token = c.cfg.Token(); reply.Token > 0 {
			req.Header.Set(TokenHeader, strconv.FormatUint(reply.Token, 10))
		}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // the endpoint is named already
		}
		return reply, fail(call, &Failure{Verdict: Again, Err: err, Token: reply.Token})
	}
	defer resp.Body.Close()
	reply.Status = resp.StatusCode
	reply.Body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	verdict := Judge(resp.StatusCode)
	switch {
	case verdict != Taken:
		return reply, fail(call, &Failure{Status: resp.StatusCode, Verdict: verdict, Token: reply.Token,
			After: retryAfter(resp.Header.Get("Retry-After"), time.Now()), Text: shown(reply.Body)})
	case err != nil:
		return reply, fail(call, &Failure{Status: resp.StatusCode, Verdict: Again, Err: err, Token: reply.Token})
	case len(reply.Body) > maxAnswer:
		return reply, fail(call, &Failure{Status: resp.StatusCode, Verdict: Again, Err: errors.New("the answer is longer than 1 MiB"), Token: reply.Token})
	}
	return reply, nil
}

// credentials asks who we are now, and remembers it.
func (c *Client) credentials(ctx context.Context) Credentials {
	var now Credentials
	var err error
	if c.cfg.Credentials != nil {
		if now, err = c.cfg.Credentials(ctx); err != nil {
			c.cfg.Logger.Warn("the credentials could not be had; the last ones are used", "session", c.cfg.SessionID, "error", err)
			now = Credentials{}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.WorkerID != "" {
		c.last.WorkerID = now.WorkerID
	}
	if now.AuthToken != "" {
		c.last.AuthToken = now.AuthToken
	}
	return c.last
}

// Close lets go of connections that are not in use.
func (c *Client) Close() {
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
}
