package kernel

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"rnix/agent"
	rnixctx "rnix/context"
	"rnix/internal/event"
	"rnix/internal/step"
	"rnix/types"
	"rnix/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(untouched{m}) }

// untouched runs the tests, and fails if one of them has written to what all processes without an agent share.
type untouched struct{ *testing.M }

func (u untouched) Run() int {
	code := u.M.Run()
	if !reflect.DeepEqual(*nobody, agent.Agent{}) {
		fmt.Fprintf(os.Stderr, "a process has written to the agent that others share: %+v\n", *nobody)
		code = max(code, 1)
	}
	return code
}

// device is a file whose Write is a function.
type device struct {
	mu     sync.Mutex
	caller vfs.Caller
	do     func(ctx context.Context, c vfs.Caller, data []byte) (string, error)
	out    []byte // +checklocks:mu
}

func (d *device) BindCaller(c vfs.Caller) error { d.caller = c; return nil }
func (d *device) Write(ctx context.Context, data []byte) error {
	out, err := d.do(ctx, d.caller, data)
	d.mu.Lock()
	d.out = []byte(out)
	d.mu.Unlock()
	return err
}
func (d *device) Read(int) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := d.out
	d.out = nil
	if len(out) == 0 {
		return nil, io.EOF
	}
	return out, nil
}
func (d *device) Close() error                { return nil }
func (d *device) Stat() (vfs.FileStat, error) { return vfs.FileStat{}, nil }

// reply is what the test's model says.
type reply struct {
	Content string
	Calls   []string // "name {json}"
	Tokens  int
}

func (r reply) json() string {
	type call = rnixctx.ToolCall
	var doc struct {
		Content   string         `json:"content"`
		ToolCalls []call         `json:"tool_calls"`
		Usage     map[string]int `json:"usage"`
	}
	doc.Content, doc.Usage = r.Content, map[string]int{"input_tokens": r.Tokens}
	for i, c := range r.Calls {
		name, in, _ := strings.Cut(c, " ")
		doc.ToolCalls = append(doc.ToolCalls, call{ID: fmt.Sprint("c", i), Name: name, Input: json.RawMessage(in)})
	}
	b, _ := json.Marshal(doc)
	return string(b)
}

// sys is a kernel with a model that is a function and a tool "/dev/tool" that is one.
type sys struct {
	*KernelImpl
	t      *testing.T
	model  func(ctx context.Context, c vfs.Caller, turn int) (reply, error)
	tool   func(ctx context.Context, c vfs.Caller) (string, error)
	turns  sync.Map // types.PID -> *int
	cfg    Config
	events *event.Log
	stores *memStore
}

func newSys(t *testing.T, change ...func(*Config)) *sys {
	t.Helper()
	s := &sys{t: t, events: event.New(1 << 14), stores: &memStore{recs: map[types.UUID]*memRecord{}}}
	devs := vfs.NewDeviceRegistry()
	reg := func(path string, do func(context.Context, vfs.Caller, []byte) (string, error), tools ...vfs.Tool) {
		if err := devs.RegisterTools(path, func(string, vfs.OpenFlag) (vfs.VFSFile, error) { return &device{do: do}, nil }, tools); err != nil {
			t.Fatal(err)
		}
	}
	reg("/dev/llm/m", func(ctx context.Context, c vfs.Caller, _ []byte) (string, error) {
		n, _ := s.turns.LoadOrStore(c.PID, new(int))
		*n.(*int)++
		r, err := s.model(ctx, c, *n.(*int))
		return r.json(), err
	})
	reg("/dev/tool", func(ctx context.Context, c vfs.Caller, _ []byte) (string, error) { return s.tool(ctx, c) },
		vfs.Tool{Name: "tool", Schema: json.RawMessage(`{"type":"object"}`), Path: "/dev/tool", Effect: vfs.EffectExternal})
	s.cfg = Config{Devices: devs, Contexts: rnixctx.NewManager(), Events: s.events, Store: s.stores}
	for _, c := range change {
		c(&s.cfg)
	}
	s.KernelImpl = New(s.cfg, nil)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if n := s.cfg.Contexts.Len(); n != 0 {
			t.Errorf("%d conversations are left", n)
		}
	})
	return s
}

// opts is what every spawn of the tests needs.
func opts(change ...func(*SpawnOpts)) SpawnOpts {
	o := SpawnOpts{ProcSpec: types.ProcSpec{Provider: "m"}, WorkDir: "/"}
	for _, c := range change {
		c(&o)
	}
	return o
}

