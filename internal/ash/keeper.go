package ash

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rnix/types"
)

// Script is what a shell is to run.
type Script struct {
	Name     string   `json:"name"` // as messages name it
	Text     string   `json:"text"`
	Args     []string `json:"args,omitempty"`
	Options  []string `json:"options,omitempty"` // of set
	Check    bool     `json:"check,omitempty"`   // only say what is wrong with it
	Terminal bool     `json:"terminal,omitempty"`
	History  string   `json:"history,omitempty"` // the file with the lines that were typed; "" = none
}

// notice is a line from the child to its keeper, or back.
type notice struct {
	Agent *Agent `json:"agent,omitempty"`
	Ended bool   `json:"ended,omitempty"`
	// Signal is one that only the keeper got.
	Signal syscall.Signal `json:"signal,omitempty"`
}

// Keeper runs scripts in a child of this process, and stays.
type Keeper struct {
	Exe     string   // this program
	Args    []string // that make it the child
	Environ []string
	Dir     string
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
}

// Outcome is how a script has ended.
type Outcome struct {
	Code   int
	Err    error   // it did not end by itself: the shell was killed, or has crashed
	Agents []Agent // that it has started, and was not told the end of
}

// How long a shell that was told to end may take.
const killPatience = 5 * time.Second

// Run runs a script and returns how it has ended. It fails if the child cannot be started.
func (k Keeper) Run(script Script) (Outcome, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return Outcome{}, types.Errorf(types.ErrInternal, "", "", "the shell cannot be started: %w", err)
	}
	link, theirs := os.NewFile(uintptr(fds[0]), "shell"), os.NewFile(uintptr(fds[1]), "keeper")
	defer link.Close()
	defer theirs.Close()
	errs, done, err := asFile(k.Stderr)
	if err != nil {
		return Outcome{}, err
	}
	defer done()
	last := &tail{}
	cmd := exec.Command(k.Exe, k.Args...)
	cmd.Env, cmd.Dir, cmd.Stdin, cmd.Stdout = k.Environ, k.Dir, k.Stdin, k.Stdout
	cmd.Stderr = last // what the runtime of Go says when it gives up; the shell itself writes to the file behind
	cmd.ExtraFiles = []*os.File{errs, theirs}
	cmd.WaitDelay = killPatience
	defer keepTerminal(k.Stdin)()
	sigs := make(chan os.Signal, 8)
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if !signal.Ignored(sig) {
			signal.Notify(sigs, sig)
		}
	}
	defer signal.Stop(sigs)
	if err := cmd.Start(); err != nil {
		return Outcome{}, types.Errorf(types.ErrInternal, "", k.Exe, "the shell cannot be started: %w", err)
	}
	_ = theirs.Close()
	w := &keeping{link: link, cmd: cmd, open: map[types.UUID]Agent{}}
	ended := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { w.pass(sigs, ended) }) // ends with the child
	wg.Go(w.listen)                       // ends with the child's end of the link
	_ = w.send(script)                    // a child that is gone says so by its status
	err = cmd.Wait()
	close(ended)
	_ = link.SetReadDeadline(time.Now().Add(time.Second)) // nobody but the child has the other end
	wg.Wait()
	out := w.outcome(cmd.ProcessState, last.String())
	if err != nil && cmd.ProcessState == nil {
		return out, types.Errorf(types.ErrInternal, "", k.Exe, "%w", err)
	}
	return out, nil
}

// keeping is a child that runs.
type keeping struct {
	link *os.File
	cmd  *exec.Cmd

	mu sync.Mutex
	// +checklocks:mu
	open  map[types.UUID]Agent // agents whose end is not known
	order []types.UUID         // +checklocks:mu
}

func (w *keeping) send(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err = w.link.Write(append(line, '\n'))
	return err
}

// listen notes what the child has started.
func (w *keeping) listen() {
	for in := json.NewDecoder(w.link); ; {
		var n notice
		if in.Decode(&n) != nil {
			return
		}
		if n.Agent == nil {
			continue
		}
		w.mu.Lock()
		if n.Ended {
			delete(w.open, n.Agent.UUID)
		} else {
			w.open[n.Agent.UUID] = *n.Agent
			w.order = append(w.order, n.Agent.UUID)
		}
		w.mu.Unlock()
	}
}

// pass hands signals on that the child has not got from the terminal itself. A child that does not end
// after SIGTERM or SIGHUP is killed.
func (w *keeping) pass(sigs <-chan os.Signal, ended <-chan struct{}) {
	var enough <-chan time.Time
	for {
		select {
		case <-ended:
			return
		case <-enough:
			_ = w.cmd.Process.Kill()
			enough = nil
		case sig := <-sigs:
			if n, ok := sig.(syscall.Signal); ok && !(n == syscall.SIGINT && inForeground()) {
				_ = w.send(notice{Signal: n})
			}
			if sig != os.Interrupt && enough == nil {
				enough = time.After(killPatience)
			}
		}
	}
}

