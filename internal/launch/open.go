package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"rnix/internal/moved"
	"rnix/internal/records"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

// Opened is one history that is about to go on, up to the moment in which it is started.
type Opened struct {
	State  *recovery.State
	Was    step.Settled
	Rec    *records.Recorder
	From   string // checkpoint or history
	Damage string // what of its record is damaged; "" = nothing
	Fork   bool   // it is a copy of another one
	Again  int    // so many of what is attached, the last, its origin was shown: what its model does not take of them is a line in the text
	leave  func() // ends the hold on the history; nil = there is none
}

// Open takes a history, keeps it where it is, and reads what it amounts to. Close and Launcher.Launch end that.
func (h *Stored) Open(ctx context.Context, id types.UUID) (_ *Opened, err error) {
	leave, err := h.Ground.Hold(id)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			leave()
		}
	}()
	rec, state, used, damage, err := h.opened(ctx, id)
	for end := time.Now().Add(openTime); types.CodeOf(err) == types.ErrConflict && h.brief(ctx, id, end); {
		rec, state, used, damage, err = h.opened(ctx, id)
	}
	if types.CodeOf(err) == types.ErrConflict {
		return nil, h.beaten(id)
	}
	if err != nil {
		return nil, err
	}
	if !recovery.Begun(state) { // it would work where its original did
		origin := state.Origin.Origin
		return nil, errors.Join(types.Errorf(types.ErrConflict, "Resume", id.String(), "it is a fork of %s that was cut off before it began; fork that again with: rnix resume --fork %s", origin, origin), rec.Close())
	}
	a := &Opened{State: state, Rec: rec, From: "history", Damage: damage, leave: leave}
	if used {
		a.From = "checkpoint"
	}
	if a.Was, err = h.WasOf(state, id); err != nil {
		if damage != "" {
			err = types.Errorf(types.CodeOf(err), "Resume", id.String(), "%w; %s", err, damage)
		}
		_ = rec.Close() // err matters more
		return nil, err
	}
	state.Disown(h.Forked(id, a.Was.WorkDir)) // of a fork that an earlier version has made in the middle of a step
	return a, nil
}

// beaten is the error for who wants to resume a history that somebody else has taken first.
func (h *Stored) beaten(id types.UUID) error {
	if pid, alive := h.Running(id); alive {
		return &types.SyscallError{Syscall: "Resume", PID: pid, Device: id.String(), Code: types.ErrConflict,
			Err: fmt.Errorf("another client has resumed it: it is running as PID %d", pid)}
	}
	return types.Errorf(types.ErrConflict, "Resume", id.String(), "another command resumes it, or writes to its record, at this moment; try again")
}

// openTime is how long a history is waited for that somebody writes who does not run it, such as a message.
const openTime = 2 * time.Second

// passAgain is how often a history is tried that is being written.
const passAgain = 20 * time.Millisecond

// brief waits a little for a history that is being written, and reports whether to try again: not if it is
// running, as somebody was quicker then.
func (h *Stored) brief(ctx context.Context, id types.UUID, end time.Time) bool {
	late := time.Now().After(end) // else there is one more try behind it, however long it leaves
	if _, alive := h.Stays(ctx, id); alive || late {
		return false
	}
	select {
	case <-time.After(passAgain):
		return true
	case <-ctx.Done():
		return false
	}
}

// WasOf returns what the last run was started with. Its Doubt says why its rights are not believed; Plan refuses it then.
func (h *Stored) WasOf(s *recovery.State, id types.UUID) (step.Settled, error) {
	now := *s
	now.Settled = moved.JSON(h.Cards.DataDir, s.Settled)
	was, err := now.Was()
	switch {
	case err != nil:
		return was, types.Errorf(types.ErrStorage, "Resume", id.String(), "the history does not say how it was started: %w", err)
	}
	var recorded step.Settled // without what was changed since, and the paths as they were
	if was.Doubt = json.Unmarshal(s.Settled, &recorded); was.Doubt == nil {
		was.Doubt = h.Store.Seals.Check(id, &recorded)
	}
	if was.SystemPrompt == "" { // written by an early version
		if m, merr := h.Cards.Journal.Blobs().Meta(id); merr == nil {
			was.SystemPrompt, _, _ = strings.Cut(m.SystemPrompt, "\n\nYour working directory is ")
		}
	}
	return was, nil
}

