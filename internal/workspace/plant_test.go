package workspace

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rnix/internal/plumbing"
	"rnix/runtime/worktree"
	"rnix/types"
)

// grove waits for git as long as it takes on a machine that is busy.
func (b *bench) grove() *Grove {
	g := NewGrove(b.Keeper)
	g.looks.time = time.Minute
	return g
}

// plant makes a work tree of a repository for the history of the bench.
func (b *bench) plant(repo string, change ...func(*Planting)) Tree {
	b.Helper()
	p := Planting{From: repo, Parent: filepath.Join(b.opts.Dir, "worktrees", b.id.String()), Name: "rnix/x"}
	for _, c := range change {
		c(&p)
	}
	t, _, err := b.grove().Plant(context.Background(), b.id, p)
	if err != nil {
		b.Fatal(err)
	}
	return t
}

// commit commits everything in a directory.
func (b *bench) commit(dir, message string) string {
	b.Helper()
	b.user(dir, "add", "-A")
	b.user(dir, "commit", "-q", "-m", message)
	return strings.TrimSpace(b.user(dir, "rev-parse", "HEAD"))
}

// However many want the same name at once, also from several daemons, each gets a branch of its own, and none is left over.
func TestWhoWantsTheSameNameAtOnceGetsTheNextFreeOne(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	repo := b.repo(map[string]string{"a.txt": "a\n"})
	const n = 12
	branches := make([]string, n)
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		opts := b.opts
		opts.Dir = filepath.Join(b.dir(), "daemon"+string(rune('0'+i%3)))
		all.Go(func() {
			var tree Tree
			id := types.NewUUID()
			tree, _, errs[i] = NewGrove(New(opts)).Plant(context.Background(), id, Planting{From: repo, Parent: filepath.Join(opts.Dir, "worktrees", id.String()), Name: "rnix/fix"})
			branches[i] = tree.Branch
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	slices.Sort(branches)
	if got := strings.Fields(b.user(repo, "for-each-ref", "--format=%(refname:short)", "refs/heads/rnix")); len(slices.Compact(slices.Clone(branches))) != n || len(got) != n {
		t.Errorf("%d branches for %d: %v, %v", len(got), n, branches, got)
	}
}

func TestAHistoryGetsAWorkTreeOfItsOwn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	repo := b.repo(map[string]string{"a.txt": "a\n", "sub/b.txt": "b\n"})
	head := strings.TrimSpace(b.user(repo, "rev-parse", "HEAD"))
	tree, dir, err := b.grove().Plant(context.Background(), b.id, Planting{From: filepath.Join(repo, "sub"), Parent: filepath.Join(b.dir(), "w"), Name: "rnix/x"})
	if err != nil {
		t.Fatal(err)
	}
	if tree.Branch != "rnix/x" || tree.Base != head || tree.BaseName != "main" || tree.Repo != repo || dir != filepath.Join(tree.Dir, "sub") {
		t.Errorf("%+v, %s", tree, dir)
	}
	b.write(tree.Dir, map[string]string{".claude/state": "x", "new.txt": "n"})
	if s := b.user(tree.Dir, "status", "--porcelain"); s != "?? .claude/\n?? new.txt\n" {
		t.Errorf("status %q", s)
	}
	if s := b.user(repo, "status", "--porcelain"); s != "" {
		t.Errorf("the user's work tree: %q", s)
	}
	other := types.NewUUID()
	second, _, err := b.grove().Plant(context.Background(), other, Planting{From: repo, Parent: filepath.Join(b.dir(), "w"), Name: "rnix/x"})
	if err != nil || second.Branch != "rnix/x-2" {
		t.Errorf("%+v, %v", second, err)
	}
	for name, p := range map[string]Planting{
		"checked out in": {From: repo, Branch: "rnix/x"}, "is no commit of": {From: repo, Base: "nothing", Name: "y"}, "no git repository": {From: b.dir(), Name: "y"},
		"as options do": {From: repo, Branch: "-x"}, "leave --base out": {From: repo, Branch: "old", Base: "HEAD"},
	} {
		if name == "leave --base out" {
			b.user(repo, "branch", "old")
			b.write(repo, map[string]string{"c": "c"})
			b.commit(repo, "c")
		}
		p.Parent = filepath.Join(b.dir(), "w")
		if _, _, err := b.grove().Plant(context.Background(), types.NewUUID(), p); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheWorkOfATreeIsCommittedAndMerged(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	repo := b.repo(map[string]string{"a.txt": "a\n", ".gitignore": "*.log\n"})
	tree := b.plant(repo)
	b.write(tree.Dir, map[string]string{"a.txt": "agent\n", "new/n.txt": "n\n", "x.log": "log"})
	st, err := b.grove().Survey(context.Background(), b.id, tree)
	if err != nil || !st.Uncommitted || st.Commits != 0 || st.Branch != "rnix/x" {
		t.Fatalf("%+v, %v", st, err)
	}
	_, files, err := b.Diff(context.Background(), st.Base, st.Files, DiffOpts{NamesOnly: true})
	if err != nil || len(files) != 2 {
		t.Fatalf("%+v, %v", files, err)
	}
	commit, made, err := b.grove().CommitWork(context.Background(), b.id, tree, "work\n")
	if err != nil || !made {
		t.Fatal(made, err)
	}
	if s := b.user(tree.Dir, "status", "--porcelain"); s != "" {
		t.Errorf("status %q", s)
	}
	if again, made, err := b.grove().CommitWork(context.Background(), b.id, tree, "work\n"); again != commit || made || err != nil {
		t.Errorf("%s, %v, %v", again, made, err)
	}
	m, err := b.grove().Merge(context.Background(), b.id, tree, commit, "merge\n")
	if err != nil || !m.Forward || m.Commit != commit || m.Target != "main" || len(m.Files) != 2 {
		t.Fatalf("%+v, %v", m, err)
	}
	if s := b.user(repo, "status", "--porcelain"); s != "" || b.read(repo, "new/n.txt") != "n\n" {
		t.Errorf("status %q", s)
	}
	b.write(repo, map[string]string{"mine.txt": "m\n"})
	b.commit(repo, "mine")
	b.write(tree.Dir, map[string]string{"later.txt": "l\n"})
	b.user(repo, "config", "user.name", "U Ser")
	b.user(repo, "config", "user.email", "u@ser")
	if commit, _, err = b.grove().CommitWork(context.Background(), b.id, tree, "more\n"); err != nil {
		t.Fatal(err)
	}
	if who := b.user(tree.Dir, "log", "-1", "--format=%an <%ae> %cn <%ce>"); strings.TrimSpace(who) != "U Ser <u@ser> U Ser <u@ser>" {
		t.Errorf("the work is committed by %s", who)
	}
	m, err = b.grove().Merge(context.Background(), b.id, tree, commit, "merge\n")
	if err != nil || m.Forward || b.read(repo, "later.txt") != "l\n" || b.read(repo, "mine.txt") != "m\n" {
		t.Fatalf("%+v, %v", m, err)
	}
	if who := b.user(repo, "log", "-1", "--format=%an <%ae> %P"); !strings.HasPrefix(who, "U Ser <u@ser> "+m.Before+" "+commit) {
		t.Errorf("the merge is of %s", who)
	}
	if m, err = b.grove().Merge(context.Background(), b.id, tree, commit, "merge\n"); err != nil || !m.Already {
		t.Errorf("%+v, %v", m, err)
	}
}

func (b *bench) read(dir, name string) string {
	b.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		b.Fatal(err)
	}
	return string(data)
}

func TestAMergeThatCannotBeLeavesEverythingAsItIs(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		plant func(b *bench, repo string)
		want  string
	}{
		"conflict": {func(b *bench, repo string) { b.write(repo, map[string]string{"a.txt": "user\n"}); b.commit(repo, "u") }, "a.txt"},
		"dirty":    {func(b *bench, repo string) { b.write(repo, map[string]string{"b.txt": "user\n"}) }, "b.txt"},
		"staged": {func(b *bench, repo string) {
			b.write(repo, map[string]string{"s.txt": "user\n"})
			b.user(repo, "add", "s.txt")
		}, "s.txt"},
		"untracked": {func(b *bench, repo string) { b.write(repo, map[string]string{"new.txt": "user\n"}) }, "new.txt"},
		"detached":  {func(b *bench, repo string) { b.user(repo, "checkout", "-q", "--detach") }, "no branch is checked out"},
		"half-way":  {func(b *bench, repo string) { b.write(repo, map[string]string{".git/MERGE_HEAD": ""}) }, "MERGE_HEAD"},
		"skipped":   {passedOver("--skip-worktree"), "a.txt"},
		"assumed":   {passedOver("--assume-unchanged"), "a.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			repo := b.repo(map[string]string{"a.txt": "a\n", "b.txt": "b\n"})
			tree := b.plant(repo)
			b.write(tree.Dir, map[string]string{"a.txt": "agent\n", "new.txt": "agent\n"})
			commit, _, err := b.grove().CommitWork(context.Background(), b.id, tree, "work\n")
			if err != nil {
				t.Fatal(err)
			}
			tt.plant(b, repo)
			look := func() string {
				return b.user(repo, "rev-parse", "HEAD") + b.user(repo, "write-tree") + b.read(repo, "a.txt") + b.read(repo, "b.txt")
			}
			before := look()
			_, err = b.grove().Merge(context.Background(), b.id, tree, commit, "merge\n")
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v", err)
			}
			var files *MergeError
			if strings.Contains(err.Error(), "error: ") {
				t.Errorf("it has git's own text: %v", err)
			}
			if strings.HasSuffix(tt.want, ".txt") && (!errors.As(err, &files) || len(files.Files) != 1 || files.Files[0] != tt.want) {
				t.Errorf("it names %+v", files)
			}
			if after := look(); after != before {
				t.Errorf("before:\n%s\nafter:\n%s", before, after)
			}
		})
	}
}

