package activity_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"rnix/agent"
	"rnix/runtime/activity"
	"rnix/runtime/internal/wiretest"
	"rnix/runtime/journal"
	"rnix/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	ctx   = context.Background()
	quiet = slog.New(slog.DiscardHandler)
)

// platform takes activities.
type platform struct {
	status func(n int) int // of the n-th activity post; nil = 200
	answer string

	mu sync.Mutex
	// Activities that were taken.
	acts []activity.Activity // +checklocks:mu
	// Posts that were tried.
	posts int // +checklocks:mu
	// The sizes of the posts that were taken.
	sizes []int // +checklocks:mu
	// The paths of all other requests.
	paths []string // +checklocks:mu
	auth  []string // +checklocks:mu
	// The last body.
	last map[string]any // +checklocks:mu
}

func (p *platform) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		WorkerID   string
		Activity   *activity.Activity
		Activities []activity.Activity
	}
	var raw bytes.Buffer
	_, _ = raw.ReadFrom(r.Body)
	_ = json.Unmarshal(raw.Bytes(), &body)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = nil
	_ = json.Unmarshal(raw.Bytes(), &p.last)
	if !strings.HasSuffix(r.URL.Path, "/activity") {
		p.paths = append(p.paths, r.URL.Path+" "+strings.TrimSpace(raw.String()))
		return
	}
	p.posts++
	p.auth = append(p.auth, r.Header.Get("Authorization"))
	if p.status != nil {
		if s := p.status(p.posts); s != 200 {
			w.WriteHeader(s)
			return
		}
	}
	n := len(p.acts)
	if body.Activity != nil {
		p.acts = append(p.acts, *body.Activity)
	}
	p.acts = append(p.acts, body.Activities...)
	p.sizes = append(p.sizes, len(p.acts)-n)
	fmt.Fprint(w, p.answer)
}

func (p *platform) contents() (out []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.acts {
		out = append(out, a.Content)
	}
	return out
}

func begin(t *testing.T, h http.Handler, change func(*activity.Config)) *activity.Poster {
	t.Helper()
	cfg := activity.Config{SessionID: "s1", WorkerID: "w1", BaseURL: "http://platform/", HTTPClient: wiretest.Client(h), Logger: quiet}
	if change != nil {
		change(&cfg)
	}
	p, err := activity.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p.Start(ctx)
	t.Cleanup(p.Stop)
	return p
}

func say(text string) agent.Event { return agent.AssistantTextEvent{Text: text} }

func TestRequiredFields(t *testing.T) {
	for _, cfg := range []activity.Config{{BaseURL: "http://x"}, {SessionID: "s"}} {
		if _, err := activity.New(cfg); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	j, err := journal.Open(journal.Options{Session: "other"})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if _, err := activity.New(activity.Config{SessionID: "s", BaseURL: "http://x", Journal: j}); types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("the journal of another session: %v", err)
	}
}

func TestTheFirstPostThatIsTakenTellsOnceThatTheSessionRuns(t *testing.T) {
	server := &platform{}
	srv := httptest.NewServer(server)
	defer srv.Close()
	p := begin(t, server, func(c *activity.Config) { c.BaseURL, c.HTTPClient, c.AuthToken = srv.URL+"/", nil, "secret" })
	p.Start(ctx)
	p.Send(ctx, say("one"))
	p.Send(ctx, say("two"))
	p.Stop()
	if got := server.contents(); len(got) != 2 || got[0] != "one" || server.auth[0] != "Bearer secret" {
		t.Errorf("took %q with %q", got, server.auth)
	}
	if len(server.paths) != 1 || server.paths[0] != `/api/sessions/s1/status {"status":"running","workerId":"w1"}` {
		t.Errorf("told %q", server.paths)
	}
	if server.acts[0].EventID == "" || server.acts[0].EventID == server.acts[1].EventID {
		t.Errorf("IDs are %q and %q", server.acts[0].EventID, server.acts[1].EventID)
	}
}

