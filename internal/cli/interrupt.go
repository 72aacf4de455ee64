package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rnix/ipc"
	"rnix/types"
)

// withInterrupts calls f with the signals that end a program, instead of being ended by them. Signals
// that this program was started to ignore stay ignored.
func (a *app) withInterrupts(f func(<-chan os.Signal) error) error {
	if sh := a.host.Shell; sh != nil {
		return f(sh.Signals())
	}
	sigs := make(chan os.Signal, 4)
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(sig) { // as with nohup
			signal.Notify(sigs, sig)
		}
	}
	defer signal.Stop(sigs)
	return f(sigs)
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}

// spawnPatience is how long an interrupted run waits for the daemon to say which process it has
// started, before it takes the request back. With the time that a signal takes, a Ctrl+C stops an
// agent within five seconds whenever it comes.
const spawnPatience = 3 * time.Second

// signalPatience bounds the call that passes a signal on.
const signalPatience = 5 * time.Second

// begin calls a method that starts a process. by is the signal, if any, with which somebody wants it to
// stop already.
func begin[Req, Resp any](ctx context.Context, c *ipc.Client, out *output, m ipc.Method[Req, Resp], req Req, sigs <-chan os.Signal) (r Resp, by os.Signal, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	type answer struct {
		r   Resp
		err error
	}
	answered := make(chan answer, 1)
	// Owned by this call, which cancels it; a daemon that does not answer is left behind.
	go func() {
		r, err := ipc.Call(ctx, c, m, req)
		answered <- answer{r, err}
	}()
	var late <-chan time.Time
	for {
		select {
		case a := <-answered:
			if by != nil && a.err != nil {
				return r, by, &exitError{signalExit(by), types.Errorf(types.ErrCancelled, "Spawn", "", "no agent was started")}
			}
			return a.r, by, a.err
		case sig := <-sigs:
			if by != nil || sig == syscall.SIGHUP {
				// Closing the connection takes the request back, if it has not been done yet.
				return r, by, leave(signalExit(sig))
			}
			by, late = sig, time.After(spawnPatience)
			out.talk("[kernel] stopping the agent that is being started; Ctrl+C again leaves at once")
		case <-late:
			cancel(types.Errorf(types.ErrCancelled, "Spawn", "", "interrupted"))
		}
	}
}

func signalExit(s os.Signal) int {
	switch s {
	case syscall.SIGTERM:
		return ExitTerminated
	case syscall.SIGHUP:
		return ExitHangup
	}
	return ExitInterrupted
}
