package ash

import (
	"os"

	"golang.org/x/sys/unix"

	"mvdan.cc/sh/v3/interp"
)

// unread reports whether a script has standard input that a command does not read: the command has the input of the
// script itself, and that is a pipe or a file in which something is left, or may come.
func (s programs) unread(hc *interp.HandlerContext) bool {
	f, ok := hc.Stdin.(*os.File)
	return ok && f == s.stdin && !s.cfg.Terminal && mayBring(f)
}

// closing is how long the end of a pipe is waited for in which nothing is: programs that have nothing to say close theirs only after
// the start, as Go's os/exec does.
const closing = 250 // milliseconds

// mayBring reports whether a pipe or a file can still be read. A pipe that nobody writes to any more and that is empty
// cannot; a terminal, a socket and /dev/null are not looked at.
func mayBring(f *os.File) bool {
	st, err := f.Stat()
	if err != nil {
		return false
	}
	if st.Mode().IsRegular() {
		at, err := f.Seek(0, 1)
		return err == nil && at < st.Size()
	}
	if st.Mode()&os.ModeNamedPipe == 0 {
		return false
	}
	p := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}
	for _, err = unix.Poll(p, closing); err == unix.EINTR; {
		_, err = unix.Poll(p, closing)
	}
	return err == nil && (p[0].Revents&unix.POLLIN != 0 || p[0].Revents&unix.POLLHUP == 0)
}
