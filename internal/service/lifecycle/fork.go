package lifecycle

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	rnixctx "rnix/context"
	"rnix/internal/launch"
	"rnix/internal/profile"
	"rnix/internal/recovery"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

// forks makes copies of histories.
type forks struct {
	Stored   *launch.Stored
	Launcher *launch.Launcher
	Files    Files
	Ground   Ground
	Begin    Start
	Names    *Names
}

// fork makes a copy of a history up to a step and lets that go on. The original is only read.
func (d *forks) fork(ctx context.Context, t service.Target, req *ipc.ResumeRequest) (resp ipc.ResumeResponse, err error) {
	leave, err := d.Ground.Hold(t.UUID)
	if err != nil {
		return resp, err
	}
	defer leave()
	if err := d.Begin.Room("Resume"); err != nil { // the copy of its files is the most that is ever written at once
		return resp, err
	}
	whole, _, damage, err := d.Stored.Store.Read(ctx, t.UUID)
	if err != nil {
		return resp, err
	}
	cut, at := whole, whole.Step
	begunCalls := whole.BegunCalls()
	if req.FromStep != nil {
		at = *req.FromStep
	}
	if req.FromStep != nil || len(begunCalls) > 0 { // what calls of a step that has not ended have done is in no files that the fork could get
		if cut, err = recovery.Until(t.UUID, d.Stored.Store.Source(ctx, t.UUID), at); err != nil {
			return resp, err
		}
	}
	was, err := d.Stored.WasAt(ctx, cut, whole, t.UUID)
	believed := was
	if err == nil && req.FromStep == nil { // then it has the rights of now
		believed, err = d.Stored.WasOf(whole, t.UUID)
	}
	if err == nil {
		err = launch.Believe(&believed, req)
	}
	if err != nil {
		return resp, err
	}
	if was.Body != nil {
		return resp, types.Errorf(types.ErrInvalid, "Resume", t.UUID.String(), "it is a %s and no agent: its children would be those of two, so it cannot be forked; fork one of its children", was.Body.Kind)
	}
	a, err := d.Stored.Copy(ctx, t.UUID, cut, at)
	if err != nil {
		return resp, err
	}
	a.Damage = strings.Trim(a.Damage+"; "+damage, "; ")
	begun := false
	defer func() {
		if !begun {
			_ = a.Rec.Close()
			_ = d.Files.Abandon(context.WithoutCancel(ctx), a.Rec.ID) // err matters more
		}
	}()
	a.Was.Doubt = believed.Doubt
	from := a.Was.WorkDir    // when it did what the fork has
	if req.FromStep == nil { // with what it was resumed with since, and what its budget was raised by
		if a.Was, err = d.Stored.WasOf(whole, t.UUID); err != nil {
			return resp, err
		}
		a.AsForked()
	}
	if err := d.place(ctx, a, &t, from, whole, cut, at, req); err != nil {
		return resp, err
	}
	if req.FromStep != nil {
		begunCalls = nil // whoever says from where knows what is behind it
	} else if len(begunCalls) > 0 {
		told := saidSince(d.Stored.Cards.Journal.Replay(ctx, t.UUID, 1), cut.Seq)
		text, shown := told.together()
		n, _ := step.Notices(&rnixctx.Message{Role: rnixctx.RoleUser, Content: req.NewInput}) // a notice stands with the others, before what a person says
		req.NewInput = req.NewInput[:n] + leftOut(whole, at, told.letters, req.Cwd != "") + req.NewInput[n:] + text
		a.Again = d.show(req, t.UUID, shown)
	}
	namesakes := d.Names.namesakes(req.Name, types.UUID{})
	if resp, err = d.Launcher.Start(ctx, a, req, nil); err != nil {
		return resp, err
	}
	begun = true
	resp.Warnings = append(resp.Warnings, warned(namesakes)...)
	resp.Mode, resp.OriginUUID, resp.OriginPID, resp.Step, resp.LeftOut = "fork", t.UUID, t.PID, at, len(begunCalls)
	return resp, nil
}

// show gives a fork what was shown to its origin with what it is told again, and returns how many those are. What is lost, or more than one message may
// have, in number or in bytes, stays with the origin: its line says what it was.
func (d *forks) show(req *ipc.ResumeRequest, origin types.UUID, shown []rnixctx.Attachment) (again int) {
	for _, a := range fitting(req.Attachments, shown) {
		if data, err := d.Stored.Cards.Journal.Blobs().Attachment(origin, a.SHA256); err == nil {
			req.Attachments = append(req.Attachments, ipc.Attachment{Name: a.Name, Data: data})
			again++
		}
	}
	return again
}

// fitting returns those of shown that fit into one message beside what is given with it.
func fitting(given []ipc.Attachment, shown []rnixctx.Attachment) (out []rnixctx.Attachment) {
	left := int64(ipc.MaxAttached)
	for i := range given {
		left -= int64(len(given[i].Data))
	}
	for i := range shown {
		if len(given)+len(out) < rnixctx.MaxAttachments && shown[i].Bytes <= left { // a smaller one behind it may fit
			out = append(out, shown[i])
			left -= shown[i].Bytes
		}
	}
	return out
}

// place settles where a fork works and what it is told about that.
func (d *forks) place(ctx context.Context, a *launch.Opened, t *service.Target, from string, whole, cut *recovery.State, at int, req *ipc.ResumeRequest) error {
	a.Was.Name = req.Name
	left := ""
	if req.Cwd != "" {
		if err := mustBeDir(req.Cwd); err != nil {
			return err
		}
		a.Was.WorkDir = filepath.Clean(req.Cwd)
	} else {
		now, err := d.Stored.WasOf(whole, t.UUID)
		if err != nil {
			return err
		}
		dir, limited, err := d.Files.Fork(ctx, a.Rec.ID, t, at, from, now.WorkDir)
		if err != nil {
			return err
		}
		if limited != "" {
			left = " Not all of its files are as they were then: " + limited + "."
		}
		a.Was.WorkDir = dir
	}
	if set := profile.SettingsIn(&a.Was); set.Tree != nil {
		dir := ""
		if req.Cwd == "" {
			dir = d.Files.ForkDir(a.Rec.ID)
		}
		var err error
		if a.Was.Settings, err = d.Files.ForkTree(ctx, a.Rec.ID, a.Was.Name, a.Was.Settings, set.Tree, dir); err != nil {
			return err
		}
	}
	note := fmt.Sprintf(step.ForkNotice+", from the end of its step %d. It works in %s; what was there before was in %s.%s"+step.ForkGoesOn, at, a.Was.WorkDir, from, left)
	if a.Was.WorkDir == from {
		note = fmt.Sprintf(step.ForkNotice+", from the end of its step %d."+step.ForkGoesOn, at)
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
