package workspace

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rnix/types"
)

// both runs a test in a git work tree and in a plain directory with the same files.
func both(t *testing.T, files map[string]string, test func(t *testing.T, b *bench, dir string)) {
	for _, kind := range []Kind{KindGit, KindCopy} {
		t.Run(string(kind), func(t *testing.T) {
			b := newBench(t)
			var dir string
			if kind == KindGit {
				dir = b.repo(files)
			} else {
				dir = b.dir()
				b.write(dir, files)
			}
			test(t, b, dir)
		})
	}
}

func TestOverwriteRescuesWhatWasThereAndGivesItBack(t *testing.T) {
	t.Parallel()
	both(t, map[string]string{"a": "1\n", "d/b": "2\n", "d/c": "3\n", "same": "s\n"}, func(t *testing.T, b *bench, dir string) {
		b.write(dir, map[string]string{"untracked": "u1\n", "file": "f\n"})
		first := tree(t, dir)
		s1 := b.take(dir, 1)
		must(t, os.RemoveAll(filepath.Join(dir, "d")))
		must(t, os.Remove(filepath.Join(dir, "file")))
		must(t, os.Symlink("a", filepath.Join(dir, "link")))
		b.write(dir, map[string]string{"a": "changed\n", "d": "a file now\n", "file/x": "a directory now\n", "new/deep": "n\n", "untracked": "u2\n"})
		must(t, os.Chmod(filepath.Join(dir, "same"), 0o755))
		second := tree(t, dir)

		if _, err := b.Restore(context.Background(), b.ref(s1, 1), dir, RestoreOpts{}); types.CodeOf(err) != types.ErrConflict {
			t.Fatalf("without leave: %v", err)
		}
		same(t, "after a refusal", second, tree(t, dir))
		rep, err := b.Restore(context.Background(), b.ref(s1, 1), dir, RestoreOpts{Overwrite: true})
		if err != nil || len(rep.Kept) > 0 || rep.Rescue == nil || rep.Undo == "" {
			t.Fatalf("report is %+v, %v", rep, err)
		}
		same(t, "after Restore", first, tree(t, dir))
		if _, err := os.Lstat(filepath.Join(dir, "new")); err == nil {
			t.Error("an empty directory was left")
		}
		same(t, "the rescue", second, tree(t, b.restored(rep.Rescue.Ref)))
		if again := b.take(dir, 2); again.ID != s1.ID {
			t.Errorf("the snapshot of it is %+v, was %+v", again, s1)
		}
		if _, err := b.Restore(context.Background(), rep.Rescue.Ref, dir, RestoreOpts{Overwrite: true}); err != nil {
			t.Fatal(err)
		}
		same(t, "after the way back", second, tree(t, dir))
		for p := range tree(t, dir) {
			if strings.Contains(p, tempPrefix) {
				t.Errorf("left: %s", p)
			}
		}
	})
}

func TestTheCommandInTheReportGivesBackWhatWasThere(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := b.repo(map[string]string{"a": "1\n", "d/b": "2\n"})
	s := b.take(dir, 1)
	b.write(dir, map[string]string{"a": "changed\n", "it's new": "n\n"})
	second := tree(t, dir)
	rep, err := b.Restore(context.Background(), b.ref(s, 1), dir, RestoreOpts{Overwrite: true})
	must(t, err)
	command, _, ok := strings.Cut(rep.Undo, " gives back what was there before")
	if !ok {
		t.Fatalf("it says %q", rep.Undo)
	}
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", command).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	same(t, "after "+command, second, tree(t, dir))
}

func TestIgnoredFilesAreNeverRemovedAndNeverLost(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := b.repo(map[string]string{"a": "1\n", ".gitignore": "*.log\n"})
	b.write(dir, map[string]string{"out.txt": "old\n"})
	s := b.take(dir, 1)
	b.write(dir, map[string]string{".gitignore": "*.log\nout.txt\n", "x.log": "log\n", "out.txt": "precious\n"})
	b.take(dir, 2)
	rep, err := b.Restore(context.Background(), b.ref(s, 1), dir, RestoreOpts{Overwrite: true})
	must(t, err)
	got := tree(t, dir)
	if _, ok := got["x.log"]; !ok || len(rep.Kept) > 0 {
		t.Errorf("files are %v, report %+v", slices.Sorted(maps.Keys(got)), rep)
	}
	if got["out.txt"] != tree(t, b.restored(b.ref(s, 1)))["out.txt"] {
		t.Error("the file that is ignored by now was not restored")
	}
	if data, err := os.ReadFile(filepath.Join(b.restored(rep.Rescue.Ref), "out.txt")); err != nil || string(data) != "precious\n" {
		t.Errorf("the rescue has %q, %v", data, err)
	}
}

