package workspace

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// situations are the states of a repository in which a snapshot must neither miss nor change anything.
// Each returns the work directory and the files that a snapshot leaves out on purpose.
var situations = map[string]func(b *bench) (dir string, out []string){
	"clean": func(b *bench) (string, []string) { return b.repo(map[string]string{"a": "1\n", "d/b": "2\n"}), nil },
	"dirty, staged and deleted": func(b *bench) (string, []string) {
		dir := b.repo(map[string]string{"a": "1\n", "d/b": "2\n", "c": "3\n", "s": "4\n"})
		b.write(dir, map[string]string{"a": "changed\n", "s": "staged\n"})
		b.user(dir, "add", "s")
		b.write(dir, map[string]string{"s": "and changed\n"})
		must(b, os.Remove(filepath.Join(dir, "c")))
		b.user(dir, "rm", "-q", "--cached", "d/b")
		return dir, nil
	},
	"untracked and ignored": func(b *bench) (string, []string) {
		dir := b.repo(map[string]string{"a": "1\n", ".gitignore": "*.log\nbuild/\n"})
		b.write(dir, map[string]string{"new": "n", "deep/er/new": "n", "x.log": "l", "build/out": "o"})
		return dir, []string{"x.log", "build"}
	},
	"ignored for all repositories, and for this one": func(b *bench) (string, []string) {
		dir := b.repo(map[string]string{"a": "1\n"})
		b.write(b.home, map[string]string{".config/git/ignore": "*.swp\n"})
		b.write(dir, map[string]string{"x.swp": "s", "y.mine": "m", ".git/info/exclude": "*.mine\n"})
		return dir, []string{"x.swp", "y.mine"}
	},
	"tracked although ignored": func(b *bench) (string, []string) {
		dir := b.repo(map[string]string{".gitignore": "*.log\n"})
		b.write(dir, map[string]string{"kept.log": "k", "other.log": "o"})
		b.user(dir, "add", "-f", "kept.log")
		return dir, []string{"other.log"}
	},
	"detached, with commits that no branch has, and a stash": func(b *bench) (string, []string) {
		dir := b.repo(map[string]string{"a": "1\n"})
		b.user(dir, "checkout", "-q", "--detach")
		b.write(dir, map[string]string{"a": "2\n"})
		b.user(dir, "commit", "-q", "-a", "-m", "second")
		b.write(dir, map[string]string{"a": "3\n"})
		b.user(dir, "stash")
		b.write(dir, map[string]string{"a": "4\n"})
		return dir, nil
	},
	"no commit yet": func(b *bench) (string, []string) {
		dir := b.repo(nil)
		b.write(dir, map[string]string{"a": "1\n"})
		return dir, nil
	},
	"nothing at all": func(b *bench) (string, []string) { return b.repo(nil), nil },
	"linked work tree": func(b *bench) (string, []string) {
		dir := filepath.Join(b.dir(), "linked")
		b.user(b.repo(map[string]string{"a": "1\n"}), "worktree", "add", "-q", dir)
		b.write(dir, map[string]string{"a": "2\n", "n": "n"})
		return dir, nil
	},
	"submodule and nested repository": func(b *bench) (string, []string) {
		dir := b.repo(map[string]string{"a": "1\n"})
		b.user(dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", b.repo(map[string]string{"in": "s"}), "sub")
		b.user(dir, "commit", "-q", "-m", "sub")
		b.write(dir, map[string]string{"sub/in": "changed"})
		b.user(b.dir(), "init", "-q", filepath.Join(dir, "nested"))
		b.write(dir, map[string]string{"nested/n": "n"})
		return dir, []string{"sub", "nested"}
	},
	"odd names": func(b *bench) (string, []string) {
		dir := b.repo(map[string]string{"a": "1\n", "line\nend": "x", "tab\tquote\"": "y"})
		b.write(dir, map[string]string{"line\nend": "z", "\xff\xfe": "raw", ":(top)magic": "m", "-option": "o", " blank ": "b", "näme": "u", "back\\slash": "s"})
		return dir, nil
	},
	"links and modes": func(b *bench) (string, []string) {
		dir := b.repo(map[string]string{"a": "1\n", "run": "#!\n", "dir/f": "f", "was": "file"})
		must(b, os.Symlink("a", filepath.Join(dir, "good")))
		must(b, os.Symlink("/nowhere/at/all", filepath.Join(dir, "bad")))
		must(b, os.Symlink("..", filepath.Join(dir, "up")))
		must(b, os.Chmod(filepath.Join(dir, "run"), 0o755))
		must(b, os.RemoveAll(filepath.Join(dir, "dir")))
		b.write(dir, map[string]string{"other/f": "other"})
		must(b, os.Symlink("other", filepath.Join(dir, "dir"))) // dir/f is still to be seen, through the link
		must(b, os.Remove(filepath.Join(dir, "was")))
		b.write(dir, map[string]string{"was/now": "directory"})
		return dir, nil
	},
	"line ends and filters": func(b *bench) (string, []string) {
		dir := b.repo(map[string]string{"plain": "1\n"})
		b.user(dir, "config", "filter.evil.clean", "touch "+filepath.Join(b.home, "ran")+"; cat")
		b.user(dir, "config", "filter.evil.smudge", "tr a-z A-Z")
		b.user(dir, "config", "filter.evil.required", "true")
		b.user(dir, "config", "diff.evil.textconv", "touch "+filepath.Join(b.home, "ran")+"; cat")
		b.user(dir, "config", "core.autocrlf", "input")
		b.write(dir, map[string]string{
			".gitattributes": "* text=auto\n*.id ident\n*.u16 working-tree-encoding=UTF-16LE eol=lf\n*.lf eol=crlf\n",
			"crlf.txt":       "a\r\nb\r\n", "mixed.txt": "a\r\nb\n", "x.id": "$Id: something $\n", "t.u16": "h\x00i\x00", "n.lf": "a\nb\n", "e.ev": "evil\n"})
		b.user(dir, "add", "-A")
		b.user(dir, "commit", "-q", "-m", "converted")
		b.write(dir, map[string]string{".git/info/attributes": "*.ev filter=evil diff=evil\n", "new.txt": "c\r\n", "new.ev": "evil too\n"})
		return dir, nil
	},
	"sparse": func(b *bench) (string, []string) {
		dir := b.repo(map[string]string{"a": "1\n", "in/f": "f", "out/f": "f"})
		b.user(dir, "sparse-checkout", "set", "in")
		b.write(dir, map[string]string{"in/f": "changed"})
		return dir, nil
	},
	"told not to look, split index": func(b *bench) (string, []string) {
		dir := b.repo(map[string]string{"a": "1\n", "b": "2\n"})
		b.user(dir, "update-index", "--split-index")
		b.user(dir, "update-index", "--assume-unchanged", "a")
		b.user(dir, "update-index", "--skip-worktree", "b")
		b.write(dir, map[string]string{"a": "hidden\n", "b": "hidden too\n"})
		return dir, nil
	},
	"index locked": func(b *bench) (string, []string) {
		dir := b.repo(map[string]string{"a": "1\n"})
		b.write(dir, map[string]string{"a": "2\n", ".git/index.lock": ""})
		return dir, nil
	},
	"in the middle of a merge": func(b *bench) (string, []string) {
		dir := b.repo(map[string]string{"a": "1\n"})
		b.user(dir, "checkout", "-q", "-b", "side")
		b.write(dir, map[string]string{"a": "side\n"})
		b.user(dir, "commit", "-q", "-a", "-m", "side")
		b.user(dir, "checkout", "-q", "main")
		b.write(dir, map[string]string{"a": "main\n"})
		b.user(dir, "commit", "-q", "-a", "-m", "main")
		if _, err := b.try(dir, "merge", "side"); err == nil {
			b.Fatal("there is no conflict")
		}
		return dir, nil
	},
	"hooks and monitor that run programs": func(b *bench) (string, []string) {
		dir := b.repo(map[string]string{"a": "1\n"})
		evil := "#!/bin/sh\ntouch " + filepath.Join(b.home, "ran") + "\n"
		for _, h := range []string{"reference-transaction", "post-checkout", "post-index-change", "pre-commit", "fsmonitor"} {
			b.write(dir, map[string]string{".git/hooks/" + h: evil})
			must(b, os.Chmod(filepath.Join(dir, ".git/hooks", h), 0o755))
		}
		b.write(dir, map[string]string{"a": "2\n"})
		return dir, nil
	},
	"objects of another format": func(b *bench) (string, []string) {
		dir := b.dir()
		b.user(dir, "init", "-q", "--object-format=sha256")
		b.write(dir, map[string]string{"a": "1\n"})
		b.user(dir, "add", "-A")
		b.user(dir, "commit", "-q", "-m", "first")
		b.write(dir, map[string]string{"b": "2\n"})
		return dir, nil
	},
}

func TestSnapshotGivesBackTheSameBytesAndTouchesNothingOfTheUser(t *testing.T) {
	t.Parallel()
	for name, make := range situations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			dir, out := make(b)
			_ = os.Remove(filepath.Join(b.home, "ran")) // by the user's own git
			before, files := b.belongings(dir), tree(t, dir)
			_ = os.Remove(filepath.Join(b.home, "ran"))
			s := b.take(dir, 1)
			if s.Kind != KindGit || !s.Changed || s.Root != dir {
				t.Errorf("snapshot is %+v", s)
			}
			if again := b.take(dir, 2); again.Changed || again.ID != s.ID {
				t.Errorf("a second look found %+v after %+v", again, s)
			}
			if _, err := os.Stat(filepath.Join(b.home, "ran")); err == nil {
				t.Error("a program of the repository's was run")
			}
			same(t, "what is the user's", before, b.belongings(dir))
			same(t, "the work tree", files, tree(t, dir))
			want := tree(t, dir, out...)
			got := tree(t, b.restored(b.ref(s, 1)))
			same(t, "what was restored", want, got)
			if s.Files != len(want) && !strings.Contains(s.Limited, "submodule") {
				t.Errorf("%d files are in it, %d were there", s.Files, len(want))
			}
			if nested := strings.Contains(name, "nested"); nested != (s.Limited != "") {
				t.Errorf("it is said of it: %q", s.Limited)
			}
			// The same from a keeper that knows nothing yet.
			later := &bench{t, New(b.opts), b.home, b.id}
			if again := later.take(dir, 3); again.Changed || again.ID != s.ID {
				t.Errorf("after a restart: %+v", again)
			}
			// Git keeps it.
			if !strings.Contains(name, "locked") {
				b.user(dir, "-c", "gc.reflogExpire=now", "gc", "-q", "--prune=now")
				same(t, "what was restored after gc", want, tree(t, b.restored(b.ref(s, 1))))
			}
		})
	}
}

