package platform

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	rnixctx "rnix/context"
	"rnix/internal/step"
	"rnix/runtime/controlplane"
	"rnix/runtime/heartbeat"
	"rnix/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// plane is a control plane that can be away, and notes what it is asked.
type plane struct {
	url  string
	away atomic.Bool

	mu    sync.Mutex
	asked []string // +checklocks:mu
}

func newPlane(t *testing.T) *plane { return newPlaneOf(t, 30*time.Second) }

func newPlaneOf(t *testing.T, ttl time.Duration) *plane {
	t.Helper()
	cp, err := controlplane.Open(controlplane.Options{Dir: t.TempDir(), TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	if err := cp.AddToken("secret-token-of-a-test"); err != nil {
		t.Fatal(err)
	}
	p := &plane{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.away.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		p.mu.Lock()
		p.asked = append(p.asked, filepath.Base(r.URL.Path))
		p.mu.Unlock()
		cp.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		srv.Close()
		if err := cp.Close(); err != nil {
			t.Error(err)
		}
	})
	p.url = srv.URL
	return p
}

// said returns what was asked of a kind, in order.
func (p *plane) said(kinds ...string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for _, a := range p.asked {
		for _, k := range kinds {
			if a == k {
				out = append(out, a)
			}
		}
	}
	return strings.Join(out, " ")
}

func (p *plane) config(t *testing.T) Config {
	return Config{SessionID: "S", WorkerID: "host", URL: p.url, Token: "secret-token-of-a-test", Interval: time.Second,
		Dir: filepath.Join(t.TempDir(), "s"), Lost: func(bool) {}}
}

func opened(t *testing.T, cfg Config) *Session {
	t.Helper()
	s, err := Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var (
	words = &step.Record{Kind: step.KindMessage, Message: &rnixctx.Message{Role: "assistant", Content: "I work."}}
	end   = &step.Record{Kind: step.KindMarker, Marker: &step.Marker{Name: step.MarkerExit, Text: "done", Exit: &types.ExitStatus{}}}
)

func TestAJournalIsGoneWhenThePlatformKnowsAll(t *testing.T) {
	p := newPlane(t)
	s := opened(t, p.config(t))
	s.Record(words)
	s.Record(end)
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(s.cfg.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the journal is still there: %v", err)
	}
	if got := p.said("completion", "release"); got != "completion release" {
		t.Error(got)
	}
}

func TestWhatComesAfterTheLossOfASessionIsNotTold(t *testing.T) {
	p := newPlane(t)
	lost := make(chan struct{})
	cfg := p.config(t)
	cfg.Lost = func(bool) { close(lost) }
	s := opened(t, cfg)
	other, err := heartbeat.Claim(context.Background(), heartbeat.Config{SessionID: "S", WorkerID: "host", BaseURL: p.url, AuthToken: "secret-token-of-a-test"})
	if err != nil || other.FencingToken == 0 {
		t.Fatal(err)
	}
	<-lost
	s.Record(words)
	s.Record(end)
	began := time.Now()
	if err := s.Close(context.Background()); err != nil || time.Since(began) > 30*time.Second {
		t.Errorf("Close took %v: %v", time.Since(began), err)
	}
	if st := s.State(); st.Pending != 0 || s.Ended() {
		t.Errorf("%+v", st)
	}
	if got := p.said("completion", "status", "activity", "release"); got != "" {
		t.Errorf("it was told: %s", got)
	}
}

func TestTheEndOfAProcessIsToldWhenThePlatformIsBack(t *testing.T) {
	p := newPlane(t)
	s := opened(t, p.config(t))
	p.away.Store(true)
	s.Record(words)
	s.Record(end)
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // nobody waits
	if err := s.Close(ctx); err == nil || s.State().Pending != 4 {
		t.Errorf("%+v, %v", s.State(), err)
	}
	short, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if _, err := Settle(short, s.cfg); err == nil {
		t.Error("settled with nobody")
	}
	p.away.Store(false)
	if left, err := Settle(context.Background(), s.cfg); left != 0 || err != nil {
		t.Errorf("%d left, %v", left, err)
	}
	if got := p.said("activity", "completion"); !strings.Contains(got, "activity") || !strings.Contains(got, "completion") {
		t.Errorf("told: %s", got)
	}
	if got := p.said("status"); got != "status" { // how it ended, and not that it runs
		t.Errorf("told: %s", got)
	}
	if _, err := os.Lstat(s.cfg.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the journal is still there: %v", err)
	}
}

func TestASessionThatAnotherOwnerHasIsNotSettled(t *testing.T) {
	p := newPlane(t)
	cfg := p.config(t)
	if _, err := heartbeat.Claim(context.Background(), heartbeat.Config{SessionID: "S", WorkerID: "other", BaseURL: p.url, AuthToken: cfg.Token}); err != nil {
		t.Fatal(err)
	}
	if _, err := Settle(context.Background(), cfg); !errors.Is(err, heartbeat.ErrLostOwnership) {
		t.Error(err)
	}
}