// What is said to be written and removed are files, whichever way they are kept.
func TestAReportCountsFilesAndNotTheirDirectories(t *testing.T) {
	t.Parallel()
	both(t, map[string]string{"a": "1\n", "d/e/b": "2\n"}, func(t *testing.T, b *bench, dir string) {
		s := b.take(dir, 1)
		must(t, os.RemoveAll(filepath.Join(dir, "d")))
		b.write(dir, map[string]string{"new/deep/x": "x\n", "new/y": "y\n"})
		rep, err := b.Restore(context.Background(), b.ref(s, 1), dir, RestoreOpts{Overwrite: true})
		if err != nil || rep.Written != 1 || rep.Removed != 2 {
			t.Errorf("report is %+v, %v", rep, err)
		}
		there := filepath.Join(b.dir(), "there")
		if rep, err = b.Restore(context.Background(), b.ref(s, 1), there, RestoreOpts{}); err != nil || rep.Written != 2 {
			t.Errorf("elsewhere: %+v, %v", rep, err)
		}
	})
}

func TestOnlySomePathsAreUndone(t *testing.T) {
	t.Parallel()
	both(t, map[string]string{"a": "1\n", "d/b": "2\n", "e/x": "x\n"}, func(t *testing.T, b *bench, dir string) {
		s := b.take(dir, 1)
		b.write(dir, map[string]string{"a": "kept change\n", "d/b": "undone\n", "d/new": "undone too\n", "lone": "undone as well\n"})
		must(t, os.RemoveAll(filepath.Join(dir, "e")))
		before := tree(t, dir)
		rep, err := b.RestorePaths(context.Background(), b.ref(s, 1), dir, []string{"d", filepath.Join(dir, "lone"), "e/x"})
		if err != nil || len(rep.Kept) > 0 || rep.Written != 2 || rep.Removed != 2 {
			t.Fatalf("report is %+v, %v", rep, err)
		}
		want := map[string]string{"a": before["a"], "d/b": tree(t, b.restored(b.ref(s, 1)))["d/b"], "e/x": tree(t, b.restored(b.ref(s, 1)))["e/x"]}
		same(t, "after RestorePaths", want, tree(t, dir))
		same(t, "the rescue", before, tree(t, b.restored(rep.Rescue.Ref)))
		for _, bad := range []string{"../x", "/etc/passwd", ".git/config", "."} {
			if _, err := b.RestorePaths(context.Background(), b.ref(s, 1), dir, []string{bad}); types.CodeOf(err) != types.ErrInvalid {
				t.Errorf("%s: %v", bad, err)
			}
		}
	})
}

func TestRestoreDoesNotFollowLinksOutOfTheDirectory(t *testing.T) {
	t.Parallel()
	both(t, map[string]string{"d/f": "inside\n"}, func(t *testing.T, b *bench, dir string) {
		s := b.take(dir, 1)
		outside := b.dir()
		b.write(outside, map[string]string{"f": "outside\n"})
		must(t, os.RemoveAll(filepath.Join(dir, "d")))
		must(t, os.Symlink(outside, filepath.Join(dir, "d")))
		if _, err := b.Restore(context.Background(), b.ref(s, 1), dir, RestoreOpts{Overwrite: true}); err != nil {
			t.Fatal(err)
		}
		if data, _ := os.ReadFile(filepath.Join(outside, "f")); string(data) != "outside\n" {
			t.Errorf("the file outside holds %q", data)
		}
		same(t, "the directory", tree(t, b.restored(b.ref(s, 1))), tree(t, dir))
	})
}

func TestPermissionsEmptyDirectoriesAndTimesOfACopyComeBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := b.dir()
	b.write(dir, map[string]string{"secret": "s", "d/x": "x"})
	must(t, os.Chmod(filepath.Join(dir, "secret"), 0o600))
	must(t, os.Mkdir(filepath.Join(dir, "empty"), 0o700))
	to := b.restored(b.ref(b.take(dir, 1), 1))
	for _, name := range []string{"secret", "empty", "d", "d/x"} {
		want, err := os.Lstat(filepath.Join(dir, name))
		must(t, err)
		got, err := os.Lstat(filepath.Join(to, name))
		must(t, err)
		if got.Mode() != want.Mode() || !got.IsDir() && !got.ModTime().Equal(want.ModTime()) {
			t.Errorf("%s: %v of %v, was %v of %v", name, got.Mode(), got.ModTime(), want.Mode(), want.ModTime())
		}
	}
}

func TestDamagedCopyIsReportedAndNothingIsMadeOfIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := b.dir()
	b.write(dir, map[string]string{"a": strings.Repeat("text ", 100)})
	s := b.take(dir, 1)
	blobs, err := filepath.Glob(filepath.Join(b.copies.base, "objects", "*", "*"))
	if err != nil || len(blobs) != 1 {
		t.Fatalf("objects are %v, %v", blobs, err)
	}
	must(t, os.WriteFile(blobs[0], []byte("pother"), 0o600))
	to := filepath.Join(b.dir(), "to")
	if _, err := b.Restore(context.Background(), b.ref(s, 1), to, RestoreOpts{}); types.CodeOf(err) != types.ErrStorage {
		t.Errorf("error is %v", err)
	}
	if got := tree(t, to); len(got) > 0 {
		t.Errorf("made of it: %v", got)
	}
}
