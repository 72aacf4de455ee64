package kernel

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rnix/agent"
	"rnix/internal/event"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/kernel/internal/mailbox"
	"rnix/types"
	"rnix/vfs"
)

// slowAtFirst takes a minute, of a bubble's time, for its first answer.
func slowAtFirst(_ context.Context, _ vfs.Caller, n int) (reply, error) {
	if n == 1 {
		time.Sleep(time.Minute)
	}
	return reply{Content: "done", Tokens: 1}, nil
}

// saying starts an agent that says something of signals, and waits until it works.
func saying(s *sys, m agent.Manifest) types.PID {
	s.t.Helper()
	pid, err := s.Spawn("do it", &agent.Agent{Manifest: m}, opts())
	if err != nil {
		s.t.Fatal(err)
	}
	synctest.Wait()
	return pid
}

func TestBlockedSignalOfAnAgentDoesNotEndIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSys(t)
		s.model = untilKilled
		pid, err := s.Spawn("do it", &agent.Agent{Manifest: agent.Manifest{BlockedSignals: []types.Signal{types.SIGTERM}}}, opts())
		if err != nil {
			t.Fatal(err)
		}
		_ = s.Signal(pid, types.SIGTERM)
		synctest.Wait()
		if i, err := s.Info(pid); err != nil || i.Exit != nil || !slices.Equal(i.BlockedSignals, []types.Signal{types.SIGTERM}) || !slices.Equal(i.Pending, i.BlockedSignals) {
			t.Errorf("%+v, %v", i, err)
		}
		_, _ = s.Signal(pid, types.SIGPAUSE), s.Signal(pid, types.SIGRESUME) // a pause changes nothing of that
		synctest.Wait()
		if i, err := s.Info(pid); err != nil || i.Exit != nil || len(i.Pending) != 1 {
			t.Errorf("after a pause: %+v, %v", i, err)
		}
		_ = s.Signal(pid, types.SIGINT)
		if i, err := s.WaitInfo(t.Context(), pid); err != nil || i.Exit == nil || i.Exit.Reason != "interrupted" {
			t.Errorf("%+v, %v", i, err)
		}
	})
}

func TestInterruptedAgentIsToldOnceAndGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSys(t)
		s.model = slowAtFirst
		pid := saying(s, agent.Manifest{OnInterrupt: "sum up and stop"})
		i, err := s.Info(pid)
		if err != nil || i.OnInterrupt != "sum up and stop" {
			t.Fatalf("%+v, %v", i, err)
		}
		_ = s.Signal(pid, types.SIGINT)
		end, err := s.WaitInfo(t.Context(), pid)
		if err != nil || end.Exit == nil || end.Exit.Code != 0 {
			t.Fatalf("%+v, %v", end, err)
		}
		told := 0
		r := s.stores.of(i.UUID)
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, rec := range r.committed {
			if rec.Message != nil && rec.Message.Content == "sum up and stop" {
				told++
			}
		}
		if told != 1 {
			t.Errorf("it was told %d times", told)
		}
	})
}

func TestSecondInterruptEndsTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSys(t)
		s.model = untilKilled
		pid := saying(s, agent.Manifest{OnInterrupt: "sum up and stop"})
		_ = s.Signal(pid, types.SIGINT)
		synctest.Wait()
		if i, err := s.Info(pid); err != nil || i.Exit != nil {
			t.Fatalf("the first one: %+v, %v", i, err)
		}
		_ = s.Signal(pid, types.SIGINT)
		if i, err := s.WaitInfo(t.Context(), pid); err != nil || i.Exit == nil || i.Exit.Reason != "interrupted" {
			t.Errorf("%+v, %v", i, err)
		}
	})
}

func TestInterruptOfAPausedAgentIsToldWhenItIsResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSys(t)
		s.model = slowAtFirst
		pid := saying(s, agent.Manifest{OnInterrupt: "sum up and stop"})
		_, _ = s.Signal(pid, types.SIGPAUSE), s.Signal(pid, types.SIGINT)
		time.Sleep(time.Hour)
		if i, err := s.Info(pid); err != nil || i.Exit != nil {
			t.Fatalf("%+v, %v", i, err)
		}
		_ = s.Signal(pid, types.SIGRESUME)
		if end, err := s.WaitInfo(t.Context(), pid); err != nil || end.Exit == nil || end.Exit.Code != 0 {
			t.Errorf("%+v, %v", end, err)
		}
	})
}

func TestWhatTheKernelAndThoseAboveEndObeysWhateverItBlocks(t *testing.T) {
	deaf := &agent.Agent{Manifest: agent.Manifest{BlockedSignals: []types.Signal{types.SIGTERM}, OnInterrupt: "sum up"}}
	for _, row := range []struct {
		name  string
		child bool
		end   func(s *sys, root, pid types.PID)
	}{
		{"the kernel", false, func(s *sys, _, pid types.PID) { _ = s.Terminate(pid) }},
		{"SIGKILL", false, func(s *sys, _, pid types.PID) { _ = s.Signal(pid, types.SIGKILL) }},
		{"its parent", true, func(s *sys, root, pid types.PID) { _ = s.By(root).Signal(pid, types.SIGINT) }},
		{"its parent, as a tree", true, func(s *sys, root, pid types.PID) { _, _ = s.By(root).SignalTree(pid, types.SIGTERM) }},
		{"a person", true, func(s *sys, _, pid types.PID) { _ = s.Signal(pid, types.SIGTERM) }},
		{"a person who ends the family", true, func(s *sys, root, _ types.PID) { _, _ = s.SignalTree(root, types.SIGINT) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSys(t)
				s.model = untilKilled
				o, root := opts(), types.PID(0)
				if row.child {
					_, root = s.running()
					o.ParentPID = root
				}
				pid, err := s.Spawn("do it", deaf, o)
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if i, err := s.Info(pid); err != nil || (len(i.BlockedSignals) == 0) != row.child {
					t.Errorf("blocked: %v, %v; a child blocks nothing", i.BlockedSignals, err)
				}
				row.end(s, root, pid)
				synctest.Wait()
				if i, err := s.Info(pid); err == nil && i.Exit == nil {
					t.Errorf("it goes on: %+v", i)
				}
				_ = s.Signal(root, types.SIGKILL)
			})
		})
	}
}

