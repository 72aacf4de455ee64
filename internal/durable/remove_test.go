package durable_test

import (
	"bytes"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"rnix/internal/durable"
	"rnix/internal/durable/faultfs"
)

// The power fails at every change of a removal, and again at every change of what RemoveTemp does then.
func TestRemovedDirectoryIsThereWholeOrGone(t *testing.T) {
	fsys := faultfs.New("/d/h/sub", "/d/other")
	for i := range 3 {
		write(t, fsys, fmt.Sprintf("/d/h/%d", i), "text")
	}
	write(t, fsys, "/d/h/sub/f", "text")
	past := fsys.Record()
	if err := errors.Join(durable.RemoveDir(fsys, "/d/h"), durable.RemoveDir(fsys, "/d/h")); err != nil {
		t.Fatal(err)
	}
	last := len(past.Changes()) - 1
	look := func(state *faultfs.FS, what string) {
		t.Helper()
		if err := durable.RemoveTemp(state, "/d"); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if n := len(state.Files()); n != 9 && n != 3 { // 3: the root, d and other
			t.Fatalf("%s: left behind: %v", what, state.Files())
		}
	}
	for n := range last + 1 {
		for seed := range uint64(16) {
			for kind, state := range []*faultfs.FS{past.PowerLoss(n, seed), past.Killed(n, seed)} {
				what := fmt.Sprintf("crash %d after change %d, seed %d", kind, n, seed)
				again := state.Record()
				look(state, what)
				for m := range again.Changes() {
					look(again.PowerLoss(m, seed), fmt.Sprintf("%s; then after change %d", what, m))
				}
			}
		}
	}
	if n := len(past.PowerLoss(last, 0).Files()); n != 3 {
		t.Errorf("it has come back: %v", past.PowerLoss(last, 0).Files())
	}
}

func TestRecordsOfAFailedSyncCannotBeRead(t *testing.T) {
	fsys := faultfs.New("/d")
	l, _, err := durable.OpenLog(fsys, "/d/s/log", wholeX)
	if err = errors.Join(err, l.Append([]byte("ax\n")), l.Sync(), l.Append([]byte("bx\n"))); err != nil {
		t.Fatal(err)
	}
	fsys.Fail(faultfs.Fault{At: 1, Err: syscall.EIO})
	if err := l.Sync(); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	l.Close()
	l, _, err = durable.OpenLog(fsys, "/d/s/log", wholeX)
	if err = errors.Join(err, l.Append([]byte("cx\n")), l.Sync(), l.Close()); err != nil {
		t.Fatal(err)
	}
	fsys.Crash(0)
	if b, _ := durable.ReadFile(fsys, "/d/s/log"); string(b) != "ax\ncx\n" {
		t.Errorf("%q", b)
	}
}

func TestTemporaryFileOfAFailedReplacementDoesNotComeBack(t *testing.T) {
	for n := 1; n < 5; n++ {
		fsys := faultfs.New("/d")
		fsys.Fail(faultfs.Fault{At: n, Err: syscall.ENOSPC})
		if durable.WriteFile(fsys, "/d/f", []byte("new"), durable.Durable) == nil {
			t.Fatalf("no error at call %d", n)
		}
		for seed := range uint64(16) {
			state := fsys.Clone()
			state.Crash(seed)
			if files := state.Files(); len(files) != 2 {
				t.Errorf("call %d, seed %d: %v", n, seed, files)
			}
		}
	}
}

// A process is killed between its write and its sync; the next one appends, and power fails at that.
func TestBatchRestsOnWhatIsOnTheDisk(t *testing.T) {
	begins := func(line []byte) bool { return bytes.HasSuffix(line, []byte("x")) && line[0] != '+' }
	fsys := faultfs.New("/d/s")
	l, _, err := durable.OpenBatches(fsys, "/d/s/log", wholeX, begins)
	if err = errors.Join(err, l.Append([]byte("ax\n")), l.Sync(), l.Append(bytes.Repeat([]byte("+bx\n"), 400)), l.Close()); err != nil {
		t.Fatal(err)
	}
	past := fsys.Record()
	l, _, err = durable.OpenBatches(fsys, "/d/s/log", wholeX, begins)
	if err = errors.Join(err, l.Append([]byte("cx\n")), l.Sync(), l.Close()); err != nil {
		t.Fatal(err)
	}
	for n, what := range past.Changes() {
		for seed := range uint64(100) {
			if l, _, err = durable.OpenBatches(past.PowerLoss(n, seed), "/d/s/log", wholeX, begins); err != nil {
				t.Fatalf("power loss after %s, seed %d: %v", what, seed, err)
			}
			l.Close()
		}
	}
}
