package kernel

import (
	"context"
	"errors"
	"io"

	"rnix/kernel/internal/pipe"
	"rnix/types"
	"rnix/vfs"
)

// Pipe makes a pipe from one process to another and returns the descriptors of its ends, each in the
// table of its process. It holds 64 KiB: a write waits for room and is BROKEN_PIPE when the reader is
// gone; a read gets io.EOF when the writer is. The ends are closed like all files of their processes.
func (k *KernelImpl) Pipe(writer, reader types.PID) (writeFD, readFD types.FD, err error) {
	p := new(pipe.Pipe)
	w, r := &pipeWriter{p: p}, &pipeReader{p: p}
	if writeFD, err = k.vfs.Install(writer, "pipe", w, vfs.OpenWrite); err != nil {
		return 0, 0, err
	}
	if readFD, err = k.vfs.Install(reader, "pipe", r, vfs.OpenRead); err != nil {
		_ = k.vfs.Close(writer, writeFD) // nobody has written
		return 0, 0, err
	}
	return writeFD, readFD, nil
}

// pipeWriter is the writing end of a pipe.
type pipeWriter struct{ p *pipe.Pipe }

func (f *pipeWriter) Write(ctx context.Context, data []byte) error {
	_, err := f.p.Write(ctx, data)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pipe.ErrBroken):
		return types.Errorf(types.ErrBrokenPipe, "Write", "", "%w", err)
	case errors.Is(err, io.ErrClosedPipe):
		return types.Errorf(types.ErrInvalid, "Write", "", "%w", err)
	}
	return vfs.Ended(ctx, "Write", "")
}

func (f *pipeWriter) Read(int) ([]byte, error) {
	return nil, types.Errorf(types.ErrPermission, "Read", "", "this is the writing end of a pipe")
}

func (f *pipeWriter) Close() error { f.p.CloseWrite(); return nil }

func (f *pipeWriter) Stat() (vfs.FileStat, error) {
	return vfs.FileStat{Name: "pipe", Size: int64(f.p.Len()), Mode: "-w-", Type: "pipe"}, nil
}

// pipeReader is the reading end of a pipe.
type pipeReader struct{ p *pipe.Pipe }

var (
	_ vfs.ReaderInto = (*pipeReader)(nil)
	_ vfs.WaitReader = (*pipeReader)(nil)
)

// Read returns what is there; see vfs.VFSFile. WaitRead waits.
func (f *pipeReader) Read(length int) ([]byte, error) {
	if n := f.p.Len(); length <= 0 || length > n {
		length = n
	}
	buf := make([]byte, max(length, 1)) // an empty pipe may be at its end
	n, err := f.ReadInto(buf)
	return buf[:n], err
}

// ReadInto reads what is there into buf.
func (f *pipeReader) ReadInto(buf []byte) (int, error) { return closedEnd(f.p.TryRead(buf)) }

// WaitRead waits until there is something to read.
func (f *pipeReader) WaitRead(ctx context.Context, buf []byte) (int, error) {
	return closedEnd(f.p.Read(ctx, buf))
}

func closedEnd(n int, err error) (int, error) {
	if errors.Is(err, io.ErrClosedPipe) {
		err = types.Errorf(types.ErrInvalid, "Read", "", "%w", err)
	}
	return n, err
}

func (f *pipeReader) Write(context.Context, []byte) error {
	return types.Errorf(types.ErrPermission, "Write", "", "this is the reading end of a pipe")
}

func (f *pipeReader) Close() error { f.p.CloseRead(); return nil }

func (f *pipeReader) Stat() (vfs.FileStat, error) {
	return vfs.FileStat{Name: "pipe", Size: int64(f.p.Len()), Mode: "r--", Type: "pipe"}, nil
}
