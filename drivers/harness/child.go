package harness

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"rnix/drivers/llm"
	"rnix/internal/durable"
	"rnix/internal/harness"
	"rnix/internal/proc"
	"rnix/types"
)

const (
	maxLine   = 16 << 20        // bytes of one line that are kept; the rest of a longer one is dropped
	maxUnread = 16 << 20        // bytes of lines that nobody has read yet, beyond which the child waits for us
	perLine   = 64              // bytes that count for a line besides its own
	grace     = 3 * time.Second // between SIGTERM and SIGKILL, and between the end of the input and SIGTERM
)

// child is a command line that runs.
type child struct {
	*proc.Child
	stderr *proc.Ring
	lines  chan []byte   // closed at the end of the output; who reads it calls read
	unread atomic.Int64  // bytes of what waits to be read
	room   chan struct{} // has room for one: something was read
	quit   chan struct{} // closed by stop: nobody reads lines any more
	end    chan struct{} // closed when lines is
	once   sync.Once
	work   sync.WaitGroup // the reader, who hands on what it has read, and the writer while there is something to say
	more   chan struct{}  // has room for one: there is something in waiting, or it is closed
	said   chan struct{}  // has room for one: something was said

	mu sync.Mutex
	// +checklocks:mu
	unsaid [][]byte // what is to be written to its standard input, in order
	// +checklocks:mu
	writing bool // somebody does
	// +checklocks:mu
	waiting [][]byte // lines on their way to lines
	// +checklocks:mu
	closed bool // nothing comes behind these
}

// launch starts a command line in the environment of the caller, confined as by says. Its life is not bound to ctx. What it asks on its standard streams about
// its calls is answered by j, and is in no line; nil = nothing is.
func launch(ctx context.Context, s llm.Starter, cmd *harness.Command, dir string, by *Confined, j *judging) (*child, error) {
	caller := llm.CallerFrom(ctx)
	env := caller.Env
	if len(env) == 0 {
		env = proc.ComposeEnv(os.Environ(), nil, nil)
	}
	spec := proc.Spec{Kind: proc.KindHarness, Owner: caller.PID, OwnerUUID: caller.UUID, Path: cmd.Program, Args: cmd.Args, Dir: dir,
		Env: env, StdoutPipe: true, Grace: grace, Box: by.Box, Road: by.Road}
	for name, value := range cmd.Env {
		spec.Credentials = append(spec.Credentials, name+"="+value)
	}
	if cmd.KeepStdin {
		spec.StdinPipe = true
	} else {
		spec.Input = cmd.Stdin
	}
	c := &child{stderr: proc.NewRing(0), lines: make(chan []byte), more: make(chan struct{}, 1), said: make(chan struct{}, 1), room: make(chan struct{}, 1), quit: make(chan struct{}), end: make(chan struct{})}
	spec.Stderr = c.stderr
	p, err := s.Start(context.WithoutCancel(ctx), spec)
	if err != nil {
		return nil, err
	}
	c.Child = p
	c.work.Go(func() { // ends with the child's output, or when quit is closed; waited for by stop
		defer c.close()
		c.pass(p.Stdout(), func(line []byte) bool { return j != nil && c.hears() && j.take(line, c.say) })
	})
	c.work.Go(func() { // ends when all lines were read, or when quit is closed; waited for by stop
		defer close(c.end)
		defer close(c.lines)
		c.hand()
	})
	if cmd.KeepStdin {
		c.say(cmd.Stdin)
	}
	return c, nil
}

// pass reads the lines of the output, and passes on those that take does not take. What a line has beyond its limit is dropped.
func (c *child) pass(out io.ReadCloser, take func(line []byte) bool) {
	defer out.Close() // nothing is written to it
	r := bufio.NewReaderSize(out, 64<<10)
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part[:min(len(part), maxLine-len(line))]...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if l := bytes.TrimSpace(line); len(l) > 0 && !take(l) && !c.add(l) {
			return
		}
		if line = line[:0]; err != nil {
			return
		}
		if cap(line) > 1<<20 { // such lines are rare
			line = nil
		}
	}
}

// add puts a line behind those that were not read, and waits until there is room for it. It reports false when nobody
// reads any more. How many lines wait does not count: what stands behind them may be a question.
func (c *child) add(line []byte) bool {
	size := int64(len(line)) + perLine
	for c.unread.Load() > 0 && c.unread.Load()+size > maxUnread {
		select {
		case <-c.room:
		case <-c.quit:
			return false
		}
	}
	c.unread.Add(size)
	c.mu.Lock()
	c.waiting = append(c.waiting, bytes.Clone(line))
	c.mu.Unlock()
	wake(c.more)
	return true
}

