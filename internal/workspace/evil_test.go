package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rnix/internal/gitbox"
	"rnix/internal/proc"
	"rnix/internal/sandbox"
)

// evil is a repository of which everything that can name a program names one that leaves a mark.
type evil struct {
	*bench
	repo, marks        string
	first, next, other string // commits
}

// hooks are all that one of the calls of the test runs if nothing keeps it from doing so, and some more.
var hooks = strings.Fields(`applypatch-msg commit-msg fsmonitor-watchman post-applypatch post-checkout post-commit post-index-change post-merge
	post-rewrite pre-applypatch pre-auto-gc pre-commit pre-merge-commit pre-push pre-rebase prepare-commit-msg reference-transaction`)

// What git makes of the repository of an evil, once: 70 are wanted.
var (
	evilOnce                       sync.Once
	evilFirst, evilOther, evilNext string
	evilGit                        map[string][]byte // its directory .git, by path
)

func newEvil(t *testing.T) *evil {
	t.Helper()
	b := newBench(t)
	e := &evil{bench: b, marks: b.dir()}
	e.repo = b.repo(map[string]string{"a.txt": "a\n", "b.txt": "b\n", "0": "0\n", ".gitattributes": "*.txt filter=x diff=x merge=x\nb.txt filter=long\n"})
	evilOnce.Do(func() { // the others get a copy
		evilFirst = strings.TrimSpace(b.user(e.repo, "rev-parse", "HEAD"))
		b.user(e.repo, "checkout", "-q", "-b", "other")
		b.write(e.repo, map[string]string{"a.txt": "other\n"})
		evilOther = b.commit(e.repo, "other")
		b.user(e.repo, "checkout", "-q", "-B", "next", evilFirst)
		b.write(e.repo, map[string]string{"a.txt": "next\n"})
		evilNext = b.commit(e.repo, "next")
		evilGit = map[string][]byte{}
		git := filepath.Join(e.repo, ".git")
		must(t, filepath.WalkDir(git, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				evilGit[strings.TrimPrefix(path, git)], err = os.ReadFile(path)
			}
			return err
		}))
	})
	e.first, e.other, e.next = evilFirst, evilOther, evilNext
	must(t, os.RemoveAll(filepath.Join(e.repo, ".git")))
	for path, data := range evilGit {
		path = filepath.Join(e.repo, ".git", path)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, data, 0o644))
	}
	work, git := filepath.Join(e.repo, "program"), filepath.Join(e.repo, ".git", "program")
	for _, path := range []string{work, git, filepath.Join(e.marks, "program")} {
		text := "#!/bin/sh\necho \"$0 $*\" >>" + e.marks + "/$1.ran\ncase $1 in clean|smudge|textconv) exec cat ;; esac\nexit 1\n"
		must(t, os.WriteFile(path, []byte(text), 0o755))
	}
	for _, h := range hooks {
		text := "#!/bin/sh\necho ran >>" + e.marks + "/hook.ran\n"
		must(t, os.WriteFile(filepath.Join(e.repo, ".git", "hooks", h), []byte(text), 0o755))
	}
	direct := filepath.Join(e.marks, "program") // of what is started without a shell
	config := ""
	for _, kv := range [][2]string{
		{"filter.x.clean", work + " clean"}, {"filter.x.smudge", git + " smudge"}, {"filter.x.required", "true"},
		{"filter.long.process", direct + " process"}, {"filter.long.required", "true"},
		{"core.fsmonitor", work + " fsmonitor; true"}, {"diff.external", git + " external"}, {"diff.x.textconv", work + " textconv"}, {"diff.x.command", git + " command"},
		{"merge.x.driver", work + " merge %A"}, {"core.alternateRefsCommand", work + " alternates"}, {"credential.helper", "!" + work + " credential"},
		{"core.sshCommand", work + " ssh"}, {"remote.origin.uploadpack", work + " uploadpack"}, {"remote.origin.url", e.repo},
		{"commit.gpgSign", "true"}, {"gpg.program", direct}, {"alias.evil", "!" + work + " alias"},
		{"user.name", "u"}, {"user.email", "u@x"}, {"core.editor", work + " editor"}, {"core.pager", work + " pager"}, {"protocol.ext.allow", "always"}, {"remote.ext.url", "ext::" + work + " ext"},
	} {
		dot := strings.LastIndexByte(kv[0], '.')
		section, sub, _ := strings.Cut(kv[0][:dot], ".")
		if sub != "" {
			section += fmt.Sprintf(" %q", sub)
		}
		config += fmt.Sprintf("[%s]\n\t%s = %q\n", section, kv[0][dot+1:], kv[1])
	}
	file, err := os.OpenFile(filepath.Join(e.repo, ".git", "config"), os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = file.WriteString(config)
	must(t, errors.Join(err, file.Close()))
	b.write(e.repo, map[string]string{"a.txt": "changed\n", "b.txt": "changed\n", "0": "changed\n"})
	_ = os.RemoveAll(filepath.Join(e.marks, "hook.ran")) // of what made it
	for _, path := range e.ran() {
		must(t, os.Remove(filepath.Join(e.marks, path+".ran")))
	}
	return e
}