// passedOver changes a file that git was told not to look at.
func passedOver(how string) func(b *bench, repo string) {
	return func(b *bench, repo string) {
		b.user(repo, "update-index", how, "a.txt")
		b.write(repo, map[string]string{"a.txt": "user\n"})
	}
}

// What is advised where git was told not to look at a file with changes, followed.
func TestAFileThatGitWasToldToIgnoreIsMergedAfterTheAdvice(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"skip-worktree", "assume-unchanged"} {
		b := newBench(t)
		repo := b.repo(map[string]string{"a.txt": "a\n"})
		tree := b.plant(repo)
		b.write(tree.Dir, map[string]string{"a.txt": "agent\n"})
		commit, _, err := b.grove().CommitWork(t.Context(), b.id, tree, "work\n")
		must(t, err)
		passedOver("--"+kind)(b, repo)
		_, err = b.grove().Merge(t.Context(), b.id, tree, commit, "merge\n")
		if want := "git -C " + plumbing.ShellQuote(repo) + " update-index --no-skip-worktree FILE, or the same with --no-assume-unchanged"; err == nil || !strings.Contains(err.Error(), want) {
			t.Fatalf("%v, want %s", err, want)
		}
		b.user(repo, "update-index", "--no-"+kind, "a.txt")
		_, err = b.grove().Merge(t.Context(), b.id, tree, commit, "merge\n")
		if err == nil || !strings.Contains(err.Error(), "not committed") {
			t.Fatalf("%s: seen, it is a change: %v", kind, err)
		}
		b.user(repo, "stash")
		_, err = b.grove().Merge(t.Context(), b.id, tree, commit, "merge\n")
		must(t, err)
		if is, was := b.read(repo, "a.txt"), b.user(repo, "show", "stash:a.txt"); is != "agent\n" || strings.TrimSpace(was) != "user" {
			t.Errorf("%s: %q, and put aside %q", kind, is, was)
		}
	}
}

