package mcpserve

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/soak"
	"rnix/types"
)

// The real Claude Code starts the server from a configuration as Config writes it, and offers all tools to its model.
func TestClaudeCodeFindsEveryTool(t *testing.T) {
	claude := filepath.Join(os.Getenv("RNIX_TEST_NPM"), "node_modules/.bin/claude")
	if _, err := os.Stat(claude); err != nil || os.Getenv("RNIX_TEST_NPM") == "" {
		t.Skip("needs the npm package @anthropic-ai/claude-code in RNIX_TEST_NPM")
	}
	soak.Turn(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	_, url := llmtest.NewAPI(t, func(llmtest.Request) llmtest.Reply { return llmtest.Reply{Text: "done"} })
	dir := t.TempDir()
	text, err := Config("claude", Setup{Program: exe, Args: []string{"mcp", "serve"}})
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "mcp.json")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, claude, "-p", "--output-format", "stream-json", "--verbose", "--tools", "", "--strict-mcp-config", "--mcp-config", config,
		"--setting-sources", "", "--no-session-persistence", "hi")
	cmd.Dir = dir
	// The variable makes the test's binary the server; it listens to nobody, and lists its tools all the same.
	cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), asServer + "=" + filepath.Join(dir, "none.sock"), "GORACE=atexit_sleep_ms=0", "ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_API_KEY=k",
		"CLAUDE_CODE_MAX_RETRIES=0", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "MCP_TIMEOUT=30000"}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var init struct {
		Tools   []string `json:"tools"`
		Servers []struct {
			Name, Status string
		} `json:"mcp_servers"`
	}
	line, _, _ := strings.Cut(string(out), "\n")
	if err := json.Unmarshal([]byte(line), &init); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	if len(init.Servers) != 1 || init.Servers[0].Status != "connected" {
		t.Errorf("servers %+v", init.Servers)
	}
	for _, name := range []string{"spawn", "ps", "wait", "log", "result", "diff", "cost", "steer", "send", "pause", "resume", "kill"} {
		if !slices.Contains(init.Tools, "mcp__rnix__"+name) {
			t.Errorf("%s is not among %v", name, init.Tools)
		}
	}
}

// What a daemon does that is killed in the middle of a call: its connections and its socket are gone.
func TestKilledDaemonEndsTheSessionServer(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() { // ends with the first call
		defer close(served)
		defer l.Close()
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r := bufio.NewReader(c)
			for {
				req, err := http.ReadRequest(r)
				if err != nil || strings.HasSuffix(req.URL.Path, "/session_call") {
					_ = c.Close()
					return
				}
				if _, err := r.Discard(int(req.ContentLength)); err != nil {
					t.Error(err)
				}
				body := `{"ok":true,"data":{"pid":1,"uuid":"00000000-0000-0000-0000-000000000000","tools":[]}}`
				res := http.Response{StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, ContentLength: int64(len(body)), Header: http.Header{"Content-Type": {"application/json"}}, Body: readCloser{strings.NewReader(body)}}
				if err := res.Write(c); err != nil {
					t.Error(err)
				}
			}
		}
	}()
	s, err := OpenSession(t.Context(), sessionFile(t, socket, secret))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b := start(t, s)
	cs := b.connect(t, nil)
	if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "x"}); err == nil || !strings.Contains(err.Error(), "the kernel is gone") {
		t.Errorf("err = %v", err)
	}
	if err := <-b.done; types.CodeOf(err) != types.ErrDisconnected {
		t.Errorf("it ended with %v", err)
	}
	<-served
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }
