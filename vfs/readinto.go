package vfs

import (
	"context"
	"io"

	"rnix/types"
)

// ReadInto reads into buf and returns how much, and io.EOF at the end. It waits until there is something
// if the file can fill up while it is read, as a pipe can; else it reads what is there.
func (v *VFS) ReadInto(ctx context.Context, pid types.PID, fd types.FD, buf []byte) (n int, err error) {
	f, err := v.file("Read", pid, fd)
	if err != nil {
		return 0, err
	}
	switch r := f.VFSFile.(type) {
	case WaitReader:
		n, err = r.WaitRead(ctx, buf)
	case ReaderInto:
		n, err = r.ReadInto(buf)
	default:
		var b []byte
		if len(buf) > 0 { // a length of 0 would be all of it
			b, err = f.Read(len(buf))
		}
		n = copy(buf, b)
	}
	if err != nil && err != io.EOF {
		if ended := Ended(ctx, "Read", f.path); ended != nil && types.CodeOf(err) == types.ErrInternal {
			err = ended
		}
		err = withPID(err, "Read", pid, f.path)
	}
	return n, err
}
