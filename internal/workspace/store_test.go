package workspace

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"rnix/types"
)

// objectsOf lists the objects of a git directory, also those that no reference holds.
func (b *bench) objectsOf(gitDir string) []string {
	b.Helper()
	return strings.Fields(b.user(gitDir, "--git-dir="+gitDir, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)"))
}

// storeIn returns the store of the repository of a work tree.
func (b *bench) storeIn(dir string) *store {
	b.Helper()
	s, err := b.storeOf(context.Background(), b.id, filepath.Join(dir, ".git"), "sha1")
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func TestPushOfEverythingSendsNothingThatWasNotCommitted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := b.repo(map[string]string{"a": "1\n"})
	b.write(dir, map[string]string{".env.local": "KEY=secret\n"})
	objects := b.objectsOf(filepath.Join(dir, ".git"))
	b.take(dir, 1)
	b.write(dir, map[string]string{"a": "2\n"})
	s := b.take(dir, 2)
	if rep, err := b.Restore(context.Background(), b.ref(s, 2), dir, RestoreOpts{Overwrite: true}); err != nil || rep.Rescue == nil {
		t.Fatalf("%+v, %v", rep, err)
	}
	mirror := b.dir()
	b.user(mirror, "init", "-q", "--bare")
	b.user(dir, "push", "-q", "--mirror", mirror)
	if refs := b.user(mirror, "for-each-ref", "--format=%(refname)"); strings.TrimSpace(refs) != "refs/heads/main" {
		t.Errorf("references were pushed: %s", refs)
	}
	if now := b.objectsOf(filepath.Join(dir, ".git")); !slices.Equal(now, objects) {
		t.Errorf("objects of the repository were %v, and are %v", objects, now)
	}
}

func TestSnapshotOutlivesItsRepository(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := b.repo(map[string]string{"a": "1\n", "deep/b": "2\n", "never/changed": "3\n"})
	b.user(dir, "gc", "-q") // what was committed is in a pack
	b.write(dir, map[string]string{"a": "changed\n", "new": "n\n"})
	b.user(dir, "add", "new") // an object of the user's
	first, files := b.take(dir, 1), tree(t, dir)
	b.write(dir, map[string]string{"committed": "by an agent\n"})
	b.user(dir, "add", "-A")
	b.user(dir, "commit", "-q", "-m", "work")
	second, later := b.take(dir, 2), tree(t, dir)
	rep, err := b.Restore(context.Background(), b.ref(first, 1), dir, RestoreOpts{Overwrite: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for _, k := range []*Keeper{b.Keeper, New(b.opts)} {
		again := &bench{t, k, b.home, b.id}
		same(t, "step 1", files, tree(t, again.restored(b.ref(first, 1))))
		same(t, "step 2", later, tree(t, again.restored(b.ref(second, 2))))
		same(t, "the rescue", later, tree(t, again.restored(rep.Rescue.Ref)))
	}
	if all, err := b.List(context.Background(), b.id); err != nil || len(all) != 3 {
		t.Errorf("%+v, %v", all, err)
	}
	to := filepath.Join(b.dir(), "DIR")
	words := strings.Fields(strings.NewReplacer("'", "", "DIR", to).Replace(b.WayBack(rep.Rescue)))
	b.user(b.dir(), words[1:]...)
	same(t, "what the way back gives", later, tree(t, to))
}

// oldReferences makes snapshots as format 1 had them: references in the user's repository.
func (b *bench) oldReferences(dir string) (step, rescue Stored) {
	b.Helper()
	common := filepath.Join(dir, ".git")
	made := func(files map[string]string, pin, name string, rescue bool) Stored {
		b.write(dir, files)
		b.user(dir, "add", "-A")
		id := strings.TrimSpace(b.user(dir, "write-tree"))
		commit := strings.TrimSpace(b.user(dir, "commit-tree", "-m", "rnix step", "-p", "HEAD", id))
		b.user(dir, "update-ref", pin, commit)
		b.user(dir, "reset", "-q", "--hard")
		s := Stored{Version: 1, Ref: Ref{UUID: b.id, Step: 1, Kind: KindGit, ID: id, Root: dir}, Rescue: rescue, Pin: pin, Commit: commit, Common: common, Files: len(files)}
		raw, err := json.Marshal(s)
		if err == nil {
			err = os.MkdirAll(b.recordDir(b.id), 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(b.recordDir(b.id), name+".json"), raw, 0o600)
		}
		if err != nil {
			b.Fatal(err)
		}
		return s
	}
	const name = "20260101T000000.000000000Z"
	step = made(map[string]string{"old": "of a step\n"}, stepRef(b.id, 1), stepName(1), false)
	rescue = made(map[string]string{"saved": "of a rescue\n"}, rescueRef(b.id, name), rescuePrefix+name, true)
	return step, rescue
}

func TestReferencesOfEarlierVersionsAreMovedOutOfTheRepository(t *testing.T) {
	t.Parallel()
	for _, cut := range []bool{false, true} {
		b := newBench(t)
		dir := b.repo(map[string]string{"a": "1\n"})
		head := strings.TrimSpace(b.user(dir, "rev-parse", "HEAD"))
		step, rescue := b.oldReferences(dir)
		b.user(dir, "update-ref", "refs/rnix/01a206ed-0584-7e56-94ba-a8d04d17bc88/000001", head) // of another data directory
		if cut {                                                                                 // a move that was killed before the last part of it
			s := &store{dir: b.git.storeDir(step.Common, "sha1"), common: step.Common, format: "sha1"}
			if err := s.furnish(); err != nil {
				t.Fatal(err)
			}
			was := b.user(dir, "for-each-ref", "--format=%(refname) %(objectname)", "refs/rnix/"+b.id.String(), "refs/rnix/rescue")
			if err := b.move(t.Context(), b.id, s); err != nil {
				t.Fatal(err)
			}
			for l := range strings.Lines(was) { // its objects are still in the repository
				b.user(dir, append([]string{"update-ref"}, strings.Fields(l)...)...)
			}
		}
		b.take(dir, 2)
		if refs := b.user(dir, "for-each-ref", "--format=%(refname)"); refs != "refs/heads/main\nrefs/rnix/01a206ed-0584-7e56-94ba-a8d04d17bc88/000001\n" {
			t.Errorf("in the repository there are still %s", refs)
		}
		b.user(dir, "reflog", "expire", "--expire=now", "--all")
		b.user(dir, "gc", "-q", "--prune=now")
		same(t, "a step of before", map[string]string{"a": "x=false 310a", "old": "x=false 6f66206120737465700a"}, tree(t, b.restored(step.Ref)))
		same(t, "a rescue of before", map[string]string{"a": "x=false 310a", "saved": "x=false 6f662061207265736375650a"}, tree(t, b.restored(rescue.Ref)))
		to := filepath.Join(b.dir(), "fork")
		if _, err := b.Checkout(t.Context(), b.id, step.Ref, to); err != nil {
			t.Fatal(err)
		}
		if at := strings.TrimSpace(b.user(to, "rev-parse", "HEAD")); at != head {
			t.Errorf("a fork of a step of before begins at %s, not at %s", at, head)
		}
	}
}

func TestHistoriesOfOneRepositoryShareWhatWasCommitted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := b.repo(filesOf(50))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { // ends with its snapshot; waited for below
			one := &bench{t, b.Keeper, b.home, types.NewUUID()}
			one.take(dir, 1)
		})
	}
	all.Wait()
	packs, err := filepath.Glob(filepath.Join(b.storeIn(dir).objects(), "pack", "*.pack"))
	if err != nil || len(packs) != 1 {
		t.Errorf("packs are %q, %v", packs, err)
	}
}

