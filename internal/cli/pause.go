package cli

import (
	"github.com/spf13/cobra"

	"rnix/types"
)

func pauseCmd(a *app) *cobra.Command {
	return gateCmd(a, types.SIGPAUSE, &cobra.Command{
		Use:   "pause PROCESS...",
		Short: "pause processes before their next model call or action",
		Long: `Pause stops a process before its next model call or action: nothing is lost, its clock stands still,
and commands that it has started are frozen. A model call that is under way is finished first.`,
		Example: examples(`rnix pause 3`, `rnix pause --subtree night`),
	})
}

func resumeCmd(a *app) *cobra.Command {
	return gateCmd(a, types.SIGRESUME, &cobra.Command{
		Use:   "resume PROCESS...",
		Short: "let paused processes go on",
		Long: `Resume lets a process that was paused go on where it stopped. One that is suspended on disk, because
the daemon was stopped, cannot go on yet: what it has done can be seen with log, steps and strace.`,
		Example: examples(`rnix resume 3`, `rnix resume --subtree night`),
	})
}

// gateCmd completes a command that sends one signal.
func gateCmd(a *app, sig types.Signal, c *cobra.Command) *cobra.Command {
	var subtree bool
	c.Flags().BoolVarP(&subtree, "subtree", "t", false, "the descendants too")
	c.Annotations = exits("0 1 2 10 11 12")
	c.Args = argsOf(1, -1, process)
	c.ValidArgsFunction = completeProcs(a, false)
	c.RunE = func(c *cobra.Command, args []string) error {
		client, err := a.running(c.Context(), args[0])
		if err != nil {
			return err
		}
		return signalAll(c.Context(), client, a.out, args, sig, subtree)
	}
	return c
}
