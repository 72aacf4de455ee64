package cli

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rnix/debug"
	"rnix/internal/event"
)

func straceCmd(a *app) *cobra.Command {
	var follow, tree, all bool
	c := &cobra.Command{
		Use:   "strace [PROCESS]",
		Short: "show the syscalls of a process",
		Long: `Strace shows each syscall of a process, alive or dead, with its result and duration, and with the
signals, waits and children between them. Calls that took over a second are marked [slow]. Without a
process it shows those of all that are alive. With -f it goes on until the process ends or you press
Ctrl+C, which only ends the looking.`,
		Example:           examples(`rnix strace 3`, `rnix strace -f night`, `rnix strace -f --tree 3`, `rnix strace --json 3 | jq 'select(.kind=="syscall").name'`),
		Annotations:       exits("0 1 2 10 12 130"),
		Args:              argsOf(0, 1, ""),
		ValidArgsFunction: onlyFirst(completeProcs(a, true)),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			req := about(args, follow, tree)
			if !all {
				req.Kinds = []event.Kind{event.Syscall, event.Spawned, event.Signalled, event.Paused, event.Resumed, event.Waiting, event.Messaged, event.Delivered,
					event.Exited, event.Mounted, event.Unmounted, event.StorageError, event.Lag}
			}
			return showEvents(c.Context(), client, a.out, req, nil, func(e *event.Event) string { return straceLine(&a.out.out, e) })
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the process ends")
	c.Flags().BoolVarP(&tree, "tree", "t", false, "the descendants too")
	c.Flags().BoolVarP(&all, "all", "a", false, "all events: steps, states and log lines too")
	return c
}

// straceLine renders an event; failures and slow calls stand out.
func straceLine(s *stream, e *event.Event) string {
	e.Time = e.Time.Local()
	line := strings.TrimRight(debug.Line(e), "\n")
	switch {
	case e.Kind != event.Syscall:
		return s.paint(cyan, line)
	case e.Err != "":
		return s.paint(red, line)
	case e.Dur >= time.Second:
		return s.paint(yellow, line)
	}
	return line
}