func TestForkWhoseCommitIsGoneBeginsAtWhatIsCheckedOut(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := b.repo(map[string]string{"a": "1\n"})
	b.write(dir, map[string]string{"a": "2\n"})
	b.user(dir, "commit", "-q", "-a", "-m", "to be undone")
	s, files := b.take(dir, 1), tree(t, dir)
	b.user(dir, "reset", "-q", "--hard", "HEAD~1")
	b.user(dir, "reflog", "expire", "--expire=now", "--all")
	b.user(dir, "gc", "-q", "--prune=now")
	to := filepath.Join(b.dir(), "fork")
	if _, err := b.Checkout(t.Context(), b.id, b.ref(s, 1), to); err != nil {
		t.Fatal(err)
	}
	same(t, "the fork", files, tree(t, to))
	if status := b.user(to, "status", "--porcelain"); status != " M a\n" {
		t.Errorf("status is %q", status)
	}
}

func TestSweepRemovesWhatADroppedHistoryHadAndNothingElse(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := b.repo(map[string]string{"a": "1\n", "b": "2\n"})
	other := &bench{t, b.Keeper, b.home, types.NewUUID()}
	b.write(dir, map[string]string{"secret": "of the one\n"})
	b.take(dir, 1)
	secret := strings.TrimSpace(b.user(dir, "hash-object", "secret"))
	if err := os.Remove(filepath.Join(dir, "secret")); err != nil {
		t.Fatal(err)
	}
	b.write(dir, map[string]string{"kept": "of the other\n"})
	kept, files := other.take(dir, 1), tree(t, dir)
	rep, err := other.Restore(t.Context(), other.ref(kept, 1), dir, RestoreOpts{Overwrite: true})
	if err != nil {
		t.Fatal(err)
	}
	b.write(dir, map[string]string{"looked at": "and not recorded\n"})
	if _, _, err := other.Diff(t.Context(), other.ref(kept, 1), Now(other.id, dir), DiffOpts{}); err != nil {
		t.Fatal(err)
	}
	s := b.storeIn(dir)
	has := func(id string) bool {
		lacking, err := b.lacking(t.Context(), b.id, s, s.alone(), []string{id})
		if err != nil {
			t.Fatal(err)
		}
		return len(lacking) == 0
	}
	if !has(secret) {
		t.Fatal("the file was not kept: the test tests nothing")
	}
	b.user(dir, "checkout", "-q", "--detach")
	b.write(dir, map[string]string{"only": "in a commit that no branch holds\n"})
	b.user(dir, "add", "only")
	b.user(dir, "commit", "-q", "-m", "only")
	only := strings.TrimSpace(b.user(dir, "rev-parse", "HEAD"))
	if _, err := other.Restore(t.Context(), other.ref(kept, 1), dir, RestoreOpts{Overwrite: true}); err != nil {
		t.Fatal(err)
	}
	must(t, b.Drop(t.Context(), b.id))
	swept, err := b.Sweep(t.Context())
	if err != nil || swept.Objects == 0 || swept.Bytes == 0 || has(secret) {
		t.Errorf("swept %+v, %v; the file of the dropped history is there: %t", swept, err, has(secret))
	}
	if !has(only) || !has(only+"^{tree}") || !has(only+":only") {
		t.Error("a commit that only a rescue held is gone")
	}
	if again, err := b.Sweep(t.Context()); err != nil || again.Objects != 0 {
		t.Errorf("a second sweep: %+v, %v", again, err)
	}
	for _, k := range []*Keeper{b.Keeper, New(b.opts)} {
		one := &bench{t, k, b.home, other.id}
		same(t, "the other history", files, tree(t, one.restored(other.ref(kept, 1))))
		same(t, "its rescue", files, tree(t, one.restored(rep.Rescue.Ref)))
		now := tree(t, dir)
		same(t, "its next step", now, tree(t, one.restored(one.ref(one.take(dir, 2), 2))))
	}
}