func (s *sys) spawn(change ...func(*SpawnOpts)) types.PID {
	s.t.Helper()
	pid, err := s.Spawn("do it", nil, opts(change...))
	if err != nil {
		s.t.Fatal(err)
	}
	return pid
}

// await returns the next event of a kind of a process (0 = any), from the beginning of the log.
func (s *sys) await(pid types.PID, kind event.Kind) event.Event {
	s.t.Helper()
	cur := s.events.Cursor(s.events.Oldest())
	for {
		e, err := cur.Next(s.t.Context())
		if err != nil {
			s.t.Fatalf("waiting for %s of %d: %v", kind, pid, err)
		}
		if e.Kind == kind && (pid == 0 || e.PID == pid) {
			return e
		}
	}
}

func finish(text string) func(context.Context, vfs.Caller, int) (reply, error) {
	return func(context.Context, vfs.Caller, int) (reply, error) { return reply{Content: text, Tokens: 7}, nil }
}

// untilKilled is a model that answers only when it is cancelled.
func untilKilled(ctx context.Context, _ vfs.Caller, _ int) (reply, error) {
	<-ctx.Done()
	return reply{}, context.Cause(ctx)
}

// memStore keeps histories in memory, and can fail.
type memStore struct {
	noStore
	mu     sync.Mutex
	recs   map[types.UUID]*memRecord
	infos  []step.ProcInfo
	create error
}

type memRecord struct {
	mu                 sync.Mutex
	pending, committed []step.Record
	closed             bool
	fail               error // of commits
	dead               error // it has failed, and takes nothing more, as one on disk
}

func (m *memStore) Create(id types.UUID) (Recorder, error) {
	if m.create != nil {
		return nil, m.create
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r := &memRecord{}
	m.recs[id] = r
	return r, nil
}
func (m *memStore) Discard(id types.UUID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.recs, id)
	return nil
}
func (m *memStore) SaveInfo(i step.ProcInfo) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.infos = append(m.infos, i)
	return nil
}
func (m *memStore) of(id types.UUID) *memRecord { m.mu.Lock(); defer m.mu.Unlock(); return m.recs[id] }

func (r *memRecord) Add(recs ...step.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dead != nil {
		return r.dead
	}
	for _, rec := range recs {
		rec.Time = time.Now()
		r.pending = append(r.pending, rec)
	}
	return nil
}
func (r *memRecord) Commit() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dead = cmp.Or(r.dead, r.fail); r.dead != nil {
		return r.dead
	}
	r.committed = append(r.committed, r.pending...)
	r.pending = nil
	return nil
}
func (r *memRecord) Close() error { r.mu.Lock(); defer r.mu.Unlock(); r.closed = true; return nil }

// kinds lists what was committed, in short.
func (r *memRecord) kinds() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, c := range r.committed {
		s := string(c.Kind)
		if c.Marker != nil {
			s = c.Marker.Name
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func TestProcessCompletesAndIsRecorded(t *testing.T) {
	s := newSys(t)
	s.tool = func(context.Context, vfs.Caller) (string, error) { return "out", nil }
	s.model = func(_ context.Context, _ vfs.Caller, turn int) (reply, error) {
		if turn == 1 {
			return reply{Calls: []string{"tool {}"}, Tokens: 5}, nil
		}
		return reply{Content: "the result", Tokens: 6}, nil
	}
	pid := s.spawn()
	i, err := s.WaitInfo(t.Context(), pid)
	if err != nil || i.Exit.Code != 0 || i.Exit.Reason != "completed" || i.Result != "the result" || i.TokensUsed != 11 || i.Step != 2 || i.State != types.StateDead {
		t.Fatalf("%+v %v", i, err)
	}
	want := "spawn message message intent result message step message step exit"
	if got := s.stores.of(i.UUID).kinds(); got != want {
		t.Errorf("recorded %s\nwant     %s", got, want)
	}
}

func TestTwentyWaitersAllGetTheExitStatus(t *testing.T) {
	s := newSys(t)
	release := make(chan struct{})
	s.model = func(context.Context, vfs.Caller, int) (reply, error) { <-release; return reply{Content: "x"}, nil }
	pid := s.spawn()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if e, err := s.Wait(pid); err != nil || e.Reason != "completed" {
				t.Errorf("%v %v", e, err)
			}
		})
	}
	close(release)
	wg.Wait()
	if e, err := s.Wait(pid); err != nil || e.Code != 0 {
		t.Errorf("after the reap: %v %v", e, err)
	}
}

