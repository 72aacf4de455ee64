// Package ash is the shell language for agents: the syntax and the interpreter of mvdan.cc/sh, with the
// commands of this program as built-ins, background jobs that know their agents, and the paths of the
// name space in redirections, globs and tests. It owns the jobs, the places of errors and the life of
// the operating system process in which scripts run. It knows neither flags nor the wire: what a command
// does, its Host says.
//
// A script runs in a child of the program (keeper.go), under limits of its own (child.go): code that is
// nested too deeply, or that fills the memory, ends this child and nothing else. It runs with the
// rights of who has started it: what is refused here is refused to keep accidents out.
package ash

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"

	"rnix/ipc"
	"rnix/types"
)

// Host is the program that the shell is a part of. Its methods are called from several goroutines.
type Host interface {
	// Commands returns the names of the commands of the program.
	Commands() []string
	// Run runs a command of the program and returns its exit code. It has said everything then.
	Run(ctx context.Context, c Call) int
	// Read, Write and List use a path of the name space, with dir as the directory of the user.
	Read(ctx context.Context, dir, path string) ([]byte, error)
	Write(ctx context.Context, dir, path string, data []byte) error
	List(ctx context.Context, dir, path string) ([]ipc.PathEntry, error)
	// Help returns what the word help shows.
	Help() string
}

// Call is one command of the program.
type Call struct {
	Args    []string // with the name
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Environ []string
	Dir     string
	Where   string // what messages begin with: file:line:column and the name; "" = as the program does
	// Input is what an agent is given with its intent; nil = nothing.
	Input io.Reader
	// Before returns what went wrong on the writing side of Input, when that was read to its end.
	Before func() (Source, bool)
	// Unfinished is told that the command has shown an agent that has not ended: it is suspended, and its result is still to come.
	Unfinished func()
	// Unread says that the script has standard input, and that the command is not given it: of the first one only.
	Unread bool
	// Background says that the command has neither a terminal nor its signals.
	Background bool
	// Signals is called by a command that wants to handle interrupts itself. The channel is open until
	// the command has ended. Who does not call it is ended by the context.
	Signals func() <-chan os.Signal
	// Spawned is told of every agent that the command has started.
	Spawned func(ipc.SpawnResponse)
	// Ended is told that one of them was watched to its end, whatever that is.
	Ended func(ipc.SpawnResponse)
}

// Config is a shell.
type Config struct {
	Name     string   // of the script, as messages name it
	Args     []string // $1 and so on
	Options  []string // of set: -e, -u, -x
	Stdin    *os.File
	Stdout   *os.File
	Stderr   *os.File
	Environ  []string
	Dir      string
	Terminal bool // a person types the lines
	Host     Host
	// Agent is told of every agent that was started, and that it was waited for to its end.
	Agent func(a Agent, ended bool)
}

// Shell is one shell. Its methods but Interrupt belong to one goroutine.
type Shell struct {
	cfg    Config
	runner *interp.Runner
	stdin  *os.File // of the interpreter
	ours   map[string]bool
	jobs   jobs
	typed  func() []string // the lines that a person has typed; nil = nobody types
	told   atomic.Bool     // that a command does not read the script's standard input

	texts texts
	space space
	pipes pipes
	front foreground
}

// New makes a shell.
func New(cfg Config) (*Shell, error) {
	s := &Shell{cfg: cfg, stdin: cfg.Stdin, ours: map[string]bool{}}
	s.space.host, s.space.texts, s.space.fail, s.space.unsent = cfg.Host, &s.texts, s.fail, map[string]int{}
	for _, name := range cfg.Host.Commands() {
		s.ours[name] = !systems[name]
	}
	s.ours["spawn"], s.ours["rnix"] = true, true
	if tty := reopened(cfg.Stdin); tty != nil {
		s.stdin = tty
	}
	params := append([]string{}, cfg.Options...)
	params = append(append(params, "--"), cfg.Args...)
	r, err := interp.New(interp.Env(expand.ListEnviron(cfg.Environ...)), interp.Dir(cfg.Dir), interp.StdIO(s.stdin, cfg.Stdout, cfg.Stderr),
		interp.Params(params...), interp.Interactive(cfg.Terminal), interp.CallHandler(caller{s}.call), interp.ExecHandlers(programs{s}.exec),
		interp.OpenHandler(s.space.open), interp.ReadDirHandler2(s.space.readDir), interp.StatHandler(s.space.stat), interp.AccessHandler(s.space.access))
	if err != nil {
		return nil, types.Errorf(types.ErrInvalid, "", "", "the shell cannot be started: %w", err)
	}
	s.runner = r
	return s, nil
}

