package daemon_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/event"
	"rnix/internal/step"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// The canaries: one for each place where the kernel knows a secret from.
const (
	canaryProvider = "sk-ant-canary-0001"
	canaryServer   = "canary/server+0002=="
	canaryDeploy   = "canary-deploy-0003-\"quoted\""
	canaryURL      = "canary-password-0004"
	canaryHeader   = "canary-header-0005"
)

var canaries = []string{canaryProvider, canaryServer, canaryDeploy, canaryURL, canaryHeader}

// traces are what would betray a canary, in the forms in which tools print one.
func traces() []string {
	var out []string
	for _, c := range canaries {
		out = append(out, c, url.QueryEscape(c), hex.EncodeToString([]byte(c)), strings.ReplaceAll(c, `"`, `\"`))
		for before := range 3 {
			b := base64.RawStdEncoding.EncodeToString(append(make([]byte, before), c...))
			out = append(out, b[4:len(b)-4])
		}
	}
	return out
}

// betrayed returns the first trace of a canary in a text, also across the ends of lines.
func betrayed(text string) string {
	joined := strings.NewReplacer("\n", "", `\n`, "").Replace(text)
	for _, tr := range traces() {
		if strings.Contains(text, tr) || strings.Contains(joined, tr) {
			return tr
		}
	}
	return ""
}

// childrenOf returns the environment and the command line of every living OS child of a process, by OS pid.
func childrenOf(uuid string) map[string]string {
	out := map[string]string{}
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		env, _ := os.ReadFile(dir + "/environ")
		if strings.Contains(string(env), "RNIX_UUID="+uuid) {
			args, _ := os.ReadFile(dir + "/cmdline")
			out[filepath.Base(dir)] = string(args) + "\x00" + string(env)
		}
	}
	return out
}

