package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rnix/types"
)

// What an agent has written is in the diff and in the commit, whatever git was told to overlook.
func TestWorkThatGitOverlooksIsCommitted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		repo func(b *bench, dir string) // before the work tree is made
		work func(b *bench, dir string)
		want map[string]string // in the commit; "" = it is not there
	}{
		"outside of a sparse checkout": {
			repo: func(b *bench, dir string) { b.user(dir, "sparse-checkout", "set", "in") },
			work: func(b *bench, dir string) {
				b.write(dir, map[string]string{"in/f": "changed\n", "out/new": "new\n", "out/f": "made again\n", "else/where": "new\n"})
			},
			want: map[string]string{"in/f": "changed\n", "out/new": "new\n", "out/f": "made again\n", "else/where": "new\n", "out/g": "g\n", "a": "1\n"},
		},
		"outside of a sparse index": {
			repo: func(b *bench, dir string) { b.user(dir, "sparse-checkout", "set", "--cone", "--sparse-index", "in") },
			work: func(b *bench, dir string) { b.write(dir, map[string]string{"out/new": "new\n"}) },
			want: map[string]string{"out/new": "new\n", "out/f": "f\n", "out/g": "g\n", "in/f": "f\n", "a": "1\n"},
		},
		"taken for absent": {
			work: func(b *bench, dir string) {
				b.user(dir, "update-index", "--skip-worktree", "a", "out/g")
				b.write(dir, map[string]string{"a": "changed\n"})
				must(b, os.Remove(filepath.Join(dir, "out/g"))) // this one is: git says that it was not removed
			},
			want: map[string]string{"a": "changed\n", "out/g": "g\n", "out/f": "f\n"},
		},
		"beside a repository without a commit": {
			work: func(b *bench, dir string) {
				b.user(dir, "init", "-q", "new/repo")
				b.write(dir, map[string]string{"new/repo/x": "x\n", "new/y": "y\n", "a": "changed\n"})
			},
			want: map[string]string{"a": "changed\n", "new/y": "y\n", "new/repo": "", "new/repo/x": ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			repo := b.repo(map[string]string{"a": "1\n", "in/f": "f\n", "out/f": "f\n", "out/g": "g\n"})
			if c.repo != nil {
				c.repo(b, repo)
			}
			made, commit := b.grown(repo, func(dir string) { c.work(b, dir) })
			for path, want := range c.want {
				got, err := b.try(repo, "cat-file", "blob", commit+":"+path)
				if want == "" && err == nil || want != "" && got != want {
					t.Errorf("%s is %q, %v; want %q", path, got, err, want)
				}
			}
			if _, err := b.grove().Merge(t.Context(), b.id, made, commit, "m\n"); err != nil {
				t.Error(err)
			}
			if s := b.user(repo, "status", "--porcelain"); strings.TrimSpace(s) != "" {
				t.Errorf("status of the user's work tree is %q", s)
			}
		})
	}
}

// To look at a work tree writes nothing into the repository of the user, and what git wrote elsewhere goes with the next sweep.
func TestALookAtAWorkTreeWritesNothingIntoTheRepository(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	repo := b.repo(map[string]string{"a": "1\n", "in: a/f": "f\n"})
	made := b.plant(repo)
	before := b.objectsOf(filepath.Join(repo, ".git"))
	b.write(made.Dir, map[string]string{"a": "changed\n", "new/file": "new\n"})
	st, err := b.grove().Survey(t.Context(), b.id, made)
	must(b, err)
	if !st.Uncommitted {
		t.Error("nothing is changed there")
	}
	text, changes, err := b.Diff(t.Context(), st.Base, st.Files, DiffOpts{})
	must(b, err)
	if len(changes) != 2 || !strings.Contains(string(text), "+changed") || !strings.Contains(string(text), "+new") {
		t.Errorf("the diff has %v:\n%s", changes, text)
	}
	if after := b.objectsOf(filepath.Join(repo, ".git")); !slices.Equal(before, after) {
		t.Errorf("the repository had the objects %q, and has %q", before, after)
	}
	swept, err := b.Sweep(t.Context())
	must(b, err)
	if swept.Objects == 0 {
		t.Error("nothing was swept")
	}
	commit, _, err := b.grove().CommitWork(t.Context(), b.id, made, "m\n") // in the repository, after all
	must(b, err)
	b.user(repo, "fsck", "--strict")
	if got := b.user(repo, "cat-file", "blob", commit+":new/file"); got != "new\n" {
		t.Errorf("new/file is %q", got)
	}
}

// Git is not given a file that it would read for hours.
func TestAnEnormousFileIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	made := b.plant(b.repo(map[string]string{"a": "1\n", ".gitignore": "*.img\n"}))
	b.write(made.Dir, map[string]string{"disk": "", "ignored.img": ""})
	for _, name := range []string{"disk", "ignored.img"} {
		must(b, os.Truncate(filepath.Join(made.Dir, name), 500<<30))
	}
	_, err := b.grove().Survey(t.Context(), b.id, made)
	if types.CodeOf(err) != types.ErrConflict || !strings.Contains(err.Error(), `"disk"`) {
		t.Errorf("got %v", err)
	}
	if _, _, err = b.grove().CommitWork(t.Context(), b.id, made, "m\n"); types.CodeOf(err) != types.ErrConflict {
		t.Errorf("got %v", err)
	}
	must(b, os.Remove(filepath.Join(made.Dir, "disk")))
	if _, err = b.grove().Survey(t.Context(), b.id, made); err != nil {
		t.Error(err)
	}
}

// A file that is changed in the moment in which its index is written has the size and the times that stand there: only because the index is
// not younger does git compare the bytes.
func TestWorkOfTheMomentInWhichTheIndexIsWrittenIsSeen(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	repo := b.repo(map[string]string{"a": "one\n"})
	b.user(repo, "config", "core.trustctime", "false") // no test can set that time
	tree := b.plant(repo)
	moment := time.Now().Add(-time.Hour).Truncate(time.Second)
	at := func(path string) { must(t, os.Chtimes(path, moment, moment)) }
	file, index := filepath.Join(tree.Dir, "a"), filepath.Join(strings.TrimSpace(b.user(tree.Dir, "rev-parse", "--absolute-git-dir")), "index")
	at(file)
	b.user(tree.Dir, "update-index", "--refresh")
	at(index)
	b.write(tree.Dir, map[string]string{"a": "two\n"})
	at(file)
	commit, _, err := b.grove().CommitWork(t.Context(), b.id, tree, "work\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := b.user(repo, "show", commit+":a"); got != "two\n" {
		t.Errorf("the commit has %q", got)
	}
}
