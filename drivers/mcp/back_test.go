package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"rnix/types"
	"rnix/vfs"
)

// heard returns a configuration whose news come out of a channel.
func heard(cfg vfs.MCPConfig) (vfs.MCPConfig, <-chan vfs.MCPNews) {
	news := make(chan vfs.MCPNews, 100)
	cfg.Tell = func(n vfs.MCPNews) { news <- n }
	return cfg, news
}

// await returns the next news of a kind.
func await(t *testing.T, news <-chan vfs.MCPNews, kind vfs.MCPNewsKind) vfs.MCPNews {
	t.Helper()
	timeout := time.After(time.Minute)
	for {
		select {
		case n := <-news:
			if n.Kind == kind {
				return n
			}
		case <-timeout:
			t.Fatalf("nobody told of news of kind %d", kind)
		}
	}
}

func (b *bench) state(t *testing.T) vfs.MountInfo {
	t.Helper()
	l := b.List()
	if len(l) != 1 {
		t.Fatalf("%d mounts", len(l))
	}
	return l[0]
}

func TestKilledServerIsToldOfAndComesBackWithTheNextCall(t *testing.T) {
	b := newBench(t)
	cfg, news := heard(self(t, "good"))
	b.mustMount(t, cfg)
	pid, err := strconv.Atoi(b.mustCall(t, "pid", ""))
	if s := b.state(t); err != nil || s.State != vfs.MCPRunning || s.OSPID != pid || s.Since.IsZero() {
		t.Errorf("%d, %+v, %v", pid, s, err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if n := await(t, news, vfs.NewsLost); !strings.Contains(n.Reason.Error(), "signal 9") {
		t.Errorf("%v", n.Reason)
	}
	if s := b.state(t); s.State != vfs.MCPLost || s.Reason == nil || s.OSPID != 0 {
		t.Errorf("%+v", s)
	}
	if again := b.mustCall(t, "pid", ""); again == strconv.Itoa(pid) {
		t.Error("it is the same process")
	}
	await(t, news, vfs.NewsBack)
	if s := b.state(t); s.State != vfs.MCPRunning || s.OSPID == 0 || s.OSPID == pid {
		t.Errorf("%+v", s)
	}
}

func TestCallWaitsForAServerThatIsStartedLessOften(t *testing.T) {
	b := newBench(t)
	b.mustMount(t, self(t, "good"))
	for range 2 {
		if _, err := b.call(t.Context(), "crash", ""); types.CodeOf(err) != types.ErrDisconnected {
			t.Fatal(err)
		}
	}
	start := time.Now()
	if b.mustCall(t, "pid", ""); time.Since(start) < 500*time.Millisecond {
		t.Error("the call did not wait")
	}
}

// A server behind a URL that was restarted, and one that is away for a moment, lose no call.
func TestServerBehindAURLIsReachedAgain(t *testing.T) {
	b := newBench(t)
	serve := func(l net.Listener) *httptest.Server {
		s := httptest.NewUnstartedServer(goodHandler(t, nil))
		_ = s.Listener.Close() // the one that it made
		s.Listener = l
		s.Start()
		return s
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr, s := l.Addr().String(), serve(l)
	cfg, news := heard(behind("http://" + addr))
	b.mustMount(t, cfg)
	s.Close()
	// A request that goes down a connection that is just being closed may have been seen, and is not made again: whoever calls has to, for
	// each of the connections that are kept (two by net/http).
	call := func(in string) string {
		out, err := b.call(t.Context(), "echo", in)
		for n := 0; n < 3 && err != nil && slices.ContainsFunc([]string{"EOF", "closed idle connection", "connection reset", "broken pipe"}, func(s string) bool { return strings.Contains(err.Error(), s) }); n++ {
			out, err = b.call(t.Context(), "echo", in)
		}
		if err != nil {
			return err.Error()
		}
		return out
	}
	got := make(chan string)
	go func() { got <- call(`{"once":1}`) }() // ends with the call, whose result is awaited below
	if n := await(t, news, vfs.NewsFailed); !strings.Contains(n.Reason.Error(), "refused") {
		t.Errorf("%v", n.Reason)
	}
	if l, err = net.Listen("tcp", addr); err != nil {
		t.Fatal(err)
	}
	s = serve(l)
	if out := <-got; out != `{"once":1}` {
		t.Errorf("a call during the absence: %s", out)
	}
	await(t, news, vfs.NewsBack)
	s.Close()
	if l, err = net.Listen("tcp", addr); err != nil {
		t.Fatal(err)
	}
	s = serve(l) // knows nothing of the session
	defer s.Close()
	if out := call(`{"twice":1}`); out != `{"twice":1}` {
		t.Errorf("a call behind a restart: %s", out)
	}
}

// Only what cannot have reached the server is made again.
func TestCallThatTheServerMayHaveSeenIsNotMadeAgain(t *testing.T) {
	b := newBench(t)
	good := goodHandler(t, nil)
	var cut atomic.Bool
	var seen atomic.Int32
	s := newSite(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if cut.Load() && r.Method == http.MethodPost {
			seen.Add(1)
			panic(http.ErrAbortHandler)
		}
		good.ServeHTTP(w, r)
	}))
	b.mustMount(t, behind(s.URL))
	cut.Store(true)
	if _, err := b.call(t.Context(), "echo", ""); err == nil || seen.Load() != 1 {
		t.Errorf("%v, and the server has seen %d requests", err, seen.Load())
	}
}

// counted is a handler, with how many requests hold a text.
func counted(h http.Handler, text string, times *atomic.Int32) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil && bytes.Contains(body, []byte(text)) {
			times.Add(1)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		h.ServeHTTP(w, r)
	})
}

