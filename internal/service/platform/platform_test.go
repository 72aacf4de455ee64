package platform

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	engine "rnix/internal/platform"
	"rnix/internal/step"
	"rnix/runtime/heartbeat"
	"rnix/runtime/journal"
	"rnix/types"
)

// kept makes the journal of a process, as if there were something left to tell.
func kept(t *testing.T, s *Service, n types.PID, session string) {
	t.Helper()
	j, err := journal.Open(journal.Options{Dir: s.journalOf(id(n)), Session: session})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestASessionHasOneProcessAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld(t)
		first := w.opened(t, s, 1, "S")
		if err := s.Open(t.Context(), id(2), request("S")); types.CodeOf(err) != types.ErrConflict || !strings.Contains(err.Error(), id(1).String()) {
			t.Errorf("a second process has the session: %v", err)
		}
		w.claim = func(engine.Config) error { return errors.New("refused") }
		if err := s.Open(t.Context(), id(3), request("S-3")); err == nil {
			t.Error("a session that the platform refused is open")
		}
		w.claim = nil
		w.opened(t, s, 3, "S-3")
		slow := make(chan struct{})
		first.close = func(context.Context) { <-slow }
		s.Ended(id(1))
		got := make(chan error)
		go func() { got <- s.Open(t.Context(), id(2), request("S")) }()
		synctest.Wait()
		select {
		case err := <-got:
			t.Errorf("the session is taken before it is given back: %v", err)
		default:
		}
		close(slow)
		if err := <-got; err != nil {
			t.Error(err)
		}
		if st := s.State(id(2)); st == nil || st.Session != "S" || s.State(id(1)) != nil {
			t.Errorf("%+v, %+v", st, s.State(id(1)))
		}
		if issue, worker := s.Names(id(2)); issue != "I-S" || !strings.HasSuffix(worker, id(2).String()[24:]) {
			t.Errorf("issue %q, worker %q", issue, worker)
		}
		s.Ended(id(2))
		s.Ended(id(3))
		if err := s.Stop(); err != nil || len(s.Sessions()) != 0 {
			t.Errorf("%v, %v", s.Sessions(), err)
		}
	})
}

func TestAProcessWaitsForTheLeaseOfEachSessionAboveIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld(t)
		w.parents = map[types.PID]types.PID{1: 0, 2: 1, 3: 2, 4: 3, 9: 0}
		top, mid := w.opened(t, s, 1, "S-1"), w.opened(t, s, 3, "S-3")
		waits := func(n types.PID) bool { _, changed := s.Waits(n, id(n)); return changed != nil }
		for n, want := range map[types.PID]types.UUID{1: id(1), 2: id(1), 3: id(3), 4: id(3), 9: {}} {
			if got := s.Holder(n, id(n)); got != want || waits(n) {
				t.Errorf("%d acts for %v and waits: %v", n, got, waits(n))
			}
		}
		mid.is(func(at *state) { at.standing.Ours = false })
		if waits(1) || waits(2) || !waits(3) || !waits(4) || waits(9) {
			t.Error("those at and below the session whose lease has run out wait, and no other")
		}
		top.is(func(at *state) { at.standing.Ours = false })
		if !waits(1) || !waits(2) || !waits(4) || waits(9) {
			t.Error("those below wait too")
		}
		w.done()
		top.cfg.Held(top.Standing())
		if did := w.done(); !slices.Equal(did, []string{"bound 1 10s", "hold 1 true", "bound 1 0s", "event 1 S-1 run out"}) {
			t.Errorf("%q", did)
		}
		top.cfg.Beat(7)
		if did := w.done(); !slices.Equal(did, []string{"confirmed 1 7"}) { // a beat that comes late: what is held gets no time
			t.Errorf("%q", did)
		}
		late := top.Standing()
		top.is(func(at *state) { at.standing.Ours = true })
		for _, st := range []engine.Standing{top.Standing(), late} { // one that is late holds no process that may act
			top.cfg.Held(st)
			if did := w.done(); !slices.Equal(did, []string{"bound 1 1m0s", "hold 1 false", "event 1 S-1 ours"}) {
				t.Errorf("%q", did)
			}
		}
		top.cfg.Lost(false)
		mid.cfg.Lost(true)
		if did := w.done(); !slices.Equal(did, []string{"event 1 S-1 lost", "revoke 1", "terminate 3"}) {
			t.Errorf("%q", did)
		}
		s.Ended(id(1))
		s.Ended(id(3))
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestASessionThatIsLostBeforeItsProcessRunsEndsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld(t)
		l := w.opened(t, s, 1, "S")
		l.is(func(at *state) { at.lost, at.standing.Ours = true, false })
		l.cfg.Held(l.Standing())
		l.cfg.Lost(false)
		if did := w.done(); !slices.Equal(did, []string{"bound 1 1m0s"}) {
			t.Errorf("%q", did)
		}
		w.parents[1] = 0
		s.Begun(id(1))
		if did := w.done(); !slices.Equal(did, []string{"bound 1 10s", "hold 1 true", "bound 1 0s", "event 1 S run out", "event 1 S lost", "revoke 1"}) {
			t.Errorf("%q", did)
		}
		s.Ended(id(1))
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestWhatIsLeftIsToldLessAndLessOftenUntilThePlatformKnowsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld(t)
		l := w.opened(t, s, 1, "S")
		kept(t, s, 1, "S")
		s.Record(id(1), &step.Record{})
		l.is(func(at *state) { at.over = true })
		var at []time.Time
		w.tell = func(context.Context, engine.Config) (int, error) {
			switch at = append(at, time.Now()); {
			case len(at) == 12:
				return 0, nil
			case len(at) > 6:
				return 0, types.Errorf(types.ErrConflict, "Claim", "S", "%w", heartbeat.ErrLostOwnership)
			}
			return 1, errors.New("away")
		}
		began := time.Now()
		s.Ended(id(1))
		time.Sleep(time.Minute) // of the bubble
		if owed := s.Owing(id(1)); owed == nil || owed.Pending != 1 || owed.Trouble != "away" || !slices.Equal(s.Sessions(), []types.UUID{id(1)}) {
			t.Errorf("%+v, %v", owed, s.Sessions())
		}
		time.Sleep(24 * time.Hour)
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		if len(at) != 12 || s.Owing(id(1)) != nil || len(s.Sessions()) != 0 {
			t.Fatalf("told %d times, %+v is left", len(at), s.Owing(id(1)))
		}
		for n, last := 0, began; n < len(at); n, last = n+1, at[n] {
			most := min(settleFirst<<n, settleMost*settleFirst)
			if pause := at[n].Sub(last); pause > most || pause < most*3/4 {
				t.Errorf("pause %d is %v, and not about %v", n, pause, most)
			}
		}
	})
}

