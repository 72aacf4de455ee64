package status_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"rnix/runtime/internal/wiretest"
	"rnix/runtime/journal"
	"rnix/runtime/status"
	"rnix/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	ctx   = context.Background()
	quiet = slog.New(slog.DiscardHandler)
)

type platform struct {
	answer func(n int, endpoint string) int

	mu    sync.Mutex
	n     int             // +checklocks:mu
	taken []string        // +checklocks:mu
	times []time.Time     // +checklocks:mu
	ids   map[string]bool // +checklocks:mu
	body  map[string]any  // +checklocks:mu
}

func (p *platform) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body bytes.Buffer
	_, _ = body.ReadFrom(r.Body)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n++
	p.times = append(p.times, time.Now())
	endpoint := path.Base(r.URL.Path)
	if p.answer != nil {
		if s := p.answer(p.n, endpoint); s != 200 {
			w.WriteHeader(s)
			return
		}
	}
	p.body = nil
	_ = json.Unmarshal(body.Bytes(), &p.body)
	p.taken = append(p.taken, fmt.Sprint(endpoint, " ", p.body["summary"], p.body["status"], " ", p.body["workerId"]))
	if p.ids == nil {
		p.ids = map[string]bool{}
	}
	p.ids[fmt.Sprint(p.body["eventId"])] = true
}

func begin(t *testing.T, h http.Handler, change func(*status.Config)) *status.Poster {
	t.Helper()
	cfg := status.Config{SessionID: "s1", WorkerID: "w1", BaseURL: "http://platform", HTTPClient: wiretest.Client(h), Logger: quiet}
	if change != nil {
		change(&cfg)
	}
	p, err := status.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p.Start(ctx)
	t.Cleanup(p.Stop)
	return p
}

func TestACompletionComesBeforeTheStatusThatGoesWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &platform{}
		p := begin(t, server, nil)
		if err := p.Set(ctx, status.Status{Status: "running"}); err != nil {
			t.Fatal(err)
		}
		if err := p.Complete(ctx, "all done", status.Status{Status: "failed", ProviderSessionID: "ps", Error: &status.Error{Message: "m"}, InputTokens: 7, TotalCostUSD: 0.5}); err != nil {
			t.Fatal(err)
		}
		p.Stop()
		if got := strings.Join(server.taken, "|"); got != "status <nil>running w1|completion all done<nil> w1|status <nil>failed w1" || len(server.ids) != 3 {
			t.Errorf("took %s", got)
		}
		if b := server.body; b["providerSessionId"] != "ps" || fmt.Sprint(b["error"]) != "map[message:m]" || b["inputTokens"] != 7.0 || b["totalCostUsd"] != 0.5 || b["worktreePath"] != nil {
			t.Errorf("body is %v", b)
		}
	})
}

func TestTheStatusIsToldEvenIfTheCompletionIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &platform{answer: func(_ int, endpoint string) int { return map[string]int{"completion": 422, "status": 200}[endpoint] }}
		p := begin(t, server, nil)
		if err := p.Complete(ctx, "x", status.Status{Status: "completed"}); err != nil {
			t.Fatal(err)
		}
		p.Stop()
		if len(server.taken) != 1 || p.Refused() != 1 || server.n != 2 {
			t.Errorf("took %q in %d posts, %d refused", server.taken, server.n, p.Refused())
		}
	})
}

func TestAttemptsAreOneTwoAndFourSecondsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &platform{answer: func(n int, _ string) int { return map[bool]int{true: 503, false: 200}[n < 5] }}
		p := begin(t, server, nil)
		if err := p.Set(ctx, status.Status{Status: "running"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		p.Stop()
		for i, want := range []time.Duration{1e9, 2e9, 4e9, 4e9} {
			if got := server.times[i+1].Sub(server.times[i]); got != want {
				t.Errorf("pause %d is %v", i, got)
			}
		}
		if p.Pending() != 0 {
			t.Errorf("%d pending", p.Pending())
		}
	})
}

func TestAResultOutlivesAPlatformThatIsAway(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "j")
	away := &platform{answer: func(int, string) int { return 503 }}
	back := &platform{}
	for i, server := range []*platform{away, back} {
		j, err := journal.Open(journal.Options{Session: "s1", Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		p := begin(t, server, func(c *status.Config) { c.Journal, c.StopDrainTimeout = j, 500*time.Millisecond })
		if i == 0 {
			if err := p.Complete(ctx, "done", status.Status{Status: "completed"}); err != nil {
				t.Fatal(err)
			}
		}
		p.Stop()
		if err := p.Set(ctx, status.Status{}); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("Set after Stop = %v", err)
		}
		j.Close()
	}
	if len(away.taken) != 0 || len(back.taken) != 2 {
		t.Errorf("took %q", back.taken)
	}
}
