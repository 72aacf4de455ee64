package workspace

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"rnix/internal/plumbing"
	"rnix/types"
)

// settleLanding finishes a landing of which all files are there, and takes any other one back: what it has written, and the user has not changed
// since, is as it was before. It says what it has done. The caller holds landings.mu.
func (k *landings) settleLanding(ctx context.Context, l *landing) (what string, err error) {
	if _, err := os.Stat(l.GitDir); errors.Is(err, fs.ErrNotExist) {
		return "is forgotten, since the repository is gone", k.end(l)
	}
	ours, free := l.ours()
	if !ours && !free {
		return "", types.Errorf(types.ErrConflict, "Merge", l.Dir, "a merge was cut off there, and cannot be taken back: %s is another git's; if none runs, remove it: rm %s", l.lock(), plumbing.ShellQuote(l.lock()))
	}
	k.unlock(k.notePath(l.GitDir), l.Common, l.GitDir, l.Branch, l.Commit)
	now, err := k.checkedOut(ctx, l.UUID, call{args: []string{"--git-dir=" + l.GitDir}})
	if ctx.Err() != nil {
		return "", err
	}
	if err != nil || now.branch != l.Branch || now.head != l.Before { // the branch followed, or somebody has gone on from there
		return "needs nothing any more", k.end(l)
	}
	if free { // it was removed by hand, or not taken yet
		if err := l.take(); err != nil {
			return "", err
		}
	}
	if err := l.copyIndex(); err != nil {
		return "", err
	}
	conf, err := k.config(ctx, l.UUID, l.GitDir, true)
	if err != nil {
		return "", err
	}
	env := inert(conf, true)
	trees, err := k.treesOf(ctx, l.UUID, l.Common, l.Before, l.Commit)
	if err != nil {
		return "", err
	}
	out, err := k.run(ctx, l.UUID, call{env: l.env(env), args: []string{"--git-dir=" + l.GitDir, "write-tree"}})
	if err == nil && plumbing.Line(out) == trees[1] && trees[0] != trees[1] {
		at := standing{Tree: Tree{Dir: l.Dir, Common: l.Common}, gitDir: l.GitDir, branch: l.Branch, head: l.Before}
		if err := k.follow(ctx, l.UUID, at, l.Commit); err != nil {
			return "", err
		}
		return "is finished", k.end(l)
	}
	kept, err := k.takeBack(ctx, l, env)
	if err != nil {
		return "", err
	}
	what = "is taken back: nothing was merged"
	if len(kept) > 0 {
		what += "; what was changed since stays: " + strings.Join(kept, ", ")
	}
	return what, k.end(l)
}

// unlock removes the locks of the branch that a git of ours has left which was killed: that of the branch names our commit, and that of HEAD, which
// is empty, was made after the note and before this program began.
func (k *landings) unlock(note, common, gitDir, name, commit string) {
	branch, head := filepath.Join(common, "refs", "heads", filepath.FromSlash(name)+".lock"), filepath.Join(gitDir, "HEAD.lock")
	if b, _, err := plumbing.ReadFile(branch, plumbing.MostText); err == nil && (len(b) == 0 && k.left(note, branch) || string(b) == commit+"\n") {
		_ = os.Remove(branch) // that it is there shows when the branch is to follow
	}
	if st, err := os.Lstat(head); err == nil && st.Size() == 0 && k.left(note, head) {
		_ = os.Remove(head)
	}
}

// left reports whether a file was made after a note, and before this program began.
func (k *landings) left(note, path string) bool {
	noted, nerr := os.Lstat(note)
	st, err := os.Lstat(path)
	return nerr == nil && err == nil && !st.ModTime().Before(noted.ModTime()) && st.ModTime().Before(k.opened)
}

// rewritten is a file or a submodule that a landing was to write or to remove.
type rewritten struct {
	path  string
	added bool // the commit before has not got it as a file
	gone  bool // the commit after has not
	// before and after say that the commit has a submodule there, of which git makes the directory, and removes it if it is empty.
	before, after bool
}

// rewrites returns what a landing changes, by what "git diff-tree --raw -z" says of its commits; what was added comes first, since it may stand
// in the way of the others. Of files that both commits have, or only the one before, those that are not touched are left out.
func rewrites(diff []byte, touched map[string]bool) []rewritten {
	var added, others []rewritten
	for list := plumbing.Records(diff); len(list) > 1; list = list[2:] {
		meta := strings.Fields(strings.TrimPrefix(list[0], ":"))
		if len(meta) < 5 || meta[0] == plumbing.Gitlink && meta[1] == plumbing.Gitlink { // its files are no part of a merge
			continue
		}
		none := func(mode string) bool { return mode == "000000" || mode == plumbing.Gitlink }
		f := rewritten{path: list[1], added: none(meta[0]), gone: none(meta[1]), before: meta[0] == plumbing.Gitlink, after: meta[1] == plumbing.Gitlink}
		switch {
		case f.added:
			added = append(added, f)
		case touched[f.path]:
			others = append(others, f)
		}
	}
	return append(added, others...)
}

