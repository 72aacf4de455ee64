package daemon_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/event"
	"rnix/internal/soak"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// cast is a model that plays supervised agents: each does what its intent says.
func cast(r llmtest.Request) llmtest.Reply {
	switch intent := r.LastUser(); {
	case strings.HasPrefix(intent, "fail"):
		return llmtest.Reply{Status: 400, Text: "no"}
	case strings.HasPrefix(intent, "end"):
		return llmtest.Reply{Text: "done"}
	}
	return llmtest.Reply{Hang: true}
}

// stage is a system with a model for supervised agents.
func stage(t *testing.T, env ...string) *testenv.System {
	_, url := llmtest.NewAPI(t, cast)
	return testenv.New(t, append([]string{"ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL=" + url}, env...)...)
}

// supervise starts the supervisor of a file with one.
func supervise(t *testing.T, s *testenv.System, source string) ipc.Supervised {
	t.Helper()
	r, err := ipc.Call(t.Context(), s.Client, ipc.SuperviseUp, ipc.SuperviseRequest{ProjectRequest: ipc.ProjectRequest{Cwd: s.Work, Env: s.Env}, File: "test.yaml", Source: source})
	if err != nil || len(r.Supervisors) != 1 {
		t.Fatalf("%+v %v", r, err)
	}
	return r.Supervisors[0]
}

// shown describes a supervisor.
func shown(t *testing.T, s *testenv.System, target string) ipc.Supervisor {
	t.Helper()
	r, err := ipc.Call(t.Context(), s.Client, ipc.Supervisors, ipc.SupervisorsRequest{Target: target})
	if err != nil || len(r.Supervisors) != 1 {
		t.Fatalf("%+v %v", r, err)
	}
	return r.Supervisors[0]
}

// states waits until the children of a supervisor are as wanted, such as "a running, b delayed", and returns them.
func states(t *testing.T, s *testenv.System, target, want string) ipc.Supervisor {
	t.Helper()
	var last ipc.Supervisor
	got := ""
	defer func() {
		if t.Failed() {
			t.Logf("the children are: %s", got)
		}
	}()
	until(t, target+": "+want, func() bool {
		last = shown(t, s, target)
		var out []string
		for _, c := range last.Children {
			out = append(out, c.Name+" "+c.State)
		}
		got = strings.Join(out, ", ")
		return got == want
	})
	return last
}

const troupeFile = `supervisors:
  - name: top
    max_restarts: 5
    max_window: 1h
    children:
      - {name: a, intent: wait, model: m}
      - {name: b, intent: end, model: m, restart: transient}
      - {name: c, intent: end, model: m, backoff: {initial: 24h}}
      - name: low
        supervisor:
          strategy: simple_one_for_one
          children: [{name: w, model: m, restart: transient}]
`

// histories returns how many processes there ever were.
func histories(t *testing.T, s *testenv.System) int {
	t.Helper()
	l, err := ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{All: true})
	if err != nil {
		t.Fatal(err)
	}
	return len(l.Procs)
}

