package heartbeat_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"rnix/runtime/heartbeat"
	"rnix/runtime/internal/wiretest"
	"rnix/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

// platform answers refreshes: with what answer returns for the n-th, from 1; "" = {"refreshed":true}, a number =
// that status.
type platform struct {
	answer func(n int, body map[string]any) string

	mu     sync.Mutex
	bodies []map[string]any // +checklocks:mu
	times  []time.Time      // +checklocks:mu
	auth   []string         // +checklocks:mu
	path   string           // +checklocks:mu
	tokens []string         // +checklocks:mu
}

func (p *platform) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body map[string]any
	_ = json.NewDecoder(r.Body).Decode(&body)
	p.mu.Lock()
	p.bodies, p.times, p.path = append(p.bodies, body), append(p.times, time.Now()), r.Method+" "+r.URL.EscapedPath()
	p.auth, p.tokens = append(p.auth, r.Header.Get("Authorization")), append(p.tokens, r.Header.Get("X-Fencing-Token"))
	n := len(p.bodies)
	p.mu.Unlock()
	answer := `{"refreshed":true}`
	if p.answer != nil {
		if a := p.answer(n, body); a != "" {
			answer = a
		}
	}
	var status int
	if _, err := fmt.Sscanf(answer, "%d", &status); err == nil {
		w.WriteHeader(status)
		return
	}
	io.WriteString(w, answer)
}

func (p *platform) seen() []map[string]any {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.bodies)
}

func (p *platform) gaps() (out []time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := 1; i < len(p.times); i++ {
		out = append(out, p.times[i].Sub(p.times[i-1]))
	}
	return out
}

var quiet = slog.New(slog.DiscardHandler)

// begin starts a heartbeat of session s1 that reaches h.
func begin(t *testing.T, h http.Handler, change func(*heartbeat.Config)) *heartbeat.Pulser {
	t.Helper()
	cfg := heartbeat.Config{SessionID: "s1", WorkerID: "w1", IssueID: "i1", BaseURL: "http://platform", HTTPClient: wiretest.Client(h), Logger: quiet}
	if change != nil {
		change(&cfg)
	}
	p, err := heartbeat.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop() })
	return p
}

func lost(p *heartbeat.Pulser) bool {
	select {
	case <-p.LostOwnership():
		return true
	default:
		return false
	}
}

func TestARefreshSaysWhoAndCarriesBearerAndToken(t *testing.T) {
	server := &platform{answer: func(int, map[string]any) string { return `{"refreshed":true,"fencingToken":7,"ttlMs":60000}` }}
	srv := httptest.NewServer(server)
	defer srv.Close()
	p := begin(t, server, func(c *heartbeat.Config) {
		c.BaseURL, c.HTTPClient, c.AuthToken, c.SessionID, c.FencingToken = srv.URL+"//", nil, "secret", "a/b c", 6
	})
	p.Stop()
	if server.path != "POST /api/sessions/a%2Fb%20c/lock-refresh" || server.auth[0] != "Bearer secret" || server.tokens[0] != "6" {
		t.Errorf("asked %s with %q and token %q", server.path, server.auth, server.tokens)
	}
	if b := server.seen()[0]; b["workerId"] != "w1" || b["issueId"] != "i1" || len(b) != 2 {
		t.Errorf("body is %v", b)
	}
	if p.Token() != 7 || p.LastTick() == 0 || p.Check() != nil {
		t.Errorf("token %d, tick %d, Check = %v", p.Token(), p.LastTick(), p.Check())
	}
}

func TestFieldsAreRequiredAndAStartIsForOnce(t *testing.T) {
	for _, cfg := range []heartbeat.Config{{BaseURL: "http://x"}, {SessionID: "s"}, {SessionID: "s", BaseURL: "ftp://x"}, {SessionID: "s", BaseURL: "http://x", Interval: -1}} {
		if _, err := heartbeat.New(cfg); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	p := begin(t, &platform{}, nil)
	if err := p.Start(ctx); types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("a second Start: %v", err)
	}
	if err := errors.Join(p.Stop(), p.Stop()); err != nil {
		t.Errorf("Stop twice: %v", err)
	}
	early, err := heartbeat.New(heartbeat.Config{SessionID: "s", BaseURL: "http://x"})
	if err != nil || early.Stop() != nil {
		t.Fatal(err)
	}
	if err := early.Start(ctx); types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("Start after Stop: %v", err)
	}
}

