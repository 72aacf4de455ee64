// Package vfstest is the suite that every device passes: it checks the contract that stands in the
// package comment of vfs, and the tools that a device offers. It owns no device and knows none; a
// driver's test describes its device once and calls Run.
//
//	func TestDevice(t *testing.T) {
//		vfstest.Run(t, vfstest.Device{
//			Path:  "/dev/alarm",
//			Open:  func(t testing.TB) (vfs.VFSFileFactory, vfs.Caller) { return alarm.New(), vfs.Caller{PID: 1} },
//			Tools: alarm.Tools(),
//			Samples: []vfstest.Sample{
//				{Tool: "ring", Input: `{"after":"1ms"}`, Want: "rang"},
//				{Tool: "ring", Input: `{"after":"soon"}`, WantCode: types.ErrInvalid},
//				{Name: "read", Volatile: true}, // neither tool nor input: it is only read
//			},
//			Slow: &vfstest.Sample{Tool: "ring", Input: `{"after":"24h"}`},
//		})
//	}
//
// drivers/clock has the smallest test of a device that there is. What the suite cannot see from outside, such as goroutines and OS processes left behind, is for
// the driver's own tests (goleak in TestMain).
package vfstest

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"rnix/types"
	"rnix/vfs"
)

// Device describes a device to the suite.
type Device struct {
	// Path is where the device is registered, such as "/dev/fs".
	Path string
	// Open makes a fresh device with the files, servers and fakes that the samples need, and the
	// caller that opens it (PID 0 is the user). It is called at least once for each test of the suite.
	Open func(t testing.TB) (vfs.VFSFileFactory, vfs.Caller)
	// Tools are the tools that the device is registered with. Each needs at least one sample.
	Tools []vfs.Tool
	// Samples are requests to run. There must be at least one.
	Samples []Sample
	// Slow is a request that goes on until it is cancelled. Nil if the device has no operation that
	// could last; cancelling and closing under way are then checked with the samples only.
	Slow *Sample
	// ReadOnly says that every Write is refused with PERMISSION, and that samples are only read.
	ReadOnly bool
	// RawWrite says that Write takes any bytes, and not a JSON document, on the paths of the samples.
	RawWrite bool
}

// Sample is one request and what is expected of it.
type Sample struct {
	// Name names the subtest; the tool's name, subpath and position if empty.
	Name string
	// Tool names the tool that is run, with the path and the operation of the tool. Empty means a
	// plain write of Input to Subpath, or only a read if Input is empty too.
	Tool string
	// Subpath is the path below the device, "" or beginning with a slash. Ignored if Tool is set.
	Subpath string
	// Input is what is written.
	Input string
	// WantCode is the code of the error that the open, the write or the first read must give; empty
	// means that all of them succeed.
	WantCode types.ErrCode
	// Want is a text that the answer must contain.
	Want string
	// Volatile says that two runs may give different answers, even on fresh devices.
	Volatile bool
}

// patience bounds what must not last. It is only reached by a device that hangs.
const patience = 20 * time.Second

// Run runs the suite. Tests of one device run one after another.
func Run(t *testing.T, d Device) {
	t.Helper()
	if d.Path == "" || d.Open == nil || len(d.Samples) == 0 {
		t.Fatal("vfstest: a device needs a Path, Open and at least one sample")
	}
	t.Run("Tools", d.testTools)
	t.Run("SamplesRun", d.testSamples)
	t.Run("PiecesEqualTheWhole", d.testPieces)
	t.Run("ReadBeforeWriteIsClear", d.testReadBeforeWrite)
	t.Run("StatAnswers", d.testStat)
	t.Run("CloseAnyTimeAndTwice", d.testClose)
	t.Run("UseAfterCloseIsAnError", d.testUseAfterClose)
	t.Run("MalformedInputIsRefused", d.testMalformed)
	t.Run("OddPathsAreRefusedOrServed", d.testOddPaths)
	t.Run("FilesAreIndependent", d.testIndependent)
	if d.ReadOnly {
		t.Run("WriteIsRefused", d.testReadOnly)
		return
	}
	t.Run("EndedContextIsHonoured", d.testEndedContext)
	t.Run("CloseDuringWriteIsSafe", d.testCloseDuringWrite)
	if d.Slow != nil {
		t.Run("CancelEndsASlowWrite", d.testCancelSlow)
		t.Run("CloseEndsASlowWrite", d.testCloseSlow)
	}
}

