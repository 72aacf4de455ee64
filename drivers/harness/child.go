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
	"time"

	"rnix/drivers/llm"
	"rnix/internal/harness"
	"rnix/internal/proc"
	"rnix/types"
)

const (
	maxLine = 64 << 20        // bytes of one line that are kept; the rest of a longer one is dropped
	grace   = 3 * time.Second // between SIGTERM and SIGKILL, and between the end of the input and SIGTERM
)

// child is a command line that runs.
type child struct {
	*proc.Child
	stderr *proc.Ring
	lines  chan []byte   // closed at the end of the output
	quit   chan struct{} // closed by stop: nobody reads lines any more
	once   sync.Once
	work   sync.WaitGroup // the reader
	in     sync.Mutex     // one line is written at a time; held over the write, which ends with the child
}

// launch starts a command line in the environment of the caller. Its life is not bound to ctx.
func launch(ctx context.Context, s llm.Starter, cmd *harness.Command, dir string) (*child, error) {
	caller := llm.CallerFrom(ctx)
	env := caller.Env
	if len(env) == 0 {
		env = proc.ComposeEnv(os.Environ(), nil, nil)
	}
	spec := proc.Spec{Kind: proc.KindHarness, Owner: caller.PID, OwnerUUID: caller.UUID, Path: cmd.Program, Args: cmd.Args, Dir: dir,
		Env: env, StdoutPipe: true, Grace: grace}
	for name, value := range cmd.Env {
		spec.Credentials = append(spec.Credentials, name+"="+value)
	}
	if cmd.KeepStdin {
		spec.StdinPipe = true
	} else {
		spec.Input = cmd.Stdin
	}
	c := &child{stderr: proc.NewRing(0), lines: make(chan []byte, 64), quit: make(chan struct{})}
	spec.Stderr = c.stderr
	p, err := s.Start(context.WithoutCancel(ctx), spec)
	if err != nil {
		return nil, err
	}
	c.Child = p
	c.work.Go(func() { // ends with the child's output, or when quit is closed; waited for by stop
		defer close(c.lines)
		c.read(p.Stdout())
	})
	if cmd.KeepStdin {
		c.say(cmd.Stdin)
	}
	return c, nil
}

// read passes on the lines of the output. What a line has beyond its limit is dropped, so that the child never
// waits for us.
func (c *child) read(out io.ReadCloser) {
	defer out.Close() // nothing is written to it
	r := bufio.NewReaderSize(out, 64<<10)
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part[:min(len(part), maxLine-len(line))]...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if l := bytes.TrimSpace(line); len(l) > 0 {
			select {
			case c.lines <- bytes.Clone(l):
			case <-c.quit:
				return
			}
		}
		if line = line[:0]; err != nil {
			return
		}
	}
}

// say writes to the child's standard input, beside whoever reads what it prints. That it is gone is noticed by
// its output.
func (c *child) say(text []byte) {
	c.work.Go(func() { // ends when the child has taken it all, or has ended; waited for by stop
		c.in.Lock()
		defer c.in.Unlock()
		_, _ = c.Stdin().Write(text)
	})
}

// stop ends the child with all its descendants and waits for our goroutines. An idle one gets the time to end
// by itself.
func (c *child) stop(idle bool) proc.ExitInfo {
	c.once.Do(func() { close(c.quit) })
	if in := c.Stdin(); in != nil && idle {
		_ = in.Close() // it may be closed already
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

// privateDir makes the private directory of a session.
func privateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return types.Errorf(types.ErrStorage, "Call", dir, "the directory of a session cannot be made: %w", err)
	}
	return nil
}

// writeFiles writes what a command line wants to find in its private directory.
func writeFiles(dir string, files []harness.File) error {
	for _, f := range files {
		path := filepath.Join(dir, f.Name)
		if !filepath.IsLocal(f.Name) {
			return types.Errorf(types.ErrInternal, "Call", f.Name, "a file outside the session's directory")
		}
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if err == nil {
			err = os.WriteFile(path, f.Data, 0o600)
		}
		if err != nil {
			return types.Errorf(types.ErrStorage, "Call", path, "a file of the session cannot be written: %w", err)
		}
	}
	return nil
}
