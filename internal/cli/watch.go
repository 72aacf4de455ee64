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
	worksOn   bool      // ... which reached it, and did not end it
	left      bool      // somebody wanted to leave before the end
	away      bool      // ... while no daemon answered
	seen      seenEvents
	later     bool // it is not the first daemon that is asked
	exited    bool // the stream has shown the end
	suspended bool // ... and that it was the daemon's
}

func newWatch(out *output, s ipc.SpawnResponse, req ipc.SpawnRequest) *watch {
	w := &watch{out: out, spawn: s, req: req, view: newView(out, s)}
	if out.format == asStream {
		out.lines = &lineStream{out: out, spawn: &w.spawn, begun: time.Now()}
	}
	return w
}

// began says what was started.
func (w *watch) began(ctx context.Context, c *ipc.Client) {
	for _, text := range w.spawn.Warnings {
		w.out.warn(text)
	}
	confined := ""
	if text := sandboxOf(w.spawn.Sandbox, w.spawn.Net); text != "" {
		confined = "; sandbox: " + text
	}
	w.out.talk("[kernel] spawning PID %d (%s%s)...", w.spawn.PID, modelName(w.spawn.Provider, w.spawn.Model), confined)
	if t := w.spawn.Worktree; t != nil {
		w.out.talk("[kernel] PID %d works in %s, on branch %s, which begins at %s (%s)", w.spawn.PID, oneLine(t.Dir), oneLine(t.Branch), oneLine(t.BaseName), short(t.Base))
	}
	w.streams(ctx, c)
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
		w.out.lines.end(w.out.lines.resultOf(w.out.lines.leftAt(), "detached", nil))
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
	e      ipc.Event
	raw    []byte // for stream-json
	missed *ipc.Missed
	edits  []ipc.StepCall // of a step that has ended, the calls that have edited files
	old    bool           // of a daemon before the one that sends it
	err    error          // the last one
}

// waited is how the call of wait ended.
type waited struct {
	r   ipc.WaitResponse
	err error
}

// passed is how the call of a signal ended.
type passed struct {
	r   ipc.SignalResponse
	err error
}

// drainTime is how long the next event of a process that has ended is still waited for.
const drainTime = time.Second

// follow shows the events of the process and returns when it has ended, or when somebody wants to
// leave. by is a signal that came while the process was being started. A daemon that goes away is waited for, and the process followed on.
func (w *watch) follow(ctx context.Context, fl *follower, sigs <-chan os.Signal, by os.Signal) error {
	for {
		end, err := w.round(ctx, fl, sigs, by)
		if end == nil {
			return err
		}
		if away := end.err != nil && gone(end.err) || (w.suspended || end.err == nil && stopped(&end.r)) && fl.left(ctx); !away {
			return w.finish(ctx, fl.client, end)
		}
		sig, err := fl.backOr(ctx, sigs)
		if err != nil {
			w.view.left() // how it ends is not seen here
		}
		switch {
		case sig != nil:
			w.away = true
			return w.quit(sig)
		case err != nil && !stayed(err):
			w.out.talk("[kernel] when a daemon runs again, the process is found with: rnix wait %s", w.spawn.UUID)
			return err
		case err != nil:
			return showSuspended(w.out, w.spawn.PID, w.spawn.UUID, end, "")
		}
		by, w.later, w.exited, w.suspended = w.asked, true, false, false // what was asked of the process may not have reached it
		if w.worksOn {
			by = nil // it has, and a second one would end what was told of it
		}
	}
}

// round is follow for one daemon: it returns how the process ended there, or nil if somebody wants to leave.
func (w *watch) round(ctx context.Context, fl *follower, sigs <-chan os.Signal, by os.Signal) (*waited, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := fl.client
	asks := newPrompter(ctx, c, fl.app, w)
	frames := w.read(ctx, c)
	ended := make(chan waited, 1)
	// Owned by this call, which cancels it. It does not depend on the stream, which may break.
	go func() {
		r, err := ipc.Call(ctx, c, ipc.Wait, ipc.WaitRequest{Target: w.spawn.UUID.String()})
		ended <- waited{r, err}
	}()
	answers := make(chan passed, 1)
	w.out.startStatus(w.view.status)
	defer w.out.live.end()
	tick := time.NewTicker(statusEvery)
	defer tick.Stop()
	if by != nil {
		w.ask(ctx, c, by, answers)
	}
	asks.resume(ctx, w.spawn.UUID) // what was asked before the events that are seen here
	var end *waited
	var enough <-chan time.Time
	for {
		if end != nil && (w.exited || frames == nil) {
			return end, nil
		}
		select {
		case f := <-frames:
			if f.err != nil {
				w.lost(f.err)
				frames = nil
				continue
			}
			if w.show(&f); f.missed != nil {
				asks.resume(ctx, w.spawn.UUID) // some may be among what was missed
			}
			asks.event(ctx, &f.e)
			if n := w.ripe(&f.e); n > 0 {
				w.spoken(ctx, c, n, spokenPatience)
			}
			if end != nil {
				enough = time.After(drainTime) // from here on: what was shown may have taken its time
			}
		case line := <-asks.typed():
			asks.answer(ctx, line)
		case e := <-ended:
			end, enough = &e, time.After(drainTime)
		case <-enough:
			return end, nil
		case sig := <-sigs:
			if w.asked != nil || sig == syscall.SIGHUP {
				return nil, w.quit(sig)
			}
			w.ask(ctx, c, sig, answers)
		case a := <-answers:
			w.answered(&a.r)
			if err := a.err; err != nil && types.CodeOf(err) != types.ErrNotFound && !gone(err) {
				w.out.warn("the agent could not be asked to stop: " + err.Error())
			}
			if w.asked == syscall.SIGTERM && !gone(a.err) {
				return nil, w.quit(w.asked)
			}
		case <-tick.C:
			w.out.live.tick()
		}
	}
}

