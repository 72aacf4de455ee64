package llm

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"rnix/internal/proc"
	"rnix/types"
	"rnix/vfs"
)

const (
	cliLine  = 64 << 20        // bytes of one line that a CLI may write
	cliGrace = 3 * time.Second // between SIGTERM and SIGKILL
	cliTail  = 600             // bytes of standard error that are shown
)

// Starter starts the children of the drivers that are programs. *proc.Manager is one.
type Starter interface {
	Start(ctx context.Context, spec proc.Spec) (*proc.Child, error)
}

// cliLaunch says what to start.
type cliLaunch struct {
	provider    string
	command     string
	args        []string
	dir         string
	credentials []string // NAME=value
	input       []byte   // all of the standard input; nil for a pipe
	confined    Confined
}

// Confined says how a program is confined that is a model.
type Confined struct {
	Box *proc.Box // nil = as proc.Confine says
	// Program is the path of the program; empty = it is looked for. Dir is where it works and finds its files; empty = in the directory of its process,
	// and it is not confined.
	Program, Dir string
	Without      string // a variable that it does not have, since its login is elsewhere
	// Done is called when it has ended, or could not be started; nil = nothing is to be done.
	Done func()
}

// done tells whoever confines it that it has ended.
func (c *Confined) done() {
	if c.Done != nil {
		c.Done()
	}
}

// confine asks how a program is confined that is started now.
func confine(ctx context.Context, by func(c vfs.Caller, command string) (Confined, error), command string) (Confined, error) {
	if by == nil {
		return Confined{}, nil
	}
	return by(CallerFrom(ctx), command)
}

// cliChild is a program that answers line by line.
type cliChild struct {
	*proc.Child
	launch cliLaunch
	stderr *proc.Ring
	lines  chan []byte   // closed at the end of the output
	quit   chan struct{} // closed by stop: nobody reads lines any more
	once   sync.Once
	done   sync.Once
	work   sync.WaitGroup // the reader and writers
}

// startCLI starts a program with the environment of the caller. Its life is not bound to ctx: whoever
// got it stops it.
func startCLI(ctx context.Context, s Starter, l cliLaunch) (*cliChild, error) {
	caller := CallerFrom(ctx)
	env := caller.Env
	if len(env) == 0 {
		env = proc.ComposeEnv(os.Environ(), nil, nil)
	}
	path := cmp.Or(l.confined.Program, FindCommand(l.command, env))
	if l.confined.Dir != "" {
		l.dir = l.confined.Dir
		l.credentials = slices.DeleteFunc(slices.Clone(l.credentials), func(kv string) bool {
			name, _, _ := strings.Cut(kv, "=")
			return name == l.confined.Without
		})
	}
	c := &cliChild{launch: l, stderr: proc.NewRing(0), lines: make(chan []byte, 16), quit: make(chan struct{})}
	child, err := s.Start(context.WithoutCancel(ctx), proc.Spec{
		Kind: proc.KindLLM, Owner: caller.PID, OwnerUUID: caller.UUID,
		Path: path, Args: l.args, Dir: l.dir, Env: env, Credentials: l.credentials, Box: l.confined.Box,
		Input: l.input, StdinPipe: l.input == nil, Stderr: c.stderr, StdoutPipe: true, Grace: cliGrace,
	})
	if err != nil {
		l.confined.done()
		return nil, err
	}
	c.Child = child
	c.work.Go(func() { // ends with the child's output, or when quit is closed; waited for by stop
		defer close(c.lines)
		c.read(child.Stdout())
	})
	return c, nil
}

// CommandOf returns the usual name of the command of a program that is a model: claude or cursor.
func CommandOf(program string) string {
	if program == "cursor" {
		return "agent"
	}
	return program
}

// FindCommand looks for a program in the places where its installer puts it, if it is not in PATH. It returns command if it finds none.
func FindCommand(command string, env []string) string {
	if _, err := proc.LookPath(command, env); err == nil || strings.Contains(command, "/") {
		return command
	}
	for _, kv := range env {
		home, ok := strings.CutPrefix(kv, "HOME=")
		if !ok || !filepath.IsAbs(home) {
			continue
		}
		for _, dir := range []string{".local/bin", ".claude/local", ".bun/bin"} {
			path := filepath.Join(home, dir, command)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return path
			}
		}
	}
	return command
}

// read passes on the lines of the output. A line that is too long ends the reading.
func (c *cliChild) read(out io.ReadCloser) {
	defer out.Close() // nothing is written to it
	r := bufio.NewReaderSize(out, 64<<10)
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if line = append(line, part...); errors.Is(err, bufio.ErrBufferFull) && len(line) < cliLine {
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

// write gives data to the child's standard input, while others read what it says. last closes it.
// A child that is gone is noticed by its output.
func (c *cliChild) write(data []byte, last bool) {
	c.work.Go(func() { // ends when the child has taken it all, or has ended; waited for by stop
		in := c.Stdin()
		_, _ = in.Write(data)
		if last {
			_ = in.Close()
		}
	})
}

// stop ends the child with all its descendants, gently first, and waits for our goroutines.
func (c *cliChild) stop(grace time.Duration) proc.ExitInfo {
	c.once.Do(func() { close(c.quit) })
	end := c.Stop(grace)
	if in := c.Stdin(); in != nil {
		_ = in.Close() // may be closed already
	}
	c.work.Wait()
	c.done.Do(c.launch.confined.done)
	return end
}

// gone reports whether the child has ended.
func (c *cliChild) gone() bool {
	select {
	case <-c.Done():
		return true
	default:
		return false
	}
}

// secrets are the texts that must not be shown.
func (l cliLaunch) secrets() (out []string) {
	for _, kv := range l.credentials {
		name, value, _ := strings.Cut(kv, "=")
		if len(value) >= 6 && !strings.HasSuffix(name, "_URL") && !strings.HasSuffix(name, "_DIR") {
			out = append(out, value)
		}
	}
	return out
}

// fail makes an error of the provider, without secrets, and with the end of what the child wrote to
// its standard error.
func (c *cliChild) fail(code types.ErrCode, text string, cause error) error {
	secrets := c.launch.secrets()
	text = redact(strings.TrimSpace(text), secrets)
	if tail := strings.TrimSpace(c.stderr.String()); tail != "" {
		if len(tail) > cliTail {
			tail = "... " + strings.ToValidUTF8(tail[len(tail)-cliTail:], "")
		}
		text += "; it wrote: " + redact(tail, secrets)
	}
	if cause != nil {
		return types.Errorf(code, "Call", c.launch.provider, "%s: %w", text, cause)
	}
	return types.Errorf(code, "Call", c.launch.provider, "%s", text)
}

// cliCredentials collects variables that the caller has, for a child that talks to a provider itself.
func cliCredentials(ctx context.Context, names []string) (out []string) {
	for _, n := range names {
		if v, ok := SecretFrom(ctx, n); ok && !strings.ContainsRune(v, 0) {
			out = append(out, n+"="+v)
		}
	}
	return out
}

// cliDir is the directory that a CLI is started in.
func cliDir(ctx context.Context, req *LLMRequest) string {
	for _, dir := range []string{req.WorkDir, CallerFrom(ctx).WorkDir} {
		if filepath.IsAbs(dir) {
			return dir
		}
	}
	return os.TempDir()
}
