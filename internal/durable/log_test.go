package durable_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"rnix/internal/durable"
	"rnix/internal/durable/faultfs"
	"rnix/types"
)

// wholeX accepts lines that end in x.
func wholeX(l durable.Line) error {
	if bytes.HasPrefix(l.Data, []byte("newer")) {
		return types.Errorf(types.ErrVersion, "", "", "newer")
	}
	if !bytes.HasSuffix(l.Data, []byte("x")) {
		return types.Errorf(types.ErrStorage, "", "", "no x")
	}
	return nil
}

func write(t *testing.T, fsys durable.FS, path, text string) {
	t.Helper()
	if err := durable.WriteFile(fsys, path, []byte(text), durable.Durable); err != nil {
		t.Fatal(err)
	}
}

func TestTornTailIsCutAndReported(t *testing.T) {
	tests := []struct{ name, text, rest, says string }{
		{"no newline", "ax\nbx", "ax\n", "line 2, offset 3: the line has no end; 2 bytes were cut off"},
		{"NUL bytes", "ax\nb\x00\x00\x00", "ax\n", "line 2, offset 3: a NUL byte at offset 4; 4 bytes were cut off"},
		{"bad last line", "ax\nb\n", "ax\n", "line 2, offset 3: no x; 2 bytes were cut off and are kept in"},
		{"nothing but tail", "a", "", "line 1, offset 0: the line has no end; 1 bytes were cut off"},
		{"whole", "ax\nbx\n", "ax\nbx\n", ""},
		{"empty", "", "", ""},
	}
	both(t, func(t *testing.T, fsys durable.FS, dir string) {
		for i, tt := range tests {
			path := filepath.Join(dir, fmt.Sprintf("log%d", i))
			write(t, fsys, path, tt.text)
			l, d, err := durable.OpenLog(fsys, path, wholeX)
			if err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
			if err := errors.Join(l.Append([]byte("cx\n")), l.Sync(), l.Close()); err != nil {
				t.Fatal(err)
			}
			got, _ := durable.ReadFile(fsys, path)
			if string(got) != tt.rest+"cx\n" {
				t.Errorf("%s: %q", tt.name, got)
			}
			if (d != nil) != (tt.says != "") || d != nil && !strings.Contains(d.Error(), tt.says) {
				t.Errorf("%s: %v", tt.name, d)
			}
			if d != nil && d.Saved != "" {
				if kept, _ := durable.ReadFile(fsys, d.Saved); string(kept) != "b\n" {
					t.Errorf("%s: kept %q", tt.name, kept)
				}
			}
		}
	})
}

