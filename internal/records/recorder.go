package records

import (
	"context"
	"slices"
	"sync"
	"time"

	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/kernel"
	"rnix/types"
)

// Recorder is the writer of one history with its lease, and what its records amount to. Its calls do not
// depend on the context of the process: what happened is written down also when the process is being
// ended. Safe for concurrent use.
type Recorder struct {
	ID    types.UUID
	store *Store

	mu sync.Mutex
	w  *step.Writer // +checklocks:mu
	// +checklocks:mu
	state *recovery.State // of everything that was added
	due   dueness         // +checklocks:mu
}

// dueness decides when a checkpoint is due: after so many steps or so long, whichever comes first, but
// not before the history has grown by an eighth of the last checkpoint. So what checkpoints write stays
// within eight times what the history does, however long the conversation is.
type dueness struct {
	steps   int       // ended since the last one
	since   time.Time // of the last one
	grown   int       // bytes of the history since
	size    int       // bytes of the last one
	changed bool      // something was added since
}

// share is the part of the last checkpoint by which a history must grow before the next.
const share = 8

// due reports whether a checkpoint is due; every or after of 0 do not count.
func (d *dueness) due(now time.Time, every int, after time.Duration) bool {
	bySteps := every > 0 && d.steps >= every
	byTime := after > 0 && d.steps > 0 && now.Sub(d.since) >= after
	return (bySteps || byTime) && d.grown*share >= d.size
}

// NewRecorder returns the writer of a history with the lease that the caller has. state is what its records amount to so far.
func NewRecorder(s *Store, id types.UUID, lease step.Lease, state *recovery.State) *Recorder {
	r := &Recorder{ID: id, store: s, w: step.NewWriter(s.journal, id, lease), state: state, due: dueness{since: time.Now()}}
	r.w.Seen = r.state.Apply
	return r
}

var _ kernel.Recorder = (*Recorder)(nil)

// Add notes records; they reach the disk with the next Commit.
func (r *Recorder) Add(recs ...step.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range recs {
		rec := &recs[i]
		if !r.store.Secrets.Empty() {
			clean := rec.Concealed(r.store.Secrets)
			rec = &clean
		}
		if err := r.add(rec); err != nil {
			return err
		}
		if r.store.Tap != nil {
			r.store.Tap(r.ID, rec) // what leaves the machine has no secrets either
		}
	}
	return nil
}

// +checklocks:r.mu
func (r *Recorder) add(rec *step.Record) error {
	r.due.changed = true
	switch rec.Kind {
	case step.KindMessage:
		if rec.Delivered != nil {
			return r.w.Deliver(rec.Message, rec.Delivered)
		}
		if rec.Answer != nil {
			return r.w.Answer(rec.Message, rec.Answer)
		}
		return r.w.Message(rec.Message)
	case step.KindIntent:
		return r.w.Intent(rec.Intent)
	case step.KindResult:
		return r.w.Result(rec.Result)
	case step.KindStep:
		r.due.steps++
		return r.w.Step(rec.Step)
	case step.KindMarker:
		if late := slices.Contains(ofARun, rec.Marker.Name); late && r.state.Phase != recovery.Running {
			return nil // the run has ended: it came too late
		}
		return r.w.Marker(rec.Marker)
	}
	return types.Errorf(types.ErrInternal, "Record", "", "record of kind %q", rec.Kind)
}

// ofARun are the markers that say nothing when the run has ended, and may come at that moment.
var ofARun = []string{step.MarkerPause, step.MarkerResume, step.MarkerAlive}

// Pause records that a person has paused a history that is suspended, durably.
func (r *Recorder) Pause(pid types.PID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.due.changed = true
	if err := r.w.Marker(&step.Marker{Name: step.MarkerPause, PID: pid}); err != nil {
		return err
	}
	return r.w.Commit(context.Background())
}

// State returns what the records amount to, with those that were added and not committed.
func (r *Recorder) State() *recovery.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state.Clone()
}

// Commit makes durable what was added, and has a checkpoint made in the background when one is due.
func (r *Recorder) Commit() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.due.grown += r.w.Collected()
	if err := r.w.Commit(context.Background()); err != nil {
		return err
	}
	if r.due.due(time.Now(), r.store.every, r.store.after) {
		r.checkpoint()
	}
	return nil
}

// +checklocks:r.mu
func (r *Recorder) checkpoint() {
	size := &r.due.size
	r.due = dueness{since: time.Now(), size: *size}
	r.store.checkpoints.put(r.ID, r.state.Clone(), func(bytes int) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.due.size = bytes
	})
}

// Close commits what is left, has a last checkpoint made, and gives the lease back.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.w.Err() == nil && r.due.changed && r.store.every+int(r.store.after) > 0 {
		if err := r.w.Commit(context.Background()); err == nil {
			r.checkpoint()
		}
	}
	return r.w.Close(context.Background())
}
