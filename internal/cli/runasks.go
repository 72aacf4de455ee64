package cli

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"rnix/internal/event"
	"rnix/internal/permit"
	"rnix/ipc"
	"rnix/types"
)

// prompter takes answers where a run is shown: of a person at the terminal, one ask after the other. It belongs to the goroutine of the round. All
// methods may be called on nil, which asks nothing.
type prompter struct {
	client *ipc.Client
	out    *output
	view   *view
	in     *os.File
	queue  []uint64 // what waits to be shown
	open   *ipc.Ask // what is shown; nil = nothing is
	lines  chan string
	want   chan struct{} // a line is wanted; capacity 1
	wanted bool          // ... and has not come
}

// closed is the line of a person who closes the input with Ctrl+D.
const closed = "\x04"

// newPrompter returns nil if there is no person to ask: no terminal, another format than text, -q, or a shell that owns the terminal.
func newPrompter(ctx context.Context, c *ipc.Client, a *app, w *watch) *prompter {
	in, ok := a.host.In.(*os.File)
	if !ok || !isTerminal(in) || !w.out.err.terminal || !w.out.talks() || w.out.format != asText || a.host.Shell != nil {
		return nil
	}
	p := &prompter{client: c, out: w.out, view: w.view, in: in, lines: make(chan string), want: make(chan struct{}, 1)}
	w.view.prompts, w.view.asking = true, false
	go p.read(ctx)
	return p
}

// typed is what the person types, a line each.
func (p *prompter) typed() <-chan string {
	if p == nil {
		return nil
	}
	return p.lines
}

// pollEvery is how often it is looked whether the program still has the terminal.
const pollEvery = 200 * time.Millisecond

// read reads a line for each that is wanted, and nothing else: what is typed at other times is left to the shell. Ends with ctx.
func (p *prompter) read(ctx context.Context) {
	for {
		select {
		case <-p.want:
		case <-ctx.Done():
			return
		}
		line, ok := lineOf(ctx, p.in)
		if !ok {
			line = closed
		}
		select {
		case p.lines <- line:
		case <-ctx.Done():
			return
		}
	}
}

// lineOf reads a line of a terminal, while this program is in its foreground. false = ctx ended, or the terminal is gone.
func lineOf(ctx context.Context, in *os.File) (string, bool) {
	fd := int(in.Fd())
	buf := make([]byte, permit.MaxAnswer+1)
	for ctx.Err() == nil {
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(ready, int(pollEvery/time.Millisecond))
		if err != nil && !errors.Is(err, unix.EINTR) || n > 0 && ready[0].Revents&unix.POLLIN == 0 {
			return "", false
		}
		if n <= 0 {
			continue
		}
		if !foreground(in) {
			<-time.After(pollEvery)
			continue
		}
		k, err := in.Read(buf)
		if err != nil || k == 0 { // Ctrl+D
			return "", false
		}
		return strings.TrimSpace(string(buf[:k])), true
	}
	return "", false
}

