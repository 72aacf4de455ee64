package daemon_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/event"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// gateway stands before a board and can be shut.
func (b *board) gateway() (url string, shut *atomic.Bool) {
	b.t.Helper()
	shut = new(atomic.Bool)
	proxy := httputil.NewSingleHostReverseProxy(must(b.t, b.url))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if shut.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	b.t.Cleanup(s.Close)
	return s.URL, shut
}

func must(t *testing.T, raw string) *url.URL {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// journals returns the directories of sessions that are there.
func journals(s *testenv.System, t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(s.Data, "sessions", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestAResultIsToldByTheNextDaemonIfThePlatformWasAway(t *testing.T) {
	b := newBoard(t)
	front, shut := b.gateway()
	_, api := llmtest.NewAPI(t, func(llmtest.Request) llmtest.Reply {
		shut.Store(true)
		return llmtest.Reply{Text: "worth knowing"}
	})
	s := testenv.New(t, append(b.env(api), "RNIX_PLATFORM_URL="+front)...)
	p := s.Spawn(ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "fake"}, Session: "S-1"})
	if exit := s.Wait(p.PID); exit.Exit.Code != 0 {
		t.Fatalf("%+v", exit)
	}
	began := time.Now()
	s.Stop()
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("to stop took %v", took)
	}
	if n := len(journals(s, t)); n != 1 {
		t.Fatalf("%d journals", n)
	}
	if err := os.MkdirAll(filepath.Join(s.Data, "sessions", types.NewUUID().String()), 0o700); err != nil { // of a history that is gone
		t.Fatal(err)
	}
	shut.Store(false)
	s.Start()
	st := b.until("S-1", "told", func(st stands) bool { return st.Status.Status == "completed" && !st.Ownership.Owned })
	if !strings.Contains(string(st.Completion), "worth knowing") {
		t.Errorf("%s", st.Completion)
	}
	if !testenv.Within(2*time.Minute, func() bool { return len(journals(s, t)) == 0 }) {
		t.Fatalf("journals are left: %q", journals(s, t))
	}
}

func TestASessionBelongsToOneProcessAndToNoneOfItsChildren(t *testing.T) {
	b := newBoard(t)
	_, api := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if r.Messages[0].Text == "work" && len(r.Messages) == 1 {
			return llmtest.Reply{ToolCalls: []llmtest.ToolCall{{Name: "spawn", Input: `{"intent":"kid"}`}}}
		}
		return llmtest.Reply{Hang: true}
	})
	s := testenv.New(t, b.env(api)...)
	p := s.Spawn(ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "fake"}, Session: "S-1"})
	kid := s.Await(0, event.StepStarted, func(e *event.Event) bool { return e.PID != p.PID })
	if _, err := s.TrySpawn(ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "fake"}, Session: "S-1"}); types.CodeOf(err) != types.ErrConflict || !strings.Contains(err.Error(), p.UUID.String()) {
		t.Errorf("a second process has the session: %v", err)
	}
	first := b.until("S-1", "owned", func(st stands) bool { return st.Ownership.Owned })
	s.Stop()
	b.until("S-1", "given back", func(st stands) bool { return !st.Ownership.Owned })
	again := time.Now()
	s.Start()
	s.Settle()
	if _, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), Env: s.Env}); err != nil {
		t.Fatal(err)
	}
	st := b.until("S-1", "owned again", func(st stands) bool { return st.Ownership.Owned })
	if st.Ownership.Token != first.Ownership.Token+1 {
		t.Errorf("the session was claimed more than once: %d after %d", st.Ownership.Token, first.Ownership.Token)
	}
	s.Await(0, event.StepStarted, func(e *event.Event) bool { return e.UUID == kid.UUID && e.Time.After(again) }) // it has gone on as well
	list, err := ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range list.Procs {
		if i.State != "running" || (i.Session != nil) != (i.UUID == p.UUID) {
			t.Errorf("%+v", i)
		}
	}
	if len(list.Procs) != 2 {
		t.Errorf("%d processes", len(list.Procs))
	}
}
