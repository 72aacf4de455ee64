package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rnix/internal/durable"
	"rnix/internal/profile"
	"rnix/internal/service"
	"rnix/internal/workspace"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// worktrees gives processes git work trees of their own and brings their work back. Which tree belongs to a history,
// its spawn record says (profile.Settings.Tree); the note beside the tree says it without reading that.
type worktrees struct{ *Daemon }

func (d worktrees) handle(s *ipc.Server) {
	on(d.Daemon, s, ipc.ListWorktrees, d.list)
	on(d.Daemon, s, ipc.ShowWorktree, d.show)
	on(d.Daemon, s, ipc.RemoveWorktree, d.remove)
	on(d.Daemon, s, ipc.Merge, d.merge)
}

// treeNoteVersion is the format of the notes that this program writes.
const treeNoteVersion = 1

// treeNote is tree.json beside a work tree. Part of the on-disk format.
type treeNote struct {
	Version int `json:"v"`
	workspace.Tree
	Parent types.UUID `json:"parent,omitzero"` // whose model wanted it for a child; zero = a person or a workflow did
}

// treesDir holds a directory for each history that has a work tree.
func (d worktrees) treesDir() string { return filepath.Join(d.places.DataDir, "worktrees") }

func (d worktrees) treeHome(id types.UUID) string { return filepath.Join(d.treesDir(), id.String()) }

func (d worktrees) treeNotePath(id types.UUID) string {
	return filepath.Join(d.treeHome(id), "tree.json")
}

// treeOf returns the work tree of a history. NOT_FOUND if it has none.
func (d worktrees) treeOf(id types.UUID) (workspace.Tree, error) {
	n, err := d.treeNoteOf(id)
	return n.Tree, err
}

func (d worktrees) treeNoteOf(id types.UUID) (n treeNote, err error) {
	path := d.treeNotePath(id)
	b, err := durable.ReadFile(durable.OS, path)
	if types.CodeOf(err) == types.ErrNotFound {
		return n, types.Errorf(types.ErrNotFound, "Worktree", id.String(), "the process has no git work tree of its own; one is made with: rnix run --worktree")
	}
	if err == nil {
		if json.Unmarshal(b, &n) != nil || n.Version < 1 || n.Dir == "" {
			err = types.Errorf(types.ErrStorage, "Worktree", path, "is not the note on a work tree: move it away")
		} else if n.Version > treeNoteVersion {
			err = types.Errorf(types.ErrVersion, "Worktree", path, "written in format %d by a newer program, this one reads up to %d", n.Version, treeNoteVersion)
		}
	}
	n.Dir, n.Repo = here(d.Daemon, n.Dir), here(d.Daemon, n.Repo) // a fork's directory can be the repository of its children
	return n, err
}

func (d worktrees) noteTree(id types.UUID, t workspace.Tree, parent types.UUID) error {
	b, err := json.Marshal(treeNote{Version: treeNoteVersion, Tree: t, Parent: parent})
	if err != nil {
		return types.Errorf(types.ErrInternal, "Worktree", t.Dir, "%w", err)
	}
	if err := durable.MkdirAll(durable.OS, d.treeHome(id)); err != nil {
		return err
	}
	return durable.WriteFile(durable.OS, d.treeNotePath(id), append(b, '\n'), durable.Durable)
}

// plant makes a work tree for a process that is about to be started, if one is asked for, and lets it work there.
// The caller calls undo if it is not started: what that leaves, the next start of the daemon removes.
func (d worktrees) plant(ctx context.Context, cwd string, req *ipc.WorktreeRequest, o *kernel.SpawnOpts) (_ *workspace.Tree, undo func(), err error) {
	if req == nil {
		return nil, func() {}, nil
	}
	if o.UUID == (types.UUID{}) {
		o.UUID = types.NewUUID()
	}
	return d.plantAs(ctx, workspace.Planting{From: cwd, Branch: req.Branch, Name: branchName(o.Name, o.UUID), Base: req.Base}, types.UUID{}, o)
}

