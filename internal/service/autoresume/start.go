package autoresume

import (
	"context"
	"fmt"
	"time"

	"rnix/internal/durable"
	"rnix/internal/launch"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// backOff is how long a process that the daemon has broken off before waits until it goes on.
func backOff(crashes int) time.Duration {
	if crashes < 2 {
		return 0
	}
	return time.Second << min(crashes, 6)
}

// left is a history that an earlier daemon has left without an end.
type left struct {
	info  step.ProcInfo
	state *recovery.State
}

// GoOn resumes what was running when the last daemon stopped, or broke off. It runs in the background:
// the daemon answers meanwhile. What a person has paused, what waits for something, and what has broken
// off the daemon too often stays as it is.
func (d *Service) GoOn(ctx context.Context) {
	max := d.Max
	var due []left
	for _, info := range d.Stored.Cards.Index().List() {
		half := d.mayBeHalf(&info)
		if info.Over() && !half {
			continue
		}
		if _, alive := d.Stored.Running(info.UUID); alive || ctx.Err() != nil {
			continue
		}
		if info.Exit != nil && !half {
			d.Stored.Cards.Bury(ctx, info)
			continue
		}
		if l, ok := d.look(ctx, info); ok {
			due = append(due, l)
		}
	}
	all := len(due)
	due, stay := atMost(due, max)
	if max > 0 && len(stay) > 0 {
		d.Note("%d processes were running, and %d of them are resumed (daemon.auto_resume_max); the others are resumed with: rnix resume PROCESS (see: rnix list-resumable)", all, len(due))
	}
	for _, l := range stay {
		if max == 0 { // nothing is resumed, and that is no news
			break
		}
		l.info.Suspension = types.SuspendFor(types.SuspendHeld, fmt.Sprintf("more processes were running than are resumed at a start (daemon.auto_resume_max: %d); it is resumed with: rnix resume %d", max, l.info.PID))
		d.Stored.Cards.Put(&l.info)
	}
	hold := make(chan struct{})
	later := map[time.Duration][]left{}
	waits := d.waits(due)
	for _, l := range parentsFirst(due) {
		if wait := waits[l.info.UUID]; wait > 0 {
			later[wait] = append(later[wait], l)
			continue
		}
		d.again(ctx, l, hold)
	}
	close(hold)
	for wait, ls := range later {
		over := d.delayed.put(ls)
		d.Background.Go(func() { // ends with ctx
			defer over()
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return
			}
			hold := make(chan struct{})
			defer close(hold)
			for _, l := range ls {
				d.again(ctx, l, hold)
			}
		})
	}
}

// waits returns how long each history waits until it goes on. A family goes on together, when all of it
// may: a parent that finds its child suspended is suspended too, and nobody would wake it.
func (d *Service) waits(ls []left) map[types.UUID]time.Duration {
	head := heads(ls)
	family := map[types.UUID]time.Duration{}
	for _, l := range ls {
		family[head[l.info.UUID]] = max(family[head[l.info.UUID]], backOff(d.Stored.Cards.Crashes(l.state)))
	}
	waits := map[types.UUID]time.Duration{}
	for _, l := range ls {
		waits[l.info.UUID] = family[head[l.info.UUID]]
	}
	return waits
}

// wakeEvery is how often it is looked whether a suspended process can go on.
const wakeEvery = 10 * time.Second

// Wake resumes suspended processes whose time has come, until ctx ends. Each waits a little longer than
// it must, for a time of its own, so that those that wait for the same limit do not all ask at once.
func (d *Service) Wake(ctx context.Context) {
	d.Background.Go(func() { d.wakeKeyed(ctx) })
	tick := time.NewTicker(wakeEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		for _, info := range d.Stored.Cards.Index().Due(time.Now()) {
			if time.Now().After(info.WakeAt.Add(spread(info.UUID))) {
				d.ContinueQuietly(ctx, info)
			}
		}
	}
}

// spread is how much longer than it must a history waits: up to half a minute.
func spread(id types.UUID) time.Duration {
	return (time.Duration(id[14])<<8 + time.Duration(id[15])) * time.Millisecond / 2
}

// ContinueQuietly goes on with a history and with those that wait for it. It reports false if the disk takes no more.
func (d *Service) ContinueQuietly(ctx context.Context, info step.ProcInfo) bool {
	r, err := d.Resumer.Continued(ctx, info.UUID, &ipc.ResumeRequest{}, func(s *recovery.State) bool {
		return (s.Phase == recovery.Suspended || (info.Why() == types.SuspendKey || d.Room.CutBy(&info)) && s.Phase != recovery.Ended) && !s.Paused // nobody was quicker
	})
	if err == nil {
		d.auto.moved(r)
	}
	if err == nil || types.CodeOf(err) == types.ErrConflict || ctx.Err() != nil {
		return true
	}
	if durable.Unwritable(err) {
		return false
	}
	d.Note("PID %d (%s) cannot be resumed automatically: %v", info.PID, info.UUID, err)
	info = d.calledNow(info)
	info.WakeAt, info.Suspension = time.Time{}, stuck(err)
	d.Stored.Cards.Put(&info)
	return true
}

