package worktree

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"rnix/internal/plumbing"
)

// both makes a clone and a work tree, each of a repository of its own.
func both(t *testing.T, repository func(t *testing.T) (bare, clone string), with func(t *testing.T, m *Manager, path string)) {
	for _, strategy := range []CloneStrategy{StrategyWorktreeAdd, StrategyClone} {
		t.Run(strategy.String(), func(t *testing.T) {
			t.Parallel()
			bare, clone := repository(t)
			m := manager(t, Options{})
			if strategy == StrategyWorktreeAdd {
				with(t, m, added(t, m, clone, "s"))
				return
			}
			path, err := m.Provision(t.Context(), ProvisionSpec{SessionID: "s", RepoURL: bare, Branch: "agent/s", BaseRef: "main"})
			if err != nil {
				t.Fatal(err)
			}
			with(t, m, path)
		})
	}
}

// goes tears a checkout down, and fails if it is still there or something of it is.
func goes(t *testing.T, m *Manager, path string) {
	t.Helper()
	if err := m.Teardown(t.Context(), "s"); err != nil || exists(path) {
		t.Fatalf("it stays: %v", err)
	}
	if entries, _ := os.ReadDir(m.ledger.dir); len(entries) > 0 {
		t.Errorf("left: %v", entries)
	}
}

func TestWorkInDirectoriesOfAgentsIsWork(t *testing.T) {
	files := []string{".claude/agents/x.md", ".codex/config.toml", ".pi/x", ".rnix/x", ".scratch/x"}
	both(t, origin, func(t *testing.T, m *Manager, path string) {
		for _, file := range append([]string{".agent/notes.md", ".agent/deep/state.json", ".agent/.gitignore"}, files...) {
			write(t, filepath.Join(path, ".agent", ".gitignore"), "*\n")
			write(t, filepath.Join(path, file), "mine\n")
			mustPark(t, m.Teardown(t.Context(), "s"), `["`+file+`"]`)
			if err := os.Remove(filepath.Join(path, file)); err != nil {
				t.Fatal(err)
			}
		}
		for _, file := range files {
			write(t, filepath.Join(path, file), "mine\n")
		}
		git(t, path, "add", ".")
		if said := git(t, path, "diff", "--cached", "--name-only"); said != strings.Join(files, "\n") {
			t.Errorf("git adds %q", said)
		}
		git(t, path, "commit", "-qm", "mine")
		git(t, path, "push", "-q", "origin", "HEAD")
		goes(t, m, path)
	})
}

// Earlier versions had git overlook these directories, and people may rely on that by now.
func TestWorkThatAnOldExcludeHidesKeepsItsCheckout(t *testing.T) {
	old := func(t *testing.T) (bare, clone string) {
		bare, clone = origin(t)
		write(t, filepath.Join(clone, ".git", "info", "exclude"), "/.agent/\n/.claude/\n")
		return bare, clone
	}
	both(t, old, func(t *testing.T, m *Manager, path string) {
		write(t, filepath.Join(path, ".agent", "state.json"), "{}")
		write(t, filepath.Join(path, ".claude", "commands", "deploy.md"), "mine")
		mustPark(t, m.Teardown(t.Context(), "s"), ".claude/commands/deploy.md")
		if err := os.RemoveAll(filepath.Join(path, ".claude")); err != nil {
			t.Fatal(err)
		}
		goes(t, m, path)
	})
}

func TestTheStateOfASessionKeepsNoCheckout(t *testing.T) {
	for name, ignore := range map[string]string{"hidden": "*\n", "shown": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			both(t, origin, func(t *testing.T, m *Manager, path string) {
				for _, f := range []string{"state.json", "state.json.bad", "state.lock", ".state.json.00112233445566ff.tmp~"} {
					write(t, filepath.Join(path, ".agent", f), "{}")
				}
				if ignore != "" {
					write(t, filepath.Join(path, ".agent", ".gitignore"), ignore)
				}
				goes(t, m, path)
			})
		})
	}
}

func TestWhatIsInThePlaceOfASubmoduleKeepsItsCheckout(t *testing.T) {
	for name, tt := range map[string]struct {
		plant func(t *testing.T, path string)
		want  string
		init  bool
	}{
		"not there":         {func(t *testing.T, path string) {}, "", false},
		"no directory":      {func(t *testing.T, path string) { os.Remove(filepath.Join(path, "sub")) }, "not committed", false},
		"an empty one":      {func(t *testing.T, path string) { os.MkdirAll(filepath.Join(path, "sub", "deep"), 0o777) }, "", false},
		"a file":            {func(t *testing.T, path string) { write(t, filepath.Join(path, "sub", "deep", "new.txt"), "new") }, "sub/deep/new.txt", false},
		"a file in its way": {func(t *testing.T, path string) { os.Remove(path + "/sub"); write(t, filepath.Join(path, "sub"), "new") }, `["sub"]`, false},
		"a repository":      {func(t *testing.T, path string) { git(t, path, "init", "-q", "sub") }, "other repositories", false},
		"clean":             {func(t *testing.T, path string) {}, `other repositories: ["sub"]`, true},
		"a commit":          {func(t *testing.T, path string) { git(t, path+"/sub", "commit", "-q", "--allow-empty", "-m", "x") }, `in the submodule "sub": commits in it that its remote does not have: 1`, true},
		"a change":          {func(t *testing.T, path string) { write(t, path+"/sub/README.md", "n") }, `in the submodule "sub": files are changed`, true},
		"untracked":         {func(t *testing.T, path string) { write(t, path+"/sub/new.txt", "n") }, `in the submodule "sub": files are not under`, true},
		"ignored":           {func(t *testing.T, path string) { write(t, path+"/sub/a.log", "n") }, `in the submodule "sub": git ignores`, true},
		"left behind": {func(t *testing.T, path string) {
			git(t, path+"/sub", "commit", "-q", "--allow-empty", "-m", "x")
			git(t, path, "submodule", "deinit", "-q", "-f", "sub")
		}, "its repository holds others", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			both(t, submodules, func(t *testing.T, m *Manager, path string) {
				if tt.init {
					git(t, path, "submodule", "--quiet", "update", "--init")
				}
				tt.plant(t, path)
				if tt.want == "" {
					goes(t, m, path)
					return
				}
				before := contents(t, path)
				mustPark(t, m.Teardown(t.Context(), "s"), tt.want)
				if contents(t, path) != before {
					t.Error("it was changed")
				}
			})
		})
	}
}

