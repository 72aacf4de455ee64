package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"rnix/ipc"
	"rnix/types"
)

func waitCmd(a *app) *cobra.Command {
	var timeout time.Duration
	c := &cobra.Command{
		Use:   "wait PROCESS...",
		Short: "wait for a process to end and show its result",
		Long: `Wait waits until each process has ended, writes its result to standard output, and exits with the
code of the first one that did not complete. Of several, each result has a line above that names its process
(-q leaves it out). Ctrl+C ends the waiting and leaves the process alone.

A daemon that crashes meanwhile is started again, and one that was stopped is waited for (RNIX_DAEMON_WAIT,
default 30s); the processes are found again by their UUIDs.`,
		Example:           examples(`rnix wait 3`, `rnix wait night --timeout 10m`, `pid=$(rnix run -q --detach "..."); rnix wait --json $pid`),
		Annotations:       exits("0 1 2 3 4 5 6 7 8 9 10 12 14 124 130"),
		Args:              argsOf(1, -1, process),
		ValidArgsFunction: completeProcs(a, true),
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("timeout") && timeout < time.Millisecond {
				return usagef("", "--timeout %s: give a time such as 90s or 10m", timeout)
			}
			f, err := connectFollower(c.Context(), a)
			if err != nil {
				return err
			}
			return wait(c.Context(), f, a.out, args, timeout)
		},
	}
	c.Flags().DurationVar(&timeout, "timeout", 0, "give up after this time, such as 30s (exit code 124)")
	return c
}

// wait waits for the targets one after the other. The timeout is for all of them.
func wait(ctx context.Context, f *follower, out *output, targets []string, timeout time.Duration) error {
	var until time.Time
	if timeout > 0 {
		until = time.Now().Add(timeout)
	}
	var first error
	headed := false
	procs := f.identify(ctx, targets)
	for i := range procs {
		r, err := f.wait(ctx, &procs[i], until)
		switch {
		case err == nil && stopped(&r):
			err = showSuspended(out, r.PID, r.UUID, &waited{r: r}, whySuspended(ctx, f.client, r.UUID))
		case err == nil && r.Suspended:
			err = showParked(ctx, f.client, out, &r, nil)
		case err == nil:
			if len(targets) > 1 && r.Result != "" {
				headResult(out, r.PID, targets[i], headed)
				headed = true
			}
			err = showEnd(out, &r, nil, nil, false)
		case types.CodeOf(err) == types.ErrTimeout && timeout > 0:
			err = withMend(types.Errorf(types.ErrTimeout, "Wait", targets[i], "it has not ended within %s", timeout), stillThere(ctx, f.client, targets[i]))
		}
		first = firstError(out, first, err, len(targets) > 1)
	}
	return first
}

// stillThere says what a process does that has not ended in time, and what helps.
func stillThere(ctx context.Context, c *ipc.Client, target string) string {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	p, err := ipc.Call(ctx, c, ipc.GetProcDetail, ipc.TargetRequest{Target: target})
	switch {
	case err != nil:
		return "see: rnix ps"
	case p.Why() == types.SuspendAsk:
		return "it waits for an answer; see: rnix asks"
	case p.State == suspended:
		return "it is suspended" + with(": ", oneLine(p.Wait)) + "; see: rnix ps"
	}
	return "it still works; see: rnix ps"
}

// headResult says whose the following result is, as head and tail do for files.
func headResult(out *output, pid types.PID, target string, further bool) {
	if out.format != asText || out.quiet {
		return
	}
	if further {
		out.print("\n")
	}
	name := ""
	if target != pid.String() {
		name = " (" + oneLine(target) + ")"
	}
	out.print(out.out.paint(bold, "==> PID "+pid.String()+name+" <==") + "\n")
}

// whySuspended returns why a history is suspended on disk; "" if nothing can be said.
func whySuspended(ctx context.Context, c *ipc.Client, id types.UUID) string {
	p, err := ipc.Call(ctx, c, ipc.GetProcDetail, ipc.TargetRequest{Target: id.String()})
	if err != nil {
		return ""
	}
	return oneLine(p.Wait)
}

// firstError keeps the first of several errors, and says the others when they come.
func firstError(out *output, first, err error, several bool) error {
	if err == nil {
		return first
	}
	if several && errorText(err) != "" {
		out.fail(err)
		err = leave(exitCode(err))
	}
	if first == nil {
		return err
	}
	return first
}
