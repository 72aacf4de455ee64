package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/event"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// configure writes a file of the user's configuration.
func configure(t *testing.T, s *testenv.System, name, text string) {
	t.Helper()
	if name == "mcp.yaml" { // the specification's half a second is short for tests that run side by side
		text = strings.ReplaceAll(text, "\n    command: ", "\n    spawn_timeout: 30\n    command: ")
	}
	dir := filepath.Join(s.Home, ".config", "rnix")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// busy is a model whose agents are each held up in another way, by what they were asked to do.
func busy(r llmtest.Request) llmtest.Reply {
	if _, told := r.LastResult(); told {
		return llmtest.Reply{Text: "done"}
	}
	switch r.LastUser() {
	case "deaf":
		return tool("shell", `{"command":"trap '' TERM INT HUP; echo up; while :; do sleep 1; done"}`)
	case "escape":
		return tool("shell", `{"command":"setsid sleep 3600 & echo up; sleep 3600"}`)
	case "freeze":
		return tool("shell", `{"command":"echo up; sleep 3600"}`)
	case "limit":
		return llmtest.Reply{Status: 429, Text: "come back later", Header: map[string][]string{"Retry-After": {"300"}}}
	case "parent":
		return tool("spawn", `{"intent":"think"}`)
	}
	return llmtest.Reply{Hang: true}
}

// up waits until the shell of a process has printed its first line.
func up(s *testenv.System, pid types.PID) {
	s.Await(pid, event.LogLine, func(e *event.Event) bool { return strings.HasPrefix(e.Text, "up") }) // not the line of the call
}

func TestOneSIGTERMStopsTheDaemonInTheMiddleOfWork(t *testing.T) {
	_, url := llmtest.NewAPI(t, busy)
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, "RNIX_DAEMON_AUTO_RESUME=false")
	configure(t, s, "mcp.yaml", "servers:\n  mute:\n    command: sh\n    args: [-c, 'echo $$ > $HOME/mute; exec sleep 3600']\n")
	pids := map[string]types.PID{}
	start := func(intents ...string) {
		for _, intent := range intents {
			pids[intent] = s.Spawn(ipc.SpawnRequest{Intent: intent, ProcSpec: types.ProcSpec{Model: "fake"}}).PID
		}
	}
	start("think", "deaf", "escape", "freeze", "parent")
	for _, intent := range []string{"deaf", "escape", "freeze"} {
		up(s, pids[intent])
	}
	s.Await(pids["think"], event.StepStarted, nil)
	s.Await(0, event.Spawned, func(e *event.Event) bool { return e.PPID == pids["parent"] })
	start("limit") // last, because the others would wait for the limit too
	s.Await(pids["limit"], event.Waiting, nil)
	signal(t, s, pids["freeze"], types.SIGPAUSE)

	// clients that wait: for an end, for events, and for a server that says nothing
	var clients sync.WaitGroup
	defer clients.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	client := s.Client
	clients.Go(func() { _, _ = ipc.Call(ctx, client, ipc.Wait, ipc.WaitRequest{Target: pids["think"].String()}) })
	feed, err := ipc.Open(ctx, client, ipc.Events, ipc.EventsRequest{Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	mounting := ipc.SpawnRequest{Intent: "mute", ProcSpec: types.ProcSpec{Model: "fake"}, MCP: []string{"mute"}, Cwd: s.Work, Env: s.Env}
	clients.Go(func() { _, _ = ipc.Call(ctx, client, ipc.Spawn, mounting) })
	until(t, "the mute server runs", func() bool { b, _ := os.ReadFile(filepath.Join(s.Home, "mute")); return len(b) > 0 })

	if err := syscall.Kill(s.PID(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code, ended := s.Ended(time.Minute); !ended || code != 0 {
		t.Fatalf("after SIGTERM: ended %v, exit code %d", ended, code)
	}
	if left := s.Survivors(); len(left) > 0 {
		t.Errorf("OS children are left: %v", left)
	}
	mute, err := os.ReadFile(filepath.Join(s.Home, "mute"))
	if err != nil || stateOf(number(t, string(mute))) != "" {
		t.Errorf("the mute server is left: %q %v", mute, err)
	}
	s.Start()
	st, err := ipc.Call(t.Context(), s.Client, ipc.DaemonStatus, ipc.Empty{})
	if err != nil || len(st.Recovered) != 0 {
		t.Errorf("a stop is taken for a crash: %q %v", st.Recovered, err)
	}
	l, err := ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{All: true})
	if err != nil || len(l.Procs) != len(pids)+1 {
		t.Fatalf("%d histories, want %d: %v", len(l.Procs), len(pids)+1, err)
	}
	for _, p := range l.Procs {
		if p.State != "suspended" || p.Exit != nil {
			t.Errorf("PID %d (%s) is %s: %v", p.PID, p.Intent, p.State, p.Exit)
		}
	}
}

// signal sends a signal to a process.
func signal(t *testing.T, s *testenv.System, pid types.PID, sig types.Signal) {
	t.Helper()
	if _, err := ipc.Call(t.Context(), s.Client, ipc.Signal, ipc.SignalRequest{Target: pid.String(), Signal: sig}); err != nil {
		t.Fatal(err)
	}
}

// until waits for something that no event tells.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	late := time.After(2 * time.Minute)
	for pause := 2 * time.Millisecond; !is(); pause = min(pause*5/4, 50*time.Millisecond) { // who waits for long takes little time from what he waits for
		select {
		case <-time.After(pause):
		case <-late:
			t.Fatalf("it never came: %s", what)
		}
	}
}

// Who follows a process is told what has stopped the daemon: no signal has, where it makes room for one that reads a corrected configuration.
func TestDaemonThatIsReplacedSinceItsConfigurationWasCorrectedSaysSo(t *testing.T) {
	s := testenv.New(t)
	s.Stop()
	configure(t, s, "config.yaml", "limits: {depth: many}\n")
	s.Start()
	if _, err := s.TrySpawn(ipc.SpawnRequest{Intent: "x"}); types.CodeOf(err) != types.ErrInvalid {
		t.Fatalf("with a mistake in the configuration: %v", err)
	}
	configure(t, s, "config.yaml", "limits: {depth: 2}\n")
	if r, err := ipc.Call(t.Context(), s.Client, ipc.Ping, ipc.Empty{}); err != nil || !r.Stopping {
		t.Fatalf("%+v, %v", r, err)
	}
	if _, ended := s.Ended(time.Minute); !ended {
		t.Fatal("it does not end")
	}
	if n, ok := ipc.ReadStopNote(s.Data); !ok || !strings.Contains(n.By, "configuration") {
		t.Errorf("stopped by %q", n.By)
	}
}

// children returns the OS children of a process.
func children(t *testing.T, s *testenv.System, pid types.PID) []ipc.OSChild {
	t.Helper()
	d, err := ipc.Call(t.Context(), s.Client, ipc.GetProcDetail, ipc.TargetRequest{Target: pid.String()})
	if err != nil {
		t.Fatal(err)
	}
	return d.Children
}

// number reads what a script has echoed.
func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// stateOf returns the state of an OS process as its letter in proc(5), "" if there is none.
func stateOf(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	text := string(b)
	return strings.Fields(text[strings.LastIndexByte(text, ')')+1:])[0]
}

// asJSON returns a value as the wire has it.
func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