// read opens the stream and returns its frames; the last one has an error.
func (w *watch) read(ctx context.Context, c *ipc.Client) <-chan frame {
	frames := make(chan frame)
	req := ipc.EventsRequest{Target: w.spawn.UUID.String(), From: w.spawn.Seq + 1, Tree: true, Follow: true, UntilEnd: true, Kinds: w.view.kinds(), Speech: speaks(w.out) || w.partial()}
	if w.later {
		req = w.seen.rest(req)
	}
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
		var edits editReader
		for {
			f, err := feed.Next()
			next := frame{e: f.Data, raw: bytes.Clone(f.Raw), missed: f.Missed, old: f.Seq == 0}
			if err == nil && w.out.talks() {
				next.edits = edits.of(ctx, c, &f.Data)
			}
			if err != nil || !send(next) {
				send(frame{err: err})
				return
			}
		}
	}()
	return frames
}

func (w *watch) show(f *frame) {
	if f.missed == nil {
		if !w.seen.take(&f.e) {
			return
		}
		w.renumber(&f.e)
	}
	if w.out.format == asStream {
		w.streamLine(f)
	}
	if f.missed != nil {
		w.out.talk("[kernel] events %d to %d came too fast and are not shown; rnix strace %d has them", f.missed.From, f.missed.To, w.spawn.PID)
		return
	}
	if f.e.Kind == event.Exited && f.e.UUID == w.spawn.UUID && !f.old {
		w.exited, w.suspended = true, f.e.Exit == nil
	}
	w.view.event(&f.e)
	w.view.edited(&f.e, f.edits)
}

// renumber notes the PID that the process has from an event on: each daemon gives it another one.
func (w *watch) renumber(e *ipc.Event) {
	if e.UUID != w.spawn.UUID || e.PID == 0 || e.PID == w.spawn.PID || !w.later {
		return
	}
	w.out.talk("[kernel] PID %d is PID %d now, and continues", w.spawn.PID, e.PID)
	w.spawn.PID = e.PID
	w.view.renumber(e.PID)
}

// lost takes note of the end of the stream. How the process ended, wait says.
func (w *watch) lost(err error) {
	if !errors.Is(err, io.EOF) {
		w.out.detail("[kernel] no more events: %v", err)
	}
}

// ask passes a signal on: the agent and its children end before their next action.
func (w *watch) ask(ctx context.Context, c *ipc.Client, by os.Signal, answers chan<- passed) {
	w.asked = by
	w.view.stopping = true
	if by == os.Interrupt {
		w.out.talk("[kernel] asking PID %d to stop before its next action; its record stays. Ctrl+C again leaves at once", w.spawn.PID)
	}
	sig := types.SIGINT
	if by == syscall.SIGTERM {
		sig = types.SIGTERM
	}
	// Owned by follow, whose ctx ends it.
	go func() {
		ctx, cancel := context.WithTimeout(ctx, signalPatience)
		defer cancel()
		r, err := ipc.Call(ctx, c, ipc.SignalTree, ipc.SignalRequest{Target: w.spawn.UUID.String(), Signal: sig})
		answers <- passed{r, err}
	}()
}

// answered says that the agent goes on after our signal, if it does.
func (w *watch) answered(r *ipc.SignalResponse) {
	what := "blocks the signal"
	switch {
	case r.Handled:
		what = "is told of the interrupt (on_interrupt)"
	case !r.Blocked:
		return
	}
	w.worksOn, w.view.stopping = true, false
	w.out.talk("[kernel] PID %d %s and works on; Ctrl+C again leaves it running; end it with: rnix kill -KILL %d", w.spawn.PID, what, w.spawn.PID)
}

// quit leaves the process to itself.
func (w *watch) quit(sig os.Signal) error {
	w.left = true
	w.out.live.end()
	w.view.left()
	pid := w.spawn.PID
	switch {
	case w.away:
		w.out.talk("[kernel] leaving; the process is on disk, and resumes when a daemon starts again; see: rnix wait %s", w.spawn.UUID)
	case w.asked == nil:
		w.out.talk("[kernel] PID %d runs on without this terminal; see: rnix log -f %d", pid, pid)
	default:
		w.out.talk("[kernel] leaving; PID %d was asked to stop (see: rnix ps; end it at once with: rnix kill -KILL %d)", pid, pid)
	}
	code := signalExit(sig)
	switch w.out.format {
	case asText:
		return leave(code)
	case asStream:
		w.out.lines.end(w.out.lines.resultOf(w.out.lines.leftAt(), "interrupted", left(code)))
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
	w.last(ctx, c)
	w.view.end(e.r.Result)
	w.view.left() // what its children have said
	interrupted := w.asked != nil
	switch {
	case e.err == nil && stopped(&e.r):
		return showSuspended(w.out, e.r.PID, w.spawn.UUID, e, whySuspended(ctx, c, w.spawn.UUID))
	case w.suspended:
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
