package workspace

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rnix/types"
)

// told returns what Autoruns says, a line each, with short paths.
func (b *bench) told(dir string, line ...types.UUID) []string {
	b.Helper()
	if line == nil {
		line = []types.UUID{b.id}
	}
	list, known, err := Autoruns(context.Background(), b.Keeper, dir, line)
	must(b, err)
	if !known {
		return []string{"unknown"}
	}
	var out []string
	for _, e := range list {
		_, short, in := strings.Cut(e.File, "/.git/")
		if !in {
			short = e.File
		}
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s runs=%t tree=%t", e.Change, short, strings.Join(e.Settings, ","), e.Runs, e.Tree)))
	}
	return out
}

func (b *bench) hook(path string) {
	b.Helper()
	b.write(filepath.Dir(path), map[string]string{filepath.Base(path): "#!/bin/sh\n"})
	must(b, os.Chmod(path, 0o755))
}

func wantLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("told:\n  %s\nwant:\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func TestWhatOthersRunIsToldOfAWorkTreeWithTheRepositoryAroundIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	repo := b.repo(map[string]string{"a": "1\n", "sub/b": "1\n", ".vscode/tasks.json": "{}", "sub/.mcp.json": "{}"})
	b.hook(repo + "/.git/hooks/pre-commit")
	b.hook(repo + "/.git/hooks/pre-push")
	b.user(repo, "config", "core.editor", "vi")
	tree := b.plant(repo)
	wantLines(t, b.told(tree.Dir))

	b.user(tree.Dir, "config", "branch.x.remote", "origin") // git's own notes
	b.user(tree.Dir, "config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*")
	b.write(repo, map[string]string{".git/hooks/update.sample": "#!/bin/sh\n"})
	wantLines(t, b.told(tree.Dir))

	b.user(tree.Dir, "config", "user.name", "agent")
	wantLines(t, b.told(tree.Dir), "changed config user.name runs=false tree=false")
	b.user(tree.Dir, "config", "core.fsmonitor", "/tmp/x")
	b.user(tree.Dir, "config", "core.editor", "/tmp/vi")
	b.hook(repo + "/.git/hooks/post-merge")
	b.write(repo, map[string]string{".git/hooks/pre-commit": "#!/bin/sh\nx\n", ".git/hooks/helper": "x", ".git/info/attributes": "* filter=x\n"})
	must(t, os.Remove(repo+"/.git/hooks/pre-push"))
	b.write(tree.Dir, map[string]string{".envrc": "x", ".vscode/tasks.json": "{\"x\":1}", ".claude/settings.json": "{}", "sub/a": "2"})
	wantLines(t, b.told(tree.Dir),
		"changed config core.editor,core.fsmonitor,user.name runs=true tree=false",
		"created hooks/helper  runs=false tree=false",
		"created hooks/post-merge  runs=true tree=false",
		"changed hooks/pre-commit  runs=true tree=false",
		"removed hooks/pre-push  runs=false tree=false",
		"created info/attributes  runs=false tree=false",
		"created .claude/settings.json  runs=false tree=true",
		"created .envrc  runs=false tree=true",
		"changed .vscode/tasks.json  runs=false tree=true")

	b.Forget(b.id) // as after a restart
	if n := len(b.told(tree.Dir)); n != 9 {
		t.Errorf("after a restart %d are told, want 9", n)
	}
	must(t, b.Drop(t.Context(), b.id))
	wantLines(t, b.told(tree.Dir), "unknown")
}

func TestAProcessThatBeganBelowTheTopIsToldOfBothPlaces(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	repo := b.repo(map[string]string{"a": "1\n", "sub/.mcp.json": "{}", "other/.mcp.json": "{}"})
	b.take(repo+"/sub", 0)
	b.write(repo, map[string]string{"sub/.mcp.json": "{1}", ".envrc": "x"})
	wantLines(t, b.told(repo+"/sub"), "created .envrc  runs=false tree=true", "changed sub/.mcp.json  runs=false tree=true")
	wantLines(t, b.told(repo+"/other"), "created .envrc  runs=false tree=true", "changed sub/.mcp.json  runs=false tree=true")
	wantLines(t, b.told(b.dir()), "unknown")
}

func TestWhatOthersRunIsToldWithoutARepository(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := b.dir()
	b.write(dir, map[string]string{"a": "1\n", ".envrc": "x"})
	b.take(dir, 0)
	wantLines(t, b.told(dir))
	must(t, os.Remove(dir+"/.envrc"))
	b.write(dir, map[string]string{".mcp.json": "{}"})
	wantLines(t, b.told(dir), "removed .envrc  runs=false tree=true", "created .mcp.json  runs=false tree=true")

	b.user(dir, "init", "-q") // and one that a process makes has nothing to tell of but what it adds
	wantLines(t, b.told(dir), "removed .envrc  runs=false tree=true", "created .mcp.json  runs=false tree=true")
	b.hook(dir + "/.git/hooks/post-checkout")
	b.user(dir, "config", "core.pager", "x")
	wantLines(t, b.told(dir), "changed config core.pager runs=true tree=false", "created hooks/post-checkout  runs=true tree=false",
		"removed .envrc  runs=false tree=true", "created .mcp.json  runs=false tree=true")
}

