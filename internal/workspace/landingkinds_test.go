package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnix/internal/soak"
	"rnix/types"
)

// kind is a repository of which something is special: what the user has, and what an agent commits in its work tree.
type kind struct {
	user  func(b *bench) (repo string)
	agent func(b *bench, repo, dir string)
	after func(b *bench, repo string) // what is there when it is merged
	// differs is what "git status" says of a work tree that a merge has left, as git's own merge does.
	differs string
	anyMode bool   // that of its files does not count
	refused string // what the merge says that cannot be; nothing has changed then
}

// library is a repository that others have as a submodule, at its first commit; it returns its commits.
func (b *bench) library() (dir, first, second string) {
	b.Helper()
	dir = b.repo(map[string]string{"lib.txt": "1\n"})
	first = strings.TrimSpace(b.user(dir, "rev-parse", "HEAD"))
	b.write(dir, map[string]string{"lib.txt": "2\n"})
	b.user(dir, "commit", "-qam", "second")
	return dir, first, strings.TrimSpace(b.user(dir, "rev-parse", "HEAD"))
}

// withSubmodule is a repository with a submodule, sub, whose files are there if filled.
func withSubmodule(filled bool) func(b *bench) string {
	return func(b *bench) string {
		lib, first, _ := b.library()
		b.user(b.home, "config", "--global", "protocol.file.allow", "always")
		repo := b.repo(map[string]string{"a.txt": "1\n"})
		b.user(repo, "submodule", "--quiet", "add", lib, "sub")
		b.user(filepath.Join(repo, "sub"), "checkout", "-q", first)
		b.user(repo, "add", "-A")
		b.user(repo, "commit", "-q", "-m", "with a submodule")
		if !filled {
			b.user(repo, "submodule", "--quiet", "deinit", "-f", "sub")
		}
		return repo
	}
}

// bumped commits another commit of the submodule.
func bumped(b *bench, _, dir string) {
	lib := strings.TrimSpace(b.user(dir, "config", "-f", ".gitmodules", "submodule.sub.url"))
	b.user(dir, "update-index", "--cacheinfo", "160000,"+strings.TrimSpace(b.user(lib, "rev-parse", "HEAD"))+",sub")
	b.write(dir, map[string]string{"a.txt": "2\n"})
	b.user(dir, "add", "a.txt")
	b.user(dir, "commit", "-q", "-m", "bumped")
}

// instead commits files in place of a path.
func instead(path string, files map[string]string) func(b *bench, repo, dir string) {
	return func(b *bench, _, dir string) {
		b.user(dir, "rm", "-q", "-r", "--cached", path)
		must(b, os.RemoveAll(filepath.Join(dir, path)))
		b.write(dir, files)
		b.user(dir, "add", "-A")
		b.user(dir, "commit", "-q", "-m", "another "+path)
	}
}

func plainRepo(files map[string]string, settings ...string) func(b *bench) string {
	return func(b *bench) string {
		repo := b.repo(nil)
		for ; len(settings) > 1; settings = settings[2:] {
			b.user(repo, "config", settings[0], settings[1])
		}
		b.write(repo, files)
		b.user(repo, "add", "-A")
		b.user(repo, "commit", "-q", "-m", "first")
		return repo
	}
}

func writes(files map[string]string) func(b *bench, repo, dir string) {
	return func(b *bench, _, dir string) { b.write(dir, files) }
}

func holds(path, text string) func(b *bench, repo string) {
	return func(b *bench, repo string) {
		b.Helper()
		if is := b.read(repo, path); is != text {
			b.Errorf("%s has %q, want %q", path, is, text)
		}
	}
}

func sparse(mode string, dirs ...string) func(b *bench) string {
	return func(b *bench) string {
		repo := plainRepo(map[string]string{"top": "1\n", "in/a": "1\n", "out/b": "1\n", "out/gone": "1\n"})(b)
		b.user(repo, append([]string{"sparse-checkout", "set", mode}, dirs...)...)
		return repo
	}
}

var sparseWork = map[string]string{"top": "2\n", "in/a": "2\n", "in/new": "n\n", "out/b": "2\n", "out/new": "n\n"}

// onlyInside is a sparse checkout after a merge: nothing of what is left out is there.
func onlyInside(b *bench, repo string) {
	b.Helper()
	holds("in/new", "n\n")(b, repo)
	if _, err := os.Lstat(filepath.Join(repo, "out")); err == nil {
		b.Error("what the checkout leaves out is there")
	}
}

