package deliver_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"rnix/runtime/internal/deliver"
	"rnix/runtime/internal/wiretest"
	"rnix/runtime/journal"
	"rnix/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	ctx   = context.Background()
	quiet = slog.New(slog.DiscardHandler)
)

func client(t *testing.T, h http.Handler, change func(*deliver.Config)) *deliver.Client {
	t.Helper()
	cfg := deliver.Config{SessionID: "s1", BaseURL: "http://platform/", HTTPClient: wiretest.Client(h), Logger: quiet}
	if change != nil {
		change(&cfg)
	}
	c, err := deliver.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func say(text string) deliver.Call {
	return deliver.Call{Endpoint: "activity", Body: func(deliver.Credentials) any { return text }}
}

func TestEachStatusHasItsVerdictAndCode(t *testing.T) {
	for status, want := range map[int]struct {
		verdict deliver.Verdict
		code    types.ErrCode
	}{
		301: {deliver.Refused, types.ErrInvalid}, 400: {deliver.Refused, types.ErrInvalid}, 401: {deliver.Again, types.ErrAuth},
		403: {deliver.Refused, types.ErrAuth}, 404: {deliver.Refused, types.ErrNotFound}, 408: {deliver.Again, types.ErrUnavailable},
		409: {deliver.Fenced, types.ErrConflict}, 413: {deliver.Refused, types.ErrInvalid}, 429: {deliver.Again, types.ErrRateLimited},
		500: {deliver.Again, types.ErrUnavailable}, 503: {deliver.Again, types.ErrUnavailable},
	} {
		c := client(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://elsewhere")
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(status)
			io.WriteString(w, "no\x1b[2J\n way"+strings.Repeat("x", 500))
		}), nil)
		_, err := c.Do(ctx, say("x"))
		var f *deliver.Failure
		if !errors.As(err, &f) || f.Verdict != want.verdict || f.Status != status || f.After != 7*time.Second || types.CodeOf(err) != want.code {
			t.Errorf("%d: %+v (%v)", status, f, err)
		}
		if text := err.Error(); strings.ContainsAny(text, "\x1b\n") || len(text) > 400 || !strings.Contains(text, "no") {
			t.Errorf("%d: the text is %q", status, text)
		}
		if errors.Is(err, deliver.ErrFenced) != (status == 409) {
			t.Errorf("%d: ErrFenced", status)
		}
	}
}

func TestBaseURLsAreCheckedAndTokensStayOutOfThem(t *testing.T) {
	for _, base := range []string{"", " ", "host:1", "http://", "http://u:secret@h", "http://h?token=secret"} {
		_, err := deliver.New(deliver.Config{SessionID: "s", BaseURL: base})
		if types.CodeOf(err) != types.ErrInvalid || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", base, err)
		}
	}
}

func TestARequestThatIsNotAnsweredInTimeFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }), nil)
		began := time.Now()
		_, err := c.Do(ctx, say("x"))
		if types.CodeOf(err) != types.ErrUnavailable || time.Since(began) != 5*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if _, err := c.Do(short, say("x")); types.CodeOf(err) != types.ErrCancelled {
			t.Errorf("with a context that ends: %v", err)
		}
	})
}

func TestAnAnswerIsReadUpToABound(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range 3 << 10 {
			if _, err := w.Write(make([]byte, 1<<10)); err != nil {
				return
			}
		}
	}))
	defer srv.Close()
	c := client(t, nil, func(cfg *deliver.Config) { cfg.BaseURL, cfg.HTTPClient = srv.URL, nil })
	if _, err := c.Do(ctx, say("x")); types.CodeOf(err) != types.ErrUnavailable || !strings.Contains(err.Error(), "1 MiB") {
		t.Errorf("Do = %v", err)
	}
}

func TestPausesDoubleUpToTheLongestAndObeyThePlatform(t *testing.T) {
	p := deliver.Retry{Attempts: 5, First: time.Second, Longest: 3 * time.Second, Patience: time.Minute}.Pauses()
	var got []time.Duration
	for _, after := range []time.Duration{0, 0, 0, 20 * time.Second} {
		d, ok := p.Next(&deliver.Failure{After: after})
		if !ok {
			t.Fatal("no more attempts")
		}
		got = append(got, d)
	}
	if !slices.Equal(got, []time.Duration{1e9, 2e9, 3e9, 20e9}) {
		t.Errorf("pauses are %v", got)
	}
	if _, ok := p.Next(nil); ok {
		t.Error("a sixth attempt")
	}
	if _, ok := (deliver.Retry{Attempts: 3, First: 1, Patience: time.Minute}).Pauses().Next(&deliver.Failure{After: time.Hour}); ok {
		t.Error("waits an hour within a row")
	}
	jittered := deliver.Retry{First: time.Second, Jitter: 0.5}.Pauses()
	if d, _ := jittered.Next(nil); d < 500*time.Millisecond || d > 1500*time.Millisecond {
		t.Errorf("with jitter: %v", d)
	}
}

