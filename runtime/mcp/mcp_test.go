package mcp

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rnix/agent"
	"rnix/types"
)

var two = []agent.MCPServerConfig{
	{Name: "z", Command: "srv", Args: []string{"-a"}, Env: map[string]string{"KEY": "v"}},
	{Name: "a", Type: "stdio", Command: "other"},
}

func build(t *testing.T, b Builder, servers []agent.MCPServerConfig) (string, func()) {
	t.Helper()
	path, cleanup, err := b.Build(servers)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cleanup)
	return path, cleanup
}

func TestNoServersNoFile(t *testing.T) {
	dir := t.TempDir()
	path, cleanup, err := Builder{TempDir: dir}.Build(nil)
	if path != "" || cleanup == nil || err != nil {
		t.Fatalf("%q, %v", path, err)
	}
	cleanup()
	if e, _ := os.ReadDir(dir); len(e) != 0 {
		t.Errorf("made %v", e)
	}
}

func TestAFileComesBackAsItWasWritten(t *testing.T) {
	path, _ := build(t, Builder{TempDir: t.TempDir(), Session: "s-1"}, two)
	if name := filepath.Base(path); !filepath.IsAbs(path) || !strings.HasPrefix(name, "rnix-mcp-s-1-") || !strings.HasSuffix(name, ".json") {
		t.Errorf("path %s", path)
	}
	got, err := LoadConfigFile(path)
	want := ConfigFile{map[string]Server{"z": {Type: "stdio", Command: "srv", Args: []string{"-a"}, Env: map[string]string{"KEY": "v"}}, "a": {Type: "stdio", Command: "other"}}}
	if err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("%v, %s", err, cmp.Diff(want, got))
	}
	var raw map[string]map[string]map[string]any
	b, _ := os.ReadFile(path)
	if err := json.Unmarshal(b, &raw); err != nil || len(raw["mcpServers"]) != 2 || len(raw["mcpServers"]["a"]) != 2 {
		t.Errorf("%v, %s", err, b)
	}
}

func TestHTTPServersHaveNoFieldsOfStdio(t *testing.T) {
	path, _ := build(t, Builder{TempDir: t.TempDir()}, []agent.MCPServerConfig{{Name: "h", Type: "http", URL: "http://x/mcp", Headers: map[string]string{"Authorization": "Bearer t"}}})
	b, _ := os.ReadFile(path)
	var raw map[string]map[string]map[string]any
	if err := json.Unmarshal(b, &raw); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"type": "http", "url": "http://x/mcp", "headers": map[string]any{"Authorization": "Bearer t"}}
	if d := cmp.Diff(want, raw["mcpServers"]["h"]); d != "" {
		t.Error(d)
	}
}

func TestServersThatCannotBeAreRefusedByName(t *testing.T) {
	for want, servers := range map[string][]agent.MCPServerConfig{
		"server 2 of 2 has no name":                   {two[0], {Command: "x"}},
		"one: a server of type stdio needs a command": {{Name: "one"}},
		"one: a server of type http needs a url":      {{Name: "one", Type: "http"}},
		`unknown type "sse"`:                          {{Name: "one", Type: "sse", URL: "u"}},
		"z: two servers have this name":               {two[0], two[0]},
		"has no url":                                  {{Name: "one", Command: "c", URL: "u"}},
		"has no command":                              {{Name: "one", Type: "http", URL: "u", Env: map[string]string{"A": "b"}}},
	} {
		dir := t.TempDir()
		path, cleanup, err := Builder{TempDir: dir}.Build(servers)
		if path != "" || cleanup == nil || types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if e, _ := os.ReadDir(dir); len(e) != 0 {
			t.Errorf("%s: left %v", want, e)
		}
	}
}

func TestNamesThatLeadElsewhereAreRefused(t *testing.T) {
	dir := t.TempDir()
	for _, b := range []Builder{{Session: "../x"}, {Session: "a/b"}, {Session: strings.Repeat("s", 129)}, {Prefix: "../p-"}} {
		b.TempDir = dir
		if path, _, err := b.Build(two); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%+v: %s, %v", b, path, err)
		}
	}
}

