package proc

import (
	"sync"
	"testing"
)

// A process may be paused, or ended, at the moment at which a command of it begins.
func TestWhatIsStartedForAnOwnerThatStandsStillStandsStill(t *testing.T) {
	eachFreezer(t, func(t *testing.T, m *Manager, _ Freezer) {
		m.Freeze(7, KindShell)
		out, others := newLines(t), newLines(t)
		held := start(t, m, sh(`setsid sh -c '`+walker+`' & wait`, out))
		if !held.Info().Frozen {
			t.Errorf("it runs while its owner stands still: %+v", held.Info())
		}
		free := sh(walker, others)
		free.Owner = 8
		start(t, m, free)
		harness := sh(walker, others)
		harness.Kind = KindHarness
		if c := start(t, m, harness); c.Info().Frozen {
			t.Error("what is of another kind stands still, too")
		}
		mustRun(t, others)
		m.Thaw(7)
		mustRun(t, out)
		if c := start(t, m, sh("sleep 1000", nil)); c.Info().Frozen {
			t.Error("it stands still though its owner does not any more")
		}
		m.Freeze(7)
		m.KillOwner(7)
		if c := start(t, m, sh("sleep 1000", nil)); c.Info().Frozen {
			t.Error("what stood still is kept in mind after its owner's end")
		}
		m.KillOwner(8)
	})
}

func TestAStartAndAFreezeMayCross(t *testing.T) {
	eachFreezer(t, func(t *testing.T, m *Manager, _ Freezer) {
		for n := range 20 {
			var wg sync.WaitGroup
			wg.Go(func() { m.Freeze(7) })
			if n%2 == 1 {
				wg.Go(func() { m.Thaw(7) })
			}
			c := start(t, m, sh("sleep 1000", nil))
			wg.Wait()
			m.mu.Lock()
			want := m.still.has(c.spec)
			m.mu.Unlock()
			if got := c.Info().Frozen; got != want {
				t.Fatalf("round %d: it stands still: %v, want %v", n, got, want)
			}
			m.KillOwner(7)
		}
	})
}

// first calls a function at the first output of a child, which may be before the start of it has returned.
type first struct {
	once sync.Once
	do   func()
}

func (f *first) Write(p []byte) (int, error) {
	f.once.Do(f.do)
	return len(p), nil
}

func TestTheEndOfAnOwnerCountsForWhatIsBeingStarted(t *testing.T) {
	m := newManager(t)
	for range 50 {
		var ends sync.WaitGroup
		c := start(t, m, sh("echo up; exec sleep 1000", &first{do: func() { ends.Go(func() { m.KillOwner(7) }) }}))
		if got := c.Wait(); got.Cause != Stopped {
			t.Fatalf("%+v", got)
		}
		ends.Wait()
	}
}
