package cli

import (
	"context"
	"errors"
	"fmt"
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
	shown  time.Time
	lines  chan typedLine
	want   chan struct{} // a line is wanted; capacity 1
	wanted bool          // ... and has not come

	patience time.Duration // with each call of the daemon
}

// typedLine is what the terminal gave for one read.
type typedLine struct {
	text  string
	at    time.Time // when it was read
	wrong string    // why it is no answer; "" = nothing is wrong
	end   bool      // the input was closed with Ctrl+D, or the terminal is gone
}

// newPrompter returns nil if there is no person to ask: no terminal, another format than text, -q, or a shell that owns the terminal.
func newPrompter(ctx context.Context, c *ipc.Client, a *app, w *watch) *prompter {
	in, ok := a.host.In.(*os.File)
	if !ok || !isTerminal(in) || !w.out.err.terminal || !w.out.talks() || w.out.format != asText || a.host.Shell != nil {
		return nil
	}
	p := &prompter{client: c, patience: askTime, out: w.out, view: w.view, in: in, lines: make(chan typedLine), want: make(chan struct{}, 1)}
	w.view.prompts, w.view.asking = true, false
	go p.read(ctx)
	return p
}

// typed is what the person types, a line each.
func (p *prompter) typed() <-chan typedLine {
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
		line := lineOf(ctx, p.in)
		select {
		case p.lines <- line:
		case <-ctx.Done():
			return
		}
	}
}

// longestTyped is what a terminal of Linux takes in one line, in bytes (N_TTY_BUF_SIZE): more is dropped unseen.
const longestTyped = 4095

// lineOf reads a line of a terminal, while this program has it: see has.
func lineOf(ctx context.Context, in *os.File) typedLine {
	fd := int(in.Fd())
	for ctx.Err() == nil {
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(ready, int(pollEvery/time.Millisecond))
		if err != nil && !errors.Is(err, unix.EINTR) || n > 0 && ready[0].Revents&unix.POLLIN == 0 {
			break
		}
		if n <= 0 {
			continue
		}
		if !has(in) {
			<-time.After(pollEvery)
			continue
		}
		return readLine(in)
	}
	return typedLine{end: true}
}

// readLine reads the line that a terminal has.
func readLine(in *os.File) typedLine {
	fd := int(in.Fd())
	buf := make([]byte, permit.MaxAnswer+1)
	k, err := in.Read(buf)
	if err != nil || k == 0 { // Ctrl+D
		return typedLine{end: true}
	}
	more, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	line := typedLine{text: strings.TrimSpace(string(buf[:k])), at: time.Now()}
	switch {
	case more > 0: // a text of several lines was pasted: no shell is to run what is left
		_ = unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH)
		line.wrong = "only one line can be typed here"
	case buf[k-1] != '\n': // Ctrl+D behind a beginning
		line.wrong = "a line ends with Enter"
	case k >= longestTyped:
		line.wrong = "a terminal takes no longer line than " + strconv.Itoa(longestTyped) + " bytes"
	}
	return line
}

