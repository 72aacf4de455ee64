package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnix/internal/plumbing"
	"rnix/internal/proc"
)

// TestNobodyIsToldOfAnotherRepository says that a .git that leads to another repository tells nothing of that one: who wrote it may not be able to read it.
func TestNobodyIsToldOfAnotherRepository(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	g := b.grove()
	private := b.repo(map[string]string{"secret": "s\n"})
	b.user(private, "commit", "-q", "--allow-empty", "-m", "a private subject")
	git := filepath.Join(private, ".git")
	b.user(private, "branch", "-M", "main")
	head := strings.TrimSpace(b.user(private, "rev-parse", "HEAD"))
	packed := b.repo(map[string]string{"secret": "p\n"})
	b.user(packed, "branch", "-M", "main")
	packedHead := strings.TrimSpace(b.user(packed, "rev-parse", "HEAD"))
	b.user(packed, "gc", "-q")
	for name, write := range map[string]func(dir string){
		"file": func(dir string) { b.write(dir, map[string]string{".git": "gitdir: " + git + "\n"}) },
		"link": func(dir string) { must(t, os.Symlink(git, filepath.Join(dir, ".git"))) },
		"commondir": func(dir string) {
			b.user(dir, "init", "-q")
			b.write(dir, map[string]string{".git/commondir": git + "\n"})
		},
		"worktree": func(dir string) { b.user(dir, "init", "-q"); b.user(dir, "config", "core.worktree", private) },
		"objects":  func(dir string) { b.user(dir, "init", "-q"); relink(t, dir, git, "objects") },
		"index":    func(dir string) { b.user(dir, "init", "-q"); relink(t, dir, git, "index") },
		"HEAD":     func(dir string) { b.user(dir, "init", "-q"); relink(t, dir, git, "HEAD") },
		"refs":     func(dir string) { b.user(dir, "init", "-q"); relink(t, dir, git, "refs") },
		"branch": func(dir string) {
			b.user(dir, "init", "-q", "-b", "main")
			borrows(b, dir, private)
			leads(t, dir, private, "refs/heads/main", "refs/heads/main")
		},
		"branches": func(dir string) {
			b.user(dir, "init", "-q")
			leads(t, dir, private, "refs/heads", "refs/heads/p")
			b.write(dir, map[string]string{".git/HEAD": "ref: refs/heads/p/main\n"})
			borrows(b, dir, private)
		},
		"alternate": func(dir string) { // it knows the commit, and learns of it and its files
			b.user(dir, "init", "-q")
			borrows(b, dir, private)
			b.write(dir, map[string]string{".git/HEAD": head + "\n"})
		},
		"other name": func(dir string) {
			b.user(dir, "init", "-q")
			borrows(b, dir, private)
			leads(t, dir, private, "refs/heads", "refs/p")
			b.write(dir, map[string]string{".git/HEAD": "ref: refs/heads/x\n", ".git/refs/heads/x": "ref: refs/p/main\n"})
		},
		"pack": func(dir string) {
			b.user(dir, "init", "-q")
			b.write(dir, map[string]string{".git/HEAD": packedHead + "\n"})
			leads(t, dir, packed, "objects/pack", "objects/pack")
		},
		"pack file": func(dir string) {
			b.user(dir, "init", "-q")
			b.write(dir, map[string]string{".git/HEAD": packedHead + "\n"})
			each(t, packed, "objects/pack", func(name string) { leads(t, dir, packed, name, name) })
		},
		"object directory": func(dir string) {
			b.user(dir, "init", "-q")
			b.write(dir, map[string]string{".git/HEAD": head + "\n"})
			each(t, private, "objects", func(name string) { leads(t, dir, private, name, name) })
		},
		"objects one by one": func(dir string) {
			b.user(dir, "init", "-q")
			b.write(dir, map[string]string{".git/HEAD": head + "\n"})
			each(t, private, "objects", func(name string) {
				each(t, private, name, func(name string) { leads(t, dir, private, name, name) })
			})
		},
		"packed-refs": func(dir string) {
			b.user(dir, "init", "-q")
			borrows(b, dir, packed)
			relink(t, dir, filepath.Join(packed, ".git"), "packed-refs")
		},
		"a work tree's objects": func(dir string) {
			repo := b.repo(map[string]string{"a": "a\n"})
			b.user(repo, "worktree", "add", "-q", "--detach", filepath.Join(dir, "w"))
			must(t, os.Rename(filepath.Join(dir, "w", ".git"), filepath.Join(dir, ".git")))
			b.user(repo, "worktree", "repair", dir)
			borrows(b, repo, private)
			b.user(dir, "reset", "-q", "--soft", head)
		},
		"registered": func(dir string) {
			b.write(dir, map[string]string{".git": "gitdir: " + filepath.Join(dir, "fake") + "\n", "fake/HEAD": "ref: refs/heads/x\n", "fake/commondir": git, "fake/gitdir": filepath.Join(dir, ".git") + "\n"})
		},
	} {
		dir := b.dir()
		write(dir)
		if got := b.state(g, dir, nil); got != "" {
			t.Errorf("%s: told %s", name, got)
		}
	}
	// One who may write only in a directory of a linked work tree has a repository there that claims the whole.
	linked := filepath.Join(b.dir(), "w")
	b.user(b.repo(map[string]string{"a": "a\n", "sub/b": "b\n"}), "worktree", "add", "-q", "--detach", linked)
	b.write(linked, map[string]string{"secret name": ""})
	sub := filepath.Join(linked, "sub")
	b.user(sub, "init", "-q")
	b.user(sub, "config", "core.worktree", linked)
	if got := b.state(g, sub, nil); got != "" {
		t.Errorf("a directory of a work tree is told %s", got)
	}
	// A submodule is a repository of its own, and lies in the one above.
	repo := b.repo(map[string]string{"a": "a\n"})
	b.user(repo, "-c", "protocol.file.allow=always", "submodule", "add", "-q", b.repo(map[string]string{"lib": "l\n"}), "lib")
	if got := b.state(g, filepath.Join(repo, "lib"), nil); !strings.Contains(got, "was checked out at") {
		t.Errorf("of a submodule is told %q", got)
	}
}