// TestEmptyFileIsAFileLikeAnyOther has one that is committed and one that is only announced, and a sweep between.
func TestEmptyFileIsAFileLikeAnyOther(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := b.repo(map[string]string{"pkg/__init__.py": "", "a": "1\n"})
	b.write(dir, map[string]string{"announced": ""})
	b.user(dir, "add", "-N", "announced")
	other := &bench{t, b.Keeper, b.home, types.NewUUID()}
	other.take(dir, 1)
	must(t, other.Drop(t.Context(), other.id))
	for n := range 3 {
		s, files := b.take(dir, n), tree(t, dir)
		if s.Kind != KindGit || s.Limited != "" {
			t.Errorf("%d: %+v", n, s)
		}
		same(t, "what was restored", files, tree(t, b.restored(b.ref(s, n))))
		if _, err := b.Sweep(t.Context()); err != nil {
			t.Error(err)
		}
		b.write(dir, map[string]string{fmt.Sprint("new", n): ""})
	}
	to := filepath.Join(b.dir(), "fork")
	s := b.take(dir, 9)
	if _, err := b.Checkout(t.Context(), b.id, b.ref(s, 9), to); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Remove(t.Context(), to); err != nil {
		t.Error(err)
	}
}

// TestRescueInAPartialCloneHasAllThatIsNowhereElse collects the repository when the work tree is gone.
func TestRescueInAPartialCloneHasAllThatIsNowhereElse(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	origin := b.repo(map[string]string{"a": "1\n", "big": noise(5000), "far/c": "c\n"})
	b.user(origin, "config", "uploadpack.allowFilter", "true")
	b.user(origin, "config", "uploadpack.allowAnySHA1InWant", "true")
	dir := filepath.Join(b.dir(), "clone")
	b.user(b.dir(), "-c", "protocol.file.allow=always", "clone", "-q", "--filter=blob:none", "--sparse", "file://"+origin, dir)
	to := forked(b, dir)
	b.write(to, map[string]string{"staged": "and committed nowhere\n"})
	b.user(to, "add", "staged")
	b.write(to, map[string]string{"c": "of an abandoned commit\n"})
	b.user(to, "add", "c")
	b.user(to, "commit", "-q", "-m", "c")
	b.user(to, "commit", "-q", "--amend", "-m", "d")
	files := tree(t, to)
	rep, err := b.Remove(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	b.user(dir, "reflog", "expire", "--expire=now", "--all")
	b.user(dir, "gc", "-q", "--prune=now")
	same(t, "the rescue", files, tree(t, b.restored(rep.Rescue.Ref)))
	must(t, b.Drop(t.Context(), b.id))
	if _, err := b.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
	same(t, "the rescue after a sweep", files, tree(t, b.restored(rep.Rescue.Ref)))
}

// TestStoreIsReadWhateverBecameOfItsRepository breaks what git looks at first, one after the other, and leaves the locks of a git that was killed.
func TestStoreIsReadWhateverBecameOfItsRepository(t *testing.T) {
	t.Parallel()
	for _, broken := range []string{".git/HEAD", ".git/objects", ".git/config", ".git"} {
		b := newBench(t)
		dir := b.repo(map[string]string{"a": "1\n"})
		b.write(dir, map[string]string{"a": "2\n"})
		s, files := b.take(dir, 1), tree(t, dir)
		must(t, os.RemoveAll(filepath.Join(dir, broken)))
		gitDir := b.git.keptOf(filepath.Join(dir, ".git"))
		for _, lock := range []string{"packed-refs.lock", stepRef(b.id, 1) + ".lock"} {
			must(t, os.WriteFile(filepath.Join(gitDir, lock), nil, 0o600))
		}
		later := &bench{t, New(b.opts), b.home, b.id}
		same(t, broken, files, tree(t, later.restored(b.ref(s, 1))))
		must(t, later.Drop(t.Context(), b.id))
	}
}

// TestIndexThatNamesWhatWasLostIsMadeAnew is a power failure that has kept the index of a history and not an object.
func TestIndexThatNamesWhatWasLostIsMadeAnew(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := b.repo(map[string]string{"a": "1\n"})
	b.write(dir, map[string]string{"new": "n\n"})
	b.take(dir, 1)
	id := strings.TrimSpace(b.user(dir, "hash-object", "new"))
	must(t, os.Remove(filepath.Join(b.storeIn(dir).objects(), id[:2], id[2:])))
	later := &bench{t, New(b.opts), b.home, b.id}
	later.take(dir, 2) // this one may be a copy
	s, files := later.take(dir, 3), tree(t, dir)
	if s.Kind != KindGit {
		t.Errorf("%+v", s)
	}
	same(t, "what was restored", files, tree(t, later.restored(later.ref(s, 3))))
}

// TestRemoveKeepsAWorkspaceOfWhichItCannotReadAll has more files where no submodule is than are kept.
func TestRemoveKeepsAWorkspaceOfWhichItCannotReadAll(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *Options) { o.MaxCopyFiles = 2 })
	dir := b.repo(map[string]string{"a": "1\n"})
	b.user(dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", b.repo(map[string]string{"in": "s"}), "sub")
	b.user(dir, "commit", "-q", "-m", "sub")
	to := forked(b, dir)
	b.write(to, map[string]string{"sub/1": "1", "sub/2": "2", "sub/3": "3"})
	if _, err := b.Remove(t.Context(), to); types.CodeOf(err) != types.ErrConflict || !strings.Contains(err.Error(), "empty submodules") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(to, "sub", "3")); err != nil {
		t.Error(err)
	}
}

func TestStoreOfARepositoryWithAnOddName(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for n, name := range []string{"with:colon", "#hash", "\"quoted\"", "line\nend", "späce d"} {
		dir := filepath.Join(b.dir(), name)
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		b.user(dir, "init", "-q", "-b", "main")
		b.write(dir, map[string]string{"a": fmt.Sprint(n)})
		b.user(dir, "add", "a")
		b.user(dir, "commit", "-q", "-m", "a")
		b.write(dir, map[string]string{"a": "changed", "b": "new"})
		s, files := b.take(dir, n), tree(t, dir)
		if s.Kind != KindGit {
			t.Errorf("%q: %+v", name, s)
		}
		same(t, name, files, tree(t, b.restored(b.ref(s, n))))
		if _, _, err := b.Diff(t.Context(), b.ref(s, n), Now(b.id, dir), DiffOpts{}); err != nil {
			t.Error(err)
		}
	}
}
