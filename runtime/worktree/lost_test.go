package worktree

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rnix/internal/soak"
)

// agentAct is something that somebody does in a checkout. text is of nothing else.
type agentAct struct {
	name string
	do   func(w *workplace, text string)
}

// workplace is a checkout in which acts are done. What git refuses is not done.
type workplace struct {
	path, other string
}

// git runs git in a directory of the checkout and says whether it has done it.
func (w *workplace) git(in string, args ...string) (string, bool) {
	c := exec.Command("git", args...)
	c.Dir = filepath.Join(w.path, in)
	out, err := c.Output()
	return strings.TrimSpace(string(out)), err == nil
}

// put writes a file, if nothing is in its way.
func (w *workplace) put(name, text string) {
	path := filepath.Join(w.path, name)
	_ = os.MkdirAll(filepath.Dir(path), 0o777) // then it cannot be written either
	_ = os.WriteFile(path, []byte(text), 0o666)
}

var agentActs = []agentAct{
	{"change", func(w *workplace, text string) { w.put("README.md", text) }},
	{"new file", func(w *workplace, text string) { w.put("dir/"+text, text) }},
	{"ignored file", func(w *workplace, text string) { w.put(text+".log", text) }},
	{"file of an agent", func(w *workplace, text string) { w.put(".claude/"+text+".md", text) }},
	{"file beside the state", func(w *workplace, text string) { w.put(".agent/"+text, text) }},
	{"state", func(w *workplace, text string) {
		w.put(".agent/.gitignore", "*\n")
		w.put(".agent/state.json", "{}")
	}},
	{"file in a submodule", func(w *workplace, text string) { w.put("sub/"+text, text) }},
	{"submodule", func(w *workplace, _ string) { w.git(".", "submodule", "--quiet", "update", "--init") }},
	{"no submodule", func(w *workplace, _ string) { w.git(".", "submodule", "deinit", "-q", "-f", "sub") }},
	{"commit in a submodule", func(w *workplace, text string) {
		if _, err := os.Stat(filepath.Join(w.path, "sub", ".git")); err == nil {
			w.put("sub/"+text, text)
			w.git("sub", "add", "-f", ".")
			w.git("sub", "commit", "-qm", text)
		}
	}},
	{"nested", func(w *workplace, text string) {
		w.git(".", "init", "-q", "nested")
		w.put("nested/"+text, text)
		w.git("nested", "add", ".")
		w.git("nested", "commit", "-qm", text)
	}},
	{"stage", func(w *workplace, text string) { w.put(text, text); w.git(".", "add", text) }},
	{"commit", func(w *workplace, text string) {
		w.put(text, text)
		w.git(".", "add", text)
		w.git(".", "commit", "-qm", text)
	}},
	{"commit all", func(w *workplace, text string) { w.git(".", "add", "-A"); w.git(".", "commit", "-qm", text) }},
	{"clean", func(w *workplace, _ string) {
		w.git(".", "reset", "-q", "--hard")
		w.git(".", "clean", "-ffdxq")
	}},
	{"go back", func(w *workplace, _ string) { w.git(".", "reset", "-q", "--hard", "origin/main") }},
	{"detach", func(w *workplace, _ string) { w.git(".", "checkout", "-q", "--detach") }},
	{"branch", func(w *workplace, text string) { w.git(".", "checkout", "-q", "-b", text, "origin/main") }},
	{"stash", func(w *workplace, _ string) { w.git(".", "stash", "-q") }},
	{"tag", func(w *workplace, text string) { w.git(".", "tag", text) }},
	{"annotated tag", func(w *workplace, text string) { w.git(".", "tag", "-a", "-m", text, text) }},
	{"push tags", func(w *workplace, _ string) { w.git(".", "push", "-q", "origin", "--tags") }},
	{"hide", func(w *workplace, text string) {
		w.put("README.md", text)
		w.git(".", "update-index", "--assume-unchanged", "README.md")
	}},
	{"leave out", func(w *workplace, text string) {
		w.git(".", "update-index", "--skip-worktree", "README.md")
		w.put("README.md", text)
	}},
	{"place of a submodule", func(w *workplace, text string) {
		if c, ok := w.git(".", "rev-parse", "origin/main"); ok {
			w.git(".", "update-index", "--add", "--cacheinfo", "160000,"+c+",place")
			w.git(".", "commit", "-qm", text)
			w.put("place/"+text, text)
		}
	}},
	{"work tree of its own", func(w *workplace, text string) {
		w.git(".", "worktree", "add", "-q", "own-"+text)
		w.put("own-"+text+"/"+text, text)
	}},
	{"delete a branch", func(w *workplace, text string) {
		w.git(".", "checkout", "-q", "-b", text)
		w.git(".", "commit", "-q", "--allow-empty", "-m", text)
		w.git(".", "checkout", "-q", "-")
		w.git(".", "branch", "-q", "-D", text)
	}},
	{"no history", func(w *workplace, text string) { w.git(".", "checkout", "-q", "--orphan", text) }},
	{"merge half-way", func(w *workplace, _ string) { w.git(".", "merge", "-q", "--no-commit", "--no-ff", "origin/main") }},
	{"push", func(w *workplace, _ string) { w.git(".", "push", "-q", "-f", "origin", "HEAD") }},
	{"push all", func(w *workplace, _ string) { w.git(".", "push", "-q", "-f", "origin", "--all") }},
	{"fetch", func(w *workplace, _ string) { w.git(".", "fetch", "-q", "origin") }},
	{"forge", func(w *workplace, _ string) { w.git(".", "update-ref", "refs/remotes/origin/main", "HEAD") }},
	{"fetch from itself", func(w *workplace, text string) { w.git(".", "fetch", "-q", ".", "HEAD:refs/remotes/origin/"+text) }},
	{"gone remote", func(w *workplace, _ string) {
		w.git(".", "remote", "add", "gone", w.other)
		w.git(".", "push", "-q", "gone", "HEAD")
		w.git(".", "config", "--remove-section", "remote.gone")
	}},
	{"own reference", func(w *workplace, text string) {
		if c, ok := w.git(".", "commit-tree", "-p", "HEAD", "-m", text, "HEAD^{tree}"); ok {
			w.git(".", "update-ref", "refs/worktree/"+text, c)
		}
	}},
}

