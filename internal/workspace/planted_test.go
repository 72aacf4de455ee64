package workspace

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnix/types"
)

// trap is a program that notes that it was run.
func (b *bench) trap(end string) (program, note string) {
	b.Helper()
	dir := b.dir()
	program, note = filepath.Join(dir, "trap"), filepath.Join(dir, "ran")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho \"$0 $*\" >>"+note+"\n"+end+"\n"), 0o755); err != nil {
		b.Fatal(err)
	}
	return program, note
}

func notRun(t *testing.T, note, what string) {
	t.Helper()
	if ran, err := os.ReadFile(note); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s ran what was planted: %s", what, ran)
		_ = os.Remove(note)
	}
}

// What is included under a condition is not in the list of a repository's settings while the condition does not hold.
func TestWhatIsIncludedUnderAConditionIsNotRun(t *testing.T) {
	t.Parallel()
	for _, condition := range []string{"gitdir:**/worktrees/**", "onbranch:rnix/**", "gitdir/i:**/WORKTREES/**"} {
		b := newBench(t)
		program, note := b.trap("exec cat")
		repo := b.repo(map[string]string{"a.txt": "a\n", ".gitattributes": "* filter=x merge=y\n"})
		b.write(repo, map[string]string{".git/more": "[filter \"x\"]\n\tclean = " + program + "\n\tsmudge = " + program + "\n[merge \"y\"]\n\tdriver = " + program + "\n"})
		b.user(repo, "config", "includeIf."+condition+".path", "more")
		tree, _, err := b.grove().Plant(context.Background(), b.id, Planting{From: repo, Parent: filepath.Join(b.dir(), "w"), Name: "rnix/x"})
		notRun(t, note, condition+": Plant")
		if err != nil {
			if types.CodeOf(err) != types.ErrPermission || !strings.Contains(err.Error(), "includeif") {
				t.Errorf("%s: %v", condition, err)
			}
			continue
		}
		b.write(tree.Dir, map[string]string{"a.txt": "b\n"})
		if _, err := b.grove().Survey(context.Background(), b.id, tree); err != nil {
			t.Error(err)
		}
		notRun(t, note, condition+": Survey")
		b.write(repo, map[string]string{"a.txt": "c\n"})
		b.user(repo, "-c", "filter.x.clean=cat", "-c", "filter.x.smudge=cat", "commit", "-qam", "c")
		_ = os.Remove(note)
		commit, _, err := b.grove().CommitWork(context.Background(), b.id, tree, "m\n")
		if err != nil {
			t.Fatal(err)
		}
		notRun(t, note, condition+": CommitWork")
		if _, err := b.grove().Merge(context.Background(), b.id, tree, commit, "m\n"); types.CodeOf(err) != types.ErrConflict {
			t.Errorf("%s: %v", condition, err)
		}
		notRun(t, note, condition+": Merge")
		if err := b.grove().Uproot(context.Background(), b.id, filepath.Dir(tree.Dir)); err != nil {
			t.Error(err)
		}
		notRun(t, note, condition+": Uproot")
	}
}

// A repository can say that objects which are missing are had from a server, and how that is asked.
func TestAnObjectThatIsMissingIsNotFetchedByAProgram(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	program, note := b.trap("exit 1")
	repo := b.repo(map[string]string{"a.txt": "a\n", "b.txt": "b\n"})
	tree := b.plant(repo)
	b.write(tree.Dir, map[string]string{"a.txt": "agent\n"})
	commit, _, err := b.grove().CommitWork(context.Background(), b.id, tree, "m\n")
	if err != nil {
		t.Fatal(err)
	}
	b.write(repo, map[string]string{"a.txt": "user\n"})
	b.commit(repo, "user")
	for _, kv := range [][2]string{{"core.repositoryFormatVersion", "1"}, {"extensions.partialClone", "origin"}, {"remote.origin.promisor", "true"},
		{"remote.origin.url", b.dir()}, {"remote.origin.uploadpack", program}, {"protocol.file.allow", "always"}, {"protocol.ext.allow", "always"}, {"protocol.ssh.allow", "always"}} {
		b.user(repo, "config", kv[0], kv[1])
	}
	blob := strings.TrimSpace(b.user(repo, "rev-parse", commit+":a.txt"))
	if err := os.Remove(filepath.Join(repo, ".git", "objects", blob[:2], blob[2:])); err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{b.dir(), "ext::" + program + " x", "ssh://localhost/x"} {
		b.user(repo, "config", "remote.origin.url", url)
		b.user(repo, "config", "core.sshCommand", program)
		b.user(repo, "config", "--replace-all", "core.gitProxy", program)
		if _, err := b.grove().Merge(context.Background(), b.id, tree, commit, "m\n"); err == nil {
			t.Errorf("%s: merged without a file", url)
		}
		notRun(t, note, url+": Merge")
		if _, _, err := b.grove().Plant(context.Background(), types.NewUUID(), Planting{From: repo, Parent: filepath.Join(b.dir(), "w"), Branch: "q" + blob[:4], Base: commit}); err == nil {
			t.Errorf("%s: planted without a file", url)
		}
		notRun(t, note, url+": Plant")
	}
}

func TestABranchThatATagIsCalledLikeIsMergedInto(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	repo := b.repo(map[string]string{"a.txt": "a\n"})
	b.user(repo, "tag", "main")
	tree := b.plant(repo)
	b.user(repo, "tag", "rnix/x")
	if tree.BaseName != "main" {
		t.Errorf("base %q", tree.BaseName)
	}
	b.write(tree.Dir, map[string]string{"a.txt": "agent\n"})
	commit, _, err := b.grove().CommitWork(context.Background(), b.id, tree, "m\n")
	if err != nil {
		t.Fatal(err)
	}
	if st, err := b.grove().Survey(context.Background(), b.id, tree); err != nil || st.Branch != "rnix/x" {
		t.Errorf("%+v, %v", st, err)
	}
	m, err := b.grove().Merge(context.Background(), b.id, tree, commit, "m\n")
	if err != nil || m.Target != "main" || b.read(repo, "a.txt") != "agent\n" {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestABranchThatStandsInTheWayOfTheNameIsGoneAround(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	repo := b.repo(map[string]string{"a.txt": "a\n"})
	b.user(repo, "branch", "rnix")
	if tree := b.plant(repo); tree.Branch != "rnix-x" {
		t.Errorf("%+v", tree)
	}
	deep := b.repo(map[string]string{"a.txt": "a\n"})
	b.user(deep, "branch", "rnix/x/y")
	b.id = types.NewUUID()
	if tree := b.plant(deep); tree.Branch != "rnix/x-2" {
		t.Errorf("%+v", tree)
	}
}
