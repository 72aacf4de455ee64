package workspace

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rnix/internal/plumbing"
	"rnix/types"
)

// endangered returns what is on the disk only and in the way of a merge: where the commit has a file that what is checked out has not. Git refuses to
// write over a file that it does not know, but takes one that it ignores for expendable, and all that is in a submodule that becomes a file.
func (k *canopy) endangered(ctx context.Context, id types.UUID, at standing, commit string) ([]string, error) {
	added, known, err := k.both(ctx, id,
		call{args: []string{"--git-dir=" + at.gitDir, "diff-tree", "-r", "-z", "--no-renames", "--raw", "--diff-filter=AT", at.head, commit}},
		call{dir: at.Dir, args: []string{"--git-dir=" + at.gitDir, "--work-tree=" + at.Dir, "ls-files", "-z", "--full-name", "--", ":/"}})
	if err != nil {
		return nil, err
	}
	tracked := map[string]bool{}
	for _, p := range plumbing.Records(known) {
		tracked[p] = true
	}
	var found []string
	for list := plumbing.Records(added); len(list) > 1; list = list[2:] {
		if was, _, _ := strings.Cut(strings.TrimPrefix(list[0], ":"), " "); was == "000000" || was == plumbing.Gitlink {
			found = append(found, inPlaceOf(at.Dir, list[1], tracked)...)
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// inPlaceOf returns what stands where a path is to be written, or where a directory above it is, and is not tracked.
func inPlaceOf(top, path string, tracked map[string]bool) (found []string) {
	for i, c := range path {
		if c != '/' {
			continue
		}
		info, err := os.Lstat(filepath.Join(top, path[:i]))
		switch {
		case err != nil:
			return nil // nothing is there, nor below it
		case info.IsDir():
		case tracked[path[:i]]:
			return nil // it goes with the merge
		default:
			return []string{path[:i]}
		}
	}
	_ = filepath.WalkDir(filepath.Join(top, path), func(p string, d fs.DirEntry, err error) error { // what cannot be read is there all the same
		rel, rerr := filepath.Rel(top, p)
		if rerr != nil || os.IsNotExist(err) {
			return nil
		}
		if rel = filepath.ToSlash(rel); err != nil || !d.IsDir() && !tracked[rel] {
			found = append(found, rel)
		}
		return nil
	})
	return found
}

// refuseEndangered is the error for what endangered has found; nil for nothing.
func refuseEndangered(dir string, files []string) error {
	if len(files) == 0 {
		return nil
	}
	return types.Errorf(types.ErrConflict, "Merge", dir, "%w", &MergeError{Files: files, Why: "nothing was merged, since files would be overwritten that are in no commit (move them away)"})
}

// noPath reports whether git takes a path for none of a work tree: one in a directory called .git, in whatever case.
func noPath(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		if strings.EqualFold(part, ".git") {
			return true
		}
	}
	return false
}
