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
	"strconv"
	"sync"

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
	// Background says that the command has neither a terminal nor its signals.
	Background bool
	// Signals is called by a command that wants to handle interrupts itself. The channel is open until
	// the command has ended. Who does not call it is ended by the context.
	Signals func() <-chan os.Signal
	// Spawned is told of every agent that the command has started.
	Spawned func(ipc.SpawnResponse)
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

	mu      sync.Mutex
	sources map[int]*source         // +checklocks:mu
	nextSrc int                     // +checklocks:mu
	funcs   map[string]int          // +checklocks:mu; names of functions, to their sources
	loops   map[string]*os.File     // +checklocks:mu; kept so that no other file gets the same address
	unsent  map[string]int          // +checklocks:mu; exit codes of writes that have failed, by job and path
	front   map[int]*os.Process     // +checklocks:mu; programs in the foreground, by pid
	subs    map[chan os.Signal]any  // +checklocks:mu; commands in the foreground that handle signals
	broke   chan struct{}           // +checklocks:mu; closed when what is in the foreground is interrupted
	by      os.Signal               // +checklocks:mu; the signal that has closed it
	cancel  context.CancelCauseFunc // +checklocks:mu; ends what runs, jobs that were started with it included
}

// maxKept is how many texts are kept for the places of errors, besides those that declare functions.
const maxKept = 512

// New makes a shell.
func New(cfg Config) (*Shell, error) {
	s := &Shell{cfg: cfg, stdin: cfg.Stdin, ours: map[string]bool{}, sources: map[int]*source{}, funcs: map[string]int{}, loops: map[string]*os.File{},
		unsent: map[string]int{}, front: map[int]*os.Process{}, subs: map[chan os.Signal]any{}, broke: make(chan struct{})}
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
		interp.Params(params...), interp.Interactive(cfg.Terminal), interp.CallHandler(s.call), interp.ExecHandlers(s.exec),
		interp.OpenHandler(s.open), interp.ReadDirHandler2(s.readDir), interp.StatHandler(s.stat), interp.AccessHandler(s.access))
	if err != nil {
		return nil, types.Errorf(types.ErrInvalid, "", "", "the shell cannot be started: %w", err)
	}
	s.runner = r
	return s, nil
}

// register keeps a source for the places of errors.
func (s *Shell) register(src *source) *source {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nextSrc++
	src.id = s.nextSrc
	s.sources[src.id] = src
	for _, name := range src.funcs {
		s.funcs[name] = src.id
	}
	if old := s.sources[src.id-maxKept]; old != nil && len(old.funcs) == 0 && old.id > 1 {
		delete(s.sources, old.id)
	}
	return src
}

// Run runs a text to its end and returns its exit status. Everything has been said then. final says
// that nothing comes after it.
func (s *Shell) Run(name, text string, final bool) (code int, err error) {
	src, err := compile(name, text)
	if err != nil {
		return exitUsage, err
	}
	file, err := s.register(src).file()
	if err != nil {
		return exitError, err
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	s.begin(cancel)
	defer s.settle(ctx)
	ended := make(chan error, 1)
	// Ends with the text, or when ctx has ended; a shell that does not is left behind by its process.
	go func() { ended <- s.interpret(ctx, file, src.id, final) }()
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
func (s *Shell) interpret(ctx context.Context, file *syntax.File, id int, final bool) error {
	if final && id == 1 {
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
func (s *Shell) Exited() bool { return s.runner.Exited() && !s.wasInterrupted() }

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
	id, err := strconv.Atoi(hc.Env.Get(varSource).String())
	if err != nil {
		id = s.first()
	}
	s.mu.Lock()
	src := s.sources[id]
	s.mu.Unlock()
	if src == nil || src.name == "" || !hc.Pos.IsValid() {
		return ""
	}
	line, col := src.at(int(hc.Pos.Offset()))
	return fmt.Sprintf("%s:%d:%d", src.name, line, col)
}

// first returns the source that code belongs to which says nothing else: the script, or the last line.
func (s *Shell) first() int {
	if !s.cfg.Terminal {
		return 1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nextSrc
}

// fail writes a message about a command, and returns code.
func (s *Shell) fail(hc *interp.HandlerContext, code int, format string, args ...any) int {
	if at := s.where(hc); at != "" {
		format = at + ": " + format // a place has no percent sign but that of a file's name
	}
	_, _ = fmt.Fprintf(hc.Stderr, format+"\n", args...)
	return code
}
