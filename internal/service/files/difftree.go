package files

import (
	"cmp"
	"context"

	"rnix/internal/workspace"
	"rnix/ipc"
	"rnix/types"
)

// diffTree compares a work tree, as it is, with the commit at which its work began.
func (s *Service) diffTree(ctx context.Context, p *past, t workspace.Tree, req ipc.DiffRequest) (ipc.DiffResponse, error) {
	none := ipc.DiffResponse{}
	st, err := s.Trees.git.Survey(ctx, p.UUID, t)
	if err != nil {
		return none, err
	}
	r := ipc.DiffResponse{PID: p.PID, UUID: p.UUID, Files: []ipc.FileChange{},
		From: ipc.FilesAt{Base: t.Base, Kind: string(st.Base.Kind), ID: st.Base.ID, Root: t.Dir},
		To:   ipc.FilesAt{Now: true, Kind: string(st.Files.Kind), ID: st.Files.ID, Root: t.Dir}}
	opts := workspace.DiffOpts{NamesOnly: req.Stat, MaxBytes: min(cmp.Or(req.MaxBytes, ipc.DiffBytes), ipc.MaxDiffBytes)}
	if opts.Paths, err = below("DiffFiles", t.Dir, p.workDir(s.Histories), req.Paths); err != nil {
		return none, err
	}
	text, changes, err := s.Trees.git.Diff(ctx, st.Base, st.Files, opts)
	if err != nil {
		return none, err
	}
	r.Files = wireChanges(changes)
	text, r.Missing = whole(text)
	r.SetText(text)
	r.Unseen = s.Trees.unseen(ctx, p.UUID, t)
	r.Programs = s.Trees.news(ctx, p.UUID, t)
	return r, nil
}

// unseen says what is in a work tree that no diff and no merge has; that it cannot be told is said, too.
func (t *Trees) unseen(ctx context.Context, id types.UUID, tree workspace.Tree) []string {
	out, err := t.git.Unseen(ctx, id, tree)
	if err != nil {
		out = []string{"it cannot be told what is in submodules and other repositories: " + err.Error()}
	}
	switch beside, err := beside(t.Home(id), tree); {
	case err != nil:
		out = append(out, "it cannot be told what is beside it: "+err.Error())
	case beside != "":
		out = append(out, beside)
	}
	return out
}

// news says by what git runs programs in the repository of a work tree that was not so when that was made.
func (t *Trees) news(ctx context.Context, id types.UUID, tree workspace.Tree) []string {
	out, err := t.git.News(ctx, id, tree)
	if err != nil {
		return []string{"not known (" + err.Error() + ")"}
	}
	return out
}
