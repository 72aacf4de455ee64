package kernel

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"rnix/internal/step"
	"rnix/types"
	"rnix/vfs"
)

// slowly is a witnessed store whose records take their time behind the commit of a marker: until the record is closed, if that can be, and
// otherwise for a moment.
type slowly struct {
	witnessed
	marker string
}

type slowRecord struct {
	*memRecord
	marker string
	gone   chan struct{} // closed when it is given back
}

func (w *slowly) Create(id types.UUID) (Recorder, error) {
	r, err := w.memStore.Create(id)
	if err != nil {
		return nil, err
	}
	return slowRecord{r.(*memRecord), w.marker, make(chan struct{})}, nil
}

func (r slowRecord) Commit() error {
	err := r.memRecord.Commit()
	r.mu.Lock()
	last := r.committed[len(r.committed)-1]
	r.mu.Unlock()
	if last.Marker == nil || last.Marker.Name != r.marker {
		return err
	}
	select {
	case <-r.gone:
		<-time.After(20 * time.Millisecond) // until the table has forgotten the process
	case <-time.After(200 * time.Millisecond):
	}
	return err
}

func (r slowRecord) Close() error {
	defer close(r.gone)
	return r.memRecord.Close()
}

// shutStore is a store whose records take nothing more when they are closed, as those on disk.
type shutStore struct{ *memStore }

type shutRecord struct{ *memRecord }

func (s shutStore) Create(id types.UUID) (Recorder, error) {
	r, err := s.memStore.Create(id)
	if err != nil {
		return nil, err
	}
	return shutRecord{r.(*memRecord)}, nil
}

func (r shutRecord) Commit() error {
	r.mu.Lock()
	closed := r.closed
	r.mu.Unlock()
	if closed {
		return types.Errorf(types.ErrInvalid, "Commit", "", "the writer is closed")
	}
	return r.memRecord.Commit()
}

// A child that has ended and that its parent has not waited for has a record that is closed.
func TestMoreBudgetForOneThatHasEndedIsForItsHistory(t *testing.T) {
	s := newSys(t, func(c *Config) { c.Store = shutStore{c.Store.(*memStore)} })
	s.model = func(ctx context.Context, c vfs.Caller, turn int) (reply, error) {
		if c.PID == 1 {
			return untilKilled(ctx, c, turn)
		}
		return reply{Content: "x"}, nil
	}
	parent, budget := s.spawn(), 1000
	child := s.spawn(func(o *SpawnOpts) { o.ParentPID, o.ContextBudget = parent, &budget })
	p, ok := s.Process(child)
	if !ok {
		t.Fatal("it is gone")
	}
	<-p.Left()
	if _, err := s.AddBudget(child, Amount{Tokens: 50}); types.CodeOf(err) != types.ErrNotFound || !Passing(err) {
		t.Errorf("the error is %v", err)
	}
	if limit := p.purse.Limit(); limit.Tokens != budget {
		t.Errorf("its limit is %d", limit.Tokens)
	}
}

// A pause and a resume that cross: what the record says when the resume has returned is what a crash leaves.
func TestAPauseIsNotWrittenBehindAResumeThatIsDone(t *testing.T) {
	s := newSys(t)
	s.model = untilKilled
	pid := s.spawn()
	p, _ := s.Process(pid)
	rec := s.stores.of(p.UUID)
	for range 500 {
		p.small.mu.Lock() // others write as well
		paused := make(chan error, 1)
		go func() { paused <- s.Signal(pid, types.SIGPAUSE) }()
		for _, shut := p.gate.Since(); !shut; _, shut = p.gate.Since() {
			runtime.Gosched()
		}
		for range 20 { // it comes to where it waits
			runtime.Gosched()
		}
		p.small.mu.Unlock()
		if err := s.Signal(pid, types.SIGRESUME); err != nil {
			t.Fatal(err)
		}
		rec.mu.Lock()
		done := len(rec.committed)
		rec.mu.Unlock()
		if err := <-paused; err != nil {
			t.Fatal(err)
		}
		rec.mu.Lock()
		for _, r := range rec.committed[done:] {
			if r.Marker != nil && r.Marker.Name == step.MarkerPause {
				t.Error("paused behind the resume")
			}
		}
		rec.mu.Unlock()
		if t.Failed() {
			return
		}
	}
}