func TestUnchangedTreeMakesNoReference(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := b.repo(map[string]string{"a": "1\n"})
	b.take(dir, 1)
	refs := b.user(dir, "for-each-ref")
	b.take(dir, 2)
	must(t, os.Chtimes(filepath.Join(dir, "a"), time.Now(), time.Now()))
	if s := b.take(dir, 3); s.Changed {
		t.Errorf("a new time is a change: %+v", s)
	}
	if now := b.user(dir, "for-each-ref"); now != refs {
		t.Errorf("references are %s, were %s", now, refs)
	}
	if all, err := b.List(context.Background(), b.id); err != nil || len(all) != 1 || all[0].Step != 1 {
		t.Errorf("records are %+v, %v", all, err)
	}
}

func TestDirectoryWithoutUsableGitIsCopiedAndSaysSo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	bare := b.dir()
	b.user(bare, "init", "-q", "--bare")
	broken := b.repo(map[string]string{"a": "1\n"})
	must(t, os.WriteFile(filepath.Join(broken, ".git", "HEAD"), []byte("junk"), 0o644))
	ignored := b.repo(map[string]string{".gitignore": "sub/\n"})
	b.write(ignored, map[string]string{"sub/a": "1\n"})
	for name, dir := range map[string]string{"bare": bare, "broken": broken, "ignored": filepath.Join(ignored, "sub")} {
		s := b.take(dir, 1)
		if s.Kind != KindCopy || s.ID == "" || (s.Limited == "") != (name == "bare") {
			t.Errorf("%s: %+v", name, s)
		}
		same(t, name, tree(t, dir), tree(t, b.restored(b.ref(s, 1))))
	}
	plain := b.dir()
	b.write(plain, map[string]string{"a": "1\n"})
	if s := b.take(plain, 1); s.Kind != KindCopy || s.Limited != "" {
		t.Errorf("plain: %+v", s)
	}
}

func TestHomeAndRootAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write(b.home, map[string]string{"a": "1\n"})
	for _, dir := range []string{b.home, filepath.Dir(b.home), "/"} {
		if s := b.take(dir, 1); s.ID != "" || !strings.Contains(s.Limited, "nothing is kept") {
			t.Errorf("%s: %+v", dir, s)
		}
	}
	b.user(b.home, "init", "-q")
	if s := b.take(b.home, 1); s.ID != "" || s.Limited == "" {
		t.Errorf("a repository over the home directory: %+v", s)
	}
	b.write(b.home, map[string]string{"proj/a": "1\n"})
	if s := b.take(filepath.Join(b.home, "proj"), 2); s.Kind != KindCopy || s.Files != 1 || !strings.Contains(s.Limited, "home") {
		t.Errorf("below a repository over the home directory: %+v", s)
	}
}

func TestLimitsSayWhatWasLeftOut(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *Options) { o.MaxCopyBytes, o.MaxCopyFiles = 1000, 3 })
	dir, repo := b.dir(), b.repo(map[string]string{"a": "1\n"})
	files := map[string]string{"big": strings.Repeat("x", 2000), "s1": "1", "s2": "2", "s3": "3", "s4": "4"}
	b.write(dir, files)
	b.write(repo, files)
	must(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	s := b.take(dir, 1)
	if s.Files != 3 || !strings.Contains(s.Limited, `"big" and 1 more`) || !strings.Contains(s.Limited, "fifo") {
		t.Errorf("copy: %+v", s)
	}
	if s := b.take(repo, 2); s.Files != 5 || !strings.Contains(s.Limited, `"big"`) {
		t.Errorf("git: %+v", s)
	}
}

