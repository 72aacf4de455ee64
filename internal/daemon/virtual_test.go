package daemon

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	rnixctx "rnix/context"
	"rnix/drivers/llm"
	"rnix/drivers/llm/llmtest"
	"rnix/internal/config"
	"rnix/internal/event"
	"rnix/ipc"
	"rnix/types"
	"rnix/vfs"
)

// dag has 20 nodes with fan-out, retries and conditions.
const dag = `model: fake
max_parallel: 6
agents:
  list: {intent: list x, output: {schema: {type: array}}}
  item: {intent: "item-${index} for ${item}", foreach: {from: list}}
  flaky: {intent: flaky x, retries: {max: 5, backoff: {initial: 20ms, factor: 1}}}
  quota: {intent: quota x, depends_on: [list]}
  a1: {intent: a1 x}
  a2: {intent: a2 x, depends_on: [a1]}
  a3: {intent: a3 x, depends_on: [a1]}
  a4: {intent: a4 x, depends_on: [a2, a3]}
  b1: {intent: b1 x, depends_on: [flaky]}
  b2: {intent: b2 x, depends_on: [b1, item]}
  c1: {intent: c1 x, depends_on: {flaky: completed}}
  c2: {intent: c2 x, depends_on: [c1, a4]}
  never: {intent: never x, depends_on: {a4: failed}}
  unless: {intent: unless x, depends_on: {never: completed}}
  d1: {intent: d1 x, depends_on: [item]}
  d2: {intent: d2 x, depends_on: [d1, quota]}
  d3: {intent: d3 x, depends_on: [d1]}
  e1: {intent: e1 x, depends_on: [b2, c2]}
  e2: {intent: e2 x, depends_on: [d2, d3, unless]}
  end: {intent: end x, depends_on: [e1, e2]}
`

// virtual is a world whose time is that of the bubble: a model, and one daemon after the other, none of which
// has a client. A daemon is killed by going on with a copy of what it had on disk at a moment in which all of it
// stood still: that is what SIGKILL leaves.
type virtual struct {
	t     *testing.T
	dir   string
	quota time.Duration // how long the limit lasts
	d     *Daemon
	end   func()
	born  int // daemons before this one

	performed map[string]int // tool calls, as the events of all daemons say: by what was written

	mu sync.Mutex
	// +checklocks:mu
	full time.Time // when the limit ends; zero = nobody has met it
	// +checklocks:mu
	hits int // answers that it is there
	// +checklocks:mu
	flaky int // answers that were errors
}

func newVirtual(t *testing.T, quota time.Duration) *virtual {
	t.Helper()
	dir, err := os.MkdirTemp("", "rnix") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return &virtual{t: t, dir: dir, quota: quota, performed: map[string]int{}}
}

func (v *virtual) work() string { return filepath.Join(v.dir, "work") }

func (v *virtual) data() string { return filepath.Join(v.dir, fmt.Sprint("data", v.born)) }

func (v *virtual) env() map[string]string {
	return map[string]string{"HOME": v.dir, "RNIX_DATA_DIR": v.data(), "XDG_RUNTIME_DIR": filepath.Join(v.dir, fmt.Sprint("run", v.born)),
		"RNIX_SNAPSHOTS_ENABLED": "false", "RNIX_SANDBOX_LEVEL": "off", "RNIX_DAEMON_AUTO_RESUME_MAX": "1000", "ANTHROPIC_API_KEY": "k"}
}

func (v *virtual) environ() (list []string) {
	for name, value := range v.env() {
		list = append(list, name+"="+value)
	}
	return list
}

