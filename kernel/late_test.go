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

// A pause or its end that would not hold over a crash is not acknowledged as if it did. What is wanted holds until then.
func TestAPauseThatCannotBeWrittenIsAnError(t *testing.T) {
	s := newSys(t)
	called := make(chan struct{}) // its own step writes nothing behind this: a pause cuts off a model, and no call
	s.model = func(context.Context, vfs.Caller, int) (reply, error) {
		return reply{Calls: []string{"tool {}"}}, nil
	}
	s.tool = func(ctx context.Context, _ vfs.Caller) (string, error) {
		close(called)
		<-ctx.Done()
		return "", context.Cause(ctx)
	}
	pid := s.spawn()
	p, _ := s.Process(pid)
	rec := s.stores.of(p.UUID)
	<-called
	full := func(err error) { rec.mu.Lock(); rec.fail = err; rec.mu.Unlock() }
	signals := map[string]func(types.Signal) error{
		"Signal":     func(sig types.Signal) error { return s.Signal(pid, sig) },
		"SignalTree": func(sig types.Signal) error { _, err := s.SignalTree(pid, sig); return err },
	}
	for name, signal := range signals {
		full(types.Errorf(types.ErrStorage, "Commit", "steps.jsonl", "no space left on device"))
		for sig, paused := range map[types.Signal]bool{types.SIGPAUSE: true, types.SIGRESUME: false} {
			if sig == types.SIGRESUME { // of one that is paused
				_ = signal(types.SIGPAUSE)
			}
			for range 2 { // who asks again is not told that it holds
				err := signal(sig)
				if types.CodeOf(err) != types.ErrStorage || !strings.Contains(err.Error(), "would not hold over a crash") {
					t.Errorf("%s %v: %v", name, sig, err)
				}
			}
			if i, err := s.Info(pid); err != nil || i.Paused != paused {
				t.Errorf("%s %v: %+v %v", name, sig, i, err)
			}
			_ = signal(types.SIGRESUME)
		}
		_ = signal(types.SIGPAUSE)
		written := len(rec.kinds())
		full(nil)
		if err := signal(types.SIGPAUSE); err != nil { // it is paused already, and now that holds
			t.Errorf("%s, with room again: %v", name, err)
		}
		if s := rec.kinds()[written:]; !strings.HasSuffix(s, step.MarkerPause) {
			t.Errorf("%s, with room again: written %q", name, s)
		}
		_ = signal(types.SIGRESUME)
	}
	if err := s.Signal(pid, types.SIGKILL); err != nil {
		t.Error(err)
	}
	if _, err := s.WaitInfo(t.Context(), pid); err != nil {
		t.Fatal(err)
	}
}
