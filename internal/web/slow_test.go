package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

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