func TestHooksAreToldWhereTheUsersOwnConfigurationHasThem(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"hooks", "absolute", "home"} {
		b := newBench(t)
		repo := b.repo(map[string]string{"a": "1\n"})
		elsewhere := map[string]string{"hooks": repo + "/hooks", "absolute": b.dir(), "home": b.home + "/githooks"}[where]
		value := map[string]string{"hooks": "hooks", "absolute": elsewhere, "home": "~/githooks"}[where]
		b.write(b.home, map[string]string{".gitconfig": "[core]\n\thooksPath = " + value + "\n"})
		b.hook(elsewhere + "/pre-push")
		b.take(repo, 0)
		b.hook(elsewhere + "/pre-commit")
		b.write(elsewhere, map[string]string{"pre-push": "#!/bin/sh\nx\n"})
		b.hook(repo + "/.git/hooks/post-merge") // git does not look there now
		want := []string{"created hooks/post-merge  runs=false tree=false", "created " + elsewhere + "/pre-commit  runs=true tree=false", "changed " + elsewhere + "/pre-push  runs=true tree=false"}
		if where == "hooks" {
			want = []string{"created hooks/post-merge  runs=false tree=false", "created hooks/pre-commit  runs=true tree=true", "changed hooks/pre-push  runs=true tree=true"}
		}
		wantLines(t, b.told(repo), want...)
	}
}

func TestRepositoriesOfSubmodulesAreLookedAt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	lib := b.repo(map[string]string{"l": "1\n"})
	repo := b.repo(map[string]string{"a": "1\n"})
	add := func(name string) {
		b.user(repo, "-c", "protocol.file.allow=always", "submodule", "-q", "add", "--name", name, lib, filepath.Base(name))
	}
	add("one")
	b.user(repo, "commit", "-qm", "with one")
	b.take(repo, 0)
	add("deep/two") // is filled, as usual
	wantLines(t, b.told(repo), "changed config submodule.deep/two.active,submodule.deep/two.url runs=false tree=false")
	b.user(repo+"/two", "config", "core.fsmonitor", "/tmp/x")
	b.user(repo+"/one", "config", "user.name", "x")
	b.hook(repo + "/.git/modules/one/hooks/post-checkout")
	wantLines(t, b.told(repo), "changed config submodule.deep/two.active,submodule.deep/two.url runs=false tree=false",
		"created modules/deep/two/config core.fsmonitor runs=true tree=false",
		"changed modules/one/config  runs=false tree=false",
		"created modules/one/hooks/post-checkout  runs=true tree=false")
}

func TestAForkIsToldOfWhatItsOriginHasPlanted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	repo := b.repo(map[string]string{"a": "1\n", ".gitignore": ".envrc\n"})
	b.write(repo, map[string]string{".envrc": "mine"})
	b.take(repo, 0)
	b.hook(repo + "/.git/hooks/post-merge")
	b.write(repo, map[string]string{".mcp.json": "{}"})
	s := b.take(repo, 1)
	fork := types.NewUUID()
	dir := filepath.Join(b.dir(), fork.String())
	_, err := b.Checkout(t.Context(), fork, b.ref(s, 1), dir)
	must(t, err)
	b.write(dir, map[string]string{".vscode/x": "1"})
	_, err = b.Take(t.Context(), dir, fork, 1)
	must(t, err)
	wantLines(t, b.told(dir, fork, b.id), "created hooks/post-merge  runs=true tree=false", "created .mcp.json  runs=false tree=true", "created .vscode/x  runs=false tree=true")
	wantLines(t, b.told(dir, fork))
}

func TestAHistoryOfAnEarlierVersionIsNotSaidToHavePlantedAnything(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	repo := b.repo(map[string]string{"a": "1\n"})
	b.take(repo, 0)
	must(t, os.Remove(b.autorunPath(b.id)))
	b.Forget(b.id)
	b.write(repo, map[string]string{"a": "2\n", ".envrc": "x"})
	b.take(repo, 1)
	wantLines(t, b.told(repo), "unknown")
	must(t, os.MkdirAll(filepath.Dir(b.autorunPath(b.id)), 0o700))
	for text, code := range map[string]types.ErrCode{"{": types.ErrStorage, `{"v":99}`: types.ErrVersion} {
		must(t, os.WriteFile(b.autorunPath(b.id), []byte(text), 0o600))
		if _, _, err := Autoruns(t.Context(), b.Keeper, repo, []types.UUID{b.id}); types.CodeOf(err) != code {
			t.Errorf("the note %q: %v, want %v", text, err, code)
		}
	}
}

func TestAHugeStartDirectoryIsLookedAtInPart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := b.dir()
	files := map[string]string{}
	for i := range autorunFiles + 10 {
		files[fmt.Sprintf(".idea/%05d", i)] = "x"
	}
	b.write(dir, files)
	must(t, os.Symlink("/", dir+"/.cursor"))
	b.take(dir, 0)
	must(t, os.Remove(dir+"/.idea/00000"))
	b.write(dir, map[string]string{".idea/00001": "y"})
	wantLines(t, b.told(dir), "changed .idea/00001  runs=false tree=true", fmt.Sprintf("changed .idea/%05d  runs=false tree=true", autorunFiles))
}
