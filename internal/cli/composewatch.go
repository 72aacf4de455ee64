package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"rnix/internal/event"
	"rnix/internal/price"
	"rnix/ipc"
	"rnix/types"
)

// runWatch stays with a run of a workflow until it ends. It belongs to the goroutine that runs follow.
type runWatch struct {
	out         *output
	run         ipc.ComposeUpResponse
	onInterrupt string
	board       *board // nil where no terminal can show it
	asked       os.Signal
	said        map[string]string // by node, its last state in lines
	seen        seenEvents
	later       bool // it is not the first daemon that is asked
}

func newRunWatch(out *output, r ipc.ComposeUpResponse, onInterrupt string) *runWatch {
	return &runWatch{out: out, run: r, onInterrupt: onInterrupt, board: newBoard(out), said: map[string]string{}}
}

// composeInit is the first line of --json.
type composeInit struct {
	Type string `json:"type"` // init
	ipc.ComposeUpResponse
}

// composeChange is a line of --json about a node.
type composeChange struct {
	Type    string    `json:"type"` // node
	Time    time.Time `json:"time"`
	Name    string    `json:"name"`
	State   string    `json:"state"`
	Attempt int       `json:"attempt,omitempty"`
	UUID    string    `json:"uuid,omitempty"` // of the attempt
	Items   int       `json:"items,omitempty"`
	Why     string    `json:"why,omitempty"`
}

// composeResult is the last line of --json.
type composeResult struct {
	Type  string           `json:"type"` // result
	OK    bool             `json:"ok"`
	Error *types.WireError `json:"error,omitempty"`
	Mend  string           `json:"mend,omitempty"`
	Run   *ipc.ComposeRun  `json:"run,omitempty"`
}

// began says what was started.
func (w *runWatch) began() {
	for _, text := range w.run.Warnings {
		w.out.warn(text)
	}
	if w.out.json() {
		w.out.object(composeInit{"init", w.run})
		return
	}
	for _, text := range w.run.Notes {
		w.out.talk("[compose] note: %s", text)
	}
	again := ""
	if len(w.run.Redo) > 0 {
		again = "; it does again: " + strings.Join(w.run.Redo, ", ")
	}
	w.out.talk("[compose] run %s is PID %d, with %s%s", oneLine(w.run.Name), w.run.PID, plural(w.run.Nodes, "node", "nodes"), oneLine(again))
}

// detached is the answer for who does not wait.
func (w *runWatch) detached() error {
	if !w.out.json() {
		w.out.print(w.run.PID.String() + "\n")
		w.out.talk("[compose] it works on its own; see: rnix compose ps %d, rnix compose logs -f %d", w.run.PID, w.run.PID)
	}
	return nil
}

// lookEvery is how often the board of a terminal is drawn anew.
const lookEvery = 250 * time.Millisecond

// follow shows what the nodes do and returns when the run has ended, or somebody wants to leave. by is a
// signal that came while it was being started. A daemon that goes away is waited for, and the run followed on.
func (w *runWatch) follow(ctx context.Context, fl *follower, sigs <-chan os.Signal, by os.Signal) error {
	for {
		end, err := w.round(ctx, fl.client, sigs, by)
		if end == nil {
			return err
		}
		if away := end.err != nil && gone(end.err) || end.err == nil && stopped(&end.r) && fl.left(ctx); !away {
			return w.finish(ctx, fl.client, end)
		}
		sig, err := fl.backOr(ctx, sigs)
		switch {
		case sig != nil:
			w.out.talk("[compose] leaving; the run is on disk, and resumes when a daemon starts again; see: rnix compose ps %s", w.run.UUID)
			return leave(signalExit(sig))
		case err != nil && !stayed(err):
			return err
		case err != nil:
			return w.finish(ctx, fl.client, end)
		}
		by, w.later = w.asked, true // what was asked of the run may not have reached it
		if p, err := ipc.Call(ctx, fl.client, ipc.GetProcDetail, ipc.TargetRequest{Target: w.run.UUID.String()}); err == nil {
			w.run.PID = p.PID
		}
	}
}

