package mcp

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"rnix/agent"
	"rnix/internal/proc"
	"rnix/internal/soak"
	"rnix/types"
	"rnix/vfs"
)

// npmServer returns the program of an installed server, which is run with node.
func npmServer(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("RNIX_TEST_NPM")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Skip("needs RNIX_TEST_NPM, a directory with npm packages")
		}
		dir = filepath.Join(cache, "rnix-test", "npm")
	}
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("needs node")
	}
	file := filepath.Join(dir, "node_modules", "@modelcontextprotocol", name, "dist", "index.js")
	if _, err := os.Stat(file); err != nil {
		t.Skip("needs npm install --prefix " + dir + " @modelcontextprotocol/" + name)
	}
	soak.Turn(t)
	return file
}

func npm(name, file string, args ...string) vfs.MCPConfig {
	return vfs.MCPConfig{MCPServer: agent.MCPServer{Name: name, Command: "node", Args: append([]string{file}, args...),
		SpawnTimeout: agent.Duration(10 * time.Second)}}
}

// useEverything uses the reference server, however it was reached.
func useEverything(t *testing.T, b *bench) {
	t.Helper()
	var names []string
	for _, tool := range b.devices.Tools(at) {
		names = append(names, tool.Name)
	}
	if len(names) < 8 || !slices.Contains(names, "mcp__srv__echo") {
		t.Errorf("tools: %v", names)
	}
	if got := b.mustCall(t, "echo", `{"message":"Grüße"}`); !strings.Contains(got, "Grüße") {
		t.Errorf("echo: %s", got)
	}
	if _, err := b.call(context.Background(), "echo", `{"message":7}`); err == nil {
		t.Error("a wrong argument was accepted")
	}
	if got := b.mustCall(t, "get-tiny-image", ""); !strings.Contains(got, "[image: image/png, ") {
		t.Errorf("image: %s", got)
	}
	list, err := b.read("/resources")
	if err != nil || !strings.Contains(list, `"uri"`) {
		t.Fatalf("resources: %.300s, %v", list, err)
	}
	_, rest, _ := strings.Cut(list, `"uri":"`)
	uri, _, _ := strings.Cut(rest, `"`)
	if got, err := b.read("/resources/" + uri); err != nil || got == "" {
		t.Errorf("resource %s: %q, %v", uri, got, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := b.call(ctx, "trigger-long-running-operation", `{"duration":30,"steps":3}`); types.CodeOf(err) != types.ErrTimeout || time.Since(start) > 25*time.Second {
		t.Errorf("long operation: %v after %v", err, time.Since(start))
	}
	b.mustCall(t, "echo", `{"message":"still there"}`)
}

func TestRealEverythingServerOverStdio(t *testing.T) {
	b := newBench(t)
	b.mustMount(t, npm("srv", npmServer(t, "server-everything")))
	useEverything(t, b)
	start := time.Now()
	if err := b.Unmount(at); err != nil || time.Since(start) > 30*time.Second {
		t.Errorf("unmount: %v after %v", err, time.Since(start))
	}
	if left := b.mgr.All(); len(left) > 0 {
		t.Errorf("left: %+v", left)
	}
}

func TestRealEverythingServerOverHTTP(t *testing.T) {
	b := newBench(t)
	file := npmServer(t, "server-everything")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close() // the server takes it over
	up := make(chan struct{})
	server, err := b.mgr.Start(t.Context(), proc.Spec{Kind: proc.KindMCP, Path: "node", Args: []string{file, "streamableHttp"}, Dir: t.TempDir(),
		Env: append(slices.Clone(b.factory.opts.Env), "PORT="+strconv.Itoa(port)), Stderr: &expect{text: "listening", seen: up}, Stdout: &expect{}})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Kill()
	select {
	case <-up:
	case <-server.Done():
		t.Fatalf("the server ended: %+v", server.Wait())
	case <-time.After(5 * time.Minute):
		t.Fatal("the server does not come up")
	}
	b.mustMount(t, behind("http://127.0.0.1:"+strconv.Itoa(port)+"/mcp"))
	useEverything(t, b)
	if err := b.Unmount(at); err != nil {
		t.Error(err)
	}
}

// expect is a writer that waits for a text.
type expect struct {
	text string
	seen chan struct{}
	got  strings.Builder
}

func (e *expect) Write(p []byte) (int, error) {
	if e.seen != nil {
		e.got.Write(p)
		if strings.Contains(e.got.String(), e.text) {
			close(e.seen)
			e.seen = nil
		}
	}
	return len(p), nil
}

func TestRealFilesystemServer(t *testing.T) {
	b := newBench(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b.mustMount(t, npm("srv", npmServer(t, "server-filesystem"), dir))
	for _, tool := range b.devices.Tools(at) {
		if want := map[string]vfs.Effect{"mcp__srv__read_text_file": vfs.EffectNone, "mcp__srv__edit_file": vfs.EffectExternal}[tool.Name]; want != "" && tool.Effect != want {
			t.Errorf("%s: effect %s, want %s", tool.Name, tool.Effect, want)
		}
	}
	file := filepath.Join(dir, "a.txt")
	b.mustCall(t, "write_file", `{"path":`+strconv.Quote(file)+`,"content":"hello"}`)
	if data, err := os.ReadFile(file); err != nil || string(data) != "hello" {
		t.Errorf("%s, %v", data, err)
	}
	if got := b.mustCall(t, "read_text_file", `{"path":`+strconv.Quote(file)+`}`); got != "hello" {
		t.Errorf("read: %s", got)
	}
	if _, err := b.call(context.Background(), "read_text_file", `{"path":"/etc/passwd"}`); types.CodeOf(err) != types.ErrDriver {
		t.Errorf("outside: %v", err)
	}
	if got := b.mustCall(t, "list_allowed_directories", ""); !strings.Contains(got, dir) {
		t.Errorf("no arguments: %s", got)
	}
}
