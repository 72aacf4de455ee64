package kernel

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rnix/types"
)

// The table of 002: number, whether it can be blocked and handled, and what it does by default.
func TestSignalTableOfTheSpecification(t *testing.T) {
	ended := func(code int, reason string) func(*testing.T, *sys, types.PID) {
		return func(t *testing.T, s *sys, pid types.PID) {
			if i, err := s.Info(pid); err != nil || i.Exit == nil || i.Exit.Code != code || i.Exit.Reason != reason {
				t.Errorf("it has not ended with %d (%s): %+v %v", code, reason, i.Exit, err)
			}
		}
	}
	suspended := func(want bool) func(*testing.T, *sys, types.PID) {
		return func(t *testing.T, s *sys, pid types.PID) {
			if i, err := s.Info(pid); err != nil || i.Exit != nil || i.Suspended != want {
				t.Errorf("suspended %v, want %v: %+v %v", i.Suspended, want, i.Exit, err)
			}
		}
	}
	for _, row := range []struct {
		sig        types.Signal
		value      int
		blockable  bool
		handler    bool
		before     types.Signal // what puts the process into the other state; 0 = nothing
		did, didnt func(*testing.T, *sys, types.PID)
	}{
		{types.SIGTERM, 1, true, true, 0, ended(types.ExitCancelled, "terminated"), suspended(false)},
		{types.SIGKILL, 2, false, false, 0, ended(types.ExitCancelled, "killed"), nil},
		{types.SIGINT, 3, true, true, 0, ended(types.ExitCancelled, "interrupted"), suspended(false)},
		{types.SIGPAUSE, 4, true, true, 0, suspended(true), suspended(false)},
		{types.SIGRESUME, 5, true, true, types.SIGPAUSE, suspended(false), suspended(true)},
	} {
		each := func(name string, do func(t *testing.T, s *sys, pid types.PID)) {
			t.Run(row.sig.String()+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newSys(t)
					_, parent := s.running() // so that nobody reaps it before it is looked at
					pid := s.spawn(func(o *SpawnOpts) { o.ParentPID = parent })
					if row.before != 0 {
						_ = s.Signal(pid, row.before)
					}
					do(t, s, pid)
				})
			})
		}
		if int(row.sig) != row.value {
			t.Errorf("%v is %d, want %d", row.sig, int(row.sig), row.value)
		}
		each("by default", func(t *testing.T, s *sys, pid types.PID) {
			if err := s.Signal(pid, row.sig); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			row.did(t, s, pid)
		})
		each("blocked, and unblocked", func(t *testing.T, s *sys, pid types.PID) {
			if err := s.SigBlock(pid, row.sig); (err == nil) != row.blockable {
				t.Fatalf("block: %v", err)
			}
			for range 2 { // several of one kind are one
				_ = s.Signal(pid, row.sig)
			}
			synctest.Wait()
			if !row.blockable {
				row.did(t, s, pid)
				return
			}
			row.didnt(t, s, pid)
			if err := s.SigUnblock(pid, row.sig); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			row.did(t, s, pid)
		})
		each("with a handler, and without", func(t *testing.T, s *sys, pid types.PID) {
			var got atomic.Int32
			if err := s.SetHandler(pid, row.sig, func(sig types.Signal) { got.Add(int32(sig)) }); (err == nil) != row.handler {
				t.Fatalf("handler: %v", err)
			}
			_ = s.Signal(pid, row.sig)
			synctest.Wait()
			if !row.handler {
				row.did(t, s, pid)
				return
			}
			if got.Load() != int32(row.value) {
				t.Errorf("the handler got %d", got.Load())
			}
			row.didnt(t, s, pid)
			if err := s.SetHandler(pid, row.sig, nil); err != nil {
				t.Fatal(err)
			}
			_ = s.Signal(pid, row.sig)
			synctest.Wait()
			row.did(t, s, pid)
		})
		each("blocked, for a handler", func(t *testing.T, s *sys, pid types.PID) {
			var got atomic.Int32
			_, _ = s.SetHandler(pid, row.sig, func(types.Signal) { got.Add(1) }), s.SigBlock(pid, row.sig)
			_, _ = s.Signal(pid, row.sig), s.Signal(pid, row.sig)
			if got.Load() != 0 {
				t.Error("a blocked signal was handled")
			}
			_ = s.SigUnblock(pid, row.sig)
			if want := map[bool]int32{true: 1}[row.blockable]; got.Load() != want {
				t.Errorf("handled %d times, want %d", got.Load(), want)
			}
		})
		each("to nobody", func(t *testing.T, s *sys, pid types.PID) {
			for _, err := range []error{s.Signal(99, row.sig), s.SigBlock(99, row.sig), s.SigUnblock(99, row.sig), s.SetHandler(99, row.sig, nil)} {
				if types.CodeOf(err) != types.ErrNotFound {
					t.Errorf("%v", err)
				}
			}
		})
	}
}