func TestAProcessThatAsksForASessionComesBeforeWhatIsLeftToTellOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld(t)
		kept(t, s, 1, "S")
		w.stored[id(1)] = step.ProcInfo{ProcStatus: types.ProcStatus{UUID: id(1), Exit: &types.ExitStatus{}}}
		ended := make(chan struct{})
		w.tell = func(ctx context.Context, _ engine.Config) (int, error) {
			<-ctx.Done() // the platform takes its time
			close(ended)
			return 1, context.Cause(ctx)
		}
		if notes := s.TakeUp(request("").Config, request("").Lookup); len(notes) != 0 {
			t.Errorf("%q", notes)
		}
		synctest.Wait()
		if did := w.done(); !slices.Equal(did, []string{"tell S"}) {
			t.Errorf("%q", did)
		}
		w.opened(t, s, 1, "S")
		select {
		case <-ended:
		default:
			t.Error("the session is claimed while it is told of")
		}
		time.Sleep(time.Hour)
		if did := w.done(); slices.Contains(did, "tell S") || s.Owing(id(1)) != nil {
			t.Errorf("%q, %+v", did, s.Owing(id(1)))
		}
		s.Ended(id(1))
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAStopWaitsTwoSecondsForAPlatformThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld(t)
		l := w.opened(t, s, 1, "S")
		l.is(func(at *state) { at.over, at.pending = true, 1 })
		l.close = func(ctx context.Context) { <-ctx.Done() }
		s.Ended(id(1))
		time.Sleep(time.Hour)
		began := time.Now()
		if err := s.Stop(); err != nil || time.Since(began) != tellingAtStop {
			t.Errorf("it took %v: %v", time.Since(began), err)
		}
		if owed := s.Owing(id(1)); owed == nil || owed.Pending != 1 {
			t.Errorf("%+v", owed)
		}
	})
}

func TestAStartTellsWhatIsLeftOfProcessesThatHaveEndedAndOfNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld(t)
		for n := range types.PID(5) {
			kept(t, s, n+1, "S-"+id(n + 1).String()[35:])
		}
		over := &types.ExitStatus{}
		w.stored = map[types.UUID]step.ProcInfo{id(1): {ProcStatus: types.ProcStatus{Exit: over}}, id(2): {}, id(3): {ProcStatus: types.ProcStatus{Exit: over}, Suspended: true}}
		if err := os.MkdirAll(w.Dir(id(4)), 0o700); err != nil { // a history that cannot be read; 5 has none
			t.Fatal(err)
		}
		away := request("").Config
		away.URL.V = ""
		if notes := s.TakeUp(away, request("").Lookup); len(notes) != 1 || !strings.Contains(notes[0], "its session S-1") {
			t.Errorf("%q", notes)
		}
		if notes := s.TakeUp(request("").Config, request("").Lookup); len(notes) != 0 {
			t.Errorf("%q", notes)
		}
		synctest.Wait()
		if did := w.done(); !slices.Equal(did, []string{"tell S-1"}) {
			t.Errorf("%q", did)
		}
		for n := range types.PID(5) {
			if there := exists(s.journalOf(id(n + 1))); there != (n+1 != 5) {
				t.Errorf("the journal of %d is there: %v", n+1, there)
			}
		}
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
}

// A client can start a process while its daemon starts: the journal is there before the history.
func TestAStartLeavesTheJournalOfAProcessThatIsBeingStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld(t)
		w.claim = func(engine.Config) error {
			kept(t, s, 1, "S")
			if notes := s.TakeUp(request("").Config, request("").Lookup); len(notes) != 0 {
				t.Errorf("%q", notes)
			}
			if err := s.Forget(id(1)); types.CodeOf(err) != types.ErrConflict {
				t.Errorf("forgotten: %v", err)
			}
			return nil
		}
		w.opened(t, s, 1, "S")
		if !exists(s.journalOf(id(1))) {
			t.Error("its journal is gone")
		}
		s.Ended(id(1))
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		if err := s.Forget(id(1)); err != nil || exists(s.journalOf(id(1))) {
			t.Errorf("the journal is still there: %v", err)
		}
	})
}
