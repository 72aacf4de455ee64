package kernel

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rnix/agent"
	rnixctx "rnix/context"
	"rnix/internal/event"
	"rnix/types"
	"rnix/vfs"
)

// A message has the key of its call: the same words in another call are another message.
func TestTheSameWordsAreSentTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFamily(t, map[string][]reply{
			"top": {calls(`spawn {"intent":"ear","background":true}`), calls(`send {"pid":2,"text":"hello"}`), calls(`recv {"timeout_s":1}`), calls(`send {"pid":2,"text":"hello"}`), calls(`wait {}`), completes("r"), completes("r")},
			"ear": {calls(`recv {"timeout_s":5}`), calls(`recv {"timeout_s":5}`), calls(`recv {"timeout_s":5}`), says("bye")},
		})
		if i := f.run(); i.Exit.Code != types.ExitOK {
			t.Fatalf("%+v", i)
		}
		if all := f.heard("ear"); strings.Count(all, "hello") != 2 {
			t.Error(all)
		}
	})
}

// A call that waits when the kernel stops has no answer: it is begun again by the next run.
func TestWhatWaitsWhenTheKernelStopsStaysOpen(t *testing.T) {
	for _, call := range []string{`wait {}`, `recv {"timeout_s":600}`, `spawn {"intent":"long"}`} {
		t.Run(call, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFamily(t, map[string][]reply{"top": {calls(`spawn {"intent":"long","background":true}`), calls(call), completes("r")}, "long": {says("hang")}})
				pid, err := f.Spawn("top", nil, opts())
				if err != nil {
					t.Fatal(err)
				}
				f.await(2, event.StepStarted)
				synctest.Wait()
				p, _ := f.Process(pid)
				if err := f.Shutdown(t.Context()); err != nil {
					t.Fatal(err)
				}
				rec := f.stores.recs[p.UUID]
				rec.mu.Lock()
				defer rec.mu.Unlock()
				answers := 0
				for _, r := range rec.committed {
					if r.Message != nil && r.Message.Role == rnixctx.RoleTool {
						answers++
					}
				}
				if answers != 1 || f.told("top", 3) != "" { // that of the first spawn
					t.Errorf("%d answers, and then %q", answers, f.told("top", 3))
				}
			})
		})
	}
}

// A child that its parent waits for longer than a step may take runs on in the background, and can be waited for.
func TestAChildOutlivesTheStepThatStartedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFamily(t, map[string][]reply{"top": {calls(`spawn {"intent":"slow"}`), calls(`wait {}`), completes("r"), completes("r")}, "slow": {says("done")}})
		model := f.model
		f.model = func(ctx context.Context, c vfs.Caller, turn int) (reply, error) {
			if p, _ := f.Process(c.PID); p.Intent == "slow" {
				<-time.After(5 * time.Minute)
			}
			return model(ctx, c, turn)
		}
		pid, err := f.Spawn("top", &agent.Agent{Manifest: agent.Manifest{StepTimeout: agent.Duration(3 * time.Minute)}}, opts())
		if err != nil {
			t.Fatal(err)
		}
		i, err := f.WaitInfo(t.Context(), pid)
		if err != nil || i.Exit.Code != types.ExitOK {
			t.Fatalf("%+v, %v", i, err)
		}
		if got := f.told("top", 2); !strings.HasPrefix(got, "error (") {
			t.Error(got)
		}
		if got := f.told("top", 3); !strings.Contains(got, `"state":"ended","exit_code":0`) || !strings.Contains(got, `"result":"done"`) {
			t.Error(got)
		}
	})
}
