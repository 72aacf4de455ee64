package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"rnix/ipc"
	"rnix/runtime/statehome"
	"rnix/types"
)

// EnvDaemonWait is the variable that says how long commands which follow a process wait for a daemon that was stopped.
const EnvDaemonWait = "RNIX_DAEMON_WAIT"

const (
	defaultDaemonWait = 30 * time.Second
	awayPause         = 50 * time.Millisecond // between the first two looks; it doubles
	awayPauseMax      = time.Second
	maxAwayStarts     = 3 // how many daemons a command starts in turn that end before they answer
)

// absence is what is known while no daemon answers.
type absence struct {
	data    bool          // the data directory is there, with what a daemon has made in it
	stopped bool          // the last daemon was stopped, and did not crash
	waited  time.Duration // so far
	limit   time.Duration // how long one that was stopped is waited for; 0 = no daemon is waited for at all
}

// awayMove is what a command does while no daemon answers.
type awayMove string

const (
	awayStart awayMove = "start" // a daemon, as the command did at its beginning
	awayWait  awayMove = "wait"  // for the one that a person starts
	awayEnd   awayMove = "end"   // of the command
)

// next decides. A daemon that has crashed is started again. One that a person has stopped is not, nor is one made for a data directory that
// is gone: what the command follows would not be in a new one.
func (a *absence) next() awayMove {
	switch {
	case a.limit <= 0:
		return awayEnd
	case a.data && !a.stopped:
		return awayStart
	case a.waited >= a.limit:
		return awayEnd
	}
	return awayWait
}

// staysAway is the end of the waiting for a daemon.
type staysAway struct{ error }

func (s *staysAway) Unwrap() error { return s.error }

// stayed reports whether an error means that no daemon has come.
func stayed(err error) bool { return errors.As(err, new(*staysAway)) }

// follower is the connection of a command that follows processes. When the daemon goes away it finds the next one, in which the processes
// have the same UUIDs. It is for one goroutine at a time.
type follower struct {
	app    *app
	client *ipc.Client
	daemon int // the pid of the one that client talks to; 0 = not known
	limit  time.Duration
	places statehome.Places
	bye    bool // the daemon has said that it stops
}

// connectFollower connects for a command that follows processes, and starts the daemon if none runs.
func connectFollower(ctx context.Context, a *app) (*follower, error) {
	if _, err := daemonWait(a.getenv(EnvDaemonWait)); err != nil {
		return nil, err // before anything is started
	}
	c, err := a.connect(ctx)
	if err != nil {
		return nil, err
	}
	return following(a, c)
}

// following makes a connection one that finds the next daemon.
func following(a *app, c *ipc.Client) (*follower, error) {
	limit, err := daemonWait(a.getenv(EnvDaemonWait))
	if err != nil {
		return nil, err
	}
	p, err := a.places()
	return &follower{app: a, client: c, daemon: a.daemon, limit: limit, places: p}, err
}

// daemonWait reads EnvDaemonWait: a time, or a number of seconds.
func daemonWait(text string) (time.Duration, error) {
	if text == "" {
		return defaultDaemonWait, nil
	}
	d, err := time.ParseDuration(text)
	if n, nerr := strconv.Atoi(text); nerr == nil && n < 1<<31 {
		d, err = time.Duration(n)*time.Second, nil
	}
	if err != nil || d < 0 {
		return 0, usagef("", "invalid %s %q: want a time such as 30s, or 0 to wait for no daemon", EnvDaemonWait, cut(oneLine(text), 40))
	}
	return d, nil
}

// left reports whether the daemon has gone, stops, or is another one by now.
func (f *follower) left(ctx context.Context) bool {
	pctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	p, err := ipc.Call(pctx, f.client, ipc.Ping, ipc.Empty{})
	if err != nil {
		return gone(err) && ctx.Err() == nil
	}
	f.bye = f.bye || p.Stopping
	return p.Stopping || f.daemon != 0 && p.PID != f.daemon
}

// absence looks what there is of a daemon, and says who has stopped it.
func (f *follower) absence(since time.Time) (a absence, by string) {
	a = absence{stopped: f.bye, waited: time.Since(since), limit: f.limit}
	// Not the directory alone: where a disk was mounted, an empty one is left.
	if _, err := os.Stat(ipc.DataLock(f.places.DataDir)); err == nil {
		a.data = true
	}
	if n, ok := ipc.ReadStopNote(f.places.DataDir); ok {
		a.stopped, by = true, oneLine(n.By)
	}
	return a, by
}

// back returns when a daemon answers again, which client talks to then. It says once what it waits for. staysAway is its error when none
// has come.
func (f *follower) back(ctx context.Context) error {
	if f.limit <= 0 {
		return &staysAway{types.Errorf(types.ErrUnavailable, "Connect", f.places.Socket, "the daemon went away")}
	}
	_ = f.client.Close()
	since, told, starts := time.Now(), awayMove(""), 0
	for wait := awayPause; ; wait = min(2*wait, awayPauseMax) {
		a, by := f.absence(since)
		move := a.next()
		if c := f.running(ctx); c != nil { // whoever has started it
			f.found(c)
			return nil
		}
		if move != told {
			f.tell(move, &a, by)
			told = move
		}
		switch move {
		case awayEnd:
			return f.gaveUp(&a, by)
		case awayStart:
			f.app.client = nil
			c, err := f.app.connect(ctx)
			starts++
			switch code := types.CodeOf(err); {
			case err == nil:
				f.found(c)
				return nil
			case code == types.ErrPermission: // inside an agent, where no daemon can be started
				f.bye = true
			case starts == maxAwayStarts || code != types.ErrUnavailable && code != types.ErrDisconnected:
				return err
			}
		}
		if err := pause(ctx, wait); err != nil {
			return types.Errorf(types.ErrCancelled, "Connect", "", "%w", err)
		}
	}
}