// turn is what the model says: two tool calls and a result.
func (v *virtual) turn(_ int, r llm.LLMRequest) llmtest.Turn {
	who, turn := strings.Fields(r.Messages[0].Content)[0], 1
	for _, m := range r.Messages {
		if m.Role == rnixctx.RoleAssistant {
			turn++
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if who == "flaky" && v.flaky < 2 {
		v.flaky++
		return llmtest.Turn{Delay: time.Second, Err: types.Errorf(types.ErrInvalid, "Call", "", "not now")}
	}
	if who == "quota" && turn == 2 && v.full.IsZero() {
		v.full = time.Now().Add(v.quota)
	}
	if left := time.Until(v.full); !v.full.IsZero() && left > 0 && (v.quota <= time.Minute || who == "quota") {
		v.hits++
		return llmtest.Turn{Err: types.Errorf(types.ErrRateLimited, "Call", "", "%w", &llm.RateLimit{RetryAfter: left, Message: "quota"})}
	}
	switch {
	case turn <= 2:
		return llmtest.Turn{Delay: time.Second, ToolCalls: []rnixctx.ToolCall{{ID: fmt.Sprintf("%s-%d", who, turn), Name: "write_file",
			Input: fmt.Appendf(nil, `{"path":"%s.%d","content":"done"}`, who, turn)}}}
	case who == "list":
		return llmtest.Turn{Delay: time.Second, Text: `["u","v","w","x","y","z"]`}
	}
	return llmtest.Turn{Delay: time.Second, Text: "result of " + who}
}

// Make makes the driver of a provider: of each the same script.
func (v *virtual) Make(config.Provider) (llm.LLMDriver, error) {
	return llmtest.NewScriptedFunc(v.turn), nil
}

// Metered says that none is.
func (v *virtual) Metered(vfs.Caller, config.Provider) (metered bool, why string) { return false, "" }

// start begins a daemon on the data of the last one.
func (v *virtual) start() {
	v.t.Helper()
	if err := os.MkdirAll(v.work(), 0o700); err != nil {
		v.t.Fatal(err)
	}
	env := v.env()
	ctx, cancel := context.WithCancel(context.Background())
	v.d = newDaemon(Options{Lookup: func(name string) (string, bool) { s, ok := env[name]; return s, ok }})
	v.d.stop = cancel
	_, _, undo, err := v.d.open(ctx) // nobody asks
	if err != nil {
		v.t.Fatal(err)
	}
	v.d.models.Drivers = v
	init := readInit(v.d)
	tend(ctx, v.d)
	takeUp(ctx, v.d, init)
	v.end = func() {
		cancel()
		if err := v.d.kernel.Shutdown(context.Background()); err != nil {
			v.t.Error(err)
		}
		v.d.background.Wait()
		if err := undo.run(); err != nil {
			v.t.Error(err)
		}
	}
}

// count takes in which tool calls the daemon has performed.
func (v *virtual) count() {
	v.t.Helper()
	c := v.d.events.Cursor(v.d.events.Oldest())
	for {
		e, ok, err := c.TryNext()
		if err != nil {
			v.t.Fatal(err)
		}
		if !ok {
			return
		}
		if e.Kind == event.Syscall && e.Name == "Write" && e.Path == "/dev/workspace" {
			v.performed[e.Args]++
		}
	}
}

// kill ends the daemon as SIGKILL would, and starts another.
func (v *virtual) kill() {
	v.t.Helper()
	synctest.Wait()
	from := v.data()
	v.born++
	if err := os.CopyFS(v.data(), os.DirFS(from)); err != nil {
		v.t.Fatal(err)
	}
	if err := os.Chmod(v.data(), 0o700); err != nil {
		v.t.Fatal(err)
	}
	v.count()
	v.end()
	v.start()
}

func (v *virtual) status(id types.UUID) ipc.ComposeRun {
	v.t.Helper()
	r, err := v.d.flows.Status(context.Background(), nil, ipc.TargetRequest{Target: id.String()})
	if err != nil {
		v.t.Fatal(err)
	}
	return r
}

// until lets time pass, a second at a time, and fails when it was too much.
func (v *virtual) until(what string, limit time.Duration, ok func() bool) {
	v.t.Helper()
	for end := time.Now().Add(limit); !ok(); <-time.After(limit / 500) {
		if time.Now().After(end) {
			log, _ := os.ReadFile(v.d.places.Log)
			v.t.Fatalf("%s: not within %v\n%s", what, limit, log)
		}
	}
}

// A rate limit of a minute is waited for by the calls that meet it, and one of hours suspends nodes and the run
// until their time: either way the run goes on by itself, also with a daemon that was killed before and
// meanwhile, fails nowhere and repeats nothing.
func TestAWorkflowPassesAQuotaPauseByItself(t *testing.T) { // C-7, C-8
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt) // starts what watches signals, outside of the bubble
	signal.Stop(c)
	for name, quota := range map[string]time.Duration{"waited for": time.Minute, "suspended": 2 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			v := newVirtual(t, quota)
			for name, value := range map[string]string{"HOME": v.dir, "XDG_CONFIG_HOME": "", "ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "", "RNIX_SANDBOX_LEVEL": "off"} {
				t.Setenv(name, value) // of the daemon, for what goes on by itself
			}
			synctest.Test(t, func(t *testing.T) {
				v.t = t
				v.start()
				defer func() { v.end() }()
				up, err := v.d.flows.Up(t.Context(), nil, ipc.ComposeUpRequest{File: "compose.yaml", Text: dag, Name: "w", Cwd: v.work(), Env: v.environ()})
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				<-time.After(2500 * time.Millisecond)
				v.kill()
				v.until("the limit is met", 5*time.Minute, func() bool { v.mu.Lock(); defer v.mu.Unlock(); return v.hits > 0 })
				<-time.After(quota / 2)
				if r := v.status(up.UUID); r.Exit != nil && r.Exit.Code == types.ExitOK || quota > time.Minute && r.State != "suspended" {
					t.Errorf("half-way it is %s: %q", r.State, r.Wait)
				}
				v.kill()
				v.until("the end", quota+5*time.Minute, func() bool { return v.status(up.UUID).State == "dead" })
				if took := time.Since(began); took < quota {
					t.Errorf("it took %v", took)
				}
				r := v.status(up.UUID)
				if r.Exit == nil || r.Exit.Code != types.ExitOK || r.Counts["failed"] != 0 || r.Counts["skipped"] != 1 || r.Counts["succeeded"] != len(r.Nodes)-1 {
					t.Fatalf("%v %v\n%+v", r.Exit, r.Counts, r.Nodes)
				}
				v.count()
				if want := 2 * (len(r.Nodes) - 1); len(v.performed) != want {
					t.Errorf("%d different calls, want %d", len(v.performed), want)
				}
				for call, n := range v.performed {
					if n != 1 {
						t.Errorf("performed %d times: %s", n, call)
					}
				}
				for _, n := range r.Nodes {
					if tries := map[string]int{"flaky": 3, "never": 0}; n.Attempt != 1 && n.Attempt != tries[n.Name] {
						t.Errorf("%s took %d attempts", n.Name, n.Attempt)
					}
				}
			})
		})
	}
}
