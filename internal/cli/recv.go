package cli

import (
	"time"

	"github.com/spf13/cobra"

	"rnix/ipc"
	"rnix/types"
)

func recvCmd(a *app) *cobra.Command {
	var timeout time.Duration
	c := &cobra.Command{
		Use:   "recv [PROCESS]",
		Short: "take the oldest message out of the mailbox of a running agent",
		Long: `Recv takes the oldest message that a running agent has not got yet, waits for one if there is none, and
writes it to standard output: the agent does not get it any more. Inside an agent, without a
process, the mailbox is the agent's own; that of others it cannot take from.`,
		Example:           examples(`rnix recv 3`, `rnix recv --timeout 30s --json`),
		Annotations:       exits("0 1 2 10 11 12 124"),
		Args:              argsOf(0, 1, process),
		ValidArgsFunction: firstProc(a, false),
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkTimeout(c, timeout); err != nil {
				return err
			}
			req := ipc.RecvRequest{TimeoutMs: timeout.Milliseconds()}
			if len(args) > 0 {
				req.Target = args[0]
			}
			client, err := a.running(c.Context(), req.Target)
			if err != nil {
				return err
			}
			if a.out.err.terminal { // it may take long, and nothing else would be seen
				a.out.talk("waiting for a message; Ctrl+C ends that")
			}
			r, err := ipc.Call(c.Context(), client, ipc.Recv, req)
			switch {
			case types.CodeOf(err) == types.ErrTimeout && timeout > 0:
				return types.Errorf(types.ErrTimeout, "Recv", req.Target, "no message has come within %s", timeout)
			case err != nil:
				return err
			case a.out.json():
				a.out.object(r)
			case r.Data != nil:
				a.out.raw(r.Data)
			default:
				a.out.result(r.Text)
			}
			return nil
		},
	}
	c.Flags().DurationVar(&timeout, "timeout", 0, "wait no longer than this, such as 30s (exit code 124)")
	return c
}