func TestAMergeThatWasCutOffIsEnded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	repo := b.repo(map[string]string{"a.txt": "a\n"})
	tree := b.plant(repo)
	b.write(tree.Dir, map[string]string{"a.txt": "agent\n"})
	commit, _, err := b.grove().CommitWork(context.Background(), b.id, tree, "work\n")
	if err != nil {
		t.Fatal(err)
	}
	b.user(repo, "read-tree", "-m", "-u", "HEAD", commit) // the branch was to follow
	m, err := b.grove().Merge(context.Background(), b.id, tree, commit, "merge\n")
	if err != nil || m.Commit != commit || b.user(repo, "status", "--porcelain") != "" {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestWhatAnAgentPlantsIsNotRunByAMerge(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	repo := b.repo(map[string]string{"a.txt": "1\n2\n3\n", ".gitattributes": "*.txt filter=evil diff=evil merge=evil\n"})
	tree := b.plant(repo)
	mark := filepath.Join(b.dir(), "ran")
	evil := filepath.Join(b.dir(), "evil")
	b.write(filepath.Dir(evil), map[string]string{"evil": "#!/bin/sh\necho \"$0 $*\" >>" + mark + "\ncat\n"})
	if err := os.Chmod(evil, 0o755); err != nil {
		t.Fatal(err)
	}
	b.write(tree.Dir, map[string]string{"a.txt": "1\n2\nagent\n"})
	b.write(repo, map[string]string{"a.txt": "user\n2\n3\n"})
	b.commit(repo, "user")
	for _, h := range []string{"pre-commit", "post-commit", "post-checkout", "post-merge", "reference-transaction", "post-index-change", "prepare-commit-msg"} {
		if err := os.Symlink(evil, filepath.Join(repo, ".git", "hooks", h)); err != nil {
			t.Fatal(err)
		}
	}
	for k, v := range map[string]string{"filter.evil.smudge": evil, "filter.evil.clean": evil, "filter.evil.required": "true", "filter.a=b.clean": evil, "core.fsmonitor": evil, "merge.evil.driver": evil,
		"diff.evil.textconv": evil, "diff.evil.command": evil, "diff.external": evil, "commit.gpgSign": "true", "gpg.program": evil, "core.editor": evil, "core.pager": evil, "alias.status": "!" + evil} {
		b.user(repo, "config", k, v)
	}
	commit, made, err := b.grove().CommitWork(context.Background(), b.id, tree, "work\n")
	if err != nil || !made {
		t.Fatal(err)
	}
	if _, err := b.grove().Survey(context.Background(), b.id, tree); err != nil {
		t.Error(err)
	}
	_, err = b.grove().Merge(context.Background(), b.id, tree, commit, "merge\n")
	var files *MergeError // its driver is the agent's, so these are merged by nobody
	if !errors.As(err, &files) || files.Files[0] != "a.txt" {
		t.Errorf("merge: %v", err)
	}
	b.write(tree.Dir, map[string]string{"a.txt": "1\n2\n3\n", "other.txt": "o\n"})
	if commit, _, err = b.grove().CommitWork(context.Background(), b.id, tree, "work\n"); err != nil {
		t.Fatal(err)
	}
	if _, err = b.grove().Merge(context.Background(), b.id, tree, commit, "merge\n"); err != nil || b.read(repo, "other.txt") != "o\n" {
		t.Errorf("merge: %v", err)
	}
	if err := b.grove().Uproot(context.Background(), b.id, filepath.Dir(tree.Dir)); err != nil {
		t.Error(err)
	}
	if data, err := os.ReadFile(mark); err == nil {
		t.Errorf("these were run:\n%s", data)
	}
}

func TestWhatAnAgentPlantsInASubmoduleIsNotRun(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	lib, repo := b.repo(map[string]string{"l.txt": "l\n"}), b.repo(map[string]string{"a.txt": "a\n"})
	tree := b.plant(repo)
	b.user(tree.Dir, "-c", "protocol.file.allow=always", "submodule", "add", "-q", lib, "sub")
	b.commit(tree.Dir, "a submodule")
	mark := filepath.Join(b.dir(), "ran")
	evil := filepath.Join(b.dir(), "evil")
	b.write(filepath.Dir(evil), map[string]string{"evil": "#!/bin/sh\necho \"$0 $*\" >>" + mark + "\ncat\n"})
	if err := os.Chmod(evil, 0o755); err != nil {
		t.Fatal(err)
	}
	sub := filepath.Join(tree.Dir, "sub")
	b.write(sub, map[string]string{".gitattributes": "* filter=evil\n", "l.txt": "m\n"})
	b.user(sub, "config", "filter.evil.clean", evil)
	b.user(sub, "config", "core.fsmonitor", evil)
	b.write(tree.Dir, map[string]string{"a.txt": "agent\n"})
	st, err := b.grove().Survey(context.Background(), b.id, tree)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Diff(context.Background(), st.Base, st.Files, DiffOpts{}); err != nil {
		t.Error(err)
	}
	if _, made, err := b.grove().CommitWork(context.Background(), b.id, tree, "work\n"); err != nil || !made {
		t.Errorf("%v, %v", made, err)
	}
	if data, err := os.ReadFile(mark); err == nil {
		t.Errorf("these were run:\n%s", data)
	}
}

// TestBranchOfAWorkTreeThatWasNeverReadyGoesWithIt has what a crash leaves at each moment at which a work tree is made.
func TestBranchOfAWorkTreeThatWasNeverReadyGoesWithIt(t *testing.T) {
	t.Parallel()
	for _, made := range []bool{false, true} {
		b := newBench(t)
		repo := b.repo(map[string]string{"a": "1\n"})
		refs := b.user(repo, "for-each-ref")
		p := Planting{From: repo, Parent: filepath.Join(b.dir(), "home"), Name: "rnix/x"}
		tree, _, err := b.grove().plot(t.Context(), b.id, p)
		must(t, err)
		must(t, b.desks.noteSeed(b.id, p, tree))
		if made {
			m, err := b.desks.nursery(b.id, p.Parent)
			must(t, err)
			_, err = m.Provision(t.Context(), worktree.ProvisionSpec{SessionID: b.id.String(), LeafName: "repo", Strategy: worktree.StrategyWorktreeAdd,
				ParentRepoPath: repo, Branch: tree.Branch, NewBranch: true, BaseCommit: tree.Base})
			must(t, err)
		} else {
			b.user(repo, "branch", tree.Branch)
		}
		later := NewGrove(New(b.opts))
		must(t, later.Uproot(t.Context(), b.id, p.Parent))
		if now := b.user(repo, "for-each-ref"); now != refs {
			t.Errorf("made: %t; left behind: %s", made, now)
		}
		must(t, later.Uproot(t.Context(), b.id, p.Parent))
	}
}
