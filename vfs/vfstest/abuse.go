package vfstest

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"rnix/types"
	"rnix/vfs"
)

func (d Device) testClose(t *testing.T) {
	for _, s := range d.good() {
		b := d.bench(t)
		f, input := b.mustOpen(t, s)
		for range 3 { // before anything was done
			if err := f.Close(); err != nil {
				t.Errorf("Close of a fresh file: %v", err)
			}
		}
		f, _ = b.mustOpen(t, s)
		if err := perform(limited(t), f, input, d.ReadOnly); err != nil {
			t.Fatalf("sample %s%s: %v", s.Tool, s.Subpath, err)
		}
		for range 2 { // with the answer unread
			if err := f.Close(); err != nil {
				t.Errorf("Close with an unread answer: %v", err)
			}
		}
	}
}

func (d Device) testUseAfterClose(t *testing.T) {
	for _, s := range d.good() {
		f, input := d.bench(t).mustOpen(t, s)
		_ = f.Close() // checked in testClose
		if len(input) > 0 {
			checkError(t, "Write after Close", f.Write(limited(t), input))
		}
		b, err := f.Read(16)
		if len(b) > 0 {
			t.Errorf("Read after Close returned %q", b)
		}
		if !errors.Is(err, io.EOF) {
			checkError(t, "Read after Close", err)
		}
		if _, err := f.Stat(); err != nil {
			checkError(t, "Stat after Close", err)
		}
	}
}

// malformed are inputs that no device may choke on. Only those that are not JSON objects must be
// refused: what an empty object means is the device's own business.
var malformed = []struct {
	name, input string
	object      bool
}{
	{"Empty", "", false},
	{"EmptyObject", "{}", true},
	{"OnlyOp", `{"op":"no_such_operation"}`, true},
	{"WrongTypes", `{"op":7,"path":[1],"command":{},"pattern":false,"messages":"x"}`, true},
	{"Null", "null", false},
	{"Array", "[]", false},
	{"String", `"text"`, false},
	{"Torn", `{"op":"read`, false},
	{"Trailing", `{} {`, false},
	{"NotJSON", "rm -rf /", false},
	{"NulBytes", "\x00\x00\x00", false},
	{"BadUTF8", "{\"path\":\"\xff\xfe\"", false},
	{"Deep", strings.Repeat(`{"a":`, 50_000), false},
	{"Huge", strings.Repeat("x", 8<<20), false},
}

func (d Device) testMalformed(t *testing.T) {
	if d.ReadOnly {
		return // there is no input
	}
	var paths []Sample
	done := make(map[string]bool)
	for _, s := range d.good() {
		if path, input := d.request(t, s); len(input) > 0 && !done[path] {
			done[path] = true
			paths = append(paths, s)
		}
	}
	b := d.bench(t)
	for _, m := range malformed {
		t.Run(m.name, func(t *testing.T) {
			for _, s := range paths {
				f, _ := b.mustOpen(t, s)
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				var err error
				within(t, "Write", func() { err = f.Write(ctx, []byte(m.input)) })
				if err != nil {
					checkError(t, "Write", err)
				} else if !m.object && !d.RawWrite {
					t.Errorf("Write of %.40q to %s was accepted", m.input, d.Path)
				}
				if err := f.Close(); err != nil {
					checkError(t, "Close", err)
				}
			}
		})
	}
}

func (d Device) testOddPaths(t *testing.T) {
	b := d.bench(t)
	for _, sub := range []string{
		"/", "//", "/.", "/..", "/../../../../etc/passwd", "/./../..", "/no-such-thing-anywhere", "/%00", "/%2e%2e",
		"/\x01\x7f", "/\xff\xfe", "/ü ", "/" + strings.Repeat("x", 5000), strings.Repeat("/x", 5000), "/a\nb",
	} {
		within(t, "Open", func() {
			f, err := b.fs.OpenFile(b.caller.PID, d.Path+sub, vfs.OpenRead)
			if err != nil {
				checkError(t, "Open", err)
				return
			}
			if _, err := f.Read(16); err != nil && !errors.Is(err, io.EOF) {
				checkError(t, "Read", err)
			}
			if _, err := f.Stat(); err != nil {
				checkError(t, "Stat", err)
			}
			_ = f.Close() // checked in testClose
		})
	}
}

func (d Device) testReadOnly(t *testing.T) {
	for _, s := range d.good() {
		f, _ := d.bench(t).mustOpen(t, s)
		if code := checkError(t, "Write", f.Write(limited(t), []byte("{}"))); code != types.ErrPermission {
			t.Errorf("Write of %s%s: code is %s, want PERMISSION", d.Path, s.Subpath, code)
		}
	}
}

// testEndedContext: a request whose context has already ended is refused as such.
func (d Device) testEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, s := range d.good() {
		f, input := d.bench(t).mustOpen(t, s)
		if len(input) == 0 {
			continue
		}
		var err error
		within(t, "Write", func() { err = f.Write(ctx, input) })
		checkCancelled(t, "Write with an ended context", err)
	}
}

func checkCancelled(t *testing.T, doing string, err error) {
	t.Helper()
	if code := checkError(t, doing, err); err != nil && code != types.ErrCancelled && code != types.ErrTimeout {
		t.Errorf("%s: code is %s, want CANCELLED or TIMEOUT: %v", doing, code, err)
	}
}

func (d Device) testCloseDuringWrite(t *testing.T) {
	for _, s := range d.good() {
		f, input := d.bench(t).mustOpen(t, s)
		within(t, "Write and Close side by side", func() {
			var wg sync.WaitGroup
			wg.Go(func() {
				if err := perform(context.Background(), f, input, d.ReadOnly); err != nil {
					checkError(t, "Write", err)
				}
			})
			wg.Go(func() {
				if err := f.Close(); err != nil {
					checkError(t, "Close", err)
				}
			})
			wg.Go(func() {
				if _, err := f.Read(8); err != nil && !errors.Is(err, io.EOF) {
					checkError(t, "Read", err)
				}
			})
			wg.Wait()
		})
	}
}

// headStart is how long a slow write runs before it is ended from outside. There is no event to
// wait for; a device that has not begun by then is ended before it begins, which must work too.
const headStart = 100 * time.Millisecond

func (d Device) testCancelSlow(t *testing.T) {
	f, input := d.bench(t).mustOpen(t, *d.Slow)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer time.AfterFunc(headStart, cancel).Stop()
	var err error
	within(t, "a slow Write that was cancelled", func() { err = f.Write(ctx, input) })
	checkCancelled(t, "a slow Write that was cancelled", err)
}

func (d Device) testCloseSlow(t *testing.T) {
	f, input := d.bench(t).mustOpen(t, *d.Slow)
	closed := make(chan struct{})
	time.AfterFunc(headStart, func() { // waited for below
		defer close(closed)
		_ = f.Close() // checked in testClose
	})
	var err error
	within(t, "a slow Write whose file was closed", func() { err = f.Write(context.Background(), input) })
	checkError(t, "a slow Write whose file was closed", err)
	<-closed
}