// has reports whether this program has the terminal, line by line: one in the background is stopped when it reads there, and where another one
// takes single keys, such as a pager that is fed by this one, a key is no answer.
func has(in *os.File) bool {
	group, err := unix.IoctlGetInt(int(in.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp() && byLine(in)
}

// byLine reports whether a terminal gives whole lines.
func byLine(in *os.File) bool {
	mode, err := unix.IoctlGetTermios(int(in.Fd()), unix.TCGETS)
	return err == nil && mode.Lflag&unix.ICANON != 0
}

// event takes note of what is asked and answered.
func (p *prompter) event(ctx context.Context, e *ipc.Event) {
	if p == nil || e.Kind != event.Asked && e.Kind != event.Answered {
		return
	}
	n, _ := strconv.ParseUint(e.Args, 10, 64)
	if e.Kind == event.Asked {
		if (p.open == nil || p.open.Number != n) && !slices.Contains(p.queue, n) {
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

// askTime is how long the daemon has to say what is asked, or to take an answer: the view stands still meanwhile.
const askTime = 10 * time.Second

// askSoon is ipc.Call within the prompter's patience.
func askSoon[Q, R any](ctx context.Context, p *prompter, m ipc.Method[Q, R], req Q) (R, error) {
	ctx, cancel := context.WithTimeout(ctx, p.patience)
	defer cancel()
	return ipc.Call(ctx, p.client, m, req)
}

// late reports whether a call has not been answered within askTime.
func late(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || types.CodeOf(err) == types.ErrTimeout
}

// resume reads anew what is asked: what a run before this round was asked, or what was missed while events came too fast.
func (p *prompter) resume(ctx context.Context, id types.UUID) {
	if p == nil {
		return
	}
	r, err := askSoon(ctx, p, ipc.ListAsks, ipc.AsksRequest{MaxInput: 1})
	if err != nil {
		if late(err) {
			p.out.warn("cannot read what is asked: the daemon does not answer; see: rnix asks")
		}
		return
	}
	p.waiting(r.Asks, id)
	p.next(ctx)
}

// waiting takes note of all that is asked now, of which only what a process and those below it ask is shown.
func (p *prompter) waiting(asks []ipc.Ask, id types.UUID) {
	p.queue = nil
	open := false
	for i := range asks {
		switch k := &asks[i]; {
		case p.open != nil && p.open.Number == k.Number:
			open = true
		case k.UUID == id || slices.ContainsFunc(k.Lineage, func(up ipc.Kin) bool { return up.UUID == id }):
			p.queue = append(p.queue, k.Number)
		}
	}
	if p.open != nil && !open {
		p.close()
	}
}

// next shows the next ask, if none is shown.
func (p *prompter) next(ctx context.Context) {
	for p.view.prompts && p.open == nil && len(p.queue) > 0 {
		n := p.queue[0]
		p.queue = p.queue[1:]
		r, err := askSoon(ctx, p, ipc.ListAsks, ipc.AsksRequest{Number: n})
		if err != nil && late(err) {
			p.out.warn(fmt.Sprintf("cannot show ask %d: the daemon does not answer; see: rnix asks", n))
			p.queue = slices.Insert(p.queue, 0, n) // it is shown when something else comes
			return
		}
		if err != nil || len(r.Asks) == 0 { // it was answered meanwhile
			continue
		}
		if !has(p.in) {
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
		p.shown = time.Now()
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
		enter := ""
		if p.open.Question.Default != "" {
			enter = ", or Enter for the default"
		}
		return "type your answer, or the number of a choice" + enter + " (or elsewhere: rnix answer " + n + " TEXT):"
	}
	return "y allow, n [WHY] deny, a always for this process, f for its family (or elsewhere: rnix allow " + n + "):"
}

func (p *prompter) close() { p.open, p.view.asking = nil, false }

// answer takes a line that was typed.
func (p *prompter) answer(ctx context.Context, line typedLine) {
	switch p.wanted = false; {
	case line.end:
		p.view.prompts, p.view.asking = false, false
		p.out.talk("[ask] not answered here any more; see: rnix asks")
		return
	case p.open == nil:
		p.out.talk("[ask] it was answered elsewhere; %s is no answer any more", strconv.Quote(cut(oneLine(line.text), 40)))
		return
	case line.at.Before(p.shown): // the one before was answered elsewhere while it was typed
		p.out.talk("[ask] %s was typed before this ask was shown, and is not taken", strconv.Quote(cut(oneLine(line.text), 40)))
		p.again()
		return
	case line.wrong != "":
		p.out.warn(fmt.Sprintf("this is not taken: %s; from elsewhere: rnix asks", line.wrong))
		p.again()
		return
	}
	req, ok := reply(p.open, line.text)
	if !ok {
		p.out.warn(fmt.Sprintf("%s is no answer, and nothing was answered", strconv.Quote(cut(oneLine(line.text), 40))))
		p.again()
		return
	}
	r, err := askSoon(ctx, p, ipc.AnswerAsk, req)
	if code := types.CodeOf(err); err != nil && code != types.ErrNotFound { // it waits still
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
