package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"rnix/internal/event"
	"rnix/ipc"
	"rnix/types"
)

// watch stays with one process until it ends. It belongs to the goroutine that runs follow.
type watch struct {
	out   *output
	spawn ipc.SpawnResponse
	req   ipc.SpawnRequest
	view  *view

	asked     os.Signal // the signal of ours that was passed on to the agent; nil = none
	left      bool      // somebody wanted to leave before the end
	exited    bool      // the stream has shown the end
	suspended bool      // ... and that it was the daemon's
}

func newWatch(out *output, s ipc.SpawnResponse, req ipc.SpawnRequest) *watch {
	return &watch{out: out, spawn: s, req: req, view: newView(out, s)}
}

// began says what was started.
func (w *watch) began() {
	for _, text := range w.spawn.Warnings {
		w.out.warn(text)
	}
	w.out.talk("[kernel] spawning PID %d (%s)...", w.spawn.PID, modelName(w.spawn.Provider, w.spawn.Model))
	if t := w.spawn.Worktree; t != nil {
		w.out.talk("[kernel] PID %d works in %s, on branch %s, which begins at %s (%s)", w.spawn.PID, oneLine(t.Dir), oneLine(t.Branch), oneLine(t.BaseName), short(t.Base))
	}
	w.streams()
}

// streams says what a stream is about, and with -v the same for people.
func (w *watch) streams() {
	w.out.detail("[kernel] UUID %s; provider: %s", w.spawn.UUID, oneLine(w.spawn.Why))
	if w.out.format == asStream {
		w.out.object(w.init())
	}
}

// detached is the answer for who does not wait.
func (w *watch) detached() error {
	s := w.spawn
	switch w.out.format {
	case asJSON:
		w.out.object(struct {
			OK   bool     `json:"ok"`
			Data detached `json:"data"`
		}{true, detached{s.PID, s.UUID, s.Name, s.Provider, s.Model, s.Warnings, s.Worktree}})
	case asStream:
		w.out.object(&runResult{Type: "result", Subtype: "detached", OK: true, PID: s.PID, UUID: s.UUID, SessionID: s.UUID})
	default:
		w.out.print(s.PID.String() + "\n")
		w.out.talk("[kernel] PID %d works on its own; see: rnix log -f %d, rnix wait %d", s.PID, s.PID, s.PID)
	}
	return nil
}

type detached struct {
	PID      types.PID  `json:"pid"`
	UUID     types.UUID `json:"uuid"`
	Name     string     `json:"name,omitempty"`
	Provider string     `json:"provider"`
	Model    string     `json:"model"`
	Warnings []string   `json:"warnings,omitempty"`

	Worktree *ipc.Worktree `json:"worktree,omitempty"`
}

// frame is what the reader of the stream hands over.
type frame struct {
	e      event.Event
	raw    []byte // for stream-json
	missed *ipc.Missed
	err    error // the last one
}

// waited is how the call of wait ended.
type waited struct {
	r   ipc.WaitResponse
	err error
}

// drainTime is how long the events of a process that has ended are still waited for.
const drainTime = time.Second

// follow shows the events of the process and returns when it has ended, or when somebody wants to
// leave. by is a signal that came while the process was being started.
func (w *watch) follow(ctx context.Context, c *ipc.Client, sigs <-chan os.Signal, by os.Signal) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	frames := w.read(ctx, c)
	ended := make(chan waited, 1)
	// Owned by this call, which cancels it. It does not depend on the stream, which may break.
	go func() {
		r, err := ipc.Call(ctx, c, ipc.Wait, ipc.WaitRequest{Target: w.spawn.UUID.String()})
		ended <- waited{r, err}
	}()
	passed := make(chan error, 1)
	w.out.startStatus(w.view.status)
	defer w.out.live.end()
	tick := time.NewTicker(statusEvery)
	defer tick.Stop()
	if by != nil {
		w.ask(ctx, c, by, passed)
	}
	var end *waited
	var enough <-chan time.Time
	for {
		if end != nil && (w.exited || frames == nil) {
			return w.finish(ctx, c, end)
		}
		select {
		case f := <-frames:
			if f.err != nil {
				w.lost(f.err)
				frames = nil
				continue
			}
			w.show(&f)
		case e := <-ended:
			end, enough = &e, time.After(drainTime)
		case <-enough:
			return w.finish(ctx, c, end)
		case sig := <-sigs:
			if w.asked != nil || sig == syscall.SIGHUP {
				return w.quit(sig)
			}
			w.ask(ctx, c, sig, passed)
		case err := <-passed:
			if err != nil && types.CodeOf(err) != types.ErrNotFound {
				w.out.warn("the agent could not be asked to stop: " + err.Error())
			}
			if w.asked == syscall.SIGTERM {
				return w.quit(w.asked)
			}
		case <-tick.C:
			w.out.live.tick()
		}
	}
}

