package mcpserve

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rnix/types"
)

// serveHTTP serves a source until the test ends, and returns the address and the token.
func serveHTTP(t *testing.T, src Source) (address, token string) {
	t.Helper()
	token = NewToken()
	return serveAs(t, src, "127.0.0.1:0", token, all), token
}

// all lets every process call.
func all(_ context.Context, pids []int) ([]bool, error) {
	return slices.Repeat([]bool{true}, len(pids)), nil
}

// serveAs serves a source at an address until the test ends, and returns the address.
func serveAs(t *testing.T, src Source, at, token string, same Same) (address string) {
	t.Helper()
	l, err := Listen(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- HTTP(ctx, src, "test", l, token, same) }() // ends with ctx
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return l.Addr().String()
}

// bearer adds a token to requests.
type bearer struct {
	http.RoundTripper
	token string
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.RoundTripper.RoundTrip(r)
}

func TestClientOverHTTPCallsAndTakesBack(t *testing.T) {
	s := system(t)
	p := processesOn(s.Socket(), s.Env, s.Work)
	t.Cleanup(func() { _ = p.Close() })
	address, token := serveHTTP(t, p)
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	cs, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: "http://" + address + Path, HTTPClient: &http.Client{Transport: bearer{tr, token}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	var done spawnOut
	if got := ask(t, cs, "spawn", map[string]any{"intent": "say something", "model": "fake", "wait_seconds": 60}, &done); got != "All is <well>." {
		t.Errorf("%q", got)
	}
	ask(t, cs, "spawn", map[string]any{"intent": "hang", "model": "fake"}, &done)
	ctx, cancel := context.WithCancel(t.Context())
	waited := make(chan error, 1)
	go func() { // ends with ctx
		_, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "wait", Arguments: map[string]any{"process": done.PID, "wait_seconds": 3600}})
		waited <- err
	}()
	ask(t, cs, "ps", nil, nil)
	cancel()
	if err := <-waited; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestWhoMayNotCallOverHTTPIsToldWhy(t *testing.T) {
	address, token := serveHTTP(t, one{})
	_, port, _ := net.SplitHostPort(address)
	hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	for _, tt := range []struct {
		name, host, origin, auth string
		status                   int
		want                     string
	}{
		{"right", "", "", "Bearer " + token, 200, `"name":"rnix"`},
		{"another case", "", "", "bearer " + token, 200, `"name":"rnix"`},
		{"localhost", "localhost:" + port, "http://localhost:3000", "Bearer " + token, 200, `"name":"rnix"`},
		{"no token", "", "", "", 401, "Authorization: Bearer"},
		{"wrong token", "", "", "Bearer " + token[1:], 401, "Bearer"},
		{"another scheme", "", "", "Basic " + token, 401, "Bearer"},
		{"name that leads here", "evil.example:" + port, "", "Bearer " + token, 403, "127.0.0.1"},
		{"page of another site", "", "https://evil.example", "Bearer " + token, 403, "other sites"},
		{"page of no site", "", "null", "Bearer " + token, 403, "other sites"},
		{"page that looks alike", "", "http://localhost.evil.example", "Bearer " + token, 403, "other sites"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+address+Path, strings.NewReader(hello))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = tt.host
		for k, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Origin": tt.origin, "Authorization": tt.auth} {
			if v != "" {
				req.Header.Set(k, v)
			}
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != tt.status || !strings.Contains(string(body), tt.want) || strings.Contains(string(body), token) {
			t.Errorf("%s: %d %s %v", tt.name, res.StatusCode, body, err)
		}
	}
}

func TestOnlyThisMachineIsListenedOn(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.168.1.1:0", "example.com:0", "127.0.0.1", "", "127.0.0.1:x"} {
		l, err := Listen(t.Context(), address)
		if err == nil {
			_ = l.Close()
		}
		if err == nil || address != "127.0.0.1:x" && types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%q: %v", address, err)
		}
	}
}

func TestTokenFileIsMadeOnceAndKeptSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	first, err := TokenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := TokenFile(path); err != nil || again != first || CheckToken(first) != nil {
		t.Errorf("%q %q %v", first, again, err)
	}
	if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", fi.Mode(), err)
	}
	for text, code := range map[string]types.ErrCode{"short": types.ErrInvalid, "": types.ErrInvalid, "with blanks in the middle of it": types.ErrInvalid} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := TokenFile(path); types.CodeOf(err) != code {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := TokenFile(path); types.CodeOf(err) != types.ErrPermission {
		t.Errorf("%v", err)
	}
}

func TestConfigsHaveNoSecretAndSurviveOddPaths(t *testing.T) {
	s := Setup{Program: `/opt/a "b"\c/rnix`, Args: []string{"mcp", "serve"}, Pass: []string{"XDG_RUNTIME_DIR", "MY_KEY"}}
	text, err := Config("claude", s)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		MCPServers map[string]struct {
			Type, Command string
			Args          []string
		}
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil || got.MCPServers["rnix"].Command != s.Program || got.MCPServers["rnix"].Type != "stdio" {
		t.Errorf("%s %v", text, err)
	}
	text, err = Config("codex", s)
	if err != nil || !strings.Contains(text, `command = "/opt/a \"b\"\\c/rnix"`) || !strings.Contains(text, `env_vars = ["XDG_RUNTIME_DIR", "MY_KEY"]`) {
		t.Errorf("%s %v", text, err)
	}
	if _, err := Config("vim", s); types.CodeOf(err) != types.ErrInvalid {
		t.Error(err)
	}
}
