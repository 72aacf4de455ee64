package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"rnix/ipc"
)

func rmCmd(a *app) *cobra.Command {
	o := &rmOptions{app: a}
	c := &cobra.Command{
		Use:        "rm PROCESS...",
		SuggestFor: []string{"remove", "delete", "forget", "erase"},
		Short:      "delete histories for good",
		Long: `Rm deletes the history of each process for good: its record, the outputs that it kept, its snapshots, and its
own directory or git worktree. Archived histories are deleted too. Work in its directory that is nowhere else
is rescued first, and rm prints how to get it back; branches with commits of their own stay. One line remains,
in deleted.jsonl, which says that it was there.

It refuses a process that runs or is suspended (end it with: rnix kill), one that is marked by rnix keep, and
one that a living process was forked from or descends from. It asks before it deletes; without a terminal
--force is needed.

To archive or delete all that is old or too much, use: rnix gc.`,
		Example:           examples(`rnix rm night`, `rnix rm --dry-run 3 4`, `rnix rm --force 0191f3a2-7c3e`),
		Annotations:       exits("0 1 2 10 11 12"),
		Args:              argsOf(1, -1, process),
		ValidArgsFunction: completeProcs(a, true),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			var first error
			for _, target := range args {
				first = firstError(a.out, first, o.remove(c.Context(), client, target, time.Now()), len(args) > 1)
			}
			return first
		},
	}
	c.Flags().BoolVarP(&o.force, "force", "f", false, "delete without asking")
	c.Flags().BoolVarP(&o.dryRun, "dry-run", "n", false, "only show what would be deleted")
	return c
}

// rmOptions are the flags of rm.
type rmOptions struct {
	app           *app
	force, dryRun bool
}

// remove deletes one history, after it has asked.
func (o *rmOptions) remove(ctx context.Context, c *ipc.Client, target string, now time.Time) error {
	out := o.app.out
	if o.dryRun || !o.force {
		r, err := ipc.Call(ctx, c, ipc.Remove, ipc.RemoveRequest{Target: target, DryRun: true})
		if err != nil {
			return err
		}
		if o.dryRun {
			if out.json() {
				out.object(&r)
				return nil
			}
			out.talk("%s would be deleted for good", rmName(&r, now))
			return nil
		}
		yes, asked := o.app.confirm("delete " + rmName(&r, now) + " for good?")
		switch {
		case !asked:
			return usagef("delete it without being asked with: rnix rm --force "+target, "%s would be deleted for good, and there is no terminal to ask on", rmName(&r, now))
		case !yes:
			out.talk("nothing was deleted")
			return leave(ExitError)
		}
	}
	r, err := slowly(ctx, c, out, ipc.Remove, ipc.RemoveRequest{Target: target}, "deleting")
	if err != nil {
		return err
	}
	if out.json() {
		out.object(&r)
		return nil
	}
	out.talk("deleted %s %s freed", rmName(&r, now), size(r.Bytes))
	if r.Rescued != "" {
		out.talk("its work is kept: %s", lines(r.Rescued))
	}
	if r.Warning != "" {
		out.warn(r.Warning)
	}
	return nil
}

// rmName names a history, with its intent and its age, so that a person sees that it is the one that is meant.
func rmName(r *ipc.RemoveResponse, now time.Time) string {
	where := ""
	if r.Archived {
		where = " and is archived"
	}
	return fmt.Sprintf("%s, %q, which ended %s ago%s,", historyName(&r.HistoryRef), cut(oneLine(r.Intent), 50), longAge(now.Sub(r.DeadAt)), where)
}
