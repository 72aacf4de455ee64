package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"rnix/ipc"
)

func unarchiveCmd(a *app) *cobra.Command {
	noFiles := false
	cmd := &cobra.Command{
		Use:        "unarchive UUID...",
		SuggestFor: []string{"restore", "undelete", "unpack", "recover"},
		Short:      "put archived histories back",
		Long: `Unarchive puts histories back that garbage collection has archived, with all that was in them, and
removes their archives. Everything can be done with them again: steps, log, resume. They are kept for
gc.retention_days from now on, as if they had just ended.

The directory of a fork and the git worktree of a process are put back first, as they were: with what is not
committed, on their branch. If that fails, because something has taken the place, the repository is gone or
the branch was moved, the history stays archived; the error says what to do and how to get the files.

What is archived is shown by: rnix ps -a. One can also be named by the beginning or end of its UUID, by
the PID of its last run, or by its name.`,
		Example:           examples(`rnix unarchive 0191f3a2-7c3e`, `rnix ps -a --json | jq -r 'select(.state=="archived").uuid' | xargs rnix unarchive`),
		Annotations:       exits("0 1 2 10 11 12"),
		Args:              argsOf(1, -1, "an archived history: its UUID or the beginning or end of that"),
		ValidArgsFunction: completeArchived(a),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			var first error
			for _, target := range args {
				first = firstError(a.out, first, unarchive(c.Context(), client, a.out, ipc.UnarchiveRequest{Target: target, NoFiles: noFiles}), len(args) > 1)
			}
			return first
		},
	}
	cmd.Flags().BoolVar(&noFiles, "no-files", false, "give up a directory or git worktree that cannot be put back; the work in it stays as a rescue")
	return cmd
}

// unarchive puts one history back.
func unarchive(ctx context.Context, c *ipc.Client, out *output, req ipc.UnarchiveRequest) error {
	r, err := slowly(ctx, c, out, ipc.Unarchive, req, "unpacking")
	if err != nil {
		return err
	}
	if out.json() {
		out.object(&r)
		return nil
	}
	until := ""
	if !r.KeptUntil.IsZero() {
		until = "; it is kept until " + r.KeptUntil.Local().Format(time.DateOnly)
	}
	out.talk("%s is back in %s%s", historyName(&r.HistoryRef), oneLine(r.Dir), until)
	switch {
	case r.Said == "":
	case req.NoFiles:
		out.talk("its work is kept: %s", lines(r.Said))
	default:
		out.talk("%s", lines(r.Said))
	}
	return nil
}

// archived is what a history in an archive is called. Part of the wire format.
const archived = "archived"

// completeArchived offers the UUIDs of archived histories.
func completeArchived(a *app) completer {
	return completing(a, func(ctx context.Context, c *ipc.Client) []cobra.Completion {
		r, err := ipc.Call(ctx, c, ipc.ListProcs, ipc.ListRequest{All: true})
		if err != nil {
			return nil
		}
		var out []cobra.Completion
		for i := range r.Procs {
			if p := &r.Procs[i]; p.State == archived {
				out = append(out, cobra.CompletionWithDesc(p.UUID.String(), "PID "+p.PID.String()+": "+cut(oneLine(p.Intent), 50)))
			}
		}
		return out
	})
}
