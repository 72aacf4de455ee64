package kernel

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/durable"
	"rnix/internal/event"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/internal/store"
	"rnix/kernel/internal/loop"
	"rnix/types"
	"rnix/vfs"
)

// constant is a file that answers every write with the same bytes.
type constant struct {
	answer []byte
	ready  bool
}

func (c *constant) Write(context.Context, []byte) error { c.ready = true; return nil }
func (c *constant) Read(int) ([]byte, error) {
	if !c.ready {
		return nil, io.EOF
	}
	c.ready = false
	return c.answer, nil
}
func (c *constant) Close() error                { return nil }
func (c *constant) Stat() (vfs.FileStat, error) { return vfs.FileStat{}, nil }

// parked is a model that answers when it is cancelled.
type parked struct {
	constant
	asked *atomic.Int64 // how often models of this kind were asked
}

func (p *parked) Write(ctx context.Context, _ []byte) error {
	p.asked.Add(1)
	<-ctx.Done()
	return ctx.Err()
}

// until returns when n models were asked: from then on nobody but they work.
func until(asked *atomic.Int64, n int64) {
	for asked.Load() < n {
		runtime.Gosched()
	}
}

// toolAnswer makes a step add about half a KiB to the conversation.
var toolAnswer = bytes.Repeat([]byte("a line of some file\n"), 20)

func benchKernel(b testing.TB, store Store) *KernelImpl {
	b.Helper()
	k, _ := benchParked(b, store)
	return k
}

// benchParked also returns how often models were asked that do not answer.
func benchParked(b testing.TB, store Store) (*KernelImpl, *atomic.Int64) {
	b.Helper()
	asked := new(atomic.Int64)
	devs := vfs.NewDeviceRegistry()
	text := []byte(`{"content":"done","usage":{"input_tokens":1,"output_tokens":1}}`)
	for path, f := range map[string]vfs.VFSFileFactory{
		"/dev/llm/instant": func(string, vfs.OpenFlag) (vfs.VFSFile, error) { return &constant{answer: text}, nil },
		"/dev/llm/parked":  func(string, vfs.OpenFlag) (vfs.VFSFile, error) { return &parked{asked: asked}, nil },
	} {
		if err := devs.Register(path, f); err != nil {
			b.Fatal(err)
		}
	}
	tool := vfs.Tool{Name: "tool", Path: "/dev/tool", Schema: json.RawMessage(`{"type":"object"}`), Effect: vfs.EffectExternal}
	if err := devs.RegisterTools("/dev/tool", func(string, vfs.OpenFlag) (vfs.VFSFile, error) { return &constant{answer: toolAnswer}, nil }, []vfs.Tool{tool}); err != nil {
		b.Fatal(err)
	}
	k := New(Config{Devices: devs, Contexts: rnixctx.NewManager(), Events: event.New(0), Store: store, Limits: Limits{Children: 1 << 20, Family: 1 << 20, SpawnRate: 1 << 30}}, nil)
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := k.Shutdown(ctx); err != nil {
			b.Error(err)
		}
	})
	return k, asked
}

func benchSpawn(b *testing.B, k *KernelImpl, provider string, parent types.PID) types.PID {
	pid, err := k.Spawn("x", nil, SpawnOpts{ProcSpec: types.ProcSpec{Provider: provider}, WorkDir: "/", ParentPID: parent})
	if err != nil {
		b.Fatal(err)
	}
	return pid
}

// waiter is a body that waits: for the end of its process, and at its gate while that is shut.
type waiter struct {
	self  Self
	moved chan struct{} // room for one: the gate has moved
	asked *atomic.Int64 // how often such bodies have begun to wait
}

func (w *waiter) Attach(self Self, _ *recovery.State) error {
	w.self = self
	return nil
}
func (w *waiter) Record() (step.BodyRecord, error) { return step.BodyRecord{Kind: "waiter"}, nil }
func (w *waiter) Joined(*Process)                  {}
func (w *waiter) Ended(*Process)                   {} // reaped when this one has ended
func (w *waiter) GateMoved() {
	select {
	case w.moved <- struct{}{}:
	default:
	}
}

func (w *waiter) Run(ctx context.Context) End {
	w.asked.Add(1)
	for {
		if err := w.self.WaitIfPaused(ctx); err != nil {
			return End{Cause: err}
		}
		select {
		case <-w.moved:
		case <-ctx.Done():
			return End{Cause: context.Cause(ctx)}
		}
	}
}