func TestSameSizeInTheSameMomentIsSeen(t *testing.T) {
	t.Parallel()
	both(t, map[string]string{"a": "1\n"}, func(t *testing.T, b *bench, dir string) {
		path := filepath.Join(dir, "a")
		s := b.take(dir, 0)
		for step := 1; step < 8; step++ {
			if step == 5 && s.Kind == KindGit { // as if some time had gone by
				for _, sh := range b.remembered().shadows {
					must(t, sh.mark(time.Now().Add(-time.Minute)))
				}
				if s := b.take(dir, step); s.Changed || !b.remembered().shadows[dir].settled {
					t.Errorf("nothing was done: %+v", s)
				}
			}
			must(t, os.WriteFile(path, []byte{byte('1' + step), '\n'}, 0o644))
			if s = b.take(dir, step); !s.Changed {
				t.Errorf("change %d was not seen", step)
			}
			same(t, "restored", tree(t, dir), tree(t, b.restored(b.ref(s, step))))
		}
	})
}

func TestLargeFileIsCopiedWithoutHoldingItInMemory(t *testing.T) {
	b := newBench(t)
	dir := b.dir()
	b.write(dir, map[string]string{"large": strings.Repeat("0123456789abcdef", inMemory/16+1), "again": strings.Repeat("0123456789abcdef", inMemory/16+1)})
	s := b.take(dir, 1)
	same(t, "restored", tree(t, dir), tree(t, b.restored(b.ref(s, 1))))
	if left, err := filepath.Glob(filepath.Join(b.git.base, "objects", largePrefix+"*")); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}