func TestSendBeforeStartAndAfterStopDoesNothing(t *testing.T) {
	server := &platform{}
	p, err := activity.New(activity.Config{SessionID: "s", BaseURL: "http://x", HTTPClient: wiretest.Client(server), Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	p.Send(ctx, say("early"))
	p.Start(ctx)
	p.Stop()
	p.Send(ctx, say("late"))
	if p.Pending() != 0 || server.posts != 0 {
		t.Errorf("%d pending, %d posts", p.Pending(), server.posts)
	}
}

func TestSendRacesStopWithoutHarm(t *testing.T) {
	for range 50 {
		server := &platform{}
		p := begin(t, server, func(c *activity.Config) { c.StopDrainTimeout = time.Millisecond })
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range 20 {
					p.Send(ctx, say("x"))
				}
			})
		}
		p.Stop()
		all.Wait()
	}
}

func TestARefusedTokenIsFollowedByAFreshOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &platform{status: func(n int) int { return map[bool]int{true: 401, false: 200}[n == 1] }}
		n := 0
		p := begin(t, server, func(c *activity.Config) {
			c.CredentialProvider = func(context.Context) (activity.RuntimeCredentials, error) {
				n++
				return activity.RuntimeCredentials{AuthToken: fmt.Sprint("t", n)}, nil
			}
		})
		p.Send(ctx, say("x"))
		p.Stop()
		if len(server.auth) != 2 || server.auth[0] != "Bearer t1" || server.auth[1] != "Bearer t2" || len(server.contents()) != 1 {
			t.Errorf("bearers are %q", server.auth)
		}
	})
}

// lines is a text that goroutines write.
type lines struct {
	mu sync.Mutex
	b  strings.Builder // +checklocks:mu
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestAPlatformThatIsAwayLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lines
		var mu sync.Mutex
		up := false
		server := &platform{status: func(int) int {
			mu.Lock()
			defer mu.Unlock()
			return map[bool]int{true: 200, false: 503}[up]
		}}
		p := begin(t, server, func(c *activity.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		for i := range 200 {
			p.Send(ctx, say(fmt.Sprint(i)))
		}
		time.Sleep(10 * time.Second) // 0.25 + 0.5 + 1 + 2 + 4 s, and a tenth
		synctest.Wait()
		server.mu.Lock()
		posts := server.posts
		server.mu.Unlock()
		if posts < 6 || strings.Count(log.String(), "does not take") != 1 || p.Pending() != 200 || p.Err() == nil {
			t.Errorf("%d posts, %d pending, Err = %v, log:\n%s", posts, p.Pending(), p.Err(), log.String())
		}
		time.Sleep(time.Hour)
		mu.Lock()
		up = true
		mu.Unlock()
		time.Sleep(10 * time.Second)
		if got := server.contents(); len(got) != 200 || got[0] != "0" || got[199] != "199" || p.Pending() != 0 {
			t.Errorf("took %d, %d pending", len(got), p.Pending())
		}
	})
}

func TestWhatIsRefusedForEverIsTriedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &platform{status: func(n int) int { return map[bool]int{true: 400, false: 200}[n == 1] }}
		p := begin(t, server, nil)
		p.Send(ctx, say("bad"))
		p.Send(ctx, say("good"))
		p.Stop()
		if server.posts != 2 || p.Refused() != 1 || len(server.contents()) != 1 {
			t.Errorf("%d posts, %d refused, took %q", server.posts, p.Refused(), server.contents())
		}
	})
}

func TestAFullQueueIsAGapThatIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		status := 503
		server := &platform{status: func(int) int { mu.Lock(); defer mu.Unlock(); return status }}
		p := begin(t, server, func(c *activity.Config) { c.QueueSize = 4 })
		p.Send(ctx, say("0"))
		time.Sleep(time.Second) // the poster has it in hand
		for i := range 9 {
			p.Send(ctx, say(fmt.Sprint(i+1)))
		}
		synctest.Wait()
		mu.Lock()
		status = 200
		mu.Unlock()
		time.Sleep(20 * time.Second)
		got := strings.Join(server.contents(), "|")
		if p.Dropped() != 5 || got != "0|5 activities are missing here: there was no room for them|6|7|8|9" {
			t.Errorf("%d dropped, took %q", p.Dropped(), got)
		}
	})
}

func TestAPlatformThatTakesBatchesGetsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &platform{answer: `{"maxBatch":40}`, status: func(n int) int { return map[bool]int{true: 503, false: 200}[n == 1] }}
		p := begin(t, server, nil)
		for i := range 101 {
			p.Send(ctx, say(fmt.Sprint(i)))
		}
		p.Stop()
		if got := server.contents(); len(got) != 101 || got[100] != "100" || fmt.Sprint(server.sizes) != "[1 40 40 20]" {
			t.Errorf("took %d in %v", len(got), server.sizes)
		}
	})
}

func TestWhatWasNotTakenComesAfterARestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "j")
	away, back := &platform{status: func(int) int { return 503 }}, &platform{}
	for i, server := range []*platform{away, back} {
		j, err := journal.Open(journal.Options{Session: "s1", Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		p := begin(t, server, func(c *activity.Config) { c.Journal, c.StopDrainTimeout = j, time.Second })
		if i == 0 {
			p.Send(ctx, say("kept"))
		}
		p.Stop()
		j.Close()
	}
	if got := back.contents(); len(got) != 1 || got[0] != "kept" {
		t.Errorf("took %q", got)
	}
}

func TestEachEventHasItsActivity(t *testing.T) {
	use := func(name, input string) agent.Event {
		return agent.ToolUseEvent{ToolName: name, ToolUseID: "u", Input: json.RawMessage(input)}
	}
	for _, tt := range []struct {
		ev            agent.Event
		typ, content  string // "" = there is none
		isError       bool
		output, input string
	}{
		{say("  hello \n"), "thought", "hello", false, "", ""},
		{say(" \n"), "", "", false, "", ""},
		{agent.AssistantTextEvent{Text: "par", Delta: true}, "", "", false, "", ""},
		{use("Bash", `{"command":"go  test\n./..."}`), "action", "Bash: go test ./...", false, "", `{"command":"go  test\n./..."}`},
		{use("Read", `{"file_path":"a.go"}`), "action", "Read: a.go", false, "", `{"file_path":"a.go"}`},
		{use("Edit", `{"file_path":"a.go"}`), "action", "Edit: a.go", false, "", `{"file_path":"a.go"}`},
		{use("Write", `{"file_path":"a.go"}`), "action", "Write: a.go", false, "", `{"file_path":"a.go"}`},
		{use("NotebookEdit", `{"file_path":"a.ipynb"}`), "action", "NotebookEdit: a.ipynb", false, "", `{"file_path":"a.ipynb"}`},
		{use("Glob", `{"pattern":"*.go"}`), "action", "Glob: *.go", false, "", `{"pattern":"*.go"}`},
		{use("Agent", `{"description":"looks","prompt":"look"}`), "action", "Agent: looks", false, "", `{"description":"looks","prompt":"look"}`},
		{use("Grep", `{"pattern":"x","path":"p"}`), "action", "Grep: x", false, "", `{"path":"p","pattern":"x"}`},
		{use("Task", `{"description":"","prompt":"look"}`), "action", "Task: look", false, "", `{"description":"","prompt":"look"}`},
		{use("mcp__x__y", `{"a":1}`), "action", "mcp__x__y", false, "", `{"a":1}`},
		{use("Bash", `not json`), "action", "Bash", false, "", `{"input":"not json"}`},
		{agent.ToolResultEvent{ToolName: "Bash", ToolUseID: "u", Content: "ok"}, "action", "Bash result", false, "ok", ""},
		{agent.ToolResultEvent{ToolName: "Bash", Content: "no", IsError: true}, "action", "Bash result (error)", true, "no", ""},
		{agent.ResultEvent{Success: true, Message: "done"}, "response", "done", false, "", ""},
		{agent.ResultEvent{Success: true}, "response", "Session completed", false, "", ""},
		{agent.ResultEvent{Errors: []string{"a", "b"}}, "response", "a; b", true, "", ""},
		{agent.ResultEvent{}, "response", "Session ended", true, "", ""},
		{agent.ErrorEvent{Code: "c", Message: "m"}, "error", "m", true, "", ""},
		{agent.ErrorEvent{Code: "c"}, "error", "c", true, "", ""},
		{agent.ErrorEvent{}, "error", "agent error", true, "", ""},
		{agent.InitEvent{}, "", "", false, "", ""},
		{agent.SystemEvent{Subtype: "x"}, "", "", false, "", ""},
		{agent.ToolProgressEvent{}, "", "", false, "", ""},
		{agent.UsageEvent{}, "", "", false, "", ""},
		{nil, "", "", false, "", ""},
	} {
		server := &platform{}
		p := begin(t, server, func(c *activity.Config) { c.ProviderName = "claude" })
		p.Send(ctx, tt.ev)
		p.Stop()
		if tt.typ == "" {
			if len(server.acts) != 0 {
				t.Errorf("%+v: %+v", tt.ev, server.acts)
			}
			continue
		}
		if len(server.acts) != 1 {
			t.Errorf("%+v: nothing came", tt.ev)
			continue
		}
		a := server.acts[0]
		if a.Type != tt.typ || a.Content != tt.content || a.IsError != tt.isError || a.ToolOutput != tt.output || string(a.ToolInput) != tt.input || a.ProviderName != "claude" {
			t.Errorf("%+v: %+v, input %s", tt.ev, a, a.ToolInput)
		}
		switch ev := tt.ev.(type) { // by these a use and its result are known to belong together
		case agent.ToolUseEvent:
			if a.ToolUseID != ev.ToolUseID || a.ToolName != ev.ToolName {
				t.Errorf("%+v: of tool %q, use %q", tt.ev, a.ToolName, a.ToolUseID)
			}
		case agent.ToolResultEvent:
			if a.ToolUseID != ev.ToolUseID || a.ToolName != ev.ToolName {
				t.Errorf("%+v: of tool %q, use %q", tt.ev, a.ToolName, a.ToolUseID)
			}
		}
		if _, err := time.Parse(time.RFC3339Nano, a.Timestamp); err != nil || !strings.HasSuffix(a.Timestamp, "Z") {
			t.Errorf("timestamp %q", a.Timestamp)
		}
	}
}

func TestAToolsTimeIsFromItsUseToItsResult(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	server := &platform{}
	p := begin(t, server, func(c *activity.Config) { c.Now = func() time.Time { return now } })
	p.Send(ctx, agent.ToolUseEvent{ToolName: "Bash", ToolUseID: "a"})
	now = now.Add(75 * time.Millisecond)
	p.Send(ctx, agent.ToolResultEvent{ToolName: "Bash", ToolUseID: "a"})
	p.Send(ctx, agent.ToolResultEvent{ToolName: "Bash", ToolUseID: "orphan"})
	p.Stop()
	if a := server.acts; len(a) != 3 || a[0].DurationMs != nil || *a[1].DurationMs != 75 || *a[2].DurationMs != 0 {
		t.Errorf("activities are %+v", a)
	}
}

func TestLongTextsKeepTheirBeginningAndEndAndAreWholeCharacters(t *testing.T) {
	text := "BEGIN" + strings.Repeat("é😀", 5000) + "https://host/pull/1"
	for _, max := range []int{0, 1, 30, 100, 2000, 10024} {
		got := activity.Elide(text, max)
		if n := utf8.RuneCountInString(got); n > max || !utf8.ValidString(got) {
			t.Errorf("max %d: %d characters", max, n)
		}
		if max >= 100 && (!strings.HasPrefix(got, "BEGIN") || !strings.HasSuffix(got, "/pull/1")) {
			t.Errorf("max %d: %q", max, got)
		}
	}
	if activity.Elide(text, -1) != text || activity.Elide("ab\xff", 10) != "ab\uFFFD" {
		t.Error("no bound, or a broken text")
	}
	server := &platform{}
	p := begin(t, server, func(c *activity.Config) {
		c.Redact = func(s string) string { return strings.ReplaceAll(s, "secret", "***") }
	})
	input, err := json.Marshal(map[string]any{"content": text, "list": []string{"my secret"}, "n": 3})
	if err != nil {
		t.Fatal(err)
	}
	p.Send(ctx, agent.ToolUseEvent{ToolName: "Bash", Input: json.RawMessage(`{"command":"echo secret"}`)})
	p.Send(ctx, agent.ToolUseEvent{ToolName: "Write", Input: input})
	p.Send(ctx, agent.ToolResultEvent{ToolName: "Write", Content: "secret" + text})
	p.Send(ctx, say("the secret"))
	p.Stop()
	all, err := json.Marshal(server.acts)
	if err != nil || strings.Contains(string(all), "secret") || len(server.acts) != 4 {
		t.Errorf("told %s", all)
	}
	if n := utf8.RuneCountInString(server.acts[2].ToolOutput); n > 2000 || n < 1900 {
		t.Errorf("an output of %d characters", n)
	}
	var in map[string]any
	if err := json.Unmarshal(server.acts[1].ToolInput, &in); err != nil || in["n"] != 3.0 || utf8.RuneCountInString(in["content"].(string)) > 2000 {
		t.Errorf("input is %s", server.acts[1].ToolInput)
	}
}