// ran returns what has left a mark, sorted.
func (e *evil) ran() (names []string) {
	entries, err := os.ReadDir(e.marks)
	must(e, err)
	for _, entry := range entries {
		if name, ok := strings.CutSuffix(entry.Name(), ".ran"); ok {
			names = append(names, name)
		}
	}
	return names
}

// bare runs the git of a call without a setting that switches anything off, and returns its exit status.
func (e *evil) bare(c call) int {
	e.Helper()
	var out bytes.Buffer
	child, err := e.git.procs.Start(context.Background(), proc.Spec{Kind: proc.KindGit, Path: e.git.program, Args: c.args, Dir: c.dir, Input: c.input,
		Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + e.home}, Stdout: &out, Stderr: &out, Timeout: time.Minute, Git: gitCall(e.git.base, e.git.env, c)})
	must(e, err)
	exit := child.Wait()
	if exit.Err != nil {
		e.Fatal(exit.Err)
	}
	e.Logf("git %s: exit status %d: %.300s", strings.Join(c.args, " "), exit.Code, out.String())
	return exit.Code
}

// evilCalls are calls that run what a repository names, if nothing keeps them from it.
func (e *evil) evilCalls() map[string]call {
	at := func(args ...string) call { return call{dir: e.repo, user: true, args: args} }
	return map[string]call{
		"status": at("status", "--porcelain"), "refresh": at("update-index", "-q", "--refresh"), "add": at("update-index", "--add", "a.txt", "b.txt"), "files": at("ls-files", "-m", "-o"),
		"diff-files": at("diff-files", "-p", "--ext-diff", "--textconv"), "diff": at("-c", "filter.long.process=", "-c", "filter.long.required=false", "diff", "--ext-diff"), "textconv": at("cat-file", "--textconv", "HEAD:a.txt"),
		"filters": at("cat-file", "--filters", "HEAD:a.txt"), "write": at("checkout-index", "-a", "-f"), "read": at("read-tree", "-m", "-u", e.next, e.first),
		"merge-tree": at("merge-tree", "--write-tree", e.next, e.other), "commit": at("commit-tree", "-S", "-m", "m", e.next+"^{tree}"), "alias": at("evil"),
		"ref": at("update-ref", "refs/heads/new", e.next), "missing": at("-c", "remote.origin.promisor=true", "cat-file", "-e", strings.Repeat("1", len(e.next))), "fetch": at("fetch", "origin"), "ext": at("fetch", "ext"),
		"worktree": at("worktree", "add", "--detach", "--", filepath.Join(e.opts.Dir, "tree"), e.next), "credential": {dir: e.repo, user: true, input: []byte("protocol=https\nhost=x\n\n"), args: []string{"credential", "fill"}},
		"own git": at("-c", "filter.x.clean="+e.git.program+" --version", "status"),
	}
}

// What a repository names is not run even if no setting switches it off: the box alone keeps git from it.
func TestBoxAloneKeepsGitFromRunningAnything(t *testing.T) {
	t.Parallel()
	plain := newEvil(t)
	ran := map[string]bool{}
	for name := range plain.evilCalls() {
		e := newEvil(t)
		proc.Confine(e.opts.Procs, nil) // also where all other tests confine it
		e.bare(e.evilCalls()[name])
		for _, what := range e.ran() {
			ran[what] = true
		}
	}
	for _, what := range []string{"alias", "clean", "credential", "ext", "external", "fsmonitor", "hook", "merge", "process", "smudge", "textconv", "uploadpack", "command", "--status-fd=2"} {
		if !ran[what] {
			t.Errorf("the test does not see that %s is run: %v", what, slices.Sorted(maps.Keys(ran)))
		}
	}
	var boxes *gitbox.Boxes
	for name := range plain.evilCalls() {
		for _, starts := range []sandbox.Starts{sandbox.StartsNothing, sandbox.StartsGit} {
			e := newEvil(t)
			boxes = confined(t, e.opts.Procs, e.home, e.opts.Dir)
			inner := boxes.Box
			proc.Confine(e.opts.Procs, func(spec proc.Spec) (proc.Box, error) {
				if spec.Git != nil {
					spec.Git.Starts = max(spec.Git.Starts, starts) // as much as a call of its kind could have
				}
				return inner(spec)
			})
			e.bare(e.evilCalls()[name])
			if ran := e.ran(); len(ran) > 0 {
				t.Errorf("%s, starts %d: ran %v", name, starts, ran)
			}
		}
	}
	if err := boxes.Reason(); err != nil {
		t.Error(err)
	}
}

