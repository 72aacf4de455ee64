package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"rnix/ipc"
)

func compactCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:        "compact PROCESS [WORDS...]",
		SuggestFor: []string{"summarize", "summarise", "shorten"},
		Short:      "have the model of a process sum up its conversation",
		Long: `Compact makes the conversation of an agent shorter: before its next question its model writes a summary,
which takes the place of all but the last turn. WORDS say what is to be kept above all. The same happens
without a command when 80 % of the model's window are used.

The first messages, the instructions, the skills, the plan and the files that were read last stay, as far
as there is room. The summary costs a call of the model, within the budget. If the call fails, or the
budget has no room for it, the oldest messages are left out instead. The history keeps all of them:
rnix steps shows what was sent before, and rnix resume --fork goes back to it.

A process that does not run compacts its conversation when it is resumed. Agent CLIs (--harness) keep
their conversation themselves.`,
		Example:           examples(`rnix compact 3`, `rnix compact night "the names of the tables"`, `rnix ctx 3`),
		Annotations:       exits("0 1 2 10 11 12"),
		Args:              argsOf(1, -1, "a process"),
		ValidArgsFunction: firstProc(a, true),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			return compactProcess(c.Context(), client, a.out, ipc.CompactRequest{Target: args[0], Focus: strings.Join(args[1:], " ")})
		},
	}
}

func compactProcess(ctx context.Context, c *ipc.Client, out *output, req ipc.CompactRequest) error {
	r, err := ipc.Call(ctx, c, ipc.Compact, req)
	switch {
	case err != nil:
		return err
	case out.json():
		out.object(&r)
	case r.Running:
		out.talk("[kernel] PID %s compacts its conversation before its next question", r.PID)
	default:
		out.talk("[kernel] PID %s compacts its conversation when it is resumed", r.PID)
	}
	return nil
}