func TestDamageInTheMiddleIsNamedAndLeftAlone(t *testing.T) {
	for _, text := range []string{"ax\nb\ncx\n", "ax\nb\x00\ncx\n", "ax\nb\ncx"} {
		fsys := faultfs.New("/d")
		write(t, fsys, "/d/log", text)
		_, _, err := durable.OpenLog(fsys, "/d/log", wholeX)
		var d *durable.Damage
		if types.CodeOf(err) != types.ErrStorage || !errors.As(err, &d) || d.Line != 2 || d.Offset != 3 || d.Tail || d.Cut {
			t.Errorf("%q: %v", text, err)
		}
		if got, _ := durable.ReadFile(fsys, "/d/log"); string(got) != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// A line that begins with + is joined to the one before it.
func TestHoleInTheLastBatchIsATornTail(t *testing.T) {
	begins := func(line []byte) bool { return bytes.HasSuffix(line, []byte("x")) && line[0] != '+' }
	for _, tt := range []struct {
		text, rest, kept string // rest "" = refused
	}{
		{"ax\nbx\n\x00\x00\x00\x00+dx\n", "ax\nbx\n", ""},
		{"ax\nb\x00\x00\n+cx\n+dx\n", "ax\n", "b\x00\x00\n+cx\n+dx\n"},
		{"ax\nb\x00\x00\n+cx\n+d", "ax\n", "b\x00\x00\n+cx\n+d"},
		{"ax\nb\n+cx\n\x00\x00", "ax\n", "b\n+cx\n\x00\x00"},
		{"ax\nb\x00\x00\n+cx\ndx\n", "", ""},
		{"ax\nb\x00\x00\ncx\n+dx\n", "", ""},
	} {
		fsys := faultfs.New("/d")
		write(t, fsys, "/d/log", tt.text)
		l, d, err := durable.OpenBatches(fsys, "/d/log", wholeX, begins)
		if tt.rest == "" {
			if got, _ := durable.ReadFile(fsys, "/d/log"); types.CodeOf(err) != types.ErrStorage || string(got) != tt.text {
				t.Errorf("%q: %v, became %q", tt.text, err, got)
			}
			continue
		}
		if err != nil || !d.Cut || d.Offset+d.Bytes != int64(len(tt.text)) {
			t.Fatalf("%q: %v, %v", tt.text, d, err)
		}
		l.Close()
		kept := []byte{}
		if d.Saved != "" {
			kept, _ = durable.ReadFile(fsys, d.Saved)
		}
		if got, _ := durable.ReadFile(fsys, "/d/log"); string(got) != tt.rest || string(kept) != tt.kept {
			t.Errorf("%q became %q, and %q was kept", tt.text, got, kept)
		}
	}
}

func TestLineForANewerProgramIsNeverCut(t *testing.T) {
	fsys := faultfs.New("/d")
	write(t, fsys, "/d/log", "ax\nnewer\n")
	if _, _, err := durable.OpenLog(fsys, "/d/log", wholeX); types.CodeOf(err) != types.ErrVersion {
		t.Errorf("got %v", err)
	}
	if got, _ := durable.ReadFile(fsys, "/d/log"); string(got) != "ax\nnewer\n" {
		t.Errorf("became %q", got)
	}
}

func TestOpeningWithoutACheckCutsTheTailOfALongFile(t *testing.T) {
	both(t, func(t *testing.T, fsys durable.FS, dir string) {
		path := filepath.Join(dir, "log")
		good := strings.Repeat("line\n", 40_000)
		for _, tail := range []string{"", "x", strings.Repeat("y", 200_000), strings.Repeat("\x00", 70_000)} {
			write(t, fsys, path, good+tail)
			l, d, err := durable.OpenLog(fsys, path, nil)
			if err != nil {
				t.Fatal(err)
			}
			l.Close()
			got, _ := durable.ReadFile(fsys, path)
			if string(got) != good || (d == nil) != (tail == "") || d != nil && d.Bytes != int64(len(tail)) {
				t.Errorf("tail of %d bytes: %d bytes left, %v", len(tail), len(got), d)
			}
		}
	})
}

func TestTwentyMegabyteLineIsReadWhole(t *testing.T) {
	long := strings.Repeat("y", 20<<20)
	path := filepath.Join(t.TempDir(), "log")
	l, _, err := durable.OpenLog(durable.OS, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Append([]byte("a\n"+long+"\nb\n")), l.Sync(), l.Close()); err != nil {
		t.Fatal(err)
	}
	f, _ := os.Open(path)
	defer f.Close()
	var sizes []int
	_, d, err := durable.Scan(f, path, func(l durable.Line) error { sizes = append(sizes, len(l.Data)); return nil })
	if fmt.Sprint(sizes) != fmt.Sprint([]int{1, len(long), 1}) || d != nil || err != nil {
		t.Errorf("lines of %v bytes, %v, %v", sizes, d, err)
	}
}

func TestFailedLogIsPoisonedForGood(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault faultfs.Fault
	}{
		{"write", faultfs.Fault{At: 1, Err: syscall.EIO}},
		{"short write", faultfs.Fault{At: 1, Err: syscall.ENOSPC, Short: true}},
		{"sync", faultfs.Fault{At: 2, Err: syscall.EIO}},
		{"sync of the directory", faultfs.Fault{At: 3, Err: syscall.EIO}},
	} {
		fsys := faultfs.New("/d")
		l, _, err := durable.OpenLog(fsys, "/d/s/log", wholeX)
		if err != nil {
			t.Fatal(err)
		}
		fsys.Fail(tt.fault)
		err = l.Append([]byte("a very long linex\n"))
		if err == nil {
			err = l.Sync()
		}
		for _, e := range []error{err, l.Append([]byte("bx\n")), l.Sync()} {
			if types.CodeOf(e) != types.ErrStorage || !errors.Is(e, tt.fault.Err) {
				t.Errorf("%s: %v", tt.name, e)
			}
		}
		l.Close()
		if l, _, err = durable.OpenLog(fsys, "/d/s/log", wholeX); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(l.Append([]byte("cx\n")), l.Sync(), l.Close()); err != nil {
			t.Errorf("%s: after opening again: %v", tt.name, err)
		}
	}
}

func TestUnreadableLinesAreNotWritten(t *testing.T) {
	fsys := faultfs.New("/d")
	l, _, _ := durable.OpenLog(fsys, "/d/log", nil)
	for _, b := range []string{"", "a", "a\x00\n"} {
		if err := l.Append([]byte(b)); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%q: %v", b, err)
		}
	}
	if l.Size() != 0 || l.Append([]byte("a\n")) != nil {
		t.Error("a refused line has done harm")
	}
}