// sink takes events until it is told otherwise.
type sink struct {
	mu     sync.Mutex
	status func(texts []string, token string) int // +checklocks:mu
	got    []string                               // +checklocks:mu
	tries  int                                    // +checklocks:mu
}

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var texts []string
	_ = json.NewDecoder(r.Body).Decode(&texts)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tries++
	if s.status != nil {
		if code := s.status(texts, r.Header.Get(deliver.TokenHeader)); code != 200 {
			w.WriteHeader(code)
			return
		}
	}
	s.got = append(s.got, texts...)
}

func (s *sink) taken() (string, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.got, " "), s.tries
}

// feeding runs a feed of texts into s until the test ends.
func feeding(t *testing.T, s *sink, token func() uint64, texts ...string) (*deliver.Feed, *journal.Journal) {
	t.Helper()
	j, err := journal.Open(journal.Options{Session: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	cur, err := j.Cursor("c")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		if _, err := j.Append(ctx, journal.Draft{Kind: "a", Data: text}); err != nil {
			t.Fatal(err)
		}
	}
	f := &deliver.Feed{Client: client(t, s, func(c *deliver.Config) { c.Token = token }), Cursor: cur,
		Retry: deliver.Retry{Attempts: 3, First: time.Second, Longest: 5 * time.Second},
		Batch: func() int { return 3 },
		Calls: func(events []journal.Event) (deliver.Call, int, error) {
			var body []string
			for _, e := range events {
				var s string
				if err := json.Unmarshal(e.Data, &s); err != nil {
					return deliver.Call{}, 0, err
				}
				body = append(body, s)
			}
			return deliver.Call{Endpoint: "x", Body: func(deliver.Credentials) any { return body }}, len(events), nil
		}}
	life, cancel := context.WithCancel(ctx)
	done := make(chan error)
	go func() { done <- f.Run(life) }()
	t.Cleanup(func() { cancel(); <-done; j.Close() })
	return f, j
}

func TestAFeedKeepsWhatThePlatformDoesNotTakeAndDeliversItInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := false
		s := &sink{}
		s.status = func([]string, string) int {
			if up {
				return 200
			}
			return 503
		}
		f, _ := feeding(t, s, nil, "1", "2", "3", "4", "5")
		time.Sleep(time.Hour)
		if got, tries := s.taken(); got != "" || tries < 700 || f.Cursor.Pending() != 5 || f.Err() == nil {
			t.Errorf("took %q in %d tries, %d pending, Err = %v", got, tries, f.Cursor.Pending(), f.Err())
		}
		s.mu.Lock()
		up = true
		s.mu.Unlock()
		time.Sleep(10 * time.Second)
		if got, _ := s.taken(); got != "1 2 3 4 5" || f.Cursor.Pending() != 0 || f.Err() != nil || f.Refused() != 0 {
			t.Errorf("took %q, %d pending, Err = %v", got, f.Cursor.Pending(), f.Err())
		}
	})
}

func TestAnEventThatIsRefusedForEverTakesNoOtherWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{status: func(texts []string, _ string) int {
			if slices.Contains(texts, "bad") {
				return 400
			}
			return 200
		}}
		f, _ := feeding(t, s, nil, "1", "bad", "2", "3")
		time.Sleep(time.Second)
		if got, _ := s.taken(); got != "1 2 3" || f.Refused() != 1 || f.Cursor.Pending() != 0 {
			t.Errorf("took %q, %d refused, %d pending", got, f.Refused(), f.Cursor.Pending())
		}
	})
}

func TestARouteThatIsMissingDropsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{status: func([]string, string) int { return 404 }}
		f, _ := feeding(t, s, nil, "1", "2")
		time.Sleep(time.Hour)
		if f.Refused() != 0 || f.Cursor.Pending() != 2 {
			t.Errorf("%d refused, %d pending", f.Refused(), f.Cursor.Pending())
		}
	})
}

func TestAFencedFeedWaitsForAnotherToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		token := uint64(1)
		s := &sink{status: func(_ []string, token string) int {
			if n, _ := strconv.Atoi(token); n < 2 {
				return 409
			}
			return 200
		}}
		f, _ := feeding(t, s, func() uint64 { mu.Lock(); defer mu.Unlock(); return token }, "1")
		time.Sleep(time.Hour)
		if _, tries := s.taken(); tries != 1 || f.Cursor.Pending() != 1 || !errors.Is(f.Err(), deliver.ErrFenced) {
			t.Errorf("%d tries, %d pending, Err = %v", tries, f.Cursor.Pending(), f.Err())
		}
		mu.Lock()
		token = 2
		mu.Unlock()
		time.Sleep(time.Minute)
		if got, _ := s.taken(); got != "1" {
			t.Errorf("took %q", got)
		}
	})
}
