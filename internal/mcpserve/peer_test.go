package mcpserve

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"rnix/types"
)

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// greet says hello over a connection of its own, and returns the status and the answer.
func greet(t *testing.T, network, address, token string) (int, string) {
	t.Helper()
	tr := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}}
	req, err := http.NewRequestWithContext(t.Context(), "POST", "http://localhost"+Path, strings.NewReader(hello))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// curl says hello from another process, and returns the status and the answer.
func curl(t *testing.T, args ...string) string {
	t.Helper()
	path, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("needs curl")
	}
	out, err := exec.Command(path, append([]string{"-sS", "-w", " %{http_code}", "-H", "Content-Type: application/json", "-H", "Accept: application/json, text/event-stream", "-d", hello}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("curl: %v\n%s", err, out)
	}
	return string(out)
}

func TestWhoCallsIsAskedOfEachProcessThatHasTheConnection(t *testing.T) {
	var mu sync.Mutex // who calls is another process, after whose end nothing tells the race detector that the server was done before
	var seen [][]int
	inside := false
	same := func(_ context.Context, pids []int) ([]bool, error) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, pids)
		return slices.Repeat([]bool{!inside}, len(pids)), nil
	}
	asked := func() [][]int {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen)
	}
	token := NewToken()
	address := serveAs(t, one{}, "127.0.0.1:0", token, same)
	auth := []string{"-H", "Authorization: Bearer " + token, "http://" + address + Path}
	if got := curl(t, auth...); !strings.HasSuffix(got, " 200") {
		t.Error(got)
	}
	if list := asked(); len(list) != 1 || len(list[0]) != 1 || list[0][0] == os.Getpid() {
		t.Errorf("asked for %v, want one process, which is not this one", list)
	}
	mu.Lock()
	inside = true
	mu.Unlock()
	if got := curl(t, auth...); !strings.HasSuffix(got, " 403") || !strings.Contains(got, "a command of an agent may not call this server") {
		t.Error(got)
	}
	if n := len(asked()); n != 2 {
		t.Errorf("asked %d times, want 2", n)
	}
	if got := curl(t, "http://"+address+Path); !strings.HasSuffix(got, " 401") || len(asked()) != 2 {
		t.Errorf("without the token: %s, asked %d times", got, len(asked()))
	}
	if got, _ := greet(t, "tcp", address, token); got != http.StatusForbidden || !slices.Equal(asked()[len(asked())-1], []int{os.Getpid()}) {
		t.Errorf("%d after %v", got, asked())
	}
}

func TestACallerOfWhichNothingIsKnownIsRefused(t *testing.T) {
	token := NewToken()
	unknown := types.Errorf(types.ErrUnavailable, "Connect", "", "no daemon")
	for _, at := range []string{"127.0.0.1:0", "unix:" + filepath.Join(t.TempDir(), "s")} {
		address := serveAs(t, one{}, at, token, func(context.Context, []int) ([]bool, error) { return nil, unknown })
		to := []string{"http://" + address + Path}
		if path, ok := strings.CutPrefix(at, "unix:"); ok {
			to = []string{"--unix-socket", path, "http://localhost" + Path}
		}
		if got := curl(t, append(to, "-H", "Authorization: Bearer "+token)...); !strings.HasSuffix(got, " 503") || !strings.Contains(got, "no daemon") {
			t.Errorf("%s: %s", at, got)
		}
	}
}

func TestASocketIsForProcessesOfThisUserOutsideOfAgents(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	inside := false
	var asked []int
	serveAs(t, one{}, "unix:"+path, "", func(_ context.Context, pids []int) ([]bool, error) {
		asked = append(asked, pids...)
		return []bool{!inside}, nil
	})
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v, want mode 0600", info, err)
	}
	if status, body := greet(t, "unix", path, ""); status != 200 || !strings.Contains(body, `"name":"rnix"`) {
		t.Errorf("%d %s", status, body)
	}
	if !slices.Equal(asked, []int{os.Getpid()}) {
		t.Errorf("asked for %v, want %d", asked, os.Getpid())
	}
	inside = true
	if status, body := greet(t, "unix", path, ""); status != 403 || !strings.Contains(body, "of an agent") {
		t.Errorf("%d %s", status, body)
	}
	if _, err := Listen(t.Context(), "unix:"+path); types.CodeOf(err) != types.ErrUnavailable {
		t.Errorf("a socket that answers: %v", err)
	}
}

func TestASocketTakesThePlaceOfOneThatNobodyListensOn(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close()
	again, err := Listen(t.Context(), "unix:"+path)
	if err != nil {
		t.Fatal(err)
	}
	_ = again.Close()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for address, code := range map[string]types.ErrCode{"unix:" + path: types.ErrInvalid, "unix:": types.ErrInvalid, "unix:/" + strings.Repeat("x", 107): types.ErrInvalid,
		"unix:" + filepath.Join(dir, "none", "s"): types.ErrUnavailable} {
		if _, err := Listen(t.Context(), address); types.CodeOf(err) != code {
			t.Errorf("%s: %v, want %s", address, err, code)
		}
	}
}