// precious is what somebody would miss: the contents of files, and the commits and tag objects that
// something holds.
type precious struct {
	files   map[string]string // text by path
	objects map[string]string // where they are from
}

// gather finds what is precious in a checkout.
func gather(t *testing.T, path string) precious {
	t.Helper()
	p := precious{map[string]string{}, map[string]string{}}
	err := filepath.WalkDir(path, func(at string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.Name() == ".git" {
			dir := filepath.Dir(at)
			for _, args := range [][]string{{"rev-list", "--all", "--reflog"}, {"rev-list", "HEAD"}, {"for-each-ref", "--format=%(objectname)"}} {
				c := exec.Command("git", append([]string{"-C", dir}, args...)...)
				out, _ := c.Output() // nothing, if it has no commit
				for _, o := range strings.Fields(string(out)) {
					p.objects[o] = dir
				}
			}
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if rel, _ := filepath.Rel(path, at); e.Type().IsRegular() && !isState(path, rel) {
			b, err := os.ReadFile(at)
			if err != nil {
				return err
			}
			p.files[at] = string(b)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// missing returns what of it is in none of some repositories.
func (p precious) missing(t *testing.T, repos ...string) (out []string) {
	t.Helper()
	wanted := map[string]string{}
	for o, from := range p.objects {
		wanted[o] = "object of " + from
	}
	for path, text := range p.files {
		c := exec.Command("git", "hash-object", "--stdin")
		c.Stdin = strings.NewReader(text)
		o, err := c.Output()
		if err != nil {
			t.Fatal(err)
		}
		wanted[strings.TrimSpace(string(o))] = path
	}
	for _, repo := range repos {
		var in bytes.Buffer
		for o := range wanted {
			fmt.Fprintln(&in, o)
		}
		c := exec.Command("git", "-C", repo, "cat-file", "--batch-check")
		c.Stdin = &in
		said, err := c.Output()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(said)) {
			if o, _, _ := strings.Cut(line, " "); !strings.HasSuffix(line, " missing\n") {
				delete(wanted, o)
			}
		}
	}
	for o, what := range wanted {
		out = append(out, what+" ("+o+")")
	}
	return out
}

// Whatever is done in a checkout: what is in it and nowhere else is still there after Teardown.
func TestNoTeardownLosesWhatIsNowhereElse(t *testing.T) {
	t.Parallel()
	runs := soak.Number(t, "RNIX_LOST_RUNS", "checkouts in which things are done at random", 6, 400)
	seed := uint64(soak.Number(t, "RNIX_LOST_SEED", "first seed", 1, 1+int(rand.Int32())))
	for i := range runs {
		t.Run(fmt.Sprint(seed+uint64(i)), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(seed+uint64(i), 7))
			bare, clone := submodules(t)
			m := manager(t, Options{})
			w, url := &workplace{other: second(t, bare)}, bare
			repos := []string{bare, filepath.Join(filepath.Dir(bare), "sub.git")}
			var err error
			switch rnd.IntN(3) {
			case 0:
				w.path, repos = added(t, m, clone, "s"), append(repos, clone)
			case 1:
				url = farAway(bare)
				fallthrough
			case 2:
				w.path, err = m.Provision(t.Context(), ProvisionSpec{SessionID: "s", RepoURL: url, Branch: "agent/s", BaseRef: "main"})
			}
			if err != nil {
				t.Fatal(err)
			}
			var done []string
			for n := range rnd.IntN(7) {
				act := agentActs[rnd.IntN(len(agentActs))]
				done = append(done, act.name)
				act.do(w, fmt.Sprintf("t%d-%d", seed+uint64(i), n))
			}
			had := gather(t, w.path)
			err = m.Teardown(t.Context(), "s")
			if err != nil && !errors.Is(err, ErrParked) {
				t.Fatalf("%q: %v", done, err)
			}
			if err == nil {
				if lost := had.missing(t, repos...); len(lost) > 0 {
					t.Errorf("after %q these are lost: %q", done, lost)
				}
				return
			}
			t.Logf("%q: %v", done, err)
			for path, text := range had.files {
				if b, err := os.ReadFile(path); err != nil || string(b) != text {
					t.Errorf("after %q it was parked, and %s is %q: %v", done, path, b, err)
				}
			}
		})
	}
}
