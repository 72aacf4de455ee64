package web

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"rnix/ipc"
)

// streaming is a daemon with a stream that goes on until its reader leaves.
func streaming(t *testing.T) *dashboard {
	t.Helper()
	socket, _ := fakeDaemon(t, func(s *ipc.Server) {
		ipc.HandleStream(s, ipc.Events, func(ctx context.Context, _ *ipc.Peer, _ ipc.EventsRequest, out *ipc.Stream) error {
			if err := out.Start(); err != nil {
				return err
			}
			<-ctx.Done()
			return nil
		})
		ipc.Handle(s, ipc.Ping, func(context.Context, *ipc.Peer, ipc.Empty) (ipc.PingResponse, error) {
			return ipc.PingResponse{PID: 7}, nil
		})
	})
	return serve(t, Options{Socket: socket})
}

func TestBrowserWithTooManyStreamsIsToldSo(t *testing.T) {
	d := streaming(t)
	b, other := d.inside(), d.inside()
	var streams []*http.Response
	for range maxCalls {
		res := b.open("POST", "/api/v1/events", `{"follow":true}`, nil)
		streams = append(streams, res)
		if res.StatusCode != 200 {
			t.Fatalf("stream %d: %d", len(streams), res.StatusCode)
		}
	}
	for _, method := range []string{"events", "ping"} {
		if res, body := b.do("POST", "/api/v1/"+method, `{}`, nil); res.StatusCode != http.StatusTooManyRequests || code(t, body) != "RESOURCE_EXHAUSTED" || !strings.Contains(body, "close some tabs") {
			t.Errorf("%s: %d %s", method, res.StatusCode, body)
		}
	}
	if res, body := other.do("POST", "/api/v1/ping", `{}`, nil); res.StatusCode != 200 {
		t.Errorf("another browser: %d %s", res.StatusCode, body)
	}
	for _, res := range streams {
		_ = res.Body.Close()
	}
	for end := time.Now().Add(time.Minute); ; <-time.After(10 * time.Millisecond) { // the server hears of it when it likes
		if res, body := b.do("POST", "/api/v1/ping", `{}`, nil); res.StatusCode == 200 {
			break
		} else if time.Now().After(end) {
			t.Fatalf("after the streams have ended: %d %s", res.StatusCode, body)
		}
	}
}

func TestStrangersDoNotTakeTheRoomOfThoseInside(t *testing.T) {
	d := streaming(t)
	b := d.inside()
	dial := func() net.Conn {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", d.host)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		return c
	}
	ask := func(c net.Conn) *http.Response {
		t.Helper()
		if _, err := c.Write([]byte("GET / HTTP/1.1\r\nHost: " + d.host + "\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res
	}
	for range maxConns {
		dial()
	}
	late := dial()
	if res := ask(late); res.StatusCode != http.StatusServiceUnavailable || !res.Close || res.Header.Get("Retry-After") == "" {
		t.Errorf("a stranger too many: %d, %v", res.StatusCode, res.Header)
	}
	if res, body := b.do("POST", "/api/v1/ping", `{}`, nil); res.StatusCode != 200 {
		t.Errorf("who is inside: %d %s", res.StatusCode, body)
	}
	if got := d.browser().enter(d.Link()); got != http.StatusSeeOther {
		t.Errorf("who has a link: %d", got)
	}
	for d.l.open.Load() < maxConnsAll {
		dial()
	}
	if res := ask(dial()); res.StatusCode != http.StatusServiceUnavailable || !res.Close {
		t.Errorf("one too many for anybody: %d", res.StatusCode)
	}
}
