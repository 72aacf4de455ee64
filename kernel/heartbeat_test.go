package kernel

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rnix/agent"
	"rnix/internal/event"
	"rnix/types"
	"rnix/vfs"
)

// watched is a kernel with a heartbeat.
func watched(t *testing.T, h Heartbeat) *sys {
	if h.Interval == 0 {
		h.Interval = 30 * time.Second
	}
	if h.Policy == "" {
		h.Policy = StallWarn
	}
	return newSys(t, func(c *Config) { c.Heartbeat = h })
}

// stalls returns the events of the heartbeat, as "pid result policy".
func (s *sys) stalls() string {
	var out []string
	cur := s.events.Cursor(s.events.Oldest())
	for e, ok, _ := cur.TryNext(); ok; e, ok, _ = cur.TryNext() {
		if e.Kind == event.Stalled {
			out = append(out, strings.TrimSpace(e.PID.String()+" "+e.Result+" "+e.Name))
		}
	}
	return strings.Join(out, ", ")
}

// of returns what the heartbeat knows of a process.
func (s *sys) beatOf(pid types.PID) Beat {
	beats, _ := s.Heartbeats()
	for _, b := range beats {
		if b.PID == pid {
			return b
		}
	}
	return Beat{}
}

func TestALongSilentCallSurvivesAndIsToldOfOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := watched(t, Heartbeat{Stall: 10 * time.Minute})
		s.model = func(ctx context.Context, _ vfs.Caller, _ int) (reply, error) {
			select {
			case <-time.After(45*time.Minute + 15*time.Second): // between two looks: one at the end would find it alive again
				return reply{Content: "done"}, nil
			case <-ctx.Done():
				return reply{}, context.Cause(ctx)
			}
		}
		pid := s.spawn()
		time.Sleep(9 * time.Minute)
		if b := s.beatOf(pid); !b.Suspect.IsZero() || b.Limit != 10*time.Minute || b.Age.Round(time.Minute) != 9*time.Minute {
			t.Errorf("%+v", b)
		}
		time.Sleep(2 * time.Minute)
		i, err := s.Info(pid)
		if err != nil || i.Suspect.IsZero() || i.StateName() != "running" || !strings.HasPrefix(i.Wait, "no progress for 11m") || s.beatOf(pid).Suspect.IsZero() {
			t.Errorf("%+v %v", i, err)
		}
		if e, err := s.Wait(pid); err != nil || e.Code != types.ExitOK {
			t.Errorf("%v %v", e, err)
		}
		if got := s.stalls(); got != "1 suspect warn" {
			t.Errorf("%s", got)
		}
	})
}

func TestWhatMayBeSilentIsExempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := watched(t, Heartbeat{Stall: 10 * time.Minute, Policy: StallKill})
		s.model = untilKilled
		paused := s.spawn()
		if err := s.Kill(paused, types.SIGPAUSE); err != nil {
			t.Fatal(err)
		}
		sup, err := s.SpawnContext(t.Context(), "keep running", nil, SpawnOpts{Body: idler{}})
		if err != nil {
			t.Fatal(err)
		}
		limited := s.spawn()
		p, _ := s.Process(limited)
		synctest.Wait()
		s.doing.setWait(p, waiting{reason: "a rate limit", until: time.Now().Add(time.Hour)})
		off := agent.Agent{Manifest: agent.Manifest{Name: "slow", StepTimeout: agent.Off}}
		endless, err := s.Spawn("be slow", &off, opts())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Hour)
		if got := s.stalls(); got != "" {
			t.Errorf("%s", got)
		}
		for pid, why := range map[types.PID]string{paused: "paused", sup: "takes no steps", limited: "a rate limit", endless: ""} {
			if b := s.beatOf(pid); b.Exempt != why || !b.Suspect.IsZero() {
				t.Errorf("PID %d: %+v", pid, b)
			}
		}
		if err := s.Kill(paused, types.SIGRESUME); err != nil { // it has all its time again
			t.Fatal(err)
		}
		time.Sleep(9 * time.Minute)
		if got := s.stalls(); got != "" {
			t.Errorf("after the pause: %s", got)
		}
		time.Sleep(2 * time.Minute)
		if got := s.stalls(); got != "1 suspect kill" {
			t.Errorf("after the limit: %s", got)
		}
	})
}

func TestAParentThatWaitsForItsChildIsExempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := watched(t, Heartbeat{Stall: 10 * time.Minute})
		s.model = func(ctx context.Context, c vfs.Caller, turn int) (reply, error) {
			if p, _ := s.Process(c.PID); p.Intent != "do it" {
				return untilKilled(ctx, c, turn)
			}
			if turn == 1 {
				return reply{Calls: []string{`spawn {"intent":"sleep"}`}}, nil
			}
			return reply{Content: "done"}, nil
		}
		parent := s.spawn()
		time.Sleep(30 * time.Minute)
		if got := s.stalls(); got != "2 suspect warn" {
			t.Errorf("%s", got)
		}
		if b := s.beatOf(parent); b.Exempt != "waits for other processes" {
			t.Errorf("%+v", b)
		}
		if err := s.Kill(2, types.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if e, err := s.Wait(parent); err != nil || e.Code != types.ExitOK {
			t.Errorf("%v %v", e, err)
		}
	})
}

func TestAStallThatIsToEndTheProcessEndsItsTree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := watched(t, Heartbeat{Stall: time.Minute, Policy: StallKill})
		s.model = untilKilled
		parent := s.spawn()
		child := s.spawn(func(o *SpawnOpts) { o.ParentPID = parent })
		p, _ := s.Process(child)
		synctest.Wait()
		s.doing.setWait(p, waiting{reason: "something"}) // it has not stalled itself
		e, err := s.Wait(parent)
		if err != nil || e.Code != types.ExitNoProgress || !strings.HasPrefix(e.Reason, "no progress for 1m") {
			t.Errorf("%v %v", e, err)
		}
		if e, err := s.Wait(child); err != nil || e.Reason != "killed" {
			t.Errorf("the child: %v %v", e, err)
		}
	})
}

func TestAStallIsRestartedOnlySoOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var restarts atomic.Int32
		s := watched(t, Heartbeat{Stall: time.Minute, Policy: StallRestart, MaxRestarts: 2, Restart: func(context.Context, *Process) error {
			restarts.Add(1)
			return types.Errorf(types.ErrUnavailable, "Restart", "", "not here")
		}})
		s.model = untilKilled
		pid := s.spawn()
		p, _ := s.Process(pid)
		for range 4 {
			time.Sleep(5 * time.Minute)
			s.pulse.lives(p)
		}
		time.Sleep(5 * time.Minute)
		if n := restarts.Load(); n != 2 {
			t.Errorf("%d restarts", n)
		}
		if got := s.stalls(); got != "1 suspect restart, 1 over, 1 suspect restart, 1 over, 1 suspect warn, 1 over, 1 suspect warn, 1 over, 1 suspect warn" {
			t.Errorf("%s", got)
		}
	})
}

func TestAStepLimitEndsTheStepAndTheHeartbeatDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := watched(t, Heartbeat{Stall: time.Hour, Policy: StallKill})
		var turns atomic.Int32
		s.model = func(ctx context.Context, _ vfs.Caller, _ int) (reply, error) {
			turns.Add(1)
			<-ctx.Done()
			return reply{}, context.Cause(ctx)
		}
		ag := agent.Agent{Manifest: agent.Manifest{Name: "brisk", StepTimeout: agent.Duration(2 * time.Minute)}}
		pid, err := s.Spawn("be brisk", &ag, opts())
		if err != nil {
			t.Fatal(err)
		}
		e, err := s.Wait(pid)
		if err != nil || e.Code == types.ExitNoProgress || turns.Load() == 0 {
			t.Errorf("%v %v", e, err)
		}
		if got := s.stalls(); got != "" {
			t.Errorf("%s", got)
		}
	})
}
