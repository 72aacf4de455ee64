package proc

import (
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"rnix/internal/redact"
)

// pipes are our ends of a child's streams.
type pipes struct {
	stdin   *os.File // nil if there is no pipe
	readers []*outlet
	sinks   []io.Writer // one for each reader; nil: the caller reads
	stdout  *outlet     // what the caller reads
	copies  sync.WaitGroup
}

// screen puts what takes secrets out before the writers of a child's output.
func (c *Child) screen(secrets *redact.Set) {
	spec := &c.spec
	if secrets == nil || spec.Kind == KindGit {
		return
	}
	one := spec.Stdout != nil && spec.Stderr != nil && same(spec.Stdout, spec.Stderr)
	if spec.Kind == KindShell && spec.Stdout != nil {
		spec.Stdout = secrets.Writer(spec.Stdout)
	}
	switch {
	case one && spec.Kind == KindShell:
		spec.Stderr = spec.Stdout
	case spec.Stderr != nil && !one:
		spec.Stderr = secrets.Writer(spec.Stderr)
	}
}

// Stdin returns the writing end of the child's standard input, which the caller closes, or nil if
// Spec.StdinPipe was not set.
func (c *Child) Stdin() io.WriteCloser {
	if !c.spec.StdinPipe {
		return nil
	}
	return c.pipes.stdin
}

// Stdout returns the reading end of the child's standard output, which the caller closes, or nil if
// Spec.StdoutPipe was not set. After the end of the child it gives what is left, then io.EOF, even
// while a process that could not be found holds the other end.
func (c *Child) Stdout() io.ReadCloser {
	if c.pipes.stdout == nil {
		return nil
	}
	return c.pipes.stdout
}

// openPipes makes the child's streams and returns its ends, which the caller closes after the fork.
func (c *Child) openPipes() (ends []*os.File, err error) {
	p, spec := &c.pipes, c.spec
	defer func() {
		if err != nil {
			closeAll(ends)
			c.closePipes()
		}
	}()
	null := func(flag int) error {
		f, err := os.OpenFile(os.DevNull, flag, 0)
		if err == nil {
			ends = append(ends, f)
		}
		return err
	}
	output := func(sink io.Writer) error {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		ends = append(ends, w)
		p.readers, p.sinks = append(p.readers, &outlet{file: r}), append(p.sinks, sink)
		return nil
	}

	if spec.StdinPipe || spec.Input != nil {
		r, w, err := os.Pipe()
		if err != nil {
			return ends, err
		}
		ends, p.stdin = append(ends, r), w
	} else if err := null(os.O_RDONLY); err != nil {
		return ends, err
	}
	switch {
	case spec.StdoutPipe:
		if err := output(nil); err != nil {
			return ends, err
		}
		p.stdout = p.readers[0]
	case spec.Stdout != nil:
		if err := output(spec.Stdout); err != nil {
			return ends, err
		}
	default:
		if err := null(os.O_WRONLY); err != nil {
			return ends, err
		}
	}
	switch {
	case spec.Stderr == nil:
		return ends, null(os.O_WRONLY)
	case spec.Stdout != nil && same(spec.Stdout, spec.Stderr):
		return append(ends, ends[1]), nil
	}
	return ends, output(spec.Stderr)
}

// same reports whether two writers are one; writers that cannot be compared are not.
func same(a, b io.Writer) (equal bool) {
	defer func() { _ = recover() }() // comparing panics for some types
	return a == b
}

// closeAll closes files, some of which may stand there twice.
func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // nothing was written by us
	}
}

// closePipes closes our ends of a child that never came to be.
func (c *Child) closePipes() {
	if c.pipes.stdin != nil {
		_ = c.pipes.stdin.Close() // nothing was written
	}
	for _, r := range c.pipes.readers {
		_ = r.Close() // nothing was read
	}
}

// copyPipes moves bytes between the pipes and the spec's input and writers. Its goroutines end with
// the streams, at the latest in finish, which waits for them.
func (c *Child) copyPipes() {
	p := &c.pipes
	if c.spec.Input != nil {
		p.copies.Go(func() {
			_, _ = p.stdin.Write(c.spec.Input) // a child need not read its input
			_ = p.stdin.Close()                // closed once more by finish
		})
	}
	for i, r := range p.readers {
		if sink := p.sinks[i]; sink != nil {
			p.copies.Go(func() {
				if _, err := io.Copy(sink, r); err != nil {
					_, _ = io.Copy(io.Discard, r) // a full pipe would stop the child
				}
				if w, screened := sink.(*redact.Writer); screened {
					_ = w.Flush() // who reads has failed before
				}
				_ = r.Close() // nothing is left in it
			})
		}
	}
}

// finish ends all streams, except that what is left of the caller's own can still be read. Output
// gets a moment to come to its end by itself.
func (p *pipes) finish() {
	if p.stdin != nil {
		_ = p.stdin.Close() // a second close is no news
	}
	ended := make(chan struct{})
	go func() { // waited for below
		p.copies.Wait()
		close(ended)
	}()
	timer := time.NewTimer(lingering)
	defer timer.Stop()
	if p.stdout == nil {
		select {
		case <-ended:
		case <-timer.C:
		}
	}
	for _, r := range p.readers {
		r.cut()
	}
	<-ended
}

// outlet is the reading end of a pipe that can be cut: then it gives what is there, and ends.
type outlet struct {
	file *os.File
	off  atomic.Bool
	more atomic.Int64 // bytes that may still be read after the cut: a writer that goes on must not matter
}

func (o *outlet) cut() {
	o.more.Store(1 << 20)
	o.off.Store(true)
	_ = o.file.SetReadDeadline(time.Unix(1, 0)) // fails only if it is closed
}

// Read reads from the pipe.
func (o *outlet) Read(p []byte) (int, error) {
	n, err := o.file.Read(p)
	if !errors.Is(err, os.ErrDeadlineExceeded) || !o.off.Load() {
		return n, err
	}
	raw, err := o.file.SyscallConn()
	if err != nil {
		return 0, err
	}
	var readErr error
	err = raw.Control(func(fd uintptr) { n, readErr = syscall.Read(int(fd), p) }) // does not block: the pipe is non-blocking
	if err != nil {
		return 0, err
	}
	if readErr == syscall.EINTR {
		return 0, nil
	}
	if n <= 0 || o.more.Add(-int64(n)) < 0 {
		return 0, io.EOF // nothing is there, or no end is to be seen
	}
	return n, nil
}

// Close closes our end; who still writes gets SIGPIPE.
func (o *outlet) Close() error { return o.file.Close() }
