package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"rnix/internal/plumbing"
	"rnix/internal/service"
	"rnix/internal/workspace"
	"rnix/ipc"
	"rnix/types"
)

// working reports that a process is at work in its tree.
func working(tg *service.Target) bool {
	return tg.Live != nil && tg.Live.State < types.StateZombie && !tg.Live.Suspended
}

// removable refuses to remove the work tree of a process that works there, or will; suspended says that one which is suspended need not.
func removable(tg *service.Target, dir string, suspended bool) error {
	const op = "RemoveWorktree"
	switch onDisk := tg.Info != nil && tg.Info.Suspended; {
	case working(tg):
		return types.Errorf(types.ErrConflict, op, dir, "PID %d works there: wait for it (rnix wait %d) or end it (rnix kill %d)", tg.PID, tg.PID, tg.PID)
	case tg.Live != nil && tg.Live.State < types.StateZombie:
		return types.Errorf(types.ErrConflict, op, dir, "PID %d is paused and will work there again: end it first (rnix kill %d)", tg.PID, tg.PID)
	case onDisk && !suspended:
		return types.Errorf(types.ErrConflict, op, dir, "PID %d is suspended and would be resumed there; remove it all the same with: rnix worktree rm --suspended %d", tg.PID, tg.PID)
	}
	return nil
}

func (s *Service) remove(ctx context.Context, peer *ipc.Peer, req ipc.RemoveWorktreeRequest) (ipc.RemoveWorktreeResponse, error) {
	none := ipc.RemoveWorktreeResponse{}
	if err := service.People(s.Callers, peer, "RemoveWorktree", "not remove work trees"); err != nil {
		return none, err
	}
	tg, t, err := s.treeFor(ctx, peer, req.Target)
	if err != nil {
		return none, err
	}
	if err := removable(&tg, t.Dir, req.Suspended); err != nil {
		return none, err
	}
	release, err := s.Histories.Reserve(tg.UUID, "rnix worktree rm")
	if err != nil {
		return none, err
	}
	defer release()
	if tg, err = s.Callers.Resolve(tg.UUID.String()); err == nil {
		err = removable(&tg, t.Dir, req.Suspended) // it may have been resumed before
	}
	if err != nil {
		return none, err
	}
	if err := s.othersIn(t.Dir, tg.UUID); err != nil {
		return none, err
	}
	rep, err := s.Trees.remove(ctx, tg.UUID, req.LoseIgnored)
	if err != nil {
		return none, err
	}
	left, err := beside(s.Trees.Home(tg.UUID), t)
	if err != nil {
		left = "not known: " + err.Error()
	}
	gone := ""
	if t.Branch == rep.Dropped {
		t.Branch = ""
	} else if !workspace.HasBranch(ctx, s.Trees.git.Keeper, tg.UUID, t) { // the process may have removed it
		gone, t.Branch = t.Branch, ""
	}
	return ipc.RemoveWorktreeResponse{BranchGone: gone, UUID: tg.UUID, Dir: t.Dir, Branch: t.Branch, Dropped: rep.Dropped, Rescued: s.Trees.git.WayBack(rep.Rescue), Lost: rep.Kept, Left: left}, nil
}