var kinds = map[string]kind{
	"plain": {user: plainRepo(map[string]string{"a": "1\n"}), agent: writes(map[string]string{"a": "2\n", "new/b": "b\n"}), after: holds("new/b", "b\n")},

	"a submodule is bumped":                  {user: withSubmodule(false), agent: bumped, after: holds("a.txt", "2\n")},
	"a filled submodule is bumped":           {user: withSubmodule(true), agent: bumped, after: holds("sub/lib.txt", "1\n"), differs: "M sub"},
	"a submodule becomes a file":             {user: withSubmodule(false), agent: instead("sub", map[string]string{"sub": "a file\n"}), after: holds("sub", "a file\n")},
	"a submodule becomes a directory":        {user: withSubmodule(false), agent: instead("sub", map[string]string{"sub/in": "in\n"}), after: holds("sub/in", "in\n")},
	"a submodule goes":                       {user: withSubmodule(false), agent: instead("sub", nil)},
	"a filled submodule goes":                {user: withSubmodule(true), agent: instead("sub", nil), after: holds("sub/lib.txt", "1\n"), differs: "?? sub/"},
	"a filled submodule becomes a file":      {user: withSubmodule(true), agent: instead("sub", map[string]string{"sub": "a file\n"}), refused: "sub"},
	"a filled submodule becomes a directory": {user: withSubmodule(true), agent: instead("sub", map[string]string{"sub/lib.txt": "a file\n"}), refused: "sub"},
	"a file becomes a submodule":             {user: plainRepo(map[string]string{"a": "1\n", "b": "1\n"}), agent: becomesSubmodule("a")},
	"a directory becomes a submodule":        {user: plainRepo(map[string]string{"a/x": "1\n", "a/y": "1\n", "b": "1\n"}), agent: becomesSubmodule("a")},
	"a submodule is added":                   {user: plainRepo(map[string]string{"b": "1\n"}), agent: becomesSubmodule("deep/er")},
	"a file changes beside a submodule":      {user: withSubmodule(true), agent: writes(map[string]string{"a.txt": "2\n"}), after: holds("sub/lib.txt", "1\n")},
	"a file changes, a submodule is ahead":   {user: ahead, agent: writes(map[string]string{"a.txt": "2\n"}), after: holds("sub/lib.txt", "2\n"), differs: "M sub"},

	"sparse, cones":    {user: sparse("--cone", "in"), agent: writes(sparseWork), after: onlyInside},
	"sparse, patterns": {user: sparse("--no-cone", "/top", "/in/"), agent: writes(sparseWork), after: onlyInside},
	"sparse, a small index": {user: func(b *bench) string {
		r := sparse("--cone", "in")(b)
		b.user(r, "sparse-checkout", "set", "--cone", "--sparse-index", "in")
		return r
	}, agent: writes(sparseWork), after: onlyInside},

	"ends of lines":       {user: plainRepo(map[string]string{".gitattributes": "*.txt text eol=crlf\n", "a.txt": "1\r\n"}), agent: writes(map[string]string{"a.txt": "1\r\n2\r\n", "b.txt": "b\r\n"}), after: holds("a.txt", "1\r\n2\r\n")},
	"core.autocrlf":       {user: plainRepo(map[string]string{"a.txt": "1\r\n"}, "core.autocrlf", "true"), agent: writes(map[string]string{"a.txt": "2\r\n", "b.txt": "b\r\n"}), after: holds("b.txt", "b\r\n")},
	"a filter of mine":    {user: filteredByMe, agent: committed(map[string]string{"a.up": "NEW\n", "b.up": "B\n"}), after: holds("b.up", "b\n")},
	"modes":               {user: plainRepo(map[string]string{"run": "#!/bin/sh\n", "link": "x", "file": "f\n"}), agent: modes, after: modesAre},
	"core.fileMode=false": {user: noModes, agent: writes(map[string]string{"a": "2\n", "b": "2\n"}), after: holds("b", "2\n"), anyMode: true},
	"core.symlinks=false": {user: plainRepo(map[string]string{"a": "1\n"}, "core.symlinks", "false"), agent: modes2},
	"a split index":       {user: splitIndex, agent: writes(map[string]string{"a": "2\n", "n": "n\n"}), after: holds("n", "n\n")},
	"an untracked cache":  {user: plainRepo(map[string]string{"a": "1\n"}, "core.untrackedCache", "true"), agent: writes(map[string]string{"a": "2\n", "n": "n\n"}), after: holds("n", "n\n")},
	"index version 4":     {user: plainRepo(map[string]string{"a": "1\n"}, "index.version", "4"), agent: writes(map[string]string{"a": "2\n", "n": "n\n"}), after: holds("n", "n\n")},
	"odd names":           {user: plainRepo(map[string]string{"a\nb": "1\n", "-rf": "1\n", ":(glob)*": "1\n", "\xff\xfe": "1\n", "'q\"": "1\n"}), agent: oddNames, after: holds("-rf", "2\n")},
	"SHA-256":             {user: sha256Repo, agent: writes(map[string]string{"a": "2\n", "n": "n\n"}), after: holds("n", "n\n")},
	"a linked work tree":  {user: linked, agent: writes(map[string]string{"a": "2\n", "n": "n\n"}), after: holds("n", "n\n")},
	"a git directory elsewhere": {user: func(b *bench) string {
		repo := plainRepo(map[string]string{"a": "1\n"})(b)
		b.user(repo, "init", "-q", "--separate-git-dir", filepath.Join(b.dir(), "elsewhere.git"))
		return repo
	}, agent: writes(map[string]string{"a": "2\n", "n": "n\n"}), after: holds("n", "n\n")},
}

