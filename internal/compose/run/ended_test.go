package run_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/event"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

// noQuota refuses until a channel is closed.
func noQuota(full <-chan struct{}) func(llmtest.Request, int) llmtest.Reply {
	return func(llmtest.Request, int) llmtest.Reply {
		select {
		case <-full:
			return llmtest.Reply{Text: "at last"}
		default:
			return llmtest.Reply{Status: 429, Text: "quota", Header: http.Header{"Retry-After": {"7200"}}}
		}
	}
}

// down ends the run, and checks that nothing of it can go on by itself.
func (f *flow) down(id types.UUID, want string) {
	f.t.Helper()
	r, err := ipc.Call(f.t.Context(), f.Client, ipc.ComposeDown, ipc.ComposeDownRequest{Target: id.String()})
	if err != nil || r.Exit == nil || r.Exit.Code != types.ExitCancelled || states(&r) != want {
		f.t.Fatalf("%s %+v %v", states(&r), r.Exit, err)
	}
	l, err := ipc.Call(f.t.Context(), f.Client, ipc.ListProcs, ipc.ListRequest{})
	if err != nil || len(l.Procs) != 0 {
		f.t.Fatalf("left: %+v %v", l.Procs, err)
	}
}

func (f *flow) again(id types.UUID) ipc.ComposeUpResponse {
	f.t.Helper()
	r, err := ipc.Call(f.t.Context(), f.Client, ipc.ComposeResume, ipc.ComposeResumeRequest{Target: id.String(), Env: f.Env})
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

func TestWhatIsSuspendedEndsWithItsRunAndGoesOnWithIt(t *testing.T) {
	f := newFlow(t)
	full, go1 := make(chan struct{}), make(chan struct{})
	f.says["quota"], f.says["slow"] = noQuota(full), when(go1, "slow is done")
	up := f.up("agents:\n  quota: {intent: quota work}\n  slow: {intent: slow work}\n")
	f.becomes(up.UUID, "quota=suspended slow=running")
	f.down(up.UUID, "quota=stopped slow=stopped")
	close(full)
	close(go1)
	r := f.end(f.again(up.UUID), types.ExitOK, "quota=succeeded slow=succeeded")
	for _, n := range r.Nodes {
		if n.Attempt != 1 {
			t.Errorf("it goes on where it was: %+v", n)
		}
	}
}

func TestARunThatIsSuspendedCanBeEnded(t *testing.T) {
	f := newFlow(t)
	full := make(chan struct{})
	f.says["quota"] = noQuota(full)
	up := f.up("agents:\n  quota: {intent: quota work}\n  after: {intent: after work, depends_on: [quota]}\n")
	if w := f.Wait(up.PID); !w.Suspended {
		t.Fatalf("%+v", w)
	}
	f.down(up.UUID, "after=waiting quota=stopped")
	close(full)
	f.end(f.again(up.UUID), types.ExitOK, "after=succeeded quota=succeeded")
}

// The kernel remembers a run that was suspended, by the PID that it had.
func TestARunThatIsSuspendedIsPausedAndEndedByItsPIDToo(t *testing.T) {
	f := newFlow(t)
	f.says["quota"] = noQuota(make(chan struct{}))
	up := f.up("agents:\n  quota: {intent: quota work}\n")
	if w := f.Wait(up.PID); !w.Suspended {
		t.Fatalf("%+v", w)
	}
	r, err := ipc.Call(t.Context(), f.Client, ipc.ComposeDown, ipc.ComposeDownRequest{Target: up.PID.String(), Pause: true})
	if err != nil || r.State != "suspended" || r.Wait != "paused" || states(&r) != "quota=suspended" || r.Nodes[0].Why != "paused" {
		t.Fatalf("%s %+v %v", states(&r), r, err)
	}
	r, err = ipc.Call(t.Context(), f.Client, ipc.ComposeDown, ipc.ComposeDownRequest{Target: up.PID.String()})
	if err != nil || r.Exit == nil || r.Exit.Code != types.ExitCancelled || states(&r) != "quota=stopped" {
		t.Fatalf("%s %+v %v", states(&r), r, err)
	}
}

func TestANodeThatIsStoppedAndGoesOnDoesNotSuspendItsRun(t *testing.T) {
	f := newFlow(t)
	began, go1 := make(chan struct{}, 9), make(chan struct{})
	f.says["slow"] = func(r llmtest.Request, turn int) llmtest.Reply {
		began <- struct{}{}
		return when(go1, "slow is done")(r, turn)
	}
	up := f.up("agents:\n  slow: {intent: slow work}\n  after: {intent: after work, depends_on: [slow]}\n")
	<-began
	n := f.status(up.UUID).Nodes[0]
	if _, err := ipc.Call(t.Context(), f.Client, ipc.Signal, ipc.SignalRequest{Target: n.UUID.String(), Signal: types.SIGPAUSE}); err != nil {
		t.Fatal(err)
	}
	more := 1_000_000 // what changes a limit begins another run of the process
	r, err := ipc.Call(t.Context(), f.Client, ipc.Resume, ipc.ResumeRequest{Target: n.UUID.String(), Env: f.Env, Budget: &more})
	if err != nil || r.PID == n.PID {
		t.Fatalf("%+v %v", r, err)
	}
	close(go1)
	f.end(up, types.ExitOK, "after=succeeded slow=succeeded")
}

func TestAStalledNodeIsRestartedInItsRun(t *testing.T) {
	f := newFlow(t, "RNIX_HEARTBEAT_INTERVAL=1s", "RNIX_HEARTBEAT_STALL=2s", "RNIX_HEARTBEAT_POLICY=restart")
	f.says["mute"] = func(llmtest.Request, int) llmtest.Reply {
		if f.times("mute") == 1 {
			return llmtest.Reply{Hang: true}
		}
		return llmtest.Reply{Text: "here I am"}
	}
	up := f.up("agents:\n  mute: {intent: mute work}\n  after: {intent: after work, depends_on: [mute]}\n")
	f.Await(0, event.Stalled, nil)
	if r := f.end(up, types.ExitOK, "after=succeeded mute=succeeded"); r.PID != up.PID || r.Nodes[0].Attempt != 1 {
		t.Errorf("%d, was %d: %+v", r.PID, up.PID, r.Nodes[0])
	}
}

func TestAResultThatIsNoPlainTextIsPassedOn(t *testing.T) {
	f := newFlow(t)
	f.says["odd"] = say("before\x00after")
	up := f.up("agents:\n  odd: {intent: odd work}\n  next: {intent: next work, depends_on: [odd]}\n")
	f.end(up, types.ExitOK, "next=succeeded odd=succeeded")
	if !strings.Contains(f.told("next"), "before\uFFFDafter") {
		t.Error(f.told("next"))
	}
}

func TestARunWithAKilledNodeCanBeLookedAtAndGoesOn(t *testing.T) {
	f := newFlow(t)
	began := make(chan struct{}, 9)
	f.says["slow"] = func(llmtest.Request, int) llmtest.Reply {
		began <- struct{}{}
		return llmtest.Reply{Hang: true}
	}
	up := f.up("agents:\n  slow: {intent: slow work, retries: {max: 3}}\n  after: {intent: after work, depends_on: [slow]}\n")
	<-began
	if _, err := ipc.Call(t.Context(), f.Client, ipc.Signal, ipc.SignalRequest{Target: f.status(up.UUID).Nodes[0].UUID.String(), Signal: types.SIGKILL}); err != nil {
		t.Fatal(err)
	}
	f.end(up, types.ExitError, "after=skipped slow=failed")
	f.mu.Lock()
	delete(f.says, "slow")
	f.mu.Unlock()
	f.end(f.again(up.UUID), types.ExitOK, "after=succeeded slow=succeeded")
}

// A daemon that is killed while it ends a run leaves a run that is ended, or one that goes on: never one whose nodes
// have failed because they were ended.
func TestADaemonThatIsKilledWhileItEndsARunFailsNoNode(t *testing.T) {
	for n := range 4 {
		f := newFlow(t)
		let := make(chan struct{})
		for _, who := range []string{"n0", "n1"} {
			f.says[who] = when(let, "done")
		}
		f.says["sh"] = func(r llmtest.Request, turn int) llmtest.Reply { // it takes its time to end
			if turn > 1 || f.times("sh") > 1 {
				return when(let, "done")(r, turn)
			}
			return llmtest.Reply{ToolCalls: []llmtest.ToolCall{{ID: "c1", Name: "shell", Input: `{"command":"trap '' TERM; while :; do sleep 1; done"}`}}}
		}
		up := f.up("agents:\n  n0: {intent: n0 x}\n  n1: {intent: n1 x}\n  sh: {intent: sh x}\n  n2: {intent: n2 x, depends_on: [n0]}\n")
		f.Await(0, event.Syscall, func(e *event.Event) bool { return e.Path == "/dev/shell" }) // it has begun
		f.becomes(up.UUID, "n0=running n1=running n2=waiting sh=running")
		down := make(chan struct{})
		go func() {
			defer close(down)
			_, _ = ipc.Call(context.Background(), f.Client, ipc.ComposeDown, ipc.ComposeDownRequest{Target: "w"}) // nobody answers
		}()
		<-time.After(time.Duration(n*n*10) * time.Millisecond)
		f.crash()
		<-down
		f.Start()
		f.Settle()
		switch r := f.status(up.UUID); r.State {
		case "dead":
			if r.Exit == nil || r.Exit.Code != types.ExitCancelled || r.Exit.Reason != "terminated" || states(&r) != "n0=stopped n1=stopped n2=waiting sh=stopped" {
				t.Errorf("%d: %v %s", n, r.Exit, states(&r))
			}
			l, err := ipc.Call(t.Context(), f.Client, ipc.ListProcs, ipc.ListRequest{})
			if err != nil || len(l.Procs) != 0 {
				t.Fatalf("left: %+v %v", l.Procs, err)
			}
			close(let)
			up = f.again(up.UUID)
		default:
			record, err := os.ReadFile(filepath.Join(f.Data, "steps", up.UUID.String(), step.StepsFile))
			if err != nil || strings.Contains(string(record), "!ending") {
				t.Fatalf("%d: it was ending, and is %s: %v", n, r.State, err)
			}
			close(let)
			up.PID = r.PID
		}
		r := f.end(up, types.ExitOK, "n0=succeeded n1=succeeded n2=succeeded sh=succeeded")
		for _, c := range r.Nodes {
			if c.Attempt != 1 {
				t.Errorf("%d: it goes on where it was: %+v", n, c)
			}
		}
	}
}

func TestARunOnDiskThatIsPausedDoesNotGoOnByItself(t *testing.T) {
	f := newFlow(t)
	full := make(chan struct{})
	f.says["quota"] = noQuota(full)
	up := f.up("agents:\n  quota: {intent: quota work}\n  after: {intent: after work, depends_on: [quota]}\n")
	if w := f.Wait(up.PID); !w.Suspended {
		t.Fatalf("%+v", w)
	}
	if r := f.status(up.UUID); r.WaitUntil.IsZero() || r.Nodes[0].Until.IsZero() {
		t.Fatalf("it would go on by itself: %+v", r)
	}
	r, err := ipc.Call(t.Context(), f.Client, ipc.ComposeDown, ipc.ComposeDownRequest{Target: up.UUID.String(), Pause: true})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		l, err := ipc.Call(t.Context(), f.Client, ipc.ListProcs, ipc.ListRequest{})
		if err != nil || len(l.Procs) != 2 {
			t.Fatalf("%+v %v", l, err)
		}
		for _, p := range l.Procs {
			if p.State != "suspended" || p.Wait != "paused" || !p.WaitUntil.IsZero() {
				t.Errorf("%+v", p)
			}
		}
		if r.State != "suspended" || r.Wait != "paused" || !r.WaitUntil.IsZero() || states(&r) != "after=waiting quota=suspended" {
			t.Errorf("%+v", r)
		}
		f.Kill()
		if err := os.Remove(filepath.Join(f.Data, step.IndexFile)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		f.Start()
		f.Settle()
		r = f.status(up.UUID)
	}
	close(full)
	f.end(f.again(up.UUID), types.ExitOK, "after=succeeded quota=succeeded")
}
