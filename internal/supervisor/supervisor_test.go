package supervisor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rnix/internal/event"
	"rnix/internal/soak"
	"rnix/kernel"
	"rnix/types"
	"rnix/vfs"
)

// errBoom is what children fail with.
var errBoom = errors.New("boom")

// troupe is a kernel whose model plays children by their names.
type troupe struct {
	*sys
	mu    sync.Mutex
	runs  map[string]int // +checklocks:mu
	cur   *event.Cursor  // of story
	names map[types.UUID]string
	// play returns what a child does in its n-th run, from 1; nil = it works until it is ended.
	play map[string]func(run int) func(ctx context.Context) (reply, error)
}

func newTroupe(t *testing.T, change ...func(*kernel.Config)) *troupe {
	tr := &troupe{sys: newSys(t, change...), runs: map[string]int{}, play: map[string]func(int) func(context.Context) (reply, error){}}
	tr.model = func(ctx context.Context, c vfs.Caller, turn int) (reply, error) {
		p, _ := tr.Process(c.PID)
		tr.mu.Lock()
		tr.runs[p.Name()]++
		run, play := tr.runs[p.Name()], tr.play[p.Name()]
		tr.mu.Unlock()
		if play != nil {
			if do := play(run); do != nil {
				return do(ctx)
			}
		}
		return untilKilled(ctx, c, turn)
	}
	return tr
}

// after returns what ends after a time: with errBoom or, if it is to succeed, well.
func after(d time.Duration, well bool) func(context.Context) (reply, error) {
	return func(ctx context.Context) (reply, error) {
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return reply{}, context.Cause(ctx)
		}
		if well {
			return reply{Content: "done", Tokens: 10}, nil
		}
		return reply{}, errBoom
	}
}

// failing plays a child whose first n runs fail, each after a time.
func failing(n int, each time.Duration) func(int) func(context.Context) (reply, error) {
	return func(run int) func(context.Context) (reply, error) {
		if run > n {
			return nil
		}
		return after(each, false)
	}
}

func child(name string, change ...func(*ChildSpec)) ChildSpec {
	c := ChildSpec{Name: name, Intent: "be " + name, Opts: opts()}
	for _, f := range change {
		f(&c)
	}
	return c
}

func kind(r Restart) func(*ChildSpec) { return func(c *ChildSpec) { c.Restart = r } }

func (tr *troupe) supervise(spec Spec) types.PID {
	tr.t.Helper()
	pid, err := tr.SpawnSupervisor(spec)
	if err != nil {
		tr.t.Fatal(err)
	}
	return pid
}

// story says in which order processes were started (+) and ended (-), by their names, since the last
// time it was asked.
func (tr *troupe) story() string {
	if tr.cur == nil {
		tr.cur, tr.names = tr.events.Cursor(tr.events.Oldest()), map[types.UUID]string{}
	}
	var out []string
	for e, ok, _ := tr.cur.TryNext(); ok; e, ok, _ = tr.cur.TryNext() {
		switch e.Kind {
		case event.Spawned:
			tr.names[e.UUID] = e.Name
			out = append(out, "+"+e.Name)
		case event.Exited:
			out = append(out, "-"+tr.names[e.UUID])
		}
	}
	return strings.Join(out, " ")
}

// tells checks what has happened since the last time.
func (tr *troupe) tells(when, want string) {
	tr.t.Helper()
	synctest.Wait()
	if got := tr.story(); got != want {
		tr.t.Errorf("%s: %q, want %q", when, got, want)
	}
}

// run returns the PID of the run of the moment of a child.
func (tr *troupe) run(supervisor types.PID, name string) types.PID {
	tr.t.Helper()
	i, err := Info(tr, supervisor)
	if err != nil {
		tr.t.Fatal(err)
	}
	for _, c := range i.Children {
		if c.Name == name {
			return c.PID
		}
	}
	tr.t.Fatalf("no child %q in %+v", name, i)
	return 0
}