// ender is a body that ends at once.
type ender struct{}

func (ender) Attach(Self, *recovery.State) error { return nil }
func (ender) Record() (step.BodyRecord, error)   { return step.BodyRecord{Kind: "ender"}, nil }
func (ender) Joined(*Process)                    {}
func (ender) Ended(*Process)                     {}
func (ender) Run(context.Context) End            { return End{} }

// benchWait starts a process that waits: an agent for its model, or a body.
func benchWait(b *testing.B, k *KernelImpl, asked *atomic.Int64, body bool, parent types.PID) types.PID {
	if !body {
		return benchSpawn(b, k, "parked", parent)
	}
	pid, err := k.Spawn("x", nil, SpawnOpts{WorkDir: "/", ParentPID: parent, Body: &waiter{moved: make(chan struct{}, 1), asked: asked}})
	if err != nil {
		b.Fatal(err)
	}
	return pid
}

// kinds are those processes by whose cost the cost of an agent can be told from that of a process.
var kinds = map[string]bool{"rnix": false, "bodies": true}

// Row 1 of performance.md. An agent of ours also asks a model once; a body and the baseline do not.
func BenchmarkSpawnExitWait(b *testing.B) {
	b.Run("goroutine", func(b *testing.B) {
		b.ReportAllocs()
		var cpu meter
		cpu.start()
		for range b.N {
			done := make(chan struct{})
			go func() { close(done) }()
			<-done
		}
		cpu.stop()
		cpu.report(b)
	})
	for name, body := range kinds {
		b.Run(name, func(b *testing.B) {
			k := benchKernel(b, nil)
			b.ReportAllocs()
			opts := SpawnOpts{ProcSpec: types.ProcSpec{Provider: "instant"}, WorkDir: "/"}
			var cpu meter
			cpu.start()
			for b.Loop() {
				if body {
					opts.Body = ender{}
				}
				pid, err := k.Spawn("x", nil, opts)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := k.Wait(pid); err != nil {
					b.Fatal(err)
				}
			}
			cpu.stop()
			cpu.report(b)
		})
	}
}

// Row 2: what a process costs that waits for its model, and what the garbage collector has to do when
// there are so many of them. Memory that an earlier benchmark left behind spoils the resident set: run
// each alone, once.
func BenchmarkIdleProcess(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) { benchIdle(b, n) })
	}
}

func benchIdle(b *testing.B, n int) {
	perProc := func(b *testing.B, make func() (stop func())) {
		for range b.N {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			resident, heap := rss(), m.HeapAlloc
			stop := make()
			start := time.Now()
			runtime.GC()
			b.ReportMetric(float64(time.Since(start).Nanoseconds()), "GC-ns")
			runtime.ReadMemStats(&m)
			b.ReportMetric(float64(rss()-resident)/float64(n), "RSS-B/proc")
			b.ReportMetric(float64(m.HeapAlloc-heap)/float64(n), "heap-B/proc")
			stop()
		}
	}
	b.Run("goroutine", func(b *testing.B) {
		perProc(b, func() func() {
			end := make(chan struct{})
			for range n {
				go func() { <-end }()
			}
			return func() { close(end) }
		})
	})
	b.Run("rnix", func(b *testing.B) {
		perProc(b, func() func() {
			k := benchKernel(b, nil)
			pids := make([]types.PID, n)
			for i := range pids {
				pids[i] = benchSpawn(b, k, "parked", 0)
			}
			return func() {
				for _, p := range pids {
					_ = k.Kill(p, types.SIGKILL)
				}
				for _, p := range pids {
					_, _ = k.Wait(p)
				}
			}
		})
	})
}

// rss reads the resident set of this program in bytes.
func rss() int64 {
	b, _ := os.ReadFile("/proc/self/statm")
	f := strings.Fields(string(b))
	if len(f) < 2 {
		return 0
	}
	var pages int64
	_ = json.Unmarshal([]byte(f[1]), &pages)
	return pages * int64(os.Getpagesize())
}

// meter counts processor time. Beside other programs it is steadier than the clock on the wall.
type meter struct{ at, sum time.Duration }

func (m *meter) start() { m.at = cpuTime() }
func (m *meter) stop()  { m.sum += cpuTime() - m.at }

// report gives the time for each operation.
func (m *meter) report(b *testing.B) {
	b.ReportMetric(float64(m.sum.Nanoseconds())/float64(b.N), "cpu-ns/op")
}

