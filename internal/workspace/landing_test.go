package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rnix/internal/plumbing"
	"rnix/internal/proc"
	"rnix/internal/soak"
	"rnix/types"
)

// mergedIn is the variable that makes of this program one which merges until it is killed: data directory, home, repository, work tree, commit.
const mergedIn = "RNIX_TEST_MERGE_IN"

func init() {
	if args := strings.Fields(os.Getenv(mergedIn)); len(args) == 5 {
		mergeUntilKilled(args[0], args[1], args[2], args[3], args[4])
		os.Exit(1)
	}
}

func mergeUntilKilled(data, home, repo, dir, commit string) {
	procs, err := proc.NewManager(filepath.Join(data, "children"), nil)
	if err != nil {
		panic(err)
	}
	k := NewGrove(New(Options{Procs: procs, Dir: data, Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}}))
	t := Tree{Dir: dir, Repo: repo, Common: filepath.Join(repo, ".git"), Branch: "rnix/x"}
	fmt.Println("begun")
	_, err = k.Merge(context.Background(), killedID, t, commit, "merge\n")
	fmt.Println("ended", err)
	select {}
}

// landedIn is a repository, and a commit of an agent that changes files there in each way.
type landedIn struct {
	*bench
	repo           string
	tree           Tree
	before, commit string
	was, is        map[string]string // contents by path; without a path there is no such file
}

