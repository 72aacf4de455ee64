// Package peers measures the kernel beside bare Go and beside others, in one program and in the same
// rounds, so that a figure is a comparison and not a memory. It is a module of its own: what is only
// compared with is not built into the product. See README.md for what each subject does.
//
//	go run ./internal/benchtable -peers     in the directory above: measures and writes the page
//	go test -run '^$' -bench .              here: the plain figures
package peers

import (
	"context"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rnixctx "rnix/context"
	"rnix/internal/event"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/kernel"
	"rnix/types"
	"rnix/vfs"
)

// many is how many take part where one has to do with many.
const many = 1000

// body runs a process of ours: a function of its context, in place of a model's reasoning.
type body struct {
	run func(ctx context.Context, k *kernel.KernelImpl, p *kernel.Process)
	k   *kernel.KernelImpl
	p   *kernel.Process
}

// Attach implements kernel.Body.
func (o *body) Attach(self kernel.Self, _ *recovery.State) error {
	o.k, o.p = self.Kernel(), self.Process()
	return nil
}

// Record implements kernel.Body.
func (o *body) Record() (step.BodyRecord, error) { return step.BodyRecord{Kind: "bench"}, nil }

// Run implements kernel.Body.
func (o *body) Run(ctx context.Context) kernel.End {
	o.run(ctx, o.k, o.p)
	return kernel.End{Cause: context.Cause(ctx), Exit: types.ExitStatus{Reason: types.ReasonCompleted}}
}

// Joined implements kernel.Body.
func (o *body) Joined(*kernel.Process) {}

// Ended implements kernel.Body.
func (o *body) Ended(*kernel.Process) {}

// newKernel makes a kernel as the daemon does, without devices and without a disk.
func newKernel(b *testing.B) *kernel.KernelImpl {
	b.Helper()
	k := kernel.New(kernel.Config{Devices: vfs.NewDeviceRegistry(), Contexts: rnixctx.NewManager(), Events: event.New(0),
		Limits: kernel.Limits{Depth: 1 << 20, Children: 1 << 20, Family: 1 << 20, SpawnRate: 1 << 20}}, nil)
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := k.Shutdown(ctx); err != nil {
			b.Error(err)
		}
	})
	return k
}

// spawn starts a process of ours below parent; 0 = on its own.
func spawn(b *testing.B, k *kernel.KernelImpl, parent types.PID, run func(context.Context, *kernel.KernelImpl, *kernel.Process)) types.PID {
	pid, err := k.Spawn("bench", nil, kernel.SpawnOpts{ParentPID: parent, WorkDir: "/", Body: &body{run: run}})
	if err != nil {
		b.Fatal(err)
	}
	return pid
}

// idle is the run of a process that waits for its end.
func idle(ctx context.Context, _ *kernel.KernelImpl, _ *kernel.Process) { <-ctx.Done() }

// newSystem makes a system of actors that writes no log lines.
func newSystem(b *testing.B) *actor.ActorSystem {
	b.Helper()
	s := actor.NewActorSystemWithConfig(actor.Configure(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	})))
	b.Cleanup(s.Shutdown)
	return s
}

// meter counts the wall clock and the processor time between start and stop. Beside other programs the
// latter is steadier.
type meter struct {
	b   *testing.B
	cpu time.Duration
	sum time.Duration
}

func (m *meter) start() { m.cpu = cpuTime(); m.b.StartTimer() }

func (m *meter) stop() { m.b.StopTimer(); m.sum += cpuTime() - m.cpu }

// measure begins a benchmark whose preparation is not to be counted: until start.
func measure(b *testing.B) *meter {
	b.ReportAllocs()
	b.StopTimer()
	b.ResetTimer()
	return &meter{b: b}
}

// report gives the figures for each of n things that an iteration has done.
func (m *meter) report(n int) {
	each := float64(m.b.N) * float64(n)
	m.b.ReportMetric(float64(m.sum.Nanoseconds())/each, "cpu-ns/each")
	m.b.ReportMetric(float64(m.b.Elapsed().Nanoseconds())/each, "ns/each")
}

// cpuTime is what this program has used of the processors.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // cannot fail
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// rss is the resident set of this program in bytes.
func rss() int64 {
	b, _ := os.ReadFile("/proc/self/statm")
	f := strings.Fields(string(b))
	if len(f) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(f[1], 10, 64)
	return pages * int64(os.Getpagesize())
}