// A server that was started again knows nothing of the session: the call that it says so to is made again, and none of those that were under way.
func TestCallUnderWayIsNotMadeAgainWhenTheSessionIsGone(t *testing.T) {
	b := newBench(t)
	var hangs atomic.Int32
	began := make(chan struct{}, 9)
	hang := func(good http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			before := hangs.Load()
			counted(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if hangs.Load() == before {
					good.ServeHTTP(w, r)
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				w.WriteHeader(http.StatusOK)
				_ = http.NewResponseController(w).Flush()
				began <- struct{}{}
				<-r.Context().Done()
			}), `"name":"hang"`, &hangs).ServeHTTP(w, r)
		})
	}
	s := newSite(t, hang(goodHandler(t, nil)))
	b.mustMount(t, behind(s.URL))
	hanging := make(chan error)
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second) // it hangs for ever if it is made again
	defer stop()
	go func() { // ends with the call, which the end of the session ends
		_, err := b.call(ctx, "hang", "")
		hanging <- err
	}()
	<-began
	again := hang(goodHandler(t, nil))
	s.handler.Store(&again)
	if out := b.mustCall(t, "echo", `{"x":1}`); out != `{"x":1}` {
		t.Errorf("%s", out)
	}
	if err := <-hanging; types.CodeOf(err) != types.ErrDisconnected || hangs.Load() != 1 {
		t.Errorf("%v, and it was made %d times", err, hangs.Load())
	}
}