func newLanding(t *testing.T) *landedIn {
	b := newBench(t)
	x := &landedIn{bench: b, was: map[string]string{"same": "as ever\n"}, is: map[string]string{}}
	for n := range 8 {
		x.was[fmt.Sprintf("changed-%d", n)] = strings.Repeat(fmt.Sprintf("line of %d\n", n), 400)
		x.is[fmt.Sprintf("changed-%d", n)] = strings.Repeat(fmt.Sprintf("new line of %d\n", n), 500)
		x.was[fmt.Sprintf("old/%d/gone", n)] = "to be removed\n"
		x.is[fmt.Sprintf("new/%d/added", n)] = strings.Repeat("added\n", 300)
	}
	x.was["longer"], x.is["longer"] = "begins the same\n", "begins the same\nand goes on\n"
	x.was["shape"], x.is["shape/inside"] = "a file\n", "in a directory\n"
	x.repo = b.repo(x.was)
	x.tree = b.plant(x.repo)
	x.before = strings.TrimSpace(b.user(x.repo, "rev-parse", "HEAD"))
	for path := range x.was {
		if _, stays := x.is[path]; !stays && path != "same" {
			if err := os.RemoveAll(filepath.Join(x.tree.Dir, path)); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.write(x.tree.Dir, x.is)
	commit, _, err := b.grove().CommitWork(t.Context(), b.id, x.tree, "work\n")
	if err != nil {
		t.Fatal(err)
	}
	x.commit = commit
	return x
}

// begun leaves a landing as if it had been cut off before a file was written.
func (x *landedIn) begun(g *Grove) *landing {
	x.Helper()
	l := &landing{Version: landingVersion, UUID: x.id, Dir: x.repo, GitDir: filepath.Join(x.repo, ".git"), Common: filepath.Join(x.repo, ".git"), Branch: "main",
		Before: x.before, Commit: x.commit, Lock: "rnix: merge " + types.NewUUID().String() + "\n"}
	if err := g.landings.begin(l); err != nil {
		x.Fatal(err)
	}
	return l
}

// clean fails if anything is left of a landing, or if other files than these differ from what is checked out.
func (x *landedIn) clean(differ ...string) {
	x.Helper()
	_ = filepath.WalkDir(filepath.Join(x.repo, ".git"), func(path string, d fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".lock") || strings.Contains(filepath.Base(path), "rnix") && !d.IsDir() && d.Name() != "x" {
			x.Errorf("%s is left", path)
		}
		return err
	})
	if notes, _ := filepath.Glob(filepath.Join(x.opts.Dir, "snapshots", "landings", "*")); len(notes) > 0 {
		x.Errorf("%v are left", notes)
	}
	var got []string
	for l := range strings.Lines(x.user(x.repo, "status", "--porcelain", "-uall")) {
		got = append(got, strings.TrimSpace(l[3:]))
	}
	slices.Sort(got)
	slices.Sort(differ)
	if !slices.Equal(got, differ) {
		x.Errorf("%v differ, want %v", got, differ)
	}
}

// Whatever a merge that was cut off has written is taken back, and nothing else.
func TestAMergeThatWasCutOffIsTakenBack(t *testing.T) {
	t.Parallel()
	x := newLanding(t)
	paths := map[string]bool{}
	for _, all := range []map[string]string{x.was, x.is} {
		for path := range all {
			if path != "same" && !strings.HasPrefix(path, "shape") {
				paths[path] = true
			}
		}
	}
	for round := range soak.Number(t, "RNIX_MERGE_STATES", "merges that were cut off", 5, 100) {
		rng := rand.New(rand.NewPCG(uint64(round), 7))
		l := x.begun(x.grove())
		var theirs []string
		for path := range paths {
			full := filepath.Join(x.repo, path)
			text, after := x.is[path]
			switch rng.IntN(6) {
			case 0: // it is not there at the moment
				_ = os.Remove(full)
			case 1, 2:
				if !after {
					_ = os.Remove(full)
					_ = os.Remove(filepath.Dir(full))
					continue
				}
				if rng.IntN(2) == 0 {
					text = text[:rng.IntN(len(text))]
				}
				x.write(x.repo, map[string]string{path: text})
			case 3:
				if rng.IntN(4) == 0 { // by the user, since
					x.write(x.repo, map[string]string{path: "of the user\n"})
					theirs = append(theirs, path)
				}
			}
		}
		switch rng.IntN(4) {
		case 0: // by hand
			if err := os.Remove(l.lock()); err != nil {
				t.Fatal(err)
			}
		case 1:
			x.write(l.GitDir, map[string]string{"index.rnix.lock": "half"})
		case 2:
			x.write(l.GitDir, map[string]string{"index.rnix": "half", "refs/heads/main.lock": x.commit + "\n"})
		}
		said := x.grove().SettleMerges(t.Context())
		if len(said) != 1 || !strings.Contains(said[0], "is taken back") {
			t.Fatalf("round %d: %q", round, said)
		}
		for _, path := range theirs {
			if x.read(x.repo, path) != "of the user\n" || !strings.Contains(said[0], path) {
				t.Errorf("round %d: what the user has changed: %s, %q", round, path, said)
			}
		}
		if x.clean(theirs...); t.Failed() {
			t.Fatalf("round %d: %q", round, said)
		}
		x.user(x.repo, "checkout", "-q", "-f", "main")
		x.user(x.repo, "clean", "-qfd")
	}
	m, err := x.grove().Merge(t.Context(), x.id, x.tree, x.commit, "merge\n")
	if err != nil || m.Commit != x.commit {
		t.Errorf("%+v, %v", m, err)
	}
	x.clean()
}

// A file that a directory takes the place of is there again, in whatever moment git was killed; what somebody has put into the directory stays.
func TestAMergeThatWasCutOffWhileADirectoryTookAFilesPlaceIsTakenBack(t *testing.T) {
	t.Parallel()
	x := newLanding(t)
	shape := filepath.Join(x.repo, "shape")
	for _, when := range []string{"a file", "nothing", "an empty directory", "the directory", "a directory of somebody"} {
		x.begun(x.grove())
		if when != "a file" {
			if err := os.Remove(shape); err != nil {
				t.Fatal(err)
			}
		}
		var differ []string
		switch when {
		case "an empty directory":
			if err := errors.Join(os.Mkdir(shape, 0o755), os.MkdirAll(filepath.Join(x.repo, "new", "0"), 0o755)); err != nil {
				t.Fatal(err)
			}
		case "the directory":
			x.write(x.repo, map[string]string{"shape/inside": x.is["shape/inside"]})
		case "a directory of somebody":
			x.write(x.repo, map[string]string{"shape/inside": x.is["shape/inside"], "shape/mine": "mine\n"})
			differ = []string{"shape", "shape/mine"}
		}
		said := x.grove().SettleMerges(t.Context())
		if len(said) != 1 || !strings.Contains(said[0], "is taken back") || strings.Contains(said[0], "stays: shape") != (differ != nil) {
			t.Errorf("%s: %q", when, said)
		}
		if _, err := os.Lstat(filepath.Join(x.repo, "new")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the directory that git had made is left: %v", when, err)
		}
		if x.clean(differ...); t.Failed() {
			t.Fatal(when)
		}
	}
}

func TestAMergeThatWasCutOffBeforeItsBranchFollowedIsFinished(t *testing.T) {
	t.Parallel()
	for _, byMerge := range []bool{true, false} {
		x := newLanding(t)
		l := x.begun(x.grove())
		cmd := exec.Command("git", "read-tree", "-m", "-u", x.before, x.commit)
		cmd.Dir, cmd.Env = x.repo, append(os.Environ(), "GIT_INDEX_FILE="+l.index())
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if err := l.install(); err != nil {
			t.Fatal(err)
		}
		x.write(l.GitDir, map[string]string{"refs/heads/main.lock": x.commit + "\n", "HEAD.lock": ""})
		g := x.grove()
		if byMerge {
			if m, err := g.Merge(t.Context(), x.id, x.tree, x.commit, "merge\n"); err != nil || !m.Already {
				t.Errorf("%+v, %v", m, err)
			}
		} else if said := g.SettleMerges(t.Context()); len(said) != 1 || !strings.HasSuffix(said[0], "it is finished") {
			t.Errorf("%q", said)
		}
		if head := strings.TrimSpace(x.user(x.repo, "rev-parse", "HEAD")); head != x.commit {
			t.Errorf("the branch is at %s", head)
		}
		x.clean()
	}
}

// Killed while it was noted, or before its lock had its name, a merge leaves nothing.
func TestAMergeThatWasCutOffBeforeItHadItsLockLeavesNothing(t *testing.T) {
	t.Parallel()
	x := newLanding(t)
	notes := filepath.Join(x.opts.Dir, "snapshots", "landings")
	x.write(notes, map[string]string{".0123.json.75175f373550.tmp~": "{"})
	if said := x.grove().SettleMerges(t.Context()); len(said) != 0 {
		t.Errorf("of half a note: %q", said)
	}
	x.clean()
	l := x.begun(x.grove())
	if err := errors.Join(os.Rename(l.lock(), l.unlinked()), os.Remove(l.index())); err != nil {
		t.Fatal(err)
	}
	if said := x.grove().SettleMerges(t.Context()); len(said) != 1 || !strings.HasSuffix(said[0], "is taken back: nothing was merged") {
		t.Errorf("of one without its lock: %q", said)
	}
	x.clean()
}

// The lock of another git is not touched: it may be at work.
func TestTheLockOfAnotherGitStopsAMerge(t *testing.T) {
	t.Parallel()
	x := newLanding(t)
	lock := filepath.Join(x.repo, ".git", "index.lock")
	try := func(when string) {
		t.Helper()
		if _, err := x.grove().Merge(t.Context(), x.id, x.tree, x.commit, "merge\n"); types.CodeOf(err) != types.ErrConflict || !strings.Contains(err.Error(), "rm "+plumbing.ShellQuote(lock)) {
			t.Errorf("%s: %v", when, err)
		}
		if b, err := os.ReadFile(lock); err != nil || string(b) != "of another" {
			t.Errorf("%s: the lock is %q, %v", when, b, err)
		}
	}
	x.write(filepath.Dir(lock), map[string]string{"index.lock": "of another"})
	try("before")
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	x.clean()
	x.begun(x.grove())
	x.write(filepath.Dir(lock), map[string]string{"index.lock": "of another"})
	try("after one that was cut off")
	if said := x.grove().SettleMerges(t.Context()); len(said) != 1 || !strings.Contains(said[0], "is half-way there still") {
		t.Errorf("%q", said)
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	if _, err := x.grove().Merge(t.Context(), x.id, x.tree, x.commit, "merge\n"); err != nil {
		t.Error(err)
	}
	x.clean()
}

// A client that goes away in the middle leaves nothing half-way.
func TestAMergeThatIsCancelledIsTakenBack(t *testing.T) {
	t.Parallel()
	x := newLanding(t)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 12 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(120))*time.Millisecond)
		_, err := x.grove().Merge(ctx, x.id, x.tree, x.commit, "merge\n")
		cancel()
		if head := strings.TrimSpace(x.user(x.repo, "rev-parse", "HEAD")); head != x.before && head != x.commit {
			t.Errorf("the branch is at %s (%v)", head, err)
		}
		x.clean()
		x.user(x.repo, "reset", "-q", "--hard", x.before)
	}
}

func TestAMergeMayBeKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	x := newLanding(t)
	x.id = killedID
	rng := rand.New(rand.NewPCG(2, 2))
	back, done, cut := 0, 0, 0
	for round := range soak.Number(t, "RNIX_MERGE_KILLS", "merges that are killed", 5, 100) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), mergedIn+"="+strings.Join([]string{x.opts.Dir, x.home, x.repo, x.tree.Dir, x.commit}, " "))
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		_, _ = out.Read(make([]byte, 6))
		<-time.After(time.Duration(rng.IntN(300)) * time.Millisecond)
		_ = cmd.Process.Kill()
		if err := cmd.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
			t.Fatal(err)
		}
		procs, err := proc.NewManager(filepath.Join(x.opts.Dir, "children"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := procs.ReapSurvivors(); err != nil {
			t.Fatal(err)
		}
		opts := x.opts
		opts.Procs = procs
		said := NewGrove(New(opts)).SettleMerges(t.Context())
		procs.Close()
		cut += len(said)
		switch head := strings.TrimSpace(x.user(x.repo, "rev-parse", "HEAD")); head {
		case x.before:
			back++
		case x.commit:
			done++
		default:
			t.Errorf("the branch is at %s", head)
		}
		if x.clean(); t.Failed() {
			t.Fatalf("round %d: %q", round, said)
		}
		x.user(x.repo, "reset", "-q", "--hard", x.before)
	}
	t.Logf("%d were cut off, %d are as before, %d are merged", cut, back, done)
}

