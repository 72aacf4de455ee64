package main

import (
	"bufio"
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// badWire stands before a control plane, and treats what goes through it as a bad network does. Every request has a fate that
// a seed decides.
type badWire struct {
	to   func() string // the address of the control plane
	l    net.Listener
	http *http.Transport
	work sync.WaitGroup

	mu    sync.Mutex
	rand  *rand.Rand // +checklocks:mu
	peace bool       // +checklocks:mu
	// +checklocks:mu
	cut    chan struct{}         // closed when the cut ends; nil = there is none
	closed bool                  // +checklocks:mu
	conns  map[net.Conn]struct{} // +checklocks:mu
	faults map[string]int        // +checklocks:mu

	over chan struct{} // closed with Close
	seen atomic.Int64  // requests
}

func newBadWire(t *testing.T, seed uint64, to func() string) *badWire {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &badWire{to: to, l: l, http: &http.Transport{MaxIdleConnsPerHost: 4}, rand: rand.New(rand.NewPCG(seed, 7)), conns: map[net.Conn]struct{}{},
		faults: map[string]int{}, over: make(chan struct{})}
	w.work.Go(func() { // ends with the listener
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			w.mu.Lock()
			if w.conns[c] = struct{}{}; w.closed {
				c.Close()
			}
			w.mu.Unlock()
			w.work.Go(func() { // ends with the connection
				w.serve(c)
				w.mu.Lock()
				delete(w.conns, c)
				w.mu.Unlock()
			})
		}
	})
	t.Cleanup(w.Close)
	return w
}

// Close ends all connections, and waits for what is on its way.
func (w *badWire) Close() {
	w.l.Close()
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.over)
	}
	for c := range w.conns {
		c.Close()
	}
	w.mu.Unlock()
	w.work.Wait()
	w.http.CloseIdleConnections()
}

// Cut lets nothing through for a while: what comes is not answered.
func (w *badWire) Cut(d time.Duration) {
	w.mu.Lock()
	if w.cut == nil {
		w.cut = make(chan struct{})
		w.faults["cuts"]++
	}
	w.mu.Unlock()
	select {
	case <-time.After(d):
	case <-w.over:
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut != nil {
		close(w.cut)
		w.cut = nil
	}
}

// Heal ends all faults.
func (w *badWire) Heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.peace = true
	if w.cut != nil {
		close(w.cut)
		w.cut = nil
	}
}

// fateOf is what becomes of one request.
type fateOf struct {
	kind        string // "" = nothing bad
	there, back time.Duration
	late        time.Duration // of a second arrival
	part        float64       // of what arrives
	cut         <-chan struct{}
}

func (w *badWire) fate() (f fateOf) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f.cut = w.cut; w.peace || f.cut != nil {
		return f
	}
	f.there, f.back = time.Duration(w.rand.Float64()*float64(30*time.Millisecond)), time.Duration(w.rand.Float64()*float64(30*time.Millisecond))
	f.late, f.part = time.Duration(w.rand.Float64()*float64(6*time.Second)), w.rand.Float64()
	kinds := []string{"lost", "unheard", "doubled", "late again", "slow", "answer cut", "request cut", "refused"}
	if i := w.rand.IntN(25); i < len(kinds) {
		f.kind = kinds[i]
		w.faults[f.kind]++
	}
	return f
}

// wait reports whether a time has passed and nobody has closed the wire.
func (w *badWire) wait(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-w.over:
		return false
	}
}

// drop ends a connection as a crash of the other side does.
func drop(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	c.Close()
}

func (w *badWire) serve(c net.Conn) {
	defer c.Close()
	for r := bufio.NewReader(c); ; {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		w.seen.Add(1)
		f := w.fate()
		if f.cut != nil { // nothing comes back, not even an error
			select {
			case <-f.cut:
			case <-w.over:
			}
			drop(c)
			return
		}
		if f.kind == "slow" {
			f.there += time.Second
		}
		if !w.wait(f.there) || f.kind == "lost" {
			drop(c)
			return
		}
		if f.kind == "refused" {
			io.WriteString(c, "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
			continue
		}
		if f.kind == "request cut" { // the other side sees the beginning of it
			w.half(req, body, f.part)
			drop(c)
			return
		}
		if f.kind == "doubled" {
			w.forward(req, body)
		}
		if f.kind == "late again" {
			w.work.Go(func() { // ends in time
				if w.wait(f.late) {
					w.forward(req, body)
				}
			})
		}
		answer := w.forward(req, body)
		if answer == nil || !w.wait(f.back) || f.kind == "unheard" {
			drop(c)
			return
		}
		if f.kind == "answer cut" {
			c.Write(answer[:int(f.part*float64(len(answer)))])
			drop(c)
			return
		}
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
}

// forward lets a request arrive and returns the bytes of the answer; nil if there is none.
func (w *badWire) forward(req *http.Request, body []byte) []byte {
	again, err := http.NewRequest(req.Method, "http://"+w.to()+req.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return nil
	}
	again.Header = req.Header.Clone()
	resp, err := w.http.RoundTrip(again)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	if resp.Write(&b) != nil {
		return nil
	}
	return b.Bytes()
}

// half lets the beginning of a request arrive.
func (w *badWire) half(req *http.Request, body []byte, part float64) {
	c, err := net.DialTimeout("tcp", w.to(), time.Second)
	if err != nil {
		return
	}
	defer drop(c)
	again := req.Clone(req.Context())
	again.Body, again.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	var b bytes.Buffer
	if again.Write(&b) == nil {
		c.Write(b.Bytes()[:int(part*float64(b.Len()))])
	}
}

// counted returns how many faults there were of each kind.
func (w *badWire) counted(sum map[string]int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for k, n := range w.faults {
		sum[k] += n
	}
}
