package workspace

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"rnix/types"
)

var seed = flag.Uint64("seed", 0, "of the random edits; 0 = a new one")

// edit changes a directory at random.
func edit(t testing.TB, r *rand.Rand, dir string) {
	names := []string{"a", "b", "d/a", "d/b", "d/e/f", "g", "g/h", "odd name\n", "x.log"}
	for range 1 + r.IntN(4) {
		path := filepath.Join(dir, names[r.IntN(len(names))])
		switch r.IntN(6) {
		case 0, 1, 2:
			for up := filepath.Dir(path); up != dir; up = filepath.Dir(up) {
				if info, err := os.Lstat(up); err == nil && !info.IsDir() {
					must(t, os.Remove(up))
				}
			}
			must(t, os.MkdirAll(filepath.Dir(path), 0o755))
			if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
				must(t, os.RemoveAll(path))
			}
			must(t, os.WriteFile(path, []byte(fmt.Sprint(r.IntN(10), "\r\n")), 0o644)) // often of the same size, in the same moment
		case 3:
			if info, err := os.Stat(filepath.Dir(path)); err == nil && info.IsDir() {
				must(t, os.RemoveAll(path))
			}
		case 4:
			if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
				must(t, os.Chmod(path, 0o644|os.FileMode(r.IntN(2)*0o111)))
			}
		case 5:
			if info, err := os.Lstat(filepath.Dir(path)); err == nil && info.IsDir() {
				must(t, os.RemoveAll(path))
				must(t, os.Symlink(names[r.IntN(len(names))], path))
			}
		}
	}
}

// Where a file was stands a directory now in which there is nothing but directories: git knows none of them, so no rescue can hold them.
func TestEmptyDirectoriesAreInNobodysWay(t *testing.T) {
	both(t, map[string]string{"a": "1\n", "b": "2\n"}, func(t *testing.T, b *bench, dir string) {
		ref := b.ref(b.take(dir, 0), 0)
		before := tree(t, dir)
		for _, name := range []string{"a", "b"} {
			must(t, os.Remove(filepath.Join(dir, name)))
		}
		must(t, os.MkdirAll(filepath.Join(dir, "a", "empty", "deep"), 0o755))
		must(t, os.MkdirAll(filepath.Join(dir, "b"), 0o755))
		b.take(dir, 1)
		if rep, err := b.Restore(context.Background(), ref, dir, RestoreOpts{Overwrite: true}); err != nil || len(rep.Kept) > 0 {
			t.Fatalf("%+v, %v", rep, err)
		}
		same(t, "restored", before, tree(t, dir))
	})
}

func TestEachOfManyRandomStepsComesBackByteForByte(t *testing.T) {
	t.Parallel()
	both(t, map[string]string{"a": "1\n", "d/a": "2\n"}, func(t *testing.T, b *bench, dir string) {
		s := *seed
		if s == 0 {
			s = uint64(time.Now().UnixNano())
		}
		t.Logf("seed %d", s)
		r := rand.New(rand.NewPCG(s, 0))
		var refs []Ref
		var trees []map[string]string
		for step := range 12 {
			edit(t, r, dir)
			refs = append(refs, b.ref(b.take(dir, step), step))
			trees = append(trees, tree(t, dir))
		}
		for i, ref := range refs {
			same(t, fmt.Sprint("step ", i), trees[i], tree(t, b.restored(ref)))
		}
		for range 3 { // and over each other
			i := r.IntN(len(refs))
			if rep, err := b.Restore(context.Background(), refs[i], dir, RestoreOpts{Overwrite: true}); err != nil || len(rep.Kept) > 0 {
				t.Fatalf("step %d: %+v, %v", i, rep, err)
			}
			same(t, fmt.Sprint("step ", i, " in place"), trees[i], tree(t, dir))
		}
	})
}

func TestHistoriesShareAWorkTreeWhileItIsChanged(t *testing.T) {
	t.Parallel()
	both(t, map[string]string{"a": "1\n", "still": "s\n"}, func(t *testing.T, b *bench, dir string) {
		stop := make(chan struct{})
		var writer, takers sync.WaitGroup
		writer.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				path := filepath.Join(dir, fmt.Sprint("f", i%20))
				if i%3 == 2 {
					_ = os.Remove(path)
				} else if err := os.WriteFile(path, []byte(strings.Repeat(fmt.Sprint(i), i%5000)), 0o644); err != nil {
					t.Error(err)
				}
			}
		})
		ids := []types.UUID{types.NewUUID(), types.NewUUID()}
		for _, id := range ids {
			takers.Go(func() {
				for step := range 4 {
					if _, err := b.Take(context.Background(), dir, id, step); err != nil {
						t.Error(err)
					}
				}
			})
		}
		takers.Wait()
		close(stop)
		writer.Wait()
		want := tree(t, dir)
		for _, id := range ids {
			s, err := b.Take(context.Background(), dir, id, 9)
			must(t, err)
			same(t, "when it is quiet", want, tree(t, b.restored(Ref{UUID: id, Kind: s.Kind, ID: s.ID, Root: s.Root})))
		}
	})
}