// bench is a fresh device in a VFS of its own.
type bench struct {
	d      Device
	fs     *vfs.VFS
	caller vfs.Caller
}

func (d Device) bench(t *testing.T) bench {
	t.Helper()
	factory, caller := d.Open(t)
	devices := vfs.NewDeviceRegistry()
	if err := devices.RegisterTools(d.Path, factory, d.Tools); err != nil {
		t.Fatalf("the device cannot be registered: %v", err)
	}
	return bench{d, vfs.New(devices, func(types.PID) (vfs.Caller, bool) { return caller, true }), caller}
}

// request returns the path and the bytes of a sample.
func (d Device) request(t *testing.T, s Sample) (path string, input []byte) {
	t.Helper()
	if s.Tool == "" {
		return d.Path + s.Subpath, []byte(s.Input)
	}
	for _, tool := range d.Tools {
		if tool.Name == s.Tool {
			return tool.Path, tool.Input([]byte(s.Input))
		}
	}
	t.Fatalf("sample %q names a tool that the device does not offer", s.Tool)
	return "", nil
}

// open opens the file of a sample and closes it when the test ends.
func (b bench) open(t *testing.T, s Sample) (vfs.VFSFile, []byte, error) {
	t.Helper()
	path, input := b.d.request(t, s)
	flags := vfs.OpenReadWrite
	if len(input) == 0 || b.d.ReadOnly {
		flags = vfs.OpenRead
	}
	f, err := b.fs.OpenFile(b.caller.PID, path, flags)
	if err != nil {
		return nil, nil, err
	}
	if f == nil {
		t.Fatalf("open %s returned neither a file nor an error", path)
	}
	t.Cleanup(func() { _ = f.Close() }) // a second close at most; checked in testClose
	return f, input, nil
}

// mustOpen is open for samples that are expected to succeed.
func (b bench) mustOpen(t *testing.T, s Sample) (vfs.VFSFile, []byte) {
	t.Helper()
	f, input, err := b.open(t, s)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return f, input
}

// good returns the samples that are expected to succeed.
func (d Device) good() []Sample {
	var out []Sample
	for _, s := range d.Samples {
		if s.WantCode == "" {
			out = append(out, s)
		}
	}
	return out
}

// limited returns a context that outlives every operation that does not hang.
func limited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// perform writes a sample's input, if it has one.
func perform(ctx context.Context, f vfs.VFSFile, input []byte, readOnly bool) error {
	if len(input) == 0 || readOnly {
		return nil
	}
	return f.Write(ctx, input)
}

// readAll reads to the end in pieces of n bytes (0 = as the file likes) and checks each piece.
func readAll(t *testing.T, f vfs.VFSFile, n int) ([]byte, error) {
	t.Helper()
	var all []byte
	for empty := 0; ; {
		b, err := f.Read(n)
		if n > 0 && len(b) > n {
			t.Fatalf("Read(%d) returned %d bytes", n, len(b))
		}
		all = append(all, b...)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		if len(b) > 0 {
			empty = 0
		} else if empty++; empty > 100 {
			t.Fatalf("Read(%d) returns nothing and no io.EOF, again and again", n)
		}
	}
}

// checkError fails the test unless err is a SyscallError with a code. It returns the code.
func checkError(t *testing.T, doing string, err error) types.ErrCode {
	t.Helper()
	var e *types.SyscallError
	switch {
	case err == nil:
		t.Errorf("%s: no error", doing)
		return ""
	case !errors.As(err, &e):
		t.Errorf("%s: error is a %T, not a *types.SyscallError: %v", doing, err, err)
		return ""
	case e.Code == "":
		t.Errorf("%s: error has no code: %v", doing, err)
	}
	return e.Code
}

// within fails the test if f does not return soon.
func within(t *testing.T, doing string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { // ends with f; waited for below
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%s: still not done after %v", doing, patience)
	}
}