// cpuTime is what this program has used of the processors.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // cannot fail
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Row 4: a signal to each of 1,000 members of a group.
func BenchmarkSignalGroup1000(b *testing.B) {
	const n = 1000
	b.Run("channels", func(b *testing.B) {
		chans := make([]chan int, n)
		for i := range chans {
			chans[i] = make(chan int)
			go func() {
				for range chans[i] {
				}
			}()
		}
		var cpu meter
		cpu.start()
		for b.Loop() {
			for _, c := range chans {
				c <- 1
			}
		}
		cpu.stop()
		cpu.report(b)
		for _, c := range chans {
			close(c)
		}
	})
	for name, body := range kinds {
		b.Run(name, func(b *testing.B) {
			k, asked := benchParked(b, nil)
			for range n {
				if err := k.JoinGroup(benchWait(b, k, asked, body, 0), 1); err != nil {
					b.Fatal(err)
				}
			}
			until(asked, n)
			sig := types.SIGPAUSE
			var cpu meter
			cpu.start()
			for b.Loop() {
				if err := k.SignalGroup(1, sig); err != nil {
					b.Fatal(err)
				}
				sig = types.SIGPAUSE + types.SIGRESUME - sig
			}
			cpu.stop()
			cpu.report(b)
		})
	}
}

// Row 5: kill a tree of 1,000 processes (fan-out 10), of which each waits, and wait until every one has ended.
func BenchmarkKillTree1000(b *testing.B) {
	b.Run("contexts", func(b *testing.B) {
		var cpu meter
		for b.Loop() {
			killContexts(b, &cpu)
		}
		cpu.report(b)
	})
	for name, body := range kinds {
		b.Run(name, func(b *testing.B) {
			k, asked := benchParked(b, nil)
			var cpu meter
			for b.Loop() {
				killProcesses(b, k, asked, body, &cpu)
			}
			cpu.report(b)
		})
	}
}

// killed is how many a tree has that is killed.
const killed = 1000

// killContexts makes a tree and ends it, and measures the end.
func killContexts(b *testing.B, cpu *meter) {
	b.StopTimer()
	root, cancel := context.WithCancel(context.Background())
	ctxs := []context.Context{root}
	done := make(chan struct{}, killed)
	for i := 1; i < killed; i++ {
		c, cc := context.WithCancel(ctxs[(i-1)/10])
		ctxs = append(ctxs, c)
		defer cc()
	}
	var waiting sync.WaitGroup
	waiting.Add(killed)
	for _, c := range ctxs {
		go func() { waiting.Done(); <-c.Done(); done <- struct{}{} }()
	}
	waiting.Wait()
	runtime.GC() // what the start has left behind is not the end's
	b.StartTimer()
	cpu.start()
	cancel()
	for range killed {
		<-done
	}
	cpu.stop()
}

// killProcesses is killContexts for agents or bodies.
func killProcesses(b *testing.B, k *KernelImpl, asked *atomic.Int64, body bool, cpu *meter) {
	b.StopTimer()
	asked.Store(0)
	procs := make([]*Process, killed)
	for i := range procs {
		var parent types.PID
		if i > 0 {
			parent = procs[(i-1)/10].PID
		}
		procs[i], _ = k.Process(benchWait(b, k, asked, body, parent))
	}
	until(asked, killed)
	runtime.GC()
	b.StartTimer()
	cpu.start()
	if _, err := k.SignalTree(procs[0].PID, types.SIGKILL); err != nil {
		b.Fatal(err)
	}
	for _, p := range procs {
		<-p.Left()
	}
	cpu.stop()
	b.StopTimer()
	for _, p := range procs {
		<-p.Gone()
	}
	b.StartTimer()
}

// fileStore keeps histories on disk, as the daemon does.
type fileStore struct {
	noStore
	j *store.Files
}

type fileRecord struct{ w *step.Writer }

func (s fileStore) Create(id types.UUID) (Recorder, error) {
	l, err := s.j.Acquire(context.Background(), id, "bench")
	return fileRecord{step.NewWriter(s.j, id, l)}, err
}

