package kernel

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rnix/agent"
	"rnix/types"
	"rnix/vfs"
)

func TestAgentsThatStartAgentsDoNotTakeTheWholeMachine(t *testing.T) {
	const most = 20
	var s *sys
	var highest, refused atomic.Int64
	s = newSys(t, func(c *Config) { c.Limits.Family = most })
	s.model = func(_ context.Context, _ vfs.Caller, turn int) (reply, error) {
		s.table.mu.Lock()
		alive := int64(len(s.table.byUUID)) // List is no snapshot while processes come and go
		s.table.mu.Unlock()
		for n, seen := alive, highest.Load(); n > seen && !highest.CompareAndSwap(seen, n); seen = highest.Load() {
		}
		if turn == 1 { // each wants eight more, down to the limit of the depth
			return reply{Calls: strings.Split(strings.Repeat(`spawn {"intent":"more"}|`, 7)+`spawn {"intent":"more"}`, "|")}, nil
		}
		return reply{Content: "enough"}, nil
	}
	pid := s.spawn()
	if _, err := s.Wait(pid); err != nil {
		t.Fatal(err)
	}
	for _, r := range s.stores.recs {
		for _, rec := range r.committed {
			if rec.Result != nil && rec.Result.Code == types.ErrExhausted && strings.Contains(rec.Result.Error, "started from one") {
				refused.Add(1)
			}
		}
	}
	if highest.Load() > most || refused.Load() == 0 {
		t.Errorf("%d lived at once of at most %d, %d were refused", highest.Load(), most, refused.Load())
	}
	s.model = finish("done") // the room is given back
	for range most {
		if e, err := s.Wait(s.spawn()); err != nil || e.Code != types.ExitOK {
			t.Fatalf("%v %v", e, err)
		}
	}
}

func TestChildDrawsOnTheBudgetOfItsParent(t *testing.T) {
	s := newSys(t)
	s.model = untilKilled
	budget := func(n int) func(*SpawnOpts) { return func(o *SpawnOpts) { o.ContextBudget = &n } }
	parent := s.spawn(budget(1000))
	below := func(o *SpawnOpts) { o.ParentPID = parent }
	for asked, change := range map[int]func(*SpawnOpts){0: func(*SpawnOpts) {}, 999: budget(999), 5000: budget(5000)} {
		pid := s.spawn(below, change)
		i, err := s.Info(pid)
		p, _ := s.Process(pid)
		if err != nil || i.ContextBudget != asked { // its own, below that of its parent
			t.Errorf("%d of %d: %v", i.ContextBudget, asked, err)
		}
		p.purse.Spend(Amount{Tokens: 100})
	}
	up, _ := s.Process(parent)
	if st := up.purse.State(); st.Used.Tokens != 300 || st.Limit.Tokens != 1000 {
		t.Errorf("%+v", st)
	}
}

// A pause of a tree holds a child that is being born at that moment.
func TestPauseOfATreeHoldsWhoIsJustBeingBorn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		coming, come := make(chan struct{}), make(chan struct{})
		last := types.PID(0)
		s := newSys(t, func(c *Config) {
			c.Lifecycle = &lives{next: func() (types.PID, error) { // the kid is not in the table yet
				if last++; last == 2 {
					close(coming)
					<-come
				}
				return last, nil
			}}
			c.Catalog = agents{load: func(*Process, string) (*agent.Agent, SpawnOpts, error) { return &agent.Agent{}, opts(), nil }}
		})
		s.model = func(_ context.Context, c vfs.Caller, turn int) (reply, error) {
			if c.PID == 1 && turn == 1 {
				return reply{Calls: []string{`spawn {"intent":"kid"}`}}, nil
			}
			return reply{Content: "done"}, nil
		}
		pid := s.spawn()
		<-coming
		if n, err := s.SignalTree(pid, types.SIGPAUSE); n != 1 || err != nil {
			t.Errorf("%d paused, %v", n, err)
		}
		close(come)
		time.Sleep(time.Hour)
		synctest.Wait()
		if i, err := s.Info(2); err != nil || !i.Paused || i.Step != 0 {
			t.Errorf("the kid: %+v %v", i, err)
		}
		if n, err := s.SignalTree(pid, types.SIGRESUME); n != 2 || err != nil {
			t.Errorf("%d resumed, %v", n, err)
		}
		if i, err := s.WaitInfo(t.Context(), pid); err != nil || i.Exit.Code != 0 {
			t.Errorf("%+v %v", i, err)
		}
	})
}

func TestAFamilyStartsOnlySoManyWithinAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 5
		s := newSys(t, func(c *Config) { c.Limits.SpawnRate = most })
		s.model = finish("done")
		inner := s.model
		s.model = func(ctx context.Context, c vfs.Caller, turn int) (reply, error) {
			if p, _ := s.Process(c.PID); p.Name() == "top" || p.Name() == "other" {
				return untilKilled(ctx, c, turn)
			}
			return inner(ctx, c, turn)
		}
		top := s.spawn(func(o *SpawnOpts) { o.Name = "top" })
		below := func(parent types.PID) error {
			pid, err := s.Spawn("x", nil, opts(func(o *SpawnOpts) { o.ParentPID = parent }))
			if err == nil {
				_, err = s.Wait(pid)
			}
			return err
		}
		for range most {
			if err := below(top); err != nil {
				t.Fatal(err)
			}
		}
		err := below(top)
		if types.CodeOf(err) != types.ErrExhausted || !strings.Contains(err.Error(), "limits.spawn_rate") || !strings.Contains(err.Error(), "in 12s") {
			t.Errorf("got %v", err)
		}
		for range 2 * most { // what a person starts is not counted, and other families have their own
			s.spawn()
		}
		if err := below(s.spawn(func(o *SpawnOpts) { o.Name = "other" })); err != nil {
			t.Error(err)
		}
		time.Sleep(12 * time.Second)
		if err := below(top); err != nil {
			t.Error(err)
		}
		if err := below(top); types.CodeOf(err) != types.ErrExhausted {
			t.Errorf("got %v", err)
		}
	})
}

// A start that is refused since the history runs takes nothing from the process that runs it.
func TestAStartThatIsRefusedLeavesTheBudgetOfTheOneThatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSys(t)
		s.model = untilKilled
		_, root := s.running()
		o := opts(func(o *SpawnOpts) { o.ParentPID, o.UUID = root, types.NewUUID() })
		pid, err := s.Spawn("do it", nil, o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Spawn("do it", nil, o); types.CodeOf(err) != types.ErrConflict {
			t.Fatal(err)
		}
		if _, has := s.Budget(o.UUID); !has {
			t.Error("its budget is gone")
		}
		_ = s.Signal(pid, types.SIGKILL)
		_, _ = s.WaitInfo(t.Context(), pid)
		i, err := s.Info(root)
		if err != nil {
			t.Fatal(err)
		}
		if _, has := s.Budget(i.UUID); !has {
			t.Error("the budget above is gone")
		}
		_ = s.Signal(root, types.SIGKILL)
	})
}
