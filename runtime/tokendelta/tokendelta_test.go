package tokendelta_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"rnix/runtime/internal/wiretest"
	"rnix/runtime/tokendelta"
	"rnix/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	ctx   = context.Background()
	quiet = slog.New(slog.DiscardHandler)
)

type post struct {
	TurnID  string             `json:"turnId"`
	EventID string             `json:"eventId"`
	Frames  []tokendelta.Frame `json:"frames"`
}

func (p post) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:", p.TurnID)
	for _, f := range p.Frames {
		b.WriteString(f.Text)
	}
	return b.String()
}

type platform struct {
	mu sync.Mutex
	// 0 = 200.
	status int // +checklocks:mu
	// Posts that were taken.
	posts []post // +checklocks:mu
	auth  string // +checklocks:mu
	path  string // +checklocks:mu
}

func (p *platform) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body post
	_ = json.NewDecoder(r.Body).Decode(&body)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.status != 0 {
		w.WriteHeader(p.status)
		return
	}
	p.posts, p.auth, p.path = append(p.posts, body), r.Header.Get("Authorization"), r.URL.Path
}

func (p *platform) taken() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprint(p.posts)
}

func begin(t *testing.T, h http.Handler, change func(*tokendelta.Config)) *tokendelta.Poster {
	t.Helper()
	cfg := tokendelta.Config{SessionID: "s1", BaseURL: "http://platform", HTTPClient: wiretest.Client(h), Logger: quiet}
	if change != nil {
		change(&cfg)
	}
	p, err := tokendelta.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p.Start(ctx)
	p.SetTurn("t1")
	t.Cleanup(p.Stop)
	return p
}

func TestTwentyFramesAreOnePost(t *testing.T) {
	server := &platform{}
	srv := httptest.NewServer(server)
	defer srv.Close()
	p := begin(t, server, func(c *tokendelta.Config) {
		c.BaseURL, c.HTTPClient, c.AuthToken, c.FlushInterval = srv.URL+"/", nil, "secret", time.Hour
	})
	for i := range 20 {
		p.Send(tokendelta.Frame{Index: i, Text: "x"})
	}
	p.Stop()
	if len(server.posts) != 1 || len(server.posts[0].Frames) != 20 || server.posts[0].TurnID != "t1" || server.posts[0].EventID == "" ||
		server.auth != "Bearer secret" || server.path != "/api/sessions/s1/token-delta" || server.posts[0].Frames[19].Index != 19 {
		t.Errorf("took %+v at %s with %q", server.posts, server.path, server.auth)
	}
}

func TestABatchEndsWithItsTimeItsTurnOrItsLastFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &platform{}
		p := begin(t, server, nil)
		p.Send(tokendelta.Frame{Text: "a"})
		time.Sleep(99 * time.Millisecond)
		synctest.Wait()
		if got := server.taken(); got != "[]" || p.Pending() != 1 {
			t.Errorf("before its time: %s", got)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if got := server.taken(); got != "[t1:a]" || p.Pending() != 0 {
			t.Errorf("after 100 ms: %s", got)
		}
		p.Send(tokendelta.Frame{Text: "b", Done: true})
		synctest.Wait()
		if got := server.taken(); got != "[t1:a t1:b]" {
			t.Errorf("after the last frame: %s", got)
		}
		p.Send(tokendelta.Frame{Text: "c"})
		p.SetTurn("t2")
		p.Send(tokendelta.Frame{Text: "d"})
		p.Stop()
		p.Send(tokendelta.Frame{Text: "late"})
		if got := server.taken(); got != "[t1:a t1:b t1:c t2:d]" || p.Pending() != 0 {
			t.Errorf("in the end: %s", got)
		}
	})
}

func TestADividedCharacterIsToldWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &platform{}
		p := begin(t, server, nil)
		for _, text := range []string{"a\xf0\x9f", "\x98", "\x80b", "\xff", "\xc3"} {
			p.Send(tokendelta.Frame{Text: text})
		}
		p.Send(tokendelta.Frame{Done: true})
		p.Stop()
		if got := server.taken(); got != "[t1:a😀b\uFFFD\uFFFD]" {
			t.Errorf("took %q", got)
		}
	})
}

func TestASlowPlatformGetsAllBatchesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &platform{status: 503}
		p := begin(t, server, nil)
		want := strings.Builder{}
		for i := range 100 {
			p.Send(tokendelta.Frame{Index: i, Text: fmt.Sprint(i, ","), Done: true})
			fmt.Fprintf(&want, " t1:%d,", i)
		}
		time.Sleep(time.Minute)
		if p.Pending() != 100 || p.Err() == nil {
			t.Errorf("%d pending", p.Pending())
		}
		server.mu.Lock()
		server.status = 0
		server.mu.Unlock()
		time.Sleep(10 * time.Second)
		if got := server.taken(); got != "["+want.String()[1:]+"]" || p.Pending() != 0 || p.Dropped() != 0 {
			t.Errorf("took %s", got)
		}
	})
}

func TestRequiredFieldsAndSendBeforeStart(t *testing.T) {
	for _, cfg := range []tokendelta.Config{{BaseURL: "http://x"}, {SessionID: "s"}} {
		if _, err := tokendelta.New(cfg); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	p, err := tokendelta.New(tokendelta.Config{SessionID: "s", BaseURL: "http://x", Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	p.Send(tokendelta.Frame{Text: "early", Done: true})
	if p.Pending() != 0 {
		t.Error("a frame before Start was kept")
	}
	p.Stop()
}

func TestSendRacesStopWithoutHarm(t *testing.T) {
	for range 50 {
		p := begin(t, &platform{}, func(c *tokendelta.Config) { c.StopDrainTimeout = time.Millisecond })
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for i := range 50 {
					p.Send(tokendelta.Frame{Index: i, Text: "x"})
				}
			})
		}
		p.Stop()
		all.Wait()
	}
}
