package ipc

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// On a full disk a lock is held though it does not say by whom: what is there can be read.
func TestALockIsHeldThoughADiskIsTooFullForItsNote(t *testing.T) {
	l, err := TakeLock("/dev/full", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

func TestALockThatIsSharedIsHeldByBothAndSaysWho(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	l, err := TakeLock(path, "/where")
	if err != nil {
		t.Fatal(err)
	}
	f, err := l.Share(4711)
	if err != nil {
		t.Fatal(err)
	}
	sleeper := exec.Command("sleep", "1000") // it is given the open file
	sleeper.ExtraFiles = []*os.File{f}
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	h, held, err := LockHolder(path)
	if err != nil || !held || h.PID != os.Getpid() || h.Warden != 4711 || h.Socket != "/where" {
		t.Errorf("the lock is that of %+v, %v, %v", h, held, err)
	}
	if h.Ended() {
		t.Error("this program has ended, it is said")
	}
	other := LockInfo{PID: sleeper.Process.Pid}
	if other.Ended() {
		t.Error("who sleeps has ended, it is said")
	}
	if err := sleeper.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for !other.Ended() { // nobody has waited for it
		runtime.Gosched()
	}
	if _, held, err := LockHolder(path); err != nil || held {
		t.Errorf("held by nobody that lives: %v, %v", held, err)
	}
	_ = sleeper.Wait() // it was killed
	if !other.Ended() || (LockInfo{}).Ended() {
		t.Error("who was waited for has not ended, or nobody has")
	}
}

func TestAPipeInThePlaceOfALockKeepsNobody(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if info, held, err := LockHolder(path); held {
		t.Errorf("it is held by %+v, %v", info, err)
	}
	if l, err := TakeLock(path, ""); err == nil {
		t.Errorf("it was taken: %v", l.Close())
	}
}