// again resumes one history by itself.
func (d *Service) again(ctx context.Context, l left, hold chan struct{}) {
	if _, alive := d.Stored.Running(l.info.UUID); alive || ctx.Err() != nil {
		return
	}
	a, err := d.Stored.Open(ctx, l.info.UUID)
	if err == nil && (a.State.Seq < l.state.Seq || a.State.Paused || a.State.Phase == recovery.Ended || a.State.Phase == recovery.Suspended) {
		a.Close() // a person was quicker, and it has ended meanwhile
		return
	}
	if err == nil {
		var resp ipc.ResumeResponse
		if resp, err = d.Launcher.Start(ctx, a, &ipc.ResumeRequest{}, hold); err == nil {
			d.auto.put(resp)
			d.Note("PID %d (%s) is resumed as PID %d from step %d", l.info.PID, l.info.UUID, resp.PID, resp.Step)
			return
		}
	}
	if types.CodeOf(err) == types.ErrConflict {
		return // a person was quicker
	}
	l.info = d.calledNow(l.info)
	if durable.Unwritable(err) {
		l.info.Suspended, l.info.Suspension = true, kernel.WaitsForDisk(err)
		d.Stored.Cards.Put(&l.info)
		d.Room.CutOff(l.info.UUID)
		return
	}
	d.Note("PID %d (%s) cannot be resumed automatically: %v", l.info.PID, l.info.UUID, err)
	l.info.Suspension = stuck(err)
	d.Stored.Cards.Put(&l.info)
}

// look reads a history without an end, marks it if the daemon broke it off, brings its small files up to
// date, and reports whether it is to go on by itself.
func (d *Service) look(ctx context.Context, info step.ProcInfo) (left, bool) {
	state, _, damage, err := d.Stored.Store.Read(ctx, info.UUID)
	if err != nil {
		d.Note("history %s: %v", info.UUID, err)
		info.Suspended, info.Suspension = true, types.SuspendFor(types.SuspendOther, cause(err))
		d.Stored.Cards.Put(&info)
		return left{}, false
	}
	if !recovery.Begun(state) {
		d.discard(ctx, info.UUID)
		return left{}, false
	}
	if e := (&ending{d.Stored, d.Flows, d.Note}); e.escaped(ctx, &info) || e.endsRun(ctx, &info, state) {
		return left{}, false
	}
	if state.Phase == recovery.Running {
		d.brokenOff(ctx, info, state, damage)
	}
	info = d.Stored.Cards.Refreshed(info, state)
	d.Stored.Cards.Put(&info)
	switch {
	case state.Phase == recovery.Ended || state.Phase == recovery.Suspended || state.Paused:
		return left{}, false
	case d.Stored.Cards.Crashes(state) >= launch.MaxCrashes:
		d.Note("PID %d (%s) is not resumed automatically: the daemon has broken off %d times in its step %d", info.PID, info.UUID, state.Crashes, state.Step+1)
		return left{}, false
	}
	return left{info, state}, true
}

// brokenOff marks a history whose daemon ended without warning, and says what is in doubt.
func (d *Service) brokenOff(ctx context.Context, info step.ProcInfo, state *recovery.State, damage string) {
	if err := d.mark(ctx, info, state); err != nil {
		d.Note("PID %d (%s): %v", info.PID, info.UUID, err) // it can be read all the same
	}
	for _, c := range state.Unknown() {
		if c.Intent.Child != nil || recovery.Waits(&c) { // it is found again by its UUID
			continue
		}
		d.Note("PID %d (%s): the call %s of %s was interrupted in step %d; its outcome is unknown", info.PID, info.UUID, c.ID, c.Name, c.Intent.Step)
	}
	if damage != "" {
		d.Note("PID %d (%s): %s", info.PID, info.UUID, damage)
	}
}

// mayBeHalf reports whether a history may be a fork that was never finished. It has the end of its origin
// then, but nothing that is written when a process is started.
func (d *Service) mayBeHalf(info *step.ProcInfo) bool {
	return info.OriginUUID != (types.UUID{}) && !d.Stored.Cards.Written(info.UUID)
}

// discard removes a fork that was never finished: nobody has been told of it.
func (d *Service) discard(ctx context.Context, id types.UUID) {
	if err := d.Forks.Abandon(ctx, id); err != nil {
		d.Note("the unfinished fork %s cannot be removed: %v", id, err)
		return
	}
	if err := d.Stored.Cards.Index().Delete(id); err != nil {
		d.Note("index: %v", err)
	}
}

// calledNow is what was read of a history before, with the name that it has now.
func (d *Service) calledNow(info step.ProcInfo) step.ProcInfo {
	if now, ok := d.Stored.Get(info.UUID); ok {
		info.Name = now.Name
	}
	return info
}

// mark appends the fact of the interruption to the record of a history, and folds it into its state.
func (d *Service) mark(ctx context.Context, info step.ProcInfo, state *recovery.State) error {
	journal := d.Stored.Cards.Journal
	lease, err := journal.Open(ctx, info.UUID, "rnix daemon, recovery")
	if err != nil {
		return err
	}
	if lease.Damage != "" {
		d.Note("PID %d (%s): %s", info.PID, info.UUID, lease.Damage)
	}
	w := step.NewWriter(journal, info.UUID, lease)
	var mark step.Record
	w.Seen = func(r *step.Record) { mark = *r }
	if err := w.Marker(&step.Marker{Name: step.MarkerInterrupted, PID: info.PID, Text: "the daemon ended without warning"}); err != nil {
		return err
	}
	if err := w.Close(ctx); err != nil {
		return err
	}
	state.Apply(&mark)
	return nil
}