// What stands where a merge writes its own files is put out of the way, and not written through: an agent can plant a link in the repository.
func TestAMergeWritesThroughNoLinkThatWasPlanted(t *testing.T) {
	t.Parallel()
	x := newLanding(t)
	gitDir, theirs := filepath.Join(x.repo, ".git"), t.TempDir()
	for _, name := range []string{"index.rnix", "index.rnix.take"} {
		must(t, os.WriteFile(filepath.Join(theirs, name), []byte("of a person\n"), 0o600))
		must(t, os.Symlink(filepath.Join(theirs, name), filepath.Join(gitDir, name)))
	}
	if _, err := x.grove().Merge(t.Context(), x.id, x.tree, x.commit, "merge"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"index.rnix", "index.rnix.take"} {
		if is := x.read(theirs, name); is != "of a person\n" {
			t.Errorf("%s was written through: %.60q", name, is)
		}
	}
	x.clean()
}

// Of a file that git changed in the second in which it had been committed, size and times can be as before: it is taken back all the same.
func TestAMergeThatWasCutOffIsTakenBackInTheSecondOfACommit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	repo := b.repo(map[string]string{"a": "1\n"})
	made, commit := b.grown(repo, func(dir string) { b.write(dir, map[string]string{"a": "2\n"}) })
	x := &landedIn{bench: b, repo: repo, tree: made, before: strings.TrimSpace(b.user(repo, "rev-parse", "HEAD")), commit: commit}
	path, index := filepath.Join(repo, "a"), filepath.Join(repo, ".git", "index")
	second := time.Now().Add(-10 * time.Second).Truncate(time.Second)
	must(t, os.Chtimes(path, second, second))
	b.user(repo, "-c", "core.trustctime=false", "update-index", "--refresh")
	b.user(repo, "config", "core.trustctime", "false")
	must(t, os.Chtimes(index, second, second))
	x.begun(b.grove())
	must(t, os.WriteFile(path, []byte("2\n"), 0o644)) // in place, so that it is the same file
	must(t, os.Chtimes(path, second, second))
	if said := b.grove().SettleMerges(t.Context()); len(said) != 1 || !strings.HasSuffix(said[0], "is taken back: nothing was merged") {
		t.Errorf("%q", said)
	}
	if is := b.read(repo, "a"); is != "1\n" {
		t.Errorf("it has %q", is)
	}
	x.clean()
}