// With the user's own filters, programs of the system run, but none of a place where agents write.
func TestOwnFiltersRunAndProgramsOfAgentsDoNot(t *testing.T) {
	t.Parallel()
	e := newEvil(t)
	confined(t, e.opts.Procs, e.home, e.opts.Dir)
	for _, kv := range [][2]string{{"core.fsmonitor", "false"}, {"filter.x.clean", "tr a-z A-Z"}, {"filter.x.smudge", "cat"}, {"filter.long.process", ""}, {"filter.long.required", "false"}} {
		e.user(e.repo, "config", kv[0], kv[1])
	}
	add := call{dir: e.repo, user: true, mine: true, args: []string{"update-index", "a.txt"}}
	if code := e.bare(add); code != 0 {
		t.Fatal("a filter of the system does not run")
	}
	if got := e.user(e.repo, "cat-file", "blob", ":a.txt"); got != "CHANGED\n" {
		t.Errorf("%q", got)
	}
	for _, program := range []string{filepath.Join(e.repo, "program"), filepath.Join(e.repo, ".git", "program"), filepath.Join(e.marks, "program")} {
		e.write(e.repo, map[string]string{"a.txt": fmt.Sprintln(program)})
		e.user(e.repo, "config", "filter.x.clean", program+" clean")
		if code := e.bare(add); code == 0 || len(e.ran()) > 0 {
			t.Errorf("%s: exit status %d, ran %v", program, code, e.ran())
		}
	}
}

// A git that only looks writes nothing, and one that writes does so only where its call works.
func TestGitWritesOnlyWhereItsCallWorks(t *testing.T) {
	t.Parallel()
	e := newEvil(t)
	confined(t, e.opts.Procs, e.home, e.opts.Dir)
	outside := filepath.Join(e.dir(), "x")
	for _, path := range []string{outside, filepath.Join(e.repo, "x"), filepath.Join(e.repo, ".git", "x"), filepath.Join(e.home, "x")} {
		if code := e.bare(call{dir: e.repo, args: []string{"rev-list", "--disk-usage", "HEAD"}}); code != 0 {
			t.Fatal("it does not read")
		}
		code := e.bare(call{dir: e.repo, args: []string{"diff-tree", "--output=" + path, "-p", "--no-ext-diff", "--no-textconv", e.first, e.next}})
		if _, err := os.Lstat(path); code == 0 || !os.IsNotExist(err) {
			t.Errorf("%s was written: exit status %d, %v", path, code, err)
		}
	}
	if code := e.bare(call{dir: e.repo, args: []string{"update-ref", "refs/tags/x", e.next}}); code == 0 {
		t.Error("it is to fail at the hook, which it cannot run") // reference-transaction
	}
	e.user(e.repo, "config", "core.hooksPath", "/dev/null")
	if code := e.bare(call{dir: e.repo, args: []string{"update-ref", "refs/tags/x", e.next}}); code != 0 {
		t.Error("it does not write where it may")
	}
}

// No call refuses what it needs: a snapshot, a work tree, a commit, a merge and their end, each git in its box.
func TestEverythingWorksInTheBox(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	boxes := confined(t, b.opts.Procs, b.home, b.opts.Dir)
	b.user(b.home, "config", "--global", "filter.up.clean", "tr a-z A-Z")
	b.user(b.home, "config", "--global", "filter.up.smudge", "tr A-Z a-z")
	repo := b.repo(map[string]string{"a.txt": "1\n2\n3\n", "b.up": "b\n", ".gitattributes": "*.up filter=up\n"})
	tree := b.plant(repo)
	s := b.take(tree.Dir, 1)
	b.write(tree.Dir, map[string]string{"a.txt": "1\n2\nagent\n", "new.txt": "new\n"})
	b.take(tree.Dir, 2)
	b.restored(b.ref(s, 1))
	b.write(repo, map[string]string{"a.txt": "user\n2\n3\n"})
	b.commit(repo, "user")
	g := b.grove()
	if _, err := g.Survey(t.Context(), b.id, tree); err != nil {
		t.Error(err)
	}
	commit, made, err := g.CommitWork(t.Context(), b.id, tree, "work\n")
	if err != nil || !made {
		t.Fatal(made, err)
	}
	if _, err := g.Merge(t.Context(), b.id, tree, commit, "merge\n"); err != nil {
		t.Fatal(err)
	}
	if got := b.read(repo, "a.txt") + b.read(repo, "new.txt") + b.read(repo, "b.up"); got != "user\n2\nagent\nnew\nb\n" {
		t.Errorf("%q", got)
	}
	if _, err := g.Remove(t.Context(), tree.Dir); err != nil {
		t.Error(err)
	}
	if err := b.Drop(t.Context(), b.id); err != nil {
		t.Error(err)
	}
	if err := boxes.Reason(); err != nil {
		t.Error(err)
	}
}
