package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/event"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/runtime/controlplane"
	"rnix/runtime/heartbeat"
	"rnix/types"
)

// board is a control plane that a test looks at.
type board struct {
	t   *testing.T
	url string
}

func newBoard(t *testing.T) *board {
	t.Helper()
	cp, err := controlplane.Open(controlplane.Options{Dir: t.TempDir(), TTL: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if err := cp.AddToken("secret-token-of-a-test"); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(cp)
	t.Cleanup(func() {
		s.Close()
		if err := cp.Close(); err != nil {
			t.Error(err)
		}
	})
	return &board{t, s.URL}
}

// ask makes a request as a person on the platform does.
func (b *board) ask(method, path string, body, answer any) {
	b.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		b.t.Fatal(err)
	}
	req, err := http.NewRequest(method, b.url+path, bytes.NewReader(text))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer secret-token-of-a-test")
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer r.Body.Close()
	got, _ := io.ReadAll(r.Body)
	if r.StatusCode != http.StatusOK {
		b.t.Fatalf("%s %s: %s %s", method, path, r.Status, got)
	}
	if answer != nil && json.Unmarshal(got, answer) != nil {
		b.t.Fatalf("%s", got)
	}
}

// stands is how a session stands.
type stands struct {
	Ownership struct {
		Owned bool   `json:"owned"`
		Owner string `json:"owner"`
		Token uint64 `json:"fencingToken"`
	} `json:"ownership"`
	Status     struct{ Status string }
	Completion json.RawMessage
	Injects    []struct{ State string } // that the process has not taken yet
	Counts     map[string]int
}

// until waits until a session stands as it should.
func (b *board) until(id, what string, ok func(stands) bool) stands {
	b.t.Helper()
	var s stands
	there := testenv.Within(2*time.Minute, func() bool {
		s = stands{}
		b.ask(http.MethodGet, "/api/sessions/"+id, nil, &s)
		return ok(s)
	})
	if !there {
		b.t.Fatalf("never %s: %+v", what, s)
	}
	return s
}

func (b *board) env(api string) []string {
	return []string{"ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL=" + api, "RNIX_PLATFORM_URL=" + b.url, "RNIX_PLATFORM_TOKEN=secret-token-of-a-test",
		"RNIX_PLATFORM_WORKER=host-1", "RNIX_PLATFORM_INTERVAL=1s", "RNIX_DAEMON_AUTO_RESUME=false"}
}

func TestASessionOfAPlatformIsToldInOrderAndGivenBack(t *testing.T) {
	b := newBoard(t)
	_, api := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		for _, m := range r.Messages {
			if strings.Contains(m.Text, "be quick") {
				return llmtest.Reply{Text: "quickly done"}
			}
		}
		return llmtest.Reply{Text: "I look.", ToolCalls: []llmtest.ToolCall{{Name: "shell", Input: `{"command":"sleep 0.2; echo looked"}`}}}
	})
	s := testenv.New(t, b.env(api)...)
	p := s.Spawn(ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "fake"}, Session: "S-1", Issue: "I-1"})
	b.until("S-1", "owned and told of", func(st stands) bool {
		return st.Ownership.Owner == "host-1" && st.Counts["activity"] > 2 && st.Status.Status == "running"
	})
	if _, err := ipc.Call(t.Context(), s.Client, ipc.Spawn, ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "fake"}, Session: "S-1", Cwd: s.Work, Env: append(s.Env, "RNIX_PLATFORM_WORKER=host-2")}); types.CodeOf(err) != types.ErrConflict {
		t.Errorf("another host takes the session: %v", err)
	}
	b.ask(http.MethodPost, "/api/sessions/S-1/inject", map[string]string{"text": "be quick"}, nil)
	if exit := s.Wait(p.PID); exit.Exit.Code != 0 || !strings.Contains(exit.Result, "quickly done") {
		t.Errorf("%+v", exit)
	}
	end := b.until("S-1", "completed and given back", func(st stands) bool {
		return st.Status.Status == "completed" && !st.Ownership.Owned && len(st.Injects) == 0
	})
	if !strings.Contains(string(end.Completion), "quickly done") {
		t.Errorf("%s", end.Completion)
	}
	var page struct {
		Events []struct {
			Data struct {
				EventID string
				Body    struct{ Type, Content string }
			}
		}
	}
	b.ask(http.MethodGet, "/api/sessions/S-1/activity?limit=1000", nil, &page)
	if first, last := page.Events[0].Data.Body, page.Events[len(page.Events)-1].Data.Body; first.Type != "thought" || first.Content != "I look." || last.Type != "response" || !strings.Contains(last.Content, "quickly done") {
		t.Errorf("from %+v to %+v", first, last)
	}
	seen := map[string]bool{}
	for _, e := range page.Events {
		if seen[e.Data.EventID] {
			t.Errorf("told twice: %+v", e.Data)
		}
		seen[e.Data.EventID] = true
	}
}

