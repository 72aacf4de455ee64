package workspace

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rnix/internal/plumbing"
	"rnix/types"
)

// sketch writes the files of a work tree, but those that git ignores, as a tree, by way of an index of
// its own that begins as a copy of the work tree's: so files that were not changed are taken as git has
// them. What is new is written into a store of ours, or into the repository where into is nil. The caller removes the index.
func (k *canopy) sketch(ctx context.Context, id types.UUID, s standing, conf plumbing.Config, into *store) (tree, index string, err error) {
	env := inert(conf, false)
	dir := filepath.Join(k.base, "scratch")
	if err := mkdir(dir); err != nil {
		return "", "", err
	}
	f, err := os.CreateTemp(dir, id.String()+"-*.index")
	if err != nil {
		return "", "", storage(dir, err)
	}
	index = f.Name()
	if err := f.Close(); err != nil {
		return "", "", storage(index, err)
	}
	warm, err := copyWithTime(filepath.Join(s.gitDir, "index"), index)
	fresh := err == nil && !warm
	if fresh { // git makes one
		err = os.Remove(index)
	}
	fail := func(err error) (string, string, error) {
		_ = os.Remove(index)
		_ = os.Remove(index + ".lock")
		return "", "", err
	}
	if err != nil {
		return fail(storage(index, err))
	}
	env = append(env, "GIT_INDEX_FILE="+index)
	if into != nil {
		env = append(env, "GIT_OBJECT_DIRECTORY="+into.objects(), "GIT_ALTERNATE_OBJECT_DIRECTORIES="+quoteConfig(filepath.Join(s.Common, "objects")))
	}
	// What is in it counts, also what is outside of a sparse checkout.
	do := func(input []byte, args ...string) ([]byte, error) {
		fixed := []string{"--git-dir=" + s.gitDir, "--work-tree=" + s.Dir, "-c", "core.sparseCheckout=false"}
		return k.run(ctx, id, call{dir: s.Dir, user: true, env: env, input: input, args: append(fixed, args...)})
	}
	if fresh {
		_, err = do(nil, "read-tree", s.head)
	} else if _, err = do(nil, "update-index", "-q", "--really-refresh"); types.CodeOf(err) == types.ErrDriver {
		err = nil // files were changed: what it was asked for is that none is taken for unchanged
	}
	if err != nil {
		return fail(err)
	}
	out, err := do(nil, "ls-files", "-s", "-v", "-z")
	if err != nil {
		return fail(err)
	}
	all := plumbing.ParseTracked(out)
	known := submodulesOf(all)
	if skipped := skippedHere(s.Dir, all); len(skipped) > 0 { // git was told that they are not there
		if _, err = do(plumbing.Zlist(skipped), "update-index", "-z", "--no-skip-worktree", "--stdin"); err != nil {
			return fail(err)
		}
	}
	if out, err = do(nil, "ls-files", "-z", "--modified", "--others", "--exclude-standard"); err != nil {
		return fail(err)
	}
	modified := plumbing.Records(out)
	untouched, err := k.untouched(ctx, id, s, modified)
	if err != nil {
		return fail(err)
	}
	if err := tooLarge(s.Dir, without(modified, untouched)); err != nil {
		return fail(err)
	}
	if err := addAll(do, known); err != nil {
		return fail(err)
	}
	if lines := entriesOf(all, untouched); len(lines) > 0 { // as git had them
		if _, err := do(plumbing.Zlist(lines), "update-index", "-z", "--index-info"); err != nil {
			return fail(err)
		}
	}
	// Add has made links of repositories that are no submodules, to commits that nobody else has.
	if out, err = do(nil, "diff-index", "--cached", "-z", "--no-renames", "--diff-filter=A", "--ignore-submodules=none", s.head); err != nil {
		return fail(err)
	}
	var links []string
	for f := plumbing.Records(out); len(f) > 1; f = f[2:] {
		if strings.HasPrefix(f[0], ":000000 160000 ") && !slices.Contains(known, f[1]) {
			links = append(links, f[1])
		}
	}
	if len(links) > 0 {
		if _, err = do(plumbing.Zlist(links), "update-index", "-z", "--force-remove", "--stdin"); err != nil {
			return fail(err)
		}
	}
	out, err = do(nil, "write-tree")
	if err != nil {
		return fail(err)
	}
	return plumbing.Line(out), index, nil
}

// maxSketch is how many bytes the files may have together that were changed or are new in a work tree: git reads and packs all of them.
const maxSketch = 2 << 30

// tooLarge refuses files that together have more than maxSketch bytes.
func tooLarge(dir string, paths []string) error {
	var total, most int64
	var largest string
	for _, p := range paths {
		info, err := os.Lstat(filepath.Join(dir, p))
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if total += info.Size(); info.Size() > most {
			most, largest = info.Size(), p
		}
	}
	if total <= maxSketch {
		return nil
	}
	return types.Errorf(types.ErrConflict, "Worktree", dir, "the new and changed files in it have %d MiB, of which %q has %d, and git is given at most %d: remove what is large, or name it in a .gitignore",
		total>>20, largest, most>>20, maxSketch>>20)
}

// addAll adds the files of a work tree to an index, by do, which runs git there. Git would ask the repository of a submodule what is
// changed there, with that one's own configuration and its programs. So a submodule stays at the commit at which the index has it.
func addAll(do func([]byte, ...string) ([]byte, error), submodules []string) error {
	add := []string{"add", "-A", "--", "."}
	without := func(paths []string) {
		for _, p := range paths {
			add = append(add, ":(top,exclude,literal)"+p)
		}
	}
	without(submodules)
	_, err := do(nil, add...)
	if types.CodeOf(err) != types.ErrDriver {
		return err
	}
	// It fails over a repository that has no commit yet. Its files are its own.
	others, lerr := do(nil, "ls-files", "-z", "--others", "--exclude-standard")
	if lerr != nil {
		return err
	}
	var nested []string
	for _, path := range plumbing.Records(others) {
		if dir, ok := strings.CutSuffix(path, "/"); ok {
			nested = append(nested, dir)
		}
	}
	if len(nested) == 0 {
		return err
	}
	without(nested)
	_, err = do(nil, add...)
	return err
}

// entriesOf returns the lines for "update-index --index-info" that put some of all files of an index into another one.
func entriesOf(all []plumbing.Tracked, some map[string]bool) (lines []string) {
	for _, t := range all {
		if some[t.Path] {
			lines = append(lines, t.Mode+" "+t.OID+" 0\t"+t.Path)
		}
	}
	return lines
}

// skippedHere returns the files that git was told to take for absent, and that are in dir.
func skippedHere(dir string, all []plumbing.Tracked) (paths []string) {
	for _, t := range all {
		if t.Flag != 'S' && t.Flag != 's' {
			continue
		}
		if _, err := os.Lstat(filepath.Join(dir, t.Path)); err == nil {
			paths = append(paths, t.Path)
		}
	}
	return paths
}

// submodulesOf returns the places of an index at which other repositories belong.
func submodulesOf(all []plumbing.Tracked) (paths []string) {
	for _, t := range all {
		if t.Mode == plumbing.Gitlink {
			paths = append(paths, t.Path)
		}
	}
	return paths
}