func TestSupervisorsGoOnWithTheirChildrenWhateverEndsTheDaemon(t *testing.T) {
	for name, end := range map[string]func(*testenv.System){"stop": (*testenv.System).Stop, "kill": (*testenv.System).Kill} {
		t.Run(name, func(t *testing.T) {
			s := stage(t, testenv.Checked)
			up := supervise(t, s, troupeFile)
			add, err := ipc.Call(t.Context(), s.Client, ipc.SuperviseAdd, ipc.SuperviseAddRequest{Target: "low", Intent: "wait for me"})
			if err != nil || add.Name != "w.1" {
				t.Fatalf("%+v %v", add, err)
			}
			before := states(t, s, "top", "a running, b down, c delayed, low running")
			s.Await(before.Children[0].PID, event.StepStarted, nil)
			s.Await(add.PID, event.StepStarted, nil)
			all := histories(t, s)
			for range 2 {
				end(s)
				s.Start()
				s.Settle()
				after := states(t, s, "top", "a running, b down, c delayed, low running")
				low := states(t, s, "low", "w.1 running")
				if after.UUID != up.UUID || low.Children[0].UUID != add.UUID || low.Children[0].PID == add.PID {
					t.Errorf("top is %s, was %s; w.1 %+v, was %+v", after.UUID, up.UUID, low.Children[0], add)
				}
				for i, c := range after.Children {
					if o := before.Children[i]; c.UUID != o.UUID || !c.Next.Equal(o.Next) || c.Restarts != o.Restarts {
						t.Errorf("%+v, was %+v", c, o)
					}
				}
				if n := histories(t, s); n != all {
					t.Errorf("%d histories, were %d: somebody is doubled", n, all)
				}
			}
			again, err := ipc.Call(t.Context(), s.Client, ipc.SuperviseAdd, ipc.SuperviseAddRequest{Target: "low", Intent: "wait more"})
			if err != nil || again.Name != "w.2" {
				t.Errorf("%+v %v", again, err)
			}
			if _, err := ipc.Call(t.Context(), s.Client, ipc.SuperviseStop, ipc.TargetRequest{Target: "top"}); err != nil {
				t.Fatal(err)
			}
			w, err := ipc.Call(t.Context(), s.Client, ipc.Wait, ipc.WaitRequest{Target: up.UUID.String(), TimeoutMs: 60_000})
			if err != nil || w.Exit.Code != types.ExitCancelled {
				t.Errorf("%+v %v", w, err)
			}
			if left, _ := ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{}); len(left.Procs) != 0 {
				t.Errorf("left: %+v", left.Procs)
			}
		})
	}
}

func TestRestartsBeforeAStopOfTheDaemonCountAfterIt(t *testing.T) {
	s := stage(t)
	up := supervise(t, s, "supervisors: [{name: top, max_restarts: 2, max_window: 1h, children: [{name: a, intent: wait, model: m, restart: permanent}]}]")
	kill := func() types.PID {
		pid := states(t, s, "top", "a running").Children[0].PID
		signal(t, s, pid, types.SIGKILL)
		return pid
	}
	other := func(was types.PID) {
		until(t, "another run", func() bool { c := shown(t, s, "top").Children[0]; return c.State == "running" && c.PID != was })
	}
	other(kill())
	s.Kill()
	s.Start()
	s.Settle()
	if got := states(t, s, "top", "a running"); got.Restarts != 1 || got.Left != 1 || got.Children[0].Restarts != 1 {
		t.Errorf("%+v", got)
	}
	other(kill())
	s.Stop()
	s.Start()
	s.Settle()
	kill()
	w, err := ipc.Call(t.Context(), s.Client, ipc.Wait, ipc.WaitRequest{Target: up.UUID.String(), TimeoutMs: 60_000})
	if err != nil || w.Exit.Code != types.ExitError || !strings.Contains(w.Exit.Reason, "after 2 restarts within 1h") {
		t.Errorf("%+v %v", w, err)
	}
}

