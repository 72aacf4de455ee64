package cli

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"rnix/ipc"
	"rnix/types"
)

func steerCmd(a *app) *cobra.Command {
	req := ipc.SendRequest{}
	var timeout time.Duration
	var noWait bool
	var attach []string
	c := &cobra.Command{
		Use:        "steer PROCESS TEXT",
		SuggestFor: []string{"say", "instruct", "nudge"},
		Short:      "say something to a running agent, as the person whom it works for",
		Long: `Steer gives an agent a new instruction while it works. It reaches the agent before its next prompt, and
before messages of others; a tool call or an answer that is under way is not cut off. An agent that is
about to finish gets it first, and continues.

The command returns when the agent has got it; --no-wait returns when it is on disk. One that is paused or
suspended gets it when it is resumed (exit code 9), also after restarts of the daemon. To one that has ended,
say something with: rnix resume --new-input

--attach shows an image or a PDF with it, to a model that takes them.`,
		Example: examples(`rnix steer 3 "Leave the tests alone, and look at main.go only"`, `rnix steer night - < notes.txt`, `rnix steer --no-wait 3 "Hurry"`,
			`rnix steer 3 --attach shot.png "It looks like this now"`),
		Annotations:       exits("0 1 2 9 10 11 12 124"),
		Args:              argsOf(2, 2, "a process and a text"),
		ValidArgsFunction: firstProc(a, false),
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkTimeout(c, timeout); err != nil {
				return err
			}
			began := time.Now()
			client, err := a.prepareSend(c, args, &req, attach, timeout)
			if err != nil {
				return err
			}
			r, err := ipc.Call(c.Context(), client, ipc.Steer, req)
			if err != nil {
				return err
			}
			if noWait {
				if a.out.json() {
					a.out.object(r)
				}
				a.out.talk("[kernel] message %d for PID %d is on disk", r.Seq, r.PID)
				return nil
			}
			return a.awaitDelivery(c.Context(), client, &r, began, timeout)
		},
	}
	f := c.Flags()
	attachFlag(c, &attach)
	f.BoolVar(&noWait, "no-wait", false, "do not wait until the agent has got it")
	f.DurationVar(&timeout, "timeout", 0, "wait no longer than this, such as 30s (exit code 124); the agent gets it all the same")
	return c
}

// deliveryPoll is how long one call waits for a delivery: then it is looked what the agent is doing.
const deliveryPoll = 2 * time.Second

// awaitDelivery waits until an agent has got a message, and says meanwhile what it waits for.
func (a *app) awaitDelivery(ctx context.Context, c *ipc.Client, sent *ipc.SendResponse, began time.Time, timeout time.Duration) error {
	said := ""
	for {
		poll := deliveryPoll
		if timeout > 0 {
			poll = max(min(poll, time.Until(began.Add(timeout))), 0)
		}
		r, err := ipc.Call(ctx, c, ipc.Delivered, ipc.DeliveredRequest{Target: sent.UUID.String(), Seq: sent.Seq, TimeoutMs: poll.Milliseconds()})
		if err != nil {
			return err
		}
		if a.out.json() && (r.Delivered || r.State != "running") {
			a.out.object(r)
		}
		switch {
		case r.Delivered:
			a.out.talk("[kernel] PID %d has got it", r.PID)
			return nil
		case r.State == suspended:
			a.out.talk("[kernel] PID %d is suspended: %s", r.PID, orNot(oneLine(r.Wait)))
			a.out.talk("  it gets the message when it is resumed: rnix resume %d", r.PID)
			return leave(ExitSuspended)
		case r.State != "running":
			return withMend(types.Errorf(types.ErrBrokenPipe, "Steer", cmp.Or(oneLine(sent.Name), "PID "+sent.PID.String()), "the process ended before it got the message"),
				fmt.Sprintf("it gets it if it is resumed: rnix resume %s", sent.UUID))
		case timeout > 0 && time.Since(began) >= timeout:
			return withMend(types.Errorf(types.ErrTimeout, "Steer", cmp.Or(oneLine(sent.Name), "PID "+sent.PID.String()), "the agent has not got it within %s", timeout), "it is kept, and the agent gets it before its next prompt")
		}
		if now := fmt.Sprintf("PID %d gets it after step %d", r.PID, r.Step); now != said {
			first := said == ""
			said = now
			if r.Wait != "" {
				now += " (" + oneLine(r.Wait) + ")"
			}
			a.out.talk("[kernel] %s", now)
			if first {
				a.out.talk("  Ctrl+C ends the waiting, and the message is kept; next time, without waiting: rnix steer --no-wait %d TEXT", r.PID)
			}
		}
	}
}

func orNot(s string) string {
	if s == "" {
		return "nothing runs for it"
	}
	return s
}