func TestTheFileSharesNothingWithItsServers(t *testing.T) {
	in := []agent.MCPServerConfig{{Name: "a", Command: "c", Args: []string{"1"}, Env: map[string]string{"K": "v"}}}
	got, err := BuildConfigFile(in)
	in[0].Args[0], in[0].Env["K"] = "changed", "changed"
	if s := got.MCPServers["a"]; err != nil || s.Args[0] != "1" || s.Env["K"] != "v" {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestNobodyElseCanReadTheFile(t *testing.T) {
	for _, mode := range []fs.FileMode{0o700, 0o755, 0o777 | fs.ModeSticky} {
		dir := t.TempDir()
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		path, _ := build(t, Builder{TempDir: dir}, two)
		f, _ := os.Stat(path)
		d, _ := os.Stat(filepath.Dir(path))
		if f.Mode().Perm() != 0o600 || d.Mode().Perm() != 0o700 {
			t.Errorf("in a directory of mode %v: file %v in %v", mode, f.Mode(), d.Mode())
		}
		if kept, _ := os.Stat(dir); kept.Mode().Perm() != mode.Perm() {
			t.Errorf("a directory of mode %v has become %v", mode, kept.Mode())
		}
	}
}

func TestADirectoryOfAnotherIsRefused(t *testing.T) {
	dir := t.TempDir()
	elsewhere := t.TempDir()
	if err := os.Chmod(dir, 0o777|fs.ModeSticky); err != nil {
		t.Fatal(err)
	}
	first, cleanup := build(t, Builder{TempDir: dir}, two)
	cleanup()
	private := filepath.Dir(first)
	if err := os.Remove(private); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, private); err != nil { // planted by another user
		t.Fatal(err)
	}
	if path, _, err := (Builder{TempDir: dir}).Build(two); types.CodeOf(err) != types.ErrPermission {
		t.Errorf("%s, %v", path, err)
	}
	if _, err := Sweep(dir, nil); types.CodeOf(err) != types.ErrPermission {
		t.Errorf("sweep: %v", err)
	}
	if e, _ := os.ReadDir(elsewhere); len(e) != 0 {
		t.Errorf("written through the link: %v", e)
	}
}

func TestCleanupRemovesTheFileAndMayBeCalledAgain(t *testing.T) {
	path, cleanup := build(t, Builder{TempDir: t.TempDir()}, two)
	cleanup()
	cleanup()
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("%v", err)
	}
}

func TestBuildersAtOnceGetFilesOfTheirOwn(t *testing.T) {
	dir := t.TempDir()
	var mu sync.Mutex
	seen := map[string]bool{}
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			path, cleanup, err := Builder{TempDir: dir}.Build(two)
			defer cleanup()
			mu.Lock()
			defer mu.Unlock()
			if err != nil || seen[path] {
				t.Errorf("%s, %v", path, err)
			}
			seen[path] = true
		})
	}
	wg.Wait()
}

// A process that builds and is killed: TestMain runs it in a child.
func TestMain(m *testing.M) {
	if dir := os.Getenv("MCP_TEST_LEAVE_IN"); dir != "" {
		for _, session := range []string{"dead", "living", ""} {
			if _, _, err := (Builder{TempDir: dir, Session: session}).Build(two); err != nil {
				panic(err)
			}
		}
		p, _ := os.FindProcess(os.Getpid())
		_ = p.Kill()
		select {}
	}
	os.Exit(m.Run())
}

func TestSweepRemovesWhatACrashHasLeftAndNothingElse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	if n, err := Sweep(dir, nil); n != 0 || err != nil {
		t.Errorf("nothing there: %d, %v", n, err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	mine, _ := build(t, Builder{TempDir: dir, Session: "dead"}, two) // whoever is asked: it is ours, and we live
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), "MCP_TEST_LEAVE_IN="+dir)
	if err := child.Run(); err == nil {
		t.Fatal("the child was not killed")
	}
	for _, other := range []string{"rnix-mcp-.json", "notes.json", "rnix-mcp-x-y.txt"} {
		if err := os.WriteFile(filepath.Join(dir, other), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("notes.json", filepath.Join(dir, "rnix-mcp-dead-LINK.json")); err != nil {
		t.Fatal(err)
	}
	asked := map[string]bool{}
	n, err := Sweep(dir, func(s string) bool { asked[s] = true; return s == "living" })
	if n != 2 || err != nil || asked[""] {
		t.Errorf("%d files, %v, asked %v", n, err, asked)
	}
	left, _ := os.ReadDir(dir)
	var names []string
	for _, e := range left {
		names = append(names, e.Name())
	}
	if len(left) != 6 || !strings.Contains(strings.Join(names, " "), "rnix-mcp-living-") {
		t.Errorf("left: %v", names)
	}
	if _, err := os.Stat(mine); err != nil {
		t.Error(err)
	}
	if n, err := Sweep(dir, nil); n != 1 || err != nil {
		t.Errorf("with nobody alive: %d, %v", n, err)
	}
}

func TestFilesThatAreNoConfigurationAreToldByName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if _, err := LoadConfigFile(path); types.CodeOf(err) != types.ErrNotFound || !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
	for _, text := range []string{"", "{", "[]"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadConfigFile(path); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%q: %v", text, err)
		}
	}
}
