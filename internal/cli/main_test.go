package cli

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"rnix/internal/event"
	"rnix/internal/sandbox"
	"rnix/ipc"
	"rnix/runtime/statehome"
	"rnix/types"
)

var update = flag.Bool("update", false, "write the golden files anew")

// roleEnv makes the test binary play the program.
const roleEnv = "CLI_TEST_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(roleEnv) == "rnix" {
		os.Exit(Main(context.Background(), Host{Args: os.Args[1:]}))
	}
	if len(os.Args) > 1 && os.Args[1] == sandbox.Word { // as main does
		os.Exit(sandbox.Helper(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == "daemon" { // a command of a test has started one: it would run all tests again, without end
		fmt.Fprintln(os.Stderr, "a test of the command line starts no daemon")
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// fake is a daemon whose answers a test sets. What is not set is answered with the zero value.
type fake struct {
	t       *testing.T
	env     []string
	dir     string
	server  *ipc.Server
	stopped func()

	spawn  func(context.Context, ipc.SpawnRequest) (ipc.SpawnResponse, error)
	wait   func(context.Context, ipc.WaitRequest) (ipc.WaitResponse, error)
	resume func(ipc.ResumeRequest) (ipc.ResumeResponse, error)
	signal func(tree bool, r ipc.SignalRequest) (ipc.SignalResponse, error)
	events func(context.Context, ipc.EventsRequest, *ipc.Stream) error
	procs  []ipc.Proc
	hidden int
	steps  ipc.ListStepsResponse
	pages  func(ipc.StepsRequest) (ipc.ListStepsResponse, error) // instead of steps
	detail ipc.StepDetail
	slow   bool // the detail does not come
	status ipc.Status
	provs  ipc.ProvidersResponse
	agents ipc.AgentsResponse
	skills ipc.SkillsResponse
	mcps   ipc.MCPListResponse
	tools  ipc.MCPTestResponse
	path   func(op string, r ipc.PathRequest) (ipc.PathResponse, error)
	list   ipc.ListPathResponse
	more   func(*ipc.Server) // adds methods
	proc   func(target string) (ipc.ProcDetail, error)

	mu sync.Mutex
	// +checklocks:mu
	seen []string // what was called, in a word or two
}

// home makes a private place for one installation; its name is short, since a socket lies in it.
func home(t *testing.T) (dir string, env []string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "cli")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir, []string{"HOME=" + dir, "XDG_RUNTIME_DIR=" + dir + "/run", "PATH=/usr/bin:/bin", "TERM=xterm", EnvDaemonWait + "=0"}
}

func newFake(t *testing.T) *fake {
	dir, env := home(t)
	f := &fake{t: t, dir: dir, env: env}
	return f
}

// serve starts the daemon, until the test ends.
func (f *fake) serve() *fake {
	f.t.Helper()
	places, err := statehome.Find(lookupIn(f.env), "")
	if err != nil {
		f.t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(f.dir, "run"), 0o700); err != nil {
		f.t.Fatal(err)
	}
	l, err := ipc.Listen(places.Socket)
	if err != nil {
		f.t.Fatal(err)
	}
	s := ipc.NewServer(ipc.ServerOptions{})
	f.server = s
	f.handle(s)
	if f.more != nil {
		f.more(s)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }() // ends with Shutdown below
	f.stopped = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			f.t.Error(err)
		}
		if err := <-served; err != nil {
			f.t.Error(err)
		}
	})
	f.t.Cleanup(f.stopped)
	return f
}

func (f *fake) note(s string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = append(f.seen, s)
}

func (f *fake) calls() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.seen, "; ")
}

func answer[Req, Resp any](s *ipc.Server, m ipc.Method[Req, Resp], fn func(context.Context, Req) (Resp, error)) {
	ipc.Handle(s, m, func(ctx context.Context, _ *ipc.Peer, r Req) (Resp, error) { return fn(ctx, r) })
}

func value[Req, Resp any](s *ipc.Server, m ipc.Method[Req, Resp], v *Resp) {
	answer(s, m, func(context.Context, Req) (Resp, error) { return *v, nil })
}

