package mcpserve

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rnix/ipc"
	"rnix/types"
)

const secret = "s3cret-credential"

// kernel is the session's side of a daemon: a list of tools, and what a call does.
type kernel struct {
	tools []ipc.SessionTool
	call  func(ctx context.Context, req ipc.SessionCallRequest) (ipc.SessionCallResponse, error)
}

var object = json.RawMessage(`{"type":"object"}`)

// session opens a session with a fake daemon.
func (k *kernel) session(t *testing.T) (*Session, *ipc.Server) {
	t.Helper()
	socket, srv := fakeDaemon(t, func(s *ipc.Server) {
		ipc.Handle(s, ipc.SessionTools, func(_ context.Context, _ *ipc.Peer, r ipc.SessionToolsRequest) (ipc.SessionToolsResponse, error) {
			if r.Credential != secret {
				return ipc.SessionToolsResponse{}, types.Errorf(types.ErrPermission, "Session", "", "no session has this credential")
			}
			return ipc.SessionToolsResponse{PID: 3, Tools: k.tools}, nil
		})
		ipc.Handle(s, ipc.SessionCall, func(ctx context.Context, _ *ipc.Peer, r ipc.SessionCallRequest) (ipc.SessionCallResponse, error) {
			if r.Credential != secret {
				return ipc.SessionCallResponse{}, types.Errorf(types.ErrPermission, "Session", "", "no session has this credential")
			}
			return k.call(ctx, r)
		})
	})
	s, err := OpenSession(t.Context(), sessionFile(t, socket, secret))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, srv
}

func sessionFile(t *testing.T, socket, credential string) string {
	t.Helper()
	data, err := json.Marshal(ipc.SessionFile{Socket: socket, Credential: credential})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "session.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestToolsAreOfferedAsTheKernelListsThem(t *testing.T) {
	schema := `{"type":"object","properties":{"z":{"description":"a<b & \"c\">d é"},"a":{"type":"integer","minimum":0}},"required":["z"]}`
	k := &kernel{tools: []ipc.SessionTool{{Name: "zebra", Description: "Reads <files>.\nSee é.", InputSchema: json.RawMessage(schema)}, {Name: "apple", InputSchema: object}}}
	s, _ := k.session(t)
	b := start(t, s)
	lines := bufio.NewReader(b.out)
	ask := func(line string) string {
		if _, err := io.WriteString(b.in, line+"\n"); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(line, `"id"`) {
			return ""
		}
		answer, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	hello := ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	if !strings.Contains(hello, `"name":"rnix"`) || strings.Contains(hello, "resources") {
		t.Errorf("hello: %s", hello)
	}
	ask(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	list := ask(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	if !strings.Contains(list, `"inputSchema":`+schema) {
		t.Errorf("the schema is not as it was: %s", list)
	}
	if i, j := strings.Index(list, "zebra"), strings.Index(list, "apple"); i < 0 || j < i || !strings.Contains(list, `Reads <files>.\nSee é.`) {
		t.Errorf("the order or the text is not as it was: %s", list)
	}
}

func TestCallsRunSideBySide(t *testing.T) {
	const n = 50
	var all sync.WaitGroup
	all.Add(n)
	k := &kernel{call: func(ctx context.Context, r ipc.SessionCallRequest) (ipc.SessionCallResponse, error) {
		all.Done()
		all.Wait() // nobody answers before all are there
		return ipc.SessionCallResponse{Output: r.Name + string(r.Input)}, nil
	}}
	s, _ := k.session(t)
	cs := start(t, s).connect(t, nil)
	var calls sync.WaitGroup
	for i := range n {
		calls.Go(func() {
			r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: json.RawMessage(fmt.Sprintf(`{"n":%d,"big":9007199254740993}`, i))})
			if err != nil {
				t.Error(err)
				return
			}
			if got, want := words(t, r), fmt.Sprintf(`echo{"n":%d,"big":9007199254740993}`, i); got != want || r.IsError {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
	calls.Wait()
}

// hanging is a kernel whose calls take until somebody hangs up.
func hanging() (k *kernel, began, ended chan struct{}) {
	began, ended = make(chan struct{}), make(chan struct{})
	return &kernel{call: func(ctx context.Context, _ ipc.SessionCallRequest) (ipc.SessionCallResponse, error) {
		close(began)
		<-ctx.Done()
		close(ended)
		return ipc.SessionCallResponse{}, ctx.Err()
	}}, began, ended
}

func TestCancelledCallIsTakenBackFromTheKernel(t *testing.T) {
	k, began, ended := hanging()
	s, _ := k.session(t)
	cs := start(t, s).connect(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; cancel() }()
	if _, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "sleep"}); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
	<-ended
}

func TestEndOfInputEndsTheServerAndItsCalls(t *testing.T) {
	k, began, ended := hanging()
	s, _ := k.session(t)
	b := start(t, s)
	cs := b.connect(t, nil)
	go func() { _, _ = cs.CallTool(context.Background(), &mcp.CallToolParams{Name: "sleep"}) }() // ends with the connection
	<-began
	asked := time.Now()
	if err := b.in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-b.done; err != nil {
		t.Error(err)
	}
	if took := time.Since(asked); took >= goodbye {
		t.Errorf("it took %s", took)
	}
	<-ended
}

func TestWhatTheKernelRefusesIsAnAnswerForTheModel(t *testing.T) {
	k := &kernel{call: func(_ context.Context, r ipc.SessionCallRequest) (ipc.SessionCallResponse, error) {
		if r.Name == "fails" {
			return ipc.SessionCallResponse{Output: "exit status 2", IsError: true}, nil
		}
		return ipc.SessionCallResponse{}, types.Errorf(types.ErrNotFound, "Call", "", "no tool %q; the nearest is fails", r.Name)
	}}
	s, _ := k.session(t)
	cs := start(t, s).connect(t, nil)
	for name, want := range map[string]string{"fails": "exit status 2", "nothing": `NOT_FOUND: Call: no tool "nothing"; the nearest is fails`} {
		r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: name})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := words(t, r); !r.IsError || got != want {
			t.Errorf("%s: %v %q", name, r.IsError, got)
		}
	}
}

func TestLostDaemonIsToldToEveryCallAndEndsTheServer(t *testing.T) {
	var both sync.WaitGroup
	both.Add(2)
	k := &kernel{call: func(ctx context.Context, _ ipc.SessionCallRequest) (ipc.SessionCallResponse, error) {
		both.Done()
		<-ctx.Done()
		return ipc.SessionCallResponse{}, ctx.Err()
	}}
	s, srv := k.session(t)
	b := start(t, s)
	cs := b.connect(t, nil)
	var calls sync.WaitGroup
	for range 2 {
		calls.Go(func() {
			_, err := cs.CallTool(context.Background(), &mcp.CallToolParams{Name: "sleep"})
			var rpc *jsonrpc.Error
			if !errors.As(err, &rpc) || !strings.Contains(rpc.Message, "the kernel is gone") {
				t.Errorf("err = %v", err)
			}
		})
	}
	both.Wait()
	if err := srv.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	calls.Wait()
	if err := <-b.done; types.CodeOf(err) != types.ErrUnavailable {
		t.Errorf("it ended with %v", err)
	}
}

func TestHugeResultPasses(t *testing.T) {
	huge := strings.Repeat("a <b>\n\x1b é", 1<<17)
	k := &kernel{call: func(context.Context, ipc.SessionCallRequest) (ipc.SessionCallResponse, error) {
		return ipc.SessionCallResponse{Output: huge}, nil
	}}
	s, _ := k.session(t)
	b := start(t, s)
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	cs, err := c.Connect(t.Context(), &mcp.IOTransport{Reader: b.out, Writer: b.in, MaxLineLength: 64 << 20}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "read"})
	if err != nil {
		t.Fatal(err)
	}
	if words(t, r) != huge {
		t.Error("it came otherwise than it was sent")
	}
}

