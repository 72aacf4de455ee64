package ipc

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"rnix/types"
)

func TestCallBringsTheAnswerAndTheCallersUID(t *testing.T) {
	c, _ := serveOn(t, ServerOptions{}, nil)
	for _, n := range []int{1, 5000, 300_000} {
		got, err := Call(t.Context(), c, echo, echoRequest{Text: "<é&>", Times: n})
		if err != nil || got.Text != strings.Repeat("<é&>", n) || got.UID != uint32(os.Getuid()) {
			t.Errorf("%d times: %d bytes, uid %d, %v", n, len(got.Text), got.UID, err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.idle) != 1 {
		t.Errorf("%d idle connections, want the one that was used again", len(c.idle))
	}
}

func TestManyCallsAtOnceEachGetTheirAnswer(t *testing.T) {
	c, _ := serveOn(t, ServerOptions{}, nil)
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			want := fmt.Sprint(i)
			if got, err := Call(t.Context(), c, echo, echoRequest{Text: want}); err != nil || got.Text != want {
				t.Errorf("got %q, %v", got.Text, err)
			}
		})
	}
	wg.Wait()
}

func TestTypedErrorsKeepTheirFieldsOverTheWire(t *testing.T) {
	fails := Method[Empty, Empty]{Name: "fails"}
	want := &types.SyscallError{Syscall: "Open", PID: 7, Device: "/dev/x", Code: types.ErrAlreadyMounted, Err: errEmpty}
	c, _ := serveOn(t, ServerOptions{}, func(s *Server) {
		Handle(s, fails, func(context.Context, *Peer, Empty) (Empty, error) { return Empty{}, fmt.Errorf("on the way: %w", want) })
	})
	_, err := Call(t.Context(), c, fails, Empty{})
	var got *types.SyscallError
	if !errors.As(err, &got) || got.Syscall != want.Syscall || got.PID != want.PID || got.Device != want.Device || got.Code != want.Code {
		t.Errorf("got %#v", got)
	}
	if want := "on the way: " + want.Error(); err.Error() != want {
		t.Errorf("text %q, want %q", err, want)
	}
}

// post sends body as it is, by net/http, and returns what came.
func post(t *testing.T, c *Client, method, path string, body io.Reader) (int, failure) {
	t.Helper()
	tr := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", c.socket)
	}}
	req, err := http.NewRequestWithContext(t.Context(), method, "http://rnix"+path, body)
	if err != nil {
		t.Fatal(err)
	}
	res, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var f failure
	if err := json.NewDecoder(res.Body).Decode(&f); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, f
}

func TestBadRequestsAreRefusedWithTheReason(t *testing.T) {
	c, _ := serveOn(t, ServerOptions{}, nil)
	for _, tt := range []struct {
		method, path, body string
		status             int
		code               types.ErrCode
		want               string
	}{
		{"POST", "/v1/echo", `{"txt":"x"}`, 400, types.ErrInvalid, `unknown field "txt"; known: text, times`},
		{"POST", "/v1/hang", `{"a":1}`, 400, types.ErrInvalid, `takes none`},
		{"POST", "/v1/echo", `{"text":"x"} {}`, 400, types.ErrInvalid, `more after the request`},
		{"POST", "/v1/echo", `{"text":3}`, 400, types.ErrInvalid, `field "text" must be string, not number`},
		{"POST", "/v1/echo", `[]`, 400, types.ErrInvalid, `must be a JSON object, not array`},
		{"POST", "/v1/echo", `{"text"`, 400, types.ErrInvalid, `ends in the middle`},
		{"POST", "/v1/echo", `{text}`, 400, types.ErrInvalid, `not JSON`},
		{"GET", "/v1/echo", ``, 400, types.ErrInvalid, `use POST, not GET`},
		{"POST", "/v1/ecco", ``, 404, types.ErrNotFound, `no such method; nearest: echo`},
		{"POST", "/v2/echo", ``, 404, types.ErrNotFound, `speaks /v1/`},
	} {
		status, f := post(t, c, tt.method, tt.path, strings.NewReader(tt.body))
		if status != tt.status || f.OK || f.Error == nil || f.Error.Code != tt.code || !strings.Contains(f.Error.Message, tt.want) {
			t.Errorf("%s %s %s: %d %+v; want %q", tt.method, tt.path, tt.body, status, f.Error, tt.want)
		}
	}
	for _, body := range []string{"", " \n", "{}", "null"} {
		if status, f := post(t, c, "POST", "/v1/echo", strings.NewReader(body)); status != 200 || !f.OK {
			t.Errorf("body %q: %d %+v", body, status, f.Error)
		}
	}
}

