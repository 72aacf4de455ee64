package files

import (
	"cmp"
	"context"
	"path/filepath"
	"strings"

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
	r.Autorun = autoruns(ctx, s, p.UUID, p.workDir(s.Histories), t, changes)
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

// news is autoruns for a work tree that an earlier version of this program has made: only by what git runs programs was noted then.
func (t *Trees) news(ctx context.Context, id types.UUID, tree workspace.Tree) []ipc.AutorunFile {
	names, err := t.git.News(ctx, id, tree)
	if err != nil {
		return []ipc.AutorunFile{{File: tree.Common, Change: "unknown", Note: "hooks and settings that the process may have changed cannot be told: " + err.Error()}}
	}
	var out []ipc.AutorunFile
	conf := workspace.Autorun{File: filepath.Join(tree.Common, "config"), Change: "changed", Runs: true}
	for _, name := range names {
		hook, isHook := strings.CutPrefix(name, workspace.HookNamed)
		if !isHook {
			conf.Settings = append(conf.Settings, name)
			continue
		}
		e := workspace.Autorun{File: filepath.Join(tree.Common, "hooks", hook), Change: "changed", Runs: true}
		out = append(out, ipc.AutorunFile{File: e.File, Change: e.Change, Runs: true, Note: noteOf(&e)})
	}
	if conf.Settings != nil {
		out = append(out, ipc.AutorunFile{File: conf.File, Change: conf.Change, Settings: conf.Settings, Runs: true, Note: noteOf(&conf)})
	}
	return out
}
