// Package storm makes the noise of many busy agents inside a daemon, for tests of whoever watches: processes that do nothing,
// and events and changed counters in their name at a rate, each put where agents put theirs, with how long that took. It
// reads events as a client does, too, and accounts for each. It knows no clients and asserts nothing.
package storm

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"rnix/internal/event"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// idle is the body of a process that does nothing until it is ended.
type idle struct{ self kernel.Self }

func (i *idle) Attach(self kernel.Self, _ *recovery.State) error {
	i.self = self
	return nil
}
func (*idle) Record() (step.BodyRecord, error) {
	return step.BodyRecord{Kind: "idle", Spec: []byte(`{}`)}, nil
}
func (*idle) Joined(*kernel.Process) {}
func (*idle) Ended(*kernel.Process)  {}
func (*idle) Run(ctx context.Context) kernel.End {
	<-ctx.Done()
	return kernel.End{Cause: context.Cause(ctx)}
}

// Spawn starts n processes that do nothing, p0 and so on, with tree all others below p0. The intent of the last says "needle".
func Spawn(ctx context.Context, k *kernel.KernelImpl, n int, dir string, tree bool) ([]*kernel.Process, error) {
	out := make([]*kernel.Process, n)
	for i := range out {
		intent := fmt.Sprint("stand by, number ", i)
		if i == n-1 {
			intent += ", the needle"
		}
		opts := kernel.SpawnOpts{Body: &idle{}, ProcSpec: types.ProcSpec{Name: fmt.Sprint("p", i)}, WorkDir: dir}
		if tree && i > 0 {
			opts.ParentPID = out[(i-1)/16].PID // one may have so many children, and not many more
		}
		pid, err := k.SpawnContext(ctx, intent, nil, opts)
		if err != nil {
			return nil, err
		}
		out[i], _ = k.Process(pid)
	}
	return out, nil
}

// Progress publishes the counters of a process that Spawn has started.
func Progress(k *kernel.KernelImpl, p *kernel.Process, pr kernel.Progress) {
	k.BodyOf(p.PID).(*idle).self.SetProgress(pr)
}

// theEnd is the text of the event of End. Nothing comes after it, so no reader misses it.
const theEnd = "the storm is over"

// Blown is what a storm came to.
type Blown struct {
	Events, Changes int
	Took            time.Duration
	P50, P99, Max   time.Duration // that an agent waits for its event
	Heaps           []uint64      // bytes in use after a collection, ten times
}

// Blow puts events into the log as agents do, at a rate per second, for so long. Every twentieth tells of the end of a step, before which
// the counters of its process change. With heaps it looks at the heap ten times.
func Blow(ctx context.Context, k *kernel.KernelImpl, events *event.Log, procs []*kernel.Process, rate int, span time.Duration, heaps bool) *Blown {
	b := &Blown{}
	waits := make([]time.Duration, 0, int(span.Seconds()+1)*rate)
	steps := make([]int, len(procs))
	begin := time.Now()
	for now := begin; now.Sub(begin) < span && ctx.Err() == nil; now = time.Now() {
		for due := int(now.Sub(begin).Seconds() * float64(rate)); b.Events < due; b.Events++ {
			i := rand.IntN(len(procs))
			p := procs[i]
			e := event.Event{Kind: event.LogLine, PID: p.PID, UUID: p.UUID, Name: "output", Text: "what the model says, a line of some eighty characters, as it comes from there."}
			if b.Events%20 == 0 {
				steps[i]++
				e = event.Event{Kind: event.StepEnded, PID: p.PID, UUID: p.UUID, Step: steps[i], Tokens: 100, Dur: time.Second}
				b.Changes++
			}
			at := time.Now()
			if e.Kind == event.StepEnded {
				Progress(k, p, kernel.Progress{Step: steps[i], Tokens: 100 * steps[i], CostUSD: 0.001 * float64(steps[i])})
			}
			events.Put(&e)
			waits = append(waits, time.Since(at))
		}
		if heaps && now.Sub(begin) >= span*time.Duration(len(b.Heaps))/10 {
			b.Heaps = append(b.Heaps, heap())
		}
		<-time.After(time.Millisecond)
	}
	b.Took = time.Since(begin)
	if n := len(waits); n > 0 {
		slices.SortFunc(waits, cmp.Compare[time.Duration])
		b.P50, b.P99, b.Max = waits[n/2], waits[n*99/100], waits[n-1]
	}
	return b
}

// End puts the event behind the storms into the log, after which there must be none, and returns its place.
func End(events *event.Log) uint64 {
	return events.Append(event.Event{Kind: event.LogLine, Name: "output", Text: theEnd})
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// ReadEvents reads the log from its beginning to that of End, and accounts for each event: it was read, or it was missed and that
// was told. Anything else is an error. slow is called after each read with how many there were.
func ReadEvents(ctx context.Context, c *ipc.Client, slow func(n int)) (read, missed int64, err error) {
	feed, err := ipc.Open(ctx, c, ipc.Events, ipc.EventsRequest{From: 1, Follow: true})
	if err != nil {
		return 0, 0, err
	}
	defer feed.Close()
	next := uint64(1)
	for n := 1; ; n++ {
		f, err := feed.NextRaw()
		if err != nil {
			return read, missed, fmt.Errorf("event %d: %w", next, err)
		}
		switch {
		case f.Missed != nil && f.Missed.From == next:
			missed += int64(f.Missed.To - f.Missed.From + 1)
			next = f.Missed.To + 1
		case f.Missed == nil && f.Seq == next:
			read++
			next++
		default:
			return read, missed, fmt.Errorf("event %d was due, and %d, %+v came", next, f.Seq, f.Missed)
		}
		if f.Missed == nil && bytes.Contains(f.Raw, []byte(theEnd)) {
			return read, missed, nil
		}
		slow(n)
	}
}
