package ipc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"rnix/runtime/statehome"
	"rnix/types"
)

// EnsureOptions say which daemon is wanted and how to start it.
type EnsureOptions struct {
	Socket      string           // where it listens; absolute
	DataDir     string           // what it serves, passed on as RNIX_DATA_DIR; empty = whatever Env says
	Executable  string           // empty = this program
	Args        []string         // nil = daemon start --foreground
	Env         []string         // its environment; nil = ours
	Log         string           // where its output goes; empty = statehome.LogFile(DataDir), or nowhere if that is empty
	Patience    time.Duration    // how long to wait for a daemon that does not answer; 0 = 2 min
	Offline     bool             // a new one, and all that it starts, has no network, where the system allows that to everybody
	MustOffline bool             // with Offline: rather start none than one that has a network
	Online      func(why error)  // with Offline: if not nil, is told why a new one has the network of this machine
	Progress    func(msg string) // if not nil, is told from the third second on what is being waited for
	Started     func()           // if not nil, is called before Ensure returns a client of a daemon that it has started
}

// How Ensure waits.
const (
	ensurePatience = 2 * time.Minute
	ensurePoll     = 20 * time.Millisecond
	progressAfter  = 2 * time.Second
	progressEvery  = 5 * time.Second
)

// Ensure returns a connected client of the daemon on o.Socket, and starts that daemon if none runs.
// However many clients call it at once, one daemon is started. A daemon that is slow, or stopped by
// SIGSTOP, is waited for; it is never replaced and its socket never touched. The daemon outlives
// its starter: it is in a session of its own, without a terminal and without our open files.
//
// If the new daemon ends at once the error has the code SERVICE_UNAVAILABLE and shows what it wrote;
// if nothing answers in time, TIMEOUT, and the message says who is in the way.
func Ensure(ctx context.Context, o EnsureOptions) (*Client, error) {
	if err := statehome.CheckSocketPath(o.Socket); err != nil { // no daemon listens there, but one may elsewhere
		if c := (&starter{EnsureOptions: o}).elsewhere(ctx); c != nil {
			return c, nil
		}
		return nil, err
	}
	c, err := Connect(ctx, o.Socket)
	if err == nil || !nobodyListens(err) && !justDied(err) {
		return c, err
	}
	if o.Log == "" && o.DataDir != "" {
		o.Log = statehome.LogFile(o.DataDir)
	}
	if o.Patience == 0 {
		o.Patience = ensurePatience
	}
	if err := statehome.CheckPrivateDir(filepath.Dir(o.Socket)); err != nil {
		return nil, err
	}
	o.Log = LogPath(o.Log, o.Socket)
	e := &starter{EnsureOptions: o, began: time.Now()}
	defer e.close()
	return e.run(ctx)
}

// starter is one Ensure that found nobody listening.
type starter struct {
	EnsureOptions
	began time.Time
	told  time.Time // when Progress was called last
	lock  *Lock     // the right to start a daemon, once we have it
	child *launched // the daemon that we started, while it has not failed
	state string    // what is being waited for
}

func (e *starter) close() {
	if e.lock != nil {
		_ = e.lock.Close()
	}
	if e.child != nil {
		e.child.release()
	}
}

// run goes round until somebody answers. Each round first tries to connect, since any other client
// may have started the daemon meanwhile.
func (e *starter) run(ctx context.Context) (*Client, error) {
	patience := time.NewTimer(e.Patience)
	defer patience.Stop()
	tick := time.NewTicker(ensurePoll)
	defer tick.Stop()
	for {
		c, err := Connect(ctx, e.Socket)
		if (err == nil && e.answers(ctx, c)) || err != nil && !nobodyListens(err) && !justDied(err) {
			if err == nil && e.child != nil && e.Started != nil {
				e.Started()
			}
			return c, err
		}
		if c := e.elsewhere(ctx); c != nil {
			return c, nil
		}
		again, err := e.advance()
		if err != nil {
			return nil, err
		}
		if again {
			continue
		}
		e.tell()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, broken(ctx, "Ensure", e.Socket, ctx.Err())
		case <-patience.C:
			return nil, types.Errorf(types.ErrTimeout, "Ensure", e.Socket, "after %s still %s%s", e.Patience, e.state, e.seeLog())
		}
	}
}

