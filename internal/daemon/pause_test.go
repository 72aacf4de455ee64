package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/event"
	"rnix/internal/step"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// paused pauses a process and checks that it is shown as suspended and not as anything else.
func paused(t *testing.T, s *testenv.System, p ipc.SpawnResponse) {
	t.Helper()
	signal(t, s, p.PID, types.SIGPAUSE)
	d, err := ipc.Call(t.Context(), s.Client, ipc.GetProcDetail, ipc.TargetRequest{Target: p.UUID.String()})
	if err != nil || d.State != "suspended" || !strings.HasPrefix(d.Wait, "paused") {
		t.Errorf("after SIGPAUSE: %s, %q, %v", d.State, d.Wait, err)
	}
}

// held waits until the loop of a paused process stands at its gate, which it notes in the record.
func held(t *testing.T, s *testenv.System, p ipc.SpawnResponse) {
	t.Helper()
	path := filepath.Join(s.Data, "steps", p.UUID.String(), step.StepsFile)
	until(t, "the record says pause", func() bool { b, _ := os.ReadFile(path); return strings.Contains(string(b), `"pause"`) })
}

// goesOn resumes a process and checks that it completes with a result.
func goesOn(t *testing.T, s *testenv.System, p ipc.SpawnResponse, result string) {
	t.Helper()
	signal(t, s, p.PID, types.SIGRESUME)
	if w := s.Wait(p.PID); w.Exit.Code != 0 || !strings.Contains(w.Result, result) {
		t.Errorf("after SIGRESUME: %+v", w)
	}
}

func TestPauseCutsTheModelCallOffAndAsksAgain(t *testing.T) { // A-20, C-13
	asked := make(chan struct{}, 10)
	var later atomic.Bool // the first question has been asked
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		asked <- struct{}{}
		switch _, told := r.LastResult(); {
		case told:
			return llmtest.Reply{Text: "done"}
		case later.CompareAndSwap(false, true):
			return llmtest.Reply{Hang: true}
		}
		return tool("write_file", `{"path":"made","content":"x"}`)
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	p := s.Spawn(ipc.SpawnRequest{Intent: "make it", ProcSpec: types.ProcSpec{Model: "fake"}})
	<-asked
	paused(t, s, p)
	held(t, s, p)
	if len(asked) != 0 {
		t.Error("a paused process has asked its model")
	}
	goesOn(t, s, p, "done")
	if s.Read("made") != "x" {
		t.Error("the action was lost")
	}
	if n := len(asked); n != 2 {
		t.Errorf("the model was asked %d times more, want 2", n)
	}
}

func TestPauseHoldsOverTheEndOfTheDaemon(t *testing.T) { // C-13
	asked := make(chan struct{}, 10)
	hang := atomic.Bool{}
	hang.Store(true)
	_, url := llmtest.NewAPI(t, func(llmtest.Request) llmtest.Reply {
		asked <- struct{}{}
		return llmtest.Reply{Hang: hang.Load(), Text: "done"}
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	p := s.Spawn(ipc.SpawnRequest{Intent: "think", ProcSpec: types.ProcSpec{Model: "fake", Name: "thinker"}})
	<-asked
	signal(t, s, p.PID, types.SIGPAUSE)
	hang.Store(false)
	for name, end := range map[string]func(){"killed": s.Kill, "stopped": s.Stop} {
		end()
		s.Start()
		s.Settle()
		l, err := ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{})
		if err != nil || len(l.Procs) != 1 || l.Procs[0].State != "suspended" || l.Procs[0].Wait != "paused" || l.Procs[0].PID != p.PID {
			t.Fatalf("%s: %+v %v", name, l, err)
		}
	}
	if len(asked) != 0 {
		t.Error("a paused process has asked its model")
	}
	r, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: "thinker", Env: s.Env})
	if err != nil || r.UUID != p.UUID || r.PID <= p.PID || r.Mode != "continue" {
		t.Fatalf("%+v %v", r, err)
	}
	if w := s.Wait(r.PID); w.Exit.Code != 0 || w.Result != "done" {
		t.Errorf("%+v", w)
	}
}

func TestPauseDuringACommandFreezesItsWholeTree(t *testing.T) {
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if res, told := r.LastResult(); told {
			return llmtest.Reply{Text: res.Text}
		}
		return tool("shell", `{"command":"sh -c 'echo $$ > inner; echo up; while [ ! -e go ]; do sleep 0.05; done'; echo on"}`)
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	p := s.Spawn(ipc.SpawnRequest{Intent: "wait", ProcSpec: types.ProcSpec{Model: "fake"}})
	up(s, p.PID)
	kids := children(t, s, p.PID)
	if len(kids) != 1 {
		t.Fatalf("children %+v", kids)
	}
	all := []int{kids[0].PID, number(t, s.Read("inner"))}
	paused(t, s, p)
	for _, pid := range all {
		until(t, "an OS process of a paused agent stands still", func() bool { return standsStill(pid) })
	}
	s.Write("go", "") // would end the command, if it ran
	signal(t, s, p.PID, types.SIGPAUSE)
	goesOn(t, s, p, "on\n[exit code 0")
}

