package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnix/types"
)

// grown plants a work tree and lets write work in it; what is there is committed.
func (b *bench) grown(repo string, write func(dir string)) (Tree, string) {
	b.Helper()
	t, _, err := b.grove().Plant(b.Context(), b.id, Planting{From: repo, Parent: filepath.Join(b.dir(), "w"), Name: "rnix/x"})
	must(b, err)
	write(t.Dir)
	commit, _, err := b.grove().CommitWork(b.Context(), b.id, t, "work\n")
	must(b, err)
	return t, commit
}

func TestMergeOverwritesNothingThatGitIgnores(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ rule, mine, theirs string }{
		"a file":                         {"/.env\n", ".env", ".env"},
		"a file for a directory":         {"/deps/\n", "deps/deep/x", "deps"},
		"a directory for a file":         {"/deps\n", "deps", "deps/x"},
		"a file in an unknown directory": {"*.log\n", "loose/z.log", "loose"},
	} {
		for _, diverged := range []bool{false, true} {
			b := newBench(t)
			repo := b.repo(map[string]string{"a": "1\n"})
			tree, commit := b.grown(repo, func(dir string) { b.write(dir, map[string]string{c.theirs: "of an agent\n"}) })
			if diverged {
				b.write(repo, map[string]string{"own": "o\n"})
				b.user(repo, "add", "own")
				b.user(repo, "commit", "-q", "-m", "own")
			}
			b.write(repo, map[string]string{".git/info/exclude": c.rule, c.mine: "mine\n"})
			before, files := b.user(repo, "for-each-ref"), b.user(repo, "status", "--porcelain", "--ignored")
			_, err := b.grove().Merge(t.Context(), b.id, tree, commit, "m\n")
			if types.CodeOf(err) != types.ErrConflict || !strings.Contains(err.Error(), "in no commit") {
				t.Errorf("%s: %v", name, err)
			}
			if text, err := os.ReadFile(filepath.Join(repo, c.mine)); err != nil || string(text) != "mine\n" {
				t.Errorf("%s: %q, %v", name, text, err)
			}
			if b.user(repo, "for-each-ref") != before || b.user(repo, "status", "--porcelain", "--ignored") != files {
				t.Errorf("%s: something has changed", name)
			}
			must(t, os.RemoveAll(filepath.Join(repo, strings.Split(c.mine, "/")[0])))
			if m, err := b.grove().Merge(t.Context(), b.id, tree, commit, "m\n"); err != nil || m.Forward == diverged {
				t.Errorf("%s, without it: %+v, %v", name, m, err)
			}
		}
	}
}

func TestMergeOfADirectoryThatBecomesAFile(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	repo := b.repo(map[string]string{"dir/a": "1\n", "dir/b": "2\n", "file": "3\n"})
	made, commit := b.grown(repo, func(dir string) {
		must(t, os.RemoveAll(filepath.Join(dir, "dir")))
		must(t, os.Remove(filepath.Join(dir, "file")))
		b.write(dir, map[string]string{"dir": "a file now\n", "file/x": "a directory now\n"})
	})
	if _, err := b.grove().Merge(t.Context(), b.id, made, commit, "m\n"); err != nil {
		t.Fatal(err)
	}
	same(t, "the user's", tree(t, made.Dir), tree(t, repo))
}

func TestRemoveKeepsAWorkTreeWithAPathThatGitCannotKeep(t *testing.T) {
	t.Parallel()
	for _, path := range []string{".Git/notes", "deep/.GIT/notes", "GIT~1/notes", ".git /notes"} {
		b := newBench(t)
		repo := b.repo(map[string]string{"a": "1\n"})
		tr, _, err := b.grove().Plant(t.Context(), b.id, Planting{From: repo, Parent: filepath.Join(b.dir(), "w"), Name: "rnix/x"})
		must(t, err)
		b.write(tr.Dir, map[string]string{path: "nowhere else\n"})
		files := tree(t, tr.Dir)
		rep, err := b.Remove(t.Context(), tr.Dir)
		if err == nil {
			same(t, path, files, tree(t, b.restored(rep.Rescue.Ref)))
			continue
		}
		if types.CodeOf(err) != types.ErrConflict {
			t.Errorf("%s: %v", path, err)
		}
		same(t, path, files, tree(t, tr.Dir))
	}
}

func TestRemoveFollowsNoLinkInThePlaceOfAWorkTree(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tr, _, err := b.grove().Plant(t.Context(), b.id, Planting{From: b.repo(map[string]string{"a": "1\n"}), Parent: filepath.Join(b.dir(), "w"), Name: "rnix/x"})
	must(t, err)
	precious := b.dir()
	b.write(precious, map[string]string{"p": "the user's\n"})
	files := tree(t, precious)
	must(t, os.Rename(tr.Dir, tr.Dir+".moved"))
	must(t, os.Symlink(precious, tr.Dir))
	if _, err := b.Remove(t.Context(), tr.Dir); types.CodeOf(err) != types.ErrConflict || !strings.Contains(err.Error(), "remove the link by hand") {
		t.Errorf("%v", err)
	}
	same(t, "the user's", files, tree(t, precious))
	must(t, os.Remove(tr.Dir))
	must(t, os.Rename(tr.Dir+".moved", tr.Dir))
	if _, err := b.Remove(t.Context(), tr.Dir); err != nil {
		t.Error(err)
	}
}

