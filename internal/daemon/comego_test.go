package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/soak"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// vitals are what a daemon takes of the machine at a moment.
type vitals struct {
	at                     time.Duration
	heap, resident         uint64 // bytes
	goroutines, files      int
	running, ended, failed int
}

// vitalsOf measures a daemon.
func vitalsOf(ctx context.Context, s *testenv.System) (v vitals, err error) {
	st, err := ipc.Call(ctx, s.Client, ipc.DaemonStatus, ipc.Empty{})
	if err != nil {
		return v, err
	}
	v.heap, v.goroutines, v.running = st.HeapBytes, st.Goroutines, st.Running
	dir := fmt.Sprintf("/proc/%d/", s.PID())
	text, err := os.ReadFile(dir + "statm")
	if err == nil {
		var size uint64
		_, err = fmt.Sscan(string(text), &size, &v.resident)
		v.resident *= uint64(os.Getpagesize())
	}
	files, ferr := os.ReadDir(dir + "fd")
	v.files = len(files)
	return v, errors.Join(err, ferr)
}

// comers is a model of agents that come and go: each does a few steps, each of which takes a while, and some have children.
func comers(pace time.Duration) func(llmtest.Request) llmtest.Reply {
	return func(r llmtest.Request) llmtest.Reply {
		turns, who := r.Turns(), r.Messages[0].Text
		var reply llmtest.Reply
		switch {
		case strings.HasPrefix(who, "family") && turns < 2:
			reply = tool("spawn", `{"intent":"single","background":true}`)
		case strings.HasPrefix(who, "family") && turns < 4:
			reply = tool("wait", `{}`)
		case turns < 2:
			reply = tool("read_file", `{"path":"notes.txt"}`)
		case turns == 2:
			reply = tool("shell", `{"command":"cat notes.txt | wc"}`)
		default:
			reply = llmtest.Reply{Text: "done"}
		}
		reply.Delay = pace/2 + rand.N(pace)
		return reply
	}
}

// TestMemoryIsFlatWhileAgentsComeAndGo keeps many agents alive for a while, each of which is followed by another: single ones, families, and
// such that are killed or paused in the middle. What the daemon takes of memory does not grow with what has been.
func TestMemoryIsFlatWhileAgentsComeAndGo(t *testing.T) { // R13
	length := time.Duration(soak.Number(t, "RNIX_COMEGO_SECONDS", "seconds of agents coming and going", 2, 1800)) * time.Second
	agents := soak.Number(t, "RNIX_COMEGO_AGENTS", "agents at once", 20, 1000)
	pace := length / 400 // of one model call, of which 256 are made at once
	_, url := llmtest.NewAPI(t, comers(pace))
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	configure(t, s, "config.yaml", "concurrency: 256\n")
	s.Write("notes.txt", strings.Repeat("a line of notes\n", 200))
	s.Stop()
	s.Start()
	s.Settle()

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 2 { // somebody looks all the time
		watch(ctx, t, s.Client, ipc.WatchRequest{EveryMs: 1000})
	}
	var ended, failed atomic.Int64
	var slots sync.WaitGroup
	for i := range agents {
		slots.Go(func() { // ends with ctx
			for n := 0; ctx.Err() == nil; n++ {
				if one(ctx, s, i, pace) {
					ended.Add(1)
				} else if ctx.Err() == nil {
					failed.Add(1)
				}
			}
		})
	}
	var curve []vitals
	begin := time.Now()
	for tick := time.NewTicker(length / 180); ctx.Err() == nil; {
		select {
		case <-tick.C:
			if v, err := vitalsOf(ctx, s); err == nil {
				v.at, v.ended, v.failed = time.Since(begin), int(ended.Load()), int(failed.Load())
				curve = append(curve, v)
			}
			if time.Since(begin) >= length && ended.Load() > 0 { // on a busy machine the first takes longer
				cancel()
			}
		case <-ctx.Done():
		}
	}
	slots.Wait()
	if ended.Load() == 0 || failed.Load() > 0 {
		t.Errorf("%d agents have ended as they should, and %d have not", ended.Load(), failed.Load())
	}
	table := curveText(curve)
	t.Log("\n" + table)
	if path := os.Getenv("RNIX_COMEGO_CURVE"); path != "" {
		if err := os.WriteFile(path, []byte(table), 0o600); err != nil {
			t.Error(err)
		}
	}
	if soak.On() { // with little garbage, or just after it was collected
		if early, late := leastHeap(curve, length/3, length/2), leastHeap(curve, length*5/6, length); late > early+early/10 {
			t.Errorf("%d bytes of memory were in use after a third of the time, and %d at its end", early, late)
		}
	}
}

// one starts an agent and sees it to its end, and reports whether that was as it should be.
func one(ctx context.Context, s *testenv.System, slot int, pace time.Duration) bool {
	intent := "single"
	if rand.IntN(5) == 0 {
		intent = "family"
	}
	p, err := ipc.Call(ctx, s.Client, ipc.Spawn, ipc.SpawnRequest{Intent: intent, ProcSpec: types.ProcSpec{Model: "fake", Name: fmt.Sprint("slot", slot)}, Cwd: s.Work, Env: s.Env})
	if err != nil {
		return false
	}
	killed := false
	if fate := rand.IntN(10); fate < 2 {
		select {
		case <-time.After(pace * time.Duration(1+rand.IntN(2))):
		case <-ctx.Done():
		}
		sig := types.SIGKILL
		if killed = fate == 0; !killed {
			sig = types.SIGPAUSE
		}
		_, err = ipc.Call(ctx, s.Client, ipc.SignalTree, ipc.SignalRequest{Target: p.UUID.String(), Signal: sig})
		if err == nil && !killed {
			_, err = ipc.Call(ctx, s.Client, ipc.SignalTree, ipc.SignalRequest{Target: p.UUID.String(), Signal: types.SIGRESUME})
		}
		if err != nil && ctx.Err() == nil && types.CodeOf(err) != types.ErrNotFound && types.CodeOf(err) != types.ErrConflict {
			return false
		}
	}
	w, err := ipc.Call(ctx, s.Client, ipc.Wait, ipc.WaitRequest{Target: p.UUID.String()})
	return err == nil && (w.Exit.Code == types.ExitOK || killed)
}

// leastHeap is the least memory in use between two times.
func leastHeap(curve []vitals, from, to time.Duration) (least uint64) {
	for _, v := range curve {
		if v.at >= from && v.at <= to && (least == 0 || v.heap < least) {
			least = v.heap
		}
	}
	return least
}

// curveText is a table with one line for each tenth of the measurements.
func curveText(curve []vitals) string {
	var b strings.Builder
	b.WriteString("| after | agents | ended so far | memory in use, least | resident | goroutines | open files |\n|---|---|---|---|---|---|---|\n")
	every := max(len(curve)/15, 1)
	for i := every - 1; i < len(curve); i += every {
		v := curve[i]
		from := time.Duration(0)
		if i >= every {
			from = curve[i-every].at
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %.1f MB | %.1f MB | %d | %d |\n", v.at.Round(time.Second), v.running, v.ended,
			float64(leastHeap(curve, from, v.at))/1e6, float64(v.resident)/1e6, v.goroutines, v.files)
	}
	return b.String()
}
