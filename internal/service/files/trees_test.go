package files

import (
	"path/filepath"
	"strings"
	"testing"

	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// Whose history was begun keeps the work tree; of another, a crash came between, and only the branch with a commit on it stays.
func TestAWorkTreeWithoutAHistoryGoesAtTheNextStart(t *testing.T) {
	w := newWorld(t)
	repo := w.repo()
	_, stays := w.tree(1, "stays", repo)
	cut, goes := w.tree(2, "cut", repo)
	delete(w.begun, cut)
	if notes := w.TakeUp(t.Context()); len(notes) != 0 {
		t.Errorf("people are told %q", notes)
	}
	if !exists(stays.Dir) || exists(goes.Dir) || exists(w.Trees.Home(cut)) {
		t.Errorf("%v, %v", exists(stays.Dir), exists(goes.Dir))
	}
	if got := w.git(repo, "branch", "--format=%(refname:short)"); got != "main\nrnix/stays" {
		t.Errorf("branches %q", got)
	}
}

// A work tree is removed of what has ended, and of what is suspended if that is said; never below who works or will.
func TestAWorkTreeIsNotRemovedBelowWhoWorksThere(t *testing.T) {
	for name, c := range map[string]struct {
		live      *kernel.Info
		suspended bool
		other     *kernel.Info
		req       ipc.RemoveWorktreeRequest
		says      string
	}{
		"ended":             {},
		"runs":              {live: &kernel.Info{State: types.StateRunning}, says: "wait for it"},
		"paused":            {live: &kernel.Info{State: types.StateRunning, Suspended: true, Paused: true}, says: "end it first"},
		"suspended":         {suspended: true, says: "--suspended"},
		"suspended, is all": {suspended: true, req: ipc.RemoveWorktreeRequest{Suspended: true}},
		"another works":     {other: &kernel.Info{State: types.StateRunning}, says: "works there"},
		"another has ended": {other: &kernel.Info{State: types.StateDead}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			id, tree := w.tree(1, "it", w.repo())
			if w.stored[0].Suspended = c.suspended; c.live != nil {
				c.live.PID, c.live.UUID, c.live.Name, c.live.WorkDir = 1, id, "it", tree.Dir
				w.live = append(w.live, *c.live)
			}
			if c.other != nil {
				c.other.PID, c.other.UUID, c.other.WorkDir = 2, types.NewUUID(), tree.Dir
				w.live = append(w.live, *c.other)
			}
			c.req.Target = "it"
			_, err := w.remove(t.Context(), nil, c.req)
			if gone := !exists(tree.Dir); (err == nil) != gone || gone != (c.says == "") || err != nil && (types.CodeOf(err) != types.ErrConflict || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("it is gone: %v, %v", gone, err)
			}
			if len(w.held) != 0 {
				t.Errorf("still held: %v", w.held)
			}
		})
	}
}

// A process that was resumed while its work tree was about to be removed keeps it.
func TestAWorkTreeStaysIfItsProcessIsResumedAtThatMoment(t *testing.T) {
	w := newWorld(t)
	id, tree := w.tree(1, "it", w.repo())
	w.onReserve = func() {
		w.live = append(w.live, kernel.Info{ProcStatus: types.ProcStatus{PID: 2, UUID: id, Name: "it", WorkDir: tree.Dir}, State: types.StateRunning})
	}
	if _, err := w.remove(t.Context(), nil, ipc.RemoveWorktreeRequest{Target: "it"}); types.CodeOf(err) != types.ErrConflict || !strings.Contains(err.Error(), "PID 2 works there") || !exists(tree.Dir) {
		t.Errorf("it is there: %v, %v", exists(tree.Dir), err)
	}
}

