package cli

import (
	"context"

	"github.com/spf13/cobra"

	"rnix/ipc"
)

func renameCmd(a *app) *cobra.Command {
	var bare bool
	c := &cobra.Command{
		Use:        "rename PROCESS NAME",
		SuggestFor: []string{"name", "label", "mv"},
		Short:      "give a process another name",
		Long: `Rename gives a process another name: one that runs, is paused or suspended, or has ended. The name is on
disk when the command returns, holds over resumes and restarts of the daemon, and finds the process at
once; the old one finds it no more. --clear takes the name away.

NAME has at most 64 bytes, is no number, and has no slash, no control character and no blank at its ends.
Several processes can have one name; a command refuses such a name, and lists them. A fork has no name
unless its --name gives it one.

A supervisor, a run of a workflow, and the processes that these start have their names from their files:
change them there. For an archived history: rnix unarchive PROCESS first.`,
		Example:           examples(`rnix rename 3 night`, `rnix rename night "night of the long tests"`, `rnix rename --clear night`),
		Annotations:       exits("0 1 2 10 11 12"),
		Args:              func(c *cobra.Command, args []string) error { return renameArgs(c, args, bare) },
		ValidArgsFunction: firstProc(a, true),
		RunE: func(c *cobra.Command, args []string) error {
			req := ipc.RenameRequest{Target: args[0]}
			if !bare {
				req.Name = args[1]
			}
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			return rename(c.Context(), client, a.out, req)
		},
	}
	c.Flags().BoolVar(&bare, "clear", false, "take the name away")
	return c
}

// renameArgs wants a name, unless that is to be taken away.
func renameArgs(c *cobra.Command, args []string, bare bool) error {
	if bare {
		return argsOf(1, 1, process)(c, args)
	}
	if err := argsOf(2, 2, "a process and a name")(c, args); err != nil {
		return err
	}
	if args[1] == "" {
		return usagef("to take the name away: rnix rename --clear PROCESS", "the name is empty")
	}
	return nil
}

// rename gives a process another name.
func rename(ctx context.Context, c *ipc.Client, out *output, req ipc.RenameRequest) error {
	r, err := ipc.Call(ctx, c, ipc.Rename, req)
	if err != nil {
		return err
	}
	if out.json() {
		out.object(&r)
		return nil
	}
	switch {
	case r.Name == r.Was && r.Name == "":
		out.talk("[kernel] PID %s has no name", r.PID)
	case r.Name == r.Was:
		out.talk("[kernel] PID %s has the name %q already", r.PID, r.Name)
	case r.Name == "":
		out.talk("[kernel] PID %s has no name any more; it was %q", r.PID, r.Was)
	case r.Was == "":
		out.talk("[kernel] PID %s is now %q", r.PID, r.Name)
	default:
		out.talk("[kernel] PID %s is now %q; it was %q", r.PID, r.Name, r.Was)
	}
	for _, w := range r.Warnings {
		out.warn(w)
	}
	return nil
}
