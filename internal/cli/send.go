package cli

import (
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"rnix/ipc"
	"rnix/types"
)

func sendCmd(a *app) *cobra.Command {
	req := ipc.SendRequest{}
	var timeout time.Duration
	var attach []string
	c := &cobra.Command{
		Use:        "send PROCESS TEXT",
		SuggestFor: []string{"message", "mail", "tell"},
		Short:      "send a message to an agent: data that it gets before its next prompt",
		Long: `Send puts a message into the mailbox of an agent and returns when it is on disk. The agent gets it before
its next prompt, marked as data that the sender has sent and not as an instruction: to tell an agent what to
do, use rnix steer. A suspended agent gets it when it is resumed, also after restarts of the daemon; one
that has ended gets none.

A message has at most 1 MiB; "-" reads it from standard input. --attach shows images and PDFs with it. A full
mailbox is an error, or with --wait-room is waited for. Inside an agent, the message is the agent's: it needs
the right to /sys/send, and reaches the agents that were started together with it.`,
		Example:           examples(`rnix send 3 "The build is at /tmp/build"`, `make 2>&1 | rnix send night -`, `rnix send --wait-room --timeout 1m 3 "next"`),
		Annotations:       exits("0 1 2 10 11 12 124"),
		Args:              argsOf(2, 2, "a process and a text"),
		ValidArgsFunction: firstProc(a, false),
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkTimeout(c, timeout); err != nil {
				return err
			}
			client, err := a.prepareSend(c, args, &req, attach, timeout)
			if err != nil {
				return err
			}
			r, err := ipc.Call(c.Context(), client, ipc.Send, req)
			if err != nil {
				return fullMailbox(err, req.Target)
			}
			if a.out.json() {
				a.out.object(r)
			}
			when := ""
			if r.State == suspended {
				when = "; it is suspended, and gets it when it is resumed"
			}
			a.out.talk("[kernel] message %d sent to PID %d%s", r.Seq, r.PID, when)
			return nil
		},
	}
	f := c.Flags()
	attachFlag(c, &attach)
	f.BoolVar(&req.WaitRoom, "wait-room", false, "wait for room if the mailbox is full")
	f.DurationVar(&timeout, "timeout", 0, "give up after this time, such as 30s (exit code 124)")
	f.StringVar(&req.Key, "key", "", "a name for this message: what is sent again with it is not put in again")
	return c
}

// checkTimeout refuses a time limit that cannot be meant.
func checkTimeout(c *cobra.Command, timeout time.Duration) error {
	if c.Flags().Changed("timeout") && timeout < time.Millisecond {
		return usagef("", "--timeout %s: give a time such as 90s or 10m", timeout)
	}
	return nil
}

// prepareSend reads the message and connects. Processes on disk get messages too, so a daemon is started.
func (a *app) prepareSend(c *cobra.Command, args []string, req *ipc.SendRequest, attach []string, timeout time.Duration) (_ *ipc.Client, err error) {
	req.Target, req.Text, req.TimeoutMs = args[0], args[1], timeout.Milliseconds()
	if req.Text == "-" {
		data, err := a.stdin("the message", maxInput)
		if err != nil {
			return nil, err
		}
		req.Text = string(data)
	}
	switch {
	case len(req.Text) > maxInput:
		return nil, usagef("put it into a file and send its name", "the message has more than 1 MiB")
	case !utf8.ValidString(req.Text):
		return nil, usagef("put it into a file and send its name", "the message is not UTF-8")
	}
	if req.Attachments, err = attachments(a, attach); err != nil {
		return nil, err
	}
	return a.connect(c.Context())
}

// fullMailbox adds what can be done about a full mailbox.
func fullMailbox(err error, target string) error {
	if types.CodeOf(err) == types.ErrExhausted {
		return withMend(err, "wait until the agent has taken some of its messages with: rnix send --wait-room "+shellWord(target)+" TEXT")
	}
	return err
}

// firstProc offers processes as the first argument, with ended ones if those can be meant too.
func firstProc(a *app, ended bool) completer {
	procs := completeProcs(a, ended)
	return func(c *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return procs(c, args, typed)
	}
}