func TestThreeStrikesAreTheEndAndASuccessBetweenWipesThemOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &platform{answer: func(n int, _ map[string]any) string {
			if n == 7 { // two ticks of three attempts have failed
				return ""
			}
			return "503"
		}}
		began := time.Now()
		p := begin(t, server, nil)
		if p.Strikes() != 1 || p.LastTick() != 0 || time.Since(began) != 3*time.Second {
			t.Errorf("after Start: %d strikes, tick %d, %v", p.Strikes(), p.LastTick(), time.Since(began))
		}
		<-p.LostOwnership()
		if n := len(server.seen()); n != 7+9 {
			t.Errorf("%d requests", n)
		}
		gaps := server.gaps()
		for i, want := range []time.Duration{time.Second, 2 * time.Second, 0, time.Second, 2 * time.Second, 0} {
			if want != 0 && gaps[i] != want || want == 0 && (gaps[i] < 27*time.Second || gaps[i] > 33*time.Second) {
				t.Errorf("pause %d is %v", i, gaps[i])
			}
		}
		if err := p.Check(); !errors.Is(err, heartbeat.ErrLostOwnership) || p.StopRequested() {
			t.Errorf("Check = %v", err)
		}
	})
}

func TestAFourthAttemptComesFourSecondsAfterTheThird(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &platform{answer: func(int, map[string]any) string { return "500" }}
		begin(t, server, func(c *heartbeat.Config) { c.MaxAttemptsPerTick = 4 })
		if g := server.gaps(); !slices.Equal(g, []time.Duration{1e9, 2e9, 4e9}) {
			t.Errorf("pauses are %v", g)
		}
	})
}

func TestWhatEachAnswerMeansToEachClass(t *testing.T) {
	for _, tt := range []struct {
		name, class, answer          string
		lost, stop, degraded, usable bool
	}{
		{"refused", "", `{"refreshed":false}`, true, false, false, false},
		{"refused, attended", "interactive", `{"refreshed":false}`, false, false, true, false},
		{"fenced", "", "409", true, false, false, false},
		{"fenced, attended", "interactive", "409", false, false, true, false},
		{"stop", "", `{"refreshed":true,"stop":true,"inject":{"deliveryId":"d","text":"x"}}`, true, true, false, false},
		{"stop, attended", "interactive", `{"refreshed":true,"stop":true}`, true, true, false, false},
		{"no body", "", " ", false, false, false, true},
		{"not JSON", "", "<html>", false, false, false, false},
		{"an empty object", "", "{}", true, false, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := begin(t, &platform{answer: func(int, map[string]any) string { return tt.answer }}, func(c *heartbeat.Config) {
					c.SessionClass = tt.class
					c.OnInject = func(heartbeat.InjectPayload) bool { t.Error("an inject was handed out"); return true }
				})
				if lost(p) != tt.lost || p.StopRequested() != tt.stop || p.Degraded() != tt.degraded || (p.Check() == nil) != tt.usable {
					t.Errorf("lost %v, stop %v, degraded %v, Check = %v", lost(p), p.StopRequested(), p.Degraded(), p.Check())
				}
			})
		})
	}
}

func TestAnAttendedSessionOutlivesAPartitionAndARefusalAndHeals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &platform{answer: func(n int, _ map[string]any) string {
			switch {
			case n <= 15:
				return "502"
			case n == 16:
				return `{"refreshed":false}`
			}
			return ""
		}}
		p := begin(t, server, func(c *heartbeat.Config) { c.SessionClass = "interactive" })
		if server.seen()[0]["sessionClass"] != "interactive" {
			t.Errorf("body is %v", server.seen()[0])
		}
		time.Sleep(4 * time.Minute)
		if p.Degraded() || lost(p) || p.Strikes() != 0 || p.Check() != nil {
			t.Errorf("degraded %v, %d strikes, Check = %v", p.Degraded(), p.Strikes(), p.Check())
		}
		n := len(server.seen())
		time.Sleep(time.Minute)
		if len(server.seen()) <= n {
			t.Error("it beats no more")
		}
	})
}

func TestTheEndOfTheContextIsNoStrike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := heartbeat.New(heartbeat.Config{SessionID: "s", BaseURL: "http://p", Logger: quiet,
			HTTPClient: wiretest.Client(&platform{answer: func(int, map[string]any) string { return "500" }})})
		if err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		if err := p.Start(short); err != nil || p.Strikes() != 0 || lost(p) {
			t.Errorf("Start = %v, %d strikes", err, p.Strikes())
		}
		p.Stop()
	})
}

func TestALeaseIsGoodAsLongAsThePlatformSaysAndAskedForInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := false
		var mu sync.Mutex
		server := &platform{answer: func(int, map[string]any) string {
			mu.Lock()
			defer mu.Unlock()
			if down {
				return "503"
			}
			return `{"refreshed":true,"ttlMs":9000,"fencingToken":3}`
		}}
		p := begin(t, server, func(c *heartbeat.Config) { c.StrikesUntilLost = 100 })
		time.Sleep(time.Minute) // twenty times as long as a tick may take, with an interval of 30 s
		if n := len(server.seen()); n < 18 || p.Check() != nil {
			t.Errorf("%d refreshes in a minute, Check = %v", n, p.Check())
		}
		mu.Lock()
		down = true
		mu.Unlock()
		time.Sleep(9 * time.Second)
		if err := p.Check(); !errors.Is(err, heartbeat.ErrLostOwnership) || lost(p) {
			t.Errorf("after the TTL: Check = %v", err)
		}
		mu.Lock()
		down = false
		mu.Unlock()
		time.Sleep(3 * time.Second)
		if err := p.Check(); err != nil {
			t.Errorf("after the outage: Check = %v", err)
		}
	})
}