// A log is written, with a sync after each second line, and crashes at every call in every way: a
// line whose Sync has returned is there, the lines that are there are a beginning of those written,
// and the log can be continued.
func TestSyncedLinesSurviveACrashAtEveryCall(t *testing.T) {
	const lines = 6
	for n := 1; n < 30; n++ {
		for seed := range uint64(64) {
			fsys := faultfs.New("/d")
			fsys.CrashAt(n)
			acked := 0
			if l, _, err := durable.OpenLog(fsys, "/d/s/log", wholeX); err == nil {
				for i := range lines {
					if l.Append(fmt.Appendf(nil, "line %dx\n", i)) != nil {
						break
					}
					if i%2 == 1 {
						if l.Sync() != nil {
							break
						}
						acked = i + 1
					}
				}
			}
			fsys.Crash(seed)
			found := 0
			l, _, err := durable.OpenLog(fsys, "/d/s/log", func(l durable.Line) error {
				if string(l.Data) != fmt.Sprintf("line %dx", found) {
					return types.Errorf(types.ErrStorage, "", "", "not line %d", found)
				}
				found++
				return nil
			})
			if err != nil || found < acked {
				t.Fatalf("crash at call %d, seed %d: %d lines acknowledged, %d found, %v", n, seed, acked, found, err)
			}
			if err := errors.Join(l.Append([]byte("onx\n")), l.Sync()); err != nil {
				t.Fatal(err)
			}
			fsys.Crash(0)
			if b, _ := durable.ReadFile(fsys, "/d/s/log"); strings.Count(string(b), "\n") != found+1 {
				t.Fatalf("crash at call %d, seed %d: after going on: %q", n, seed, b)
			}
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	line := append(bytes.Repeat([]byte("x"), 400), '\n')
	for _, sync := range []bool{false, true} {
		b.Run(fmt.Sprintf("log/sync=%v", sync), func(b *testing.B) {
			l, _, err := durable.OpenLog(durable.OS, filepath.Join(b.TempDir(), "log"), nil)
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			for b.Loop() {
				l.Append(line)
				if sync {
					l.Sync()
				}
			}
		})
		b.Run(fmt.Sprintf("bare/sync=%v", sync), func(b *testing.B) {
			f, err := durable.OS.OpenFile(filepath.Join(b.TempDir(), "f"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			for b.Loop() {
				f.Write(line)
				if sync {
					f.Sync()
				}
			}
		})
	}
}