func TestASuspendedChildHasNotEnded(t *testing.T) {
	s := stage(t)
	up := supervise(t, s, `supervisors: [{name: top, children: [{name: a, intent: wait, model: m}, {name: b, intent: wait, model: m}]}]`)
	a := states(t, s, "top", "a running, b running").Children[0]
	signal(t, s, a.PID, types.SIGPAUSE)
	states(t, s, "top", "a paused, b running")
	s.Stop()
	s.Start()
	s.Settle()
	if c := states(t, s, "top", "a suspended, b running").Children[0]; c.UUID != a.UUID || !strings.Contains(c.Wait, "paused") {
		t.Errorf("%+v", c)
	}
	if _, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: a.UUID.String(), Env: s.Env}); err != nil {
		t.Fatal(err)
	}
	if c := states(t, s, "top", "a running, b running").Children[0]; c.UUID != a.UUID || c.Restarts != 0 {
		t.Errorf("%+v", c)
	}
	pid := shown(t, s, "top").Children[0].PID
	signal(t, s, pid, types.SIGPAUSE)
	s.Stop()
	s.Start()
	s.Settle()
	states(t, s, "top", "a suspended, b running")
	if _, err := ipc.Call(t.Context(), s.Client, ipc.SuperviseStop, ipc.TargetRequest{Target: "top"}); err != nil {
		t.Fatal(err)
	}
	if _, err := ipc.Call(t.Context(), s.Client, ipc.Wait, ipc.WaitRequest{Target: up.UUID.String(), TimeoutMs: 60_000}); err != nil {
		t.Fatal(err)
	}
	p, err := ipc.Call(t.Context(), s.Client, ipc.GetProcDetail, ipc.TargetRequest{Target: a.UUID.String()})
	if err != nil || p.State != "dead" || p.Exit == nil || p.Exit.Code != types.ExitCancelled {
		t.Errorf("the suspended child of a supervisor that was stopped: %+v %v", p.Proc, err)
	}
}

func TestASuspendedSupervisorIsStoppedOnDisk(t *testing.T) {
	s := stage(t, "RNIX_DAEMON_AUTO_RESUME=false")
	up := supervise(t, s, troupeFile)
	states(t, s, "top", "a running, b down, c delayed, low running")
	s.Stop()
	s.Start()
	s.Settle()
	if got := shown(t, s, "top"); got.State != "suspended" || got.Children[0].State != "suspended" {
		t.Errorf("%+v", got)
	}
	r, err := ipc.Call(t.Context(), s.Client, ipc.SuperviseStop, ipc.TargetRequest{Target: "top"})
	if err != nil || !r.Dismissed || r.UUID != up.UUID {
		t.Fatalf("%+v %v", r, err)
	}
	l, err := ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{All: true})
	if err != nil || slices.ContainsFunc(l.Procs, func(p ipc.Proc) bool { return p.State != "dead" || p.Exit == nil }) {
		t.Errorf("%+v %v", l.Procs, err)
	}
	if _, err := ipc.Call(t.Context(), s.Client, ipc.SuperviseStop, ipc.TargetRequest{Target: "top"}); types.CodeOf(err) != types.ErrNotFound {
		t.Errorf("a second stop: %v", err)
	}
}

func TestASupervisorIsNotForked(t *testing.T) {
	s := stage(t)
	supervise(t, s, troupeFile)
	_, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: "top", Fork: true, Env: s.Env})
	if types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), "cannot be forked") {
		t.Errorf("%v", err)
	}
}

func TestAFileIsStartedWholeOrNotAtAll(t *testing.T) {
	s := stage(t)
	try := func(source string) error {
		_, err := ipc.Call(t.Context(), s.Client, ipc.SuperviseUp, ipc.SuperviseRequest{ProjectRequest: ipc.ProjectRequest{Cwd: s.Work, Env: s.Env}, File: "f.yaml", Source: source})
		return err
	}
	one := "  - {name: one, children: [{name: a, intent: wait, model: m}]}\n"
	if err := try("supervisors:\n" + one + "  - name: two\n    children:\n      - {name: b, agent: nosuch, intent: wait}\n"); types.CodeOf(err) != types.ErrInvalid ||
		!strings.Contains(err.Error(), "f.yaml:5:26: supervisors[1].children[0].agent: ") {
		t.Errorf("an agent that is not there: %v", err)
	}
	supervise(t, s, "supervisors:\n  - {name: two, children: [{name: b, intent: wait, model: m}]}\n")
	if err := try("supervisors:\n" + one + "  - {name: two, children: [{name: b, intent: wait more, model: m}]}\n"); types.CodeOf(err) != types.ErrConflict {
		t.Errorf("another of the same name: %v", err)
	}
	r, err := ipc.Call(t.Context(), s.Client, ipc.Supervisors, ipc.SupervisorsRequest{})
	if err != nil || len(r.Supervisors) != 1 || r.Supervisors[0].Name != "two" {
		t.Errorf("%+v %v", r, err)
	}
	if again := supervise(t, s, "supervisors:\n  - {name: two, children: [{name: b, intent: wait, model: m}]}\n"); !again.Was {
		t.Errorf("%+v", again)
	}
}