func ahead(b *bench) string {
	repo := withSubmodule(true)(b)
	b.user(filepath.Join(repo, "sub"), "checkout", "-q", "main")
	return repo
}

func becomesSubmodule(path string) func(b *bench, repo, dir string) {
	return func(b *bench, repo, dir string) {
		must(b, os.RemoveAll(filepath.Join(dir, path)))
		b.user(dir, "rm", "-q", "-r", "--cached", "--ignore-unmatch", path)
		b.user(dir, "update-index", "--add", "--cacheinfo", "160000,"+strings.TrimSpace(b.user(dir, "rev-parse", "HEAD"))+","+path)
		must(b, os.MkdirAll(filepath.Join(dir, path), 0o755))
		b.user(dir, "commit", "-q", "-m", "a submodule")
	}
}

// committed is work that the agent has committed by itself, with its own git.
func committed(files map[string]string) func(b *bench, repo, dir string) {
	return func(b *bench, _, dir string) {
		b.write(dir, files)
		b.user(dir, "add", "-A")
		b.user(dir, "commit", "-q", "-m", "work")
	}
}

func filteredByMe(b *bench) string {
	b.user(b.home, "config", "--global", "filter.up.clean", "tr a-z A-Z")
	b.user(b.home, "config", "--global", "filter.up.smudge", "tr A-Z a-z")
	return plainRepo(map[string]string{".gitattributes": "*.up filter=up\n", "a.up": "a\n"})(b)
}

func modes(b *bench, _, dir string) {
	must(b, os.Chmod(filepath.Join(dir, "run"), 0o755))
	must(b, os.Remove(filepath.Join(dir, "link")))
	must(b, os.Symlink("file", filepath.Join(dir, "link")))
	must(b, os.Remove(filepath.Join(dir, "file")))
	b.write(dir, map[string]string{"file/x": "x\n"})
	must(b, os.Symlink("/nowhere", filepath.Join(dir, "dangling")))
}

func modesAre(b *bench, repo string) {
	b.Helper()
	info, err := os.Stat(filepath.Join(repo, "run"))
	must(b, err)
	to, err := os.Readlink(filepath.Join(repo, "link"))
	must(b, err)
	if info.Mode()&0o111 == 0 || to != "file" {
		b.Errorf("%v, to %s", info.Mode(), to)
	}
}

func modes2(b *bench, _, dir string) {
	must(b, os.Symlink("a", filepath.Join(dir, "link")))
	b.user(dir, "-c", "core.symlinks=true", "add", "-A")
	b.user(dir, "commit", "-q", "-m", "a link")
}

func noModes(b *bench) string {
	repo := plainRepo(map[string]string{"a": "1\n", "b": "1\n"}, "core.fileMode", "false")(b)
	must(b, os.Chmod(filepath.Join(repo, "b"), 0o755)) // as all files are on some disks
	return repo
}

