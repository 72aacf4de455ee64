package cli

import (
	"context"

	"github.com/spf13/cobra"

	"rnix/internal/tui"
	"rnix/runtime/statehome"
	"rnix/types"
)

func topCmd(app *app) *cobra.Command {
	a := screenCommand{app}
	var all, once bool
	n := 0
	c := &cobra.Command{
		Use:        "top",
		SuggestFor: []string{"htop", "monitor", "watch"},
		Short:      "watch processes in a live table: what each does, waits for and costs",
		Long: `Top shows the processes that are alive or suspended, each below its parent, and follows what happens: state
or what is waited for, step, the tool in hand and since when, tokens, cost, time (which does not count
pauses), and what it has started in the operating system with its memory. Keys sort, filter, pause,
resume and end; ? shows them all. Enter opens the dashboard. Below the table stands what the chosen process
has used together with its descendants, and with all forks of one start; in a printed table, what each has. So
does how many calls the providers that are in use run and how many wait: rnix providers says what limits them.

Without a terminal, and with --once, it prints one table and ends; -n prints several, each when something has
changed, at most one in a second. With --json it is one line for each process, as in: rnix ps --json`,
		Example:     examples(`rnix top`, `rnix top --once | head`, `rnix top -n 1 --json | jq -r .pid`),
		Annotations: exits("0 1 2 12"),
		Args:        noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			switch set := c.Flags().Changed("iterations"); {
			case set && n < 1:
				return usagef("", "-n %d is no number of tables", n)
			case once && set && n != 1:
				return usagef("", "--once is -n 1, and -n %d was asked for", n)
			case a.out.json() && n > 1:
				return usagef("", "--json answers with one table")
			case once || !set && (a.out.json() || !a.fullScreen()):
				n = 1
			}
			if n == 0 {
				return a.screen(c.Context(), tui.Options{Top: true, All: all})
			}
			return a.tables(c.Context(), all, n)
		},
	}
	f := c.Flags()
	f.BoolVarP(&all, "all", "a", false, "also those that have ended")
	f.BoolVar(&once, "once", false, "print one table and end")
	f.IntVarP(&n, "iterations", "n", 0, "print so many tables and end")
	return c
}

// screenCommand is a command that fills the terminal.
type screenCommand struct{ *app }

// tables prints tables of top.
func (a screenCommand) tables(ctx context.Context, all bool, n int) error {
	client, err := a.find(ctx)
	if err == nil && client == nil && all {
		client, err = a.connect(ctx)
	}
	if err != nil {
		return err
	}
	if client == nil {
		a.out.talk("no daemon is running, so no process is; rnix top -a shows those on disk")
		return nil
	}
	src := tui.NewSource(client)
	if a.out.json() {
		t, err := tui.First(ctx, src, all)
		if err != nil {
			return err
		}
		for i := range t.Procs {
			a.out.object(&procAt{&t.Procs[i], t.Seq, nil})
		}
		return nil
	}
	return tui.Print(ctx, a.out.out.w, src, a.theme(), all, a.out.out.width, n)
}

// theme is how full screens are drawn.
func (a screenCommand) theme() *tui.Theme {
	t := tui.NewTheme(a.env)
	t.Color, t.Bare = a.out.out.color, !a.out.out.terminal && !a.out.out.color
	return t
}

// fullScreen reports whether there is a terminal for programs that fill it.
func (a screenCommand) fullScreen() bool {
	return a.out.out.terminal && terminal(a.host.In) && a.getenv("TERM") != "dumb"
}

// screen runs a program that fills the terminal. It starts the daemon if none runs.
func (a screenCommand) screen(ctx context.Context, o tui.Options) error {
	if !a.fullScreen() {
		return withMend(types.Errorf(types.ErrInvalid, "", "", "this needs a terminal"), "rnix top --once, rnix ps and rnix log print to a pipe")
	}
	p, err := a.places()
	if err != nil {
		return err
	}
	a.noDashboard = true
	client, err := a.connect(ctx)
	if err != nil {
		return err
	}
	a.filled.Store(true)
	a.out.quiet = true // nobody else writes to the terminal from now on
	o.Source, o.In, o.Out, o.Environ, o.Env, o.Theme = tui.NewSource(client), a.host.In, a.host.Out, a.host.Environ, a.env, a.theme()
	o.State = statehome.UIState(p.DataDir)
	return tui.Run(ctx, o)
}
