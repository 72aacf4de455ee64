package chat

import (
	"context"
	"errors"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"

	"rnix/internal/tui"
	"rnix/ipc"
	"rnix/types"
)

// stream is the stream of events of the process and those below it, while it runs.
type stream struct {
	n      int // its number; what an older one still says is not listened to
	cancel context.CancelFunc
	open   bool
	since  time.Time // when it was opened last
}

// kinds are the events that matter here.
var kinds = []types.EventKind{"spawned", "step_started", "step_ended", "log", "waiting", "paused", "resumed", "exited", "compacted", "refused", "asked", "answered",
	"storage_error", "messaged", "delivered", "lag"}

// reopenAfter is how long after a stream was opened another one is opened when it has ended, although the process works.
const reopenAfter = time.Second

// hearAtOnce is how many events are taken in at once.
const hearAtOnce = 1024

// eventsMsg is what was heard.
type eventsMsg struct {
	n    int
	got  []ipc.Event
	more <-chan heard // nil = that was the end
	err  error
}

type heard struct {
	e   ipc.Event
	err error
}

func (s *stream) close() {
	if s.cancel != nil {
		s.cancel()
	}
	s.n++
	s.cancel, s.open = nil, false
}

// listenFrom opens the stream; from is the number of its first event, 0 = from now on.
func listenFrom(m *Model, from uint64) tea.Cmd {
	m.ev.close()
	ctx, cancel := context.WithCancel(m.ctx)
	m.ev.cancel, m.ev.open, m.ev.since = cancel, true, m.now()
	n, src := m.ev.n, m.src
	req := ipc.EventsRequest{Target: m.id.String(), Tree: true, Follow: true, Speech: true, Kinds: kinds, From: from}
	return func() tea.Msg {
		s, err := src.Open(ctx, ipc.Events.Name, req)
		if err != nil {
			return eventsMsg{n: n, err: err}
		}
		more := make(chan heard, hearAtOnce)
		go read(ctx, s, more)
		return batch(n, more)
	}
}

// read reads a stream to its end. listen starts it; the end of the stream or of ctx, which close brings about, ends it.
func read(ctx context.Context, s tui.Stream, into chan<- heard) {
	defer close(into)
	defer func() { _ = s.Close() }()
	for {
		var h heard
		if _, h.err = s.Next(&h.e); h.err == nil && h.e.Kind == "" {
			continue // a range was missed: the conversation is read again at the end of the step
		}
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
func batch(n int, more <-chan heard) tea.Msg {
	m := eventsMsg{n: n, more: more}
	h, ok := <-more
	for ok {
		if h.err != nil {
			m.more, m.err = nil, h.err
			return m
		}
		if m.got = append(m.got, h.e); len(m.got) == hearAtOnce {
			return m
		}
		select {
		case h, ok = <-more:
			continue
		default:
			return m
		}
	}
	m.more, m.err = nil, io.EOF
	return m
}

// hearEvents takes in what was heard.
func hearEvents(m *Model, msg eventsMsg) tea.Cmd {
	if msg.n != m.ev.n {
		return nil
	}
	var cmds []tea.Cmd
	for i := range msg.got {
		cmds = append(cmds, takeEvent(m, &msg.got[i]))
	}
	switch {
	case msg.err == nil:
		cmds = append(cmds, func() tea.Msg { return batch(msg.n, msg.more) })
	case gone(msg.err):
		m.ev.close()
		cmds = append(cmds, m.fail(msg.err), m.settle())
	default:
		m.ev.close()
		if !errors.Is(msg.err, io.EOF) && types.CodeOf(msg.err) != types.ErrCancelled {
			m.complain(msg.err)
		}
		cmds = append(cmds, m.settle())
	}
	return tea.Batch(cmds...)
}