// What the kernel knows to be secret is written nowhere, however it is printed, and no model and no child hears of it that was not
// given it.
func TestKnownSecretsAreWrittenNowhere(t *testing.T) {
	calls := []string{
		"cat ../outside.env", "base64 ../outside.env", "base64 -w 7 ../outside.env", "od -An -tx1 -v ../outside.env | tr -d ' \\n'",
		"cat ../urls; seq 1 40000; cat ../outside.env; seq 1 40000", "cat ../outside.env >&2; exit 3",
		"while read -r c; do printf '%.9s' \"$c\"; sleep 0.05; printf '%s\\n' \"${c#?????????}\"; done < ../outside.env",
		"sleep 0.05; cat /nowhere/$(head -1 ../outside.env)",
	}
	var mu sync.Mutex
	var told []string // what the model was told that it must not hear
	hold := make(chan struct{})
	api := func(r llmtest.Request) llmtest.Reply {
		mu.Lock()
		defer mu.Unlock()
		if tr := betrayed(string(r.Body)); tr != "" {
			told = append(told, fmt.Sprintf("request %d: %s", r.N, tr))
		}
		n := 0
		for _, m := range r.Messages {
			n += len(m.Results)
		}
		switch {
		case n < len(calls):
			return tool("shell", fmt.Sprintf(`{"command":%q}`, calls[n]))
		case n == len(calls):
			return tool("mcp__speaks__lengths", `{}`)
		case n == len(calls)+1:
			return tool("read_file", `{"path":".env"}`)
		case n == len(calls)+2:
			<-hold
			return tool("shell", `{"command":"sleep 1000"}`)
		}
		res, _ := r.LastResult()
		return llmtest.Reply{Text: "done: " + res.Text + strings.Join(canaries, " ")} // as if it had heard of them elsewhere
	}
	_, at := llmtest.NewAPI(t, api)
	s := testenv.New(t, "ANTHROPIC_API_KEY="+canaryProvider, "ANTHROPIC_BASE_URL="+at, "SERVER_KEY="+canaryServer, "DEPLOY_TOKEN="+canaryDeploy,
		"DATABASE_URL=postgres://app:"+canaryURL+"@db/x", "RNIX_LOG_LEVEL=debug")
	outside := strings.Join(canaries, "\n") + "\n"
	urls := ""
	for _, c := range canaries {
		urls += "https://x/?k=" + url.QueryEscape(c) + "\n"
	}
	for name, text := range map[string]string{"outside.env": outside, "urls": urls} {
		if err := os.WriteFile(filepath.Join(s.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.Write(".env", outside) // the user's own file
	said := strings.ReplaceAll(speaks, "env '${#DECLARED}', argument '${#1}'", "'$(printf %s \"$DECLARED\")'")
	s.Write("speaks.sh", said)
	configure(t, s, "mcp.yaml", "servers:\n  speaks:\n    command: sh\n    args: [speaks.sh]\n    env: {DECLARED: \"${SERVER_KEY}\"}\n"+
		"  unused:\n    url: http://127.0.0.1:1/\n    headers: {X-Custom: "+canaryHeader+"}\n")
	p := s.Spawn(ipc.SpawnRequest{Intent: "use " + canaryDeploy, ProcSpec: types.ProcSpec{Model: "fake", SystemPrompt: "The key is " + canaryServer}, MCP: []string{"speaks"}, Inputs: []ipc.Input{{Name: "pipe", Text: outside}}})
	id := p.UUID.String()
	for _, text := range []string{"the key is " + canaryURL, "\xff" + canaryHeader} {
		if _, err := ipc.Call(t.Context(), s.Client, ipc.Send, ipc.SendRequest{Target: id, Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	close(hold)
	s.Await(p.PID, event.Syscall, func(e *event.Event) bool { return e.Name == "Open" && e.Path == "/dev/fs" })
	for end := time.Now().Add(2 * time.Minute); len(sleepers(id)) == 0; time.Sleep(5 * time.Millisecond) { // a child of the OS sends no event of its start
		if time.Now().After(end) {
			t.Fatal("the last command was not started")
		}
	}
	found := childrenOf(id)
	for pid, text := range found {
		granted := strings.HasPrefix(text, "sh\x00speaks.sh") || strings.Contains(text, "DECLARED=")
		if tr := betrayed(text); tr != "" && !granted || strings.Contains(text, canaryProvider) || strings.Contains(text, "canary-deploy") {
			t.Errorf("child %s has %q: %q", pid, tr, text)
		}
	}
	if len(found) < 2 {
		t.Errorf("only %d children were looked at", len(found))
	}
	s.Kill() // half-way, with what was there then
	if left := leaks(t, s); left != "" {
		t.Error(left)
	}
	s.Start()
	s.Settle()
	w := s.Wait(p.PID)
	if betrayed(w.Result) != "" {
		t.Errorf("the result is %q", w.Result)
	}
	if left := leaks(t, s); left != "" {
		t.Error(left)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(told) > 0 {
		t.Errorf("the model was told: %v", told)
	}
	if s.Read(".env") != outside {
		t.Error("a file of the workspace was changed")
	}
	history, err := os.ReadFile(filepath.Join(s.Data, "steps", id, step.StepsFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"DEPLOY_TOKEN", "SERVER_KEY", "DATABASE_URL", "ANTHROPIC_API_KEY", "X-Custom"} {
		if !strings.Contains(string(history), "[secret "+name+"]") {
			t.Errorf("the history does not say where %s stood", name)
		}
	}
}

// sleepers are the children of a process that sleep.
func sleepers(uuid string) (out []string) {
	for pid, text := range childrenOf(uuid) {
		if strings.HasPrefix(text, "sleep\x00") {
			out = append(out, pid)
		}
	}
	return out
}

// leaks returns the first file of the system that betrays a canary, but for those that the test has made, and what snapshots keep of
// them: what a person's own files hold is kept as it is.
func leaks(t *testing.T, s *testenv.System) (leak string) {
	t.Helper()
	err := filepath.Walk(s.Dir, func(path string, i os.FileInfo, err error) error {
		if err != nil || !i.Mode().IsRegular() || filepath.Dir(path) == s.Dir || strings.HasPrefix(path, s.Work) || strings.HasPrefix(path, filepath.Join(s.Data, "snapshots", "objects")) || strings.HasPrefix(path, filepath.Join(s.Home, ".config")) {
			return nil
		}
		b, _ := os.ReadFile(path)
		if tr := betrayed(string(b)); tr != "" && leak == "" {
			leak = path + " holds " + tr
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return leak
}

// A provider that answers with the key that it was sent does not get it into the exit status, the log or a file.
func TestAKeyThatAProviderSendsBackIsNotWritten(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key: `+r.Header.Get("X-Api-Key")+`"}}`, http.StatusUnauthorized)
	}))
	defer api.Close()
	s := testenv.New(t, "ANTHROPIC_API_KEY="+canaryProvider, "ANTHROPIC_BASE_URL="+api.URL)
	w := s.Wait(s.Spawn(ipc.SpawnRequest{Intent: "x", ProcSpec: types.ProcSpec{Model: "fake"}}).PID)
	if w.Exit.Code == 0 || betrayed(fmt.Sprint(w.Exit, w.Exit.Err)) != "" || !strings.Contains(fmt.Sprint(w.Exit, w.Exit.Err), "invalid x-api-key") {
		t.Errorf("the exit status is %v, %v", w.Exit, w.Exit.Err)
	}
	if left := leaks(t, s); left != "" {
		t.Error(left)
	}
}
