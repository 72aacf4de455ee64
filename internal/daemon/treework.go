package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"rnix/internal/service"
	"rnix/internal/service/histories"
	"rnix/internal/workspace"
	"rnix/ipc"
	"rnix/types"
)

// diffTree compares a work tree, as it is, with the commit at which its work began.
func (d inspector) diffTree(ctx context.Context, p *histories.Past, t workspace.Tree, req ipc.DiffRequest) (ipc.DiffResponse, error) {
	none := ipc.DiffResponse{}
	st, err := d.grove.Survey(ctx, p.UUID, t)
	if err != nil {
		return none, err
	}
	r := ipc.DiffResponse{PID: p.PID, UUID: p.UUID, Files: []ipc.FileChange{},
		From: ipc.FilesAt{Base: t.Base, Kind: string(st.Base.Kind), ID: st.Base.ID, Root: t.Dir},
		To:   ipc.FilesAt{Now: true, Kind: string(st.Files.Kind), ID: st.Files.ID, Root: t.Dir}}
	opts := workspace.DiffOpts{NamesOnly: req.Stat, MaxBytes: min(cmp.Or(req.MaxBytes, ipc.DiffBytes), ipc.MaxDiffBytes)}
	if opts.Paths, err = below("DiffFiles", t.Dir, d.histories.WorkDir(p), req.Paths); err != nil {
		return none, err
	}
	text, changes, err := d.kept.Diff(ctx, st.Base, st.Files, opts)
	if err != nil {
		return none, err
	}
	r.Files = wireChanges(changes)
	text, r.Missing = whole(text)
	r.SetText(text)
	r.Unseen = unseenIn(ctx, d.Daemon, p.UUID, t)
	r.Programs = newsIn(ctx, d.Daemon, p.UUID, t)
	return r, nil
}

// unseenIn says what is in a work tree that no diff and no merge has; that it cannot be told is said, too.
func unseenIn(ctx context.Context, d *Daemon, id types.UUID, t workspace.Tree) []string {
	out, err := d.grove.Unseen(ctx, id, t)
	if err != nil {
		return []string{"it cannot be told what is in submodules and other repositories: " + err.Error()}
	}
	return out
}

// newsIn says by what git runs programs in the repository of a work tree that was not so when that was made.
func newsIn(ctx context.Context, d *Daemon, id types.UUID, t workspace.Tree) []string {
	out, err := d.grove.News(ctx, id, t)
	if err != nil {
		return []string{"not known (" + err.Error() + ")"}
	}
	return out
}

// working reports that a process is at work in its tree.
func working(tg target) bool {
	return tg.Live != nil && tg.Live.State < types.StateZombie && !tg.Live.Suspended
}

func (d worktrees) remove(ctx context.Context, peer *ipc.Peer, req ipc.RemoveWorktreeRequest) (ipc.RemoveWorktreeResponse, error) {
	const op = "RemoveWorktree"
	none := ipc.RemoveWorktreeResponse{}
	if err := service.People(finder{d.Daemon}, peer, op, "not remove work trees"); err != nil {
		return none, err
	}
	tg, t, err := d.treeFor(ctx, peer, req.Target)
	if err != nil {
		return none, err
	}
	if working(tg) {
		return none, types.Errorf(types.ErrConflict, op, t.Dir, "PID %d works there: wait for it (rnix wait %d) or end it (rnix kill %d)", tg.PID, tg.PID, tg.PID)
	}
	switch onDisk := tg.Info != nil && tg.Info.Suspended; {
	case tg.Live != nil && tg.Live.State < types.StateZombie:
		return none, types.Errorf(types.ErrConflict, op, t.Dir, "PID %d is paused and will go on there: end it first (rnix kill %d)", tg.PID, tg.PID)
	case onDisk && !req.Suspended:
		return none, types.Errorf(types.ErrConflict, op, t.Dir, "PID %d is suspended and would go on there; remove it all the same with: rnix worktree rm --suspended %d", tg.PID, tg.PID)
	}
	leave, err := d.storage.Hold(tg.UUID) // nobody resumes it meanwhile
	if err != nil {
		return none, err
	}
	defer leave()
	if err := (clearing(d)).othersIn(t.Dir, tg.UUID); err != nil {
		return none, err
	}
	var rep workspace.Report
	if err := d.uproot(ctx, tg.UUID, req.LoseIgnored, &rep); err != nil {
		return none, err
	}
	gone := ""
	if t.Branch == rep.Dropped {
		t.Branch = ""
	} else if !workspace.HasBranch(ctx, d.kept, tg.UUID, t) { // the process may have removed it
		gone, t.Branch = t.Branch, ""
	}
	return ipc.RemoveWorktreeResponse{BranchGone: gone, UUID: tg.UUID, Dir: t.Dir, Branch: t.Branch, Dropped: rep.Dropped, Rescued: d.kept.WayBack(rep.Rescue), Lost: rep.Kept}, nil
}

func (d worktrees) merge(ctx context.Context, peer *ipc.Peer, req ipc.TargetRequest) (ipc.MergeResponse, error) {
	const op = "Merge"
	none := ipc.MergeResponse{}
	if owner, inside := d.agentOf(peer); inside {
		return none, service.Outside(op, owner, "not merge into your files; tell the person who runs it to use: rnix merge")
	}
	tg, t, err := d.treeFor(ctx, peer, req.Target)
	if err != nil {
		return none, err
	}
	if working(tg) {
		return none, types.Errorf(types.ErrConflict, op, t.Dir, "PID %d still works there, so what it has may be half done: wait for it (rnix wait %d), pause it (rnix pause %d) or end it (rnix kill %d)", tg.PID, tg.PID, tg.PID, tg.PID)
	}
	intent := ""
	if tg.Live != nil {
		intent = tg.Live.Intent
	} else if tg.Info != nil {
		intent = tg.Info.Intent
	}
	subject := cmp.Or(service.FirstLine(intent, 60), "the work of a process")
	trailer := fmt.Sprintf("\n\nThe work of the rnix process %d, %s.\n", tg.PID, tg.UUID)
	commit, made, err := d.grove.CommitWork(ctx, tg.UUID, t, subject+trailer)
	if err != nil {
		return none, err
	}
	m, err := d.grove.Merge(ctx, tg.UUID, t, commit, "Merge "+cmp.Or(t.Branch, commit)+": "+subject+trailer)
	if err != nil {
		return none, byHand(err, t)
	}
	r := ipc.MergeResponse{PID: tg.PID, UUID: tg.UUID, Repo: t.Repo, Branch: t.Branch, Target: m.Target, Before: m.Before, Commit: m.Commit,
		Forward: m.Forward, Already: m.Already, Files: wireChanges(m.Files)}
	if made {
		r.Committed = commit
	}
	r.Unseen = unseenIn(ctx, d.Daemon, tg.UUID, t)
	r.Programs = newsIn(ctx, d.Daemon, tg.UUID, t)
	d.log.Info("the work of a process was merged", "uuid", tg.UUID, "into", m.Target, "commit", m.Commit)
	return r, nil
}

// byHand adds to the error of a merge how a person merges what both sides have changed.
func byHand(err error, t workspace.Tree) error {
	var in *workspace.MergeError
	if t.Branch == "" || !errors.As(err, &in) || !in.Both {
		return err
	}
	return types.Errorf(types.ErrConflict, "Merge", t.Repo, "%w; merge by hand: git -C %s merge %s", in, workspace.ShellQuote(t.Repo), workspace.ShellQuote(t.Branch))
}