// takeBack gives the files that a landing has written the content of the commit before, and returns those that it leaves: somebody has changed
// them since. Our index, which is still that of the commit before, is installed.
func (k *landings) takeBack(ctx context.Context, l *landing, env []string) (kept []string, err error) {
	if err := os.Remove(l.index() + ".lock"); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a git that was killed
		return nil, storage(l.index(), err)
	}
	if err := l.copyIndex(); err != nil {
		return nil, err
	}
	env = l.env(env)
	git := func(input []byte, args ...string) ([]byte, error) {
		return k.run(ctx, l.UUID, call{dir: l.Dir, user: true, mine: true, env: env, input: input, args: l.args(args...)})
	}
	diff, err := git(nil, "diff-tree", "-r", "-z", "--no-renames", "--raw", l.Before, l.Commit)
	if err != nil {
		return nil, err
	}
	// Files that are as git has them count as changed until the index says that it has looked.
	if _, err := git(nil, "update-index", "-q", "--refresh"); err != nil && types.CodeOf(err) != types.ErrDriver {
		return nil, err
	}
	changed, err := git(nil, "diff-files", "-z", "--name-only", "--ignore-submodules=all")
	if err != nil {
		return nil, err
	}
	touched := map[string]bool{}
	for _, path := range plumbing.Records(changed) {
		touched[path] = true
	}
	seen := map[string]bool{}
	var back, modules []string
	for _, f := range rewrites(diff, touched) {
		full := filepath.Join(l.Dir, f.path)
		linked := behindLink(l.Dir, filepath.Dir(f.path), seen)
		if f.after && !linked {
			_ = unix.Rmdir(full) // git has put nothing into it
		}
		info, serr := os.Lstat(full)
		is := serr == nil && !linked
		if f.before && !linked {
			modules = append(modules, full)
			is = is && !info.IsDir()
		}
		switch {
		case f.added && (!is || f.gone): // a submodule has no files here
			if !linked && !f.before { // git may have been killed between the directory and the file
				removeEmpty(l.Dir, filepath.Dir(f.path))
			}
			continue
		case linked, is && (info.IsDir() || f.gone || !k.written(ctx, l, env, f.path, full, info)):
			kept = append(kept, f.path)
			continue
		case is:
			if err := os.Remove(full); err != nil {
				return kept, storage(full, err)
			}
		}
		if !f.added {
			back = append(back, f.path)
		} else if !f.before {
			removeEmpty(l.Dir, filepath.Dir(f.path))
		}
	}
	if len(back) > 0 {
		if _, err := git(plumbing.Zlist(back), "checkout-index", "-q", "-f", "-u", "-z", "--stdin"); err != nil {
			return kept, err
		}
	}
	for _, dir := range modules { // unless something else is there
		if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
			if err := os.MkdirAll(dir, 0o777); err != nil {
				return kept, storage(dir, err)
			}
		}
	}
	return kept, l.install()
}

// removeEmpty removes a directory and those above it below root, as long as they are empty or missing. It touches nothing but directories: rmdir
// refuses a file or a link in their place.
func removeEmpty(root, dir string) {
	for ; dir != "."; dir = filepath.Dir(dir) {
		if err := unix.Rmdir(filepath.Join(root, dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return
		}
	}
}

// written reports whether a file is what a landing has written: the content of its commit, or the beginning of that.
func (k *landings) written(ctx context.Context, l *landing, env []string, path, full string, info fs.FileInfo) bool {
	spec := l.Commit + ":" + path
	if info.Mode().Type() == fs.ModeSymlink {
		want, err := k.run(ctx, l.UUID, call{args: []string{"--git-dir=" + l.GitDir, "cat-file", "blob", spec}})
		is, lerr := os.Readlink(full)
		return err == nil && lerr == nil && is == string(want)
	}
	if !info.Mode().IsRegular() {
		return false
	}
	want, err := k.run(ctx, l.UUID, call{dir: l.Dir, user: true, mine: true, env: env, args: l.args("cat-file", "--filters", spec)})
	if err != nil || info.Size() > int64(len(want)) {
		return false
	}
	is, _, err := plumbing.ReadFile(full, int64(len(want)))
	return err == nil && bytes.HasPrefix(want, is)
}
