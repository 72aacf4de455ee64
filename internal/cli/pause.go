package cli

import (
	"github.com/spf13/cobra"

	"rnix/types"
)

func pauseCmd(a *app) *cobra.Command {
	var subtree bool
	c := &cobra.Command{
		Use:   "pause PROCESS...",
		Short: "pause processes, until they are resumed",
		Long: `Pause stops a process before its next action: nothing is lost, its clock is stopped, and commands
that it has started are frozen. A model call that is under way is cut off and is made again when the
process is resumed; an answer that is there counts.

One process is meant, and what it has started continues; with --subtree all below it are paused too, wherever
they lie. A pause is on disk at once. It holds over restarts of the daemon, and ends with: rnix resume`,
		Example:           examples(`rnix pause 3`, `rnix pause --subtree night`),
		Annotations:       exits("0 1 2 10 11 12"),
		Args:              argsOf(1, -1, process),
		ValidArgsFunction: completeProcs(a, false),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := a.running(c.Context(), args[0])
			if err != nil {
				return err
			}
			return signalAll(c.Context(), client, a.out, args, types.SIGPAUSE, subtree)
		},
	}
	c.Flags().BoolVarP(&subtree, "subtree", "t", false, "the descendants too")
	return c
}
