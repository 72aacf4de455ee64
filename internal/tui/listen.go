package tui

import (
	"context"
	"errors"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"

	"rnix/ipc"
)

// listener reads the event log for a pane that is in sight. What it hears comes in batches, ten a second at most; if the pane
// cannot keep up the stream is not read, and the daemon says what was missed. It belongs to the goroutine of the
// program.
type listener struct {
	e      *env
	n      int // the number of the stream; what an older one still says is not listened to
	req    ipc.EventsRequest
	cancel context.CancelFunc
	open   bool
	done   bool  // all that there was has been heard
	err    error // why nothing is heard; nil = it is, or the stream is being opened
	last   uint64
}

// How a listener reads.
const (
	hearAtOnce = 4096 // events in a batch
	hearEvery  = 100 * time.Millisecond
	hearAgain  = 2 * time.Second // after an error
)

// heard is a piece of a stream: an event, a range that was missed, or the end.
type heard struct {
	ev     ipc.Event
	missed *ipc.Missed
	err    error
}

// The messages of a listener.
type (
	heardMsg struct {
		of    *listener
		n     int
		got   []heard
		more  <-chan heard // nil = that was the end
		error error
	}
	hearMsg struct { // it is time for the next batch, or for opening again
		of   *listener
		n    int
		more <-chan heard
	}
)

// about listens to what a request selects, from the beginning of what is known.
func (l *listener) about(req ipc.EventsRequest) tea.Cmd {
	l.close()
	l.req, l.last, l.done, l.err = req, 0, false, nil
	return l.start(askFirst)
}

// start opens the stream after a while: who runs through a list opens one only where he stays.
func (l *listener) start(wait time.Duration) tea.Cmd {
	l.n++
	l.open = true
	return l.e.after(wait, hearMsg{of: l, n: l.n})
}

// resume goes on behind what was heard, if the stream is not open.
func (l *listener) resume() tea.Cmd {
	if l.open {
		return nil
	}
	l.done = false
	return l.start(0)
}

// close ends the stream. What was heard is not forgotten.
func (l *listener) close() {
	if l.cancel != nil {
		l.cancel()
	}
	l.n++
	l.cancel, l.open = nil, false
}

func (l *listener) connect() tea.Cmd {
	ctx, cancel := context.WithCancel(l.e.ctx)
	l.cancel = cancel
	n, src, req := l.n, l.e.src, l.req
	if l.last > 0 {
		req.From, req.History = l.last+1, false
	}
	return func() tea.Msg {
		s, err := src.Open(ctx, ipc.Events.Name, req)
		if err != nil {
			return heardMsg{of: l, n: n, error: err}
		}
		more := make(chan heard, hearAtOnce)
		go read(ctx, s, more)
		return batch(l, n, more)
	}
}

// read reads a stream to its end. A listener starts it; the end of the stream or of ctx, which close brings about, ends it.
func read(ctx context.Context, s Stream, into chan<- heard) {
	defer close(into)
	defer func() { _ = s.Close() }()
	for {
		var h heard
		h.missed, h.err = s.Next(&h.ev)
		select {
		case into <- h:
		case <-ctx.Done():
			return
		}
		if h.err != nil {
			return
		}
	}
}

// batch waits for something to hear, and takes what there is.
func batch(l *listener, n int, more <-chan heard) tea.Msg {
	m := heardMsg{of: l, n: n, more: more}
	h, ok := <-more
	for ok {
		if h.err != nil {
			m.more, m.error = nil, h.err
			return m
		}
		if m.got = append(m.got, h); len(m.got) == hearAtOnce {
			return m
		}
		select {
		case h, ok = <-more:
			continue
		default:
			return m
		}
	}
	m.more, m.error = nil, io.EOF
	return m
}

// update takes a message in, and returns what was heard.
func (l *listener) update(msg tea.Msg) (tea.Cmd, []heard) {
	switch msg := msg.(type) {
	case hearMsg:
		switch {
		case msg.of != l || msg.n != l.n:
		case msg.more != nil:
			return func() tea.Msg { return batch(l, msg.n, msg.more) }, nil
		default:
			return l.connect(), nil
		}
	case heardMsg:
		if msg.of != l || msg.n != l.n {
			return nil, nil
		}
		for i := range msg.got {
			l.last = max(l.last, msg.got[i].ev.Seq)
			if m := msg.got[i].missed; m != nil {
				l.last = max(l.last, m.To)
			}
		}
		switch {
		case msg.error == nil:
			l.err = nil
			return l.e.after(hearEvery, hearMsg{l, l.n, msg.more}), msg.got
		case errors.Is(msg.error, io.EOF):
			l.close()
			l.done, l.err = true, nil
		default:
			l.close()
			l.err = msg.error
			return l.start(hearAgain), msg.got
		}
		return nil, msg.got
	}
	return nil, nil
}

// state is how listening stands, if it is not simply so; clean.
func (l *listener) state(t *Theme) string {
	switch {
	case l.err != nil:
		return "the daemon refuses: " + t.line(errorText(l.err))
	case l.done:
		return "all of it"
	}
	return ""
}
