package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/event"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// work is a model that mends a bug: it reads a file, edits it, runs the tests and completes. It
// decides by what it was told last, so it works through any of the APIs.
func work(r llmtest.Request) llmtest.Reply {
	result, ok := r.LastResult()
	switch {
	case !ok:
		return tool("read_file", `{"path":"sum.go"}`)
	case strings.HasPrefix(result.Text, "1\tpackage sum"):
		return tool("edit_file", `{"path":"sum.go","old":"a - b","new":"a + b"}`)
	case strings.Contains(result.Text, "exit code 0"):
		return tool("complete", `{"result":"mended, the tests pass"}`)
	case strings.Contains(result.Text, "exit code"):
		return tool("complete", `{"result":"the tests fail: `+firstLine(result.Text)+`"}`)
	}
	return tool("shell", `{"command":"go test ./..."}`)
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return strings.ReplaceAll(s, `"`, "'")
}

var ids atomic.Int64 // models answer side by side

func tool(name, input string) llmtest.Reply {
	return llmtest.Reply{ToolCalls: []llmtest.ToolCall{{ID: fmt.Sprintf("call_%d", ids.Add(1)), Name: name, Input: input}}}
}

// bug puts a small Go module with a failing test into the workspace.
func bug(s *testenv.System) {
	s.Write("go.mod", "module sum\n\ngo 1.21\n")
	s.Write("sum.go", "package sum\n\nfunc Sum(a, b int) int { return a - b }\n")
	s.Write("sum_test.go", "package sum\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) {\n\tif Sum(2, 2) != 4 {\n\t\tt.Fatal(Sum(2, 2))\n\t}\n}\n")
}

func TestAgentMendsABugThroughEachAPI(t *testing.T) {
	for provider, env := range map[string]func(url string) []string{
		"anthropic": func(u string) []string { return []string{"ANTHROPIC_API_KEY=sk-test", "ANTHROPIC_BASE_URL=" + u} },
		"openai": func(u string) []string {
			return []string{"OPENAI_API_KEY=sk-test", "OPENAI_BASE_URL=" + u + "/v1", "OPENAI_MODEL=fake"}
		},
	} {
		t.Run(provider, func(t *testing.T) {
			api, url := llmtest.NewAPI(t, work)
			s := testenv.New(t, env(url)...)
			bug(s)
			p := s.Spawn(ipc.SpawnRequest{Intent: "mend the sum", ProcSpec: types.ProcSpec{Provider: provider, Model: "fake"}})
			w := s.Wait(p.PID)
			if w.Exit.Code != 0 || w.Result != "mended, the tests pass" || !strings.Contains(s.Read("sum.go"), "a + b") {
				t.Fatalf("%+v", w)
			}
			if w.TokensUsed == 0 || w.Estimated {
				t.Errorf("tokens %d, estimated %v", w.TokensUsed, w.Estimated)
			}
			steps, err := ipc.Call(t.Context(), s.Client, ipc.ListSteps, ipc.StepsRequest{Target: p.UUID.String()})
			if err != nil || len(steps.Steps) != 4 || steps.Damage != "" || len(steps.Interrupted) != 0 {
				t.Fatalf("%+v %v", steps, err)
			}
			for i, want := range []string{"read_file sum.go", "edit_file sum.go", "shell go test ./...", "complete"} {
				if got := steps.Steps[i].Summary; got != want {
					t.Errorf("step %d: %q, want %q", i+1, got, want)
				}
			}
			prefixStable(t, api)
			s.Stop()
			profile, err := os.ReadFile(filepath.Join(s.Data, "steps", p.UUID.String(), "ctx-profile.json"))
			if err != nil || !strings.Contains(string(profile), "\"tokens\"") {
				t.Errorf("%s %v", profile, err)
			}
		})
	}
}