// inForeground reports whether the terminal sends its interrupts to this process, and so to the child.
func inForeground() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// outcome returns how the child has ended. said is the end of what the runtime wrote.
func (w *keeping) outcome(state *os.ProcessState, said string) Outcome {
	out := Outcome{Code: state.ExitCode()}
	w.mu.Lock()
	for _, id := range w.order {
		if a, ok := w.open[id]; ok {
			out.Agents = append(out.Agents, a)
			delete(w.open, id)
		}
	}
	w.mu.Unlock()
	status, ok := state.Sys().(syscall.WaitStatus)
	switch {
	case ok && status.Signaled():
		sig := status.Signal()
		out.Code = 128 + int(sig)
		if sig != syscall.SIGPIPE {
			out.Err = types.Errorf(types.ErrCancelled, "", "", "the shell was ended by %s", unix.SignalName(sig))
		}
	case out.Code == exitUsage && said != "": // so Go programs end that cannot go on
		out.Code, out.Err = exitError, types.Errorf(types.ErrExhausted, "", "", "%s", crash(said))
	}
	return out
}

// crash says for people why the process of the scripts is gone.
func crash(said string) string {
	switch {
	case strings.Contains(said, "stack overflow") || strings.Contains(said, "stack exceeds"):
		return "the script was ended: it has no stack left; does a function call itself without end, or is the code nested too deeply?"
	case strings.Contains(said, "out of memory") || strings.Contains(said, "cannot allocate memory"):
		return "the script was ended: it needs more memory than a script may have (1 GiB)"
	}
	first, _, _ := strings.Cut(strings.TrimSpace(said), "\n")
	return "the shell has crashed: " + first
}

// tail keeps the beginning of what is written; that is where a runtime says why.
type tail struct {
	mu  sync.Mutex
	buf bytes.Buffer // +checklocks:mu
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if room := 8<<10 - t.buf.Len(); room > 0 {
		t.buf.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}

// asFile returns a file that leads to w.
func asFile(w io.Writer) (f *os.File, done func(), err error) {
	if f, ok := w.(*os.File); ok {
		return f, func() {}, nil
	}
	r, f, err := os.Pipe()
	if err != nil {
		return nil, nil, types.Errorf(types.ErrInternal, "", "", "%w", err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = io.Copy(w, r) }) // ends when every writer has closed the file
	return f, func() {
		_ = f.Close()
		_ = r.SetReadDeadline(time.Now().Add(killPatience)) // a program in the background may have it still
		wg.Wait()
		_ = r.Close()
	}, nil
}

// keepTerminal returns what puts the terminal back as it is now: a shell that has crashed leaves it as it
// was while a line was typed.
func keepTerminal(in io.Reader) func() {
	f, ok := in.(*os.File)
	if !ok {
		return func() {}
	}
	fd := int(f.Fd())
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return func() {}
	}
	return func() { _ = unix.IoctlSetTermios(fd, unix.TCSETSW, t) }
}

// Child is the process in which a script runs, made by a Keeper.
type Child struct {
	Script Script
	Stderr *os.File // where the shell writes; that of the process is for the runtime
	link   *os.File
	in     *bufio.Reader

	mu sync.Mutex // for writing to the link
}

// NewChild takes over what the keeper of this process has handed it, and puts the limits into force.
func NewChild() (*Child, error) {
	stranger := types.Errorf(types.ErrInvalid, "", "", "this command is a part of the shell and cannot be called: use rnix sh")
	if kind, err := unix.GetsockoptInt(4, unix.SOL_SOCKET, unix.SO_DOMAIN); err != nil || kind != unix.AF_UNIX {
		return nil, stranger
	}
	for fd := 3; fd <= 4; fd++ {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, unix.FD_CLOEXEC); err != nil {
			return nil, stranger
		}
	}
	c := &Child{Stderr: os.NewFile(3, "stderr"), link: os.NewFile(4, "keeper")}
	c.in = bufio.NewReader(c.link)
	line, err := c.in.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &c.Script)
	}
	if err == nil {
		err = limit()
	}
	if err != nil {
		return nil, types.Errorf(types.ErrInternal, "", "", "the shell cannot be started: %w", err)
	}
	return c, nil
}

// Started tells the keeper of an agent, or that its end is known.
func (c *Child) Started(a Agent, ended bool) {
	line, err := json.Marshal(notice{Agent: &a, Ended: ended})
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = c.link.Write(append(line, '\n')) // a keeper that is gone tells nobody
}

// Attend hands the signals of this process, and those that only its keeper got, to the shell, until the
// process ends. A keeper that is gone is as a terminal that is closed.
func (c *Child) Attend(s *Shell) {
	sigs := make(chan os.Signal, 8)
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if !signal.Ignored(sig) {
			signal.Notify(sigs, sig)
		}
	}
	go func() { // ends with the process
		for sig := range sigs {
			s.Interrupt(sig, sig != os.Interrupt)
		}
	}()
	go func() { // ends with the process
		for dec := json.NewDecoder(c.in); ; {
			var n notice
			err := dec.Decode(&n)
			switch {
			case errors.Is(err, io.EOF) || err != nil:
				s.Interrupt(syscall.SIGHUP, true)
				return
			case n.Signal != 0:
				s.Interrupt(n.Signal, true)
			}
		}
	}()
}
