package workspace

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"rnix/internal/plumbing"
	"rnix/types"
)

// Line is the work of a history that is brought together with that of others.
type Line struct {
	ID     types.UUID
	Name   string // for the message of the commit
	Tree   Tree
	Commit string
}

// Clash is where a line does not merge.
type Clash struct {
	Line  int   // its index
	With  []int // the earlier ones with which it does not
	Files []string
	Bare  []string // those of them into which git writes no marks, so that the merged file has one side alone
}

// Join makes a commit of the work of some histories of one repository, in their order, and touches no file and no branch: a crash leaves objects that
// git removes. from is the commit or branch with which it begins; "" = the first line. With marks, what both sides have changed is in
// the commit as git writes it into files, between marks, and clashes say where; without, there is no commit ("") if there are any. There is
// none either where git writes no marks, since one of the sides would be lost: the last clash says in which files.
func Join(ctx context.Context, k *Grove, id types.UUID, from string, lines []Line, marks bool) (commit string, clashes []Clash, err error) {
	c := k.canopy
	at, err := c.stand(ctx, lines[0].ID, lines[0].Tree)
	if err != nil {
		return "", nil, err
	}
	if commit = lines[0].Commit; from != "" {
		out, err := c.run(ctx, id, call{args: []string{"--git-dir=" + at.Common, "rev-parse", "-q", "--verify", "--end-of-options", from + "^{commit}"}})
		if err != nil {
			return "", nil, types.Errorf(types.ErrNotFound, "Worktree", from, "is no commit of %s", at.Repo)
		}
		commit = plumbing.Line(out)
	}
	conf, err := c.config(ctx, id, at.gitDir, true)
	if err != nil {
		return "", nil, err
	}
	for i, l := range lines {
		switch base := c.mergeBase(ctx, id, at.Common, commit, l.Commit); base {
		case l.Commit: // it is in it
			continue
		case commit:
			commit = l.Commit
			continue
		}
		at.head = commit
		tree, files, err := c.mergeTree(ctx, id, at, conf, l.Commit)
		if err != nil {
			return "", nil, err
		}
		if len(files) > 0 {
			clash := Clash{Line: i, Files: files}
			for j, other := range lines[:i] {
				if at.head = other.Commit; c.clash(ctx, id, at, conf, l.Commit) {
					clash.With = append(clash.With, j)
				}
			}
			if marks {
				if clash.Bare, err = bare(ctx, c, id, at.Common, tree, files, commit, l.Commit); err != nil {
					return "", nil, err
				}
			}
			if clashes = append(clashes, clash); !marks || len(clash.Bare) > 0 {
				return "", clashes, ctx.Err()
			}
		}
		message := fmt.Sprintf("Merge the work of %s\n\nThe work of the rnix process %s.\n", l.Name, l.ID)
		if commit, err = c.commitBoth(ctx, id, at, conf, tree, commit, l.Commit, message); err != nil {
			return "", nil, err
		}
	}
	return commit, clashes, ctx.Err()
}

// clash reports whether two commits do not merge.
func (k *canopy) clash(ctx context.Context, id types.UUID, at standing, conf plumbing.Config, commit string) bool {
	_, files, err := k.mergeTree(ctx, id, at, conf, commit)
	return err == nil && len(files) > 0
}