func TestInputThatIsTooLargeIsAnAnswerForTheModel(t *testing.T) {
	k := &kernel{call: func(context.Context, ipc.SessionCallRequest) (ipc.SessionCallResponse, error) {
		return ipc.SessionCallResponse{Output: "ok"}, nil
	}}
	s, _ := k.session(t)
	cs := start(t, s).connect(t, nil)
	r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "write", Arguments: map[string]string{"text": strings.Repeat("x", ipc.MaxBody)}})
	if err != nil || !r.IsError || !strings.Contains(words(t, r), "INVALID") {
		t.Errorf("%+v %v", r, err)
	}
	if r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "write"}); err != nil || words(t, r) != "ok" {
		t.Errorf("the next call: %+v %v", r, err)
	}
}

func TestSessionFileIsASecretOrRefused(t *testing.T) {
	dir := t.TempDir()
	good := `{"socket":"/run/x","credential":"` + secret + `"}`
	put := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	real := put("good", good, 0o600)
	link := filepath.Join(dir, "link")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path string
		code types.ErrCode
		want string
	}{
		{real, "", ""},
		{put("readonly", good, 0o400), "", ""},
		{put("newer", `{"socket":"/run/x","credential":"c","more":1}`, 0o600), "", ""},
		{link, types.ErrPermission, "symbolic link"},
		{put("group", good, 0o640), types.ErrPermission, "mode 0640"},
		{put("other", good, 0o604), types.ErrPermission, "mode 0604"},
		{filepath.Join(dir, "none"), types.ErrNotFound, "no such file"},
		{dir, types.ErrInvalid, "not a file"},
		{put("empty", "", 0o600), types.ErrInvalid, "no JSON"},
		{put("text", "{\n \"socket\": "+secret+"}", 0o600), types.ErrInvalid, "text:2:12: is not the file"},
		{put("kind", `{"socket":3}`, 0o600), types.ErrInvalid, `"socket" is no string`},
		{put("list", `[]`, 0o600), types.ErrInvalid, "object is wanted"},
		{put("twice", good+good, 0o600), types.ErrInvalid, "more after"},
		{put("relative", `{"socket":"x","credential":"c"}`, 0o600), types.ErrInvalid, "absolute"},
		{put("nothing", `{"socket":"/x"}`, 0o600), types.ErrInvalid, "no credential"},
		{put("huge", good+strings.Repeat(" ", maxPrivate), 0o600), types.ErrInvalid, "more than"},
	} {
		f, err := readSessionFile(tt.path)
		if types.CodeOf(err) != tt.code || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", filepath.Base(tt.path), err)
		}
		if err != nil && (strings.Contains(err.Error(), secret) || f.Credential != "") {
			t.Errorf("%s: the secret is shown: %v", filepath.Base(tt.path), err)
		}
	}
}

func TestRefusedCredentialIsSaidAtOnce(t *testing.T) {
	k := &kernel{}
	s, _ := k.session(t)
	_, err := OpenSession(t.Context(), sessionFile(t, s.client.Socket(), "another"))
	if types.CodeOf(err) != types.ErrPermission {
		t.Errorf("err = %v", err)
	}
	_, err = OpenSession(t.Context(), sessionFile(t, filepath.Join(t.TempDir(), "s"), secret))
	if types.CodeOf(err) != types.ErrUnavailable {
		t.Errorf("no daemon: %v", err)
	}
}