// WasAt is WasOf for what a history amounted to at an earlier step. whole is what it amounts to now. The steps of a fork from before it began are those
// of its origin, or of that one's; who that is, the seals of the forks say.
func (h *Stored) WasAt(ctx context.Context, cut, whole *recovery.State, id types.UUID) (step.Settled, error) {
	was, err := h.WasOf(cut, id)
	if err != nil || was.Doubt == nil {
		return was, err
	}
	for range maxForks {
		now, err := h.WasOf(whole, id)
		if err != nil || now.Doubt != nil || now.OriginUUID == (types.UUID{}) {
			break
		}
		if now.OriginUUID == was.UUID {
			return h.WasOf(cut, was.UUID)
		}
		id = now.OriginUUID
		if whole, _, _, err = h.Store.Read(ctx, id); err != nil {
			break
		}
	}
	return was, nil
}

// maxForks is how many forks of forks are followed: each is a history that is read.
const maxForks = 64

// Believe refuses a history of which the rights are not believed, unless a person accepts them.
func Believe(was *step.Settled, req *ipc.ResumeRequest) error {
	if was.Doubt == nil || req.AcceptRights {
		return nil
	}
	return types.Errorf(types.ErrPermission, "Resume", was.UUID.String(), "what its history says about its rights cannot be trusted: %w; it was changed, or is from another machine or configuration; "+
		"if you know where it comes from, accept its devices, limits, directory and settings with: rnix resume --accept-rights %d", was.Doubt, was.PID)
}

// Close gives an opened history back.
func (a *Opened) Close() {
	_ = a.Rec.Close() // nothing was added; a second close does nothing
	if a.leave != nil {
		a.leave()
	}
}

// opened is Store.Open, but CONFLICT for a history of which the last run has given the record back and has not left the kernel yet: a run that
// began now would be refused when its record says already that it has begun.
func (h *Stored) opened(ctx context.Context, id types.UUID) (rec *records.Recorder, state *recovery.State, used bool, damage string, err error) {
	rec, state, used, damage, err = h.Store.Open(ctx, id)
	if _, leaves := h.Running(id); err == nil && leaves {
		err = errors.Join(types.Errorf(types.ErrConflict, "Resume", id.String(), "its last run is not over yet"), rec.Close())
	}
	return rec, state, used, damage, err
}

// Unended opens a history that is resumed with others. One that was ended since it was listed is CONFLICT: nobody has asked for it to begin again.
func (h *Stored) Unended(ctx context.Context, id types.UUID) (*Opened, error) {
	a, err := h.Open(ctx, id)
	if err == nil && a.State.Phase == recovery.Ended {
		a.Close()
		return nil, types.Errorf(types.ErrConflict, "Resume", id.String(), "it was ended meanwhile")
	}
	return a, err
}

// LeaveTime is how long a command waits for a process that ends or is being suspended at that moment.
const LeaveTime = 5 * time.Second

// Running returns the PID of a history that is running.
func (h *Stored) Running(id types.UUID) (types.PID, bool) {
	p, ok := h.Kernel.ByUUID(id)
	if !ok {
		return 0, false
	}
	return p.PID, true
}

// Stays returns the PID of a history that runs and takes children. One that is leaving is waited for, for up to LeaveTime.
func (h *Stored) Stays(ctx context.Context, id types.UUID) (types.PID, bool) {
	ctx, cancel := context.WithTimeout(ctx, LeaveTime)
	defer cancel()
	for {
		pid, runs := h.Running(id)
		if !runs {
			return 0, false
		}
		i, err := h.Kernel.Info(pid)
		if err != nil {
			return 0, false
		}
		if !i.Leaving && i.State != types.StateZombie {
			return pid, true
		}
		if _, err := h.Kernel.WaitInfo(ctx, pid); err != nil && types.CodeOf(err) != types.ErrNotFound {
			return pid, true
		}
	}
}

// Get returns what is known of a history on disk; false = there is none.
func (h *Stored) Get(id types.UUID) (*step.ProcInfo, bool) {
	info, ok := h.Cards.Index().Get(id)
	return &info, ok
}
