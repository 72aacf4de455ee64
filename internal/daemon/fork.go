package daemon

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"rnix/internal/profile"
	"rnix/internal/records"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

// forked makes a copy of a history up to a step and lets that go on. The original is only read.
func (d resumer) forked(ctx context.Context, t target, req *ipc.ResumeRequest) (resp ipc.ResumeResponse, err error) {
	leave, err := d.storage.Hold(t.UUID)
	if err != nil {
		return resp, err
	}
	defer leave()
	if err := d.room.Refusal("Resume"); err != nil { // the copy of its files is the most that is ever written at once
		return resp, err
	}
	whole, _, damage, err := d.store.Read(ctx, t.UUID)
	if err != nil {
		return resp, err
	}
	cut, at := whole, whole.Step
	begunCalls := whole.BegunCalls()
	if req.FromStep != nil {
		at = *req.FromStep
	}
	if req.FromStep != nil || len(begunCalls) > 0 { // what calls of a step that has not ended have done is in no files that the fork could get
		if cut, err = recovery.Until(t.UUID, d.store.Source(ctx, t.UUID), at); err != nil {
			return resp, err
		}
	}
	was, err := wasOf(d.Daemon, cut, t.UUID)
	if err != nil {
		return resp, err
	}
	if was.Body != nil {
		return resp, types.Errorf(types.ErrInvalid, "Resume", t.UUID.String(), "it is a %s and no agent: its children would be those of two, so it cannot be forked; fork one of its children", was.Body.Kind)
	}
	a, err := d.copied(ctx, t.UUID, cut, at)
	if err != nil {
		return resp, err
	}
	a.damage = strings.Trim(a.damage+"; "+damage, "; ")
	begun := false
	defer func() {
		if !begun {
			_ = a.rec.Close()
			_ = d.abandon(context.WithoutCancel(ctx), a.rec.ID) // err matters more
		}
	}()
	from := a.was.WorkDir    // when it did what the fork has
	if req.FromStep == nil { // with what it was resumed with since, and what its budget was raised by
		if a.was, err = wasOf(d.Daemon, whole, t.UUID); err != nil {
			return resp, err
		}
		a.asForked()
	}
	if err := d.place(ctx, a, &t, from, whole, cut, at, req); err != nil {
		return resp, err
	}
	if req.FromStep != nil {
		begunCalls = nil // whoever says from where knows what is behind it
	} else if len(begunCalls) > 0 {
		req.NewInput += leftOut(whole, at, req.Cwd != "") + saidSince(whole, cut)
	}
	if resp, err = (reviver(d)).start(ctx, a, req, nil); err != nil {
		return resp, err
	}
	begun = true
	resp.Mode, resp.OriginUUID, resp.OriginPID, resp.Step, resp.LeftOut = "fork", t.UUID, t.PID, at, len(begunCalls)
	return resp, nil
}

// abandon takes away all that there is of a fork that has not begun: nobody has been told of it, and
// nobody has worked in its files. Its history goes last, so that the next start ends what a crash cuts off.
func (d *Daemon) abandon(ctx context.Context, id types.UUID) error {
	_, err := clearing{d}.Remove(ctx, id)
	if types.CodeOf(err) == types.ErrNotFound { // it was not a whole workspace yet
		err = os.RemoveAll(d.snapshots.ForkDir(id))
	}
	if err == nil {
		err = clearing{d}.DropSnapshots(ctx, id)
	}
	if err != nil {
		return err
	}
	return d.store.Discard(id)
}

// copied makes the history of a fork and opens it.
func (d resumer) copied(ctx context.Context, origin types.UUID, cut *recovery.State, at int) (*again, error) {
	id := types.NewUUID()
	lease, err := d.store.Acquire(ctx, id)
	if err != nil {
		return nil, err
	}
	var state *recovery.State
	dir := d.journal.Dir
	damage := ""
	if was, werr := cut.Was(); werr == nil { // before its records: one that is whole has its inputs
		damage, err = step.CopyInputs(d.journal.FS(), dir(origin), dir(id), was.Inputs)
	}
	if err == nil {
		lease, err = step.Fork(ctx, d.journal, id, lease, origin, cut.Seq, at)
	}
	if err == nil {
		state, _, _, err = recovery.Read(d.store.Source(ctx, id), nil)
	}
	a := &again{state: state, from: "history", fork: true, damage: damage}
	if err == nil {
		a.was, err = wasOf(d.Daemon, state, origin)
	}
	if err != nil {
		_ = d.journal.Release(context.WithoutCancel(ctx), id, lease.Epoch)
		_ = d.store.Discard(id) // err matters more
		return nil, err
	}
	a.rec = records.NewRecorder(d.store, id, lease, state.Clone())
	a.asForked()
	a.state.Active, a.state.Runs = 0, 0
	a.state.Born()
	return a, nil
}

// forkNote begins what a fork is told of where it comes from.
const forkNote = "[This process is a fork of an earlier one"

// asForked makes what the origin was started with that of a process of its own.
func (a *again) asForked() {
	a.was.CreatedAt, a.was.ParentUUID, a.was.Name = time.Now(), types.UUID{}, ""
}

// place settles where a fork works and what it is told about that.
func (d resumer) place(ctx context.Context, a *again, t *target, from string, whole, cut *recovery.State, at int, req *ipc.ResumeRequest) error {
	a.was.Name = req.Name
	left := ""
	if req.Cwd != "" {
		if err := mustBeDir(req.Cwd); err != nil {
			return err
		}
		a.was.WorkDir = filepath.Clean(req.Cwd)
	} else {
		now, err := wasOf(d.Daemon, whole, t.UUID)
		if err != nil {
			return err
		}
		dir, limited, err := d.snapshots.Fork(ctx, a.rec.ID, t, at, from, now.WorkDir)
		if err != nil {
			return err
		}
		if limited != "" {
			left = " Not all of its files are as they were then: " + limited + "."
		}
		a.was.WorkDir = dir
	}
	if set := profile.SettingsIn(&a.was); set.Tree != nil {
		dir := ""
		if req.Cwd == "" {
			dir = d.snapshots.ForkDir(a.rec.ID)
		}
		var err error
		if a.was.Settings, err = d.trees.Fork(ctx, a.rec.ID, a.was.Name, a.was.Settings, set.Tree, dir); err != nil {
			return err
		}
	}
	note := fmt.Sprintf(forkNote+", from the end of its step %d. It works in %s; what was there before was in %s.%s Go on from here.]", at, a.was.WorkDir, from, left)
	if a.was.WorkDir == from {
		note = fmt.Sprintf(forkNote+", from the end of its step %d. Go on from here.]", at)
	}
	note += d.leftBehind(cut.Unheard())
	if req.NewInput != "" {
		note += "\n\n" + req.NewInput
	}
	req.NewInput = note
	return nil
}

func mustBeDir(dir string) error {
	if !filepath.IsAbs(dir) {
		return types.Errorf(types.ErrInvalid, "Resume", dir, "the directory is not an absolute path")
	}
	s, err := os.Stat(dir)
	switch {
	case err != nil:
		return types.Errorf(types.ErrNotFound, "Resume", dir, "%w", err)
	case !s.IsDir():
		return types.Errorf(types.ErrInvalid, "Resume", dir, "not a directory")
	}
	return nil
}
