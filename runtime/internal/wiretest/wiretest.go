// Package wiretest is for tests of what speaks to a platform: a client whose requests reach a handler
// without a socket, so that bubbles of synctest can see the time pass, and with the faults that a
// network has. It knows no endpoint.
package wiretest

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"
)

// Client returns a client whose requests are answered by h.
func Client(h http.Handler) *http.Client { return &http.Client{Transport: &Network{Handler: h}} }

// ErrLost is why a request has no answer.
var ErrLost = errors.New("the connection was reset")

// Faults says how often what goes wrong, each from 0 to 1.
type Faults struct {
	Lost      float64       // the request does not arrive
	Unheard   float64       // it arrives, and its answer does not
	Doubled   float64       // it arrives twice
	Broken    float64       // the answer is 500, and nothing was done
	Delay     time.Duration // up to so long on each way
	LateTwice float64       // it arrives a second time, much later
}

// Network carries requests to a handler. Safe for concurrent use. Wait before the test ends.
type Network struct {
	Handler http.Handler

	mu     sync.Mutex
	rand   *rand.Rand // +checklocks:mu
	faults Faults     // +checklocks:mu
	cut    bool       // +checklocks:mu
	ghosts sync.WaitGroup
}

// NewNetwork returns a network whose faults are decided by a seed.
func NewNetwork(h http.Handler, seed uint64, f Faults) *Network {
	return &Network{Handler: h, rand: rand.New(rand.NewPCG(seed, 1)), faults: f}
}

// Cut lets nothing through any more, or again.
func (n *Network) Cut(cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut = cut
}

// Heal ends all faults.
func (n *Network) Heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut, n.faults = false, Faults{}
}

// Wait waits for requests that arrive late.
func (n *Network) Wait() { n.ghosts.Wait() }

// fate is what becomes of one request.
type fate struct {
	lost, unheard, doubled, broken, late bool
	there, back, ghost                   time.Duration
}

func (n *Network) fate() (f fate) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.rand == nil {
		return f
	}
	return fate{n.cut || n.hitLocked(n.faults.Lost), n.hitLocked(n.faults.Unheard), n.hitLocked(n.faults.Doubled),
		n.hitLocked(n.faults.Broken), n.hitLocked(n.faults.LateTwice), n.delayLocked(), n.delayLocked(), 10 * n.delayLocked()}
}

// +checklocks:n.mu
func (n *Network) hitLocked(p float64) bool { return n.rand.Float64() < p }

// +checklocks:n.mu
func (n *Network) delayLocked() time.Duration {
	return time.Duration(n.rand.Float64() * float64(n.faults.Delay))
}

// RoundTrip carries one request.
func (n *Network) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		req.Body.Close()
	}
	f := n.fate()
	pass := func(d time.Duration) error {
		if d == 0 {
			return req.Context().Err()
		}
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
			return nil
		case <-req.Context().Done():
			return req.Context().Err()
		}
	}
	if err := pass(f.there); err != nil {
		return nil, err
	}
	if f.lost {
		return nil, ErrLost
	}
	if f.broken {
		return &http.Response{StatusCode: 500, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(nil)), Request: req}, nil
	}
	serve := func() *http.Response {
		r := req.Clone(req.Context())
		r.Body, r.RequestURI, r.RemoteAddr = io.NopCloser(bytes.NewReader(body)), req.URL.RequestURI(), "192.0.2.1:1"
		r.ContentLength = int64(len(body))
		w := httptest.NewRecorder()
		n.Handler.ServeHTTP(w, r)
		return w.Result()
	}
	if f.doubled {
		serve()
	}
	if f.late {
		n.ghosts.Go(func() {
			time.Sleep(f.ghost)
			serve()
		})
	}
	answers := make(chan *http.Response, 1)
	n.ghosts.Go(func() { answers <- serve() })
	select {
	case resp := <-answers:
		if err := pass(f.back); err != nil {
			return nil, err
		}
		if f.unheard {
			return nil, ErrLost
		}
		resp.Request = req
		return resp, nil
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
}