// What a person does to a process that ends at this moment is written before its history is given back, or not at all.
func TestAChangeOfAProcessThatEndsIsNotWrittenLate(t *testing.T) {
	for marker, change := range map[string]func(s *sys, pid types.PID) error{
		step.MarkerPause: func(s *sys, pid types.PID) error { return s.Signal(pid, types.SIGPAUSE) },
		step.MarkerLimit: func(s *sys, pid types.PID) error { _, err := s.AddBudget(pid, Amount{Tokens: 50}); return err },
		step.MarkerName:  func(s *sys, pid types.PID) error { _, err := s.Rename(pid, "other"); return err },
	} {
		t.Run(marker, func(t *testing.T) {
			w := &slowly{marker: marker}
			s := newSys(t, func(c *Config) { w.memStore = c.Store.(*memStore); c.Store = w })
			w.s = s
			s.model = untilKilled
			budget := 1000
			pid := s.spawn(func(o *SpawnOpts) { o.ContextBudget = &budget })
			p, _ := s.Process(pid)
			changed := make(chan error, 1)
			go func() { changed <- change(s, pid) }()
			rec := s.stores.of(p.UUID)
			for committed := false; !committed && t.Context().Err() == nil; {
				rec.mu.Lock()
				for _, r := range rec.committed {
					committed = committed || r.Marker != nil && r.Marker.Name == marker
				}
				rec.mu.Unlock()
			}
			if err := s.Signal(pid, types.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if _, err := s.WaitInfo(t.Context(), pid); err != nil {
				t.Fatal(err)
			}
			if err := <-changed; err != nil {
				t.Error(err)
			}
			<-p.Gone()
			w.mu.Lock()
			defer w.mu.Unlock()
			if len(w.late) > 0 {
				t.Errorf("written late: %v", w.late)
			}
		})
	}
}

// atTool starts a process that is in a call of its tool, so that it writes nothing itself: a pause cuts off a model, and no call.
func atTool(s *sys) *Process {
	called := make(chan struct{})
	s.model = func(context.Context, vfs.Caller, int) (reply, error) {
		return reply{Calls: []string{"tool {}"}}, nil
	}
	s.tool = func(ctx context.Context, _ vfs.Caller) (string, error) {
		close(called)
		<-ctx.Done()
		return "", context.Cause(ctx)
	}
	p, _ := s.Process(s.spawn())
	<-called
	return p
}

// heldStore is a store whose records wait in the commit of a marker until they are told how it ends.
type heldStore struct {
	*memStore
	marker string
	at     chan struct{} // a commit waits
	ends   chan error
}

type heldRecord struct {
	*memRecord
	of *heldStore
}

func (h *heldStore) Create(id types.UUID) (Recorder, error) {
	r, err := h.memStore.Create(id)
	if err != nil {
		return nil, err
	}
	return heldRecord{r.(*memRecord), h}, nil
}

func (r heldRecord) Commit() error {
	r.mu.Lock()
	held := len(r.pending) > 0 && r.pending[0].Marker != nil && r.pending[0].Marker.Name == r.of.marker
	r.mu.Unlock()
	if held {
		r.of.at <- struct{}{}
		err := <-r.of.ends
		r.mu.Lock()
		r.fail = err
		r.mu.Unlock()
	}
	return r.memRecord.Commit()
}

// Who asks for what somebody else is just writing is told that it holds when it is written, and not before.
func TestASecondPauseHoldsNoSoonerThanTheFirst(t *testing.T) {
	full := types.Errorf(types.ErrStorage, "Commit", "steps.jsonl", "no space left on device")
	for marker, sig := range map[string]types.Signal{step.MarkerPause: types.SIGPAUSE, step.MarkerResume: types.SIGRESUME} {
		for name, outcome := range map[string]error{"written": nil, "not written": full} {
			t.Run(marker+", "+name, func(t *testing.T) {
				h := &heldStore{marker: marker, at: make(chan struct{}, 1), ends: make(chan error)}
				s := newSys(t, func(c *Config) { h.memStore = c.Store.(*memStore); c.Store = h })
				p := atTool(s)
				if sig == types.SIGRESUME {
					if err := s.Signal(p.PID, types.SIGPAUSE); err != nil {
						t.Fatal(err)
					}
				}
				first, second := make(chan error, 1), make(chan error, 1)
				go func() { first <- s.Signal(p.PID, sig) }()
				<-h.at
				go func() { second <- s.Signal(p.PID, sig) }()
				for range 100 { // it comes to where it waits
					runtime.Gosched()
				}
				select {
				case err := <-second:
					t.Errorf("%v before it is written: %v", sig, err)
					second <- err
				default:
				}
				h.ends <- outcome
				for who, got := range map[string]error{"first": <-first, "second": <-second} {
					if types.CodeOf(got) != types.CodeOf(outcome) {
						t.Errorf("the %s is told %v", who, got)
					}
				}
				if n := strings.Count(s.stores.of(p.UUID).kinds(), marker); outcome == nil && n != 1 {
					t.Errorf("it is written %d times", n)
				}
				if err := s.Signal(p.PID, types.SIGKILL); err != nil {
					t.Error(err)
				}
				if _, err := s.WaitInfo(t.Context(), p.PID); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// A pause or its end that would not hold over the end of the daemon is not acknowledged as if it did. What is wanted holds until then.
func TestAPauseThatCannotBeWrittenIsAnError(t *testing.T) {
	s := newSys(t)
	p := atTool(s)
	pid, rec := p.PID, s.stores.of(p.UUID)
	full := func(err error) { rec.mu.Lock(); rec.fail = err; rec.mu.Unlock() }
	signals := map[string]func(types.Signal) error{
		"Signal":     func(sig types.Signal) error { return s.Signal(pid, sig) },
		"SignalTree": func(sig types.Signal) error { _, err := s.SignalTree(pid, sig); return err },
	}
	written := rec.kinds()
	for _, room := range []bool{false, true} { // its record takes nothing more, also if there is room again
		full(types.Errorf(types.ErrStorage, "Commit", "steps.jsonl", "no space left on device"))
		if room {
			full(nil)
		}
		for name, signal := range signals {
			for sig, paused := range map[types.Signal]bool{types.SIGPAUSE: true, types.SIGRESUME: false} {
				if sig == types.SIGRESUME { // of one that is paused
					_ = signal(types.SIGPAUSE)
				}
				for range 2 { // who asks again is not told that it holds
					err := signal(sig)
					if types.CodeOf(err) != types.ErrStorage || !strings.Contains(err.Error(), "would not hold over the end of the daemon") {
						t.Errorf("%s %v, with room again %v: %v", name, sig, room, err)
					}
				}
				if i, err := s.Info(pid); err != nil || i.Paused != paused {
					t.Errorf("%s %v: %+v %v", name, sig, i, err)
				}
				_ = signal(types.SIGRESUME)
			}
		}
	}
	if is := rec.kinds(); is != written {
		t.Errorf("written %q, and before %q", is, written)
	}
	if err := s.Signal(pid, types.SIGKILL); err != nil {
		t.Error(err)
	}
	if _, err := s.WaitInfo(t.Context(), pid); err != nil {
		t.Fatal(err)
	}
}