// One connection that cannot be made ends no other call: the session is kept for it.
func TestConnectionThatFailsEndsNoOtherCall(t *testing.T) {
	b := newBench(t)
	var begun atomic.Int32
	good := counted(goodHandler(t, nil), `"method":"initialize"`, &begun)
	serve := func(l net.Listener) *httptest.Server {
		s := httptest.NewUnstartedServer(good)
		_ = s.Listener.Close() // the one that it made
		s.Listener = l
		s.Config.SetKeepAlivesEnabled(false) // each call makes a connection
		s.Start()
		return s
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr, s := l.Addr().String(), serve(l)
	defer s.Close()
	b.mustMount(t, behind("http://"+addr))
	ctx, stop := context.WithCancel(t.Context())
	hanging := make(chan error, 1)
	go func() { // ends with ctx
		_, err := b.call(ctx, "hang", "")
		hanging <- err
	}()
	b.mustCall(t, "await-hang", "")
	_ = l.Close()
	if _, err := b.call(t.Context(), "echo", ""); types.CodeOf(err) != types.ErrUnavailable || b.state(t).State != vfs.MCPRunning {
		t.Errorf("%v, %+v", err, b.state(t))
	}
	if l, err = net.Listen("tcp", addr); err != nil {
		t.Fatal(err)
	}
	after := serve(l)
	defer after.Close()
	b.mustCall(t, "echo", "")
	select {
	case err := <-hanging:
		t.Errorf("the call under way has ended: %v", err)
	default:
	}
	stop()
	b.mustCall(t, "await-cancel", "")
	if begun.Load() != 1 {
		t.Errorf("%d sessions", begun.Load())
	}
}

// A process is told that a server is down by a reload that fails, and that it is back by the next call that reaches it, however the reload has failed.
func TestServerWhoseReloadFailedComesBackWithTheNextCall(t *testing.T) {
	for name, c := range map[string]struct {
		method string
		answer func(w http.ResponseWriter, r *http.Request, body []byte, give func())
		reason string
	}{
		"its caller leaves": {"initialize", func(_ http.ResponseWriter, r *http.Request, _ []byte, give func()) {
			give()
			<-r.Context().Done()
		}, "cancelled"},
		"its tools are none": {"tools/list", func(w http.ResponseWriter, _ *http.Request, body []byte, _ func()) {
			var req struct{ ID json.RawMessage }
			_ = json.Unmarshal(body, &req)
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"tools":12}}`, req.ID)
		}, "list tools"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			good := goodHandler(t, nil)
			ctx, leave := context.WithCancelCause(t.Context())
			defer leave(nil)
			var bad atomic.Bool
			s := newSite(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				r.Body = io.NopCloser(bytes.NewReader(body))
				if bad.Load() && bytes.Contains(body, []byte(c.method)) {
					c.answer(w, r, body, func() { leave(errors.New("cancelled by its caller")) })
					return
				}
				good.ServeHTTP(w, r)
			}))
			cfg, news := heard(behind(s.URL))
			b.mustMount(t, cfg)
			bad.Store(true)
			if _, err := b.Reload(ctx, at, cfg.MCPServer); err == nil {
				t.Error("it is reloaded")
			}
			if n := await(t, news, vfs.NewsFailed); !strings.Contains(n.Reason.Error(), c.reason) {
				t.Errorf("%v", n.Reason)
			}
			bad.Store(false)
			b.mustCall(t, "echo", "")
			await(t, news, vfs.NewsBack)
		})
	}
}

func TestServerThatSaysThatItsToolsHaveChangedIsHeard(t *testing.T) {
	b := newBench(t)
	cfg, news := heard(self(t, "good"))
	b.mustMount(t, cfg)
	b.mustCall(t, "grow", "")
	n := await(t, news, vfs.NewsTools)
	if got := n.Tools.String(); got != "new: mcp__srv__grown" {
		t.Errorf("%s", got)
	}
	if list, err := b.read("/tools"); err != nil || !strings.Contains(list, "grown") {
		t.Errorf("%s, %v", list, err)
	}
	if got := b.mustCall(t, "grown", ""); got != "grown up" {
		t.Errorf("%s", got)
	}
}

func TestReloadedServerIsAnotherOneWithItsConfigurationReadAgain(t *testing.T) {
	b := newBench(t)
	b.mustMount(t, self(t, "good"))
	b.mustCall(t, "grow", "")
	pid := b.mustCall(t, "pid", "")
	hanging := make(chan error)
	go func() { // ends with the call, which the reload ends
		_, err := b.call(t.Context(), "hang", "")
		hanging <- err
	}()
	b.mustCall(t, "await-hang", "")
	cfg := self(t, "good")
	cfg.Env["ADDED"] = "by-the-reload"
	cfg.Name = "another"
	if _, err := b.Reload(t.Context(), at, cfg.MCPServer); err != nil {
		t.Fatal(err)
	}
	if err := <-hanging; types.CodeOf(err) != types.ErrDisconnected || !strings.Contains(err.Error(), "was reloaded while the call was under way") {
		t.Errorf("a call under way: %v", err)
	}
	if b.mustCall(t, "pid", "") == pid || !strings.Contains(b.mustCall(t, "env", ""), "by-the-reload") {
		t.Error("it is the server from before")
	}
	bad := self(t, "exits")
	if _, err := b.Reload(t.Context(), at, bad.MCPServer); err == nil || !strings.Contains(err.Error(), "no config file") {
		t.Errorf("%v", err)
	}
	if s := b.state(t); s.State != vfs.MCPFailed || s.Tools == 0 || !strings.Contains(s.Reason.Error(), "no config file") {
		t.Errorf("%+v", s)
	}
	if _, err := b.Reload(t.Context(), at, self(t, "good").MCPServer); err != nil {
		t.Error(err)
	}
	b.mustCall(t, "echo", "")
	if _, err := b.Reload(t.Context(), "/mnt/mcp/1-none", cfg.MCPServer); types.CodeOf(err) != types.ErrNotFound {
		t.Errorf("%v", err)
	}
}

// A server that is started again twice while a call is made knows nothing of two sessions: the call, which it has not run, is made a third time, and no
// fourth.
func TestACallOutlivesTwoSessionsThatTheServerForgets(t *testing.T) {
	for forgets, want := range map[int64]string{2: `{"a":1}`, 3: "knows nothing of us"} {
		b := newBench(t)
		var left, calls atomic.Int64
		good := goodHandler(t, nil)
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return // the client has gone
			}
			if strings.Contains(string(body), `"tools/call"`) {
				if calls.Add(1); left.Add(-1) >= 0 {
					http.Error(w, "session not found", http.StatusNotFound)
					return
				}
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			good.ServeHTTP(w, r)
		}))
		t.Cleanup(srv.Close)
		b.mustMount(t, behind(srv.URL))
		left.Store(forgets)
		out, err := b.call(t.Context(), "echo", `{"a":1}`)
		if err != nil {
			out = err.Error()
		}
		if !strings.Contains(out, want) || calls.Load() != 3 {
			t.Errorf("forgotten %d times, called %d times: %s", forgets, calls.Load(), out)
		}
	}
}
