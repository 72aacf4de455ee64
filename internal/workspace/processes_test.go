package workspace

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rnix/internal/plumbing"
)

// counted is a bench whose git notes each start. The function returns what was started since its last call: the verbs, in their order.
func counted(t *testing.T) (*bench, func() []string) {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("needs git")
	}
	dir := real(t, t.TempDir())
	log := filepath.Join(dir, "log")
	script := "#!/bin/sh\necho \"$*\" >>'" + log + "'\nexec '" + git + "' \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "git"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	b := newBench(t, func(o *Options) {
		for i, kv := range o.Env {
			if path, ok := strings.CutPrefix(kv, "PATH="); ok {
				o.Env[i] = "PATH=" + dir + ":" + path
			}
		}
	})
	return b, func() (verbs []string) {
		t.Helper()
		said, err := os.ReadFile(log)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		_ = os.Remove(log)
		for l := range strings.Lines(string(said)) {
			f := slices.DeleteFunc(strings.Fields(l), func(w string) bool { return w == "-C" || strings.HasPrefix(w, "/") })
			verbs = append(verbs, plumbing.Verb(f))
		}
		return verbs
	}
}

// slack is how many more gits a job may start than on a quiet machine: what was written a moment ago is looked at once more.
const slack = 3

// TestJobsStartFewGits bounds how many processes each job takes: to start one takes longer than most of what git is asked.
func TestJobsStartFewGits(t *testing.T) {
	b, started := counted(t)
	repo := b.repo(map[string]string{"a.txt": "a\n", "sub/b.txt": "b\n"})
	ctx, g := context.Background(), b.grove()
	var tree Tree
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, job := range []struct {
		name string
		most int
		run  func()
	}{
		{"first snapshot", 14, func() { b.take(repo, 0) }},
		{"snapshot without a change", 2, func() { b.take(repo, 1) }},
		{"snapshot with a change", 5, func() { b.write(repo, map[string]string{"a.txt": "changed\n"}); b.take(repo, 2) }},
		{"diff with now", 4, func() {
			list, err := b.List(ctx, b.id)
			must(err)
			_, _, err = b.Diff(ctx, list[0].Ref, Now(b.id, repo), DiffOpts{})
			must(err)
			b.user(repo, "checkout", "-q", "--", ".")
		}},
		{"worktree add", 7, func() { tree = b.plant(repo) }},
		{"look at a worktree", 10, func() { _, err := g.Survey(ctx, b.id, tree); must(err) }},
		{"what no diff has", 5, func() { _, err := g.Unseen(ctx, b.id, tree); must(err) }},
		{"commit", 11, func() {
			b.write(tree.Dir, map[string]string{"new.txt": "new\n"})
			_, made, err := g.CommitWork(ctx, b.id, tree, "work")
			if must(err); !made {
				t.Fatal("nothing was committed")
			}
		}},
		{"merge, forward", 11, func() {
			_, err := g.Merge(ctx, b.id, tree, strings.TrimSpace(b.user(tree.Dir, "rev-parse", "HEAD")), "merge")
			must(err)
		}},
		{"merge of both sides", 14, func() {
			b.write(repo, map[string]string{"mine.txt": "mine\n"})
			b.commit(repo, "mine")
			b.write(tree.Dir, map[string]string{"theirs.txt": "theirs\n"})
			b.commit(tree.Dir, "theirs")
			_, err := g.Merge(ctx, b.id, tree, strings.TrimSpace(b.user(tree.Dir, "rev-parse", "HEAD")), "merge")
			must(err)
		}},
		{"checkout of a fork", 8, func() {
			list, err := b.List(ctx, b.id)
			must(err)
			_, err = b.Checkout(ctx, b.id, list[0].Ref, filepath.Join(b.dir(), "fork"))
			must(err)
		}},
		{"remove", 39, func() { _, err := b.Remove(ctx, tree.Dir); must(err) }},
	} {
		started()
		job.run()
		verbs := started()
		t.Logf("%3d %s: %s", len(verbs), job.name, strings.Join(verbs, " "))
		if len(verbs) > job.most+slack || len(verbs) == 0 {
			t.Errorf("%s: %d gits, %d are enough: %q", job.name, len(verbs), job.most, verbs)
		}
	}
}