func TestLookSaysWhatIsThereAsData(t *testing.T) {
	t.Parallel()
	bare, clone := submodules(t)
	m := manager(t, Options{})
	path := added(t, m, clone, "s")
	at := Place{Dir: path, GitDir: plumbing.Dir(path), Common: filepath.Join(clone, ".git"), Strategy: StrategyWorktreeAdd}
	base := git(t, path, "rev-parse", "HEAD")
	sub := Submodule{Path: "sub", Recorded: git(t, filepath.Join(filepath.Dir(bare), "sub.git"), "rev-parse", "main")}
	look := func() Holdings {
		t.Helper()
		h, err := Look(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	want := Holdings{Strategy: StrategyWorktreeAdd, Branch: "agent/s", Head: base, Submodules: []Submodule{sub}}
	if h := look(); !reflect.DeepEqual(h, want) || len(h.Reasons()) > 0 {
		t.Errorf("%+v, %q", h, h.Reasons())
	}
	git(t, path, "commit", "-q", "--allow-empty", "-m", "x")
	write(t, filepath.Join(path, "README.md"), "changed\n")
	write(t, filepath.Join(path, "staged"), "staged\n")
	git(t, path, "add", "staged")
	write(t, filepath.Join(path, "dir", "new"), "new\n")
	write(t, filepath.Join(path, "a.log"), "log\n")
	write(t, filepath.Join(path, ".agent", "state.json"), "{}\n")
	write(t, filepath.Join(path, "sub", "file"), "file\n")
	git(t, path, "update-index", "--assume-unchanged", ".gitignore")
	git(t, path, "init", "-q", "nested")
	git(t, path, "update-ref", "refs/worktree/mine", "HEAD")
	git(t, path, "worktree", "lock", "--reason", "mine", path)
	why := "mine"
	head := git(t, path, "rev-parse", "HEAD")
	sub.Files = []string{"sub/file"}
	want = Holdings{Strategy: StrategyWorktreeAdd, Branch: "agent/s", Head: head, Changed: []string{"README.md"}, Staged: []string{"staged"},
		Untracked: []string{"dir/new", "nested/"}, Ignored: []string{"a.log"}, Hidden: []string{".gitignore"}, Submodules: []Submodule{sub}, Nested: []string{"nested"},
		Refs: []string{"refs/worktree/mine"}, Unpublished: []string{head}, Locked: &why, shown: []string{".agent/state.json"}}
	if h := look(); !reflect.DeepEqual(h, want) {
		t.Errorf("%+v\nwant %+v", h, want)
	} else if why := h.Reasons(); len(why) != 9 {
		t.Errorf("%q", why)
	}
}

// Git is not asked more often than before there was anything to be found in submodules.
func TestALookAtAPlainWorkTreeAsksLittle(t *testing.T) {
	t.Parallel()
	_, clone := origin(t)
	path := added(t, manager(t, Options{}), clone, "s")
	f := &fake{}
	f.answer = func(_ int, _ string, args []string) ([]byte, error) {
		out, err := execute(t.Context(), plumbing.Given(nil, plumbing.Online()), "git", args...)
		return append([]byte{}, out...), err
	}
	h, err := Look(t.Context(), Place{Dir: path, GitDir: plumbing.Dir(path), Common: filepath.Join(clone, ".git"), Strategy: StrategyWorktreeAdd, Runner: f.run})
	if err != nil || len(h.Reasons()) > 0 {
		t.Fatalf("%q, %v", h.Reasons(), err)
	}
	if n := len(f.calls); n > 5 {
		t.Errorf("git was asked %d times: %q", n, f.verbs())
	}
}

func TestCheckoutsLeaveTheConfigurationOfTheRepositoryAlone(t *testing.T) {
	t.Parallel()
	_, clone := origin(t)
	own := func() string {
		b, err := os.ReadFile(filepath.Join(clone, ".git", "config"))
		if err != nil {
			t.Fatal(err)
		}
		return string(b) + contents(t, filepath.Join(clone, ".git", "info"))
	}
	refs := func() string { return git(t, clone, "for-each-ref") }
	before, refsBefore := own(), refs()
	m := manager(t, Options{})
	for i := range 10 {
		id := "s" + string(rune('0'+i))
		added(t, m, clone, id)
		if now := own(); now != before {
			t.Fatalf("with a work tree it is\n%s\nand was\n%s", now, before)
		}
		if err := m.Teardown(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	if now := own(); now != before {
		t.Errorf("it is\n%s\nand was\n%s", now, before)
	}
	var rest []string
	for line := range strings.SplitSeq(refs(), "\n") {
		if !strings.Contains(line, "\trefs/heads/agent/s") {
			rest = append(rest, line)
		}
	}
	if now := strings.Join(rest, "\n"); now != refsBefore {
		t.Errorf("the references are\n%s\nand were\n%s", now, refsBefore)
	}
}