// mergeTree merges a commit with what is at a place, without touching any file. files are those that both sides have changed; what is in tree of them
// has marks.
func (k *canopy) mergeTree(ctx context.Context, id types.UUID, at standing, conf plumbing.Config, commit string) (tree string, files []string, err error) {
	out, err := k.run(ctx, id, call{dir: at.Dir, env: inert(conf, false), args: []string{"--git-dir=" + at.gitDir, "--work-tree=" + at.Dir, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", at.head, commit}})
	names := plumbing.Records(out)
	switch {
	case types.CodeOf(err) == types.ErrDriver && len(names) > 1:
		return names[0], names[1:], nil
	case err != nil:
		return "", nil, types.Errorf(types.CodeOf(err), "Merge", at.Dir, "nothing was merged; git 2.38 or newer is needed: %w", err)
	}
	return names[0], nil, nil
}

// commitBoth makes a commit of a tree with two parents.
func (k *canopy) commitBoth(ctx context.Context, id types.UUID, at standing, conf plumbing.Config, tree, a, b, message string) (string, error) {
	out, err := k.run(ctx, id, call{input: []byte(message), env: author(conf), args: []string{"--git-dir=" + at.gitDir, "commit-tree", tree, "-p", a, "-p", b}})
	return plumbing.Line(out), err
}

// CommonOf returns the git directory of the repository in which a directory is; "" = it is in none.
func CommonOf(ctx context.Context, k *Grove, id types.UUID, dir string) (string, error) {
	p, err := k.canopy.locate(ctx, id, dir)
	if err != nil || p.repo == nil {
		return "", err
	}
	return p.repo.common, nil
}

// maxMarked bounds how much of a file is searched for marks, in bytes.
const maxMarked = 16 << 20

// Marked returns those of some files below a directory in which there are marks of a conflict.
func Marked(dir string, files []string) (left []string) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil
	}
	defer root.Close()
	for _, f := range files {
		info, err := root.Lstat(filepath.FromSlash(f))
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxMarked {
			continue
		}
		b, err := plumbing.BeginningIn(root, filepath.FromSlash(f), maxMarked+1)
		if err != nil || len(b) > maxMarked {
			continue
		}
		if marked(b) {
			left = append(left, f)
		}
	}
	return left
}

// marked reports whether there are marks of a conflict in a file.
func marked(b []byte) bool {
	begun := false
	for l := range bytes.Lines(b) {
		begun = begun || bytes.HasPrefix(l, []byte("<<<<<<< "))
		if begun && bytes.HasPrefix(l, []byte(">>>>>>> ")) {
			return true
		}
	}
	return false
}

// bare returns those of the files that two commits have both changed in which a merge of them has no marks: binary ones, submodules, links, those that one side
// has removed or that are too large. Of these the merge has what one side has.
func bare(ctx context.Context, k *canopy, id types.UUID, common, merge string, files []string, sides ...string) ([]string, error) {
	own, err := k.storeOf(ctx, id, common, formatOf(merge))
	if err != nil {
		return nil, err
	}
	one := map[string]bool{} // what is as one side has it, whatever it is called there
	for _, side := range sides {
		all, err := gitSource{git: k.git, id: id, store: own, tree: side}.entries(ctx)
		if err != nil {
			return nil, err
		}
		for _, e := range all {
			one[e.Hash] = true
		}
	}
	result := gitSource{git: k.git, id: id, store: own, tree: merge}
	all, err := result.entries(ctx)
	if err != nil {
		return nil, err
	}
	var read []entry
	left := map[string]bool{}
	for _, f := range files {
		left[f] = true
	}
	for _, e := range all {
		if left[e.Path] && e.Mode.IsRegular() && e.Size <= maxMarked && !one[e.Hash] {
			read = append(read, e)
		}
	}
	err = result.read(ctx, read, func(e entry, r io.Reader) error {
		b, err := io.ReadAll(r)
		if err == nil && marked(b) {
			delete(left, e.Path)
		}
		return err
	})
	return slices.Sorted(maps.Keys(left)), err
}

// Outlook is what a merge would do.
type Outlook struct {
	Merged
	Uncommitted bool     // what is not committed in the work tree would be committed first
	Clash       []string // files that both sides have changed: nothing would be merged
	Dirty       error    // changes of the user's that are in the way; nil = none
}

// Preview says what CommitWork and Merge would do, and does neither.
func Preview(ctx context.Context, k *Grove, id types.UUID, t Tree) (o Outlook, err error) {
	c := k.canopy
	at, err := c.target(ctx, id, t)
	if err != nil {
		return o, err
	}
	s, err := c.stand(ctx, id, t)
	if err != nil {
		return o, err
	}
	conf, err := c.config(ctx, id, s.gitDir, true)
	if err != nil {
		return o, err
	}
	commit := s.head
	tree, index, err := c.sketch(ctx, id, s, conf, nil)
	if err != nil {
		return o, err
	}
	_ = os.Remove(index)
	was, err := c.treesOf(ctx, id, t.Common, s.head)
	if err != nil {
		return o, err
	}
	if o.Uncommitted = was[0] != tree; o.Uncommitted {
		out, err := c.run(ctx, id, call{input: []byte("a preview\n"), env: author(conf), args: []string{"--git-dir=" + s.gitDir, "commit-tree", tree, "-p", s.head}})
		if err != nil {
			return o, err
		}
		commit = plumbing.Line(out)
	}
	target, err := c.config(ctx, id, at.gitDir, true)
	if err != nil {
		return o, err
	}
	if _, o.Dirty = c.clean(ctx, id, at, inert(target, true)); o.Dirty != nil && types.CodeOf(o.Dirty) != types.ErrConflict {
		return o, o.Dirty
	}
	o.Target, o.Before, o.Commit = at.branch, at.head, commit
	var result string
	switch c.mergeBase(ctx, id, t.Common, at.head, commit) {
	case commit:
		o.Already, o.Commit = true, at.head
		return o, ctx.Err()
	case at.head:
		o.Forward = true
		trees, err := c.treesOf(ctx, id, t.Common, commit)
		if err != nil {
			return o, err
		}
		result = trees[0]
	default:
		if result, o.Clash, err = c.mergeTree(ctx, id, at, target, commit); err != nil {
			return o, err
		}
	}
	trees, err := c.treesOf(ctx, id, t.Common, at.head)
	if err != nil {
		return o, err
	}
	own, err := k.storeOf(ctx, id, t.Common, formatOf(result))
	if err != nil {
		return o, err
	}
	_, o.Files, err = diffGit(ctx, gitSource{git: k.git, id: id, store: own, tree: trees[0]}, gitSource{git: k.git, id: id, store: own, tree: result}, DiffOpts{NamesOnly: true})
	o.Files = slices.DeleteFunc(o.Files, func(f FileChange) bool { return slices.Contains(o.Clash, f.Path) }) // their text has marks of the conflict
	return o, err
}