func TestTreeSignalOfAPersonIsTheRootsToBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSys(t)
		s.model = untilKilled
		root, err := s.Spawn("do it", &agent.Agent{Manifest: agent.Manifest{OnInterrupt: "sum up"}}, opts())
		if err != nil {
			t.Fatal(err)
		}
		o := opts()
		o.ParentPID = root
		kid, err := s.Spawn("help", &agent.Agent{}, o)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := s.SignalTree(root, types.SIGINT); n != 2 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		synctest.Wait()
		if i, err := s.Info(kid); err == nil && i.Exit == nil {
			t.Errorf("the child goes on: %+v", i)
		}
		if i, err := s.Info(root); err != nil || i.Exit != nil {
			t.Errorf("the root: %+v, %v", i, err)
		}
		_ = s.Signal(root, types.SIGKILL)
	})
}

func TestInterruptThatWasTakenUpIsFollowedByAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSys(t)
		s.model = func(_ context.Context, _ vfs.Caller, n int) (reply, error) {
			time.Sleep(time.Minute) // in the bubble's time
			return reply{Content: "done", Tokens: 1}, nil
		}
		pid, err := s.Spawn("do it", &agent.Agent{Manifest: agent.Manifest{OnInterrupt: "sum up"}}, opts())
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			synctest.Wait()
			_ = s.Signal(pid, types.SIGINT)
			time.Sleep(time.Minute + time.Second) // it has read that
		}
		if end, err := s.WaitInfo(t.Context(), pid); err != nil || end.Exit == nil || end.Exit.Code != 0 {
			t.Errorf("%+v, %v", end, err)
		}
	})
}

func TestInterruptEndsAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFamily(t, map[string][]reply{"top": {calls(`spawn {"intent":"long","background":true}`), calls(`wait {}`), calls(`signal {"pid":2,"signal":"TERM"}`), completes("r"), completes("r")}, "long": {says("hang")}})
		pid, err := f.Spawn("top", &agent.Agent{Manifest: agent.Manifest{OnInterrupt: "stop it"}}, opts())
		if err != nil {
			t.Fatal(err)
		}
		f.await(2, event.StepStarted)
		synctest.Wait()
		if err := f.Signal(pid, types.SIGINT); err != nil {
			t.Fatal(err)
		}
		if st, err := f.Wait(pid); err != nil || st.Code != 0 {
			t.Fatal(st, err)
		}
		if got := f.told("top", 3); !strings.HasSuffix(got, "which you get now; call wait again after it\"}\nstop it") {
			t.Error(got)
		}
	})
}

func TestNodeOfAProgramKeepsWhatItsAgentBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSys(t)
		s.model = untilKilled
		c := &clerk{joined: make(chan types.PID, 2), ended: make(chan *Process, 2)}
		up, err := s.SpawnContext(t.Context(), "work as a clerk", nil, SpawnOpts{Body: c})
		if err != nil {
			t.Fatal(err)
		}
		o := opts()
		o.ParentPID = up
		pid, err := s.Spawn("do it", &agent.Agent{Manifest: agent.Manifest{BlockedSignals: []types.Signal{types.SIGTERM}}}, o)
		if err != nil {
			t.Fatal(err)
		}
		_ = s.Signal(pid, types.SIGTERM)
		synctest.Wait()
		if i, err := s.Info(pid); err != nil || i.Exit != nil || len(i.Pending) != 1 {
			t.Errorf("of a person: %+v, %v", i, err)
		}
		_ = s.By(up).Signal(pid, types.SIGTERM)
		synctest.Wait()
		if i, err := s.Info(pid); err == nil && i.Exit == nil {
			t.Errorf("of the program: %+v", i)
		}
		_, _ = s.SignalTree(up, types.SIGKILL)
	})
}

func TestInterruptThatWasNotReadIsKnownToTheNextRun(t *testing.T) {
	var o post
	var box mailbox.Box[*Message]
	o.load(&box, &recovery.Mailbox{MailSeq: 2, Mail: []step.Mail{{Seq: 1, Kind: step.MailSteer, Key: interruptKey + "x"}, {Seq: 2, Kind: step.MailSteer}}})
	if o.interrupts() {
		t.Error("a second interrupt would be told")
	}
	o.took(box.Take(func(m *Message) bool { return m.Seq == 2 })...)
	if o.interrupts() {
		t.Error("another message was taken for it")
	}
	o.took(box.Take(isSteer)...)
	if !o.interrupts() {
		t.Error("it was read, and the next one would not be told")
	}
}
