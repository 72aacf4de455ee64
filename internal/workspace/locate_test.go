package workspace

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What git does not take for a repository is none: an empty .git is what the sandbox of an agent's command line may leave behind, above the
// directories of everybody else.
func TestDirectoryWithoutAHeadIsNoRepository(t *testing.T) {
	for name, c := range map[string]struct {
		make func(dir string) error
		want bool
	}{
		"an empty directory": {func(dir string) error { return os.Mkdir(filepath.Join(dir, ".git"), 0o700) }, false},
		"one with a HEAD": {func(dir string) error {
			return os.MkdirAll(filepath.Join(dir, ".git", "HEAD"), 0o700)
		}, true},
		"a pointer": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, ".git"), []byte("gitdir: /nowhere\n"), 0o600)
		}, true},
	} {
		top := t.TempDir()
		below := filepath.Join(top, "a", "b")
		if err := os.MkdirAll(below, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := c.make(top); err != nil {
			t.Fatal(err)
		}
		_, above := stampOf(filepath.Dir(top)) // where the tests lie may be within a repository
		if _, seems := stampOf(below); seems != (c.want || above) {
			t.Errorf("%s: a repository: %t", name, seems)
		}
	}
}

// Several answers of one git are told apart by their lines: where a path holds some, or something else is called HEAD, git is asked one by one.
func TestWhatOneGitCannotAnswerIsAskedOneByOne(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	top := filepath.Join(b.dir(), "a\ntrue\nsha1\n/b")
	if err := os.MkdirAll(filepath.Dir(top), 0o700); err != nil {
		t.Fatal(err)
	}
	repo := b.repo(map[string]string{"f.txt": "1\n", "sub/g.txt": "2\n"})
	if err := os.Rename(repo, top); err != nil {
		t.Fatal(err)
	}
	b.user(top, "update-ref", "refs/heads/HEAD", "HEAD")
	head := strings.TrimSpace(b.user(top, "rev-parse", "refs/heads/main"))
	s := b.take(filepath.Join(top, "sub"), 0)
	if s.Kind != KindGit || s.Root != top || s.Limited != "" {
		t.Errorf("%+v", s)
	}
	at, err := b.git.checkedOut(context.Background(), b.id, call{dir: top, user: true})
	if want := (checkedOut{filepath.Join(top, ".git"), head, "main"}); err != nil || at != want {
		t.Errorf("%+v, %v; want %+v", at, err, want)
	}
	b.user(top, "checkout", "-q", "--detach", "refs/heads/main")
	if at, err = b.git.checkedOut(context.Background(), b.id, call{dir: top, user: true}); err != nil || at.head != head || at.branch != "" {
		t.Errorf("detached: %+v, %v", at, err)
	}
	b.user(top, "update-ref", "-d", "refs/heads/HEAD")
	b.user(top, "symbolic-ref", "HEAD", "refs/heads/none")
	if at, err = b.git.checkedOut(context.Background(), b.id, call{dir: top, user: true}); err != nil || at.head != "" || at.branch != "none" {
		t.Errorf("a branch without a commit: %+v, %v", at, err)
	}
}

// What the user ignores everywhere is where git looks for it.
func TestTheUsersListOfIgnoredFilesIsTheOneOfGit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := b.repo(map[string]string{"f.txt": "1\n"})
	r := &repo{root: dir, gitDir: filepath.Join(dir, ".git")}
	for _, value := range []string{"~/ignored", "/etc/ignored", "ignored", "~root/ignored", "%(prefix)/ignored", "~", ""} {
		b.user(dir, "config", "--global", "core.excludesFile", value)
		want := strings.TrimSuffix(b.user(dir, "config", "--type=path", "--get", "core.excludesFile"), "\n")
		if value == "" {
			want = filepath.Join(b.home, ".config", "git", "ignore")
		}
		conf, err := b.git.config(context.Background(), b.id, r.gitDir, true)
		if err != nil {
			t.Fatal(err)
		}
		if got := b.trees.excludes(context.Background(), b.id, r, conf); got != want {
			t.Errorf("%q: %q, but git has %q", value, got, want)
		}
	}
}

// TestWhatIsIgnoredTellsNothingOfFilesElsewhere says that a repository, which agents can write, does not let git ignore what a file says that lies elsewhere:
// whether something is ignored can be seen, and so would be each line of every file of the user. What the user ignores everywhere counts, and what the
// repository does by files in it.
func TestWhatIsIgnoredTellsNothingOfFilesElsewhere(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	secret := filepath.Join(b.dir(), "secret")
	must(t, os.WriteFile(secret, []byte("guess\n"), 0o600))
	b.user(b.home, "config", "--global", "core.excludesFile", "~/ignored")
	b.write(b.home, map[string]string{"ignored": "mine\n"})
	link := func(at string) {
		must(t, os.RemoveAll(at))
		must(t, os.Symlink(secret, at))
	}
	for name, c := range map[string]struct {
		write   func(dir string)
		ignored string
	}{
		"nothing":           {func(dir string) {}, "mine"},
		"in the repository": {func(dir string) { b.write(dir, map[string]string{".git/info/exclude": "guess\n"}) }, "guess mine"},
		"a file in it": {func(dir string) {
			b.write(dir, map[string]string{"rules": "guess\n"})
			b.user(dir, "config", "core.excludesFile", "rules")
		}, "guess"},
		"a file elsewhere": {func(dir string) { b.user(dir, "config", "core.excludesFile", secret) }, ""},
		"by a link": {func(dir string) {
			link(filepath.Join(dir, "rules"))
			b.user(dir, "config", "core.excludesFile", filepath.Join(dir, "rules"))
		}, ""},
		"by another name":     {func(dir string) { b.user(dir, "config", "core.excludesFile", "~root/../"+secret) }, ""},
		"a link in its place": {func(dir string) { link(filepath.Join(dir, ".git", "info", "exclude")) }, ""},
	} {
		dir := b.repo(map[string]string{"a": "a\n"})
		c.write(dir)
		for _, sub := range []string{"guess", "mine"} {
			must(t, os.Mkdir(filepath.Join(dir, sub), 0o700))
			p, err := b.locate(context.Background(), b.id, filepath.Join(dir, sub))
			must(t, err)
			if got := p.reason == "git ignores it"; got != strings.Contains(c.ignored, sub) {
				t.Errorf("%s: %s is ignored: %t, %s", name, sub, got, p.reason)
			}
		}
	}
	g := b.grove()
	dir := b.repo(map[string]string{"a": "a\n"})
	b.write(dir, map[string]string{"guess": ""})
	b.user(dir, "config", "core.excludesFile", secret)
	told := func(t *testing.T) {
		if got := b.state(g, dir, nil); !strings.HasSuffix(got, ` Untracked: 1 ("guess").`) {
			t.Errorf("told %q", got)
		}
	}
	told(t)
	t.Run("in a box", func(t *testing.T) {
		confined(t, b.opts.Procs, b.home, b.opts.Dir)
		told(t)
	})
}
