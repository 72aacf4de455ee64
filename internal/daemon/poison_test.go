package daemon_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/event"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// turnOf is how many answers a model has given, and one.
func turnOf(r llmtest.Request) int {
	n := 1
	for _, m := range r.Messages {
		if m.Role == "assistant" {
			n++
		}
	}
	return n
}

// reaches waits until a history has begun a step in the life of this daemon.
func reaches(s *testenv.System, id types.UUID, n int) event.Event {
	return s.Await(0, event.StepStarted, func(e *event.Event) bool { return e.UUID == id && e.Step == n })
}

func TestProcessThatBringsTheDaemonDownThreeTimesStaysSuspendedAndOthersGoOn(t *testing.T) { // C-3
	var until atomic.Int32 // the step at which the good one stops
	var mended atomic.Bool
	until.Store(1)
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		n := turnOf(r)
		switch who := r.Messages[0].Text; {
		case who == "bad" && n == 2 && !mended.Load():
			return llmtest.Reply{Hang: true}
		case who == "good" && n > int(until.Load()):
			return llmtest.Reply{Hang: true}
		case who == "bad" && n > 2, who == "good" && n > 4:
			return llmtest.Reply{Text: "done"}
		}
		return appends(n)
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	bad := s.Spawn(ipc.SpawnRequest{Intent: "bad", ProcSpec: types.ProcSpec{Model: "fake"}})
	good := s.Spawn(ipc.SpawnRequest{Intent: "good", ProcSpec: types.ProcSpec{Model: "fake"}})
	for life := range 3 {
		reaches(s, bad.UUID, 2)
		reaches(s, good.UUID, life+2)
		s.Kill()
		if until.Add(1); life == 2 {
			until.Store(100) // from now on it answers: who is left without one is asked again after a minute and a half
		}
		s.Start()
		s.Settle()
	}
	d := detail(t, s, bad.UUID.String())
	if d.State != "suspended" || !strings.Contains(d.Wait, "broken off 3 times in step 2") || !strings.Contains(d.Wait, "a person resumes it") {
		t.Errorf("the bad one is %s: %q", d.State, d.Wait)
	}
	st, err := ipc.Call(t.Context(), s.Client, ipc.DaemonStatus, ipc.Empty{})
	if err != nil || !strings.Contains(strings.Join(st.Recovered, "\n"), "is not resumed automatically") {
		t.Errorf("the start told %q, %v", st.Recovered, err)
	}
	e := reaches(s, good.UUID, 5)
	if w := s.Wait(e.PID); w.Exit.Code != 0 || w.Result != "done" {
		t.Errorf("the good one: %+v", w)
	}
	r, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: bad.UUID.String(), Env: s.Env})
	if err != nil {
		t.Fatal(err)
	}
	reaches(s, bad.UUID, 2)
	s.Kill() // a person's word counts anew: once more is not the fourth time (R9)
	mended.Store(true)
	s.Start()
	r.PID = reaches(s, bad.UUID, 2).PID
	if w := s.Wait(r.PID); w.Exit.Code != 0 || w.Result != "done" {
		t.Errorf("the bad one, by hand: %+v", w)
	}
}

// A parent stands in one step for as long as its child works. However often the daemon breaks off
// meanwhile, that is not the parent's doing; and it does not go on before its child may.
func TestParentThatWaitsIsNotTakenForTheCauseOfACrash(t *testing.T) { // C-3
	var until atomic.Int32 // the step at which the child stops
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		n := turnOf(r)
		if r.Messages[0].Text == "kid" {
			switch {
			case n > int(until.Load()):
				return llmtest.Reply{Hang: true}
			case n > 3:
				return llmtest.Reply{Text: "kid done"}
			}
			return appends(n)
		}
		if res, told := r.LastResult(); told {
			return llmtest.Reply{Text: "the kid said: " + res.Text}
		}
		return tool("spawn", `{"intent":"kid"}`)
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	p := s.Spawn(ipc.SpawnRequest{Intent: "parent", ProcSpec: types.ProcSpec{Model: "fake"}})
	kid := s.Await(0, event.Spawned, func(e *event.Event) bool { return e.PPID == p.PID }).UUID
	for i, at := range []int{1, 1, 2, 3} { // twice in the same step: then it waits before it goes on
		reaches(s, kid, at)
		s.Kill()
		until.Store([]int32{0, 1, 2, 100}[i])
		s.Start()
		s.Settle()
	}
	e := s.Await(0, event.Exited, func(e *event.Event) bool { return e.UUID == p.UUID })
	if e.Exit == nil || e.Exit.Code != 0 || e.Text != "the kid said: kid done" {
		t.Errorf("%v %q", e.Exit, e.Text)
	}
	if k := s.Await(0, event.Spawned, func(e *event.Event) bool { return e.UUID == kid }); k.PPID != e.PID {
		t.Errorf("the child went on under PID %d, and its parent is %d", k.PPID, e.PID)
	}
	if got := strings.Join(lines(s, "effects"), " "); got != effects(3) {
		t.Errorf("effects %s", got)
	}
}

// A person who resumes one child wakes its parent, and the parent waits for the other children too.
func TestResumeOfOneChildWakesTheWholeFamily(t *testing.T) {
	var hang atomic.Bool
	hang.Store(true)
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if who := r.Messages[0].Text; strings.HasPrefix(who, "kid") {
			return llmtest.Reply{Text: who + " done", Hang: hang.Load()}
		}
		if _, told := r.LastResult(); told {
			all := ""
			for _, res := range r.Messages[len(r.Messages)-1].Results {
				all += res.Text + ";"
			}
			return llmtest.Reply{Text: all}
		}
		reply := tool("spawn", `{"intent":"kid-1"}`)
		reply.ToolCalls = append(reply.ToolCalls, tool("spawn", `{"intent":"kid-2"}`).ToolCalls...)
		return reply
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, "RNIX_DAEMON_AUTO_RESUME=false")
	p := s.Spawn(ipc.SpawnRequest{Intent: "parent", ProcSpec: types.ProcSpec{Model: "fake"}})
	var kids []types.UUID
	for _, name := range []string{"kid-1", "kid-2"} {
		kids = append(kids, s.Await(0, event.Spawned, func(e *event.Event) bool { return e.Intent == name }).UUID)
	}
	kill(t, s)
	hang.Store(false)
	s.Start()
	s.Settle()
	r, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: kids[0].String(), Env: s.Env})
	if err != nil || len(r.Woken) != 2 {
		t.Fatalf("%+v %v", r, err)
	}
	e := s.Await(0, event.Exited, func(e *event.Event) bool { return e.UUID == p.UUID })
	if e.Exit == nil || e.Exit.Code != 0 || e.Text != "kid-1 done;kid-2 done;" {
		t.Errorf("%v %q", e.Exit, e.Text)
	}
}