// close notes that no line follows.
func (c *child) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	wake(c.more)
}

// hand hands on the lines that wait, in order, until none follows or nobody reads any more.
func (c *child) hand() {
	for {
		c.mu.Lock()
		lines, over := c.waiting, c.closed
		c.waiting = nil
		c.mu.Unlock()
		for _, line := range lines {
			select {
			case c.lines <- line:
			case <-c.quit:
				return
			}
		}
		if over {
			return
		}
		select {
		case <-c.more:
		case <-c.quit:
			return
		}
	}
}

// wake wakes who waits for a channel that has room for one.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// read notes that a line was taken from lines.
func (c *child) read(line []byte) {
	c.unread.Add(-int64(len(line)) - perLine)
	wake(c.room)
}

// spent reports whether the child has ended and all that it printed was read.
func (c *child) spent() bool {
	select {
	case <-c.end:
		return c.gone()
	default:
		return false
	}
}

// say writes to the child's standard input, behind what was said before and beside whoever reads what it prints.
// That it is gone is noticed by its output.
func (c *child) say(text []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unsaid = append(c.unsaid, text)
	if !c.writing {
		c.writing = true
		c.work.Go(c.write) // ends when the child has taken it all, or has ended; waited for by stop
	}
}

// maxUnsaid is how many texts may wait to be said before more of the output is read: who hears no answers asks no more.
const maxUnsaid = 256

// hears waits until it has heard most of what was to be said, and reports false when nobody reads any more.
func (c *child) hears() bool {
	for {
		c.mu.Lock()
		few := len(c.unsaid) < maxUnsaid
		c.mu.Unlock()
		if few {
			return true
		}
		select {
		case <-c.said:
		case <-c.quit:
			return false
		}
	}
}

// write writes what is to be said until there is nothing left.
func (c *child) write() {
	for {
		c.mu.Lock()
		if len(c.unsaid) == 0 {
			c.writing = false
			c.mu.Unlock()
			return
		}
		text := c.unsaid[0]
		c.unsaid = c.unsaid[1:]
		c.mu.Unlock()
		_, _ = c.Stdin().Write(text)
		wake(c.said)
	}
}

// stop ends the child with all its descendants and waits for our goroutines. An idle one, which has ended its turn,
// gets the time to end by itself: it may still have its session to write.
func (c *child) stop(idle bool) proc.ExitInfo {
	c.once.Do(func() { close(c.quit) })
	if idle {
		if in := c.Stdin(); in != nil {
			_ = in.Close() // it may be closed already
		}
		t := time.NewTimer(grace)
		select {
		case <-c.Done():
		case <-t.C:
		}
		t.Stop()
	}
	end := c.Stop(grace)
	if in := c.Stdin(); in != nil {
		_ = in.Close()
	}
	c.work.Wait()
	return end
}

// gone reports whether the child has ended.
func (c *child) gone() bool {
	select {
	case <-c.Done():
		return true
	default:
		return false
	}
}

// privateDir makes the private directory of a session, for this user alone. Something else in its place, such as a
// symbolic link, is refused.
func privateDir(dir string) error {
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = owned(dir)
	}
	if err != nil {
		return types.Errorf(types.ErrStorage, "Call", dir, "the directory of a session cannot be made: %w", err)
	}
	return nil
}

// owned refuses what is no directory, and takes the rights of others away.
func owned(dir string) error {
	st, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !st.IsDir():
		return errors.New("there is something else in its place; remove it")
	case st.Mode().Perm() != 0o700:
		return os.Chmod(dir, 0o700)
	}
	return nil
}

// writeFiles writes what a command line wants to find in its private directory, over what stands there.
func writeFiles(dir string, files []harness.File) error {
	for _, f := range files {
		path := filepath.Join(dir, f.Name)
		if !filepath.IsLocal(f.Name) {
			return types.Errorf(types.ErrInternal, "Call", f.Name, "a file outside the session's directory")
		}
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		for at := filepath.Dir(path); err == nil && at != dir; at = filepath.Dir(at) {
			err = owned(at)
		}
		if err == nil {
			err = durable.WriteFile(durable.OS, path, f.Data, durable.Cached)
		}
		if err != nil {
			return types.Errorf(types.ErrStorage, "Call", path, "a file of the session cannot be written: %w", err)
		}
	}
	return nil
}
