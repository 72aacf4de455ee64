package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"rnix/internal/durable"
	"rnix/internal/moved"
	"rnix/internal/plumbing"
	"rnix/internal/profile"
	"rnix/internal/workspace"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// Trees are the git work trees that were made for histories. Which one belongs to a history, its settings say (profile.Settings.Tree); the note beside the
// tree says it without reading those.
type Trees struct {
	data string // the data directory
	git  *workspace.Grove
}

// NewTrees returns the work trees below a data directory, whose files a keeper keeps when they go.
func NewTrees(k *workspace.Keeper, data string) *Trees {
	return &Trees{data, workspace.NewGrove(k)}
}

// treeNoteVersion is the format of the notes that this program writes.
const treeNoteVersion = 1

// treeNote is tree.json beside a work tree. Part of the on-disk format.
type treeNote struct {
	Version int `json:"v"`
	workspace.Tree
	Parent types.UUID `json:"parent,omitzero"` // whose model wanted it for a child; zero = a person or a workflow did
	begun
}

// begun is with whose work a work tree begins. Part of the on-disk format.
type begun struct {
	Works   []types.UUID `json:"works,omitempty"`   // of the attempts of nodes whose work it is, and of those with which these began
	Clashes []string     `json:"clashes,omitempty"` // files with marks of conflicts that its process is to resolve
}

// Dir holds a directory for each history that has a work tree.
func (t *Trees) Dir() string { return filepath.Join(t.data, "worktrees") }

// Home is the directory below which the work tree of a history is, with the note on it.
func (t *Trees) Home(id types.UUID) string { return filepath.Join(t.Dir(), id.String()) }

// noteName is the file beside a work tree that says what it is.
const noteName = "tree.json"

