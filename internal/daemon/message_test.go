package daemon_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/event"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// What the sender was told of is in the agent's prompt after the daemon was killed, once, in order; what was said to
// the agent while it was on disk, too.
func TestAcknowledgedMessagesAreDeliveredOnceAfterAKill(t *testing.T) {
	var stop atomic.Bool
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		var all strings.Builder
		for _, m := range r.Messages {
			if m.Role == "user" {
				fmt.Fprintln(&all, m.Text)
			}
		}
		if stop.Load() {
			return llmtest.Reply{Text: all.String()}
		}
		return llmtest.Reply{Hang: true}
	})
	s := testenv.New(t, testenv.Checked, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, "RNIX_DAEMON_AUTO_RESUME=false")
	p := s.Spawn(ipc.SpawnRequest{Intent: "listen", ProcSpec: types.ProcSpec{Model: "fake"}})
	s.Await(p.PID, event.StepStarted, nil)
	var acked sync.Map
	var n atomic.Int64
	enough := make(chan struct{})
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				text := fmt.Sprintf("<%d.%d>", w, i)
				_, err := ipc.Call(t.Context(), s.Client, ipc.Send, ipc.SendRequest{Target: p.UUID.String(), Text: text})
				if err != nil {
					return // the daemon is gone
				}
				acked.Store(text, true)
				if n.Add(1) == 40 {
					close(enough)
				}
			}
		})
	}
	<-enough
	s.Kill()
	wg.Wait()
	s.Start()
	s.Settle()
	r, err := ipc.Call(t.Context(), s.Client, ipc.Steer, ipc.SendRequest{Target: p.UUID.String(), Text: "<steer>"})
	if err != nil || r.State != "suspended" {
		t.Fatalf("%+v %v", r, err)
	}
	acked.Store("<steer>", true)
	if d, err := ipc.Call(t.Context(), s.Client, ipc.Delivered, ipc.DeliveredRequest{Target: p.UUID.String(), Seq: r.Seq}); err != nil || d.Delivered || d.State != "suspended" {
		t.Errorf("%+v %v", d, err)
	}
	stop.Store(true)
	if _, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), Env: s.Env}); err != nil {
		t.Fatal(err)
	}
	w, err := ipc.Call(t.Context(), s.Client, ipc.Wait, ipc.WaitRequest{Target: p.UUID.String()})
	if err != nil || w.Exit.Code != 0 {
		t.Fatalf("%+v %v", w, err)
	}
	acked.Range(func(k, _ any) bool {
		if c := strings.Count(w.Result, k.(string)); c != 1 {
			t.Errorf("%s was delivered %d times", k, c)
		}
		return true
	})
	if _, err := ipc.Call(t.Context(), s.Client, ipc.Send, ipc.SendRequest{Target: p.UUID.String(), Text: "late"}); types.CodeOf(err) != types.ErrBrokenPipe {
		t.Errorf("got %v", err)
	}
}