// prefixStable checks that each request begins with the messages of the one before it, behind the same
// instructions and the same tools.
func prefixStable(t *testing.T, api *llmtest.API) {
	t.Helper()
	var last []json.RawMessage
	var head string
	for _, r := range api.Requests() {
		var doc struct {
			System, Tools json.RawMessage
			Messages      []json.RawMessage
		}
		if json.Unmarshal(r.Body, &doc) != nil || len(doc.Messages) == 0 {
			continue
		}
		if now := string(doc.System) + string(doc.Tools); head != "" && now != head {
			t.Fatalf("request %d changed the instructions or the tools:\n%s\n%s", r.N, head, now)
		} else {
			head = now
		}
		for i := range last {
			if !equalMessage(last[i], doc.Messages[i]) {
				t.Fatalf("request %d changed message %d:\n%s\n%s", r.N, i, last[i], doc.Messages[i])
			}
		}
		last = doc.Messages
	}
}

// equalMessage compares two messages without the marks of the provider's cache, which move on.
func equalMessage(a, b json.RawMessage) bool {
	strip := func(m json.RawMessage) string {
		return strings.ReplaceAll(string(m), `,"cache_control":{"type":"ephemeral"}`, "")
	}
	return strip(a) == strip(b)
}

func TestOfflineReportWithoutKeyOrNetwork(t *testing.T) {
	s := testenv.New(t)
	bug(s)
	s.Write("README.md", "# The sum\n\nAdds numbers.\n")
	p := s.Spawn(ipc.SpawnRequest{Intent: "Report on this project"})
	if p.Provider != "offline" || p.Why == "" {
		t.Errorf("%+v", p)
	}
	w := s.Wait(p.PID)
	for _, want := range []string{"The sum", "go test ./...", "offline planner"} {
		if !strings.Contains(w.Result, want) {
			t.Errorf("the report lacks %q:\n%s", want, w.Result)
		}
	}
	if w.Exit.Code != 0 || w.Steps < 2 {
		t.Errorf("%+v", w)
	}
}

func TestProviderFailuresAreClearOutcomes(t *testing.T) {
	for name, c := range map[string]struct {
		reply llmtest.Reply
		code  types.ErrCode
		says  string
	}{
		"401":   {llmtest.Reply{Status: 401, Text: "bad key"}, types.ErrAuth, ""},
		"400":   {llmtest.Reply{Status: 400, Text: "no such thing"}, types.ErrInvalid, "no such thing"},
		"html":  {llmtest.Reply{Raw: "<html>proxy</html>"}, "", ""},
		"empty": {llmtest.Reply{Text: ""}, "", "empty answer"},
	} {
		t.Run(name, func(t *testing.T) {
			_, url := llmtest.NewAPI(t, func(llmtest.Request) llmtest.Reply { return c.reply })
			s := testenv.New(t, "ANTHROPIC_API_KEY=sk-secret-value", "ANTHROPIC_BASE_URL="+url)
			w := s.Wait(s.Spawn(ipc.SpawnRequest{Intent: "x", ProcSpec: types.ProcSpec{Model: "fake"}}).PID)
			if w.Exit.Code != types.ExitError || c.code != "" && types.CodeOf(w.Exit.Err) != c.code || !strings.Contains(w.Exit.Reason, c.says) {
				t.Errorf("%+v (%s)", w.Exit, types.CodeOf(w.Exit.Err))
			}
			nowhere(t, s, "sk-secret-value")
		})
	}
}