// standsStill reports whether an OS process is frozen, by a signal or in a cgroup that says so.
func standsStill(pid int) bool {
	cgroups, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	_, born, _ := strings.Cut(string(cgroups), "0::") // in one that it stays in, which says so
	born, _, _ = strings.Cut(born, "\n")
	for _, mount := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		if events, _ := os.ReadFile(mount + born + "/cgroup.events"); strings.Contains(string(events), "frozen 1") {
			return true
		}
	}
	return stateOf(pid) == "T" || strings.Contains(string(cgroups), "/rnix-")
}

func TestPauseOfAParentWaitingForItsChild(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		res, told := r.LastResult()
		switch {
		case told:
			return llmtest.Reply{Text: "heard: " + res.Text}
		case r.LastUser() == "child":
			close(asked)
			<-answer
			return llmtest.Reply{Text: "from the child"}
		}
		return tool("spawn", `{"intent":"child"}`)
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	p := s.Spawn(ipc.SpawnRequest{Intent: "parent", ProcSpec: types.ProcSpec{Model: "fake"}})
	<-asked
	paused(t, s, p)
	close(answer)
	child := s.Await(0, event.Exited, func(e *event.Event) bool { return e.UUID != p.UUID })
	if child.Exit.Code != 0 {
		t.Errorf("the child of a paused parent ended with %+v", child.Exit)
	}
	held(t, s, p)
	goesOn(t, s, p, "from the child")
}

func TestPauseWhileARateLimitIsWaitedFor(t *testing.T) {
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if r.N == 0 {
			return llmtest.Reply{Status: 429, Text: "later", Header: map[string][]string{"Retry-After": {"5"}}}
		}
		return tool("complete", `{"result":"done"}`)
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	p := s.Spawn(ipc.SpawnRequest{Intent: "x", ProcSpec: types.ProcSpec{Model: "fake"}})
	s.Await(p.PID, event.Waiting, nil)
	paused(t, s, p)
	held(t, s, p)
	goesOn(t, s, p, "done")
}

// Whenever the signals come, nothing is lost and nothing is done twice.
func TestPauseAtAnyMomentLosesNothing(t *testing.T) {
	const steps = 12
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if len(r.Messages) > 2*steps {
			return llmtest.Reply{Text: "done"}
		}
		return tool("shell", `{"command":"echo x >> log"}`)
	})
	s := testenv.New(t, testenv.Checked, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	p := s.Spawn(ipc.SpawnRequest{Intent: "count", ProcSpec: types.ProcSpec{Model: "fake"}})
	for {
		if _, err := ipc.Call(t.Context(), s.Client, ipc.Signal, ipc.SignalRequest{Target: p.UUID.String(), Signal: types.SIGPAUSE}); err != nil {
			break // it has ended
		}
		_, _ = ipc.Call(t.Context(), s.Client, ipc.Signal, ipc.SignalRequest{Target: p.UUID.String(), Signal: types.SIGRESUME})
	}
	if w := s.Wait(p.PID); w.Exit.Code != 0 || w.Steps != steps+1 {
		t.Errorf("%+v", w)
	}
	if n := strings.Count(s.Read("log"), "x"); n != steps {
		t.Errorf("%d calls were made and %d were run", steps, n)
	}
}

func TestKilledWhilePausedHasOneEndWhereverItWasPaused(t *testing.T) { // A7
	_, api := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if strings.Contains(r.Messages[len(r.Messages)-1].Text, "run") {
			return llmtest.Reply{ToolCalls: []llmtest.ToolCall{{Name: "shell", Input: `{"command":"sleep 1000"}`}}}
		}
		return llmtest.Reply{Hang: true}
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+api)
	for _, sig := range []types.Signal{types.SIGKILL, types.SIGTERM} {
		for _, task := range []string{"think", "run"} {
			p := s.Spawn(ipc.SpawnRequest{Intent: task, ProcSpec: types.ProcSpec{Model: "fake"}})
			until(t, "it has begun to "+task, func() bool {
				r := rowOf(t, s, p)
				return r.State == "running" && (task == "think" || r.Doing != nil && r.Doing.Tool == "shell")
			})
			signal(t, s, p.PID, types.SIGPAUSE)
			signal(t, s, p.PID, sig)
			if w := s.Wait(p.PID); w.Exit.Code != types.ExitError || w.Exit.Reason != types.ReasonCancelledPaused {
				t.Errorf("%v of one that is paused while it is to %s: %+v", sig, task, w.Exit)
			}
		}
	}
}
