package ash

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"mvdan.cc/sh/v3/interp"

	"rnix/ipc"
)

// systems are the commands of the program whose names mean something else to people who write scripts:
// those of the system go before, but for paths of the name space; ours are reached with: rnix NAME.
var systems = map[string]bool{"cat": true, "ls": true, "diff": true, "du": true, "write": true, "fsck": true, "init": true, "groups": true,
	"sh": true, "completion": true, "environment": true, "exit-codes": true, "help": true}

// programs run what is neither a function nor a built-in of the interpreter.
type programs struct{ *Shell }

// exec runs every command that is neither a function nor a built-in of the interpreter.
func (s programs) exec(interp.ExecHandlerFunc) interp.ExecHandlerFunc {
	return func(ctx context.Context, args []string) error {
		hc := interp.HandlerCtx(ctx)
		if err := s.halted(&hc); err != nil && args[0] != cmdEnded {
			return err
		}
		if code := s.dispatch(ctx, &hc, args); code != 0 {
			return interp.ExitStatus(code)
		}
		return nil
	}
}

// dispatch runs a command and returns its exit status.
func (s programs) dispatch(ctx context.Context, hc *interp.HandlerContext, args []string) int {
	name := args[0]
	switch name {
	case cmdEnded, cmdFail:
		code := exitUsage
		if len(args) > 1 {
			code, _ = strconv.Atoi(args[1])
		}
		if j := s.jobs.get(jobOf(hc)); j != nil && name == cmdEnded {
			s.jobs.end(j, code)
		}
		return code
	case cmdWrote:
		return s.space.wrote(hc, args)
	case ownPrefix + "which":
		return s.whichOurs(hc, args[1:])
	}
	// call has put the prefix before it, unless the command comes from exec.
	if run := (builtins(s)).named(strings.TrimPrefix(name, ownPrefix)); run != nil {
		return run(ctx, hc, args[1:])
	}
	if name == "rnix" && len(args) > 1 && (args[1] == "sh" || args[1] == "daemon") {
		return s.self(ctx, hc, args)
	}
	if s.ours[name] {
		return s.command(ctx, hc, args)
	}
	if code, done := (tools{s}).overSpace(ctx, hc, args); done {
		return code
	}
	return s.program(ctx, hc, args, nil)
}

// command runs a command of this program.
func (s programs) command(ctx context.Context, hc *interp.HandlerContext, args []string) int {
	var unfinished atomic.Bool
	code := s.attended(ctx, hc, args, func() { unfinished.Store(true) })
	s.pipes.ended(hc.Stdout, args, code, unfinished.Load())
	return code
}

// attended is command for who is told of an agent that is left suspended.
func (s programs) attended(ctx context.Context, hc *interp.HandlerContext, args []string, unfinished func()) int {
	id := jobOf(hc)
	j := s.jobs.get(id)
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	c := Call{Args: args, Stdin: hc.Stdin, Stdout: hc.Stdout, Stderr: hc.Stderr, Environ: environment(hc.Env, s.cfg.Environ), Dir: hc.Dir,
		Background: id != 0, Unfinished: unfinished}
	if at := s.where(hc); at != "" {
		c.Where = at + ": " + args[0]
	}
	if f := s.input(hc); f != nil {
		c.Input, c.Before = f, func() (Source, bool) { return s.pipes.of(f) }
	} else if slices.Contains([]string{"spawn", "run"}, args[0]) && !s.told.Load() && s.unread(hc) {
		c.Unread = s.told.CompareAndSwap(false, true)
	}
	if c.Stdin == io.Reader(s.stdin) {
		c.Stdin = s.cfg.Stdin
	}
	answered := func() {}
	if j != nil {
		answered = s.jobs.asking(j)
		defer answered()
	}
	c.Spawned = func(r ipc.SpawnResponse) {
		a := Agent{PID: r.PID, UUID: r.UUID, Name: r.Name, Job: id}
		s.cfg.Agent(a, false)
		if j != nil {
			s.jobs.agent(j, a)
			answered()
		}
	}
	c.Ended = func(r ipc.SpawnResponse) { s.cfg.Agent(Agent{PID: r.PID, UUID: r.UUID}, true) }
	if id != 0 {
		c.Signals = func() <-chan os.Signal { return nil }
		return s.cfg.Host.Run(ctx, c)
	}
	var leave func()
	var takes atomic.Bool // the command handles interrupts itself
	c.Signals = func() <-chan os.Signal {
		var ch <-chan os.Signal
		ch, leave = s.front.subscribe()
		takes.Store(true)
		return ch
	}
	stop := s.front.onBreak(&takes, func() { cancel(&haltError{code: signalCode(os.Interrupt)}) })
	code := s.cfg.Host.Run(ctx, c)
	stop()
	if leave != nil {
		leave()
	}
	return code
}

// input returns what an agent is given with its intent: standard input, if that was redirected for this
// very command or for the function that it stands in, and is not what a loop around it reads.
func (s programs) input(hc *interp.HandlerContext) *os.File {
	f, ok := hc.Stdin.(*os.File)
	if !ok || f == s.stdin || hc.Env.Get(varLoop).String() == identity(f) {
		return nil
	}
	if st, err := f.Stat(); err != nil || st.Mode()&os.ModeCharDevice != 0 {
		return nil
	}
	return f
}

