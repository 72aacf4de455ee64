package web

import (
	"context"
	"strconv"
	"testing"
	"time"

	"rnix/internal/event"
	"rnix/internal/soak"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// How hard the storm blows.
const (
	stormProcs  = 2000
	stormRate   = 5000 // events in a second, and as many changed rows
	stormFrames = 5    // of watch_procs in a second
)

// stormSeconds is how long the storms blow: RNIX_STORM_SECONDS=60 go test -v -run Storm ./internal/web
func stormSeconds(t *testing.T) int {
	t.Helper()
	return soak.Number(t, "RNIX_STORM_SECONDS", "seconds of storm", 4, 70)
}

// A real daemon, fifty other readers, and a page: nobody holds an agent up, each reader is told what it missed, and memory stays as it is.
func TestPageAndFiftyReadersInAStormOfARealDaemon(t *testing.T) {
	chromium := hasBrowser(t)
	seconds := stormSeconds(t)
	// Five thousand to fifty readers of a real daemon are in a gate without a page (TestTheDashboardInAStorm of cmd/rnix, which takes turns, too), and
	// to a page without them (below).
	rate := soak.Pick(t, "events a second for the page and fifty readers", stormRate/5, stormRate)
	s := testenv.NewStorm(t, 200)
	crowd := s.Watch(t.Context(), 50)
	type end struct {
		*testenv.Blew
		err error
	}
	over := make(chan end, 1)
	var b end
	said := serve(t, Options{Socket: s.Socket(), Env: s.Env, Dir: s.Work}).scenario(chromium, "storm.mjs", func(word string) string {
		switch word {
		case "storm":
			go func() { // the test waits for it below
				// It outlasts what the page does: that looks at its memory before, and begins after three seconds.
				blown, err := s.Blow(t.Context(), rate, time.Duration(seconds+10)*time.Second)
				over <- end{blown, err}
			}()
		case "calm":
			b = <-over
		}
		return "done"
	}, "RNIX_STORM_SECONDS="+strconv.Itoa(seconds))
	if b.err != nil {
		t.Fatal(b.err)
	}
	if err := crowd.Over(); err != nil {
		t.Error(err)
	}
	mib := func(n uint64) float64 { return float64(n) / (1 << 20) }
	first, last := b.Heaps[len(b.Heaps)/4], b.Heaps[len(b.Heaps)-1]
	t.Logf("%s%d events in %v (%.0f/s), %d changes of rows; an agent waits p50 %v p99 %v max %v for its event; 50 readers read %d and were told of %d missed; daemon's heap %.1f MiB after a quarter, %.1f MiB at the end",
		said, b.Events, b.Took.Round(time.Millisecond), float64(b.Events)/b.Took.Seconds(), b.Changes, b.P50, b.P99, b.Max, crowd.Read.Load(), crowd.Missed.Load(), mib(first), mib(last))
	if want := int64(b.Last) * 50; crowd.Read.Load()+crowd.Missed.Load() != want {
		t.Errorf("%d events were read and %d told as missed, of %d", crowd.Read.Load(), crowd.Missed.Load(), want)
	}
	if b.P50 > time.Millisecond { // what most events cost does not depend on who else has the processor; a reader that blocks would
		t.Errorf("an agent waits %v for its event, half of the time", b.P50)
	}
	if seconds >= 30 && last > first+24<<20 { // before, not all of them are there yet
		t.Errorf("the daemon's heap has grown from %.1f to %.1f MiB", mib(first), mib(last))
	}
}

// Ten times as many rows, and twenty times as many changes of them, as the real daemon of the other storm has.
func TestPageStaysUsableInAStorm(t *testing.T) {
	chromium := hasBrowser(t)
	seconds := strconv.Itoa(stormSeconds(t))
	id := func(n int) types.UUID { return types.UUID{14: byte(n >> 8), 15: byte(n)} }
	row := func(n, tick int) ipc.Proc {
		p := ipc.Proc{ProcStatus: types.ProcStatus{PID: types.PID(n), UUID: id(n), Intent: "Report on this project", Agent: "assistant", Provider: "p", Model: "m", Step: tick, TokensUsed: 100 * tick, CostUSD: 0.001 * float64(tick), CreatedAt: time.Now()}, State: "running", ElapsedMs: int64(tick) * 200}
		if n > 10 {
			p.PPID, p.ParentUUID = types.PID(n/10), id(n/10)
		}
		if n == 1234 {
			p.Intent = "Find the needle"
		}
		return p
	}
	socket, _ := fakeDaemon(t, func(s *ipc.Server) {
		ipc.Handle(s, ipc.ShowCost, today)
		ipc.Handle(s, ipc.Families, together)
		ipc.Handle(s, ipc.ProviderTraffic, crowd)
		ipc.Handle(s, ipc.ListProcs, gone)
		ipc.HandleStream(s, ipc.WatchProcs, func(ctx context.Context, _ *ipc.Peer, _ ipc.WatchRequest, out *ipc.Stream) error {
			for tick, next := 1, 1; ; tick++ {
				f := ipc.ProcTable{Seq: uint64(tick), At: time.Now(), Whole: tick == 1, Totals: ipc.Totals{Running: stormProcs, Tokens: tick}}
				changed := stormRate / stormFrames
				if f.Whole {
					changed = stormProcs
				}
				for range changed {
					f.Procs = append(f.Procs, row(next, tick))
					next = next%stormProcs + 1
				}
				if err := out.Send(f.Seq, "table", f); err != nil {
					return err
				}
				select {
				case <-ctx.Done():
					return nil
				case <-time.After(time.Second / stormFrames):
				}
			}
		})
		ipc.HandleStream(s, ipc.Events, func(ctx context.Context, _ *ipc.Peer, r ipc.EventsRequest, out *ipc.Stream) error {
			if !r.Follow {
				return nil // there is no past
			}
			began := time.Now()
			for seq := uint64(1); ; seq++ {
				e := event.Event{Seq: seq, Time: time.Now(), PID: 1, UUID: id(1), Kind: event.StepEnded, Step: int(seq), Tokens: 100, Name: "tool_call", Text: "list_files d"}
				if err := out.SendRaw(seq, string(e.Kind), event.AppendJSON(nil, &e)); err != nil {
					return err
				}
				ahead := time.Duration(seq)*time.Second/stormRate - time.Since(began)
				if ahead < 5*time.Millisecond {
					continue
				}
				select {
				case <-ctx.Done():
					return nil
				case <-time.After(ahead):
				}
			}
		})
	})
	t.Log(serve(t, Options{Socket: socket}).scenario(chromium, "storm.mjs", func(string) string { return "blows" }, "RNIX_STORM_SECONDS="+seconds))
}
