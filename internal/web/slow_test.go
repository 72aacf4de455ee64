package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"rnix/ipc"
)

// slowly is a body that comes in parts with pauses between them.
type slowly struct {
	parts []string
	pause time.Duration
}

func (s *slowly) Read(b []byte) (int, error) {
	if len(s.parts) == 0 {
		return 0, io.EOF
	}
	<-time.After(s.pause)
	n := copy(b, s.parts[0])
	s.parts = s.parts[1:]
	return n, nil
}

// A message with pictures takes its time on a slow line: whoever was let in is not hung up on while some of it comes.
func TestABodyThatComesSlowlyIsReadToItsEnd(t *testing.T) {
	socket, _ := fakeDaemon(t, func(*ipc.Server) {})
	l, err := Listen(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	s := New(Options{Socket: socket}, l)
	s.patience = time.Second
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }() // ends with ctx
	defer func() {
		cancel()
		<-ended
	}()
	b := (&dashboard{s, t, l.Addr().String(), cancel}).inside()
	body := &slowly{[]string{"{", " ", " ", " ", " ", " ", "}"}, 200 * time.Millisecond}
	req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+b.d.host+"/api/v1/place", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, keyHeader: {b.key}, "Origin": {"http://" + b.d.host}, "Sec-Fetch-Site": {"same-origin"}}
	res, err := b.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("%s", res.Status)
	}
}

// Everybody on the machine can connect: who says that there is more to come, and does not send it, holds nothing.
func TestAStrangerWhoSendsNoBodyIsHungUpOn(t *testing.T) {
	l, err := Listen(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	s := New(Options{Socket: "/nowhere"}, l)
	s.patience = 100 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }() // ends with ctx
	defer func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}()
	for _, head := range []string{
		"POST /api/v1/ping HTTP/1.1\r\nHost: %s\r\nContent-Length: 100\r\n\r\n{",
		"POST /api/v1/ping HTTP/1.1\r\nHost: %s\r\nTransfer-Encoding: chunked\r\n\r\n",
		"POST /nothing HTTP/1.1\r\nHost: evil.example%s\r\nContent-Length: 100\r\n\r\n",
		"GET /app.css HTTP/1.1\r\nHost: %s\r\nContent-Length: 100\r\n\r\n",
	} {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(c, head, l.Addr()); err != nil {
			t.Error(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
		if _, err := io.Copy(io.Discard, c); err != nil {
			t.Errorf("%s: %v", strings.SplitN(head, "\r\n", 2)[0], err)
		}
		_ = c.Close()
	}
}
