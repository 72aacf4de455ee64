// Package gateway stands between the agent CLIs of processes and the vendors of their models. A CLI calls it in place of its vendor, with a placeholder in
// place of a key: the gateway puts the key in, so that none is where the commands of an agent are. Before it sends a request on it reserves what that can take
// at most, and when the answer has passed it settles what the vendor says was used; what it cannot reserve it refuses as the vendor does whose limit is reached.
//
// It serves the few calls by which models are asked, and one vendor's: a Handler for each process and vendor. Answers pass as they come. Who calls it is
// for others to know.
package gateway

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"rnix/internal/weigh"
	"rnix/types"
)

// The calls that a vendor has.
const (
	Anthropic = "anthropic" // Messages, and counting their tokens
	OpenAI    = "openai"    // Chat Completions and Responses
)

// Upstream is the vendor of a process, or what the user has in its place.
type Upstream struct {
	Name string // for people, such as anthropic; the key of a provider
	API  string // Anthropic or OpenAI
	Base string // where its calls are below, with the version and no slash at the end: https://api.anthropic.com/v1
	// Keys are put in for their placeholders. With none, the login that comes with a request is sent on as it is.
	Keys []Key
	// Header is sent with each request, and kept secret like the keys.
	Header http.Header
	// Unbounded says that it takes no bound of an answer, as the subscription of ChatGPT: one request at a time is made under a budget.
	Unbounded bool
}

// Key is a secret, and what a CLI has in its place.
type Key struct{ Placeholder, Secret string }

// Question is a request as far as its price depends on it.
type Question struct {
	Model  string
	Bytes  int // of the prompt, without what Extra stands for
	Extra  int // tokens that are no text: pictures, and what the vendor's own tools read
	Answer int // tokens of the answer, at most; 0 = it cannot be bounded

	// Weighed says that the rest is known, as it is where dollars are limited, or tokens.
	Weighed bool
	Parts   []weigh.Part // of the prompt, all of it
	Hour    bool         // parts of the prompt may be kept for an hour, which costs more
	Open    string       // what of it nothing bounds, and what to do; empty = it is bounded
	Odd     string       // why it costs something else than its model's price says; empty = it does not
}

// Usage is what a request has taken, in tokens; the parts do not overlap.
type Usage struct {
	Input, Output, CacheRead, CacheWrite int

	CacheHour int    // of CacheWrite: what is kept for an hour
	Estimated bool   // by us
	Dear      bool   // the vendor says that it has cost more than usual: another tier, speed or place
	Model     string // that has answered; empty = not said
}

// Purse is what a process may use. Its implementation is the kernel's.
type Purse interface {
	// Limited reports whether tokens or dollars are limited.
	Limited() (tokens, usd bool)
	// Reserve sets aside what a request can take at most. It may wait for others. RESOURCE_EXHAUSTED: there is too little; the process is suspended. INVALID: the
	// limits cannot be kept with this request.
	Reserve(ctx context.Context, q Question) (Claim, error)
}

// Claim is a reservation. Its owner calls Settle or Drop once.
type Claim interface {
	// Answer is how many tokens the answer may have; 0 = nothing is limited, or it cannot be.
	Answer() int
	// Context ends when the request has to be given up.
	Context() context.Context
	// Settle counts what was used in place of what was reserved. Drop says that nothing was.
	Settle(u Usage) error
	Drop()
}

// Vendors calls vendors. One is shared by all handlers, with its connections. Safe for concurrent use.
type Vendors struct {
	transport *http.Transport
	log       *slog.Logger
	bodies    *semaphore.Weighted // the bytes of requests that are held
}

// The bounds of a call of a vendor.
const (
	connectTimeout = 10 * time.Second
	firstByte      = 15 * time.Minute // from the request to the header of the answer: an answer that is not streamed comes whole
	silence        = 10 * time.Minute // in an answer; vendors send pings
)

// NewVendors returns what calls vendors, through the proxies of this program's environment. log may be nil. Its owner calls Close.
func NewVendors(log *slog.Logger) *Vendors {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = (&net.Dialer{Timeout: connectTimeout, KeepAlive: 30 * time.Second}).DialContext
	t.TLSHandshakeTimeout, t.ResponseHeaderTimeout = connectTimeout, firstByte
	t.MaxIdleConnsPerHost, t.DisableCompression = 32, true // what is counted is read
	return &Vendors{transport: t, log: cmp.Or(log, slog.New(slog.DiscardHandler)), bodies: semaphore.NewWeighted(maxBodies)}
}

// Close drops idle connections.
func (v *Vendors) Close() { v.transport.CloseIdleConnections() }

// Handler answers the requests of the CLI of one process to one vendor. Safe for concurrent use.
type Handler struct {
	up     Upstream
	purse  Purse
	via    *Vendors
	bodies *semaphore.Weighted // as of Vendors, those of its process
}

var _ http.Handler = (*Handler)(nil)

// New returns the handler of a vendor. Its paths begin with /v1/. INVALID: Base is no address.
func New(up Upstream, purse Purse, via *Vendors) (*Handler, error) {
	u, err := url.Parse(up.Base)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, types.Errorf(types.ErrInvalid, "Gateway", up.Name, "its base URL is not an http or https address; correct it where you have set it")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, types.Errorf(types.ErrInvalid, "Gateway", up.Name, "its base URL has a user, a query or a fragment; leave them out")
	}
	up.Base = strings.TrimRight(up.Base, "/")
	return &Handler{up: up, purse: purse, via: via, bodies: semaphore.NewWeighted(ownBodies)}, nil
}