// However often the daemon is killed while a supervisor starts children again, no child runs twice, and none is
// forgotten.
func TestKillsAtAnyMomentDoubleNobodyAndForgetNobody(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	s := stage(t, testenv.Checked, "RNIX_DAEMON_AUTO_RESUME_MAX=1000") // kills may well meet one step three times
	up := supervise(t, s, `supervisors:
  - name: top
    strategy: one_for_all
    max_restarts: 1000
    max_window: 1h
    children:
      - {name: a, intent: wait a, model: m, shutdown: kill}
      - {name: b, intent: wait b, model: m, shutdown: kill, backoff: {initial: 5ms}}
      - {name: c, intent: wait c, model: m, shutdown: kill}
`)
	for n := range soak.Pick(t, "kills of the daemon", 5, 40) {
		got := states(t, s, "top", "a running, b running, c running")
		hit := r.IntN(3)
		go func(pid types.PID, c *ipc.Client) { // ends with the call, at the latest with the daemon
			_, _ = ipc.Call(context.Background(), c, ipc.Signal, ipc.SignalRequest{Target: pid.String(), Signal: types.SIGKILL})
		}(got.Children[hit].PID, s.Client)
		for now := got; n%2 == 1 && now.Children[hit].UUID == got.Children[hit].UUID; { // who breaks off three times in one step stays suspended
			now = states(t, s, "top", "a running, b running, c running")
		}
		<-time.After(time.Duration(r.IntN(60)) * time.Millisecond) // the moment is what is tried
		s.Kill()
		s.Start()
		s.Settle()
	}
	last := states(t, s, "top", "a running, b running, c running")
	if last.UUID != up.UUID {
		t.Errorf("%s, was %s", last.UUID, up.UUID)
	}
	l, err := ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var alive []string
	for _, p := range l.Procs {
		alive = append(alive, fmt.Sprintf("%s %s", p.Name, p.State))
	}
	slices.Sort(alive)
	if got := strings.Join(alive, ", "); got != "a running, b running, c running, top running" {
		t.Errorf("alive: %s", got)
	}
}

// A supervisor that was killed takes its children with it, also if the daemon is killed before it could.
func TestAKilledSupervisorLeavesNobodyWhateverEndsTheDaemon(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	s := stage(t)
	for round := range 4 {
		name := fmt.Sprintf("top%d", round)
		up := supervise(t, s, "supervisors: [{name: "+name+", children: [{name: a, intent: wait, model: m}, {name: b, intent: wait, model: m}, {name: c, intent: wait, model: m}]}]")
		states(t, s, name, "a running, b running, c running")
		sent := make(chan struct{})
		go func(c *ipc.Client) { // ends with the call, at the latest with the daemon
			close(sent)
			_, _ = ipc.Call(context.Background(), c, ipc.Signal, ipc.SignalRequest{Target: up.PID.String(), Signal: types.SIGKILL})
		}(s.Client)
		<-sent
		<-time.After(time.Duration(r.IntN(12)) * time.Millisecond) // the moment is what is tried
		s.Kill()
		s.Start()
		s.Settle()
		top := shown(t, s, up.UUID.String())
		if st, err := ipc.Call(t.Context(), s.Client, ipc.DaemonStatus, ipc.Empty{}); err == nil {
			t.Logf("the supervisor's end is on record: %t; mended: %q", top.Exit != nil, st.Recovered)
		}
		if top.Exit == nil { // the signal came too late
			states(t, s, up.UUID.String(), "a running, b running, c running")
			signal(t, s, top.PID, types.SIGKILL)
		}
		until(t, "nobody is left", func() bool {
			l, err := ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{})
			return err == nil && len(l.Procs) == 0
		})
	}
}