// round is follow for one daemon: it returns how the run ended there, or nil if somebody wants to leave.
func (w *runWatch) round(ctx context.Context, c *ipc.Client, sigs <-chan os.Signal, by os.Signal) (*waited, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes := w.read(ctx, c)
	ended := make(chan waited, 1)
	go func() { // owned by this call, which cancels it
		r, err := ipc.Call(ctx, c, ipc.Wait, ipc.WaitRequest{Target: w.run.UUID.String()})
		ended <- waited{r, err}
	}()
	halted := make(chan error, 1)
	if by != nil {
		w.halt(ctx, c, by, halted)
	}
	var tick <-chan time.Time
	if w.board != nil {
		t := time.NewTicker(lookEvery)
		defer t.Stop()
		tick = t.C
		w.look(ctx, c)
		defer w.board.clear()
	}
	for {
		select {
		case e, more := <-changes:
			if !more {
				changes = nil
				continue
			}
			w.change(&e)
		case <-tick:
			w.look(ctx, c)
		case sig := <-sigs:
			if w.asked != nil || sig == syscall.SIGHUP {
				return nil, w.quit(sig)
			}
			w.halt(ctx, c, sig, halted)
		case err := <-halted:
			if gone(err) {
				continue // it is asked again of the next daemon
			}
			if err != nil {
				return nil, err
			}
			if w.onInterrupt == interruptPause {
				return nil, w.paused(ctx, c)
			}
		case e := <-ended:
			w.drain(changes)
			return &e, nil
		}
	}
}

// drain shows the changes that are still to come when the run has ended.
func (w *runWatch) drain(changes <-chan ipc.Event) {
	late := time.After(drainTime)
	for changes != nil {
		select {
		case ch, more := <-changes:
			if !more {
				return
			}
			w.change(&ch)
		case <-late:
			return
		}
	}
}

// read reads the changes of nodes. The channel is closed when there are no more.
func (w *runWatch) read(ctx context.Context, c *ipc.Client) <-chan ipc.Event {
	changes := make(chan ipc.Event)
	req := ipc.EventsRequest{Target: w.run.UUID.String(), From: w.run.Seq + 1, Follow: true, UntilEnd: true,
		Kinds: []event.Kind{event.NodeChanged, event.Exited, event.Reaped}}
	if w.later {
		req = w.seen.rest(req)
	}
	go func() { // ends with ctx, or with the run
		defer close(changes)
		feed, err := ipc.Open(ctx, c, ipc.Events, req)
		if err != nil {
			return
		}
		defer feed.Close()
		for f, err := range feed.All() {
			if err != nil {
				return
			}
			if f.Missed != nil || f.Data.Kind != event.NodeChanged {
				continue
			}
			select {
			case changes <- f.Data:
			case <-ctx.Done():
				return
			}
		}
	}()
	return changes
}

// change tells of a change of a node: as an object, or as a line where no board does.
func (w *runWatch) change(e *ipc.Event) {
	if !w.seen.take(e) {
		return
	}
	if w.out.json() {
		w.out.object(composeChange{"node", e.Time, e.Name, e.Result, e.Step, e.Args, e.Total, e.Text})
		return
	}
	if w.board != nil {
		return
	}
	line := fmt.Sprintf("%s %s", oneLine(e.Name), e.Result)
	if e.Result == "expanded" {
		line = fmt.Sprintf("%s has %s", oneLine(e.Name), plural(e.Total, "item", "items"))
	}
	if e.Step > 1 {
		line += fmt.Sprintf(" (attempt %d)", e.Step)
	}
	if e.Text != "" {
		line += ": " + cut(oneLine(e.Text), 200)
	}
	if w.said[e.Name] != line {
		w.said[e.Name] = line
		w.out.talk("[compose] %s", line)
	}
}

// look asks what the nodes do and draws it.
func (w *runWatch) look(ctx context.Context, c *ipc.Client) {
	r, err := ipc.Call(ctx, c, ipc.ComposeStatus, ipc.TargetRequest{Target: w.run.UUID.String()})
	if err == nil && ctx.Err() == nil {
		w.board.draw(&r)
	}
}

// halt ends the run, or pauses it.
func (w *runWatch) halt(ctx context.Context, c *ipc.Client, by os.Signal, halted chan<- error) {
	w.asked = by
	pause := w.onInterrupt == interruptPause
	w.board.clear()
	if pause {
		w.out.talk("[compose] pausing all nodes; Ctrl+C again leaves at once")
	} else {
		w.out.talk("[compose] ending all nodes before their next action; what they did stays. Ctrl+C again leaves at once")
	}
	go func() { // owned by follow, whose ctx ends it
		_, err := ipc.Call(ctx, c, ipc.ComposeDown, ipc.ComposeDownRequest{Target: w.run.UUID.String(), Pause: pause})
		halted <- err
	}()
}

func (w *runWatch) goesOn() string { return fmt.Sprintf("rnix compose resume %d", w.run.PID) }

// paused is the end of the watching of a run that was paused.
func (w *runWatch) paused(ctx context.Context, c *ipc.Client) error {
	w.board.clear()
	code := signalExit(w.asked)
	if w.out.json() {
		r, err := ipc.Call(ctx, c, ipc.ComposeStatus, ipc.TargetRequest{Target: w.run.UUID.String()})
		if err != nil {
			return err
		}
		w.out.object(composeResult{Type: "result", Mend: w.goesOn(), Run: &r,
			Error: types.ToWire(types.Errorf(types.ErrCancelled, "Compose", w.run.Name, "it was paused (exit code %d)", code))})
		return leave(code)
	}
	w.out.talk("[compose] the run is paused, and so are all its nodes; resume it with: %s", w.goesOn())
	return leave(code)
}