func (f *fake) handle(s *ipc.Server) {
	answer(s, ipc.Ping, func(context.Context, ipc.Empty) (ipc.PingResponse, error) {
		return ipc.PingResponse{PID: 1, Version: "dev"}, nil
	})
	answer(s, ipc.ListProcs, func(_ context.Context, r ipc.ListRequest) (ipc.ListResponse, error) {
		f.note("list")
		return ipc.ListResponse{Procs: f.procs, Hidden: f.hidden}, nil
	})
	answer(s, ipc.Spawn, func(ctx context.Context, r ipc.SpawnRequest) (ipc.SpawnResponse, error) {
		f.note("spawn " + r.Intent)
		return f.spawn(ctx, r)
	})
	answer(s, ipc.Resume, func(_ context.Context, r ipc.ResumeRequest) (ipc.ResumeResponse, error) {
		f.note("resume " + r.Target)
		return f.resume(r)
	})
	answer(s, ipc.ListResumable, func(_ context.Context, r ipc.ListRequest) (ipc.ListResponse, error) {
		f.note(fmt.Sprint("list_resumable ", r.Limit))
		return ipc.ListResponse{Procs: f.procs, Hidden: f.hidden}, nil
	})
	answer(s, ipc.Wait, func(ctx context.Context, r ipc.WaitRequest) (ipc.WaitResponse, error) { return f.wait(ctx, r) })
	answer(s, ipc.Signal, func(_ context.Context, r ipc.SignalRequest) (ipc.SignalResponse, error) {
		f.note("signal " + r.Target + " " + r.Signal.String())
		return f.signal(false, r)
	})
	answer(s, ipc.SignalTree, func(_ context.Context, r ipc.SignalRequest) (ipc.SignalResponse, error) {
		f.note("signal_tree " + r.Target + " " + r.Signal.String())
		return f.signal(true, r)
	})
	ipc.HandleStream(s, ipc.Events, func(ctx context.Context, _ *ipc.Peer, r ipc.EventsRequest, out *ipc.Stream) error {
		if err := out.Start(); err != nil {
			return err
		}
		return f.events(ctx, r, out)
	})
	answer(s, ipc.ListSteps, func(_ context.Context, r ipc.StepsRequest) (ipc.ListStepsResponse, error) {
		if f.pages == nil {
			return f.steps, nil
		}
		return f.pages(r)
	})
	answer(s, ipc.GetStepDetail, func(ctx context.Context, r ipc.StepRequest) (ipc.StepDetail, error) {
		f.note(fmt.Sprintf("detail of step %d", r.Step))
		if f.slow {
			<-ctx.Done()
		}
		return f.detail, context.Cause(ctx)
	})
	value(s, ipc.DaemonStatus, &f.status)
	value(s, ipc.Providers, &f.provs)
	value(s, ipc.ListAgents, &f.agents)
	value(s, ipc.ListSkills, &f.skills)
	value(s, ipc.MCPList, &f.mcps)
	value(s, ipc.MCPTest, &f.tools)
	value(s, ipc.ListPath, &f.list)
	answer(s, ipc.ReadPath, func(_ context.Context, r ipc.PathRequest) (ipc.PathResponse, error) { return f.path("read", r) })
	answer(s, ipc.WritePath, func(_ context.Context, r ipc.PathRequest) (ipc.PathResponse, error) { return f.path("write", r) })
	answer(s, ipc.GetProcDetail, func(_ context.Context, r ipc.TargetRequest) (ipc.ProcDetail, error) {
		if f.proc == nil {
			return ipc.ProcDetail{}, types.Errorf(types.ErrNotFound, "Find", r.Target, "no such process")
		}
		return f.proc(r.Target)
	})
}

// ran is what a run of the program did.
type ran struct {
	code     int
	out, err string
}

// run runs the program in this process.
func (f *fake) run(args ...string) ran { return f.runIn(strings.NewReader(""), nil, args...) }

func (f *fake) runIn(in *strings.Reader, env []string, args ...string) ran {
	f.t.Helper()
	var out, err bytes.Buffer
	code := Main(f.t.Context(), Host{Args: append([]string{}, args...), In: in, Out: &out, Err: &err, Environ: append(append([]string{}, f.env...), env...), Dir: f.dir})
	return ran{code, out.String(), err.String()}
}

// golden compares text with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", name, d)
	}
}

func id(n byte) types.UUID { return types.UUID{1, 0x91, 0xf3, 0xa2, 0, 0, 0x70, 0, 0x80, 15: n} }

// theRun makes the fake one process, PID 3, that emits events and then ends.
func (f *fake) theRun(events []ipc.Event, end ipc.WaitResponse) {
	done := make(chan struct{})
	end.PID, end.UUID = 3, id(3)
	f.spawn = func(context.Context, ipc.SpawnRequest) (ipc.SpawnResponse, error) {
		return ipc.SpawnResponse{PID: 3, UUID: id(3), Provider: "deepseek", Model: "v4-flash", Why: "asked for", MaxSteps: 10, Seq: 100}, nil
	}
	f.events = func(_ context.Context, r ipc.EventsRequest, out *ipc.Stream) error {
		if r.Target != id(3).String() || r.From != 101 || !r.Tree || !r.Follow || !r.UntilEnd {
			f.t.Errorf("events were asked for with %+v", r)
		}
		defer close(done)
		for i := range events {
			e := &events[i]
			e.Seq = uint64(101 + i)
			if e.PID == 0 {
				e.PID, e.UUID = 3, id(3)
			}
			if len(r.Kinds) > 0 && !contains(r.Kinds, e.Kind) {
				continue
			}
			if err := out.SendRaw(e.Seq, string(e.Kind), event.AppendJSON(nil, (*event.Event)(e))); err != nil {
				return err
			}
		}
		return nil
	}
	f.wait = func(ctx context.Context, _ ipc.WaitRequest) (ipc.WaitResponse, error) {
		select {
		case <-done:
		case <-ctx.Done():
		}
		return end, context.Cause(ctx)
	}
}

func contains(kinds []event.Kind, k event.Kind) bool {
	for _, x := range kinds {
		if x == k {
			return true
		}
	}
	return false
}

// client is a connection to the daemon, until the test ends.
func (f *fake) client() *ipc.Client {
	f.t.Helper()
	places, err := statehome.Find(lookupIn(f.env), "")
	if err != nil {
		f.t.Fatal(err)
	}
	c, err := ipc.Connect(f.t.Context(), places.Socket)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = c.Close() })
	return c
}