// read opens the stream and returns its frames; the last one has an error.
func (w *watch) read(ctx context.Context, c *ipc.Client) <-chan frame {
	frames := make(chan frame)
	req := ipc.EventsRequest{Target: w.spawn.UUID.String(), From: w.spawn.Seq + 1, Tree: true, Follow: true, UntilEnd: true, Kinds: w.view.kinds()}
	send := func(f frame) bool {
		select {
		case frames <- f:
			return true
		case <-ctx.Done():
			return false
		}
	}
	// Owned by follow; ends with ctx or with the stream.
	go func() {
		feed, err := ipc.Open(ctx, c, ipc.Events, req)
		if err != nil {
			send(frame{err: err})
			return
		}
		defer feed.Close()
		for {
			f, err := feed.Next()
			if err != nil || !send(frame{e: f.Data, raw: bytes.Clone(f.Raw), missed: f.Missed}) {
				send(frame{err: err})
				return
			}
		}
	}()
	return frames
}

func (w *watch) show(f *frame) {
	if w.out.format == asStream {
		w.streamLine(f)
	}
	if f.missed != nil {
		w.out.talk("[kernel] events %d to %d came too fast and are not shown; rnix strace %d has them", f.missed.From, f.missed.To, w.spawn.PID)
		return
	}
	if f.e.Kind == event.Exited && f.e.UUID == w.spawn.UUID {
		w.exited, w.suspended = true, f.e.Exit == nil
	}
	w.view.event(&f.e)
}

// lost takes note of the end of the stream. How the process ended, wait says.
func (w *watch) lost(err error) {
	if !errors.Is(err, io.EOF) {
		w.out.detail("[kernel] no more events: %v", err)
	}
}

// ask passes a signal on: the agent and its children end before their next action.
func (w *watch) ask(ctx context.Context, c *ipc.Client, by os.Signal, passed chan<- error) {
	w.asked = by
	w.view.stopping = true
	if by == os.Interrupt {
		w.out.talk("[kernel] stopping PID %d before its next action; its record stays. Ctrl+C again leaves at once", w.spawn.PID)
	}
	sig := types.SIGINT
	if by == syscall.SIGTERM {
		sig = types.SIGTERM
	}
	// Owned by follow, whose ctx ends it.
	go func() {
		ctx, cancel := context.WithTimeout(ctx, signalPatience)
		defer cancel()
		_, err := ipc.Call(ctx, c, ipc.SignalTree, ipc.SignalRequest{Target: w.spawn.UUID.String(), Signal: sig})
		passed <- err
	}()
}

// quit leaves the process to itself.
func (w *watch) quit(sig os.Signal) error {
	w.left = true
	w.out.live.end()
	pid := w.spawn.PID
	switch {
	case w.asked == nil:
		w.out.talk("[kernel] PID %d goes on without this terminal; see: rnix log -f %d", pid, pid)
	default:
		w.out.talk("[kernel] leaving; PID %d was asked to stop (see: rnix ps; end it at once with: rnix kill -KILL %d)", pid, pid)
	}
	code := signalExit(sig)
	switch w.out.format {
	case asText:
		return leave(code)
	case asStream:
		w.out.object(w.result(&ipc.WaitResponse{PID: pid, UUID: w.spawn.UUID}, "interrupted", left(code)))
		return leave(code)
	}
	return &exitError{code, left(code)}
}

func left(code int) error {
	return types.Errorf(types.ErrCancelled, "Wait", "", "the client left before the agent had ended (exit code %d)", code)
}

// finish shows how the process ended and returns the exit code for that.
func (w *watch) finish(ctx context.Context, c *ipc.Client, e *waited) error {
	w.out.live.end()
	interrupted := w.asked != nil
	switch {
	case w.suspended || e.err == nil && stopped(&e.r), e.err != nil && gone(e.err):
		return showSuspended(w.out, w.spawn.PID, w.spawn.UUID, e, "")
	case e.err != nil:
		return e.err
	case e.r.Suspended:
		return showParked(ctx, c, w.out, &e.r, w.spawn.Warnings)
	}
	tree := w.tree(ctx, c)
	err := showEnd(w.out, &e.r, tree, w.spawn.Warnings, interrupted)
	showTree(w.out, tree)
	return err
}

// gone reports whether an error means that the daemon has stopped.
func gone(err error) bool {
	switch types.CodeOf(err) {
	case types.ErrDisconnected, types.ErrUnavailable:
		return true
	}
	return false
}