func splitIndex(b *bench) string {
	repo := plainRepo(map[string]string{"a": "1\n", "b": "1\n"})(b)
	b.user(repo, "update-index", "--split-index")
	b.write(repo, map[string]string{"b": "2\n"})
	b.user(repo, "commit", "-qam", "second")
	return repo
}

func oddNames(b *bench, _, dir string) {
	for _, name := range []string{"a\nb", "-rf", ":(glob)*", "\xff\xfe", "'q\""} {
		b.write(dir, map[string]string{name: "2\n", name + "/../new" + name: "n\n"})
	}
}

func sha256Repo(b *bench) string {
	repo := b.dir()
	b.user(repo, "init", "-q", "-b", "main", "--object-format=sha256")
	b.write(repo, map[string]string{"a": "1\n"})
	b.user(repo, "add", "-A")
	b.user(repo, "commit", "-q", "-m", "first")
	return repo
}

func linked(b *bench) string {
	repo := filepath.Join(b.dir(), "linked")
	b.user(plainRepo(map[string]string{"a": "1\n"})(b), "worktree", "add", "-q", "-b", "side", repo)
	return repo
}

// A merge into each kind of repository that was cut off is taken back, whatever it had written, and the next one does its work.
func TestAMergeIntoEachKindOfRepositoryIsTakenBackAndMade(t *testing.T) {
	t.Parallel()
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			soak.Turn(t)
			b := newBench(t)
			repo := kind.user(b)
			made := b.plant(repo)
			kind.agent(b, repo, made.Dir)
			commit, _, err := b.grove().CommitWork(t.Context(), b.id, made, "work\n")
			must(t, err)
			files := func() map[string]string {
				all := tree(t, repo, ".git")
				for path, is := range all {
					if kind.anyMode {
						all[path] = strings.TrimPrefix(is, "x=true")
						all[path] = strings.TrimPrefix(all[path], "x=false")
					}
				}
				return all
			}
			before, status := files(), b.user(repo, "status", "--porcelain", "--ignored")
			look := func(when string) {
				t.Helper()
				same(t, when, before, files())
				if now := b.user(repo, "status", "--porcelain", "--ignored"); now != status {
					t.Errorf("%s: the status is\n%swant\n%s", when, now, status)
				}
			}
			g := b.grove()
			for _, wrote := range []bool{false, true} {
				if kind.refused != "" { // it does not come so far
					break
				}
				at, err := g.canopy.target(t.Context(), b.id, made)
				must(t, err)
				l := &landing{Version: landingVersion, UUID: b.id, Dir: repo, GitDir: at.gitDir, Common: at.Common, Branch: at.branch, Before: at.head, Commit: commit,
					Lock: "rnix: merge " + types.NewUUID().String() + "\n"}
				must(t, g.landings.begin(l))
				when := "cut off before anything was written"
				if wrote {
					conf, err := g.canopy.config(t.Context(), b.id, at.gitDir, true)
					must(t, err)
					_, err = g.canopy.run(t.Context(), b.id, call{dir: repo, user: true, mine: true, env: l.env(inert(conf, true)), args: l.args("read-tree", "-m", "-u", at.head, commit)})
					must(t, err)
					when = "cut off when all was written"
				}
				if said := b.grove().SettleMerges(t.Context()); len(said) != 1 || !strings.HasSuffix(said[0], "is taken back: nothing was merged") {
					t.Errorf("%s: %q", when, said)
				}
				look(when)
			}
			m, err := g.Merge(t.Context(), b.id, made, commit, "m\n")
			if kind.refused != "" {
				if types.CodeOf(err) != types.ErrConflict || !strings.Contains(err.Error(), kind.refused) || strings.Contains(err.Error(), "error: ") {
					t.Errorf("it is not refused: %v", err)
				}
				look("refused")
				return
			}
			if err != nil || m.Commit != commit {
				t.Fatalf("%+v, %v", m, err)
			}
			if kind.after != nil {
				kind.after(b, repo)
			}
			if is := strings.TrimSpace(b.user(repo, "status", "--porcelain")); is != kind.differs {
				t.Errorf("the status is %q, want %q", is, kind.differs)
			}
			if m, err := b.grove().Merge(t.Context(), b.id, made, commit, "m\n"); err != nil || !m.Already {
				t.Errorf("once more: %+v, %v", m, err)
			}
		})
	}
}