func TestWaitAnswersAfterAnAutomaticReap(t *testing.T) {
	s := newSys(t)
	s.model = finish("x")
	pid := s.spawn()
	s.await(pid, event.Reaped)
	if e, err := s.Wait(pid); err != nil || e.Code != 0 {
		t.Fatalf("%v %v", e, err)
	}
	if _, err := s.Wait(99); types.CodeOf(err) != types.ErrNotFound {
		t.Errorf("a process that never was: %v", err)
	}
}

// failingMounts mounts everything but "bad".
type failingMounts struct {
	mu      sync.Mutex
	mounted map[string]bool
}

func (m *failingMounts) Mount(path string, c vfs.MCPConfig) error {
	if c.Name == "bad" {
		return types.Errorf(types.ErrTimeout, "Mount", path, "no answer")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mounted[path] = true
	return nil
}
func (m *failingMounts) Unmount(path string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.mounted, path)
	return nil
}
func (m *failingMounts) UnmountAll() error { return nil }

func TestFailedSpawnLeavesNoTrace(t *testing.T) {
	mounts := &failingMounts{mounted: map[string]bool{}}
	s := newSys(t, func(c *Config) { c.Mounts = mounts })
	s.model = finish("x")
	for name, try := range map[string]func() error{
		"no intent":   func() error { _, err := s.Spawn(" ", nil, opts()); return err },
		"no provider": func() error { _, err := s.Spawn("x", nil, SpawnOpts{}); return err },
		"no model": func() error {
			_, err := s.Spawn("x", nil, opts(func(o *SpawnOpts) { o.Provider = "nosuch" }))
			return err
		},
		"no parent": func() error { _, err := s.Spawn("x", nil, opts(func(o *SpawnOpts) { o.ParentPID = 77 })); return err },
		"bad dir":   func() error { _, err := s.Spawn("x", nil, opts(func(o *SpawnOpts) { o.WorkDir = "rel" })); return err },
		"mount": func() error {
			_, err := s.Spawn("x", &agent.Agent{MCPConfigs: []agent.MCPServer{{Name: "good"}, {Name: "bad", Required: true}}}, opts())
			return err
		},
		"record": func() error {
			s.stores.create = errors.New("disk full")
			defer func() { s.stores.create = nil }()
			_, err := s.Spawn("x", &agent.Agent{MCPConfigs: []agent.MCPServer{{Name: "good"}}}, opts())
			return err
		},
	} {
		if err := try(); err == nil {
			t.Errorf("%s: no error", name)
		}
		if n, c := len(s.List()), s.cfg.Contexts.Len(); n != 0 || c != 0 || len(mounts.mounted) != 0 || len(s.stores.recs) != 0 {
			t.Errorf("%s: left %d processes, %d conversations, mounts %v, %d records", name, n, c, mounts.mounted, len(s.stores.recs))
		}
	}
	if e := s.events.Last(); e > 2 { // the mounts that were taken back
		cur := s.events.Cursor(1)
		for ev, ok, _ := cur.TryNext(); ok; ev, ok, _ = cur.TryNext() {
			if ev.Kind == event.Spawned {
				t.Error("a failed spawn was announced")
			}
		}
	}
}

func TestSignalsEndAProcessWithTheirReason(t *testing.T) {
	for sig, want := range map[types.Signal]string{types.SIGTERM: "4 (terminated)", types.SIGKILL: "4 (killed)", types.SIGINT: "4 (interrupted)"} {
		s := newSys(t)
		s.model = untilKilled
		pid := s.spawn()
		s.await(pid, event.StepStarted)
		if err := s.Kill(pid, sig); err != nil {
			t.Fatal(err)
		}
		if e, err := s.Wait(pid); err != nil || e.String() != want {
			t.Errorf("%v: %v %v", sig, e, err)
		}
		if err := s.Kill(pid, sig); types.CodeOf(err) != types.ErrNotFound {
			t.Errorf("%v to the dead: %v", sig, err)
		}
	}
}

func TestTimeoutEndsAProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSys(t)
		s.model = untilKilled
		pid := s.spawn(func(o *SpawnOpts) { o.Timeout = time.Hour })
		if e, _ := s.Wait(pid); e.Code != 1 || e.Reason != "timeout after 1h0m0s" || types.CodeOf(e.Err) != types.ErrTimeout {
			t.Errorf("%+v", e)
		}
	})
}

func TestLongHealthyCallSurvives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSys(t)
		work := func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(30 * time.Minute):
				return nil
			}
		}
		s.tool = func(ctx context.Context, _ vfs.Caller) (string, error) { return "built", work(ctx) }
		s.model = func(ctx context.Context, _ vfs.Caller, turn int) (reply, error) {
			if turn == 1 {
				return reply{Calls: []string{"tool {}"}}, work(ctx)
			}
			return reply{Content: "x"}, work(ctx)
		}
		i, err := s.WaitInfo(t.Context(), s.spawn())
		if err != nil || i.Exit.Code != 0 || i.Elapsed != 90*time.Minute {
			t.Errorf("%+v %v", i, err)
		}
	})
}

func TestPauseFreezesTimeAndHoldsTheAction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSys(t)
		answer := make(chan reply)
		ran := false
		s.tool = func(context.Context, vfs.Caller) (string, error) { ran = true; return "", nil }
		s.model = func(context.Context, vfs.Caller, int) (reply, error) { return <-answer, nil }
		pid := s.spawn()
		time.Sleep(time.Minute)
		for range 2 { // idempotent
			if err := s.Signal(pid, types.SIGPAUSE); err != nil {
				t.Fatal(err)
			}
		}
		answer <- reply{Calls: []string{"tool {}"}} // it comes while paused
		time.Sleep(time.Hour)
		synctest.Wait()
		i, _ := s.Info(pid)
		if ran || i.StateName() != "suspended" || i.State != types.StateRunning || i.Elapsed != time.Minute || i.Wait != "paused for 1h0m0s" {
			t.Errorf("while paused: ran %v, %+v", ran, i)
		}
		for range 2 {
			_ = s.Signal(pid, types.SIGRESUME)
		}
		answer <- reply{Content: "x"}
		i, err := s.WaitInfo(t.Context(), pid)
		if err != nil || !ran || i.Elapsed != time.Minute || i.PausedFor != time.Hour {
			t.Errorf("after: ran %v, %+v %v", ran, i, err)
		}
		k := s.stores.of(i.UUID).kinds() // who goes on may be quicker than the record that says so
		if _, then, ok := strings.Cut(k, "pause message "); !ok || strings.Count(then, "resume") != 1 {
			t.Errorf("recorded %s", k)
		}
	})
}

func TestKillWhilePaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSys(t)
		answer := make(chan reply)
		s.tool = func(context.Context, vfs.Caller) (string, error) { return "", nil }
		s.model = func(context.Context, vfs.Caller, int) (reply, error) { return <-answer, nil }
		pid := s.spawn()
		synctest.Wait() // the model is being asked
		_ = s.Signal(pid, types.SIGPAUSE)
		answer <- reply{Calls: []string{"tool {}"}}
		synctest.Wait() // it stands at the gate
		_ = s.Signal(pid, types.SIGKILL)
		e, _ := s.Wait(pid)
		if e.Code != 1 || e.Reason != "context cancelled while paused" {
			t.Errorf("%+v", e)
		}
	})
}