func (s *Service) merge(ctx context.Context, peer *ipc.Peer, req ipc.MergeRequest) (ipc.MergeResponse, error) {
	const op = "Merge"
	none := ipc.MergeResponse{}
	if err := service.People(s.Callers, peer, op, "not merge into your files; tell the person who runs it to use: rnix merge"); err != nil {
		return none, err
	}
	tg, t, err := s.treeFor(ctx, peer, req.Target)
	if dir := s.Snapshots.ForkDir(tg.UUID); types.CodeOf(err) == types.ErrNotFound && tg.UUID != (types.UUID{}) && exists(dir) {
		err = types.Errorf(types.ErrNotFound, op, dir, "this fork has a copy of the files and no branch, so there is nothing that git could merge; copy binary files from there; git apply brings its other changes here, as a patch from: rnix diff %s", tg.PID)
	}
	if err != nil {
		return none, err
	}
	if req.Preview {
		return preview(ctx, s, &tg, t)
	}
	if working(&tg) {
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
	commit, made, err := s.Trees.git.CommitWork(ctx, tg.UUID, t, subject+trailer)
	if err != nil {
		return none, err
	}
	incoming, err := s.Trees.git.Incoming(ctx, tg.UUID, t, commit)
	if err != nil {
		return none, err
	}
	autorun := autorunsOfMerge(ctx, s, &tg, t, incoming)
	if list := blocking(autorun, incoming); len(list) > 0 && !req.AllowAutorun {
		return none, refuseAutorun(t.Repo, list, tg.PID)
	}
	m, err := s.Trees.git.Merge(ctx, tg.UUID, t, commit, "Merge "+cmp.Or(t.Branch, commit)+": "+subject+trailer)
	if err != nil {
		return none, byHand(err, t)
	}
	r := ipc.MergeResponse{PID: tg.PID, UUID: tg.UUID, Repo: t.Repo, Branch: t.Branch, Target: m.Target, Before: m.Before, Commit: m.Commit,
		Forward: m.Forward, Already: m.Already, Files: wireChanges(m.Files), Raw: m.Raw}
	if made {
		r.Committed = commit
	}
	r.Unseen = s.Trees.unseen(ctx, tg.UUID, t)
	r.Autorun = autorun
	s.Log.Info("the work of a process was merged", "uuid", tg.UUID, "into", m.Target, "commit", m.Commit)
	return r, nil
}

// autorunsOfMerge is autoruns for what a merge brings: of a node of a workflow also since those began with whose work it began.
func autorunsOfMerge(ctx context.Context, s *Service, tg *service.Target, t workspace.Tree, incoming []workspace.FileChange) []ipc.AutorunFile {
	out := autoruns(ctx, s, tg.UUID, s.Histories.WorkDir(tg, t.Dir), t, incoming)
	for _, of := range lineOf(s, tg.UUID) {
		for _, id := range worksOf(s.Trees, of) {
			other, err := s.Trees.Of(id)
			if err != nil {
				continue // it was removed with its work
			}
			for _, f := range autoruns(ctx, s, id, other.Dir, other, nil) {
				if !f.Work && !slices.ContainsFunc(out, func(o ipc.AutorunFile) bool { return o.File == f.File }) {
					out = append(out, f)
				}
			}
		}
	}
	return out
}

// preview says what a merge would do.
func preview(ctx context.Context, s *Service, tg *service.Target, t workspace.Tree) (ipc.MergeResponse, error) {
	o, err := workspace.Preview(ctx, s.Trees.git, tg.UUID, t)
	if err != nil {
		return ipc.MergeResponse{}, err
	}
	r := ipc.MergeResponse{PID: tg.PID, UUID: tg.UUID, Repo: t.Repo, Branch: t.Branch, Target: o.Target, Before: o.Before, Commit: o.Before,
		Forward: o.Forward, Already: o.Already, Files: wireChanges(o.Files), Preview: &ipc.MergePreview{Uncommitted: o.Uncommitted, Clashes: o.Clash, Working: working(tg)}}
	if o.Dirty != nil {
		r.Preview.InTheWay = o.Dirty.Error()
	}
	r.Unseen = s.Trees.unseen(ctx, tg.UUID, t)
	r.Autorun = autorunsOfMerge(ctx, s, tg, t, o.Files)
	return r, ctx.Err()
}

// byHand adds to the error of a merge how a person merges what both sides have changed.
func byHand(err error, t workspace.Tree) error {
	var in *workspace.MergeError
	if t.Branch == "" || !errors.As(err, &in) || !in.Both {
		return err
	}
	return types.Errorf(types.ErrConflict, "Merge", t.Repo, "%w; merge by hand: git -C %s merge %s", in, plumbing.ShellQuote(t.Repo), plumbing.ShellQuote(t.Branch))
}