// plantAs is plant for a process whose UUID is settled.
func (d worktrees) plantAs(ctx context.Context, p workspace.Planting, parent types.UUID, o *kernel.SpawnOpts) (_ *workspace.Tree, undo func(), err error) {
	id := o.UUID
	back := func() error { return d.uproot(context.WithoutCancel(ctx), id, false, nil) }
	p.Parent = d.treeHome(id)
	t, dir, err := d.grove.Plant(ctx, id, p)
	if err == nil {
		err = d.noteTree(id, t, parent)
	}
	if err == nil {
		o.Settings, err = profile.WithTree(o.Settings, &t)
	}
	if err != nil {
		return nil, nil, errors.Join(err, back())
	}
	o.WorkDir = dir
	return &t, func() { _ = back() }, nil
}

// apart warns of what the user has and a new work tree does not: what is not committed, and the files of submodules.
func (d worktrees) apart(ctx context.Context, id types.UUID, t *workspace.Tree) []string {
	if t == nil {
		return nil
	}
	some := func(files []string) string {
		text := strings.Join(files[:min(len(files), 3)], ", ")
		if n := len(files) - 3; n > 0 {
			text += fmt.Sprintf(" and %d more", n)
		}
		return text
	}
	var out []string
	if files := d.grove.Apart(ctx, id, *t); len(files) > 0 {
		out = append(out, "what you have not committed is not in its work tree: "+some(files))
	}
	if empty, err := d.grove.Empty(ctx, id, *t); err == nil && len(empty) > 0 {
		out = append(out, fmt.Sprintf("the submodules of the repository are empty in its work tree: %s; fill them with: git -C %s submodule update --init", some(empty), workspace.ShellQuote(t.Dir)))
	}
	return out
}

// planted is what a client is told of the work tree of a new process.
func planted(t *workspace.Tree, i *kernel.Info) *ipc.Worktree {
	if t == nil {
		return nil
	}
	return &ipc.Worktree{UUID: i.UUID, PID: i.PID, Name: i.Name, State: i.StateName(), Dir: t.Dir, Repo: t.Repo, Branch: t.Branch, Base: t.Base, BaseName: t.BaseName, Files: []ipc.FileChange{}}
}

// branchName is what the branch of a process is called.
func branchName(name string, id types.UUID) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return '-'
	}, name)
	if clean = strings.Trim(clean, "-"); clean == "" {
		clean = id.String()[:13] + "-" + id.String()[28:] // the first part is the time, which others have, too
	}
	return "rnix/" + clean
}