// deaf makes a process ignore SIGTERM, and counts.
func (tr *troupe) deaf(pid types.PID) *int {
	n := new(int)
	if err := tr.SetHandler(pid, types.SIGTERM, func(types.Signal) { *n++ }); err != nil {
		tr.t.Fatal(err)
	}
	return n
}

func (tr *troupe) ends(pid types.PID, code int, reason string) {
	tr.t.Helper()
	e, err := tr.Wait(pid)
	if err != nil || e.Code != code || !strings.Contains(e.Reason, reason) {
		tr.t.Errorf("PID %d ended with %v, %v; want %d (%s)", pid, e, err, code, reason)
	}
}

func TestSupervisorStartsAgainWhatItsStrategySays(t *testing.T) {
	for strategy, want := range map[Strategy]string{
		"":         "-b +b",
		OneForOne:  "-b +b",
		OneForAll:  "-b -c -a +a +b +c",
		RestForOne: "-b -c +b +c",
	} {
		t.Run(string(strategy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr := newTroupe(t)
				tr.play["b"] = failing(1, time.Second)
				pid := tr.supervise(Spec{Name: "sup", Strategy: strategy, Children: []ChildSpec{child("a"), child("b"), child("c")}})
				tr.tells("the start", "+sup +a +b +c")
				time.Sleep(time.Second)
				tr.tells("a failure", want)
				i, err := tr.Info(pid)
				if err != nil || len(i.Children) != 3 || i.StateName() != "running" || i.Wait != "its children" {
					t.Errorf("%+v %v", i, err)
				}
				_ = tr.Kill(pid, types.SIGTERM)
				tr.ends(pid, types.ExitCancelled, "terminated")
				tr.tells("the end", "-c -b -a -sup")
			})
		})
	}
}

func TestRestartTypeSaysWhichEndsCount(t *testing.T) {
	fails := func(int) func(context.Context) (reply, error) { return after(time.Second, false) }
	succeeds := func(int) func(context.Context) (reply, error) { return after(time.Second, true) }
	for _, c := range []struct {
		name  string
		kind  Restart
		play  func(int) func(context.Context) (reply, error)
		sigs  []types.Signal
		again bool
	}{
		{"permanent fails", Permanent, fails, nil, true},
		{"permanent succeeds", Permanent, succeeds, nil, true},
		{"permanent is killed", Permanent, nil, []types.Signal{types.SIGKILL}, true},
		{"nothing said succeeds", "", succeeds, nil, true},
		{"transient fails", Transient, fails, nil, true},
		{"transient succeeds", Transient, succeeds, nil, false},
		{"transient is killed", Transient, nil, []types.Signal{types.SIGKILL}, false},
		{"transient is killed while paused", Transient, nil, []types.Signal{types.SIGPAUSE, types.SIGKILL}, false},
		{"temporary fails", Temporary, fails, nil, false},
		{"temporary succeeds", Temporary, succeeds, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr := newTroupe(t)
				tr.play["a"] = func(run int) func(context.Context) (reply, error) {
					if run > 1 || c.play == nil {
						return nil
					}
					return c.play(run)
				}
				pid := tr.supervise(Spec{Name: "sup", Children: []ChildSpec{child("a", kind(c.kind))}})
				tr.tells("the start", "+sup +a")
				time.Sleep(time.Second)
				for _, sig := range c.sigs {
					_ = tr.Kill(tr.run(pid, "a"), sig)
					synctest.Wait()
				}
				want := "-a"
				if c.again {
					want = "-a +a"
				}
				tr.tells("its end", want)
				i, err := Info(tr, pid)
				if err != nil || len(i.Children) == 1 != (c.kind != Temporary) {
					t.Errorf("%+v %v", i, err)
				}
			})
		})
	}
}