// nowhere checks that a secret is in no file below the system's directory.
func nowhere(t *testing.T, s *testenv.System, secret string) {
	t.Helper()
	err := filepath.Walk(s.Dir, func(path string, i os.FileInfo, err error) error {
		if err != nil || !i.Mode().IsRegular() {
			return nil
		}
		b, _ := os.ReadFile(path)
		if strings.Contains(string(b), secret) {
			t.Errorf("%s holds the secret", path)
		}
		if strings.HasPrefix(path, s.Data) && i.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, i.Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestSecretsReachNoChildAndNoFile(t *testing.T) { // A-68, C-12
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if res, ok := r.LastResult(); ok {
			return llmtest.Reply{Text: res.Text}
		}
		return tool("shell", `{"command":"env"}`)
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=sk-canary-1", "ANTHROPIC_BASE_URL="+url, "AWS_SECRET_ACCESS_KEY=sk-canary-2", "MY_TOKEN=sk-canary-3",
		"INNOCENT=sk-canary-4", "GOPROXY=https://me:sk-canary-5@proxy.invalid") // no list of names knows these
	w := s.Wait(s.Spawn(ipc.SpawnRequest{Intent: "show the environment", ProcSpec: types.ProcSpec{Model: "fake"}}).PID)
	if w.Exit.Code != 0 || !strings.Contains(w.Result, "RNIX_PARENT_PID=") {
		t.Fatalf("%+v", w)
	}
	if strings.Contains(w.Result, "sk-canary") {
		t.Errorf("a child saw a secret:\n%s", w.Result)
	}
	nowhere(t, s, "sk-canary")
}

func TestKilledDaemonLeavesNoChildAndShowsTheInterruptedCall(t *testing.T) {
	_, url := llmtest.NewAPI(t, func(llmtest.Request) llmtest.Reply {
		return tool("shell", `{"command":"(setsid sleep 3600 &) ; sleep 3601"}`)
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, "RNIX_DAEMON_AUTO_RESUME=false")
	p := s.Spawn(ipc.SpawnRequest{Intent: "sleep", ProcSpec: types.ProcSpec{Model: "fake"}})
	s.Await(p.PID, event.Syscall, func(e *event.Event) bool { return e.Name == "Open" && e.Path == "/dev/shell" })
	waitChildren(t, s, p.PID)
	until(t, "it has started what leaves its session", func() bool {
		return slices.ContainsFunc(s.Survivors(), func(command string) bool { return strings.HasSuffix(strings.TrimSpace(command), " sleep 3600") })
	})
	s.Kill()
	until(t, "all have ended", func() bool { return len(s.Survivors()) == 0 }) // nobody has started a daemon again
	s.Start()
	s.Settle()
	d, err := ipc.Call(t.Context(), s.Client, ipc.GetProcDetail, ipc.TargetRequest{Target: p.UUID.String()})
	if err != nil || d.Damage != "" || d.State != "suspended" || len(d.Interrupted) != 1 || d.Interrupted[0].Tool != "shell" {
		t.Fatalf("%+v %v", d, err)
	}
	st, err := ipc.Call(t.Context(), s.Client, ipc.DaemonStatus, ipc.Empty{})
	if err != nil || !strings.Contains(strings.Join(st.Recovered, "\n"), "was interrupted in step 1") || !strings.Contains(strings.Join(st.Recovered, "\n"), "ended the shell of process 1") {
		t.Errorf("%q %v", st.Recovered, err)
	}
	next := s.Spawn(ipc.SpawnRequest{Intent: "Report", ProcSpec: types.ProcSpec{Provider: "offline"}})
	if next.PID <= p.PID {
		t.Errorf("PID %d after %d", next.PID, p.PID)
	}
	s.Wait(next.PID)
}

// waitChildren waits until a process has an OS child.
func waitChildren(t *testing.T, s *testenv.System, pid types.PID) {
	t.Helper()
	until(t, "it has a child", func() bool {
		l, err := ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(l.Procs, func(p ipc.Proc) bool { return p.PID == pid && len(p.Children) > 0 })
	})
}

func TestStopSuspendsAndTheHistoryStaysReadable(t *testing.T) {
	_, url := llmtest.NewAPI(t, func(llmtest.Request) llmtest.Reply { return llmtest.Reply{Hang: true} })
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, "RNIX_DAEMON_AUTO_RESUME=false")
	s.Settle() // before, it refuses names that a stored history may have, too
	p := s.Spawn(ipc.SpawnRequest{Intent: "think for ever", ProcSpec: types.ProcSpec{Model: "fake", Name: "thinker"}})
	s.Await(p.PID, event.StepStarted, nil)
	const waiters = 20 // a call that comes when the daemon stops already is refused
	waited := make(chan ipc.WaitResponse, waiters)
	for range waiters {
		go func() { // ends with the daemon
			r, err := ipc.Call(context.Background(), s.Client, ipc.Wait, ipc.WaitRequest{Target: "thinker"})
			if err == nil && !r.Suspended {
				t.Errorf("a waiter was told %+v", r)
			} else if err != nil {
				t.Log(err)
			}
			waited <- r
		}()
	}
	until(t, "all waiters are connected", func() bool {
		sockets, err := os.ReadFile("/proc/net/unix")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(sockets), s.Socket()+"\n") > waiters // and the one that listens
	})
	late := ipc.NewClient(s.Socket()) // whose connection is accepted after theirs
	defer late.Close()
	if _, err := ipc.Call(t.Context(), late, ipc.ListProcs, ipc.ListRequest{}); err != nil {
		t.Fatal(err)
	}
	if _, err := ipc.Call(t.Context(), s.Client, ipc.Shutdown, ipc.Empty{}); err != nil {
		t.Fatal(err)
	}
	told := 0
	for range waiters {
		if r := <-waited; r.Suspended {
			told++
		}
	}
	if told == 0 {
		t.Errorf("none of %d waiters was told that it is suspended", waiters)
	}
	s.Stop()
	s.Start()
	s.Settle()
	l, err := ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{All: true})
	if err != nil || len(l.Procs) != 1 || l.Procs[0].State != "suspended" || l.Procs[0].Exit != nil {
		t.Errorf("%+v %v", l, err)
	}
	if next := s.Spawn(ipc.SpawnRequest{Intent: "help", ProcSpec: types.ProcSpec{Provider: "offline"}}); next.PID != p.PID+1 {
		t.Errorf("PID %d after %d", next.PID, p.PID)
	}
}

