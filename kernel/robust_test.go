package kernel

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rnix/internal/event"
	"rnix/types"
	"rnix/vfs"
)

func TestAPauseAndAResumeThatCrossLeaveNoChildFrozen(t *testing.T) {
	began, resumed := make(chan struct{}), make(chan struct{})
	var frozen atomic.Bool
	var once sync.Once
	s := newSys(t, func(c *Config) {
		c.Lifecycle = &lives{freeze: func(types.PID) {
			once.Do(func() { close(began); <-resumed })
			frozen.Store(true)
		}, thaw: func(types.PID) { frozen.Store(false) }}
	})
	s.model = untilKilled
	pid := s.spawn()
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Signal(pid, types.SIGPAUSE) })
	<-began
	if err := s.Signal(pid, types.SIGRESUME); err != nil {
		t.Fatal(err)
	}
	close(resumed)
	wg.Wait()
	if frozen.Load() {
		t.Error("the process runs and its children are frozen")
	}
	_ = s.Kill(pid, types.SIGKILL)
}

func TestATimeLimitStandsStillWhilePaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSys(t)
		s.model = untilKilled
		start := time.Now()
		pid := s.spawn(func(o *SpawnOpts) { o.Timeout = time.Hour })
		for range 2 {
			time.Sleep(20 * time.Minute)
			_ = s.Signal(pid, types.SIGPAUSE)
			time.Sleep(5 * time.Hour)
			_ = s.Signal(pid, types.SIGRESUME)
		}
		e, _ := s.Wait(pid)
		if e.Reason != "timeout after 1h0m0s" || time.Since(start) != 11*time.Hour {
			t.Errorf("%+v after %v", e, time.Since(start))
		}
	})
}

func TestAResumedProcessIsNotSuspendedOnDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSys(t)
		answer := make(chan reply)
		s.tool = func(context.Context, vfs.Caller) (string, error) { return "", nil }
		s.model = func(context.Context, vfs.Caller, int) (reply, error) { return <-answer, nil }
		last := func() string {
			s.stores.mu.Lock()
			defer s.stores.mu.Unlock()
			return s.stores.infos[len(s.stores.infos)-1].SuspendReason
		}
		pid := s.spawn()
		synctest.Wait() // the model is being asked
		_ = s.Signal(pid, types.SIGPAUSE)
		answer <- reply{Calls: []string{"tool {}"}}
		synctest.Wait()
		if last() != "paused" {
			t.Errorf("paused: %q", last())
		}
		_ = s.Signal(pid, types.SIGRESUME)
		synctest.Wait()
		if last() != "" {
			t.Errorf("resumed: %q", last())
		}
		answer <- reply{Content: "x"}
		_, _ = s.Wait(pid)
	})
}

func TestAPanicOfAModelEndsOnlyItsProcess(t *testing.T) {
	s := newSys(t)
	var bad types.PID
	s.model = func(_ context.Context, c vfs.Caller, _ int) (reply, error) {
		if c.PID == bad {
			panic("no such luck")
		}
		return reply{Content: "fine"}, nil
	}
	bad = 1
	if pid := s.spawn(); pid != bad {
		t.Fatalf("PID %d", pid)
	}
	e, err := s.Wait(bad)
	if err != nil || e.Code != types.ExitError || types.CodeOf(e.Err) != types.ErrInternal || !strings.Contains(e.Reason, "no such luck") {
		t.Errorf("%+v %v", e, err)
	}
	if e, err := s.Wait(s.spawn()); err != nil || e.Code != types.ExitOK {
		t.Errorf("the next: %+v %v", e, err)
	}
}

// zombie starts a process and a child of it, and returns when the child has ended and waits for it.
func zombie(s *sys) (parent, child types.PID) {
	s.t.Helper()
	s.model = func(ctx context.Context, c vfs.Caller, n int) (reply, error) {
		if c.PID == parent {
			return untilKilled(ctx, c, n)
		}
		return reply{Content: "x"}, nil
	}
	parent = 1
	if pid := s.spawn(); pid != parent {
		s.t.Fatalf("PID %d", pid)
	}
	child = s.spawn(func(o *SpawnOpts) { o.ParentPID = parent })
	p, ok := s.Process(child)
	if !ok {
		s.t.Fatal("the child is gone")
	}
	<-p.Left()
	return parent, child
}

func TestAnEndedProcessGetsNoMessagesAndHasNothingToWatch(t *testing.T) {
	s := newSys(t)
	parent, child := zombie(s)
	if err := s.Send(parent, child, []byte("x")); types.CodeOf(err) != types.ErrBrokenPipe {
		t.Errorf("Send: %v", err)
	}
	if _, err := s.Recv(child); types.CodeOf(err) != types.ErrBrokenPipe {
		t.Errorf("Recv: %v", err)
	}
	ch, err := s.DebugChan(t.Context(), child)
	if err != nil {
		t.Fatal(err)
	}
	if _, open := <-ch; open {
		t.Error("an event of an ended process")
	}
	_ = s.Kill(parent, types.SIGKILL)
}

func TestAViewThatMissedTheEndEndsToo(t *testing.T) {
	s := newSys(t)
	release := make(chan struct{})
	s.model = func(context.Context, vfs.Caller, int) (reply, error) { <-release; return reply{Content: "x"}, nil }
	pid := s.spawn()
	ch, err := s.LogChan(t.Context(), pid)
	if err != nil {
		t.Fatal(err)
	}
	close(release)
	if _, err := s.Wait(pid); err != nil {
		t.Fatal(err)
	}
	for range 1 << 15 { // more than the log keeps
		s.events.Append(event.Event{Kind: event.LogLine, PID: pid, Name: "output", Text: "x"})
	}
	for range ch { // ends, whatever of it was still there
	}
}

func TestSpawnsAtOnceKeepTheLimitTogether(t *testing.T) {
	s := newSys(t, func(c *Config) { c.Limits.Total = 5 })
	s.model = untilKilled
	var wg sync.WaitGroup
	var refused atomic.Int32
	for range 40 {
		wg.Go(func() {
			_, err := s.Spawn("do it", nil, opts())
			switch types.CodeOf(err) {
			case "":
			case types.ErrExhausted:
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := len(s.Proc().Processes()); n != 5 || refused.Load() != 35 {
		t.Errorf("%d are alive, %d were refused", n, refused.Load())
	}
}

func TestALineWithoutEndIsPassedOnInPieces(t *testing.T) {
	var got []string
	b := lineBuffer{emit: func(s string) { got = append(got, s) }}
	for range 100 {
		b.add(strings.Repeat("\xff", 300)) // never valid, so never on a character's edge
	}
	b.flush()
	longest := 0
	for _, s := range got {
		longest = max(longest, len([]rune(s)))
	}
	if len(got) < 5 || strings.Contains(strings.Join(got, ""), "\xff") || longest > 3*maxLine {
		t.Errorf("%d pieces, the longest of %d characters", len(got), longest)
	}
	got = nil
	for range 1000 {
		b.add("\xc3")
		b.add("\xa4") // ä in two pieces
	}
	b.flush()
	if strings.Join(got, "") != strings.Repeat("ä", 1000) {
		t.Errorf("characters were torn: %q", got)
	}
}