// What an agent sees of work trees are those of its subtree, and it changes none.
func TestAnAgentSeesTheWorkTreesOfItsSubtreeOnly(t *testing.T) {
	w := newWorld(t)
	repo := w.repo()
	child, _ := w.tree(2, "child", repo)
	_, other := w.tree(3, "other", repo)
	w.live = []kernel.Info{{ProcStatus: types.ProcStatus{PID: 1, UUID: types.NewUUID()}}, {ProcStatus: types.ProcStatus{PID: 2, PPID: 1, UUID: child, Name: "child"}, State: types.StateZombie}}
	w.inside = 1
	if r, err := w.list(t.Context(), nil, ipc.WorktreesRequest{}); err != nil || len(r.Worktrees) != 1 || r.Worktrees[0].UUID != child {
		t.Errorf("%+v, %v", r, err)
	}
	_, serr := w.show(t.Context(), nil, ipc.TargetRequest{Target: "other"})
	_, merr := w.merge(t.Context(), nil, ipc.MergeRequest{Target: "child"})
	_, rerr := w.remove(t.Context(), nil, ipc.RemoveWorktreeRequest{Target: "child"})
	for _, err := range []error{serr, merr, rerr} {
		if types.CodeOf(err) != types.ErrPermission {
			t.Error(err)
		}
	}
	if w.inside = 0; !exists(other.Dir) {
		t.Error("it is gone")
	}
	if r, err := w.list(t.Context(), nil, ipc.WorktreesRequest{}); err != nil || len(r.Worktrees) != 2 {
		t.Errorf("a person sees %+v, %v", r, err)
	}
}

// Work that is in no commit is in the merge, and comes back after the removal by the command that is named; who asks for the tree then is told so.
func TestWorkIsMergedAndRescued(t *testing.T) {
	w := newWorld(t)
	repo := w.repo()
	id, tree := w.tree(1, "it", repo)
	w.write(filepath.Join(tree.Dir, "a.txt"), "two\n")
	m, err := w.merge(t.Context(), nil, ipc.MergeRequest{Target: "it"})
	if err != nil || m.Committed == "" || len(m.Files) != 1 {
		t.Fatalf("%+v, %v", m, err)
	}
	w.holds(filepath.Join(repo, "a.txt"), "two\n")
	w.write(filepath.Join(tree.Dir, "late.txt"), "late\n")
	how, err := w.Rescue(id)
	if err != nil || how == "" {
		t.Errorf("%q, %v", how, err)
	}
	back, err := w.Clear(t.Context(), id)
	if err != nil || exists(tree.Dir) {
		t.Fatalf("%q, %v", back, err)
	}
	dir := filepath.Join(w.dir(nil), "back")
	_, args, _ := strings.Cut(strings.Replace(back, "DIR", dir, 1), "git ")
	w.git(repo, strings.Fields(strings.ReplaceAll(args, "'", ""))...)
	w.holds(filepath.Join(dir, "late.txt"), "late\n")
	if _, err := w.show(t.Context(), nil, ipc.TargetRequest{Target: "it"}); types.CodeOf(err) != types.ErrNotFound || !strings.Contains(err.Error(), "was removed") {
		t.Error(err)
	}
}

// What a process has put beside its work tree is in no diff and no merge, and stays when that is removed: each of these says so.
func TestWhatLiesBesideAWorkTreeIsTold(t *testing.T) {
	w := newWorld(t)
	repo := w.repo()
	_, tree := w.tree(1, "it", repo)
	home := filepath.Dir(tree.Dir)
	if said, err := beside(home, tree); said != "" || err != nil {
		t.Fatalf("of one that is new: %q, %v", said, err)
	}
	w.git(tree.Dir, "worktree", "add", "-q", "../x")
	w.write(filepath.Join(home, "x", "n"), "in no commit\n")
	w.write(filepath.Join(home, "a note"), "n\n")
	want := "beside it, in " + home + `: "a note", "x"`
	d, err := w.show(t.Context(), nil, ipc.TargetRequest{Target: "it"})
	if err != nil || len(d.Unseen) != 1 || d.Unseen[0] != want {
		t.Errorf("show: %q, %v", d.Unseen, err)
	}
	m, err := w.merge(t.Context(), nil, ipc.MergeRequest{Target: "it"})
	if err != nil || len(m.Unseen) != 1 || m.Unseen[0] != want {
		t.Errorf("merge: %q, %v", m.Unseen, err)
	}
	r, err := w.remove(t.Context(), nil, ipc.RemoveWorktreeRequest{Target: "it"})
	if err != nil || r.Left != want || exists(tree.Dir) {
		t.Errorf("remove: %q, %v", r.Left, err)
	}
	w.holds(filepath.Join(home, "x", "n"), "in no commit\n")
	for _, name := range []string{"b", "c", "d"} {
		w.write(filepath.Join(home, name), "")
	}
	if said, err := beside(home, tree); !strings.HasSuffix(said, ` and 2 more`) || err != nil {
		t.Errorf("of many: %q, %v", said, err)
	}
}