func TestWhoLosesItsSessionEndsAndAStopIsObeyed(t *testing.T) {
	b := newBoard(t)
	_, api := llmtest.NewAPI(t, func(llmtest.Request) llmtest.Reply { return llmtest.Reply{Hang: true} })
	s := testenv.New(t, b.env(api)...)
	lost := s.Spawn(ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "fake"}, Session: "S-1"})
	s.Await(lost.PID, event.StepStarted, nil)
	st := b.until("S-1", "owned", func(st stands) bool { return st.Ownership.Owned })
	// Somebody who says to be the same host claims it anew: the old token is worth nothing from then on.
	lease, err := heartbeat.Claim(context.Background(), heartbeat.Config{SessionID: "S-1", WorkerID: "host-1", BaseURL: b.url, AuthToken: "secret-token-of-a-test"})
	if err != nil || lease.FencingToken <= st.Ownership.Token {
		t.Fatalf("%+v after %d, %v", lease, st.Ownership.Token, err)
	}
	if exit := s.Wait(lost.PID); exit.Exit.Code != types.ExitLostOwnership {
		t.Errorf("%+v", exit.Exit)
	}
	stop := s.Spawn(ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "fake"}, Session: "S-2"})
	s.Await(stop.PID, event.StepStarted, nil)
	b.ask(http.MethodPost, "/api/sessions/S-2/stop", map[string]bool{}, nil)
	if exit := s.Wait(stop.PID); exit.Exit.Code != types.ExitCancelled {
		t.Errorf("%+v", exit.Exit)
	}
}

func TestASessionHasOneOwnerAlsoOnOneHost(t *testing.T) {
	b := newBoard(t)
	_, api := llmtest.NewAPI(t, func(llmtest.Request) llmtest.Reply { return llmtest.Reply{Hang: true} })
	nameless := slices.DeleteFunc(b.env(api), func(v string) bool { return strings.HasPrefix(v, "RNIX_PLATFORM_WORKER=") })
	one, two := testenv.New(t, nameless...), testenv.New(t, nameless...)
	p := one.Spawn(ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "fake"}, Session: "S-1"})
	one.Await(p.PID, event.StepStarted, nil)
	for name, s := range map[string]*testenv.System{"the same daemon": one, "another daemon": two} {
		_, err := ipc.Call(t.Context(), s.Client, ipc.Spawn, ipc.SpawnRequest{Intent: "steal", ProcSpec: types.ProcSpec{Model: "fake"}, Session: "S-1", Cwd: s.Work, Env: s.Env})
		if types.CodeOf(err) != types.ErrConflict {
			t.Errorf("%s: %v", name, err)
		} else {
			t.Log(err)
		}
	}
	if i, err := ipc.Call(t.Context(), one.Client, ipc.ListProcs, ipc.ListRequest{}); err != nil || len(i.Procs) != 1 || i.Procs[0].State != "running" {
		t.Errorf("%+v, %v", i.Procs, err)
	}
}

func TestASessionGoesOnWithANewToken(t *testing.T) {
	b := newBoard(t)
	_, api := llmtest.NewAPI(t, func(llmtest.Request) llmtest.Reply { return llmtest.Reply{Hang: true} })
	s := testenv.New(t, b.env(api)...)
	p := s.Spawn(ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "fake"}, Session: "S-1"})
	s.Await(p.PID, event.StepStarted, nil)
	first := b.until("S-1", "owned", func(st stands) bool { return st.Ownership.Owned })
	s.Stop()
	b.until("S-1", "given back", func(st stands) bool { return !st.Ownership.Owned })
	s.Start()
	s.Settle()
	if _, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), Env: s.Env}); err != nil {
		t.Fatal(err)
	}
	b.until("S-1", "owned again, under another token", func(st stands) bool { return st.Ownership.Owned && st.Ownership.Token > first.Ownership.Token })
	list, err := ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{})
	if err != nil || len(list.Procs) != 1 || list.Procs[0].Session == nil || list.Procs[0].Session.Session != "S-1" {
		t.Errorf("%+v, %v", list.Procs, err)
	}
	if _, err := ipc.Call(t.Context(), s.Client, ipc.Spawn, ipc.SpawnRequest{Intent: "x", ProcSpec: types.ProcSpec{Provider: "offline"}, Session: "S-3", Cwd: s.Work, Env: []string{"HOME=" + s.Home}}); types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("without a platform: %v", err)
	}
}