func TestSignalTreeReachesTheLivingAndCountsThem(t *testing.T) {
	s := newSys(t)
	_, root := s.running()
	child := func(of types.PID) types.PID { return s.spawn(func(o *SpawnOpts) { o.ParentPID = of }) }
	a, b := child(root), child(root)
	aa := child(a)
	other := s.spawn()
	if err := s.Signal(b, types.SIGKILL); err != nil { // a zombie of root's
		t.Fatal(err)
	}
	p, _ := s.Process(b)
	<-p.Left()
	for _, sig := range []types.Signal{types.SIGPAUSE, types.SIGRESUME} {
		if n, err := s.SignalTree(root, sig); err != nil || n != 3 {
			t.Fatalf("%v: %d %v", sig, n, err)
		}
		for pid, want := range map[types.PID]bool{root: true, a: true, aa: true, other: false} {
			if i, err := s.Info(pid); err != nil || i.Suspended != (want && sig == types.SIGPAUSE) {
				t.Errorf("%v: %d is suspended %v %v", sig, pid, i.Suspended, err)
			}
		}
	}
}

// TestWhoIsBornWhileATreeEndsEndsWithIt has a child born after the root has been reaped, of a process that the signal has not reached yet.
func TestWhoIsBornWhileATreeEndsEndsWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSys(t)
		s.model = untilKilled
		child := func(of types.PID) types.PID { return s.spawn(func(o *SpawnOpts) { o.ParentPID = of }) }
		root := s.spawn()
		parent := child(root)
		var late types.PID
		if err := s.SetHandler(parent, types.SIGTERM, func(types.Signal) {
			if _, err := s.Wait(root); err != nil {
				t.Error(err)
			}
			late = child(parent)
		}); err != nil {
			t.Fatal(err)
		}
		if n, err := s.SignalTree(root, types.SIGTERM); n != 3 || err != nil {
			t.Errorf("%d %v", n, err)
		}
		synctest.Wait()
		if p, ok := s.Process(late); ok && p.State() == types.StateRunning {
			t.Error("a child that was born meanwhile runs on")
		}
		if _, err := s.SignalTree(parent, types.SIGKILL); err != nil {
			t.Error(err)
		}
	})
}

// TestWhoIsResumedWhileATreeIsPausedStaysSo has the root resumed, and somebody else born, before the pause of the tree has returned.
func TestWhoIsResumedWhileATreeIsPausedStaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSys(t)
		s.model = untilKilled
		child := func(of types.PID) types.PID { return s.spawn(func(o *SpawnOpts) { o.ParentPID = of }) }
		root := s.spawn()
		paused := child(root)
		var born []types.PID
		if err := s.SetHandler(child(root), types.SIGPAUSE, func(types.Signal) {
			if err := s.Signal(root, types.SIGRESUME); err != nil {
				t.Error(err)
			}
			born = append(born, child(root))
		}); err != nil {
			t.Fatal(err)
		}
		if n, err := s.SignalTree(root, types.SIGPAUSE); n != 3 || err != nil {
			t.Errorf("%d %v", n, err)
		}
		for _, pid := range append(born, root, child(root)) {
			if i, err := s.Info(pid); err != nil || i.Suspended {
				t.Errorf("%d is paused: %v", pid, err)
			}
		}
		if i, err := s.Info(paused); err != nil || !i.Suspended {
			t.Errorf("what nobody has resumed works: %v", err)
		}
		if _, err := s.SignalTree(root, types.SIGKILL); err != nil {
			t.Error(err)
		}
	})
}

func TestANewGroupHasANumberThatNoneHad(t *testing.T) {
	s := newSys(t)
	_, pid := s.running()
	if err := s.JoinGroup(pid, 2); err != nil {
		t.Fatal(err)
	}
	first, second := s.NewGroup(), s.NewGroup()
	if first != 1 || second != 3 {
		t.Errorf("%d %d", first, second)
	}
	born := s.spawn(func(o *SpawnOpts) { o.Groups = []types.PGID{second, 2} })
	want := []Group{{2, []types.PID{pid, born}}, {3, []types.PID{born}}}
	if got := s.Groups(); len(got) != 2 || got[0].ID != 2 || len(got[0].Members) != 2 || got[0].Members[1] != born || got[1].ID != 3 || got[1].Members[0] != born {
		t.Errorf("%v, want %v", got, want)
	}
	if err := s.LeaveGroup(born, second); err != nil {
		t.Fatal(err)
	}
	if n := s.NewGroup(); n != 4 {
		t.Errorf("%d was given away before", n)
	}
}

// What one member of a group takes for a signal is no time that the next was paused.
func TestAPauseBeginsWhenItIsDelivered(t *testing.T) {
	for name, slow := range map[string]struct {
		config  func(*Config)
		handler func(types.Signal)
	}{
		"handler": {func(*Config) {}, func(types.Signal) { time.Sleep(time.Hour) }},
		"freeze":  {func(c *Config) { c.Lifecycle = &lives{freeze: func(types.PID) { time.Sleep(time.Hour) }} }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSys(t, slow.config)
				s.model = untilKilled
				for range 2 {
					if err := s.JoinGroup(s.spawn(), 7); err != nil {
						t.Fatal(err)
					}
				}
				members, err := s.GetProcGroup(7)
				if err != nil {
					t.Fatal(err)
				}
				if err := s.SetHandler(members[0], types.SIGPAUSE, slow.handler); err != nil {
					t.Fatal(err)
				}
				before := time.Now()
				if err := s.SignalGroup(7, types.SIGPAUSE); err != nil {
					t.Fatal(err)
				}
				p, _ := s.Process(members[1])
				if since, shut := (Self{s.KernelImpl, p}).PausedSince(); !shut || since.Sub(before) != time.Hour {
					t.Errorf("paused %v since %s after the signal was sent", shut, since.Sub(before))
				}
			})
		})
	}
}