// Run runs a text to its end and returns its exit status. Everything has been said then. final says
// that nothing comes after it.
func (s *Shell) Run(name, text string, final bool) (code int, err error) {
	src, err := compile(name, text)
	if err != nil {
		return exitUsage, err
	}
	file, err := src.file()
	if err != nil {
		return exitError, err
	}
	s.texts.main(s.texts.add(src))
	ctx, cancel := context.WithCancelCause(context.Background())
	s.front.begin(cancel)
	defer s.settle(ctx)
	ended := make(chan error, 1)
	// Ends with the text, or when ctx has ended; a shell that does not is left behind by its process.
	go func() { ended <- s.interpret(ctx, file, final) }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		select {
		case err = <-ended:
		case <-after(lastPatience):
			err = context.Cause(ctx)
		}
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return s.status(err)
}

// interpret runs the statements one after the other, as one file if it is the last.
func (s *Shell) interpret(ctx context.Context, file *syntax.File, final bool) error {
	if final {
		return s.runner.Run(ctx, file)
	}
	var err error
	for _, stmt := range file.Stmts {
		if err = s.runner.Run(ctx, stmt); s.runner.Exited() || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// Exited reports whether the last Run has ended the shell, as exit does.
func (s *Shell) Exited() bool { return s.runner.Exited() && s.front.signal() != os.Interrupt }

// Leave runs what the script wants to be run at its end, if anything.
func (s *Shell) Leave() { _ = s.runner.Run(context.Background(), &syntax.File{}) }

// The exit codes of the shell itself. Those of commands are theirs.
const (
	exitError   = 1
	exitUsage   = 2
	exitNotExec = 126
	exitUnknown = 127
)

// status returns the exit status of a text, and what is to be said about it.
func (s *Shell) status(err error) (int, error) {
	var status interp.ExitStatus
	var halt *haltError
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &status):
		return int(status), nil
	case errors.As(err, &halt):
		return halt.code, halt.err
	}
	return exitError, err
}

// haltError stops what runs. A nil err means that there is nothing to say.
type haltError struct {
	code int
	err  error
}

func (h *haltError) Error() string {
	if h.err == nil {
		return fmt.Sprintf("exit status %d", h.code)
	}
	return h.err.Error()
}

// jobOf returns the number of the job that a command belongs to, 0 for the foreground.
func jobOf(hc *interp.HandlerContext) int { return number(hc.Env.Get(varJob).String()) }

// number returns the number of a %n.
func number(word string) int {
	if len(word) < 2 || word[0] != '%' {
		return 0
	}
	n, err := strconv.Atoi(word[1:])
	if err != nil {
		return 0
	}
	return n
}

// where returns the place of a command: file:line:column. A line that a person has typed has none.
func (s *Shell) where(hc *interp.HandlerContext) string {
	src := s.texts.of(hc)
	if src.name == "" || !hc.Pos.IsValid() {
		return ""
	}
	line, col := src.at(int(hc.Pos.Offset()))
	return fmt.Sprintf("%s:%d:%d", src.name, line, col)
}

// halt ends all that runs, with a message about a command, and returns what stops this one.
func (s *Shell) halt(hc *interp.HandlerContext, text string) error {
	if at := s.where(hc); at != "" {
		text = at + ": " + text
	}
	err := &haltError{exitError, types.Errorf(types.ErrExhausted, "", "", "%s", text)}
	s.front.end(err)
	return err
}

// broken returns the channel that is closed by an interrupt. What runs in the background has none.
func (s *Shell) broken(hc *interp.HandlerContext) <-chan struct{} {
	if jobOf(hc) != 0 {
		return nil
	}
	return s.front.broken()
}

// halted returns why a command is not to be run any more; nil if it is.
func (s *Shell) halted(hc *interp.HandlerContext) error {
	if n := runtime.NumGoroutine(); n > maxGoroutines || n > maxGoroutines/10 && fewFiles() {
		return s.halt(hc, "the script does too much at the same time and was ended; does a function start itself?")
	}
	if id := jobOf(hc); id != 0 {
		if j := s.jobs.get(id); j != nil && s.jobs.isKilled(j) {
			return &haltError{code: signalCode(syscall.SIGTERM)}
		}
		return nil
	}
	if sig := s.front.signal(); sig != nil {
		return &haltError{code: signalCode(sig)}
	}
	return nil
}

// settle waits, at the end of a text, until each agent that is being started in the background is there.
func (s *Shell) settle(ctx context.Context) {
	for _, j := range s.jobs.all() {
		answered := s.jobs.settled(j)
		if answered == nil {
			continue
		}
		select {
		case <-answered:
		case <-after(startPatience):
		case <-ctx.Done():
		}
	}
}

// Interrupt tells what runs in the foreground that somebody wants it to end. SIGINT ends the text that
// runs: an agent is asked to stop, and a second one leaves it. SIGTERM and SIGHUP end the shell. forward
// says that the programs in the foreground have not got the signal yet, as they have from a terminal.
func (s *Shell) Interrupt(sig os.Signal, forward bool) { s.front.interrupt(sig, forward) }

// fail writes a message about a command, and returns code.
func (s *Shell) fail(hc *interp.HandlerContext, code int, format string, args ...any) int {
	if at := s.where(hc); at != "" {
		format = at + ": " + format // a place has no percent sign but that of a file's name
	}
	_, _ = fmt.Fprintf(hc.Stderr, format+"\n", args...)
	return code
}
