package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"rnix/ipc"
	"rnix/types"
)

func killCmd(a *app) *cobra.Command {
	var sig string
	var subtree, list bool
	var groups []string
	c := &cobra.Command{
		Use:        "kill [-SIGNAL] [-g GROUP] PROCESS...",
		SuggestFor: []string{"stop", "cancel", "end", "terminate"},
		Short:      "send a signal to processes",
		Long: `Kill sends a signal, SIGTERM if none is named, to each process, and with -g to each member of a group.

  TERM (15)    end before the next action, unless its agent blocks it; everything until then is on record
  KILL (9)     end at once
  INT (2)      as TERM; an agent with on_interrupt is told that text instead, once until it has read it
  PAUSE (19)   stop before the next action (see: rnix pause)
  RESUME (18)  go on, if it is only paused (see: rnix resume)

A process that is suspended on disk is ended there; one that is about to be resumed automatically
is not.

Names may be written TERM, SIGTERM, -TERM or --signal TERM; numbers are those of Linux.`,
		Example:           examples(`rnix kill 3`, `rnix kill -9 night`, `rnix kill -TERM --subtree 0191f3a2`, `rnix kill -PAUSE -g night`, `rnix kill -l`),
		Annotations:       exits("0 1 2 10 11 12"),
		ValidArgsFunction: completeProcs(a, false),
		RunE: func(c *cobra.Command, args []string) error {
			if list {
				a.out.print("TERM KILL INT PAUSE RESUME\n")
				return nil
			}
			s, err := types.ParseSignal(sig)
			if err != nil {
				return usagef("", "%w", err)
			}
			if len(args)+len(groups) == 0 {
				return usagef("see: rnix ps, rnix group ls", "name the processes to signal, or with -g their group")
			}
			client, err := a.running(c.Context(), slices.Concat(args, groups)[0])
			if err != nil {
				return err
			}
			err = signalGroups(c.Context(), client, a.out, groups, s, subtree)
			if len(args) > 0 {
				err = firstError(a.out, nil, err, true)
				err = firstError(a.out, err, signalAll(c.Context(), client, a.out, args, s, subtree), len(groups) > 0)
			}
			return err
		},
	}
	c.Flags().StringVarP(&sig, "signal", "s", "TERM", "the signal, by name or number")
	c.Flags().StringArrayVarP(&groups, "group", "g", nil, "the members of this `GROUP`; may be repeated")
	c.Flags().BoolVarP(&subtree, "subtree", "t", false, "the descendants too")
	c.Flags().BoolVarP(&list, "list", "l", false, "list the signals")
	_ = c.RegisterFlagCompletionFunc("group", completeGroups(a))
	_ = c.RegisterFlagCompletionFunc("signal", cobra.FixedCompletions([]string{"TERM", "KILL", "INT", "PAUSE", "RESUME"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// running returns a client of a daemon that runs: without one there is no living process, and none
// is started to find that out.
func (a *app) running(ctx context.Context, target string) (*ipc.Client, error) {
	c, err := a.find(ctx)
	if err == nil && c == nil {
		err = withMend(types.Errorf(types.ErrNotFound, "Find", target, "no daemon is running, so no process is"), "see what is on disk with: rnix ps -a")
	}
	return c, err
}

// signalAll sends a signal to each target, also after one has failed.
func signalAll(ctx context.Context, c *ipc.Client, out *output, targets []string, sig types.Signal, subtree bool) error {
	method := ipc.Signal
	if subtree {
		method = ipc.SignalTree
	}
	var first error
	for _, target := range targets {
		r, err := ipc.Call(ctx, c, method, ipc.SignalRequest{Target: target, Signal: sig})
		if types.CodeOf(err) == types.ErrNotFound {
			err = notRunning(ctx, c, target, sig, err)
		}
		if err == nil {
			if out.json() {
				out.object(r)
			}
			also := ""
			if r.Affected > 1 && (subtree || r.Stored) {
				also = " and " + plural(r.Affected-1, "descendant", "descendants")
			}
			switch {
			case r.Stored && sig == types.SIGPAUSE:
				out.talk("[kernel] paused on disk: PID %d%s", r.PID, also)
			case r.Stored:
				out.talk("[kernel] ended on disk (%s): PID %d%s", sig, r.PID, also)
			default:
				out.talk("[kernel] %s sent to PID %d%s", sig, r.PID, also)
				stands(out, &r, sig)
			}
			if len(r.Working) > 0 {
				out.talk("[kernel] below it %s at work: %s; pause them all with: rnix pause --subtree %d", stay(len(r.Working)), namedPIDs(r.Working), r.PID)
			}
		}
		first = firstError(out, first, err, len(targets) > 1)
	}
	return first
}

// stands says that a process goes on after a signal that ends others.
func stands(out *output, r *ipc.SignalResponse, sig types.Signal) {
	switch {
	case r.Blocked:
		out.talk("[kernel] PID %d blocks %s and works on; end it with: rnix kill -KILL %d", r.PID, sig, r.PID)
	case r.Handled:
		out.talk("[kernel] PID %d is told of the interrupt (on_interrupt) and works on; end it with: rnix kill -KILL %d", r.PID, r.PID)
	}
}

// notRunning adds to the error about a signal what can be done with a process that is only on disk.
func notRunning(ctx context.Context, c *ipc.Client, target string, sig types.Signal, err error) error {
	p, perr := ipc.Call(ctx, c, ipc.GetProcDetail, ipc.TargetRequest{Target: target})
	switch {
	case perr != nil:
		return err
	case sig == types.SIGRESUME:
		return withMend(err, fmt.Sprintf("resume what is only on disk with: rnix resume %d", p.PID))
	case p.State == suspended:
		return withMend(err, fmt.Sprintf("it does nothing until it is resumed; what it has done is shown by: rnix steps %d", p.PID))
	}
	return withMend(err, fmt.Sprintf("how that came about is shown by: rnix wait %d, rnix steps %d", p.PID, p.PID))
}