func TestBlockedSignalIsDeliveredWhenUnblocked(t *testing.T) {
	s := newSys(t)
	s.model = untilKilled
	pid := s.spawn()
	if err := s.SigBlock(pid, types.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = s.Signal(pid, types.SIGTERM)
	if e := s.await(pid, event.Signalled); e.Result != "pending" {
		t.Errorf("%+v", e)
	}
	if err := s.SigUnblock(pid, types.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if e, _ := s.Wait(pid); e.Reason != "terminated" {
		t.Errorf("%+v", e)
	}
	if err := s.SigBlock(s.spawn(), types.SIGKILL); types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("SIGKILL could be blocked: %v", err)
	}
}

func TestHandlerReplacesTheDefaultAndAPanicOfItHurtsNobody(t *testing.T) {
	s := newSys(t)
	s.model = untilKilled
	pid := s.spawn()
	got := 0
	_ = s.SetHandler(pid, types.SIGINT, func(types.Signal) { got++; panic("oh") })
	_ = s.Signal(pid, types.SIGINT)
	if i, _ := s.Info(pid); got != 1 || i.State != types.StateRunning {
		t.Errorf("handled %d times, %v", got, i.State)
	}
	_ = s.SetHandler(pid, types.SIGINT, nil)
	_ = s.Signal(pid, types.SIGINT)
	if e, _ := s.Wait(pid); e.Reason != "interrupted" {
		t.Errorf("%+v", e)
	}
}

func TestSignalTreeReachesEveryLivingDescendant(t *testing.T) {
	s := newSys(t)
	s.model = untilKilled
	root := s.spawn()
	kid := s.spawn(func(o *SpawnOpts) { o.ParentPID = root })
	leaf := s.spawn(func(o *SpawnOpts) { o.ParentPID = kid })
	other := s.spawn()
	if n, err := s.SignalTree(root, types.SIGTERM); n != 3 || err != nil {
		t.Fatalf("%d %v", n, err)
	}
	for _, p := range []types.PID{leaf, kid, root} {
		if e, err := s.Wait(p); err != nil || e.Reason != "terminated" {
			t.Errorf("%d: %v %v", p, e, err)
		}
	}
	if i, _ := s.Info(other); i.State != types.StateRunning {
		t.Error("a stranger was hit")
	}
}

func TestOrphansLiveOnUnderPIDZero(t *testing.T) {
	s := newSys(t)
	s.model = untilKilled
	parent := s.spawn()
	child := s.spawn(func(o *SpawnOpts) { o.ParentPID = parent })
	_ = s.Kill(parent, types.SIGKILL)
	s.await(parent, event.Reaped)
	if i, err := s.Info(child); err != nil || i.State != types.StateRunning || i.PPID != 0 {
		t.Fatalf("%+v %v", i, err)
	}
}

func TestZombieChildWaitsForItsParentAndIsReapedWithIt(t *testing.T) {
	s := newSys(t)
	s.model = func(ctx context.Context, c vfs.Caller, n int) (reply, error) {
		if c.PID == 1 {
			return untilKilled(ctx, c, n)
		}
		return reply{Content: "x"}, nil
	}
	parent := s.spawn()
	child := s.spawn(func(o *SpawnOpts) { o.ParentPID = parent })
	p, _ := s.Process(child)
	<-p.Left()
	if i, _ := s.Info(child); i.State != types.StateZombie {
		t.Errorf("state %v", i.State)
	}
	_ = s.Kill(parent, types.SIGTERM)
	<-p.Gone()
	if e, err := s.Wait(child); err != nil || e.Code != 0 {
		t.Errorf("%v %v", e, err)
	}
}

func TestStateMachine(t *testing.T) { // 003 §7.2
	log := event.New(16)
	legal := map[[2]types.ProcessState]bool{{0, 1}: true, {1, 2}: true, {2, 3}: true}
	for from := types.StateCreated; from <= types.StateDead; from++ {
		for to := types.StateCreated; to <= types.StateDead; to++ {
			p := &Process{state: from}
			p.mu.Lock()
			err := p.transitionLocked(to, log, time.Now())
			if (err == nil) != legal[[2]types.ProcessState{from, to}] {
				t.Errorf("%v to %v: %v", from, to, err)
			}
			if err != nil && (types.CodeOf(err) != types.ErrInternal || p.state != from) {
				t.Errorf("%v to %v: %v, now %v", from, to, err, p.state)
			}
			p.mu.Unlock()
		}
	}
}

func TestReapStepsAreTheTwelveOfTheSpecification(t *testing.T) {
	var names []string
	for _, s := range reapSteps {
		names = append(names, s.name)
	}
	if len(names) != 12 || names[0] != "handleOrphanChildren" || names[11] != "RemoveProcess" {
		t.Errorf("%q", names)
	}
}

func TestReapClearsThreadsCoroutinesAndMailbox(t *testing.T) {
	s := newSys(t)
	asked := make(chan struct{})
	s.model = func(ctx context.Context, c vfs.Caller, n int) (reply, error) {
		close(asked) // from now on the loop takes no message
		return untilKilled(ctx, c, n)
	}
	pid := s.spawn()
	<-asked
	p, _ := s.Process(pid)
	threadDone := make(chan struct{})
	if _, err := p.SpawnThread("t", func(t *Thread) { <-t.Context().Done(); close(threadDone) }); err != nil {
		t.Fatal(err)
	}
	unwound := false
	co, err := p.SpawnCoroutine("c", func(c *Coroutine) {
		defer func() { unwound = true }()
		for i := 0; ; i++ {
			c.Yield(i)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for want := range 3 {
		if v, err := p.ResumeCoroutine(co); err != nil || v != want {
			t.Fatalf("%v %v", v, err)
		}
	}
	if err := s.Send(0, pid, []byte("hi")); err != nil {
		t.Fatal(err)
	}
	if m, err := s.Recv(pid); err != nil || string(m.Data) != "hi" {
		t.Fatalf("%v %v", m, err)
	}
	recv := make(chan error, 1)
	go func() { _, err := s.Recv(pid); recv <- err }()
	_ = s.Kill(pid, types.SIGTERM)
	if _, err := s.Wait(pid); err != nil {
		t.Fatal(err)
	}
	<-threadDone
	if err := <-recv; types.CodeOf(err) != types.ErrBrokenPipe && types.CodeOf(err) != types.ErrNotFound {
		t.Errorf("recv: %v", err)
	}
	if !unwound {
		t.Error("the coroutine was not ended")
	}
	if _, err := p.SpawnThread("late", func(*Thread) {}); types.CodeOf(err) != types.ErrCancelled {
		t.Errorf("late thread: %v", err)
	}
}

func TestGroupSignalReachesItsMembersOnly(t *testing.T) {
	s := newSys(t)
	s.model = untilKilled
	a, b, c := s.spawn(), s.spawn(), s.spawn()
	for _, p := range []types.PID{b, a, a} {
		if err := s.JoinGroup(p, 5); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := s.GetProcGroup(5); err != nil || !slices.Equal(got, []types.PID{a, b}) {
		t.Fatalf("%v %v", got, err)
	}
	if err := s.LeaveGroup(c, 5); types.CodeOf(err) != types.ErrNotFound {
		t.Errorf("%v", err)
	}
	if err := s.SignalGroup(5, types.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for _, p := range []types.PID{a, b} {
		if e, _ := s.Wait(p); e.Reason != "killed" {
			t.Errorf("%d: %v", p, e)
		}
	}
	if _, err := s.GetProcGroup(5); types.CodeOf(err) != types.ErrNotFound {
		t.Errorf("an empty group is left: %v", err)
	}
	if i, _ := s.Info(c); i.State != types.StateRunning {
		t.Error("a stranger was hit")
	}
}

func TestChildOfAModelHasAtMostItsParentsRights(t *testing.T) {
	s := newSys(t, func(c *Config) {
		c.Catalog = agents{load: func(*Process, string) (*agent.Agent, SpawnOpts, error) {
			return &agent.Agent{Manifest: agent.Manifest{Name: "kid", Devices: []string{"/dev/tool", "/dev/fs"}}}, SpawnOpts{}, nil
		}}
	})
	s.tool = func(context.Context, vfs.Caller) (string, error) { return "ran", nil }
	s.model = func(_ context.Context, c vfs.Caller, turn int) (reply, error) {
		switch {
		case c.PID == 1 && turn == 1:
			return reply{Calls: []string{`spawn {"intent":"kid"}`, `spawn {"intent":"kid"}`}}, nil
		case c.PID != 1 && turn == 1:
			return reply{Calls: []string{"tool {}"}}, nil
		}
		return reply{Content: "end"}, nil
	}
	pid := s.spawn(func(o *SpawnOpts) { o.AllowedDevices = []string{"/dev/fs", spawnRight} })
	i, err := s.WaitInfo(t.Context(), pid)
	if err != nil || i.Exit.Code != 0 {
		t.Fatalf("%+v %v", i, err)
	}
	for _, kid := range []types.PID{2, 3} {
		k, err := s.Info(kid)
		if err != nil || k.PPID != pid || !slices.Equal(k.Rights.Allowed, []string{"/dev/fs"}) || slices.Contains(k.Tools, "tool") {
			t.Errorf("%+v %v", k, err)
		}
	}
}

func TestParentCannotHideThatAChildFailed(t *testing.T) {
	s := newSys(t)
	s.model = func(_ context.Context, c vfs.Caller, turn int) (reply, error) {
		switch {
		case c.PID == 1 && turn == 1:
			return reply{Calls: []string{`spawn {"intent":"kid"}`}}, nil
		case c.PID == 2:
			return reply{}, errors.New("no luck")
		}
		return reply{Content: "all is well"}, nil
	}
	i, err := s.WaitInfo(t.Context(), s.spawn())
	if err != nil || !strings.Contains(i.Exit.Reason, "failed child processes: 1") || !strings.Contains(i.Result, "PID 2 ended with 1 (Write /dev/llm/m (pid 2): no luck)") {
		t.Errorf("%+v %v", i, err)
	}
}

func TestAgentsCannotStartAgentsForEver(t *testing.T) {
	s := newSys(t, func(c *Config) { c.Limits.Depth = 3 })
	deepest := types.PID(0)
	var mu sync.Mutex
	s.model = func(_ context.Context, c vfs.Caller, turn int) (reply, error) {
		mu.Lock()
		deepest = max(deepest, c.PID)
		mu.Unlock()
		if turn == 1 {
			return reply{Calls: []string{`spawn {"intent":"again"}`}}, nil
		}
		return reply{Content: "x"}, nil
	}
	if e, err := s.Wait(s.spawn()); err != nil || e.Code != 0 || deepest != 4 {
		t.Errorf("%v %v, %d processes", e, err, deepest)
	}
}

func TestMountsDoNotTurnAllRightsIntoMountsOnly(t *testing.T) {
	mounts := &failingMounts{mounted: map[string]bool{}}
	s := newSys(t, func(c *Config) { c.Mounts = mounts })
	s.model = untilKilled
	ag := func(devices []string) *agent.Agent {
		return &agent.Agent{Manifest: agent.Manifest{Devices: devices}, MCPConfigs: []agent.MCPServer{{Name: "x"}}}
	}
	for name, c := range map[string]struct {
		devices, allow, deny []string
		tool, mount          bool
	}{
		"all":             {nil, nil, nil, true, true},
		"agent's list":    {[]string{"/dev/tool"}, nil, nil, true, true},
		"call's list":     {nil, []string{"/dev/tool"}, nil, true, false},
		"call covers mcp": {nil, []string{"/mnt/mcp"}, nil, false, true},
		"denied":          {nil, nil, []string{"/mnt/mcp"}, true, false},
		"nothing":         {nil, []string{}, nil, false, false},
	} {
		pid, err := s.Spawn("x", ag(c.devices), opts(func(o *SpawnOpts) { o.AllowedDevices, o.DeniedDevices = c.allow, c.deny }))
		if err != nil {
			t.Fatal(err)
		}
		p, _ := s.Process(pid)
		path := fmt.Sprintf("/mnt/mcp/%d-x", pid)
		if got := mayOpen(p, "/dev/tool") == nil; got != c.tool {
			t.Errorf("%s: tool %v", name, got)
		}
		if got := mayOpen(p, path) == nil; got != c.mount || mounts.mounted[path] != c.mount {
			t.Errorf("%s: mount %v, mounted %v", name, got, mounts.mounted[path])
		}
		if mayOpen(p, "/mnt/mcp/999-x") == nil {
			t.Errorf("%s: another process's server is open", name)
		}
		_ = s.Kill(pid, types.SIGKILL)
		if _, err := s.Wait(pid); err != nil {
			t.Fatal(err)
		}
		if mounts.mounted[path] {
			t.Errorf("%s: still mounted after the end", name)
		}
	}
}

func TestExplicitZeroStepsWinsOverTheAgent(t *testing.T) {
	s := newSys(t)
	s.model = untilKilled
	seven, zero := 7, 0
	ag := &agent.Agent{Manifest: agent.Manifest{MaxSteps: &seven}}
	for want, o := range map[int]*int{7: nil, 0: &zero} {
		pid, err := s.Spawn("x", ag, opts(func(so *SpawnOpts) { so.MaxSteps = o }))
		if err != nil {
			t.Fatal(err)
		}
		if i, _ := s.Info(pid); i.MaxSteps != want {
			t.Errorf("%d, want %d", i.MaxSteps, want)
		}
	}
}

func TestBudgetExceededIsExitCodeTwo(t *testing.T) {
	s := newSys(t)
	s.tool = func(context.Context, vfs.Caller) (string, error) { return "", nil }
	s.model = func(context.Context, vfs.Caller, int) (reply, error) {
		return reply{Calls: []string{"tool {}"}, Tokens: 40}, nil
	}
	n := 100
	i, _ := s.WaitInfo(t.Context(), s.spawn(func(o *SpawnOpts) { o.ContextBudget = &n }))
	if i.Exit.Code != 2 || i.Exit.Reason != "budget_exceeded" || i.TokensUsed != 120 {
		t.Errorf("%+v", i)
	}
}

func TestStoppingTheKernelIsNotKillingAgents(t *testing.T) {
	s := newSys(t)
	s.model = untilKilled
	pid := s.spawn()
	s.await(pid, event.StepStarted)
	p, _ := s.Process(pid)
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	i, err := s.Info(pid)
	if err != nil || i.Exit != nil || !i.Suspended {
		t.Errorf("%+v %v", i, err)
	}
	if k := s.stores.of(p.UUID).kinds(); !strings.HasSuffix(k, "daemon_stop") || strings.Contains(k, "exit") {
		t.Errorf("recorded %s", k)
	}
	last := s.stores.infos[len(s.stores.infos)-1]
	if !last.Suspended || last.SuspendReason == "" || last.Exit != nil {
		t.Errorf("proc-info %+v", last)
	}
	if _, err := s.Spawn("x", nil, opts()); types.CodeOf(err) != types.ErrUnavailable {
		t.Errorf("spawn after the stop: %v", err)
	}
}

func TestUnwritableRecordEndsTheProcessAndSaysSo(t *testing.T) {
	s := newSys(t)
	s.tool = func(_ context.Context, c vfs.Caller) (string, error) {
		s.stores.of(c.UUID).fail = types.Errorf(types.ErrStorage, "Commit", "steps.jsonl", "no space left on device")
		return "", nil
	}
	s.model = func(context.Context, vfs.Caller, int) (reply, error) { return reply{Calls: []string{"tool {}"}}, nil }
	pid := s.spawn()
	e, _ := s.Wait(pid)
	if e.Code != 1 || types.CodeOf(e.Err) != types.ErrStorage {
		t.Errorf("%+v", e)
	}
	s.await(pid, event.StorageError)
}

// recorder notes the calls of KernelCallbacks.
type recorder struct {
	mu   sync.Mutex
	said []string // +checklocks:mu
}

func (r *recorder) add(f string, a ...any) {
	r.mu.Lock()
	r.said = append(r.said, fmt.Sprintf(f, a...))
	r.mu.Unlock()
}
func (r *recorder) OnSpawn(p types.PID, intent, provider, model string) {
	r.add("spawn %d %s %s/%s", p, intent, provider, model)
}
func (r *recorder) OnStep(p types.PID, n, total int) { r.add("step %d %d/%d", p, n, total) }
func (r *recorder) OnComplete(p types.PID, result string, e types.ExitStatus) {
	r.add("complete %d %s %v", p, result, e)
}
func (r *recorder) OnError(p types.PID, err error) { r.add("error %d %v", p, err) }

func TestCallbacksComeInOrder(t *testing.T) {
	s := newSys(t)
	r := &recorder{}
	k := New(s.cfg, r)
	s.model = finish("fine")
	if _, err := k.Spawn("do it", nil, opts(func(o *SpawnOpts) { o.Model = "big" })); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Wait(1); err != nil {
		t.Fatal(err)
	}
	if err := k.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{"spawn 1 do it m/big", "step 1 1/50", "complete 1 fine 0 (completed)"}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.said, want) {
		t.Errorf("%q", r.said)
	}
}

func TestHundredsAtOnce(t *testing.T) {
	s := newSys(t)
	s.tool = func(context.Context, vfs.Caller) (string, error) { return "", nil }
	s.model = func(_ context.Context, _ vfs.Caller, turn int) (reply, error) {
		if turn < 5 {
			return reply{Calls: []string{"tool {}"}}, nil
		}
		return reply{Content: "x"}, nil
	}
	var wg sync.WaitGroup
	for range 300 {
		wg.Go(func() {
			pid, err := s.Spawn("x", nil, opts())
			if err != nil {
				t.Error(err)
				return
			}
			if pid%3 == 0 {
				_ = s.Signal(pid, types.SIGPAUSE)
				_ = s.Signal(pid, types.SIGRESUME)
			}
			if e, err := s.Wait(pid); err != nil || e.Code != 0 {
				t.Errorf("%d: %v %v", pid, e, err)
			}
		})
	}
	wg.Wait()
	if n := len(s.List()); n != 0 {
		t.Errorf("%d are left", n)
	}
}