// foreground reports whether this program has the terminal: one in the background is stopped when it reads there.
func foreground(in *os.File) bool {
	group, err := unix.IoctlGetInt(int(in.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// event takes note of what is asked and answered.
func (p *prompter) event(ctx context.Context, e *ipc.Event) {
	if p == nil || e.Kind != event.Asked && e.Kind != event.Answered {
		return
	}
	n, _ := strconv.ParseUint(e.Args, 10, 64)
	if e.Kind == event.Asked {
		if p.open == nil || p.open.Number != n {
			p.queue = append(p.queue, n)
		}
	} else {
		p.queue = slices.DeleteFunc(p.queue, func(k uint64) bool { return k == n })
		if p.open != nil && p.open.Number == n {
			p.close()
		}
	}
	p.next(ctx)
}

// resume asks again what a run before this round was asked.
func (p *prompter) resume(ctx context.Context, id types.UUID) {
	if p == nil {
		return
	}
	r, err := ipc.Call(ctx, p.client, ipc.ListAsks, ipc.AsksRequest{MaxInput: 1})
	if err != nil {
		return
	}
	for i := range r.Asks {
		if k := &r.Asks[i]; k.UUID == id || slices.ContainsFunc(k.Lineage, func(up ipc.Kin) bool { return up.UUID == id }) {
			p.queue = append(p.queue, k.Number)
		}
	}
	p.next(ctx)
}

// next shows the next ask, if none is shown.
func (p *prompter) next(ctx context.Context) {
	for p.view.prompts && p.open == nil && len(p.queue) > 0 {
		n := p.queue[0]
		p.queue = p.queue[1:]
		r, err := ipc.Call(ctx, p.client, ipc.ListAsks, ipc.AsksRequest{Number: n})
		if err != nil || len(r.Asks) == 0 { // it was answered meanwhile
			continue
		}
		if !foreground(p.in) {
			e := &ipc.Event{Args: strconv.FormatUint(n, 10)}
			if r.Asks[0].Question != nil {
				e.Path = permit.AskPath
			}
			p.out.say("[ask] " + askLine(&r.Asks[0]) + "; " + answerWith(e))
			continue
		}
		p.open, p.view.asking = &r.Asks[0], true
		p.out.live.clear()
		_ = unix.IoctlSetInt(int(p.in.Fd()), unix.TCFLSH, unix.TCIFLUSH) // what was typed before is no answer
		p.out.say("[ask] " + askLine(p.open))
		for line := range strings.Lines(wholeCall(p.open, 0)) {
			p.out.say("  " + strings.TrimRight(line, "\n"))
		}
		p.out.say("  " + p.how())
		p.wantLine()
	}
}

func (p *prompter) wantLine() {
	if !p.wanted {
		p.wanted = true
		p.want <- struct{}{}
	}
}

// how says with what the ask that is shown is answered.
func (p *prompter) how() string {
	n := strconv.FormatUint(p.open.Number, 10)
	if p.open.Question != nil {
		return "type your answer, or the number of a choice (or elsewhere: rnix answer " + n + " TEXT):"
	}
	return "y allow, n [WHY] deny, a always for this process, f for its family (or elsewhere: rnix allow " + n + "):"
}

func (p *prompter) close() { p.open, p.view.asking = nil, false }

// answer takes a line that was typed.
func (p *prompter) answer(ctx context.Context, line string) {
	switch p.wanted = false; {
	case line == closed:
		p.view.prompts, p.view.asking = false, false
		p.out.talk("[ask] not answered here any more; see: rnix asks")
		return
	case p.open == nil:
		p.out.talk("[ask] it was answered elsewhere; %s is no answer any more", strconv.Quote(cut(oneLine(line), 40)))
		return
	}
	req, ok := reply(p.open, line)
	if !ok {
		p.again()
		return
	}
	r, err := ipc.Call(ctx, p.client, ipc.AnswerAsk, req)
	if code := types.CodeOf(err); code == types.ErrInvalid {
		p.out.warn(errorText(err))
		p.again()
		return
	} else if err != nil {
		p.out.warn(errorText(err))
	} else if g := r.Grant; g != nil {
		p.out.talk("[kernel] %s passes without asking for the %s of PID %d", oneLine(g.Text), g.Scope, g.PID)
	}
	p.close()
	p.next(ctx)
}

// again wants another line for the same ask.
func (p *prompter) again() {
	p.out.say("  " + p.how())
	p.wantLine()
}

// reply reads an answer to an ask as it is typed; false = it is none.
func reply(k *ipc.Ask, line string) (req ipc.AnswerRequest, ok bool) {
	req.Number = k.Number
	if q := k.Question; q != nil {
		if line == "" {
			line = q.Default
		}
		req.Allow, req.Text = true, line
		return req, permit.CheckAnswer(line) == nil
	}
	word, rest, _ := strings.Cut(line, " ")
	switch strings.ToLower(word) {
	case "n", "no", "deny":
		req.Because = strings.TrimSpace(rest)
		return req, true
	case "y", "yes", "allow":
		req.Allow = true
	case "a", "always":
		req.Allow, req.For = true, permit.ForProcess
	case "f", "family":
		req.Allow, req.For = true, permit.ForFamily
	}
	return req, req.Allow && rest == ""
}
