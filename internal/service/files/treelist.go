package files

import (
	"context"
	"net/url"
	"slices"

	"rnix/internal/service"
	"rnix/internal/workspace"
	"rnix/ipc"
	"rnix/types"
)

// maxIntent bounds what a work tree shows of what its process is to do, in characters.
const maxIntent = 200

// named says whose a work tree is, and where, without a look at it.
func named(s *Service, id types.UUID, t workspace.Tree) ipc.Worktree {
	w := ipc.Worktree{UUID: id, State: "unknown", Dir: t.Dir, Repo: t.Repo, Branch: t.Branch, Base: t.Base, BaseName: t.BaseName, Files: []ipc.FileChange{}}
	if tg, err := s.Callers.Resolve(id.String()); err == nil {
		w.PID = tg.PID
		switch {
		case tg.Live != nil:
			w.Name, w.State, w.Intent = tg.Live.Name, tg.Live.StateName(), service.FirstLine(tg.Live.Intent, maxIntent)
		case tg.Info != nil:
			w.Name, w.State, w.Intent = tg.Info.Name, tg.Info.State.String(), service.FirstLine(tg.Info.Intent, maxIntent)
			if tg.Info.Suspended {
				w.State = "suspended"
			}
		}
	} else if a, archived := s.Archived(id); archived {
		w.PID, w.Name, w.State, w.Intent = a.Info.PID, a.Info.Name, "archived", service.FirstLine(a.Info.Intent, maxIntent)
	}
	w.Gone = !exists(t.Dir)
	return w
}

// describe looks at the work tree of a history.
func (s *Service) describe(ctx context.Context, id types.UUID, t workspace.Tree) (w ipc.Worktree, common string) {
	if w = named(s, id, t); w.Gone {
		return w, t.Common
	}
	st, err := s.Trees.git.Survey(ctx, id, t)
	if err == nil {
		w.Head, w.Commits, w.Uncommitted, w.Merged = st.Head, st.Commits, st.Uncommitted, st.Merged
		w.Branch = st.Branch // "" where none is checked out: a push of the first one would lack the work
		var changes []workspace.FileChange
		if _, changes, err = s.Trees.git.Diff(ctx, st.Base, st.Files, workspace.DiffOpts{NamesOnly: true}); err == nil {
			w.Files = wireChanges(changes)
		}
	}
	if err != nil {
		w.Problem = err.Error()
	}
	return w, t.Common
}

func (s *Service) list(ctx context.Context, peer *ipc.Peer, req ipc.WorktreesRequest) (ipc.WorktreesResponse, error) {
	r := ipc.WorktreesResponse{Worktrees: []ipc.Worktree{}}
	ids, err := s.Trees.all()
	if err != nil {
		return r, err
	}
	owner, inside := s.Callers.AgentOf(peer)
	var commons []string
	away := workspace.StowedDirs(s.Snapshots.keeper)
	for _, id := range ids {
		if inside && !s.Callers.Below(id, owner) {
			continue
		}
		t, err := s.Trees.Of(id)
		if _, stowed := away[id]; stowed || types.CodeOf(err) == types.ErrNotFound {
			continue // it was put away with its history, is being made, or removed
		}
		w, common := ipc.Worktree{UUID: id, State: "unknown", Files: []ipc.FileChange{}}, ""
		switch {
		case err != nil:
			w.Problem = err.Error()
		case req.NamesOnly:
			w = named(s, id, t)
		default:
			w, common = s.describe(ctx, id, t)
		}
		r.Worktrees, commons = append(r.Worktrees, w), append(commons, common)
	}
	overlap(r.Worktrees, commons)
	return r, ctx.Err()
}

// overlap notes which work trees of one repository have changed the same files.
func overlap(all []ipc.Worktree, commons []string) {
	for i := range all {
		mine := map[string]bool{}
		for _, f := range all[i].Files {
			mine[f.Path] = true
		}
		for j := range all {
			if i == j || commons[i] == "" || commons[i] != commons[j] {
				continue
			}
			var paths []string
			for _, f := range all[j].Files {
				if mine[f.Path] {
					paths = append(paths, f.Path)
				}
			}
			if len(paths) > 0 {
				slices.Sort(paths)
				all[i].Overlaps = append(all[i].Overlaps, ipc.Overlap{UUID: all[j].UUID, PID: all[j].PID, Paths: paths})
			}
		}
	}
}

func (s *Service) show(ctx context.Context, peer *ipc.Peer, req ipc.TargetRequest) (ipc.Worktree, error) {
	tg, t, err := s.treeFor(ctx, peer, req.Target)
	if err != nil {
		return ipc.Worktree{}, err
	}
	w, _ := s.describe(ctx, tg.UUID, t)
	name, raw := s.Trees.git.Remote(ctx, tg.UUID, t)
	w.Remote, w.RemoteURL = name, withoutPassword(raw)
	if !w.Gone && w.Problem == "" {
		w.Unseen = s.Trees.unseen(ctx, tg.UUID, t)
	}
	return w, ctx.Err()
}

// treeFor finds the work tree of the process that text names.
func (s *Service) treeFor(ctx context.Context, peer *ipc.Peer, text string) (service.Target, workspace.Tree, error) {
	tg, err := s.Callers.Resolve(text)
	if err != nil {
		return tg, workspace.Tree{}, err
	}
	if owner, inside := s.Callers.AgentOf(peer); inside && !s.Callers.Below(tg.UUID, owner) {
		return tg, workspace.Tree{}, service.Outside("Worktree", owner, "see work trees below it only")
	}
	t, err := s.Trees.Of(tg.UUID)
	if types.CodeOf(err) == types.ErrNotFound {
		if gone := s.gone(ctx, "Worktree", tg.UUID); gone != nil {
			err = gone
		}
	}
	return tg, t, err
}

// withoutPassword takes what may be secret off a URL.
func withoutPassword(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return raw
	}
	if u.User != nil {
		if _, has := u.User.Password(); has || u.Scheme != "ssh" {
			u.User = nil
		}
	}
	u.RawQuery, u.Fragment = "", ""
	return u.String()
}
