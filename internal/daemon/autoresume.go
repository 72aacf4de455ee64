package daemon

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"rnix/internal/durable"
	"rnix/internal/recovery"
	"rnix/internal/service/room"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// maxCrashes is after how many ends of the daemon in the same step of a process it is not resumed by
// itself any more: it may be what brings the daemon down.
const maxCrashes = 3

// backOff is how long a process that the daemon has broken off before waits until it goes on.
func backOff(crashes int) time.Duration {
	if crashes < 2 {
		return 0
	}
	return time.Second << min(crashes, 6)
}

// autoResumer lets go on by itself what was running when an earlier daemon ended.
type autoResumer struct{ *Daemon }

// left is a history that an earlier daemon has left without an end.
type left struct {
	info  step.ProcInfo
	state *recovery.State
}

// goOn resumes what was running when the last daemon stopped, or broke off. It runs in the background:
// the daemon answers meanwhile. What a person has paused, what waits for something, and what has broken
// off the daemon too often stays as it is.
func (d autoResumer) goOn(ctx context.Context, max int) {
	var due []left
	for _, info := range d.journal.Index().List() {
		half := d.mayBeHalf(&info)
		if info.Over() && !half {
			continue
		}
		if _, alive := d.running(info.UUID); alive || ctx.Err() != nil {
			continue
		}
		if info.Exit != nil && !half {
			d.bury(ctx, info)
			continue
		}
		if l, ok := d.look(ctx, info); ok {
			due = append(due, l)
		}
	}
	all := len(due)
	due, stay := atMost(due, max)
	if max > 0 && len(stay) > 0 {
		d.note("%d processes were running, and %d of them are resumed (daemon.auto_resume_max); the others are resumed with: rnix resume PROCESS (see: rnix list-resumable)", all, len(due))
	}
	for _, l := range stay {
		if max == 0 { // nothing is resumed, and that is no news
			break
		}
		l.info.SuspendReason = fmt.Sprintf("more processes were running than are resumed at a start (daemon.auto_resume_max: %d); it is resumed with: rnix resume %d", max, l.info.PID)
		d.put(&l.info)
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
		d.background.Go(func() { // ends with ctx
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
func (d autoResumer) waits(ls []left) map[types.UUID]time.Duration {
	head := heads(ls)
	family := map[types.UUID]time.Duration{}
	for _, l := range ls {
		family[head[l.info.UUID]] = max(family[head[l.info.UUID]], backOff(d.crashes(l.state)))
	}
	waits := map[types.UUID]time.Duration{}
	for _, l := range ls {
		waits[l.info.UUID] = family[head[l.info.UUID]]
	}
	return waits
}

// crashes returns how often the daemon has broken off in the step of a process, or 0 if all that it did was
// to wait for children, as a process without a model does: these count for themselves.
func (d autoResumer) crashes(s *recovery.State) int {
	if was, err := s.Was(); err == nil && was.Body != nil { // it does nothing itself
		return 0
	}
	waits := false
	for _, c := range s.Unknown() {
		if recovery.Waits(&c) {
			waits = true
			continue
		}
		if c.Intent.Child == nil {
			return s.Crashes
		}
		if _, begun := d.journal.Index().Get(*c.Intent.Child); !begun {
			return s.Crashes
		}
		waits = true
	}
	if waits {
		return 0
	}
	return s.Crashes
}

// bury makes a history dead that has ended, but that nobody had reaped when the daemon broke off.
func (d autoResumer) bury(ctx context.Context, info step.ProcInfo) {
	h, err := step.ReadHistory(ctx, d.journal, info.UUID)
	if err != nil {
		d.note("history %s: %v", info.UUID, err)
		return
	}
	end := h.Info()
	if end.Exit == nil || end.Suspended {
		if end.Name != info.Name {
			info = *processes(d).whole(&info)
			info.Name = end.Name
			d.put(&info)
		}
		return // it is suspended with an exit status, as a budget does that is used up
	}
	info = *processes(d).whole(&info) // which may be older than the line of the index
	info.Name, info.State, info.Exit, info.DeadAt, info.Suspended = end.Name, end.State, end.Exit, end.DeadAt, false
	info.Result, info.Step, info.TokensUsed, info.CostUSD = end.Result, end.Step, end.TokensUsed, end.CostUSD
	d.put(&info)
}

// wakeEvery is how often it is looked whether a suspended process can go on.
const wakeEvery = 10 * time.Second

// wake resumes suspended processes whose time has come, until ctx ends. Each waits a little longer than
// it must, for a time of its own, so that those that wait for the same limit do not all ask at once.
func (d autoResumer) wake(ctx context.Context) {
	tick := time.NewTicker(wakeEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		for _, info := range d.journal.Index().Due(time.Now()) {
			if time.Now().After(info.WakeAt.Add(spread(info.UUID))) {
				d.continueQuietly(ctx, info)
			}
		}
	}
}

// spread is how much longer than it must a history waits: up to half a minute.
func spread(id types.UUID) time.Duration {
	return (time.Duration(id[14])<<8 + time.Duration(id[15])) * time.Millisecond / 2
}

// continueQuietly goes on with a history and with those that wait for it. It reports false if the disk takes no more.
func (d autoResumer) continueQuietly(ctx context.Context, info step.ProcInfo) bool {
	r, err := resumer(d).continued(ctx, target{UUID: info.UUID, PID: info.PID, Info: &info}, &ipc.ResumeRequest{}, func(s *recovery.State) bool {
		return (s.Phase == recovery.Suspended || room.CutBy(&info) && s.Phase != recovery.Ended) && !s.Paused // nobody was quicker
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
	d.note("PID %d (%s) cannot go on by itself: %v", info.PID, info.UUID, err)
	info = d.calledNow(info)
	info.WakeAt, info.SuspendReason = time.Time{}, stuck(err)
	d.put(&info)
	return true
}

// again resumes one history by itself.
func (d autoResumer) again(ctx context.Context, l left, hold chan struct{}) {
	if _, alive := d.running(l.info.UUID); alive || ctx.Err() != nil {
		return
	}
	a, err := reviver(d).open(ctx, l.info.UUID)
	if err == nil && (a.state.Seq < l.state.Seq || a.state.Paused || a.state.Phase == recovery.Ended || a.state.Phase == recovery.Suspended) {
		a.close() // a person was quicker, and it has ended meanwhile
		return
	}
	if err == nil {
		var resp ipc.ResumeResponse
		if resp, err = (reviver(d)).start(ctx, a, &ipc.ResumeRequest{}, hold); err == nil {
			d.auto.put(resp)
			d.note("PID %d (%s) goes on as PID %d from step %d", l.info.PID, l.info.UUID, resp.PID, resp.Step)
			return
		}
	}
	if types.CodeOf(err) == types.ErrConflict {
		return // a person was quicker
	}
	l.info = d.calledNow(l.info)
	if durable.Unwritable(err) {
		l.info.Suspended, l.info.SuspendReason = true, kernel.WaitsForDisk(err)
		d.put(&l.info)
		d.room.CutOff(l.info.UUID)
		return
	}
	d.note("PID %d (%s) cannot go on by itself: %v", l.info.PID, l.info.UUID, err)
	l.info.SuspendReason = stuck(err)
	d.put(&l.info)
}

// look reads a history without an end, marks it if the daemon broke it off, brings its small files up to
// date, and reports whether it is to go on by itself.
func (d autoResumer) look(ctx context.Context, info step.ProcInfo) (left, bool) {
	state, _, damage, err := d.store.Read(ctx, info.UUID)
	if err != nil {
		d.note("history %s: %v", info.UUID, err)
		info.Suspended, info.SuspendReason = true, cause(err)
		d.put(&info)
		return left{}, false
	}
	if o := state.Origin; o != nil && state.Seq <= o.Records+1 {
		d.discard(ctx, info.UUID)
		return left{}, false
	}
	if dead := (undertaker(d)); dead.escaped(ctx, &info) || dead.endsRun(ctx, &info, state) {
		return left{}, false
	}
	if state.Phase == recovery.Running {
		d.brokenOff(ctx, info, state, damage)
	}
	info = d.refreshed(ctx, info, state)
	d.put(&info)
	switch {
	case state.Phase == recovery.Ended || state.Phase == recovery.Suspended || state.Paused:
		return left{}, false
	case d.crashes(state) >= maxCrashes:
		d.note("PID %d (%s) is not resumed by itself: the daemon has broken off %d times in its step %d", info.PID, info.UUID, state.Crashes, state.Step+1)
		return left{}, false
	}
	return left{info, state}, true
}

// brokenOff marks a history whose daemon ended without warning, and says what is in doubt.
func (d autoResumer) brokenOff(ctx context.Context, info step.ProcInfo, state *recovery.State, damage string) {
	if err := d.mark(ctx, info); err != nil {
		d.note("PID %d (%s): %v", info.PID, info.UUID, err) // it can be read all the same
	} else {
		state.Phase = recovery.Broken
		state.Crashes++
	}
	for _, c := range state.Unknown() {
		if c.Intent.Child != nil || recovery.Waits(&c) { // it is found again by its UUID
			continue
		}
		d.note("PID %d (%s): the call %s of %s was interrupted in step %d; its outcome is unknown", info.PID, info.UUID, c.ID, c.Name, c.Intent.Step)
	}
	if damage != "" {
		d.note("PID %d (%s): %s", info.PID, info.UUID, damage)
	}
}

// refreshed is the info of a history that is not running, made of its record, which is newer.
func (d autoResumer) refreshed(ctx context.Context, info step.ProcInfo, s *recovery.State) step.ProcInfo {
	h, err := step.ReadHistory(ctx, d.journal, info.UUID)
	if err != nil || len(h.Records) == 0 { // nothing can be read: what is known stands in the small file
		info = *processes(d).whole(&info)
	} else {
		active, runs := s.Active, s.Runs
		info = h.Info()
		info.ActiveTotal, info.Runs = active, runs
	}
	if info.Exit == nil || info.Suspended {
		info.Suspended = true
		switch {
		case s.Paused:
			info.SuspendReason = step.ReasonPaused
		case d.crashes(s) >= maxCrashes:
			info.SuspendReason = fmt.Sprintf("the daemon has broken off %d times in step %d; it goes on when a person resumes it", s.Crashes, s.Step+1)
		case s.Phase == recovery.Stopped:
			info.SuspendReason = "the daemon was stopped"
		case s.Phase != recovery.Suspended:
			info.SuspendReason = "the daemon ended without warning"
		}
	}
	return info
}

// mayBeHalf reports whether a history may be a fork that was never finished. It has the end of its origin
// then, but nothing that is written when a process is started.
func (d autoResumer) mayBeHalf(info *step.ProcInfo) bool {
	return info.OriginUUID != (types.UUID{}) && !exists(filepath.Join(d.journal.Dir(info.UUID), step.InfoFile))
}

// discard removes a fork that was never finished: nobody has been told of it.
func (d autoResumer) discard(ctx context.Context, id types.UUID) {
	if err := d.abandon(ctx, id); err != nil {
		d.note("the unfinished fork %s cannot be removed: %v", id, err)
		return
	}
	if err := d.journal.Index().Delete(id); err != nil {
		d.note("index: %v", err)
	}
}

func (d *Daemon) put(info *step.ProcInfo) {
	if err := d.journal.PutInfo(info); err != nil && !durable.Unwritable(err) { // the record counts; the room says what is wrong
		d.note("proc-info.json of %s: %v", info.UUID, err)
	}
}

// settled waits until it is known what an earlier daemon has left, so that nobody is told of a process
// what is about to change.
func (d *Daemon) settled(ctx context.Context) error {
	select {
	case <-d.looked:
		return nil
	case <-ctx.Done():
		return types.Errorf(types.ErrUnavailable, "Find", "", "the daemon is still reading what an earlier one has left; try again in a moment")
	}
}

// soon is how long a listing waits for what an earlier daemon has left. It shows less after that.
const soon = 500 * time.Millisecond

// settledSoon is settled for who must not wait long.
func settledSoon(ctx context.Context, d *Daemon) {
	ctx, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	_ = d.settled(ctx) // what is not known yet is shown as it was
}
