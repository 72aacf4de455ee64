package peers

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"rnix/kernel"
)

// BenchmarkIdle is the memory of one that waits, and what the garbage collector has to do when there are
// so many. Run each alone, once: what an earlier one has left behind spoils the resident set.
func BenchmarkIdle(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run("bare/"+strconv.Itoa(n), func(b *testing.B) {
			end := make(chan struct{})
			weigh(b, n, func(begun func()) {
				for range n {
					go func() { begun(); <-end }()
				}
			})
			close(end)
		})
		b.Run("rnix/"+strconv.Itoa(n), func(b *testing.B) {
			k := newKernel(b)
			weigh(b, n, func(begun func()) {
				for range n {
					spawn(b, k, 0, func(ctx context.Context, _ *kernel.KernelImpl, _ *kernel.Process) { begun(); <-ctx.Done() })
				}
			})
		})
		b.Run("protoactor/"+strconv.Itoa(n), func(b *testing.B) {
			s := newSystem(b)
			weigh(b, n, func(begun func()) {
				props := actor.PropsFromFunc(func(c actor.Context) {
					if _, ok := c.Message().(*actor.Started); ok {
						begun()
					}
				})
				for range n {
					s.Root.Spawn(props)
				}
			})
		})
	}
}

// weigh measures what there is more after making n of something, each of which calls begun. The figures are
// for the first time only.
func weigh(b *testing.B, n int, fill func(begun func())) {
	if b.N > 1 {
		b.Fatal("run it once: -benchtime 1x")
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	resident, heap := rss(), m.HeapAlloc
	var all sync.WaitGroup
	all.Add(n)
	fill(all.Done)
	all.Wait()
	start, cpu := time.Now(), cpuTime()
	runtime.GC()
	b.ReportMetric(float64(time.Since(start).Nanoseconds()), "GC-ns")
	b.ReportMetric(float64((cpuTime() - cpu).Nanoseconds()), "GC-cpu-ns")
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(rss()-resident)/float64(n), "RSS-B/each")
	b.ReportMetric(float64(m.HeapAlloc-heap)/float64(n), "heap-B/each")
}
