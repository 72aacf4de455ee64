package tui

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"rnix/types"
)

// screen is what fills the terminal.
type screen int

const (
	top screen = iota
	dashboard
)

// Model is the state of the program. It belongs to the program's goroutine: Update changes it, and nothing else.
// All that takes time is a command, which asks the Source and comes back as a message.
type Model struct {
	env    *env
	keys   []binding
	screen screen
	under  bool // the dashboard was opened from top, and leads back there
	w, h   int
	rows   rows
	list   list
	all    bool // ended ones, too
	link   link
	panes  []pane
	cur    int // the index of the pane in sight
	told   *shownIn
	focus  side
	wide   bool      // the right side fills the dashboard
	help   *long     // not nil: the help is in sight
	asking *asking   // not nil: what is asked about a process is in sight
	ask    *question // not nil: a question waits for its answer
	input  *input    // not nil: a line is being typed
	note   note
	mouse  bool

	clock bool // a tick of the clock is under way
	paint paint
}

// note is what the status line says.
type note struct {
	text  string // clean
	bad   bool
	until time.Time // zero = until the next key
}

// Init opens the stream of processes.
func (m *Model) Init() tea.Cmd { return m.link.open(m) }

// Update takes a message in and returns what is to be done.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	if _, ok := msg.(paintMsg); ok {
		return m, m.paint.due()
	}
	cmd := tea.Batch(m.take(msg), m.env.kin.update(msg), m.env.traffic.update(msg))
	if m.asking != nil {
		cmd = tea.Batch(cmd, m.asking.update(m, msg))
	}
	m.rows.sweep(m.list.sel)
	m.list.arrange(&m.rows, m.env.now())
	return m, tea.Batch(cmd, m.tell(), m.loads(), relate(m), m.tick(), m.paint.soil(m.env))
}

// take is Update without what follows from every message.
func (m *Model) take(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.w, m.h = msg.Width, msg.Height
	case tea.KeyPressMsg:
		return press(m, msg)
	case tea.PasteMsg:
		return paste(m, msg.Content)
	case tea.MouseClickMsg:
		return click(m, msg.Mouse())
	case tea.MouseWheelMsg:
		return wheel(m, msg.Mouse())
	case tea.ModeReportMsg:
		learn(m.env.t, msg)
	case frameMsg, openedMsg, lostMsg, retryMsg:
		return m.link.take(m, msg)
	case tickMsg:
		m.clock = false
		if !m.note.until.IsZero() && m.env.now().After(m.note.until) {
			m.note = note{}
		}
	case answeredMsg:
		return answered(m, msg)
	case doneMsg:
		return actionDone(m, msg)
	case foundMsg:
		found(m, msg)
	case goneTo:
		arrive(m, msg)
	case tea.KeyReleaseMsg, tea.MouseReleaseMsg, tea.MouseMotionMsg, tea.ColorProfileMsg, tea.EnvMsg, tea.FocusMsg, tea.BlurMsg:
	default:
		var cmds []tea.Cmd
		for _, p := range m.panes {
			cmds = append(cmds, p.update(msg))
		}
		return tea.Batch(cmds...)
	}
	return nil
}

// tickMsg is a second that has passed.
type tickMsg struct{}

// tick asks for the next second, if something on the screen grows with it.
func (m *Model) tick() tea.Cmd {
	if m.clock || !m.link.up() || !m.rows.runs() && m.note.until.IsZero() {
		return nil
	}
	m.clock = true
	return m.env.after(time.Second, tickMsg{})
}

// say puts something into the status line until the next key.
func (m *Model) say(text string) { m.note = note{text: m.env.t.line(text)} }

// fail puts an error into the status line until the next key.
func (m *Model) fail(err error) { m.note = note{text: m.env.t.line(errorText(err)), bad: true} }

// chosen returns the process that is chosen; nil = there is none.
func (m *Model) chosen() *row { return m.list.chosen() }

// chooseID chooses a process that the rows may not have yet.
func chooseID(m *Model, id types.UUID) {
	m.list.sel = id
	m.list.built = built{}
}
