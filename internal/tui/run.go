package tui

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"

	"rnix/ipc"
	"rnix/runtime/statehome"
	"rnix/types"
)

// Options are what Run needs. Source, In and Out must be set; In and Out are the terminal.
type Options struct {
	Source  Source
	In      io.Reader
	Out     io.Writer
	Environ []string         // of the user; what resumes a process gets it too
	Env     statehome.Lookup // the same, to look up in
	Target  string           // the process that is chosen at the start: a PID, a UUID or its beginning or end, or a name
	All     bool             // ended processes, too
	Top     bool             // the table; else the dashboard
	Theme   *Theme           // nil = as Env says
	State   string           // the file in which the state of the view is kept; empty = none
}

// Run shows the program until the person leaves it, or ctx ends. An error is that of the terminal, or of a Target that
// there is not.
func Run(ctx context.Context, o Options) error {
	ctx, gone := context.WithCancel(ctx)
	defer gone() // and with it all that still waits or asks
	m := New(ctx, o)
	load(m, o.State)
	if o.Target != "" {
		if err := openOn(m, ctx, o.Target); err != nil {
			return err
		}
	}
	if f, ok := o.In.(*os.File); ok {
		o.In = hangup{f, gone}
	}
	p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithEnvironment(o.Environ),
		tea.WithFPS(30), tea.WithColorProfile(colorprofile.ANSI))
	_, err := p.Run()
	m.link.close()
	if serr := save(m, o.State); err == nil {
		err = serr
	}
	if errors.Is(err, tea.ErrInterrupted) || ctx.Err() != nil {
		return nil
	}
	return err
}

// hangup is a terminal whose end ends the program: one that has gone away reads as empty for ever, and not everybody is sent SIGHUP.
type hangup struct {
	*os.File
	gone context.CancelFunc
}

func (h hangup) Read(b []byte) (int, error) {
	n, err := h.File.Read(b)
	if n == 0 && err != nil {
		h.gone()
	}
	return n, err
}

// New returns the program at its start. Nothing is asked before it runs.
func New(ctx context.Context, o Options) *Model {
	if o.Theme == nil {
		o.Theme = NewTheme(o.Env)
	}
	e := &env{ctx: ctx, src: o.Source, t: o.Theme, now: time.Now, after: later(ctx), environ: o.Environ}
	e.kin, e.traffic = newRelatives(e), newTraffic(e)
	m := &Model{env: e, keys: bindings(), all: o.All, mouse: true, list: list{sort: byPID}, panes: newPanes(e)}
	if !o.Top {
		m.screen = dashboard
	}
	return m
}

// openOn chooses a process, which may have ended long ago.
func openOn(m *Model, ctx context.Context, target string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var d ipc.ProcDetail
	if err := m.env.src.Call(ctx, ipc.GetProcDetail.Name, ipc.TargetRequest{Target: target}, &d); err != nil {
		return err
	}
	m.list.sel, m.list.filter = d.UUID, "" // who names a process wants to see it
	m.rows.put(&d.Proc, m.env.now())
	return nil
}

// foundMsg is what is known of a process that the stream lists no more.
type foundMsg struct {
	id  types.UUID
	d   ipc.ProcDetail
	err error
}

// lookUp asks for the process that is chosen, if the stream has just dropped it: how it has ended is still to be seen.
func (m *Model) lookUp() tea.Cmd {
	p := m.rows.by[m.list.sel]
	if p == nil || !p.gone || p.ended() {
		return nil
	}
	id := p.UUID
	return ask(m.env, ipc.GetProcDetail, ipc.TargetRequest{Target: id.String()}, func(d ipc.ProcDetail, err error) tea.Msg {
		return foundMsg{id, d, err}
	})
}

func found(m *Model, f foundMsg) {
	if f.err == nil {
		m.rows.put(&f.d.Proc, m.env.now())
	}
}

// learn takes in how the terminal counts the cells of characters that are made of several.
func learn(t *Theme, r tea.ModeReportMsg) {
	if r.Mode == ansi.ModeUnicodeCore && (r.Value == ansi.ModeReset || r.Value == ansi.ModeSet || r.Value == ansi.ModePermanentlySet) {
		t.method = ansi.GraphemeWidth
	}
}