// TestARepositoryThatBecomesAnotherIsNotToldOf says that what git has said of a directory before does not count if its repository leads to another one since,
// also without a box.
func TestARepositoryThatBecomesAnotherIsNotToldOf(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	proc.Confine(b.opts.Procs, nil)
	g := b.grove()
	private := b.repo(map[string]string{"secret": "s\n"})
	for name, text := range map[string]string{"plain": "", "with line ends that git leaves out": strings.Repeat("\n", plumbing.MostText)} {
		dir := b.repo(map[string]string{"a": "a\n"})
		if b.state(g, dir, nil) == "" {
			t.Fatal("it is not told of at all")
		}
		b.write(dir, map[string]string{".git/commondir": filepath.Join(private, ".git") + "\n" + text})
		if got := b.state(g, dir, nil); got != "" {
			t.Errorf("%s: told %s", name, got)
		}
		b.write(dir, map[string]string{".git/commondir": "."}) // as a box leaves it to hold the name
		if b.state(g, dir, nil) == "" {
			t.Errorf("%s: what leads to itself is not told of", name)
		}
	}
}

// relink puts a link to a file of another git directory in the place of that of a repository.
func relink(t *testing.T, dir, git, name string) {
	t.Helper()
	path := filepath.Join(dir, ".git", name)
	must(t, os.RemoveAll(path))
	must(t, os.Symlink(filepath.Join(git, name), path))
}

// leads puts a link to a file of another repository into that of a repository.
func leads(t *testing.T, dir, other, from, at string) {
	t.Helper()
	path := filepath.Join(dir, ".git", at)
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.RemoveAll(path))
	must(t, os.Symlink(filepath.Join(other, ".git", from), path))
}

// each names the files of a directory of a repository.
func each(t *testing.T, repo, dir string, do func(name string)) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(repo, ".git", dir))
	must(t, err)
	for _, e := range entries {
		do(filepath.Join(dir, e.Name()))
	}
}

// borrows lets a repository have the objects of another.
func borrows(b *bench, dir, other string) {
	b.Helper()
	b.write(dir, map[string]string{".git/objects/info/alternates": filepath.Join(other, ".git", "objects") + "\n"})
}

// TestAGitThatIsToldOfReadsNothingElse says that the git whose words an agent reads has no right to what is outside of the repository, its work tree and
// the user's settings, however a link came there, also after all was looked at.
func TestAGitThatIsToldOfReadsNothingElse(t *testing.T) {
	b := newBench(t)
	confined(t, b.opts.Procs, b.home, b.opts.Dir)
	dotfiles, private := b.dir(), b.repo(map[string]string{"secret": "s\n"})
	b.write(dotfiles, map[string]string{"config": "[core]\n\texcludesFile = " + filepath.Join(dotfiles, "ignore") + "\n", "ignore": "*.log\n"})
	b.user(b.home, "config", "--global", "include.path", filepath.Join(dotfiles, "config"))
	repo := b.repo(map[string]string{"a": "a\n"})
	b.user(repo, "branch", "-M", "trunk")
	b.write(repo, map[string]string{"a": "a2\n", "x.log": ""})
	g := b.grove()
	if got := b.state(g, repo, nil); !strings.HasSuffix(got, ` Changed and not staged: 1 ("a").`) || !strings.Contains(got, `"trunk"`) {
		t.Errorf("of an honest one is told %q", got)
	}
	tree := b.plant(repo)
	if got := b.state(g, tree.Dir, nil); !strings.Contains(got, "Nothing was changed") {
		t.Errorf("of a work tree is told %q", got)
	}

	p, err := g.survey.locate(t.Context(), b.id, repo)
	must(t, err)
	conf, err := g.git.config(t.Context(), b.id, p.repo.gitDir, true)
	must(t, err)
	at, ok := inPlace(t.Context(), p.repo, conf)
	if !ok {
		t.Fatal("an honest one is not in its place")
	}
	env, reads := alone(g.git, at, conf)
	head := strings.TrimSpace(b.user(private, "rev-parse", "HEAD"))
	borrows(b, repo, private)
	look := call{dir: repo, user: true, env: env, args: []string{"--git-dir=" + p.repo.gitDir, "rev-list", "--max-count=1", head, "--"}}
	if _, err := g.git.run(t.Context(), b.id, look); err != nil {
		t.Errorf("with all rights: %v", err)
	}
	look.reads = reads
	if out, err := g.git.run(t.Context(), b.id, look); err == nil {
		t.Errorf("it has read %q", out)
	}
	for _, name := range []string{".git", ""} { // a link in the place of what was looked at
		path := filepath.Join(repo, name)
		must(t, os.Rename(path, path+".old"))
		must(t, os.Symlink(filepath.Join(private, name), path))
		if out, err := g.git.run(t.Context(), b.id, look); err == nil {
			t.Errorf("by a link at %q it has read %q", name, out)
		}
		must(t, os.Remove(path))
		must(t, os.Rename(path+".old", path))
	}
}