func TestTooLargeRequestIsToldTheLimitAndTheNextOneIsServed(t *testing.T) {
	c, _ := serveOn(t, ServerOptions{}, nil)
	big := `{"text":"` + strings.Repeat("x", MaxBody) + `"}`
	chunked := io.MultiReader(strings.NewReader(big)) // hides its length
	for name, body := range map[string]io.Reader{"with length": strings.NewReader(big), "chunked": chunked} {
		status, f := post(t, c, "POST", "/v1/echo", body)
		if status != 400 || f.Error == nil || f.Error.Code != types.ErrInvalid || !strings.Contains(f.Error.Message, fmt.Sprint(MaxBody)) {
			t.Errorf("%s: %d %+v", name, status, f.Error)
		}
	}
	if _, err := Call(t.Context(), c, echo, echoRequest{Text: big}); types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("client: %v", err)
	}
	// A client that does not check for itself still reads the reason.
	cn, err := c.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer cn.Close()
	res, err := cn.exchange([]byte(fmt.Sprintf("POST /v1/echo HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(big), big)))
	if err != nil || res.status != 400 || res.keep {
		t.Errorf("raw: %+v, %v", res, err)
	}
	if _, err := Call(t.Context(), c, echo, echoRequest{Text: "x"}); err != nil {
		t.Error(err)
	}
}

func TestPanicOfAHandlerIsAnAnswerAndALogEntry(t *testing.T) {
	var log bytes.Buffer
	c, _ := serveOn(t, ServerOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))}, nil)
	_, err := Call(t.Context(), c, crash, Empty{})
	if types.CodeOf(err) != types.ErrInternal || !strings.Contains(err.Error(), "oh no") {
		t.Errorf("err = %v", err)
	}
	if _, err := Call(t.Context(), c, echo, echoRequest{}); err != nil {
		t.Errorf("after the panic: %v", err)
	}
	if s := log.String(); !strings.Contains(s, "oh no") || !strings.Contains(s, "main_test.go") {
		t.Errorf("log: %s", s)
	}
}

func TestAnotherUserIsRefusedOnBothSides(t *testing.T) {
	c, s := serveOn(t, ServerOptions{}, nil)
	s.uid++
	if _, err := Call(t.Context(), c, echo, echoRequest{}); types.CodeOf(err) != types.ErrPermission {
		t.Errorf("server: %v", err)
	}
	s.uid--
	c.uid++
	if _, err := Call(t.Context(), c, echo, echoRequest{}); types.CodeOf(err) != types.ErrPermission || !strings.Contains(err.Error(), "nothing was sent") {
		t.Errorf("client: %v", err)
	}
}

func TestEndOfTheContextEndsTheCallOnBothSides(t *testing.T) {
	began, ended := make(chan bool), make(chan bool)
	slow := Method[Empty, Empty]{Name: "slow"}
	c, _ := serveOn(t, ServerOptions{}, func(s *Server) {
		Handle(s, slow, func(ctx context.Context, _ *Peer, _ Empty) (Empty, error) {
			began <- true
			<-ctx.Done()
			ended <- true
			return Empty{}, ctx.Err()
		})
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; cancel() }()
	if _, err := Call(ctx, c, slow, Empty{}); types.CodeOf(err) != types.ErrCancelled || !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
	<-ended
	ctx, cancel = context.WithTimeout(t.Context(), 1)
	defer cancel()
	if _, err := Call(ctx, c, slow, Empty{}); types.CodeOf(err) != types.ErrTimeout {
		t.Errorf("err = %v", err)
	}
}

func TestShutdownTellsThoseWhoWait(t *testing.T) {
	began := make(chan bool)
	slow := Method[Empty, Empty]{Name: "slow"}
	c, s := serveOn(t, ServerOptions{}, func(s *Server) {
		Handle(s, slow, func(ctx context.Context, _ *Peer, _ Empty) (Empty, error) {
			began <- true
			<-ctx.Done()
			return Empty{}, ctx.Err()
		})
	})
	go func() { <-began; _ = s.Shutdown(context.Background()) }()
	if _, err := Call(t.Context(), c, slow, Empty{}); types.CodeOf(err) != types.ErrUnavailable || !strings.Contains(err.Error(), "stopping") {
		t.Errorf("err = %v", err)
	}
}

func TestShutdownDoesNotWaitForAClientThatSaysNothing(t *testing.T) {
	_, s := serveOn(t, ServerOptions{}, nil)
	here, there := net.Pipe()
	defer here.Close()
	s.note(there, http.StateNew)
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := here.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the connection is open: %v", err)
	}
}

