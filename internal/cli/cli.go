// Package cli is the command line: it reads arguments, calls the daemon through an ipc client, and
// shows what comes back, to people and to programs. It owns the commands, their flags and help, the
// exit codes and the form of the output. It knows the socket and nothing behind it: what a command
// can do, any other client can.
//
// Standard output is the answer, standard error is the talk. Text that comes from an agent passes
// through debug.Sanitize before a person sees it.
package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"sync/atomic"

	"rnix/internal/ash"
	"rnix/ipc"
	"rnix/runtime/statehome"
)

// Host is the world around one run of the program. The zero value of a field means that of this
// process.
type Host struct {
	Name    string   // of the program, as it was called
	Args    []string // without the name; nil = os.Args[1:]
	In      io.Reader
	Out     io.Writer
	Err     io.Writer
	Environ []string // "KEY=value"
	Dir     string   // the working directory, absolute
	Version string
	// Foreground runs the daemon in this process until ctx ends or the daemon is stopped: what
	// `daemon start --foreground` does. Nil = this program has no daemon in it.
	Foreground func(ctx context.Context) error
	// ControlPlane serves the session API until ctx ends or the process is told to stop. Nil = this program has none in it.
	ControlPlane func(ctx context.Context, o ControlPlane) error
	// Shell is the command of a shell that the program runs within its own process; nil = it is on its own.
	Shell *ash.Call
}

// Main runs the command that the arguments name and returns the exit code of the program. Everything
// that is to be said has been said when it returns.
func Main(ctx context.Context, h Host) int {
	a, err := newApp(h)
	if err == nil {
		ctx, cancel := context.WithCancelCause(ctx)
		a.abandon = cancel
		if err = a.execute(ctx); errors.As(context.Cause(ctx), new(*hung)) {
			err = context.Cause(ctx)
		}
		cancel(nil)
	}
	if a.client != nil {
		_ = a.client.Close()
	}
	return a.report(err)
}

// app is one run of the program.
type app struct {
	host   Host
	env    statehome.Lookup
	out    *output
	ran    bool        // a command's own work has begun: errors are no longer those of usage
	client *ipc.Client // set by the first connection
	daemon int         // the pid of the daemon that it talks to; 0 = not known
	// abandon ends the command, which waits for what will not come.
	abandon context.CancelCauseFunc
	heard   *atomic.Bool // the daemon has answered since the command began to look
	filled  *atomic.Bool // a program fills the terminal
	// noDashboard is set by a command with which no dashboard starts: one that serves or starts it itself, or fills the terminal.
	noDashboard bool

	unknown error // the command whose help was asked for is none
	allHelp bool  // the help of the program is wanted as a whole
}

func newApp(h Host) (*app, error) {
	if h.Args == nil {
		h.Args = os.Args[1:]
	}
	if h.Environ == nil {
		h.Environ = os.Environ()
	}
	if h.Name == "" {
		h.Name = statehome.Brand
	}
	if h.In == nil {
		h.In = os.Stdin
	}
	if h.Out == nil {
		h.Out = os.Stdout
	}
	if h.Err == nil {
		h.Err = os.Stderr
	}
	if h.Version == "" {
		h.Version = "dev"
	}
	a := &app{host: h, env: lookupIn(h.Environ), heard: new(atomic.Bool), filled: new(atomic.Bool)}
	a.out = newOutput(h.Out, h.Err, a.env)
	a.out.format = formatOf(h.Args)
	if h.Shell != nil && h.Shell.Where != "" {
		a.out.prog = h.Shell.Where
	}
	if h.Dir == "" {
		dir, err := os.Getwd()
		if err != nil {
			return a, usagef("", "the working directory cannot be found: %v", err)
		}
		a.host.Dir = dir
	}
	return a, nil
}

// lookupIn looks variables up in an environment; the last one of a name counts, as in os/exec.
func lookupIn(environ []string) statehome.Lookup {
	return func(name string) (string, bool) {
		for i := len(environ) - 1; i >= 0; i-- {
			if kv := environ[i]; len(kv) > len(name) && kv[len(name)] == '=' && kv[:len(name)] == name {
				return kv[len(name)+1:], true
			}
		}
		return "", false
	}
}

func (a *app) getenv(name string) string { v, _ := a.env(name); return v }

// execute parses the arguments and runs the command.
func (a *app) execute(ctx context.Context) error {
	root := newRoot(a)
	root.SetArgs(signalFlags(a.host.Args))
	root.SetIn(a.host.In)
	root.SetOut(a.host.Out)
	root.SetErr(a.host.Err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = a.unknown
	}
	if err != nil && !a.ran {
		return asUsage(err)
	}
	return err
}

// report says what went wrong, if anything, and returns the exit code.
func (a *app) report(err error) int {
	code := exitCode(err)
	if code == ExitUnreachable {
		err = explained(a, err)
	}
	if text := errorText(err); text != "" {
		a.out.fail(err)
	}
	if a.out.broken != nil {
		a.out.lastWords(a.out.broken)
		return max(code, ExitError)
	}
	return code
}