// all returns the histories for which there is a directory, oldest first.
func (t *Trees) all() (ids []types.UUID, err error) {
	entries, err := os.ReadDir(t.Dir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, types.Errorf(types.ErrStorage, "Worktree", t.Dir(), "%w", err)
	}
	for _, e := range entries { // UUIDs sort by age
		if id, ok := historyIn(e); ok {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// historyIn returns the history that a directory is named after.
func historyIn(e os.DirEntry) (id types.UUID, ok bool) {
	err := id.UnmarshalText([]byte(e.Name()))
	return id, err == nil && id.String() == e.Name()
}

// Of returns the work tree of a history. NOT_FOUND if it has none.
func (t *Trees) Of(id types.UUID) (workspace.Tree, error) {
	n, err := t.noteOn(id)
	return n.Tree, err
}

func (t *Trees) noteOn(id types.UUID) (n treeNote, err error) {
	path := filepath.Join(t.Home(id), noteName)
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
	n.Dir, n.Repo = moved.Here(t.data, n.Dir), moved.Here(t.data, n.Repo) // a fork's directory can be the repository of its children
	return n, err
}

func (t *Trees) note(id types.UUID, tree workspace.Tree, parent types.UUID, with begun) error {
	b, err := json.Marshal(treeNote{Version: treeNoteVersion, Tree: tree, Parent: parent, begun: with})
	if err != nil {
		return types.Errorf(types.ErrInternal, "Worktree", tree.Dir, "%w", err)
	}
	if err := durable.MkdirAll(durable.OS, t.Home(id)); err != nil {
		return err
	}
	return durable.WriteFile(durable.OS, filepath.Join(t.Home(id), noteName), append(b, '\n'), durable.Durable)
}

// Create makes a work tree for a process that is about to be started, if one is asked for, and lets it work there.
// The caller calls undo if it is not started: what that leaves, the next start of the daemon removes.
func (t *Trees) Create(ctx context.Context, cwd string, req *ipc.WorktreeRequest, o *kernel.SpawnOpts) (_ *workspace.Tree, undo func(), err error) {
	if req == nil {
		return nil, func() {}, nil
	}
	if o.UUID == (types.UUID{}) {
		o.UUID = types.NewUUID()
	}
	return t.CreateAs(ctx, workspace.Planting{From: cwd, Branch: req.Branch, Name: BranchName(o.Name, o.UUID), Base: req.Base}, types.UUID{}, begun{}, o)
}

// CreateAs is Create for a process whose UUID is settled, and for a work tree of which all is said but where it will be. parent is the process
// whose model wants it for a child; zero = none. with is with whose work it begins.
func (t *Trees) CreateAs(ctx context.Context, p workspace.Planting, parent types.UUID, with begun, o *kernel.SpawnOpts) (_ *workspace.Tree, undo func(), err error) {
	id := o.UUID
	back := func() error { _, err := t.remove(context.WithoutCancel(ctx), id, false); return err }
	p.Parent = t.Home(id)
	tree, dir, err := t.git.Plant(ctx, id, p)
	if err == nil {
		err = t.note(id, tree, parent, with)
	}
	if err == nil {
		o.Settings, err = profile.WithTree(o.Settings, &tree)
	}
	if err != nil {
		return nil, nil, errors.Join(err, back())
	}
	o.WorkDir = dir
	return &tree, func() { _ = back() }, nil
}

// Fits is the error that CreateAs would return for a process that is not there yet, as far as it can be told before.
func (t *Trees) Fits(ctx context.Context, p workspace.Planting) error {
	return t.git.Fits(ctx, types.UUID{}, p)
}

// CreateForChild makes the work tree of a child whose parent wants one: of the repository in which the parent works, from what
// is checked out there.
func (t *Trees) CreateForChild(ctx context.Context, parent Worker, o *kernel.SpawnOpts) (undo func(), err error) {
	_, undo, err = t.CreateAs(ctx, workspace.Planting{From: parent.WorkDir, Name: BranchName(o.Name, o.UUID)}, parent.UUID, begun{}, o)
	return undo, err
}

// OfChild returns the directory of the work tree that a parent wanted for a child, and says where it is.
func (t *Trees) OfChild(id types.UUID) (dir, text string) {
	n, err := t.noteOn(id)
	if err != nil || n.Parent == (types.UUID{}) {
		return "", ""
	}
	return n.Dir, fmt.Sprintf("Its work tree is %s, on branch %s, from %s; what is not committed there is in no branch.", n.Dir, n.Branch, n.BaseName)
}

// OfChildren returns the directories of the work trees that a process wanted for its children.
func (t *Trees) OfChildren(parent types.UUID) (dirs []string) {
	ids, _ := t.all() // what cannot be read is not known
	for _, id := range ids {
		if n, err := t.noteOn(id); err == nil && n.Parent == parent {
			dirs = append(dirs, n.Dir)
		}
	}
	return dirs
}

// Lacks warns of what the user has and a new work tree does not: what is not committed, and the files of submodules.
func (t *Trees) Lacks(ctx context.Context, id types.UUID, tree *workspace.Tree) []string {
	if tree == nil {
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
	if files := t.git.Apart(ctx, id, *tree); len(files) > 0 {
		out = append(out, "what you have not committed is not in its work tree: "+some(files))
	}
	if empty, err := t.git.Empty(ctx, id, *tree); err == nil && len(empty) > 0 {
		out = append(out, fmt.Sprintf("the submodules of the repository are empty in its work tree: %s; fill them with: git -C %s submodule update --init", some(empty), plumbing.ShellQuote(tree.Dir)))
	}
	return out
}

// BranchName is what the branch of a process is called.
func BranchName(name string, id types.UUID) string {
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

// Fork gives a fork of a process with a work tree a branch of its own, and returns its settings, which name the work tree that it has. dir is
// the directory that was made for the fork; "" = none was, and it has no work tree.
func (t *Trees) Fork(ctx context.Context, id types.UUID, name string, settings json.RawMessage, origin *workspace.Tree, dir string) (json.RawMessage, error) {
	var own *workspace.Tree
	if dir != "" {
		branch, _, err := t.git.Branch(ctx, id, dir, origin.Common, BranchName(name, id))
		if code := types.CodeOf(err); code == types.ErrConflict || code == types.ErrDriver { // it is a plain directory, since git could not keep its files
			err = nil
		} else if err == nil {
			own = &workspace.Tree{Dir: dir, Repo: origin.Repo, Common: origin.Common, Branch: branch, Base: origin.Base, BaseName: origin.BaseName, Programs: origin.Programs}
			err = t.note(id, *own, types.UUID{}, begun{})
		}
		if err != nil {
			return nil, err
		}
	}
	return profile.WithTree(settings, own)
}

// remove removes the work tree of a history, behind a rescue, and the note on it; with lose also if large files that git ignores are lost with
// it.
func (t *Trees) remove(ctx context.Context, id types.UUID, lose bool) (rep workspace.Report, err error) {
	tree, err := t.Of(id)
	if err != nil && types.CodeOf(err) != types.ErrNotFound {
		return rep, err
	}
	if tree.Dir != "" {
		remove := t.git.Remove
		if lose {
			remove = t.git.Discard
		}
		rep, err = remove(ctx, tree.Dir)
		if types.CodeOf(err) == types.ErrNotFound && !exists(tree.Dir) {
			err = nil // an earlier try came so far
		}
		if err != nil {
			return rep, err
		}
	}
	note := filepath.Join(t.Home(id), noteName)
	if err := os.Remove(note); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return rep, types.Errorf(types.ErrStorage, "Worktree", note, "%w", err)
	}
	return rep, t.git.Uproot(ctx, id, t.Home(id))
}

// exists reports whether a path is there.
func exists(path string) bool { _, err := os.Stat(path); return err == nil }
