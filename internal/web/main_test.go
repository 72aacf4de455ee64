package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rnix/internal/testenv"
	"rnix/ipc"
)

func TestMain(m *testing.M) {
	if code, asked := testenv.Daemon(); asked {
		os.Exit(code)
	}
	// The server leaves the rest of a body that is too long alone for half a second before it closes its connection.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"), goleak.Cleanup(func(code int) {
		if err := endBrowser(); err != nil {
			fmt.Fprintln(os.Stderr, "the browser of the tests:", err)
			code = max(code, 1)
		}
		os.Exit(code)
	}))
}

// fakeDaemon serves what add registers on a fresh socket until the test ends, and returns the socket and what stops it.
func fakeDaemon(t *testing.T, add func(*ipc.Server)) (socket string, stop func()) {
	t.Helper()
	dir, err := os.MkdirTemp("", "web") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(dir, "s")
	stop = startFake(t, socket, add)
	t.Cleanup(func() {
		stop()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return socket, stop
}

// startFake serves on a socket and returns what stops that, which may be called twice.
func startFake(t *testing.T, socket string, add func(*ipc.Server)) (stop func()) {
	t.Helper()
	l, err := ipc.Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	srv := ipc.NewServer(ipc.ServerOptions{})
	ipc.Handle(srv, ipc.ListAsks, func(context.Context, *ipc.Peer, ipc.AsksRequest) (ipc.AsksResponse, error) {
		return ipc.AsksResponse{Asks: []ipc.Ask{}}, nil // each page looks
	})
	add(srv)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }() // ends with Shutdown below
	stopped := false
	return func() {
		if stopped {
			return
		}
		stopped = true
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := srv.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
}

// dashboard is a server that runs until the test ends.
type dashboard struct {
	*Server
	t    *testing.T
	host string
	stop func() // ends it early
}

func serve(t *testing.T, o Options) *dashboard {
	t.Helper()
	l, err := Listen(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	s := New(o, l)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }() // ends with ctx
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return &dashboard{s, t, l.Addr().(*net.TCPAddr).String(), stop}
}

// browser is a client that keeps cookies and follows nothing.
type browser struct {
	*http.Client
	d   *dashboard
	key string
}

func (d *dashboard) browser() *browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		d.t.Fatal(err)
	}
	tr := &http.Transport{}
	d.t.Cleanup(tr.CloseIdleConnections)
	return &browser{&http.Client{Jar: jar, Transport: tr, Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, d, ""}
}

// enter opens a link and returns the status; the browser is in if that is 303.
func (b *browser) enter(link string) int {
	b.d.t.Helper()
	res, _ := b.do("GET", strings.TrimPrefix(link, "http://"+b.d.host), "", nil)
	if u, err := url.Parse(res.Header.Get("Location")); err == nil {
		b.key = strings.TrimPrefix(u.Fragment, "key=")
	}
	return res.StatusCode
}

// do asks for a path; header overrides what a page of ours would send, "Host" too. An empty value leaves one out.
func (b *browser) do(method, path, body string, header map[string]string) (*http.Response, string) {
	b.d.t.Helper()
	res := b.open(method, path, body, header)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		b.d.t.Fatal(err)
	}
	return res, string(text)
}

func (b *browser) open(method, path, body string, header map[string]string) *http.Response {
	b.d.t.Helper()
	req, err := http.NewRequestWithContext(b.d.t.Context(), method, "http://"+b.d.host+path, strings.NewReader(body))
	if err != nil {
		b.d.t.Fatal(err)
	}
	if method == "POST" {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set(keyHeader, b.key)
		req.Header.Set("Origin", "http://"+b.d.host)
		req.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for k, v := range header {
		switch {
		case k == "Host":
			req.Host = v
		case v == "":
			req.Header.Del(k)
		default:
			req.Header.Set(k, v)
		}
	}
	res, err := b.Do(req)
	if err != nil {
		b.d.t.Fatal(err)
	}
	return res
}

// inside returns a browser that was let in.
func (d *dashboard) inside() *browser {
	d.t.Helper()
	b := d.browser()
	if status := b.enter(d.Link()); status != http.StatusSeeOther {
		d.t.Fatalf("the link gives status %d", status)
	}
	return b
}

// code returns the code of a refusal.
func code(t *testing.T, body string) string {
	t.Helper()
	var f struct {
		OK    bool
		Error struct{ Code, Message string }
	}
	if err := json.NewDecoder(bytes.NewReader([]byte(body))).Decode(&f); err != nil || f.OK {
		t.Fatalf("no refusal: %s", body)
	}
	return f.Error.Code
}
