package tui

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"rnix/ipc"
	"rnix/types"
)

// How often a pane asks, at most.
const (
	askEvery = 500 * time.Millisecond // the same question again
	askFirst = 100 * time.Millisecond // about another subject: who runs through the list asks for where he stays
)

// fetch asks one question of the daemon again and again: never twice at the same time, not more often than askEvery, and
// rarer if answers take long. What was known stays while it is asked again, and when that fails. It belongs to the
// goroutine of the program.
type fetch[Req, Resp any] struct {
	e      *env
	method ipc.Method[Req, Resp]
	least  time.Duration // between two questions; 0 = askEvery
	n      int           // the number of the subject; answers about an older one are not listened to
	req    Req
	sent   Req // what was asked last, and got is the answer to
	got    Resp
	known  bool  // got is an answer about the subject
	err    error // of the last question; nil = it was answered
	busy   bool
	again  bool // it has to be asked once more
	waits  bool // the clock runs
	at     time.Time
	took   time.Duration
}

func newFetch[Req, Resp any](e *env, m ipc.Method[Req, Resp]) *fetch[Req, Resp] {
	return &fetch[Req, Resp]{e: e, method: m}
}

// The messages of a fetch.
type (
	fetched[Req, Resp any] struct {
		of  *fetch[Req, Resp]
		n   int
		r   Resp
		err error
	}
	fetchDue struct{ of any }
)

// about asks about another subject, and forgets what was known of the one before.
func (f *fetch[Req, Resp]) about(req Req) tea.Cmd {
	f.forget()
	return f.ask(req)
}

// forget drops the subject.
func (f *fetch[Req, Resp]) forget() {
	var none Resp
	f.n++
	f.got, f.known, f.err, f.busy, f.again = none, false, nil, false, false
}

// ask asks as soon as that may be.
func (f *fetch[Req, Resp]) ask(req Req) tea.Cmd {
	f.req = req
	if f.busy || f.waits {
		f.again = true
		return nil
	}
	least := askFirst
	if f.known || f.err != nil {
		least = max(f.least, askEvery, 4*f.took)
	}
	if wait := least - f.e.now().Sub(f.at); wait > 0 && !f.at.IsZero() {
		f.waits, f.again = true, true
		return f.e.after(wait, fetchDue{f})
	}
	return f.now()
}

func (f *fetch[Req, Resp]) now() tea.Cmd {
	f.busy, f.again, f.at, f.sent = true, false, f.e.now(), f.req
	n := f.n
	return ask(f.e, f.method, f.req, func(r Resp, err error) tea.Msg { return fetched[Req, Resp]{f, n, r, err} })
}

// update takes a message in. fresh says that there is an answer now, or an error.
func (f *fetch[Req, Resp]) update(msg tea.Msg) (cmd tea.Cmd, fresh bool) {
	switch msg := msg.(type) {
	case fetchDue:
		if msg.of != any(f) {
			return nil, false
		}
		f.waits = false
		if f.again && !f.busy {
			return f.now(), false
		}
	case fetched[Req, Resp]:
		if msg.of != f || msg.n != f.n {
			return nil, false
		}
		f.busy, f.err, f.took = false, msg.err, f.e.now().Sub(f.at)
		if msg.err == nil {
			f.got, f.known = msg.r, true
		}
		if f.again {
			cmd = f.ask(f.req)
		}
		return cmd, true
	}
	return nil, false
}

// state is what to show instead of an answer; empty = there is one. text is clean.
func (f *fetch[Req, Resp]) state(t *Theme) string {
	switch {
	case f.known:
		return ""
	case f.err != nil:
		return "the daemon refuses: " + t.line(errorText(f.err))
	}
	return "..."
}

// pulse is what of a process makes a pane ask again.
type pulse struct {
	id           types.UUID
	state        string
	step, tokens int
	paused       bool
}

func pulseOf(p *ipc.Proc) pulse {
	if p == nil {
		return pulse{}
	}
	return pulse{p.UUID, p.State, p.Step, p.TokensUsed, !p.PausedAt.IsZero()}
}

// noProcess is what panes say where none is chosen.
const noProcess = "no process is chosen"

// subject is the process that a pane shows.
type subject struct {
	pulse
	told bool
	proc *ipc.Proc
}

// take takes in what show was told: whether it is another process, and whether it has changed.
func (s *subject) take(p *ipc.Proc) (other, changed bool) {
	now := pulseOf(p)
	other, changed = !s.told || now.id != s.id, !s.told || now != s.pulse
	s.pulse, s.told, s.proc = now, true, p
	return other, changed
}

// none reports whether no process is chosen.
func (s *subject) none() bool { return s.proc == nil }

func (s *subject) target() string { return s.id.String() }
