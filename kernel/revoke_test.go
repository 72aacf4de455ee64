package kernel

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rnix/types"
	"rnix/vfs"
)

func TestWhoLosesOwnershipEndsAtOnceAndSaysSo(t *testing.T) {
	for _, paused := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newSys(t)
			s.model = untilKilled
			pid := s.spawn()
			synctest.Wait()
			if paused {
				_ = s.Signal(pid, types.SIGPAUSE)
				synctest.Wait()
			}
			if err := s.Revoke(pid, "another host has it"); err != nil {
				t.Fatal(err)
			}
			e, _ := s.Wait(pid)
			if e.Code != types.ExitLostOwnership || !strings.Contains(e.Reason, "another host has it") {
				t.Errorf("paused %v: %+v", paused, e)
			}
			if err := s.Revoke(pid, "again"); types.CodeOf(err) != types.ErrNotFound {
				t.Errorf("who has ended: %v", err)
			}
		})
	}
}

func TestWhoLosesOwnershipTakesItsChildrenAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSys(t)
		s.model = func(ctx context.Context, c vfs.Caller, turn int) (reply, error) {
			if c.PID == 1 && turn == 1 {
				return reply{Calls: []string{`spawn {"intent":"kid"}`}}, nil
			}
			return untilKilled(ctx, c, turn)
		}
		pid := s.spawn()
		synctest.Wait()
		if n := len(s.List()); n != 2 {
			t.Fatalf("%d processes", n)
		}
		if err := s.Revoke(pid, "another host has it"); err != nil {
			t.Fatal(err)
		}
		for _, p := range []types.PID{2, pid} {
			if i, err := s.WaitInfo(t.Context(), p); err != nil || i.Exit.Code != types.ExitLostOwnership {
				t.Errorf("PID %d: %+v, %v", p, i, err)
			}
		}
	})
}

func TestWhoDoesNotOwnItsWorkDoesNothingUntilItDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		ours, changed, still := true, make(chan struct{}), map[types.PID]bool{}
		freeze := func(to bool) func(types.PID) {
			return func(p types.PID) { mu.Lock(); defer mu.Unlock(); still[p] = to }
		}
		own := func(to bool) {
			mu.Lock()
			defer mu.Unlock()
			ours = to
			close(changed)
			changed = make(chan struct{})
		}
		s := newSys(t, func(c *Config) {
			c.Lifecycle = &lives{freeze: freeze(true), thaw: freeze(false), waits: func(*Process) (string, <-chan struct{}) {
				mu.Lock()
				defer mu.Unlock()
				if ours {
					return "", nil
				}
				return "the lease of its session", changed
			}}
		})
		asked, acted := 0, 0
		s.tool = func(context.Context, vfs.Caller) (string, error) { acted++; return "x", nil }
		s.model = func(context.Context, vfs.Caller, int) (reply, error) {
			if asked++; asked == 3 {
				return reply{Content: "done"}, nil
			}
			time.Sleep(time.Minute)
			return reply{Calls: []string{"tool {}"}}, nil
		}
		pid := s.spawn()
		time.Sleep(30 * time.Second)
		own(false)
		if err := s.Hold(pid, true); err != nil || !still[pid] {
			t.Errorf("its OS children do not stand still: %v", err)
		}
		time.Sleep(time.Hour)
		if i, err := s.Info(pid); err != nil || asked != 1 || !strings.Contains(i.Wait, "lease") || i.Reason != i.Wait || time.Since(i.WaitSince) != time.Hour {
			t.Errorf("asked %d times, waits for %q, in lists for %q since %v, %v", asked, i.Wait, i.Reason, i.WaitSince, err)
		}
		if acted != 0 {
			t.Error("it has acted")
		}
		_ = s.Signal(pid, types.SIGPAUSE) // a person pauses it meanwhile: that holds over the lease
		own(true)
		if err := s.Hold(pid, false); err != nil || !still[pid] {
			t.Errorf("who is paused is let go: %v", err)
		}
		time.Sleep(time.Hour)
		_ = s.Signal(pid, types.SIGRESUME)
		if e, err := s.Wait(pid); err != nil || e.Code != 0 || asked != 3 || acted != 2 || still[pid] {
			t.Errorf("%+v %v, asked %d times", e, err, asked)
		}
	})
}

