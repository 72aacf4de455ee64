package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"rnix/debug"
	"rnix/internal/event"
	"rnix/types"
)

// categories are the kinds of log lines.
func categories() []string { return []string{"think", "tool", "output", "warning"} }

func logCmd(a *app) *cobra.Command {
	var follow, tree bool
	var category []string
	c := &cobra.Command{
		Use:        "log [PROCESS]",
		Aliases:    []string{"logs"},
		SuggestFor: []string{"tail", "attach"},
		Short:      "show what an agent thinks, says and reads",
		Long: `Log shows the log of a process, alive or dead: what it thinks, what its model says, what its tools
print, and how it ended if that was no success. Without a process it shows those of all that are alive.
With -f it goes on until the process ends or you press Ctrl+C, which only ends the looking.`,
		Example:           examples(`rnix log 3`, `rnix log -f night`, `rnix log 3 --category tool,warning`, `rnix log --json 0191f3a2`),
		Annotations:       exits("0 1 2 10 12 130"),
		Args:              argsOf(0, 1, ""),
		ValidArgsFunction: onlyFirst(completeProcs(a, true)),
		RunE: func(c *cobra.Command, args []string) error {
			for _, name := range category {
				if !slices.Contains(categories(), name) {
					return usagef("", "--category %q is none of %s", name, strings.Join(categories(), ", "))
				}
			}
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			req := about(args, follow, tree)
			req.Kinds = []event.Kind{event.LogLine, event.Exited}
			wants := func(e *event.Event) bool {
				name := e.Name
				if e.Kind == event.Exited {
					if name = "warning"; e.Exit == nil || e.Exit.Code == 0 {
						return false
					}
				}
				return len(category) == 0 || slices.Contains(category, name)
			}
			return showEvents(c.Context(), client, a.out, req, wants, func(e *event.Event) string { return logLine(&a.out.out, e) })
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the process ends")
	c.Flags().BoolVarP(&tree, "tree", "t", false, "the descendants too")
	c.Flags().StringSliceVarP(&category, "category", "c", nil, "only these: "+strings.Join(categories(), ", "))
	_ = c.RegisterFlagCompletionFunc("category", cobra.FixedCompletions(categories(), cobra.ShellCompDirectiveNoFileComp))
	return c
}

// logLine renders a log line, with its category coloured.
func logLine(s *stream, e *event.Event) string {
	l, said := debug.LogEntry(e)
	name := e.Name
	if !said { // it has ended without success, which may be all there is
		name = "warning"
		l = types.LogEntry{Seq: e.Seq, Time: e.Time, PID: e.PID, Category: name, Text: exitText(e.Exit)}
		if e.Result == suspended {
			l.Text = "suspended: " + oneLine(e.Exit.Reason)
		}
	}
	l.Time = l.Time.Local()
	line := debug.LogLine(l)
	st, ok := map[string]style{"think": dim, "tool": cyan, "output": green, "warning": yellow}[name]
	if !ok || !s.color {
		return line
	}
	return strings.Replace(line, "["+name+"]", s.paint(st, "["+name+"]"), 1)
}