func (r fileRecord) Add(recs ...step.Record) (err error) {
	for _, rec := range recs {
		switch rec.Kind {
		case step.KindMessage:
			err = r.w.Message(rec.Message)
		case step.KindIntent:
			err = r.w.Intent(rec.Intent)
		case step.KindResult:
			err = r.w.Result(rec.Result)
		case step.KindStep:
			err = r.w.Step(rec.Step)
		case step.KindMarker:
			err = r.w.Marker(rec.Marker)
		}
	}
	return err
}
func (r fileRecord) Commit() error { return r.w.Commit(context.Background()) }
func (r fileRecord) Close() error  { return r.w.Close(context.Background()) }

// steps is a model that calls the tool n times.
type steps struct {
	constant
	left int
}

func (s *steps) Write(context.Context, []byte) error {
	s.ready, s.answer = true, fmt.Appendf(nil, `{"tool_calls":[{"id":"c","name":"tool","input":{"path":"some/file/of/the/project%d.go"}}],"usage":{"input_tokens":100,"output_tokens":20}}`, s.left)
	if s.left--; s.left < 0 {
		s.answer = []byte(`{"content":"done","usage":{"input_tokens":1,"output_tokens":1}}`)
	}
	return nil
}

// bareRun is the loop of an agent as one would write it in an afternoon: ask the model, decode what it
// answers, run the tool, note both. It returns the conversation.
func bareRun(n int) ([]byte, error) {
	model, tool := steps{left: n}, constant{answer: toolAnswer}
	conv := []byte(`{"messages":[`)
	for {
		if err := model.Write(context.Background(), append(conv, "]}"...)); err != nil {
			return nil, err
		}
		answer, err := model.Read(0)
		if err != nil {
			return nil, err
		}
		var resp loop.Response
		if err := json.Unmarshal(answer, &resp); err != nil || len(resp.ToolCalls) == 0 {
			return conv, err
		}
		call := resp.ToolCalls[0]
		if err := tool.Write(context.Background(), call.Input); err != nil {
			return nil, err
		}
		out, err := tool.Read(0)
		if err != nil {
			return nil, err
		}
		for _, m := range []rnixctx.Message{{Role: rnixctx.RoleAssistant, ToolCalls: resp.ToolCalls}, {Role: rnixctx.RoleTool, ToolCallID: call.ID, Content: string(out)}} {
			line, err := json.Marshal(m)
			if err != nil {
				return nil, err
			}
			conv = append(append(conv, line...), ',')
		}
	}
}

// Row 9: a step with an instant model and one instant tool call, at 20 and at 200 steps, with the
// record in memory, written, and synced. The baseline is the same work without a kernel.
func BenchmarkStep(b *testing.B) {
	for _, n := range []int{20, 200} {
		name := map[int]string{20: "20", 200: "200"}[n]
		b.Run("bare/"+name, func(b *testing.B) {
			var size int
			for b.Loop() {
				conv, err := bareRun(n)
				if err != nil {
					b.Fatal(err)
				}
				size = len(conv)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/step")
			b.ReportMetric(float64(size)/float64(n), "B/step") // of the conversation
		})
		for mode, durability := range map[string]step.Durability{"memory": -1, "written": step.Unsynced, "synced": step.Synced} {
			b.Run("rnix-"+mode+"/"+name, func(b *testing.B) {
				var kept Store
				dir := b.TempDir()
				if durability >= 0 {
					j, err := store.Open(durable.OS, dir, durability)
					if err != nil {
						b.Fatal(err)
					}
					b.Cleanup(func() { _ = j.Close() })
					kept = fileStore{j: j}
				}
				k := benchKernel(b, kept)
				if err := k.cfg.Devices.Register("/dev/llm/steps", func(string, vfs.OpenFlag) (vfs.VFSFile, error) { return &steps{left: n}, nil }); err != nil {
					b.Fatal(err)
				}
				var unlimited int
				for b.Loop() {
					pid, err := k.Spawn("x", nil, SpawnOpts{ProcSpec: types.ProcSpec{Provider: "steps", MaxSteps: &unlimited}, WorkDir: "/"})
					if err != nil {
						b.Fatal(err)
					}
					if e, err := k.Wait(pid); err != nil || e.Code != 0 {
						b.Fatal(e, err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/step")
				if durability >= 0 {
					var size int64
					_ = filepath.Walk(dir, func(_ string, i os.FileInfo, err error) error {
						if err == nil && !i.IsDir() {
							size += i.Size()
						}
						return nil
					})
					b.ReportMetric(float64(size)/float64(b.N*n), "B/step")
				}
			})
		}
	}
}