func TestSupervisorGivesUpAfterTheRestartsThatAreAllowed(t *testing.T) {
	always := func(int) func(context.Context) (reply, error) { return after(time.Second, false) }
	synctest.Test(t, func(t *testing.T) {
		tr := newTroupe(t)
		tr.play["b"] = always
		pid := tr.supervise(Spec{Name: "sup", Intensity: Intensity{MaxRestarts: 3, Period: time.Minute}, Children: []ChildSpec{child("a"), child("b")}})
		p, _ := tr.Process(pid)
		time.Sleep(10 * time.Second)
		tr.tells("four failures", "+sup +a +b -b +b -b +b -b +b -b -a -sup")
		tr.ends(pid, types.ExitError, `gave up: child "b" (PID 6) ended with 1 (Write /dev/llm/m (pid 6): boom), after 3 restarts within 1m0s`)
		if got, want := strings.ReplaceAll(tr.stores.of(p.UUID).kinds(), "note ", ""), "spawn message restart restart restart exit"; got != want {
			t.Errorf("recorded %s, want %s", got, want)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		tr := newTroupe(t)
		tr.play["b"] = always
		pid := tr.supervise(Spec{Intensity: Intensity{MaxRestarts: 3, Period: 3*time.Second - 1}, Children: []ChildSpec{child("b")}})
		span := soak.Pick(t, "length of the restarts", 10*time.Minute, time.Hour)
		time.Sleep(span + time.Second/2) // not when one ends
		synctest.Wait()
		i, err := Info(tr, pid)
		if err != nil || len(i.Children) != 1 || i.Children[0].Restarts < int(span.Seconds())-100 {
			t.Errorf("spread over the period it gave up: %+v %v", i, err)
		}
		if n := len(tr.List()); n != 2 {
			t.Errorf("after %v of restarts %d processes are left", span, n)
		}
	})
}

func TestRestartsComeLaterAndLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTroupe(t)
		start := time.Now()
		var times []time.Duration
		tr.play["a"] = func(int) func(context.Context) (reply, error) {
			times = append(times, time.Since(start))
			return func(context.Context) (reply, error) { return reply{}, errBoom }
		}
		pid := tr.supervise(Spec{Intensity: Intensity{MaxRestarts: 5, Period: time.Hour},
			Children: []ChildSpec{child("a", func(c *ChildSpec) { c.Backoff = Backoff{Initial: time.Second, Factor: 3, Max: 10 * time.Second} })}})
		time.Sleep(5 * time.Second)
		synctest.Wait()
		i, _ := Info(tr, pid)
		if c := i.Children[0]; c.State != "delayed" || !c.Due.Equal(start.Add(13*time.Second)) || c.Restarts != 2 || !errors.Is(c.Last.Err, errBoom) {
			t.Errorf("%+v", c)
		}
		if p, _ := tr.Info(pid); p.Wait != "the next restart" || !p.WaitUntil.Equal(start.Add(13*time.Second)) {
			t.Errorf("%q until %s", p.Wait, p.WaitUntil)
		}
		tr.ends(pid, types.ExitError, "gave up")
		want := []time.Duration{0, 1, 4, 13, 23, 33}
		for i := range want {
			want[i] *= time.Second
		}
		if !slices.Equal(times, want) {
			t.Errorf("started after %v, want %v", times, want)
		}
	})
}

func TestShutdownGoesInReverseAndKillsWhatDoesNotListen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTroupe(t)
		pid := tr.supervise(Spec{Name: "sup", Children: []ChildSpec{
			child("a"),
			child("b", func(c *ChildSpec) { c.Shutdown = 3 * time.Second }),
			child("c", func(c *ChildSpec) { c.Shutdown = BrutalKill }),
			child("d"),
		}})
		tr.tells("the start", "+sup +a +b +c +d")
		b, c := tr.deaf(tr.run(pid, "b")), tr.deaf(tr.run(pid, "c"))
		begin := time.Now()
		_ = tr.Kill(pid, types.SIGTERM)
		tr.tells("at once", "-d -c")
		time.Sleep(3*time.Second - 1)
		tr.tells("before the deadline", "")
		tr.ends(pid, types.ExitCancelled, "terminated")
		tr.tells("behind it", "-b -a -sup")
		if time.Since(begin) != 3*time.Second || *b != 1 || *c != 0 {
			t.Errorf("it took %s; b was asked %d times, c %d times", time.Since(begin), *b, *c)
		}
		if e, err := tr.Wait(pid + 2); err != nil || e.Reason != "killed" {
			t.Errorf("b ended with %v %v", e, err)
		}
	})
}

func TestChildWithInfiniteTimeIsNeverKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTroupe(t)
		tr.play["a"] = func(int) func(context.Context) (reply, error) { return after(time.Hour, true) }
		pid := tr.supervise(Spec{Children: []ChildSpec{child("a", func(c *ChildSpec) { c.Shutdown = Infinity })}})
		tr.deaf(tr.run(pid, "a"))
		begin := time.Now()
		_ = tr.Kill(pid, types.SIGINT)
		tr.ends(pid, types.ExitCancelled, "interrupted")
		if e, _ := tr.Wait(pid + 1); time.Since(begin) != time.Hour || e.Code != 0 {
			t.Errorf("after %s, %v", time.Since(begin), e)
		}
	})
}

func TestASupervisorThatGaveUpHasFailedForTheOneAbove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTroupe(t)
		tr.play["leaf"] = func(int) func(context.Context) (reply, error) { return after(time.Second, false) }
		once := Intensity{MaxRestarts: 1, Period: time.Hour}
		pid := tr.supervise(Spec{Name: "top", Intensity: once, Children: []ChildSpec{child("a"), {
			Name: "low", Restart: Transient, Supervisor: &Spec{Intensity: once, Children: []ChildSpec{child("leaf")}},
		}}})
		tr.tells("the start", "+top +a +low +leaf")
		time.Sleep(2 * time.Second)
		tr.tells("the lower one gives up", "-leaf +leaf -leaf -low +low +leaf")
		time.Sleep(2 * time.Second)
		tr.tells("and again", "-leaf +leaf -leaf -low -a -top")
		tr.ends(pid, types.ExitError, `child "low"`)
	})
}

func TestSigkillOfASupervisorLeavesNobody(t *testing.T) {
	for _, c := range []struct {
		name  string
		after time.Duration
		want  string
	}{
		{"while all run", time.Second / 2, "a b low leaf sup"},
		{"while it waits to start one again", time.Second + time.Second/2, "a low leaf sup"},
		{"while it stops the others for that", 12 * time.Second, "a low leaf sup"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr := newTroupe(t)
				tr.play["b"] = failing(2, time.Second)
				pid := tr.supervise(Spec{Name: "sup", Strategy: OneForAll, Children: []ChildSpec{
					child("a", func(c *ChildSpec) { c.Shutdown = time.Hour }),
					child("b", func(c *ChildSpec) { c.Backoff.Initial = 10 * time.Second }),
					{Name: "low", Supervisor: &Spec{Children: []ChildSpec{child("leaf")}}},
				}})
				tr.tells("the start", "+sup +a +b +low +leaf")
				if c.after > 10*time.Second {
					time.Sleep(11 * time.Second)
					tr.tells("the first failure", "-b -leaf -low -a +a +b +low +leaf")
					tr.deaf(tr.run(pid, "a"))
					time.Sleep(time.Second)
					tr.tells("the second failure", "-b -leaf -low")
				} else {
					time.Sleep(c.after)
					tr.story()
				}
				begin := time.Now()
				if err := tr.Kill(pid, types.SIGKILL); err != nil {
					t.Fatal(err)
				}
				tr.ends(pid, types.ExitCancelled, "killed")
				synctest.Wait()
				if n := len(tr.List()); n != 0 || time.Since(begin) != 0 {
					t.Errorf("%d processes are left after %s", n, time.Since(begin))
				}
				time.Sleep(time.Hour)
				if got := tr.story(); strings.Contains(got, "+") {
					t.Errorf("it started somebody: %s", got)
				}
			})
		})
	}
}

func TestPauseHoldsRestartsAndNotTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTroupe(t)
		tr.play["a"] = failing(1, time.Second)
		pid := tr.supervise(Spec{Name: "sup", Children: []ChildSpec{child("a"), child("b")}})
		_ = tr.Kill(pid, types.SIGPAUSE)
		time.Sleep(time.Hour)
		tr.tells("paused", "+sup +a +b -a")
		if i, _ := tr.Info(pid); i.StateName() != "suspended" {
			t.Errorf("it is %s", i.StateName())
		}
		_ = tr.Kill(pid, types.SIGRESUME)
		tr.tells("resumed", "+a")
		_ = tr.Kill(pid, types.SIGPAUSE)
		_ = tr.Kill(tr.run(pid, "b"), types.SIGKILL)
		tr.tells("paused again", "-b")
		_ = tr.Kill(pid, types.SIGTERM)
		tr.ends(pid, types.ExitError, types.ReasonCancelledPaused)
		tr.tells("ended", "-a -sup")
	})
}

func TestStoppingTheKernelIsNoEndForASupervisor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTroupe(t)
		tr.play["b"] = failing(1, time.Second)
		pid := tr.supervise(Spec{Name: "sup", Children: []ChildSpec{
			child("a"), child("b", func(c *ChildSpec) { c.Backoff.Initial = time.Hour }),
			{Name: "low", Supervisor: &Spec{Strategy: OneForAll, Children: []ChildSpec{child("leaf")}}},
		}})
		var ids []types.UUID
		for _, i := range tr.List() {
			ids = append(ids, i.UUID)
		}
		time.Sleep(time.Minute)
		if err := tr.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"spawn message restart daemon_stop", "spawn message daemon_stop", "spawn message exit", "spawn message daemon_stop", "spawn message daemon_stop"} {
			got := strings.NewReplacer("step ", "", "note ", "").Replace(tr.stores.of(ids[i]).kinds())
			if i == 2 {
				got = strings.Join(slices.Compact(strings.Fields(got)), " ")
			}
			if got != want {
				t.Errorf("history %d: %s, want %s", i, got, want)
			}
		}
		if i, err := tr.Info(pid); err != nil || i.Exit != nil || !i.Suspended {
			t.Errorf("%+v %v", i, err)
		}
		if _, err := tr.SpawnSupervisor(Spec{}); types.CodeOf(err) != types.ErrUnavailable {
			t.Errorf("afterwards: %v", err)
		}
	})
}

func TestAStartThatFailsTakesBackTheOthers(t *testing.T) {
	bad := child("bad", func(c *ChildSpec) { c.Opts.Provider = "nosuch" })
	for name, last := range map[string]ChildSpec{
		"agent":      bad,
		"supervisor": {Name: "low", Supervisor: &Spec{Children: []ChildSpec{child("leaf"), bad}}},
		"temporary":  child("bad", func(c *ChildSpec) { c.Opts.Provider = "nosuch"; c.Restart = Temporary }),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr := newTroupe(t)
				pid, err := tr.SpawnSupervisor(Spec{Name: "sup", Children: []ChildSpec{child("a"), child("b"), last}})
				if pid != 0 || types.CodeOf(err) != types.ErrNotFound || !strings.Contains(err.Error(), `"bad"`) {
					t.Errorf("PID %d, %v", pid, err)
				}
				synctest.Wait()
				if n := len(tr.List()); n != 0 {
					t.Errorf("%d processes are left", n)
				}
				if got := tr.story(); !strings.HasSuffix(got, "-b -a -sup") {
					t.Errorf("%s", got)
				}
			})
		})
	}
}