func TestShutdownDoesNotWaitForTheRestOfARequest(t *testing.T) {
	c, s := serveOn(t, ServerOptions{}, nil)
	nc, err := net.Dial("unix", c.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	// The word of the server that it wants the body shows that it is waiting for it.
	if _, err := io.WriteString(nc, "POST "+echo.Path()+" HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n{\"te"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(nc).ReadString('\n'); err != nil || !strings.Contains(line, "100") {
		t.Fatalf("%q %v", line, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Error(err)
	}
}

func TestRestartedDaemonIsReachedByTheSameClient(t *testing.T) {
	c, s := serveOn(t, ServerOptions{}, nil)
	if _, err := Call(t.Context(), c, echo, echoRequest{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := Call(t.Context(), c, echo, echoRequest{}); types.CodeOf(err) != types.ErrUnavailable || !strings.Contains(err.Error(), "rnix daemon start") {
		t.Errorf("no daemon: %v", err)
	}
	l, err := Listen(c.socket)
	if err != nil {
		t.Fatal(err)
	}
	s2 := NewServer(ServerOptions{})
	Handle(s2, echo, func(context.Context, *Peer, echoRequest) (echoResponse, error) { return echoResponse{Text: "two"}, nil })
	done := make(chan error)
	go func() { done <- s2.Serve(l) }()
	if got, err := Call(t.Context(), c, echo, echoRequest{}); err != nil || got.Text != "two" {
		t.Errorf("%+v, %v", got, err)
	}
	_ = s2.Shutdown(t.Context())
	<-done
}

func TestTheTableOfMethodsIsServed(t *testing.T) {
	c, _ := serveOn(t, ServerOptions{}, nil)
	res := curlOrHTTP(t, c, "/v1/")
	var table envelope[MethodTable]
	if err := json.Unmarshal(res, &table); err != nil {
		t.Fatal(err)
	}
	if len(table.Data.Methods) != 3 || table.Data.Methods[1].Name != "echo" || table.Data.Methods[1].Request[0] != "text" || table.Data.Methods[1].Types["text"] != "string" {
		t.Errorf("%+v", table.Data)
	}
}

// curlOrHTTP fetches path the way a person would.
func curlOrHTTP(t *testing.T, c *Client, path string) []byte {
	t.Helper()
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("needs curl")
	}
	out, err := exec.CommandContext(t.Context(), curl, "-sS", "--unix-socket", c.socket, "http://rnix"+path).Output()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestCurlCallsStreamsAndIsToldTheLimit(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("needs curl")
	}
	c, _ := serveOn(t, ServerOptions{}, addCount)
	run := func(stdin string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), curl, append([]string{"-sS", "--unix-socket", c.socket}, args...)...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("curl %v: %v", args, err)
		}
		return string(out)
	}
	if got := run("", "-d", `{"text":"hi"}`, "http://rnix/v1/echo"); !strings.HasPrefix(got, `{"ok":true,"data":{"text":"hi"`) {
		t.Errorf("call: %s", got)
	}
	if got, want := run("", "-d", `{"from":2,"target":"3"}`, "http://rnix/v1/count"), "id: 2\nevent: n\ndata: 2\n\nid: 3\nevent: n\ndata: 3\n\nevent: end\ndata: {}\n\n"; got != want {
		t.Errorf("stream: %q", got)
	}
	big := strings.Repeat("x", MaxBody+1)
	for _, args := range [][]string{{"--data-binary", "@-"}, {"-H", "Expect:", "--data-binary", "@-"}, {"-H", "Transfer-Encoding: chunked", "--data-binary", "@-"}} {
		if got := run(big, append(args, "http://rnix/v1/echo")...); !strings.Contains(got, "larger than 8388608 bytes") {
			t.Errorf("%v: %s", args, got)
		}
	}
}

func FuzzRequestDecoder(f *testing.F) {
	for _, s := range []string{``, `{}`, `null`, `{"intent":"x","max_steps":3,"allow":["/dev/fs"]}`, `{"x":1}`, `{} {}`, `[`, `{"env":[1]}`, "{\"intent\":\"\xff\"}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var r SpawnRequest
		if err := decodeRequest("spawn", body, &r); err != nil {
			if types.CodeOf(err) != types.ErrInvalid {
				t.Errorf("%q: %v", body, err)
			}
			return
		}
		again, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var r2 SpawnRequest
		if err := decodeRequest("spawn", again, &r2); err != nil {
			t.Errorf("%q became %q: %v", body, again, err)
		}
	})
}
