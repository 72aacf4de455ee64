package daemon_test

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/hidden"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// speaks is an MCP server in a few lines of shell with one tool, which says what it was started with.
const speaks = `while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9][0-9]*\).*/\1/p')
  case "$line" in
  *'"initialize"'*) r='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"speaks","version":"1"}}' ;;
  *'"tools/list"'*) r='{"tools":[{"name":"lengths","description":"d","inputSchema":{"type":"object"}}]}' ;;
  *'"tools/call"'*) r='{"content":[{"type":"text","text":"env '${#DECLARED}', argument '${#1}'"}]}' ;;
  *) continue ;;
  esac
  [ -n "$id" ] && printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$r"
done
`

// What a server needs to know reaches it, by its environment and its arguments, and nothing else: no
// file of ours, no answer on the socket.
func TestSecretsOfAServerReachTheServerOnly(t *testing.T) {
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if res, told := r.LastResult(); told {
			return llmtest.Reply{Text: res.Text}
		}
		return tool("mcp__speaks__lengths", `{}`)
	})
	const canary = "sk-canary-4711"
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, "SERVER_KEY="+canary)
	s.Write("speaks.sh", speaks)
	configure(t, s, "mcp.yaml", "servers:\n  speaks:\n    command: sh\n    args: [speaks.sh, \"${SERVER_KEY}\"]\n    env: {DECLARED: \"${SERVER_KEY}\"}\n")
	p := s.Spawn(ipc.SpawnRequest{Intent: "use it", ProcSpec: types.ProcSpec{Model: "fake"}, MCP: []string{"speaks"}})
	d, err := ipc.Call(t.Context(), s.Client, ipc.GetProcDetail, ipc.TargetRequest{Target: p.UUID.String()})
	if err != nil {
		t.Fatal(err)
	}
	l, err := ipc.Call(t.Context(), s.Client, ipc.MCPList, ipc.ProjectRequest{Cwd: s.Work, Env: s.Env})
	if err != nil {
		t.Fatal(err)
	}
	w := s.Wait(p.PID)
	if w.Exit.Code != 0 || !strings.Contains(w.Result, "env 14, argument 14") {
		t.Fatalf("%+v", w)
	}
	for what, text := range map[string]any{"get_proc_detail": d, "mcp_list": l, "wait": w} {
		if strings.Contains(asJSON(t, text), canary) {
			t.Errorf("%s shows the secret: %+v", what, text)
		}
	}
	nowhere(t, s, canary)
}

// A server behind a URL that holds a key: what goes wrong is told without it.
func TestSecretsInAURLAreNotTold(t *testing.T) {
	const canary = "sk-canary-4712"
	answers := map[string]http.HandlerFunc{
		"refuses": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) },
		"fails": func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, r.URL.String(), http.StatusInternalServerError)
		},
		"redirects": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1"+r.URL.RequestURI(), http.StatusTemporaryRedirect)
		},
		"hangs up": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	}
	for name, h := range answers {
		t.Run(name, func(t *testing.T) {
			site := httptest.NewServer(h)
			defer site.Close()
			s := testenv.New(t, "SERVER_KEY="+canary)
			configure(t, s, "mcp.yaml", "servers:\n  far:\n    url: "+site.URL+"/mcp?key=${SERVER_KEY}\n")
			_, err := s.TrySpawn(ipc.SpawnRequest{Intent: "x", ProcSpec: types.ProcSpec{Provider: "offline"}, MCP: []string{"far"}})
			if err == nil || strings.Contains(err.Error(), canary) {
				t.Errorf("the error is %v", err)
			}
			nowhere(t, s, canary)
		})
	}
}

// Colours within a secret, as grep makes them, hide it from nobody: not from what writes records, and so not from who reads them
// on a screen that takes the colours away. What is configured with a key in it is listed without.
func TestColoursHideNoSecret(t *testing.T) {
	const canary, key = "sk-canary-4713", "sk-canary-4714"
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if res, told := r.LastResult(); told {
			return llmtest.Reply{Text: res.Text}
		}
		return tool("shell", `{"command":"cat keys | grep --color=always canary; sed s/can/$(printf '\\033[1m')can$(printf '\\033[0m')/ keys"}`)
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, "MY_TOKEN="+canary)
	s.Write("keys", "the key is "+canary+"\n")
	configure(t, s, "mcp.yaml", "servers:\n  far:\n    url: https://u:"+key+"@127.0.0.1:1/mcp?access_token="+key+"\n  near:\n    command: sh\n    args: [-c, \"exit 1\", --api-key, "+key+"]\n")
	w := s.Wait(s.Spawn(ipc.SpawnRequest{Intent: "look", ProcSpec: types.ProcSpec{Model: "fake"}}).PID)
	shown := hidden.Strip(w.Result)
	if w.Exit.Code != 0 || strings.Count(w.Result, "[secret MY_TOKEN]") != 2 || strings.Contains(shown, canary) {
		t.Errorf("%+v", w)
	}
	l, err := ipc.Call(t.Context(), s.Client, ipc.MCPList, ipc.ProjectRequest{Cwd: s.Work, Env: s.Env})
	if err != nil {
		t.Fatal(err)
	}
	if text := asJSON(t, l); strings.Contains(text, key) || strings.Count(text, "***") != 3 {
		t.Errorf("%s", text)
	}
	err = filepath.WalkDir(s.Data, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Name() == "snapshots" {
			return filepath.SkipDir // the file itself
		}
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if text := hidden.Strip(strings.ReplaceAll(string(b), `\u001b`, "\x1b")); strings.Contains(text, canary) || strings.Contains(text, key) {
			t.Errorf("%s holds a secret", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