// self runs this program again.
func (s programs) self(ctx context.Context, hc *interp.HandlerContext, args []string) int {
	exe, err := os.Executable()
	if err != nil {
		return s.fail(hc, exitNotExec, "%s: %v", args[0], err)
	}
	return s.program(ctx, hc, append([]string{exe}, args[1:]...), nil)
}

// program runs a program of this system. out replaces its standard output if it is not nil.
func (s programs) program(ctx context.Context, hc *interp.HandlerContext, args []string, out io.Writer) int {
	path, err := interp.LookPathDir(hc.Dir, hc.Env, args[0])
	if err != nil {
		if strings.Contains(args[0], "/") {
			if _, serr := os.Stat(absolute(hc.Dir, args[0])); serr == nil {
				return s.fail(hc, exitNotExec, "%s: %s", args[0], strings.TrimPrefix(err.Error(), "stat "))
			}
			return s.fail(hc, exitUnknown, "%s: no such file or directory", args[0])
		}
		return s.fail(hc, exitUnknown, "%s: command not found%s", args[0], s.meant(args[0]))
	}
	if out == nil {
		out = hc.Stdout
	}
	start := func(path string, args []string) (*exec.Cmd, error) {
		cmd := &exec.Cmd{Path: path, Args: args, Env: environment(hc.Env, s.cfg.Environ), Dir: hc.Dir, Stdin: hc.Stdin, Stdout: out, Stderr: hc.Stderr}
		if hc.Stdin == io.Reader(s.stdin) {
			cmd.Stdin = s.cfg.Stdin
		}
		return cmd, cmd.Start()
	}
	cmd, err := start(path, args)
	for wait := time.Millisecond; errors.Is(err, syscall.ETXTBSY) && wait < 300*time.Millisecond; wait *= 2 {
		<-after(wait) // another program that was started just now still has the file open
		cmd, err = start(path, args)
	}
	if errors.Is(err, syscall.ENOEXEC) { // a script that does not say whose
		if sh, lerr := interp.LookPathDir(hc.Dir, hc.Env, "sh"); lerr == nil {
			cmd, err = start(sh, append([]string{"sh", path}, args[1:]...))
		}
	}
	if err != nil {
		return s.fail(hc, exitNotExec, "%s: %v", args[0], bare(err))
	}
	unlimited(cmd.Process.Pid)
	if j := s.jobs.get(jobOf(hc)); j != nil {
		defer s.jobs.child(j, cmd.Process)()
	} else {
		defer s.front.program(cmd.Process)()
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer stop()
	err = cmd.Wait()
	s.pipes.through(hc.Stdin, out)
	return s.result(hc, args[0], err)
}

// result returns the exit status of a program that has ended. One that an interrupt has ended ends the
// script too, if it was in the foreground.
func (s programs) result(hc *interp.HandlerContext, name string, err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		return 0
	case !errors.As(err, &exit):
		return s.fail(hc, exitError, "%s: %v", name, err)
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return exit.ExitCode()
	}
	sig := status.Signal()
	if sig == syscall.SIGINT && jobOf(hc) == 0 {
		s.front.stop(os.Interrupt)
	}
	if sig != syscall.SIGINT && sig != syscall.SIGPIPE && sig != syscall.SIGTERM {
		s.fail(hc, 0, "%s: ended by %s", name, unix.SignalName(sig))
	}
	return 128 + int(sig)
}

// meant returns a hint at a command that somebody may have meant.
func (s programs) meant(name string) string {
	for ours := range s.ours {
		if s.ours[ours] && len(ours) > 2 && (strings.EqualFold(ours, name) || len(name) > 3 && (strings.HasPrefix(ours, name) || strings.HasPrefix(name, ours))) {
			return "; did you mean: " + ours
		}
	}
	return "; see: help"
}

// whichOurs answers for names of which at least one is ours.
func (s programs) whichOurs(hc *interp.HandlerContext, args []string) int {
	if len(args) == 0 {
		return exitUsage
	}
	code := 0
	for _, name := range args[1:] {
		path, err := interp.LookPathDir(hc.Dir, hc.Env, name)
		switch {
		case s.ours[name] && args[0] == "type":
			_, _ = fmt.Fprintf(hc.Stdout, "%s is a command of this shell (see: help %s)\n", name, name)
		case s.ours[name] || interp.IsBuiltin(name) || s.texts.function(name) != 0:
			_, _ = fmt.Fprintln(hc.Stdout, name)
		case err == nil:
			_, _ = fmt.Fprintln(hc.Stdout, filepath.Clean(path))
		default:
			code = exitError
		}
	}
	return code
}

// Names returns the words that a line may begin with.
func (s *Shell) Names() []string {
	var out []string
	for name, ours := range s.ours {
		if ours {
			out = append(out, name)
		}
	}
	for name := range clashing {
		out = append(out, name)
	}
	out = append(out, s.texts.functions()...)
	slices.Sort(out)
	return slices.Compact(out)
}

// Ours reports whether a word is a command of this program here.
func (s *Shell) Ours(name string) bool {
	return s.ours[name] || clashing[name] && name != "jobs" && name != "ulimit"
}
