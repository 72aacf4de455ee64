package durable_test

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"rnix/internal/durable"
	"rnix/internal/durable/faultfs"
	"rnix/types"
)

func both(t *testing.T, run func(t *testing.T, fsys durable.FS, dir string)) {
	t.Run("os", func(t *testing.T) { run(t, durable.OS, t.TempDir()) })
	t.Run("faultfs", func(t *testing.T) { run(t, faultfs.New("/d"), "/d") })
}

func TestReplacedFileIsWholeAndPrivate(t *testing.T) {
	both(t, func(t *testing.T, fsys durable.FS, dir string) {
		path := filepath.Join(dir, "a.json")
		for _, class := range []durable.Class{durable.Durable, durable.Cached} {
			want := fmt.Sprintf("text %v", class)
			if err := durable.WriteFile(fsys, path, []byte(want), class); err != nil {
				t.Fatal(err)
			}
			got, err := durable.ReadFile(fsys, path)
			if err != nil || string(got) != want {
				t.Fatalf("read %q, %v", got, err)
			}
		}
		entries, _ := fsys.ReadDir(dir)
		if len(entries) != 1 {
			t.Errorf("left behind: %v", entries)
		}
		info, _ := fsys.Stat(path)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v", info.Mode())
		}
	})
}

func TestMissingFileIsNotFound(t *testing.T) {
	both(t, func(t *testing.T, fsys durable.FS, dir string) {
		_, err := durable.ReadFile(fsys, filepath.Join(dir, "none"))
		if types.CodeOf(err) != types.ErrNotFound || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v", err)
		}
	})
}

func TestNewDirectoriesArePrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	if err := durable.MkdirAll(durable.OS, dir); err != nil {
		t.Fatal(err)
	}
	info, _ := os.Stat(dir)
	if info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v", info.Mode())
	}
	os.WriteFile(dir+"/f", nil, 0o600)
	if err := durable.MkdirAll(durable.OS, dir+"/f"); types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("a file in the way: %v", err)
	}
}

// Every crash point of a replacement, and many ways to lose what was not synced.
func TestReplacementSurvivesACrashAtEveryCall(t *testing.T) {
	for n := 1; ; n++ {
		acked := false
		for seed := range uint64(64) {
			fsys := faultfs.New("/d")
			if err := durable.WriteFile(fsys, "/d/f", []byte("old"), durable.Durable); err != nil {
				t.Fatal(err)
			}
			fsys.CrashAt(n)
			acked = durable.WriteFile(fsys, "/d/f", []byte("new"), durable.Durable) == nil
			fsys.Crash(seed)
			got, err := durable.ReadFile(fsys, "/d/f")
			if err != nil || string(got) != "new" && (acked || string(got) != "old") {
				t.Fatalf("crash at call %d, seed %d, acknowledged %v: %q, %v", n, seed, acked, got, err)
			}
			if err := durable.RemoveTemp(fsys, "/d"); err != nil {
				t.Fatal(err)
			}
			if e, _ := fsys.ReadDir("/d"); len(e) != 1 {
				t.Fatalf("crash at call %d, seed %d: left behind %v", n, seed, e)
			}
		}
		if acked {
			return
		}
	}
}

func TestFailedReplacementKeepsTheOldFile(t *testing.T) {
	for _, short := range []bool{false, true} {
		for n := 1; ; n++ {
			fsys := faultfs.New("/d")
			durable.WriteFile(fsys, "/d/f", []byte("old"), durable.Durable)
			fsys.Fail(faultfs.Fault{At: n, Err: syscall.ENOSPC, Short: short})
			err := durable.WriteFile(fsys, "/d/f", []byte("new"), durable.Durable)
			if err == nil {
				break
			}
			if types.CodeOf(err) != types.ErrStorage || !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("call %d: %v", n, err)
			}
			got, _ := durable.ReadFile(fsys, "/d/f")
			if e, _ := fsys.ReadDir("/d"); len(e) != 1 || string(got) != "old" && string(got) != "new" {
				t.Errorf("call %d: %q, %v", n, got, e)
			}
		}
	}
}