// A session that comes back lets nobody go on whose own session, or that of one above it, has not.
func TestWhoseOwnSessionIsAwayStaysStillWhenAnothersComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		away, still := map[types.PID]bool{}, map[types.PID]bool{}
		freeze := func(to bool) func(types.PID) {
			return func(p types.PID) { mu.Lock(); defer mu.Unlock(); still[p] = to }
		}
		s := newSys(t, func(c *Config) {
			c.Lifecycle = &lives{freeze: freeze(true), thaw: freeze(false), waits: func(p *Process) (string, <-chan struct{}) {
				mu.Lock()
				defer mu.Unlock()
				if away[p.PID] || away[1] { // the first is above the other
					return "the lease of its session", make(chan struct{})
				}
				return "", nil
			}}
		})
		s.model = func(ctx context.Context, c vfs.Caller, turn int) (reply, error) {
			if c.PID == 1 && turn == 1 {
				return reply{Calls: []string{`spawn {"intent":"kid"}`}}, nil
			}
			return untilKilled(ctx, c, turn)
		}
		pid := s.spawn()
		synctest.Wait()
		hold := func(p types.PID, held bool) {
			t.Helper()
			mu.Lock()
			away[p] = held
			mu.Unlock()
			if err := s.Hold(p, held); err != nil {
				t.Fatal(err)
			}
		}
		for _, order := range [][]types.PID{{pid, 2}, {2, pid}} {
			hold(pid, true)
			hold(2, true)
			hold(order[0], false)
			if !still[2] {
				t.Errorf("the child goes on when only the session of %d is back", order[0])
			}
			if hold(order[1], false); still[pid] || still[2] {
				t.Errorf("both are back: %v", still)
			}
		}
		_ = s.Signal(pid, types.SIGKILL)
		_, _ = s.Wait(pid)
	})
}

// The time in which a process has to wait is no part of its life: its time limit stands still, it is not taken for one that makes
// no progress, and what a person does with a pause meanwhile is a matter of its own.
func TestTheTimeInWhichAProcessWaitsDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		free, blocked := make(chan struct{}), false
		s := newSys(t, func(c *Config) {
			c.Lifecycle = &lives{waits: func(*Process) (string, <-chan struct{}) {
				mu.Lock()
				defer mu.Unlock()
				if !blocked {
					return "", nil
				}
				return "room on the disk", free
			}}
			c.Heartbeat = Heartbeat{Stall: 30 * time.Minute, Policy: "kill", Interval: 30 * time.Second}
		})
		turns := 0
		s.tool = func(context.Context, vfs.Caller) (string, error) { time.Sleep(10 * time.Minute); return "x", nil }
		s.model = func(context.Context, vfs.Caller, int) (reply, error) {
			if turns++; turns == 3 {
				return reply{Content: "done"}, nil
			}
			return reply{Calls: []string{"tool {}"}}, nil
		}
		pid := s.spawn(func(o *SpawnOpts) { o.Timeout = time.Hour })
		time.Sleep(time.Minute)
		mu.Lock()
		blocked = true
		mu.Unlock()
		if err := s.Hold(pid, true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Hour)
		i, err := s.Info(pid)
		if err != nil || i.Wait != "room on the disk" || i.Paused || i.Elapsed != time.Minute || turns != 1 {
			t.Errorf("%d turns: %+v %v", turns, i, err)
		}
		if err := s.Signal(pid, types.SIGPAUSE); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		blocked = false
		close(free)
		mu.Unlock()
		if err := s.Hold(pid, false); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Hour)
		if i, err := s.Info(pid); err != nil || !i.Paused || i.Elapsed != time.Minute || turns != 1 {
			t.Errorf("who is paused was let go: %d turns: %+v %v", turns, i, err)
		}
		_ = s.Signal(pid, types.SIGRESUME)
		if e, err := s.Wait(pid); err != nil || e.Code != 0 || turns != 3 {
			t.Errorf("%+v %v after %d turns", e, err, turns)
		}
	})
}
