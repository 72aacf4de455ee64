// Package chat is a conversation with an agent in a terminal: it starts a process, shows what it says and does as it comes, and takes in what
// the person says to it. What is complete stands in the terminal as any other output does, and stays there; only what is under way, the line that
// is typed and a line about the process are drawn anew.
//
// It is one more face over the wire: it knows what ipc says and nothing else. What is shown of a conversation is what list_messages has of it, so that
// several terminals see the same, and one that comes late too; the pieces of the answer under way are shown before they are recorded. All text
// that does not come from this package passes through Theme.Clean before it is drawn.
package chat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"rnix/internal/tui"
	"rnix/ipc"
)

// Options are what Run needs. Source, In, Out, Theme and Spawn must be set; In and Out are the terminal.
type Options struct {
	Source  tui.Source
	In      io.Reader
	Out     io.Writer
	Environ []string // of the person; what starts or resumes a process gets it
	Theme   *tui.Theme
	Dir     string // the working directory, absolute
	// Spawn is what a new conversation is started with; its Intent is what the person says first.
	Spawn ipc.SpawnRequest
	// Given are images and PDFs that the agent is shown with the first message, whatever process gets it.
	Given []ipc.Attachment
	// Target is the process to talk to: a PID, a UUID or its beginning or end, or a name; empty = a new one.
	Target string
	// Choose lets the person choose the process first.
	Choose bool
	// First is said at once; empty = the person is waited for.
	First string
	// Shell runs a command line of the person in Dir, with no input, until it ends or ctx does, and returns what it has printed and how it ended, if not
	// well. Nil = none can be run.
	Shell func(ctx context.Context, command string) (output, how string, err error)
	// Clipboard writes the image that the clipboard has into a file, and returns its path. Nil = it cannot be read.
	Clipboard func(ctx context.Context) (path string, err error)
	// History are earlier messages of the person, the last one at the end; Remember keeps another one. Nil = none are kept.
	History  []string
	Remember func(string)
	// Hints are lines that are shown at the beginning.
	Hints []string
	// Back returns when a daemon answers again after the one before has gone away, with how it is reached. Nil = it is waited for no daemon.
	Back func(ctx context.Context) (tui.Source, error)
	// Left reports whether the daemon has gone away, or is another one by now. Nil = every error that may mean so does.
	Left func(ctx context.Context) bool
}

// Left is how a conversation was left.
type Left struct {
	Name    string // of its process, as a command takes it; empty = there is none
	Working bool   // it works on
}

// Run talks until the person leaves, or ctx ends. An error is that of the terminal, or of a Target that there is not.
func Run(ctx context.Context, o Options) (Left, error) {
	ctx, gone := context.WithCancel(ctx)
	defer gone() // and with it all that still waits or asks
	m := New(ctx, o)
	if o.Target != "" {
		if err := findTarget(m, ctx, o.Target); err != nil {
			return Left{}, err
		}
	}
	in := o.In
	if f, ok := in.(*os.File); ok {
		in = tui.Hangup(f, gone)
	}
	out := o.Out
	terminal, ok := out.(*os.File)
	if ok {
		m.drawing = newDrawing(terminal)
		if rewraps(o.Environ) {
			m.term = newRewrapping(terminal)
			m.drawing.file = m.term
		}
		out = m.drawing
	}
	p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithEnvironment(o.Environ),
		tea.WithFPS(60), tea.WithFilter(settle), tea.WithColorProfile(colorprofile.ANSI))
	_, err := p.Run()
	if m.term != nil {
		m.term.leave()
	}
	if terminal != nil {
		for _, l := range m.out.lines { // which were held back
			_, _ = fmt.Fprintln(terminal, l)
		}
	}
	left := Left{Name: addressOf(m), Working: m.phase == working}
	if errors.Is(err, tea.ErrInterrupted) || ctx.Err() != nil {
		err = nil
	}
	return left, err
}

// New returns the conversation at its start. Nothing is asked before it runs.
func New(ctx context.Context, o Options) *Model {
	m := &Model{o: o, ctx: ctx, src: o.Source, t: o.Theme, now: time.Now, after: later(ctx), w: 80, h: 24}
	m.md.t, m.given = m.t, o.Given
	lookBeside(m)
	m.ed.history, m.ed.place = o.History, len(o.History)
	m.resize(80, 24)
	return m
}

// later returns the command that says msg after d; what waits ends with ctx.
func later(ctx context.Context) func(time.Duration, tea.Msg) tea.Cmd {
	return func(d time.Duration, msg tea.Msg) tea.Cmd {
		return func() tea.Msg {
			t := time.NewTimer(d)
			defer t.Stop()
			select {
			case <-t.C:
				return msg
			case <-ctx.Done():
				return nil
			}
		}
	}
}
