package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"rnix/internal/durable"
	"rnix/internal/proc"
	"rnix/ipc"
	"rnix/types"
)

// How long a daemon may be silent before that is said, how often it is asked whether it is there, and how long it has to show itself.
const (
	silence     = 3 * time.Second
	pingTimeout = 2 * time.Second
	hungAfter   = 20 * time.Second
)

// hung is the error of a command whose daemon does not answer at all.
type hung struct{ error }

func (h *hung) Unwrap() error { return h.error }

// connected keeps the connection. As long as the command takes, it is found out whether the daemon answers at all: many commands wait for
// good reasons, and one that hangs should not look like them.
func (a *app) connected(ctx context.Context, c *ipc.Client) {
	a.client = c
	timer := time.AfterFunc(silence, func() { listen(ctx, a, c) }) // owned by ctx, which ends with the command
	context.AfterFunc(ctx, func() { timer.Stop() })
}

// listen says who does not answer, and who answers again. A command whose daemon has never answered ends; one that was told something waits
// as long as it is let: whoever stopped the daemon may let it continue.
func listen(ctx context.Context, a *app, c *ipc.Client) {
	for began := time.Now().Add(-silence); ctx.Err() == nil; began = time.Now() {
		told := false
		for {
			r := sign(ctx, c)
			if r == signOff || ctx.Err() != nil {
				return
			}
			if r == signAnswer {
				break
			}
			waited := time.Since(began)
			if !a.heard.Load() && waited >= hungAfter && a.abandon != nil {
				a.abandon(hungError(a, waited))
				return
			}
			if !told {
				text := "; waiting for it"
				if !a.heard.Load() {
					text += fmt.Sprintf(", at most %d s", int(hungAfter.Seconds()))
				}
				notice(a, silentText(a)+text)
			}
			told = true
		}
		if told {
			notice(a, "the daemon answers again")
		}
		a.heard.Store(true)
		select {
		case <-time.After(silence):
		case <-ctx.Done():
		}
	}
}

// notice writes a line of progress for people. It is not said through say, which belongs to the goroutine of the command.
func notice(a *app, text string) {
	if !a.filled.Load() && a.out.talks() {
		_, _ = io.WriteString(a.out.err.w, a.out.drawn("[kernel] "+text)+"\n")
	}
}

// What came of asking a daemon whether it is there.
const (
	signAnswer = iota
	signNone
	signOff // the connection has ended: the command itself will be told
)

// sign asks a daemon whether it is there.
func sign(ctx context.Context, c *ipc.Client) int {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	switch _, err := ipc.Call(ctx, c, ipc.Ping, ipc.Empty{}); {
	case err == nil:
		return signAnswer
	case ctx.Err() != nil:
		return signNone
	}
	return signOff
}

// silentText names the daemon that does not answer, and what is known of why.
func silentText(a *app) string {
	h, ok := lockHolder(a)
	switch {
	case !ok:
		return "the daemon does not answer"
	case proc.IsStopped(h.PID):
		return fmt.Sprintf("the daemon (pid %d) is stopped by a signal and does not answer", h.PID)
	}
	return fmt.Sprintf("the daemon (pid %d) does not answer", h.PID)
}

func hungError(a *app, waited time.Duration) error {
	mend := "end it, which loses nothing that was recorded: rnix daemon stop --force"
	if h, ok := lockHolder(a); ok && proc.IsStopped(h.PID) {
		mend = fmt.Sprintf("let it continue: kill -CONT %d; or %s", h.PID, mend)
	}
	return &hung{withMend(unreachable(types.Errorf(types.ErrTimeout, "", "", "after %d s: %s", int(waited.Seconds()), silentText(a))), mend)}
}

// lockHolder returns who holds the lock of our data directory.
func lockHolder(a *app) (ipc.LockInfo, bool) {
	p, err := a.places()
	if err != nil {
		return ipc.LockInfo{}, false
	}
	h, held, err := ipc.LockHolder(ipc.DataLock(p.DataDir))
	return h, err == nil && held && h.PID > 0
}

// forcePatience is how long a daemon that is stopped by force has to stop as it should.
const forcePatience = 10 * time.Second

// forceStop stops the daemon, and kills it if it does not stop within forcePatience.
func forceStop(ctx context.Context, a *app) error {
	h, ok := lockHolder(a)
	if !ok {
		a.out.talk("no daemon is running")
		return nil
	}
	if !proc.IsStopped(h.PID) {
		err := stopWithin(ctx, a)
		if !errors.Is(err, context.DeadlineExceeded) && types.CodeOf(err) != types.ErrTimeout {
			return err
		}
	}
	if !h.Ended() && !proc.MayBeDaemon(h.PID) {
		return withMend(types.Errorf(types.ErrConflict, "Shutdown", "", "process %d, which the lock of the data directory names, is no daemon with a warden, and was not killed", h.PID),
			fmt.Sprintf("look what it is (ps -fp %d) and whether the lock file was changed, then end the daemon by hand", h.PID))
	}
	p, err := a.places()
	if err != nil {
		return err
	}
	if err := ipc.WriteStopNote(p.DataDir, "rnix daemon stop --force"); err != nil && !durable.Unwritable(err) {
		return err
	}
	if err := h.Kill(); err != nil {
		return errors.Join(err, ipc.ClearStopNote(p.DataDir))
	}
	if err := awaitStop(ctx, p.DataDir, h.PID, func() {
		a.out.talk("the daemon (pid %d) was killed; what its commands have left is being ended", h.PID)
	}); err != nil {
		return err
	}
	if a.out.json() {
		a.out.object(struct {
			PID    int  `json:"pid"`
			Killed bool `json:"killed"`
		}{h.PID, true})
		return nil
	}
	a.out.talk("the daemon (pid %d) did not answer and was killed; its agents resume when a daemon starts again", h.PID)
	return nil
}

// stopWithin stops the daemon gracefully, if that takes at most forcePatience.
func stopWithin(ctx context.Context, a *app) error {
	ctx, cancel := context.WithTimeout(ctx, forcePatience)
	defer cancel()
	p, err := a.places()
	if err != nil {
		return err
	}
	h, _ := lockHolder(a)
	socket := h.Socket
	if socket == "" {
		socket = p.Socket
	}
	c, err := ipc.Connect(ctx, socket)
	if err != nil {
		return err
	}
	defer c.Close()
	return daemonStop(ctx, c, a.out)
}
