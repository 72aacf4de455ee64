package tui

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"rnix/ipc"
)

// link is the stream of processes: opened, read frame by frame, and opened again when the daemon has gone. What was
// known stays in sight meanwhile.
type link struct {
	n      int // the number of the stream; what an older one still says is not listened to
	stream Stream
	err    error     // why there is none; nil = there is one, or the first is being opened
	since  time.Time // of err
	tries  int
	cancel context.CancelFunc
}

// The messages of a stream. n is its number.
type (
	openedMsg struct {
		n int
		s Stream
	}
	frameMsg struct {
		n      int
		t      *ipc.ProcTable
		missed *ipc.Missed
	}
	lostMsg struct {
		n   int
		err error
	}
	retryMsg struct{ n int }
)

// everyMs is the least time between two frames.
const everyMs = 100

// up reports whether frames come.
func (l *link) up() bool { return l.err == nil }

// openOn opens a stream in the place of the one before.
func (l *link) open(m *Model) tea.Cmd {
	l.close()
	l.n++
	n, req, src := l.n, ipc.WatchRequest{All: m.all, EveryMs: everyMs}, m.env.src
	ctx, cancel := context.WithCancel(m.env.ctx)
	l.cancel = cancel
	return func() tea.Msg {
		s, err := src.Open(ctx, ipc.WatchProcs.Name, req)
		if err != nil {
			return lostMsg{n, err}
		}
		return openedMsg{n, s}
	}
}

func (l *link) close() {
	if l.cancel != nil {
		l.cancel()
	}
	if l.stream != nil {
		_ = l.stream.Close()
	}
	l.stream, l.cancel = nil, nil
}

// next reads a frame.
func (l *link) next() tea.Cmd {
	n, s := l.n, l.stream
	return func() tea.Msg {
		t := new(ipc.ProcTable)
		missed, err := s.Next(t)
		if err != nil {
			_ = s.Close()
			return lostMsg{n, err}
		}
		return frameMsg{n, t, missed}
	}
}

// take takes a message of the stream in.
func (l *link) take(m *Model, msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case openedMsg:
		if msg.n != l.n {
			_ = msg.s.Close()
			return nil
		}
		if l.err != nil {
			m.say("the daemon is there again")
		}
		l.stream, l.err, l.tries = msg.s, nil, 0
		m.told = nil // the pane asks anew
		return l.next()
	case frameMsg:
		if msg.n != l.n {
			return nil
		}
		if msg.missed == nil { // else a whole frame follows
			m.rows.fold(msg.t, m.list.sel)
		}
		return tea.Batch(l.next(), m.lookUp())
	case lostMsg:
		if msg.n != l.n || m.env.ctx.Err() != nil {
			return nil
		}
		l.close()
		if l.err == nil {
			l.since = m.env.now()
		}
		l.err = msg.err
		n := l.n
		wait := min(time.Second<<min(l.tries, 3), 5*time.Second)
		l.tries++
		return m.env.after(wait, retryMsg{n})
	case retryMsg:
		if msg.n == l.n {
			return l.open(m)
		}
	}
	return nil
}