func TestCommitHasNoLinkToARepositoryThatIsNoSubmodule(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	repo := b.repo(map[string]string{"a": "1\n"})
	tree, commit := b.grown(repo, func(dir string) {
		b.user(dir, "init", "-q", "nested")
		b.write(filepath.Join(dir, "nested"), map[string]string{"n": "n"})
		b.user(filepath.Join(dir, "nested"), "add", "n")
		b.user(filepath.Join(dir, "nested"), "commit", "-q", "-m", "n")
		b.write(dir, map[string]string{"new": "n\n"})
	})
	if list := b.user(repo, "ls-tree", "-r", "--name-only", commit); list != "a\nnew\n" {
		t.Errorf("in the commit are %q", list)
	}
	if notes, err := b.grove().Unseen(t.Context(), b.id, tree); err != nil || len(notes) != 1 || !strings.Contains(notes[0], "nested") {
		t.Errorf("%q, %v", notes, err)
	}
}

func TestFilesBehindAFilterAreNotCommittedRaw(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	repo := b.repo(map[string]string{".gitattributes": "*.bin filter=up -text\n", "a": "1\n"})
	tree, _, err := b.grove().Plant(t.Context(), b.id, Planting{From: repo, Parent: filepath.Join(b.dir(), "w"), Name: "rnix/x"})
	must(t, err)
	b.write(tree.Dir, map[string]string{"new.bin": "HELLO\n", "new.txt": "n\n"})
	b.user(repo, "config", "--global", "filter.up.clean", "sha1sum")
	if _, _, err := b.grove().CommitWork(t.Context(), b.id, tree, "m\n"); types.CodeOf(err) != types.ErrConflict || !strings.Contains(err.Error(), "new.bin") || strings.Contains(err.Error(), "new.txt") {
		t.Errorf("%v", err)
	}
	b.user(repo, "config", "--global", "--unset", "filter.up.clean") // a name that says nothing
	if _, made, err := b.grove().CommitWork(t.Context(), b.id, tree, "m\n"); err != nil || !made {
		t.Error(made, err)
	}
}

// What "git lfs install --local" writes, or a line of the project's instructions.
func TestFilesBehindAFilterOfTheRepositoryAreNotCommittedRaw(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, later []string // settings of the repository: when the work tree is made, and then
		refused       bool
	}{
		"as it was":       {before: []string{"clean", "sha1sum"}, refused: true},
		"a process":       {before: []string{"process", "git-lfs filter-process"}, refused: true},
		"required":        {before: []string{"clean", "sha1sum", "required", "true"}, refused: true},
		"one more of it":  {before: []string{"clean", "sha1sum"}, later: []string{"process", "/tmp/planted"}, refused: true},
		"by somebody":     {later: []string{"clean", "sha1sum"}},
		"made another":    {before: []string{"clean", "sha1sum"}, later: []string{"clean", "/tmp/planted"}},
		"only for a name": {before: []string{"smudge", "cat"}},
	} {
		b := newBench(t)
		repo := b.repo(map[string]string{".gitattributes": "*.bin filter=a.b -text\n", "a": "1\n"})
		set := func(pairs []string) {
			for ; len(pairs) > 1; pairs = pairs[2:] {
				b.user(repo, "config", "filter.a.b."+pairs[0], pairs[1])
			}
		}
		set(c.before)
		tree, _, err := b.grove().Plant(t.Context(), b.id, Planting{From: repo, Parent: filepath.Join(b.dir(), "w"), Name: "rnix/x"})
		must(t, err)
		b.write(tree.Dir, map[string]string{"new.bin": "HELLO\n", "new.txt": "n\n"})
		set(c.later)
		_, made, err := b.grove().CommitWork(t.Context(), b.id, tree, "m\n")
		if refused := types.CodeOf(err) == types.ErrConflict && strings.Contains(err.Error(), "new.bin"); refused != c.refused || made == c.refused {
			t.Errorf("%s: %v, %v", name, made, err)
		}
	}
}

func TestRemoveGivesNothingUpUnasked(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := b.repo(map[string]string{".gitignore": "*.log\n"})
	to := forked(b, dir)
	b.write(to, map[string]string{"large.log": noise(smallFile + 1), "small.log": "s"})
	files := tree(t, to)
	if _, err := b.Remove(t.Context(), to); types.CodeOf(err) != types.ErrConflict || !strings.Contains(err.Error(), "large.log") {
		t.Errorf("%v", err)
	}
	same(t, "what is there", files, tree(t, to))
	rep, err := b.Discard(t.Context(), to)
	if err != nil || len(rep.Kept) != 1 || !strings.Contains(rep.Kept[0], "large.log") {
		t.Errorf("%+v, %v", rep, err)
	}
	delete(files, "large.log")
	same(t, "the rescue", files, tree(t, b.restored(rep.Rescue.Ref)))
}
