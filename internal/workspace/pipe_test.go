package workspace

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rnix/internal/plumbing"
	"rnix/types"
)

// A pipe in the place of a file that git opens, which every agent can make, is named, and nothing waits for it.
func TestAPipeAtWhichGitWaitsIsNamed(t *testing.T) {
	ctx := context.Background()
	for _, name := range []string{".gitignore", "sub/deep/.gitignore", "sub/.gitattributes", "nested/.git/HEAD"} {
		for _, job := range []struct {
			name string
			run  func(b *bench, g *Grove, tree Tree, at Ref) error
		}{
			{"snapshot", func(b *bench, g *Grove, tree Tree, _ Ref) error { _, err := b.Take(ctx, tree.Dir, b.id, 1); return err }},
			{"diff with now", func(b *bench, g *Grove, tree Tree, at Ref) error {
				_, _, err := b.Diff(ctx, at, Now(b.id, tree.Dir), DiffOpts{})
				return err
			}},
			{"survey", func(b *bench, g *Grove, tree Tree, _ Ref) error { _, err := g.Survey(ctx, b.id, tree); return err }},
			{"commit", func(b *bench, g *Grove, tree Tree, _ Ref) error {
				_, _, err := g.CommitWork(ctx, b.id, tree, "work")
				return err
			}},
		} {
			t.Run(job.name+" with "+name, func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				repo := b.repo(map[string]string{"a": "a\n", "sub/b": "b\n", "sub/deep/c": "c\n"})
				tree := b.plant(repo)
				at := b.ref(b.take(tree.Dir, 0), 0)
				b.git.patience = 50 * time.Millisecond // on a slow machine the look is taken more often, and finds nothing
				b.write(tree.Dir, map[string]string{"sub/new": "new\n", "a": "changed\n"})
				pipe := filepath.Join(tree.Dir, name)
				if strings.HasPrefix(name, "nested/") {
					if err := os.Mkdir(filepath.Join(tree.Dir, "nested"), 0o700); err != nil {
						t.Fatal(err)
					}
					b.user(filepath.Join(tree.Dir, "nested"), "init", "-q")
					b.write(tree.Dir, map[string]string{"nested/x": "x\n"})
					if err := os.Remove(pipe); err != nil {
						t.Fatal(err)
					}
				}
				if err := syscall.Mkfifo(pipe, 0o600); err != nil {
					t.Fatal(err)
				}
				done := make(chan error, 1)
				go func() { done <- job.run(b, b.grove(), tree, at) }()
				var err error
				select {
				case err = <-done:
				case <-time.After(30 * time.Second):
					t.Error("it waits")
					if f, err := os.OpenFile(pipe, os.O_RDWR, 0); err == nil { // so that it ends
						_ = os.Remove(pipe)
						_ = f.Close()
					}
					<-done
					return
				}
				if err == nil && strings.HasSuffix(name, ".gitattributes") {
					return // of the files of a shadow no attributes are asked
				}
				if types.CodeOf(err) != types.ErrConflict || !strings.Contains(err.Error(), "./"+name+" is a pipe, at which git waits for ever: remove it") {
					t.Errorf("%v", err)
				}
				if err := os.Remove(pipe); err != nil {
					t.Fatal(err)
				}
				if strings.HasPrefix(name, "nested/") {
					if err := os.RemoveAll(filepath.Join(tree.Dir, "nested")); err != nil {
						t.Fatal(err)
					}
				}
				if err := job.run(b, b.grove(), tree, at); err != nil {
					t.Errorf("once it is removed: %v", err)
				}
			})
		}
	}
}

// A pipe in the repository of a linked work tree is named, too: git reads some of that for it, also by way of our own.
func TestAPipeInTheRepositoryOfAWorkTreeIsNamed(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"info/exclude", "objects/info/alternates"} {
		b := newBench(t)
		repo := b.repo(map[string]string{"a": "a\n"})
		tree := b.plant(repo)
		b.take(tree.Dir, 0)
		b.git.patience = 50 * time.Millisecond
		b.write(tree.Dir, map[string]string{"a": "changed\n"})
		pipe := filepath.Join(repo, ".git", name)
		must(t, os.RemoveAll(pipe))
		must(t, os.MkdirAll(filepath.Dir(pipe), 0o700))
		must(t, syscall.Mkfifo(pipe, 0o600))
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		_, err := b.Take(ctx, tree.Dir, b.id, 1)
		cancel()
		if types.CodeOf(err) != types.ErrConflict || !strings.Contains(err.Error(), pipe+" is a pipe") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A git that works for others is not ended for a pipe that it does not open, however long it takes.
func TestASlowGitOfOthersIsNotEndedForAPipe(t *testing.T) {
	t.Parallel()
	if _, err := os.ReadFile("/proc/self/syscall"); err != nil {
		t.Skip("needs a system that says what a process does")
	}
	b := newBench(t)
	dir := b.dir()
	must(t, syscall.Mkfifo(filepath.Join(dir, ".gitignore"), 0o600))
	b.git.program = filepath.Join(b.dir(), "git")
	must(t, os.WriteFile(b.git.program, []byte("#!/bin/sh\nsleep 2\n"), 0o700))
	watched, end := plumbing.Watch(t.Context(), 400*time.Millisecond, func() plumbing.Where { return plumbing.Where{Top: dir} })
	_, err := b.git.runner(b.id)(watched, nil, "git", "-C", dir, "status")
	if pipe := end(); err != nil || pipe != nil {
		t.Errorf("%v, %v", err, pipe)
	}
}
