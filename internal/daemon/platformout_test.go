package daemon_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
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

// outages is a way to a control plane that can be closed.
type outages struct {
	*board
	direct  string // past it
	away    atomic.Bool
	refused atomic.Int32 // requests
}

// newOutages gives a test a control plane, which gives leases of a length, and a way to it.
func newOutages(t *testing.T, ttl time.Duration) *outages {
	t.Helper()
	cp, err := controlplane.Open(controlplane.Options{Dir: t.TempDir(), TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	if err := cp.AddToken("secret-token-of-a-test"); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(cp)
	to, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	o, way := &outages{direct: s.URL}, httputil.NewSingleHostReverseProxy(to)
	gate := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if o.away.Load() {
			o.refused.Add(1)
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		way.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		gate.Close()
		s.Close()
		if err := cp.Close(); err != nil {
			t.Error(err)
		}
	})
	o.board = &board{t, gate.URL}
	return o
}

// refuses waits until the outage has refused so many requests.
func (o *outages) refuses(n int32) {
	o.t.Helper()
	until(o.t, "the platform is asked again and again", func() bool { return o.refused.Load() >= n })
}

func TestAnOutageLongerThanTheLeaseHoldsASessionUntilThePlatformAnswers(t *testing.T) { // C8
	for _, how := range []string{"free", "claimed"} {
		t.Run(how, func(t *testing.T) {
			o := newOutages(t, time.Second)
			_, api := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
				if _, ok := r.LastResult(); ok {
					return llmtest.Reply{Text: "done after the outage"}
				}
				return llmtest.Reply{ToolCalls: []llmtest.ToolCall{{Name: "shell", Input: `{"command":"until [ -e gate ]; do echo x >> beats; sleep 0.05; done"}`}}}
			})
			s := testenv.New(t, append(o.env(api), "RNIX_PLATFORM_INTERVAL=1s")...)
			p := s.Spawn(ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "fake"}, Session: "S-1"})
			o.until("S-1", "owned", func(st stands) bool { return st.Ownership.Owned })
			o.away.Store(true)
			s.Await(p.PID, event.Leased, func(e *event.Event) bool { return e.Result == "run out" })
			o.refuses(5 * heartbeat.DefaultStrikesUntilLost) // longer than all strikes of a heartbeat
			list, err := ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{})
			if err != nil || len(list.Procs) != 1 || list.Procs[0].State == "zombie" {
				t.Fatalf("%+v, %v", list.Procs, err)
			}
			before := len(s.Read("beats"))
			o.refuses(o.refused.Load() + 3)
			if now := len(s.Read("beats")); now != before {
				t.Errorf("its command works while nothing says whose the session is: %d bytes, then %d", before, now)
			}
			if how == "claimed" {
				if _, err := heartbeat.Claim(context.Background(), heartbeat.Config{SessionID: "S-1", WorkerID: "another", BaseURL: o.direct, AuthToken: "secret-token-of-a-test"}); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(s.Work, "gate"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			o.away.Store(false)
			exit := s.Wait(p.PID)
			if how == "claimed" && exit.Exit.Code != types.ExitLostOwnership || how == "free" && (exit.Exit.Code != 0 || !strings.Contains(exit.Result, "done after the outage")) {
				t.Errorf("%+v", exit)
			}
		})
	}
}

func TestWhatActsForASessionEndsWithItsLeaseWhileTheDaemonStandsStill(t *testing.T) { // C8
	o := newOutages(t, 10*time.Second) // it has not run out when the daemon is made to stand still, however busy the machine is
	_, api := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if _, ok := r.LastResult(); ok {
			return llmtest.Reply{Hang: true}
		}
		return llmtest.Reply{ToolCalls: []llmtest.ToolCall{{Name: "shell", Input: `{"command":"echo $$ > pid; exec sleep 1000"}`}}}
	})
	s := testenv.New(t, append(o.env(api), "RNIX_PLATFORM_INTERVAL=1s")...)
	p := s.Spawn(ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "fake"}, Session: "S-1"})
	other := s.Spawn(ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "fake"}, Cwd: t.TempDir()})
	pid := func(dir string) int {
		path := filepath.Join(dir, "pid")
		until(t, "its command runs", func() bool { b, _ := os.ReadFile(path); return strings.HasSuffix(string(b), "\n") })
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return number(t, string(b))
	}
	leased := pid(s.Work)
	d, err := ipc.Call(t.Context(), s.Client, ipc.GetProcDetail, ipc.TargetRequest{Target: other.UUID.String()})
	if err != nil {
		t.Fatal(err)
	}
	free := pid(d.WorkDir)
	daemon := s.PID()
	if err := syscall.Kill(daemon, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(daemon, syscall.SIGCONT) })
	dead := func(pid int) bool {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return err != nil || strings.Contains(string(b), ") Z ")
	}
	until(t, "its command ends with its lease", func() bool { return dead(leased) })
	if dead(free) {
		t.Error("what acts for no session was ended too")
	}
	lease := heartbeat.Config{SessionID: "S-1", WorkerID: "another", BaseURL: o.direct, AuthToken: "secret-token-of-a-test"}
	until(t, "another owner has the session", func() bool { _, err := heartbeat.Claim(context.Background(), lease); return err == nil })
	if err := syscall.Kill(daemon, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if w := s.Wait(p.PID); w.Exit.Code != types.ExitLostOwnership {
		t.Errorf("%+v", w.Exit)
	}
}