// answers reports whether a daemon to which there is a connection can be used: one that we have just started may listen and
// end before it answers, and then it is to be told why.
func (e *starter) answers(ctx context.Context, c *Client) bool {
	if e.child == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, e.Patience)
	defer cancel()
	_, err := Call(ctx, c, Ping, Empty{})
	if code := types.CodeOf(err); code != types.ErrUnavailable && code != types.ErrDisconnected {
		return true // what is wrong shows again in the call for which the client is wanted
	}
	_ = c.Close()
	return false
}

// advance does the next thing towards a running daemon, and reports whether to look again at once.
func (e *starter) advance() (again bool, err error) {
	if e.child != nil {
		how, ended := e.child.ended()
		if !ended {
			e.state = fmt.Sprintf("waiting for the daemon, which starts as pid %d", e.child.pid)
			return false, nil
		}
		child := e.child
		e.child = nil
		child.release()
		if _, held, _ := LockHolder(daemonLock(e.Socket)); !held {
			// It may have been the one that listened, was connected to by others, and is gone
			// again; whoever wants it now starts anew.
			if f, ok := ReadStartFailure(e.DataDir); ok && e.DataDir != "" && !f.Time.Before(e.began) { // it says so itself, in fewer words than its log
				return false, types.Errorf(types.ErrUnavailable, "Ensure", e.Socket, "the daemon (pid %d) ended before it listened: %s%s", child.pid, f.Text, e.seeLog())
			}
			return false, types.Errorf(types.ErrUnavailable, "Ensure", e.Socket, "the daemon (pid %d) ended before it listened: %s%s%s", child.pid, how, e.seeLog(), child.tail())
		}
	}
	if e.lock == nil {
		if e.lock, err = tryLock(startLock(e.Socket)); err != nil {
			return false, err
		}
		e.state = "waiting for another client, which is starting the daemon"
		return e.lock != nil, nil
	}
	holder, held, err := LockHolder(daemonLock(e.Socket))
	if err != nil {
		return false, err
	}
	if held {
		e.state = fmt.Sprintf("waiting for the daemon with pid %d, which runs but does not listen (it is starting, stopping or stopped; if it never answers, end it with: kill %d)", holder.PID, holder.PID)
		return false, nil
	}
	if within() {
		return false, types.Errorf(types.ErrPermission, "Ensure", e.Socket, "no daemon runs here, and one cannot be started inside an agent: its agents would have no parent, no limits and no budget")
	}
	e.state = "starting the daemon"
	e.child, err = launch(e.EnsureOptions)
	return false, err
}

// elsewhere returns a client of the daemon that serves our data directory at another socket than the
// one we thought of, or nil.
func (e *starter) elsewhere(ctx context.Context) *Client {
	if e.DataDir == "" {
		return nil
	}
	holder, held, err := LockHolder(DataLock(e.DataDir))
	if err != nil || !held || holder.Socket == "" || holder.Socket == e.Socket {
		return nil
	}
	if statehome.CheckPrivateDir(filepath.Dir(holder.Socket)) != nil {
		return nil
	}
	c, err := Connect(ctx, holder.Socket)
	if err != nil {
		return nil
	}
	return c
}

func (e *starter) tell() {
	now := time.Now()
	if e.Progress == nil || now.Sub(e.began) < progressAfter || now.Sub(e.told) < progressEvery {
		return
	}
	e.told = now
	e.Progress(fmt.Sprintf("%s (%d s)", e.state, int(now.Sub(e.began).Seconds())))
}

func (e *starter) seeLog() string {
	if e.Log == "" {
		return ""
	}
	if _, err := os.Stat(e.Log); err != nil {
		return ""
	}
	return "; its log is " + e.Log
}

// justDied reports whether a connection was taken and dropped: by a daemon that was killed at that moment,
// whose socket a child of it that was just being started still held.
func justDied(err error) bool { return errors.Is(err, syscall.ECONNRESET) }