// uproot removes the work tree of a history, behind a rescue, and the note on it; with lose also if large files that git ignores are lost with
// it. rep is told what was rescued.
func (d worktrees) uproot(ctx context.Context, id types.UUID, lose bool, rep *workspace.Report) error {
	t, err := d.treeOf(id)
	if err != nil && types.CodeOf(err) != types.ErrNotFound {
		return err
	}
	if t.Dir != "" {
		remove := d.kept.Remove
		if lose {
			remove = d.kept.Discard
		}
		r, err := remove(ctx, t.Dir)
		if types.CodeOf(err) == types.ErrNotFound && !exists(t.Dir) {
			err = nil // an earlier try came so far
		}
		if err != nil {
			return err
		}
		if rep != nil {
			*rep = r
		}
	}
	if err := os.Remove(d.treeNotePath(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return types.Errorf(types.ErrStorage, "Worktree", d.treeNotePath(id), "%w", err)
	}
	return d.grove.Uproot(ctx, id, d.treeHome(id))
}

// forked gives a fork of a process with a work tree a branch of its own. dir is the directory that was
// made for the fork.
func (d worktrees) forked(ctx context.Context, a *again, origin *workspace.Tree, dir string) error {
	var own *workspace.Tree
	if dir != "" {
		branch, _, err := d.grove.Branch(ctx, a.rec.ID, dir, origin.Common, branchName(a.was.Name, a.rec.ID))
		if code := types.CodeOf(err); code == types.ErrConflict || code == types.ErrDriver { // it is a plain directory, since git could not keep its files
			branch, err = "", nil
		} else if err == nil {
			own = &workspace.Tree{Dir: dir, Repo: origin.Repo, Common: origin.Common, Branch: branch, Base: origin.Base, BaseName: origin.BaseName, Programs: origin.Programs}
			err = d.noteTree(a.rec.ID, *own, types.UUID{})
		}
		if err != nil {
			return err
		}
	}
	var err error
	a.was.Settings, err = profile.WithTree(a.was.Settings, own)
	return err
}

// sweep removes work trees whose history was never begun: a crash came between. Nothing else may be
// making any yet.
func (d worktrees) sweep(ctx context.Context) {
	entries, err := os.ReadDir(d.treesDir())
	if err != nil {
		return // there are none
	}
	for _, e := range entries {
		id, ok := historyIn(e)
		if !ok || exists(d.journal.Dir(id)) {
			continue
		}
		if _, known := d.journal.Index().Get(id); known {
			continue
		}
		if err := d.uproot(ctx, id, false, nil); err != nil {
			d.note("the work tree of a process that was never started stays in %s: %v", d.treeHome(id), err)
		}
	}
}

// historyIn returns the history that a directory is named after.
func historyIn(e os.DirEntry) (id types.UUID, ok bool) {
	err := id.UnmarshalText([]byte(e.Name()))
	return id, err == nil && id.String() == e.Name()
}

// maxIntent bounds what a work tree shows of what its process is to do, in characters.
const maxIntent = 200

// describe looks at the work tree of a history.
func (d worktrees) describe(ctx context.Context, id types.UUID, t workspace.Tree) (w ipc.Worktree, common string) {
	w = ipc.Worktree{UUID: id, State: "unknown", Dir: t.Dir, Repo: t.Repo, Branch: t.Branch, Base: t.Base, BaseName: t.BaseName, Files: []ipc.FileChange{}}
	if tg, err := d.names.Resolve(id.String()); err == nil {
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
	}
	if w.Gone = !exists(t.Dir); w.Gone {
		return w, t.Common
	}
	st, err := d.grove.Survey(ctx, id, t)
	if err == nil {
		w.Head, w.Commits, w.Uncommitted = st.Head, st.Commits, st.Uncommitted
		w.Branch = st.Branch // "" where none is checked out: a push of the first one would lack the work
		var changes []workspace.FileChange
		if _, changes, err = d.kept.Diff(ctx, st.Base, st.Files, workspace.DiffOpts{NamesOnly: true}); err == nil {
			w.Files = wireChanges(changes)
		}
	}
	if err != nil {
		w.Problem = err.Error()
	}
	return w, t.Common
}

func (d worktrees) list(ctx context.Context, peer *ipc.Peer, _ ipc.Empty) (ipc.WorktreesResponse, error) {
	r := ipc.WorktreesResponse{Worktrees: []ipc.Worktree{}}
	entries, err := os.ReadDir(d.treesDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, types.Errorf(types.ErrStorage, "Worktree", d.treesDir(), "%w", err)
	}
	owner, inside := d.agentOf(peer)
	var commons []string
	for _, e := range entries { // UUIDs sort by age
		id, ok := historyIn(e)
		if !ok || inside && !descends(d.Daemon, target{UUID: id}, owner) {
			continue
		}
		t, err := d.treeOf(id)
		if types.CodeOf(err) == types.ErrNotFound {
			continue // it is being made, or removed
		}
		w, common := ipc.Worktree{UUID: id, State: "unknown", Files: []ipc.FileChange{}}, ""
		if err != nil {
			w.Problem = err.Error()
		} else {
			w, common = d.describe(ctx, id, t)
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

func (d worktrees) show(ctx context.Context, peer *ipc.Peer, req ipc.TargetRequest) (ipc.Worktree, error) {
	tg, t, err := d.treeFor(ctx, peer, req.Target)
	if err != nil {
		return ipc.Worktree{}, err
	}
	w, _ := d.describe(ctx, tg.UUID, t)
	name, raw := d.grove.Remote(ctx, tg.UUID, t)
	w.Remote, w.RemoteURL = name, withoutPassword(raw)
	if !w.Gone && w.Problem == "" {
		w.Unseen = unseenIn(ctx, d.Daemon, tg.UUID, t)
	}
	return w, ctx.Err()
}

// treeFor finds the work tree of the process that text names.
func (d worktrees) treeFor(ctx context.Context, peer *ipc.Peer, text string) (target, workspace.Tree, error) {
	tg, err := d.names.Resolve(text)
	if err != nil {
		return tg, workspace.Tree{}, err
	}
	if owner, inside := d.agentOf(peer); inside && !descends(d.Daemon, tg, owner) {
		return tg, workspace.Tree{}, service.Outside("Worktree", owner, "see the work trees of its own subtree only")
	}
	t, err := d.treeOf(tg.UUID)
	if types.CodeOf(err) == types.ErrNotFound {
		if gone := goneTree(ctx, d.Daemon, "Worktree", tg.UUID); gone != nil {
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