func TestAmbiguityListsTheCandidates(t *testing.T) {
	s := testenv.New(t)
	for range 2 {
		s.Wait(s.Spawn(ipc.SpawnRequest{Intent: "help", ProcSpec: types.ProcSpec{Name: "twin", Provider: "offline"}}).PID)
	}
	_, err := ipc.Call(t.Context(), s.Client, ipc.GetProcDetail, ipc.TargetRequest{Target: "twin"})
	if types.CodeOf(err) != types.ErrAmbiguous || !strings.Contains(err.Error(), "PID 1 ") || !strings.Contains(err.Error(), "PID 2 ") {
		t.Errorf("%v", err)
	}
	if _, err := ipc.Call(t.Context(), s.Client, ipc.GetProcDetail, ipc.TargetRequest{Target: "nobody"}); types.CodeOf(err) != types.ErrNotFound {
		t.Errorf("%v", err)
	}
}

func TestAgentInsideAShellCannotLeaveItsSubtree(t *testing.T) {
	var socket string
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if res, ok := r.LastResult(); ok {
			return llmtest.Reply{Text: res.Text}
		}
		call := "curl -s --unix-socket " + socket + " http://d/v1/"
		return tool("shell", `{"command":"`+call+`shutdown -d {}; `+call+`spawn -d '{\"intent\":\"help\",\"provider\":\"offline\"}'; `+call+`signal -d '{\"target\":\"1\",\"signal\":\"KILL\"}'"}`)
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	socket = s.Socket()
	victim := s.Spawn(ipc.SpawnRequest{Intent: "help", ProcSpec: types.ProcSpec{Provider: "offline"}})
	s.Wait(victim.PID)
	w := s.Wait(s.Spawn(ipc.SpawnRequest{Intent: "break out", ProcSpec: types.ProcSpec{Model: "fake"}}).PID)
	if !strings.Contains(w.Result, "may not stop the daemon") {
		t.Errorf("the daemon could be stopped: %s", w.Result)
	}
	l, err := ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{All: true})
	if err != nil || len(l.Procs) != 3 || l.Procs[2].ParentUUID != l.Procs[1].UUID {
		t.Errorf("the child is not one of its agent: %+v %v", l, err)
	}
}

