package faultfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"rnix/internal/durable"
	"rnix/internal/durable/faultfs"
)

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func open(t *testing.T, fsys durable.FS, name string) durable.File {
	t.Helper()
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	must(t, err)
	return f
}

func put(t *testing.T, f durable.File, text string) {
	t.Helper()
	_, err := f.Write([]byte(text))
	must(t, err)
}

// states returns what a file can be after power has failed now.
func states(past *faultfs.Past, name string, seeds uint64) map[string]int {
	out := map[string]int{}
	for seed := range seeds {
		b, err := durable.ReadFile(past.PowerLoss(len(past.Changes())-1, seed), name)
		if err != nil {
			b = []byte("none")
		}
		out[string(b)]++
	}
	return out
}

func TestUnsyncedBytesAreLostTornReorderedOrZero(t *testing.T) {
	fsys := faultfs.New("/d")
	f := open(t, fsys, "/d/f")
	put(t, f, "old")
	must(t, f.Sync(), fsys.SyncDir("/d"))
	past := fsys.Record()
	a, b := bytes.Repeat([]byte("a"), 509), bytes.Repeat([]byte("b"), 512)
	put(t, f, string(a)+string(b))
	got := states(past, "/d/f", 400)
	whole := "old" + string(a) + string(b)
	for what, want := range map[string]string{
		"lost": "old", "all there": whole, "a hole": "old" + string(make([]byte, 509)) + string(b),
		"the first sector": "old" + string(a), "zeros at the end": "old" + string(a) + string(make([]byte, 512)),
	} {
		if got[want] == 0 {
			t.Errorf("%s: never", what)
		}
	}
	torn := 0
	for s := range got {
		if len(s) < 3 || s[:3] != "old" {
			t.Errorf("synced bytes are lost: %q", s)
		}
		if len(s) != len(whole) && len(s) != 3 && len(s) != 512 && bytes.HasPrefix([]byte(whole), []byte(s)) {
			torn++
		}
	}
	if torn < 5 {
		t.Errorf("torn at %d places", torn)
	}
	if b, _ := durable.ReadFile(past.PowerLoss(1, 0), "/d/f"); string(b) != "old" {
		t.Errorf("seed 0 keeps %q", b)
	}
}

func TestUnsyncedNamesMayBeThereOrNot(t *testing.T) {
	fsys := faultfs.New("/d", "/e")
	f := open(t, fsys, "/d/f")
	put(t, f, "old")
	must(t, f.Sync(), fsys.SyncDir("/d"))
	past := fsys.Record()
	must(t, fsys.Mkdir("/d/sub", 0o700))
	g := open(t, fsys, "/d/new")
	put(t, g, "new")
	must(t, g.Sync(), fsys.Rename("/d/new", "/d/f"), fsys.Rename("/d/f", "/e/f"))
	seen := map[string]int{}
	for seed := range uint64(300) {
		s := past.PowerLoss(len(past.Changes())-1, seed)
		d, derr := durable.ReadFile(s, "/d/f")
		e, eerr := durable.ReadFile(s, "/e/f")
		_, suberr := s.Stat("/d/sub")
		if derr == nil && eerr == nil && string(d) == string(e) {
			t.Fatalf("seed %d: a rename has made two files", seed)
		}
		seen[fmt.Sprint(string(d), " ", string(e), " ", suberr == nil)]++
		if seed == 0 && (string(d) != "old" || eerr == nil || suberr == nil) {
			t.Errorf("the worst case has %q, %q, %v", d, e, suberr)
		}
	}
	for _, want := range []string{"old  false", "old  true", "new  false", "new  true", " new false", " new true"} {
		if seen[want] == 0 {
			t.Errorf("never %q: %v", want, seen)
		}
	}
	must(t, fsys.SyncDir("/e"))
	s := past.PowerLoss(len(past.Changes())-1, 0)
	if b, err := durable.ReadFile(s, "/e/f"); err != nil || string(b) != "new" {
		t.Errorf("after a sync of the new directory: %q, %v", b, err)
	}
}

func TestKilledProcessLosesNothingButMayHaveHalfWritten(t *testing.T) {
	fsys := faultfs.New("/d")
	past := fsys.Record()
	f := open(t, fsys, "/d/f")
	put(t, f, "one")
	put(t, f, "two")
	seen := map[string]int{}
	for seed := range uint64(50) {
		k := past.Killed(2, seed)
		b, err := durable.ReadFile(k, "/d/f")
		must(t, err)
		seen[string(b)]++
		k.Crash(0)
		if _, err := k.Stat("/d/f"); err == nil {
			t.Fatal("a kill has made a name durable")
		}
	}
	for _, want := range []string{"one", "onet", "onetw", "onetwo"} {
		if seen[want] == 0 {
			t.Errorf("never %q: %v", want, seen)
		}
	}
	if len(seen) != 4 {
		t.Errorf("got %v", seen)
	}
}

func TestSyncAfterAFailedSyncSavesNothing(t *testing.T) {
	fsys := faultfs.New("/d")
	f := open(t, fsys, "/d/f")
	put(t, f, "a")
	must(t, f.Sync(), fsys.SyncDir("/d"))
	put(t, f, "b")
	fsys.Fail(faultfs.Fault{At: 1, Err: syscall.EIO})
	if err := f.Sync(); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	must(t, f.Sync())
	put(t, f, "c")
	must(t, f.Sync())
	lost := fsys.Clone()
	lost.Crash(0)
	if b, _ := durable.ReadFile(lost, "/d/f"); string(b) != "a\x00c" {
		t.Errorf("%q", b)
	}
	must(t, f.Truncate(1), f.Sync())
	put(t, f, "d")
	must(t, f.Sync())
	fsys.Crash(0)
	if b, _ := durable.ReadFile(fsys, "/d/f"); string(b) != "ad" {
		t.Errorf("%q", b)
	}
}

func TestSameSeedGivesTheSameState(t *testing.T) {
	make := func() *faultfs.Past {
		fsys := faultfs.New("/d")
		past := fsys.Record()
		for i := range 5 {
			must(t, durable.WriteFile(fsys, fmt.Sprintf("/d/%d", i%3), bytes.Repeat([]byte{byte('0' + i)}, 700), i%2 == 0))
		}
		return past
	}
	a, b := make(), make()
	for n := range a.Changes() {
		for seed := range uint64(20) {
			x, y := a.PowerLoss(n, seed).Files(), b.PowerLoss(n, seed).Files()
			for name, data := range x { // but for the names of temporary files
				if name[len(name)-1] != '~' && !bytes.Equal(data, y[name]) {
					t.Fatalf("crash after %d, seed %d: %s differs", n, seed, name)
				}
			}
		}
	}
}