func TestLockNamesItsHolder(t *testing.T) {
	both(t, func(t *testing.T, fsys durable.FS, dir string) {
		path := filepath.Join(dir, "lock")
		l, err := fsys.Lock(path)
		if err != nil {
			t.Fatal(err)
		}
		_, err = fsys.Lock(path)
		if types.CodeOf(err) != types.ErrConflict || !strings.Contains(err.Error(), fmt.Sprint("pid ", os.Getpid())) {
			t.Errorf("second lock: %v", err)
		}
		l.Close()
		l, err = fsys.Lock(path)
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
	})
}

// A lock that was given back is free, although a child that is being started still has a copy of its descriptor.
func TestALockIsFreeWhenItIsGivenBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	l, err := durable.OS.Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("needs /proc")
	}
	copied := -1
	for _, fd := range fds {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && to == path {
			n, _ := strconv.Atoi(fd.Name())
			copied, err = syscall.Dup(n)
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if copied < 0 {
		t.Fatal("the file of the lock is not open")
	}
	defer syscall.Close(copied)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if l.Close() == nil {
		t.Error("it was closed twice")
	}
	if l, err = durable.OS.Lock(path); err != nil {
		t.Fatal(err)
	}
	l.Close()
}

func TestCounterNeverRepeatsANumber(t *testing.T) {
	for n := 1; n < 30; n++ {
		for seed := range uint64(8) {
			fsys := faultfs.New("/d")
			seen := map[uint64]bool{}
			last := uint64(0)
			for range 3 {
				c, err := durable.OpenCounter(fsys, "/d/pid", 4, 1)
				if err != nil {
					t.Fatal(err)
				}
				fsys.CrashAt(n)
				for i := range 10 {
					if i == 5 && c.Settle() != nil {
						break
					}
					x, err := c.Next()
					if err != nil {
						break
					}
					if seen[x] || x <= last {
						t.Fatalf("crash at %d, seed %d: %d after %d", n, seed, x, last)
					}
					seen[x], last = true, x
				}
				fsys.Crash(seed)
			}
		}
	}
}

func TestCounterStartsAboveItsSeed(t *testing.T) {
	fsys := faultfs.New("/d")
	c, err := durable.OpenCounter(fsys, "/d/pid", 64, 100)
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := c.Next(); n != 100 {
		t.Errorf("first number %d", n)
	}
	c.Raise(5000)
	if n, _ := c.Next(); n != 5000 {
		t.Errorf("after Raise: %d", n)
	}
	fsys.Crash(0)
	c, err = durable.OpenCounter(fsys, "/d/pid", 64, 7)
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := c.Next(); n <= 5000 {
		t.Errorf("after a crash: %d", n)
	}
}

func TestCounterRefusesWhatItCannotRead(t *testing.T) {
	for text, code := range map[string]types.ErrCode{
		"": types.ErrStorage, "\x00\x00": types.ErrStorage, `{"v":1}`: types.ErrStorage, `{"v":9,"next":3}`: types.ErrStorage, `{"v":9,"next":3,"sum":2}`: types.ErrStorage,
		`{"v":9,"next":3,"sum":SUM}`:          types.ErrVersion,
		`{"v":1,"next":18446744073709551615}`: types.ErrStorage, // it would go on with 0
	} {
		fsys := faultfs.New("/d")
		text = strings.Replace(text, "SUM", fmt.Sprint(crc32.Checksum([]byte("9 3"), crc32.MakeTable(crc32.Castagnoli))), 1)
		durable.WriteFile(fsys, "/d/pid", []byte(text), durable.Durable)
		if _, err := durable.OpenCounter(fsys, "/d/pid", 64, 1); types.CodeOf(err) != code {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestAFlippedBitOfACounterIsFoundAndItCountsOn(t *testing.T) {
	fsys := faultfs.New("/d")
	c, err := durable.OpenCounter(fsys, "/d/pid", 1, 4711)
	if err == nil {
		_, err = c.Next()
	}
	whole, rerr := durable.ReadFile(fsys, "/d/pid")
	if err != nil || rerr != nil {
		t.Fatal(err, rerr)
	}
	for bit := range 8 * len(whole) {
		b := bytes.Clone(whole)
		b[bit/8] ^= 1 << (bit % 8)
		_ = durable.WriteFile(fsys, "/d/pid", b, durable.Durable)
		c, mended, err := durable.MendCounter(fsys, "/d/pid", 1, 5000)
		if err != nil {
			t.Fatalf("%q: %v", b, err)
		}
		if mended != "" && !strings.Contains(mended, "/d/pid was damaged, and counts on from 5000") {
			t.Errorf("%q: %s", b, mended)
		}
		if n, err := c.Next(); n != 5000 || err != nil {
			t.Errorf("%q: the next is %d, %v", b, n, err)
		}
		_, aside, _ := strings.Cut(mended, "what it was is now ")
		if was, err := durable.ReadFile(fsys, aside); mended != "" && (err != nil || !bytes.Equal(was, b)) {
			t.Errorf("%q: %q, %v is kept", b, was, err)
		}
		_ = fsys.Remove(aside)

		_ = durable.WriteFile(fsys, "/d/pid", b, durable.Durable)
		if next, err := durable.ReadCounter(fsys, "/d/pid"); err == nil && next != 4712 || err != nil && !errors.Is(err, durable.ErrNotCounter) {
			t.Errorf("%q is taken for %d, %v", b, next, err)
		}
	}
}

func TestCounterWritesOncePerBlock(t *testing.T) {
	fsys := faultfs.New("/d")
	c, _ := durable.OpenCounter(fsys, "/d/pid", 64, 1)
	fsys.Fail(faultfs.Fault{})
	for range 128 {
		if _, err := c.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(strings.Join(fsys.Trace(), "\n"), "rename"); n != 2 {
		t.Errorf("%d writes for 128 numbers", n)
	}
}

func TestGracefulStopLeavesNoGap(t *testing.T) {
	fsys := faultfs.New("/d")
	for want := uint64(1); want < 4; want++ {
		c, err := durable.OpenCounter(fsys, "/d/pid", 64, 1)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := c.Next(); n != want || err != nil {
			t.Errorf("%d %v, want %d", n, err, want)
		}
		if err := c.Settle(); err != nil {
			t.Fatal(err)
		}
		fsys.Crash(0)
	}
}

func TestFullDiskDoesNotLoseANumber(t *testing.T) {
	fsys := faultfs.New("/d")
	c, _ := durable.OpenCounter(fsys, "/d/pid", 1, 1)
	fsys.Fail(faultfs.Fault{At: 2, Err: syscall.ENOSPC})
	if _, err := c.Next(); err == nil {
		t.Fatal("no error")
	}
	if n, err := c.Next(); n != 1 || err != nil {
		t.Errorf("afterwards: %d, %v", n, err)
	}
}

func FuzzScan(f *testing.F) {
	f.Add([]byte("a\nb\n"))
	f.Add([]byte("a\nb"))
	f.Add([]byte("a\n\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		good, d, err := durable.Scan(bytes.NewReader(data), "f", nil)
		if err != nil || good < 0 || good > int64(len(data)) || (d == nil) != (good == int64(len(data))) {
			t.Fatalf("good %d of %d, %v, %v", good, len(data), d, err)
		}
		again, d, err := durable.Scan(bytes.NewReader(data[:good]), "f", nil)
		if again != good || d != nil || err != nil {
			t.Fatalf("the good part is not good: %d of %d, %v, %v", again, good, d, err)
		}
	})
}
