package kernel

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/types"
)

func TestTimeLimitIsLookedAtOftenEnoughForACrash(t *testing.T) {
	for _, c := range []struct{ limit, left, want time.Duration }{
		{time.Hour, time.Hour, time.Minute}, {time.Hour, time.Second, time.Second}, {20 * time.Second, 20 * time.Second, time.Second},
		{time.Second, -time.Second, 0}, {240 * time.Hour, 240 * time.Hour, time.Minute},
	} {
		if got := nextLook(c.limit, c.left); got != c.want {
			t.Errorf("limit %v, %v left: looked at after %v, want %v", c.limit, c.left, got, c.want)
		}
	}
}

// records are those that a crash would leave.
func (r *memRecord) records() []step.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.committed)
}

// What a record says at any moment is how long the process has lived, but for a twentieth of its limit; a pause adds nothing.
func TestRecordSaysHowLongAProcessWithATimeLimitHasLived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSys(t)
		s.model = untilKilled
		pid := s.spawn(func(o *SpawnOpts) { o.Timeout = 20 * time.Minute })
		p, _ := s.table.get(pid)
		lived := func() time.Duration {
			var state recovery.State
			for i, r := range s.stores.of(p.UUID).records() {
				r.Seq = uint64(i + 1)
				state.Apply(&r)
			}
			return state.Active
		}
		time.Sleep(10*time.Minute + 30*time.Second)
		synctest.Wait()
		if got := lived(); got != 10*time.Minute {
			t.Errorf("after 10.5 minutes the record says %v", got)
		}
		if err := s.Signal(pid, types.SIGPAUSE); err != nil {
			t.Fatal(err)
		}
		time.Sleep(24 * time.Hour)
		if err := s.Signal(pid, types.SIGRESUME); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if got := lived(); got < 15*time.Minute || got > 15*time.Minute+30*time.Second {
			t.Errorf("after 15.5 minutes of life and a day of pause the record says %v", got)
		}
		if e, _ := s.Wait(pid); e.Reason != types.ReasonTimeout+"20m0s" {
			t.Errorf("%+v", e)
		}
		n := 0
		for _, r := range s.stores.of(p.UUID).records() {
			if r.Marker != nil && r.Marker.Name == step.MarkerAlive {
				n++
			}
		}
		if n > 20 {
			t.Errorf("%d markers for one time limit", n)
		}
	})
}