func TestAChildThatCannotBeStartedAgainIsTriedAsOftenAsIsAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTroupe(t)
		tr.play["a"] = failing(9, time.Second)
		pid := tr.supervise(Spec{Name: "sup", Intensity: Intensity{MaxRestarts: 2, Period: time.Hour}, Children: []ChildSpec{child("a"), child("b")}})
		tr.tells("the start", "+sup +a +b")
		tr.stores.mu.Lock()
		tr.stores.create = types.Errorf(types.ErrStorage, "Create", "", "the disk is full")
		tr.stores.mu.Unlock()
		time.Sleep(time.Second)
		tr.tells("a failure", "-a -b -sup")
		tr.ends(pid, types.ExitError, "could not be started: Create: the disk is full, after 2 restarts")
	})
}

func TestStartChildMakesChildrenOfATemplate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTroupe(t)
		tr.play["w.1"] = failing(1, time.Second)
		tr.play["w.2"] = func(int) func(context.Context) (reply, error) { return after(time.Second, true) }
		pid := tr.supervise(Spec{Name: "sup", Strategy: SimpleOneForOne, Children: []ChildSpec{child("w", kind(Transient), func(c *ChildSpec) { c.Intent = "" })}})
		tr.tells("the start", "+sup")
		if _, err := StartChild(tr, pid, " "); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("without an intent: %v", err)
		}
		for i := range 3 {
			c, err := StartChild(tr, pid, "work")
			if p, _ := tr.Info(c); err != nil || p.Intent != "work" || p.PPID != pid {
				t.Fatalf("child %d: %+v %v", i, p, err)
			}
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if i, _ := Info(tr, pid); len(i.Children) != 2 || i.Children[0].Name != "w.1" || i.Children[0].Restarts != 1 || i.Children[1].Name != "w.3" {
			t.Errorf("%+v", i)
		}
		tr.stores.create = errBoom
		if c, err := StartChild(tr, pid, "work"); c != 0 || !errors.Is(err, errBoom) {
			t.Errorf("one that cannot start: %d %v", c, err)
		}
		tr.stores.create = nil
		_ = tr.Kill(pid, types.SIGPAUSE)
		if _, err := StartChild(tr, pid, "work"); types.CodeOf(err) != types.ErrConflict {
			t.Errorf("while paused: %v", err)
		}
		_ = tr.Kill(pid, types.SIGRESUME)
		for _, c := range []string{"w.1", "w.3"} {
			tr.deaf(tr.run(pid, c))
		}
		begin := time.Now()
		_ = tr.Kill(pid, types.SIGTERM)
		synctest.Wait()
		if _, err := StartChild(tr, pid, "work"); types.CodeOf(err) != types.ErrCancelled {
			t.Errorf("while it ends: %v", err)
		}
		tr.ends(pid, types.ExitCancelled, "terminated")
		if d := time.Since(begin); d != DefaultShutdown {
			t.Errorf("two children that do not listen took %s: they are stopped together", d)
		}
	})
}

func TestChildrenHaveWhatTheirSupervisorHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTroupe(t)
		budget := 25
		tr.play["a"] = func(int) func(context.Context) (reply, error) { return after(time.Second, true) } // 10 tokens
		pid := tr.supervise(Spec{Children: []ChildSpec{child("a", func(c *ChildSpec) { c.Opts.WorkDir = "" })},
			Opts: kernel.SpawnOpts{WorkDir: "/tmp", ProcSpec: types.ProcSpec{DeniedDevices: []string{"/dev/tool"}, ContextBudget: &budget}, Env: []string{"A=b"}}})
		for used := range 3 {
			p, ok := tr.Process(tr.run(pid, "a"))
			c, _ := tr.Caller(p.PID)
			if !ok || p.WorkDir != "/tmp" || p.Rights.Permits("/dev/tool") || !slices.Contains(c.Env, "A=b") {
				t.Errorf("run %d: %+v", used, p)
			}
			sup, _ := tr.Process(pid)
			if s, ok := tr.Budget(sup.UUID); !ok || s.Limit.Tokens != budget || s.Used.Tokens != 10*used {
				t.Errorf("run %d: %+v", used, s)
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
	})
}

