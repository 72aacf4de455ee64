package plumbing

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestOnlyRegularFilesOfBoundedLengthAreRead(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.WriteFile(at("file"), []byte("four"), 0o600), os.Symlink("file", at("link")), syscall.Mkfifo(at("pipe"), 0o600), os.Symlink("/dev/zero", at("zero")),
		os.Symlink("pipe", at("link to a pipe")), os.WriteFile(at("long"), nil, 0o600), os.Truncate(at("long"), 1<<40),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"file", "link"} {
		if b, info, err := ReadFile(at(name), 4); string(b) != "four" || err != nil || !info.Mode().IsRegular() {
			t.Errorf("%s: %q %v", name, b, err)
		}
	}
	for _, name := range []string{"pipe", "zero", "link to a pipe", "long", "."} {
		if b, _, err := ReadFile(at(name), 4); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %d bytes", name, len(b))
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, want := range map[string]string{"file": "fou", "link": "fou", "long": "\x00\x00\x00", "pipe": "", "zero": "", "link to a pipe": "", ".": ""} {
		if b, err := BeginningIn(root, name, 3); string(b) != want || (err == nil) != (want != "") {
			t.Errorf("%s below a root: %q %v", name, b, err)
		}
		if b, err := Beginning(at(name), 3); string(b) != want && name != "zero" || (err == nil) != (want != "") {
			t.Errorf("%s: %q %v", name, b, err)
		}
	}
	if _, _, err := ReadFile(at("file"), 3); err == nil {
		t.Error("one that is too long was read")
	}
	if _, _, err := ReadFile(at("none"), 3); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// A pipe that a program keeps open has no end.
func TestNothingIsReadOfAPipeThatIsKeptOpen(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"HEAD", "packed-refs", "locked", "log"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close() // which ends also whoever reads
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "logs"), 0o700), os.Rename(filepath.Join(dir, "log"), filepath.Join(dir, "logs", "HEAD"))); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		if name := Branch(dir); name != "" || MayHaveRefs(dir, "refs/rnix/") {
			t.Errorf("branch %q, or it has references", name)
		}
		if _, err := Locked(dir); err != nil {
			t.Error(err)
		}
		if moves, whole, err := ReadLog(dir, "HEAD"); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the log is read: %v, whole: %v, %v", moves, whole, err)
		}
	}()
	select {
	case <-read:
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for whoever has the pipe open")
	}
}

// Git takes a work tree for locked when there is such a file, whatever it is.
func TestALockThatIsAPipeIsNotWaitedFor(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "locked"), 0o600); err != nil {
		t.Fatal(err)
	}
	if why, err := Locked(dir); why != "" || err != nil {
		t.Errorf("%q %v", why, err)
	}
}