// quit leaves the run to itself.
func (w *runWatch) quit(sig os.Signal) error {
	w.board.clear()
	if w.asked == nil {
		w.out.talk("[compose] run %s runs on without this terminal; see: rnix compose ps %d", w.run.Name, w.run.PID)
	} else {
		w.out.talk("[compose] leaving; the run was asked to stop (see: rnix compose ps %d)", w.run.PID)
	}
	return leave(signalExit(sig))
}

// finish shows what the run has come to, and returns the exit code for that.
func (w *runWatch) finish(ctx context.Context, c *ipc.Client, e *waited) error {
	w.board.clear()
	if e.err != nil {
		if gone(e.err) {
			return w.abandoned()
		}
		return e.err
	}
	r, err := ipc.Call(ctx, c, ipc.ComposeStatus, ipc.TargetRequest{Target: w.run.UUID.String()})
	if err != nil {
		if gone(err) {
			return w.abandoned()
		}
		return err
	}
	return showRunEnd(w.out, &r, &e.r, w.asked)
}

// abandoned is the end of the watching of a run whose daemon has gone away and not come back.
func (w *runWatch) abandoned() error {
	text := "the daemon went away"
	if w.asked != nil && w.onInterrupt != interruptPause {
		text += "; it may not have heard that the run is to end"
	}
	mend := fmt.Sprintf("rnix compose resume %s", w.run.UUID)
	if w.out.json() {
		w.out.object(composeResult{Type: "result", Mend: mend, Error: types.ToWire(types.Errorf(types.ErrUnavailable, "Compose", w.run.Name, "%s; the run is resumed when it runs again", text))})
		return leave(ExitSuspended)
	}
	w.out.talk("[compose] %s; the run is resumed when it runs again, or with: %s", text, mend)
	return leave(ExitSuspended)
}

// showRunEnd shows a run that has ended or was suspended.
func showRunEnd(out *output, r *ipc.ComposeRun, e *ipc.WaitResponse, asked os.Signal) error {
	out.unfinished = e.Suspended
	code, mend := ExitSuspended, ""
	goesOn := runMend(r)
	err := endError(e.Exit)
	switch {
	case e.Suspended:
		if e.Exit.Code != types.ExitOK {
			code = processExit(e.Exit)
		}
		mend = "resume it with: " + goesOn
		if !r.WaitUntil.IsZero() {
			mend = "it is resumed at " + r.WaitUntil.Local().Format("15:04 on 2 Jan") + ", or at once with: " + goesOn
		}
		if err == nil {
			err = types.Errorf(types.ErrUnavailable, "Compose", r.Name, "suspended: %s", r.Wait)
		}
	default:
		if code = processExit(e.Exit); asked != nil && code != ExitOK {
			code = signalExit(asked)
		}
		if code != ExitOK {
			mend = "do again what failed, and nothing else, with: " + goesOn
		}
		if e.Exit.Code == types.ExitCancelled {
			mend = "resume it where it stopped with: " + goesOn
		}
	}
	if out.json() {
		out.object(composeResult{Type: "result", OK: code == ExitOK, Error: types.ToWire(err), Mend: mend, Run: r})
		return leave(code)
	}
	if out.talks() {
		newBoardOn(out).print(r)
	}
	out.result(r.Result)
	head := "[compose] run " + oneLine(r.Name) + " "
	state, st := "", green
	switch {
	case e.Suspended:
		state, st = "is suspended: "+oneLine(r.Wait), yellow
	case e.Exit.Code == types.ExitOK:
		state = "has succeeded"
	default:
		state, st = "has failed: "+oneLine(e.Exit.Reason), red
		if e.Exit.Code == types.ExitCancelled {
			state = "was ended: " + oneLine(e.Exit.Reason)
		}
	}
	if out.talks() || code != ExitOK {
		out.say(strings.Join([]string{head + out.err.paint(st, state), tokens(r.TokensUsed, false) + " tokens" + price.Behind(r.CostUSD, r.TokensUsed, r.Unpriced), duration(r.ElapsedMs)}, " | "))
	}
	if mend != "" {
		out.say("  " + mend)
	} else if code == ExitOK && out.talks() && slices.ContainsFunc(r.Nodes, func(n ipc.ComposeNode) bool { return n.Branch != "" }) {
		out.say(fmt.Sprintf("  see what it would bring into your branch with: rnix compose merge %d --preview", r.PID))
	}
	return leave(code)
}