func TestSupervisorsUnderFireLeaveNobody(t *testing.T) {
	tr := newTroupe(t, func(c *kernel.Config) { c.Limits.Children = 100 })
	for _, name := range []string{"a", "b", "c", "leaf"} {
		tr.play[name] = func(run int) func(context.Context) (reply, error) {
			if run%3 == 0 {
				return nil
			}
			return func(context.Context) (reply, error) { return reply{}, errBoom }
		}
	}
	often := Intensity{MaxRestarts: 20, Period: time.Hour}
	var wg sync.WaitGroup
	for n := range 16 {
		wg.Go(func() {
			pid, err := tr.SpawnSupervisor(Spec{Strategy: []Strategy{OneForOne, OneForAll, RestForOne}[n%3], Intensity: often, Children: []ChildSpec{
				child("a"), child("b"), {Name: "low", Supervisor: &Spec{Intensity: often, Children: []ChildSpec{child("leaf")}}}, child("c"),
			}})
			if err != nil {
				t.Errorf("supervisor %d: %v", n, err)
				return
			}
			var inner sync.WaitGroup
			for _, sig := range []types.Signal{types.SIGPAUSE, types.SIGRESUME, []types.Signal{types.SIGTERM, types.SIGKILL}[n%2]} {
				inner.Go(func() {
					if i, err := Info(tr, pid); err == nil {
						for _, c := range i.Children {
							_ = tr.Kill(c.PID, types.SIGKILL)
						}
					}
					_ = tr.Kill(pid, sig)
				})
			}
			inner.Wait()
			_ = tr.Kill(pid, types.SIGRESUME)
			if e, err := tr.Wait(pid); err != nil || e.Code == types.ExitOK {
				t.Errorf("supervisor %d ended with %v %v", n, e, err)
			}
		})
	}
	wg.Wait()
	for _, i := range tr.List() { // killed with their supervisors, and about to be reaped
		if _, err := tr.Wait(i.PID); err != nil {
			t.Error(err)
		}
	}
	if left := tr.List(); len(left) != 0 {
		t.Errorf("%d processes are left", len(left))
	}
}

func TestTheRestartThatWasRefusedDoesNotCount(t *testing.T) {
	now := time.Now()
	var s statuses
	s.set(nil, []time.Time{now.Add(-2 * time.Hour), now.Add(-2 * time.Second), now.Add(-time.Second), now})
	if n, _ := s.get(now, Intensity{MaxRestarts: 2, Period: time.Minute}); n != 2 {
		t.Errorf("%d restarts of 2 that are allowed", n)
	}
	if n, _ := s.get(now, Intensity{MaxRestarts: 5, Period: time.Minute}); n != 3 {
		t.Errorf("%d restarts", n)
	}
}

// A supervisor that an agent has started restarts within what the agent's family may start, whatever the agent
// has allowed it.
func TestASupervisorOfAnAgentStartsOnlyWhatItsFamilyMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTroupe(t, func(c *kernel.Config) { c.Limits.SpawnRate = 5 })
		tr.play["flop"] = failing(1<<20, 0)
		spec := Spec{Intensity: Intensity{MaxRestarts: 100, Period: time.Millisecond}, Children: []ChildSpec{child("flop")}}
		spec.ParentPID = tr.spawn(func(o *kernel.SpawnOpts) { o.Name = "top" })
		if _, err := tr.WaitInfo(t.Context(), tr.supervise(spec)); err != nil {
			t.Error(err)
		}
		if n := strings.Count(tr.story(), "+flop"); n != 4 {
			t.Errorf("%d children were started with a supervisor, by a family that may start 5 within a minute", n)
		}
	})
}