// running returns a client of a daemon that runs and does not stop, or nil.
func (f *follower) running(ctx context.Context) *ipc.Client {
	f.app.client = nil
	c, err := f.app.find(ctx)
	if err != nil || c == nil {
		return nil // it starts, stops, or is not there: all of them pass
	}
	pctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	p, err := ipc.Call(pctx, c, ipc.Ping, ipc.Empty{})
	if err != nil || p.Stopping {
		f.bye = f.bye || err == nil
		_ = c.Close()
		return nil
	}
	f.app.daemon = p.PID
	return c
}

// found takes over a connection.
func (f *follower) found(c *ipc.Client) {
	f.client, f.daemon, f.bye = c, f.app.daemon, false
	f.say("the daemon is back (pid %d)", f.daemon)
}

// say tells a person who waits; it is no part of any answer.
func (f *follower) say(format string, args ...any) {
	if !f.app.out.quiet {
		f.app.out.say("[kernel] " + fmt.Sprintf(format, args...))
	}
}

// tell says what is waited for.
func (f *follower) tell(move awayMove, a *absence, by string) {
	switch {
	case move == awayStart:
		f.say("the daemon ended without warning; starting it again (Ctrl+C leaves the process as it is)")
	case move == awayWait:
		f.say("%s; waiting up to %s for it to come back (Ctrl+C leaves the process as it is)", awayText(a, by, f.places.DataDir), f.limit)
	}
}

// awayText says why there is no daemon.
func awayText(a *absence, by, data string) string {
	switch {
	case !a.data:
		return "the data directory " + data + " is gone, and the daemon with it"
	case by != "":
		return "the daemon was stopped by " + by
	case a.stopped:
		return "the daemon was stopped"
	}
	return "the daemon ended without warning"
}

// gaveUp is the error of a command for which no daemon has come. Without the data it is not known how the processes stand.
func (f *follower) gaveUp(a *absence, by string) error {
	err := unreachable(types.Errorf(types.ErrUnavailable, "Connect", "", "%s, and did not come back within %s", awayText(a, by, f.places.DataDir), f.limit))
	if !a.data {
		return withMend(err, "move it back, then start the daemon: rnix daemon start")
	}
	return &staysAway{withMend(err, "start it with: rnix daemon start")}
}

// backOr is back for a command that handles signals itself: a signal ends the waiting, and is returned.
func (f *follower) backOr(ctx context.Context, sigs <-chan os.Signal) (os.Signal, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- f.back(ctx) }() // ends with ctx, and is waited for
	select {
	case err := <-done:
		return nil, err
	case sig := <-sigs:
		cancel()
		<-done
		return sig, nil
	}
}

// followed is a process that a command follows.
type followed struct {
	name string // as it was given; the UUID as soon as that is known
	pid  types.PID
	uuid types.UUID
	said map[string]bool // asks of which was told, by their numbers; owned by sayAsks
}

// identify finds the UUIDs of processes: a PID may be another one's when the daemon has gone and come back. What cannot be found stays
// as it is named; the call that it is for says why.
func (f *follower) identify(ctx context.Context, names []string) []followed {
	out := make([]followed, len(names))
	for i, name := range names {
		out[i].name = name
		if p, err := ipc.Call(ctx, f.client, ipc.GetProcDetail, ipc.TargetRequest{Target: name}); err == nil && p.UUID != (types.UUID{}) {
			out[i] = followed{name: p.UUID.String(), pid: p.PID, uuid: p.UUID}
		}
	}
	return out
}

// wait waits until a process has ended, whichever daemon it has, or is suspended. A zero until is no limit.
func (f *follower) wait(ctx context.Context, p *followed, until time.Time) (ipc.WaitResponse, error) {
	if !until.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, until.Add(pingTimeout)) // the daemon says when it is over
		defer cancel()
	}
	for {
		req := ipc.WaitRequest{Target: p.name}
		if !until.IsZero() {
			req.TimeoutMs = max(time.Until(until).Milliseconds(), 1)
		}
		silent := f.sayAsks(ctx, p)
		r, err := ipc.Call(ctx, f.client, ipc.Wait, req)
		silent()
		if away := err != nil && gone(err) || err == nil && stopped(&r) && f.left(ctx); !away {
			return r, err
		}
		bctx, cancel := ctx, context.CancelFunc(func() {})
		if !until.IsZero() {
			bctx, cancel = context.WithDeadline(ctx, until)
		}
		berr := f.back(bctx)
		over := errors.Is(bctx.Err(), context.DeadlineExceeded)
		cancel()
		switch {
		case berr == nil:
			continue
		case over:
			return r, types.Errorf(types.ErrTimeout, "Wait", p.name, "no daemon has come back")
		case err == nil && stayed(berr): // suspended, which is what there is to say
			return r, nil
		case stayed(berr) && f.limit <= 0:
			return r, err
		}
		return r, berr
	}
}
