package chat

import (
	"context"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"rnix/internal/tui"
	"rnix/ipc"
	"rnix/types"
)

// phase is how it stands with the process.
type phase string

const (
	none      phase = ""          // there is none yet
	starting  phase = "starting"  // it is being started or resumed
	working   phase = "working"   // it runs
	suspended phase = "suspended" // it waits for a person, in memory or on disk
	ended     phase = "ended"
)

// Model is the state of a conversation. It belongs to the program's goroutine: Update changes it, and nothing else. All that takes time is a command,
// which asks the Source and comes back as a message.
type Model struct {
	o     Options
	ctx   context.Context // of the program, whose end ends all calls
	src   tui.Source
	t     *tui.Theme
	now   func() time.Time
	after func(time.Duration, tea.Msg) tea.Cmd
	w, h  int
	term  *rewrapping // nil = the terminal does not wrap anew
	size  sizing

	drawing *drawing // nil = it is no terminal
	drawn   bool     // something was

	phase   phase
	id      types.UUID
	detail  ipc.ProcDetail // as it was known last
	used    int            // of the context window, in thousandths; 0 = not known
	plan    plan           // of it, for the foot
	next    start          // what the next message begins with
	doubted string         // the model that was named last and is not known
	away    bool           // no daemon answers
	lost    bool           // ... and none has come back
	back    time.Time      // when one has

	conv    int // the number of the conversation; what was asked for an earlier one is not listened to
	ev      stream
	script  script
	results results
	md      markdown
	said    speech
	held    []ipc.Event           // what was heard of an answer before all that stands before it is shown
	hold    bool                  // ... which is being read
	kids    map[types.UUID]string // what the children do that work
	clashed bool                  // a resume has met another one; see resumeWith
	fresh   bool                  // how it stands is to be said when it is known: the person has just come
	remarks []string              // printed behind the answer under way
	queue   []queued
	shown   []told
	doing   string
	printed []string  // the last lines that the call in hand has printed; clean
	since   time.Time // of doing
	began   time.Time // of the turn

	own    *ownRun          // a command of the person that runs
	ran    []ran            // those that the agent gets with the next message
	given  []ipc.Attachment // of the command line, which the agent is shown with the next message
	along  along            // what goes along with what is being typed
	ask    *asking
	find   *finding
	choice *choice // not nil: a question of the program waits for a key
	ed     editor
	comp   completion
	note   string // clean; until the next key
	bad    bool   // ... it is an error
	quit   time.Time
	out    printer
	frame  int
	clock  bool
	idle   bool // a look at the process is under way
	late   bool // ... which was begun before the end of a step: another one follows
	runs   int  // how many runs were begun here: what was known before counts no more
}

// start is what the next message of the person does, where it does not just continue.
type start struct {
	model string
	agent string
	fork  *int   // a fork from the end of this step; nil = none
	from  int    // ... whose messages from this number on are its own
	cwd   string // ... that works there; empty = in a directory of its own
}

// queued is something that was said and is not in the conversation yet.
type queued struct {
	message
	sent bool   // the daemon has it, or a call with it is under way
	seq  string // its number among the messages to the process; empty = not known
}

// told is something that was said and that the agent has, but not the conversation yet.
type told struct {
	text    string
	printed bool
}

// doneMsg is the answer of a call.
type doneMsg func(*Model) tea.Cmd

// tickMsg is a moment that has passed.
type tickMsg struct{}

// Init begins.
func (m *Model) Init() tea.Cmd {
	for _, h := range m.o.Hints {
		m.print(wrap(m.t, []span{{tui.Clean(m.t, h), dim}}, "", "", m.w-1)...)
	}
	var cmd tea.Cmd
	if d, ctx := m.drawing, m.ctx; d != nil {
		cmd = func() tea.Msg { return d.await(ctx) }
	}
	if m.id != (types.UUID{}) {
		m.print(titleOf(m)...)
		cmd = tea.Batch(cmd, m.settle(), m.fetch())
	}
	if m.o.Choose {
		cmd = tea.Batch(cmd, switchTo(m, ""))
	}
	if first := m.o.First; first != "" {
		m.o.First, cmd = "", tea.Batch(cmd, greetFirst(m, first))
	}
	return tea.Batch(cmd, m.flush(), nextTick(m))
}

// greetFirst says the first message when it is known how it stands with the process.
func greetFirst(m *Model, text string) tea.Cmd {
	if m.id == (types.UUID{}) {
		return m.send(text)
	}
	return call(m, ipc.GetProcDetail, ipc.TargetRequest{Target: m.id.String()}, func(m *Model, d ipc.ProcDetail, err error) tea.Cmd {
		if err != nil {
			m.keep(text)
			return m.fail(err)
		}
		return tea.Batch(m.learn(&d), m.send(text))
	})
}

// Update takes a message in and returns what is to be done.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	cmd := m.take(msg)
	showDue(m)
	return m, tea.Batch(cmd, m.flush(), nextTick(m))
}

func (m *Model) take(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		return takeSize(m, msg)
	case tea.KeyPressMsg:
		cmd := pressKey(m, msg)
		lookBeside(m)
		return cmd
	case tea.PasteMsg:
		cmd := pasteText(m, msg.Content)
		lookBeside(m)
		return cmd
	case doneMsg:
		return msg(m)
	case eventsMsg:
		return hearEvents(m, msg)
	case drawnMsg:
		m.drawn = true
	case changedMsg:
		m.size.frozen = true
		return awaitSettled(m, tea.WindowSizeMsg(msg))
	case settledMsg:
		if msg.changes == m.size.changes {
			m.size.changed = false
		}
	case printedMsg:
		m.out.busy = false
	case tickMsg:
		m.clock = false
		m.frame++
		return onTick(m)
	}
	return nil
}

