package web

import (
	"context"
	"os"
	"testing"
	"time"

	"rnix/internal/event"
	"rnix/ipc"
	"rnix/types"
)

// How hard the storm blows.
const (
	stormProcs  = 2000
	stormRate   = 5000 // events in a second, and as many changed rows
	stormFrames = 5    // of watch_procs in a second
)

// TestPageStaysUsableInAStorm measures, too: RNIX_STORM_SECONDS=60 go test -v -run Storm ./internal/web
func TestPageStaysUsableInAStorm(t *testing.T) {
	chromium := needsBrowser(t)
	seconds := os.Getenv("RNIX_STORM_SECONDS")
	if seconds == "" {
		seconds = "10"
	}
	id := func(n int) types.UUID { return types.UUID{14: byte(n >> 8), 15: byte(n)} }
	row := func(n, tick int) ipc.Proc {
		p := ipc.Proc{PID: types.PID(n), UUID: id(n), State: "running", Intent: "Report on this project", Agent: "assistant", Provider: "p", Model: "m",
			Step: tick, TokensUsed: 100 * tick, CostUSD: 0.001 * float64(tick), ElapsedMs: int64(tick) * 200, CreatedAt: time.Now()}
		if n > 10 {
			p.PPID, p.ParentUUID = types.PID(n/10), id(n/10)
		}
		if n == 1234 {
			p.Intent = "Find the needle"
		}
		return p
	}
	socket, _ := fakeDaemon(t, func(s *ipc.Server) {
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
		ipc.HandleStream(s, ipc.Events, func(ctx context.Context, _ *ipc.Peer, _ ipc.EventsRequest, out *ipc.Stream) error {
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
	t.Log(serve(t, Options{Socket: socket}).scenario(chromium, "storm.mjs", nil, "RNIX_STORM_SECONDS="+seconds))
}
