package files

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"rnix/internal/compose"
	"rnix/internal/plumbing"
	"rnix/internal/workspace"
	"rnix/kernel"
	"rnix/types"
)

// planting is what the work tree of a node of a workflow is to be.
func planting(from string, w *compose.Worktree) workspace.Planting {
	return workspace.Planting{From: from, Branch: w.Branch, Base: w.Base}
}

// NodeTrees makes the work trees of nodes of workflows.
type NodeTrees struct{ Trees *Trees }

// FitsNode refuses a work tree that could not be made for a node of a workflow in a directory, as far as it can be told before.
func (n NodeTrees) FitsNode(ctx context.Context, cwd string, w *compose.Worktree) error {
	return n.Trees.Fits(ctx, planting(cwd, w))
}

// CreateForNode makes the work tree of an attempt of a node, if it is to have one. It begins with the work of other nodes: what these have not committed
// is committed on their branches, and a commit of all of it is made before there is a work tree, so that a crash leaves none that has half of it.
// A later attempt begins anew, in a tree of its own, at the commit at which the first one began: what an attempt has done that failed may be what
// made it fail, and is still there to be looked at. A branch of a name that the file gives belongs to the first attempt; the next ones add a number.
func (n NodeTrees) CreateForNode(ctx context.Context, cwd string, c *compose.Checkout, o *kernel.SpawnOpts) (made compose.Made, err error) {
	if made.Undo = func() {}; c.Want == nil || !c.Want.Own {
		return made, nil
	}
	p := planting(cwd, c.Want)
	if p.Name = BranchName(o.Name, o.UUID); c.Attempt > 1 && p.Branch != "" {
		p.Name, p.Branch = p.Branch, ""
	}
	var with begun
	if first, ferr := n.Trees.noteOn(c.Origin); ferr == nil && c.Origin != o.UUID {
		p.Base, p.Called, with = first.Base, first.BaseName, first.begun
	} else if with, made.Told, err = n.join(ctx, cwd, c, &p, o); err != nil {
		return made, err
	}
	if len(with.Clashes) > 0 {
		made.Told = strings.TrimSpace("The work of the nodes before you does not merge. What both sides have changed is in your work tree between marks (<<<<<<<, ======= and >>>>>>>). Before " +
			"anything else, bring both sides together in these files and remove the marks, and keep what both were for: " + strings.Join(with.Clashes, ", ") + "\n\n" + made.Told)
	}
	_, made.Undo, err = n.Trees.CreateAs(ctx, p, types.UUID{}, with, o)
	return made, err
}

// join settles at what the work tree of a first attempt begins: a commit of the work that it is to have. told is what is missing there.
func (n NodeTrees) join(ctx context.Context, cwd string, c *compose.Checkout, p *workspace.Planting, o *kernel.SpawnOpts) (with begun, told string, err error) {
	g := n.Trees.git
	if len(c.Works) == 0 {
		return with, "", nil
	}
	common, err := workspace.CommonOf(ctx, g, o.UUID, cwd)
	if err != nil {
		return with, "", err
	}
	var lines []workspace.Line
	var keys []compose.Key
	var lacks []string
	for _, w := range c.Works {
		note, err := n.Trees.noteOn(w.UUID)
		if err == nil && note.Common != common {
			continue // it is of another repository
		}
		l := workspace.Line{ID: w.UUID, Name: w.Key.String(), Tree: note.Tree}
		if err == nil {
			l.Commit, _, err = g.CommitWork(ctx, w.UUID, note.Tree, fmt.Sprintf("The work of %s\n\nThe work of the rnix process %s.\n", w.Key, w.UUID))
		}
		if err != nil {
			return with, "", types.Errorf(types.CodeOf(err), "Compose", w.Key.String(), "its work cannot be taken: %w; do that node again with --node %s", err, w.Key.Node)
		}
		for _, u := range n.Trees.unseen(ctx, w.UUID, note.Tree) {
			lacks = append(lacks, "what "+w.Key.String()+" has "+u)
		}
		lines, keys = append(lines, l), append(keys, w.Key)
		with.Works = append(append(with.Works, note.Works...), w.UUID)
	}
	if len(lines) == 0 {
		return with, "", nil
	}
	slices.SortFunc(with.Works, func(a, b types.UUID) int { return strings.Compare(a.String(), b.String()) })
	with.Works = slices.Compact(with.Works)
	commit, clashes, err := workspace.Join(ctx, g, o.UUID, p.Base, lines, c.Want.Conflicts == compose.Resolve)
	if err != nil {
		return with, "", err
	}
	if commit == "" {
		return with, "", clashOf(&clashes[len(clashes)-1], keys, lines, p.Base)
	}
	for _, clash := range clashes {
		with.Clashes = append(with.Clashes, clash.Files...)
	}
	slices.Sort(with.Clashes)
	with.Clashes = slices.Compact(with.Clashes)
	p.Base, p.Called = commit, lines[0].Tree.BaseName
	if len(lacks) > 0 {
		told = "Not in your work tree, since git has it in no commit of theirs: " + strings.Join(lacks, "; ")
	}
	return with, told, nil
}

// clashOf says how a person resolves what does not merge: in the work tree of the node whose work does not fit. What is there then begins the node.
func clashOf(c *workspace.Clash, keys []compose.Key, lines []workspace.Line, base string) *compose.Clash {
	of := &compose.Clash{Key: keys[c.Line], Files: c.Files, Bare: c.Bare}
	merge := func(what string) {
		of.Mend = append(of.Mend, "git -C "+plumbing.ShellQuote(lines[c.Line].Tree.Dir)+" merge "+plumbing.ShellQuote(what))
	}
	with := c.With
	if len(with) == 0 { // only with several of them together, or with the commit that the file names
		if base != "" {
			of.With = append(of.With, compose.Key{Node: base, Index: -1})
			merge(base)
		}
		for i := range c.Line {
			with = append(with, i)
		}
	}
	for _, i := range with {
		what := lines[i].Tree.Branch
		if what == "" {
			what = lines[i].Commit
		}
		of.With = append(of.With, keys[i])
		merge(what)
	}
	return of
}

// Unresolved returns the files of the work tree of an attempt in which marks of a conflict are left that it was to resolve.
func (n NodeTrees) Unresolved(id types.UUID) []string {
	note, err := n.Trees.noteOn(id)
	if err != nil {
		return nil
	}
	return workspace.Marked(note.Dir, note.Clashes)
}

// worksOf returns the attempts of nodes with whose work the work tree of a history begins.
func worksOf(t *Trees, id types.UUID) []types.UUID {
	note, err := t.noteOn(id)
	if err != nil {
		return nil
	}
	return note.Works
}