func TestCancelledTakeLeavesNoLock(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	files := map[string]string{}
	for i := range 400 {
		files[fmt.Sprint("d", i%9, "/f", i)] = fmt.Sprint("text ", i)
	}
	dir := b.repo(files)
	before := b.belongings(dir)
	for i := range 12 {
		b.write(dir, map[string]string{"a": fmt.Sprint(i)})
		ctx, cancel := context.WithTimeoutCause(context.Background(), time.Duration(i*6)*time.Millisecond, errors.New("enough"))
		_, err := b.Take(ctx, dir, b.id, i)
		cancel()
		if err != nil && types.CodeOf(err) != types.ErrCancelled {
			t.Errorf("after %d ms: %v", i*6, err)
		}
	}
	b.take(dir, 99)                                                                   // on a slow machine none has come far before
	must(t, os.WriteFile(filepath.Join(firstShadow(t, b), "index.lock"), nil, 0o600)) // of one that had no time to clean up
	b.write(dir, map[string]string{"a": "after"})
	s := b.take(dir, 100)
	same(t, "the snapshot after that", tree(t, dir), tree(t, b.restored(b.ref(s, 100))))
	must(t, os.Remove(filepath.Join(dir, "a")))
	after := b.belongings(dir)
	same(t, "what is the user's", before, after)
	for p := range after {
		if strings.HasSuffix(p, ".lock") {
			t.Errorf("left: %s", p)
		}
	}
}

func firstShadow(t *testing.T, b *bench) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(b.git.base, "git", b.id.String(), "*", "index"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no private git directory: %v", err)
	}
	return filepath.Dir(found[0])
}

func TestWhatACrashHasLeftDoesNotDisturb(t *testing.T) {
	t.Parallel()
	both(t, map[string]string{"a": "1\n"}, func(t *testing.T, b *bench, dir string) {
		b.take(dir, 1)
		b.write(dir, map[string]string{"a": "2\n"})
		for _, junk := range []string{"history/" + b.id.String() + "/.000001.json.0011.tmp~", "objects/" + largePrefix + "x", "cache/" + copyName(b.id, dir) + ".json"} {
			b.write(b.git.base, map[string]string{junk: "{torn"})
		}
		later := &bench{t, New(b.opts), b.home, b.id}
		s := later.take(dir, 2)
		same(t, "the snapshot", tree(t, dir), tree(t, later.restored(later.ref(s, 2))))
		if all, err := later.List(context.Background(), b.id); err != nil || len(all) != 2 {
			t.Errorf("records are %+v, %v", all, err)
		}
		if _, err := later.Sweep(context.Background()); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(b.git.base, "objects", largePrefix+"x")); err == nil {
			t.Error("the unfinished object is still there")
		}
	})
}

func TestDropForgetsSnapshotsAndSweepOnlyWhatNobodyHas(t *testing.T) {
	t.Parallel()
	both(t, map[string]string{"a": "1\n", "shared": "s\n"}, func(t *testing.T, b *bench, dir string) {
		ctx := context.Background()
		other := &bench{t, b.Keeper, b.home, types.NewUUID()}
		kept := other.take(dir, 1)
		files := tree(t, dir)
		b.take(dir, 1)
		b.write(dir, map[string]string{"a": "mine only\n"})
		b.take(dir, 2)
		must(t, b.Drop(ctx, b.id))
		if all, err := b.List(ctx, b.id); err != nil || len(all) > 0 {
			t.Errorf("records are %+v, %v", all, err)
		}
		swept, err := b.Sweep(ctx)
		if err != nil || kept.Kind == KindCopy && (swept.Objects != 1 || swept.Manifests != 1) {
			t.Errorf("swept %+v, %v", swept, err)
		}
		if kept.Kind == KindGit {
			refs := b.user(dir, "--git-dir="+b.git.keptOf(filepath.Join(dir, ".git")), "for-each-ref", "--format=%(refname)", "refs/rnix")
			if strings.TrimSpace(refs) != stepRef(other.id, 1) {
				t.Errorf("references are %q", refs)
			}
		}
		same(t, "the other history", files, tree(t, other.restored(other.ref(kept, 1))))
		if s := b.take(dir, 3); !s.Changed {
			t.Errorf("after Drop: %+v", s)
		}
	})
}
