package kernelmcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rnix/ipc"
	"rnix/types"
)

// kernel is a kernel with two sessions, of processes 7 and 8; this program works for process works.
type kernel struct {
	address string
	works   types.PID
	inside  bool
	calls   chan string
}

// serve serves a kernel until the test ends.
func serve(t *testing.T, works types.PID, inside bool) *kernel {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k := &kernel{"http://" + l.Addr().String() + "/mcp", works, inside, make(chan string, 8)}
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { // ends with ctx; waited for below
		done <- Serve(ctx, l, "v", k.open, func(pid int) (types.PID, bool) {
			if pid != os.Getpid() {
				t.Errorf("asked for %d", pid)
			}
			return k.works, k.inside
		})
	}()
	t.Cleanup(func() {
		end()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	return k
}

func (k *kernel) open(credential string) (ipc.SessionToolsResponse, Run, error) {
	pid, ok := map[string]types.PID{"seven": 7, "eight": 8}[credential]
	if !ok {
		return ipc.SessionToolsResponse{}, nil, types.Errorf(types.ErrPermission, "Session", "", "no session")
	}
	tools := []ipc.SessionTool{{Name: "tell", Description: "tells", InputSchema: json.RawMessage(`{"type":"object"}`)}}
	return ipc.SessionToolsResponse{PID: pid, Tools: tools}, func(_ context.Context, name string, input json.RawMessage) (ipc.SessionCallResponse, error) {
		k.calls <- credential + " " + name + " " + string(input)
		return ipc.SessionCallResponse{Output: "heard", IsError: name == "fail"}, nil
	}, nil
}

// bearer sends a credential with each request.
type bearer struct {
	credential string
	http.Transport
}

func (b *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("Authorization", "Bearer "+b.credential)
	return b.Transport.RoundTrip(r)
}

// connect connects the SDK's client.
func (k *kernel) connect(t *testing.T, credential string) (*mcp.ClientSession, error) {
	t.Helper()
	b := &bearer{credential: credential}
	t.Cleanup(b.CloseIdleConnections)
	c, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: k.address, HTTPClient: &http.Client{Transport: b}, MaxRetries: -1}, nil)
	if err == nil {
		t.Cleanup(func() { _ = c.Close() })
	}
	return c, err
}

func TestSessionHasTheToolsOfTheKernelOverHTTP(t *testing.T) {
	k := serve(t, 7, true)
	c, err := k.connect(t, "seven")
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 1 || list.Tools[0].Name != "tell" {
		t.Fatalf("%+v %v", list, err)
	}
	r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "tell", Arguments: map[string]string{"a": "b"}})
	if err != nil || r.IsError || r.Content[0].(*mcp.TextContent).Text != "heard" {
		t.Errorf("%+v %v", r, err)
	}
	if got := <-k.calls; got != `seven tell {"a":"b"}` {
		t.Error(got)
	}
	if r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "fail"}); err != nil || !r.IsError {
		t.Errorf("%+v %v", r, err)
	}
}

// Only the session's own process gets in, whatever credential it has found, and no page.
func TestSessionIsOpenToItsOwnProcessAlone(t *testing.T) {
	for _, c := range []struct {
		credential string
		works      types.PID
		inside     bool
		header     string
		value      string
		want       int
	}{
		{"seven", 7, true, "", "", http.StatusOK}, {"none", 7, true, "", "", http.StatusUnauthorized}, {"", 7, true, "", "", http.StatusUnauthorized},
		{"eight", 7, true, "", "", http.StatusUnauthorized}, {"seven", 0, false, "", "", http.StatusUnauthorized}, {"seven", 0, true, "", "", http.StatusUnauthorized},
		{"seven", 7, true, "Origin", "https://elsewhere.example", http.StatusForbidden}, {"seven", 7, true, "Host", "elsewhere.example", http.StatusForbidden},
	} {
		k := serve(t, c.works, c.inside)
		b := &bearer{credential: c.credential}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, k.address, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if c.header == "Host" {
			r.Host = c.value
		} else if c.header != "" {
			r.Header.Set(c.header, c.value)
		}
		resp, err := b.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%+v: %d %s", c, resp.StatusCode, text)
		}
		b.CloseIdleConnections()
	}
}

// An answer that is long in coming is not silent, and is whole when it comes.
func TestLongAnswerIsNotSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := httptest.NewRecorder()
		s := keepAlive(w)
		time.Sleep(2*quiet + time.Second)
		s.Header().Set("Content-Type", "text/event-stream")
		s.WriteHeader(http.StatusOK)
		if _, err := s.Write([]byte("event: message\ndata: {}\n\n")); err != nil {
			t.Fatal(err)
		}
		s.Flush()
		s.stop()
		time.Sleep(2 * quiet)
		if got := w.Body.String(); w.Code != http.StatusOK || got != ": it is at work\n\n: it is at work\n\nevent: message\ndata: {}\n\n" || w.Header().Get("Content-Type") != "text/event-stream" {
			t.Errorf("%d %v %q", w.Code, w.Header(), got)
		}
		short := httptest.NewRecorder()
		s = keepAlive(short)
		s.WriteHeader(http.StatusAccepted)
		s.stop()
		time.Sleep(2 * quiet)
		if short.Code != http.StatusAccepted || short.Body.Len() != 0 {
			t.Errorf("%d %q", short.Code, short.Body.String())
		}
	})
}
