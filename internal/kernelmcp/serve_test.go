package kernelmcp

import (
	"bufio"
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

// kernel is a kernel with two sessions, of processes 7 and 8.
type kernel struct {
	address string
	calls   chan string
}

// serve serves a kernel until the test ends; this program works for process works, if it is inside.
func serve(t *testing.T, works types.PID, inside bool) *kernel {
	t.Helper()
	roads := ipc.NewChannels(func(pid int) (types.PID, bool) {
		if pid != os.Getpid() {
			t.Errorf("asked for %d", pid)
		}
		return works, inside
	}, nil)
	address, end, err := roads.Road(works)
	if err != nil {
		t.Fatal(err)
	}
	k := &kernel{"http://" + address + "/mcp", make(chan string, 8)}
	s := ipc.NewServer(ipc.ServerOptions{})
	s.Mount("/mcp", Mounted("v", k.open))
	done := make(chan error)
	go func() { done <- s.Serve(roads) }() // ends with Shutdown; waited for below
	t.Cleanup(func() {
		end()
		if err := errors.Join(s.Shutdown(context.WithoutCancel(t.Context())), <-done); err != nil {
			t.Error(err)
		}
	})
	return k
}

func (k *kernel) open(peer *ipc.Peer, credential string) (ipc.SessionToolsResponse, Run, error) {
	pid, ok := map[string]types.PID{"seven": 7, "eight": 8}[credential]
	if owner, inside := peer.Settle(nil); !ok || !inside || owner != pid {
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
		{"eight", 7, true, "", "", http.StatusUnauthorized}, {"seven", 0, false, "", "", http.StatusForbidden}, {"seven", 0, true, "", "", http.StatusForbidden},
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

// Who may not call does not keep a connection, and what is no whole request gets an answer and no events.
func TestConnectionsAreNotKeptForNothing(t *testing.T) {
	k := serve(t, 7, true)
	for _, c := range []struct {
		credential, length, body string
		want                     int
	}{
		{"none", "0", "", http.StatusUnauthorized}, {"seven", "9000000", strings.Repeat(" ", maxBody+1), http.StatusRequestEntityTooLarge},
	} {
		d, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(k.address, "http://"), "/mcp"))
		if err != nil {
			t.Fatal(err)
		}
		go func() { // ends when the server closes the connection
			_, _ = io.WriteString(d, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+c.credential+"\r\nContent-Type: application/json\r\nContent-Length: "+c.length+"\r\n\r\n"+c.body)
		}()
		resp, err := http.ReadResponse(bufio.NewReader(d), nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != c.want || !resp.Close {
			t.Errorf("%s: %d, close %v", c.credential, resp.StatusCode, resp.Close)
		}
		_, _ = resp.Body.Close(), d.Close()
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
