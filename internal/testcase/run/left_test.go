package run

import (
	"os"
	"path/filepath"
	"testing"

	"rnix/ipc"
)

func TestOnlyWhatADeadRunHasLeftIsRemoved(t *testing.T) {
	temp := t.TempDir()
	dir := func(name string) string {
		d := filepath.Join(temp, name)
		if err := os.MkdirAll(filepath.Join(d, "data"), 0o700); err != nil {
			t.Fatal(err)
		}
		return d
	}
	held := func(name string) *os.File {
		f, err := hold(dir(name))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	defer held("rnixt-lives").Close()
	held("rnixt-dead").Close()
	held("other-dead").Close()
	held("rnixt-daemon").Close()
	lock, err := ipc.TakeLock(ipc.DataLock(filepath.Join(temp, "rnixt-daemon", "data")), "")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	held("rnixt-open").Close() // others may write there, so it says nothing
	if err := os.Chmod(filepath.Join(temp, "rnixt-open"), 0o777); err != nil {
		t.Fatal(err)
	}
	dir("rnixt-unmarked")
	if err := os.WriteFile(filepath.Join(dir("rnixt-wrong"), holdFile), []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(temp, "other-dead"), filepath.Join(temp, "rnixt-link")); err != nil {
		t.Fatal(err)
	}
	sweep(temp)
	for name, stays := range map[string]bool{"rnixt-lives": true, "rnixt-dead": false, "other-dead/" + holdFile: true, "rnixt-daemon": true, "rnixt-open": true,
		"rnixt-unmarked": true, "rnixt-wrong": true, "rnixt-link": true} {
		if _, err := os.Lstat(filepath.Join(temp, name)); (err == nil) != stays {
			t.Errorf("%s: stays %v, want %v", name, err == nil, stays)
		}
	}
}