func TestWaitForAnEndedProcessGivesItsWholeResultAfterARestart(t *testing.T) {
	result := strings.Repeat("a long report. ", 1000) + "its end"
	_, url := llmtest.NewAPI(t, func(llmtest.Request) llmtest.Reply { return llmtest.Reply{Text: result} })
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	p := s.Spawn(ipc.SpawnRequest{Intent: "report", ProcSpec: types.ProcSpec{Model: "fake"}})
	for _, when := range []string{"at once", "after a restart"} {
		if w := s.Wait(p.PID); w.Result != result {
			t.Errorf("%s: %d bytes of %d", when, len(w.Result), len(result))
		}
		s.Stop()
		s.Start()
	}
}

func TestAgentThatLeavesItsShellBehindIsNotTakenForTheUser(t *testing.T) {
	s := testenv.New(t)
	// A session and a parent of its own, and in the second round no environment to be known by.
	for _, clean := range []string{"", "env -i "} {
		script := "sleep 0.3\ncall() { /usr/bin/curl -s --unix-socket " + s.Socket() + " http://d/v1/$1 -d \"$2\"; echo; }\n" +
			"call shutdown '{}'\ncall mcp_test '{\"server\":\"x\"}'\ncall spawn '{\"intent\":\"help\",\"provider\":\"offline\",\"name\":\"free\"}'\ncall write_path '{\"path\":\"/dev/workspace/x\",\"data\":\"aGk=\",\"cwd\":\"" + s.Work + "\"}'\necho END\n"
		s.Write("leave.sh", script)
		_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
			if res, ok := r.LastResult(); ok {
				return llmtest.Reply{Text: res.Text}
			}
			return tool("shell", `{"command":"rm -f said; (`+clean+`setsid sh leave.sh > said 2>&1 &); until grep -q END said; do sleep 0.1; done; cat said"}`)
		})
		w := s.Wait(s.Spawn(ipc.SpawnRequest{Intent: "break out", ProcSpec: types.ProcSpec{Model: "fake", DeniedDevices: []string{"/dev/workspace"}}, Env: append(s.Env, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)}).PID)
		if n := strings.Count(w.Result, `"PERMISSION"`); n < 3 {
			t.Errorf("%q: %d refusals: %s", clean, n, w.Result)
		}
	}
	l, err := ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{All: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range l.Procs {
		if p.Name == "free" && p.PPID == 0 && p.ParentUUID == (types.UUID{}) {
			t.Errorf("an agent has started an agent of nobody: %+v", p)
		}
	}
}

func TestWholeOutputThatTheShellNamesCanBeRead(t *testing.T) {
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		res, ok := r.LastResult()
		switch path := scratchPath.FindString(res.Text); {
		case !ok:
			return tool("shell", `{"command":"seq 100000"}`)
		case path != "":
			return tool("read_file", `{"path":"`+path+`","offset":50000,"limit":1}`)
		}
		return llmtest.Reply{Text: res.Text}
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	w := s.Wait(s.Spawn(ipc.SpawnRequest{Intent: "count", ProcSpec: types.ProcSpec{Model: "fake"}}).PID)
	if w.Exit.Code != 0 || !strings.HasPrefix(w.Result, "50000\t50000") {
		t.Errorf("%+v", w)
	}
}

// scratchPath is a file in a scratch directory.
var scratchPath = regexp.MustCompile(`/\S+/scratch/[\w.-]+`)

func TestStreamOfAnEndedProcessEnds(t *testing.T) {
	s := testenv.New(t)
	p := s.Spawn(ipc.SpawnRequest{Intent: "help", ProcSpec: types.ProcSpec{Provider: "offline"}})
	s.Wait(p.PID)
	for _, from := range []uint64{1, 1 << 40} {
		feed, err := ipc.Open(t.Context(), s.Client, ipc.Events, ipc.EventsRequest{Target: p.UUID.String(), From: from, Follow: true, UntilEnd: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range feed.All() {
			if err != nil {
				t.Errorf("from %d: %v", from, err)
			}
		}
	}
}