func (m *Model) resize(w, h int) {
	m.w, m.h = max(w, 20), max(h, 6)
	m.md.w = min(m.w-1, 120)
}

// tickEvery is how often the line about the work is drawn anew.
const tickEvery = 125 * time.Millisecond

// idleEvery is how often it is looked whether another person has resumed a process that does not run.
const idleEvery = time.Second

// nextTick asks for the next moment, if something depends on it.
func nextTick(m *Model) tea.Cmd {
	switch {
	case m.clock:
		return nil
	case m.phase == working, m.phase == starting, m.away && !m.lost, m.ask != nil, m.own != nil:
		m.clock = true
		return m.after(tickEvery, tickMsg{})
	case m.phase == ended, m.phase == suspended:
		m.clock = true
		return m.after(idleEvery, tickMsg{})
	}
	return nil
}

// onTick is what a tick brings about.
func onTick(m *Model) tea.Cmd {
	switch {
	case m.away:
	case m.phase == ended, m.phase == suspended:
		return m.settle()
	case m.phase == working && len(m.script.open) > 0 && m.frame%2 == 0:
		return m.fetch()
	}
	return nil
}

// call returns the command that calls a method and takes its answer in, unless another conversation has begun meanwhile.
func call[Req, Resp any](m *Model, method ipc.Method[Req, Resp], req Req, then func(*Model, Resp, error) tea.Cmd) tea.Cmd {
	return callOr(m, method, req, then, func(*Model, Resp, error) {})
}

// callOr is call; late takes the answer in if another conversation has begun meanwhile.
func callOr[Req, Resp any](m *Model, method ipc.Method[Req, Resp], req Req, then func(*Model, Resp, error) tea.Cmd, late func(*Model, Resp, error)) tea.Cmd {
	ctx, src, conv := m.ctx, m.src, m.conv
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		var r Resp
		err := src.Call(ctx, method.Name, req, &r)
		return doneMsg(func(m *Model) tea.Cmd {
			if m.conv == conv {
				return then(m, r, err)
			}
			late(m, r, err)
			return nil
		})
	}
}

// patience bounds a call.
const patience = 60 * time.Second

// gone reports whether an error may mean that the daemon has gone away.
func gone(err error) bool {
	c := types.CodeOf(err)
	return c == types.ErrDisconnected || c == types.ErrUnavailable
}

// fail says what went wrong. If that is that there is no daemon, it is waited for. A daemon says of other things, too, that they are unavailable: there it
// is looked whether it is gone.
func (m *Model) fail(err error) tea.Cmd {
	switch left, ctx := m.o.Left, m.ctx; {
	case !gone(err):
	case types.CodeOf(err) == types.ErrUnavailable && left != nil && !m.away:
		return func() tea.Msg {
			is := left(ctx)
			return doneMsg(func(m *Model) tea.Cmd {
				if is {
					return goAway(m)
				}
				m.complain(err)
				return nil
			})
		}
	default:
		return goAway(m)
	}
	m.complain(err)
	return nil
}

// complain says what went wrong, until the next key.
func (m *Model) complain(err error) { m.note, m.bad = tui.Line(m.t, tui.ErrorText(err)), true }

func (m *Model) say(text string) { m.note, m.bad = tui.Line(m.t, text), false }

// goAway waits for the next daemon.
func goAway(m *Model) tea.Cmd {
	if m.away && !m.lost {
		return nil
	}
	m.ev.close()
	m.away, m.lost = true, false
	m.note = ""
	back, ctx := m.o.Back, m.ctx
	if back == nil {
		m.lost = true
		return nil
	}
	return func() tea.Msg {
		src, err := back(ctx)
		return doneMsg(func(m *Model) tea.Cmd {
			if err != nil {
				m.lost = true
				m.note, m.bad = tui.Line(m.t, tui.ErrorText(err)), true
				return nil
			}
			m.src, m.away, m.back = src, false, m.now()
			m.block("note")
			m.print(paint(m.t, yellow, "the daemon went away, and is back"))
			if m.id == (types.UUID{}) {
				return m.sendQueued()
			}
			return tea.Batch(m.settle(), m.fetch(), readAsks(m))
		})
	}
}

// addressOf is how a command names the process.
func addressOf(m *Model) string {
	switch {
	case m.id == (types.UUID{}):
		return ""
	case m.detail.Name != "":
		return tui.Line(m.t, m.detail.Name)
	case m.detail.PID != 0: // it stays its number when the process is resumed under another one
		return m.detail.PID.String()
	}
	return m.id.String()
}

// titleOf says which process it is.
func titleOf(m *Model) []string {
	d := &m.detail
	who := "PID " + d.PID.String()
	if d.Name != "" {
		who += " " + tui.Line(m.t, d.Name)
	}
	return []string{paint(m.t, dim, tui.Cut(m.t, strings.Join([]string{who, modelName(m.t, d), "in " + tui.Line(m.t, d.WorkDir)}, tui.Pick(m.t, " · ", " | ")), m.w-1)), ""}
}