func TestAHostThatSleptAsksAtOnceAndIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		slept := time.Duration(0)
		server := &platform{}
		p := begin(t, server, func(c *heartbeat.Config) {
			c.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return time.Now().Add(slept) }
		})
		mu.Lock()
		slept = 10 * time.Minute
		mu.Unlock()
		if err := p.Check(); !errors.Is(err, heartbeat.ErrLostOwnership) {
			t.Errorf("Check = %v", err)
		}
		synctest.Wait()
		if len(server.seen()) != 2 || p.Check() != nil || lost(p) {
			t.Errorf("%d requests, Check = %v", len(server.seen()), p.Check())
		}
	})
}

func TestCredentialsAreAskedForAtEachAttemptAndMissingOnesAreTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		server := &platform{answer: func(n int, _ map[string]any) string {
			if n < 3 {
				return "401"
			}
			return ""
		}}
		begin(t, server, func(c *heartbeat.Config) {
			c.AuthToken = "configured"
			c.CredentialProvider = func(context.Context) (heartbeat.RuntimeCredentials, error) {
				n++
				switch n {
				case 1:
					return heartbeat.RuntimeCredentials{WorkerID: "w2"}, nil
				case 2:
					return heartbeat.RuntimeCredentials{AuthToken: "fresh"}, nil
				}
				return heartbeat.RuntimeCredentials{WorkerID: "lost"}, errors.New("no answer")
			}
		})
		if !slices.Equal(server.auth, []string{"Bearer configured", "Bearer fresh", "Bearer fresh"}) {
			t.Errorf("bearers are %q", server.auth)
		}
		for i, b := range server.seen() {
			if b["workerId"] != "w2" {
				t.Errorf("attempt %d: worker %v", i, b["workerId"])
			}
		}
	})
}

func TestTheObserverIsToldOfSuccessesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []int64
		server := &platform{answer: func(n int, _ map[string]any) string {
			return map[int]string{1: "500", 3: `{"refreshed":false}`}[n]
		}}
		p, err := heartbeat.NewWithAckObserver(heartbeat.Config{SessionID: "s", BaseURL: "http://p", Logger: quiet, HTTPClient: wiretest.Client(server)},
			func(tick int64) { got = append(got, tick) })
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Start(ctx); err != nil {
			t.Fatal(err)
		}
		tick := p.LastTick()
		<-p.LostOwnership()
		p.Stop()
		if !slices.Equal(got, []int64{tick}) {
			t.Errorf("told %v, the tick was %d", got, tick)
		}
	})
}

func TestAnAttendedSessionOutlivesTheSleepOfItsHostAndStillObeysAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		slept, answer := time.Duration(0), ""
		server := &platform{answer: func(int, map[string]any) string { mu.Lock(); defer mu.Unlock(); return answer }}
		p := begin(t, server, func(c *heartbeat.Config) {
			c.SessionClass = heartbeat.SessionClassInteractive
			c.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return time.Now().Add(slept) }
		})
		set := func(d time.Duration, a string) { mu.Lock(); slept, answer = slept+d, a; mu.Unlock() }
		set(10*time.Minute, `{"refreshed":false}`) // what the platform says of a lease that has run out meanwhile
		_ = p.Check()                              // asks at once
		synctest.Wait()
		if lost(p) || !p.Degraded() {
			t.Errorf("after the sleep: lost %v, degraded %v", lost(p), p.Degraded())
		}
		set(0, "")
		time.Sleep(time.Minute)
		if lost(p) || p.Degraded() || p.Check() != nil {
			t.Errorf("awake again: lost %v, degraded %v, Check = %v", lost(p), p.Degraded(), p.Check())
		}
		set(10*time.Minute, `{"refreshed":true,"stop":true}`)
		_ = p.Check()
		synctest.Wait()
		if !lost(p) || !p.StopRequested() {
			t.Error("a stop after a sleep is not obeyed")
		}
	})
}

func TestASessionThatDoesNothingForTenMinutesKeepsItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &platform{answer: func(int, map[string]any) string { return `{"refreshed":true,"ttlMs":60000,"fencingToken":3}` }}
		p := begin(t, server, nil)
		for range 60 { // as a process does that is paused: nobody asks for anything but the lease
			time.Sleep(10 * time.Second)
			if err := p.Check(); err != nil || lost(p) || p.Strikes() != 0 {
				t.Fatalf("Check = %v", err)
			}
		}
		if n := len(server.seen()); n < 10 || p.Token() != 3 {
			t.Errorf("%d refreshes, token %d", n, p.Token())
		}
	})
}
