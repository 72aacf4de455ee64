package cli

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"rnix/ipc"
	"rnix/types"
)

const groupArg = "a group, by its number or its name (see: rnix group ls)"

func groupCmd(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "group",
		Short: "process groups, for signals to all of their members",
		Long: `A process group has a number, and a name if it was given one; it exists as long as it has members. A
process can be in several. Memberships end with the run of a process: what is resumed has to join again.
A child is not in the groups of its parent; signals to a group reach descendants with --subtree.`,
		Example: examples(`rnix group new --name night 3 4 5`, `rnix run -d --group night "Review the TODOs"`, `rnix kill -PAUSE -g night`, `rnix group ls`),
	}
	return family(c, groupListCmd(a), groupChangeCmd(a, "join GROUP PROCESS...", "make processes members of a group",
		"Join makes each process a member of the group. A name that no group has makes a new one.",
		[]string{`rnix group join night 3`, `rnix group join 5 first second`}, ipc.JoinGroup),
		groupChangeCmd(a, "leave GROUP PROCESS...", "end memberships",
			"Leave ends the membership of each process. A group without members is gone.",
			[]string{`rnix group leave night 3`}, ipc.LeaveGroup),
		groupNewCmd(a))
}

func groupListCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:         "ls",
		Aliases:     []string{"list"},
		Short:       "list the groups and their members",
		Long:        "Ls lists the groups that have members.",
		Example:     examples(`rnix group ls`, `rnix group ls --json | jq '.members'`),
		Annotations: exits("0 1 2 12"),
		Args:        noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := a.find(c.Context())
			if err != nil {
				return err
			}
			if client == nil {
				a.out.talk("no daemon is running, so there are no groups")
				return nil
			}
			return groupList(c.Context(), client, a.out)
		},
	}
}

func groupList(ctx context.Context, c *ipc.Client, out *output) error {
	r, err := ipc.Call(ctx, c, ipc.ListGroups, ipc.Empty{})
	if err != nil {
		return err
	}
	if out.json() {
		for i := range r.Groups {
			out.object(&r.Groups[i])
		}
		return nil
	}
	if len(r.Groups) == 0 {
		out.talk("there are no groups; rnix group new PROCESS... makes one")
		return nil
	}
	var rows [][]cell
	for i := range r.Groups {
		g := &r.Groups[i]
		rows = append(rows, []cell{text(strconv.FormatUint(uint64(g.ID), 10)), text(dash(oneLine(g.Name))), text(pidList(g.Members))})
	}
	out.table([]column{{name: "GROUP", right: true}, {name: "NAME"}, {name: "MEMBERS"}}, rows)
	return nil
}

func pidList(pids []types.PID) string {
	out := make([]string, len(pids))
	for i, p := range pids {
		out[i] = p.String()
	}
	return strings.Join(out, " ")
}

func groupChangeCmd(a *app, use, short, long string, ex []string, m ipc.Method[ipc.GroupRequest, ipc.Group]) *cobra.Command {
	return &cobra.Command{
		Use:               use,
		Short:             short,
		Long:              long,
		Example:           examples(ex...),
		Annotations:       exits("0 1 2 10 11 12"),
		Args:              argsOf(2, -1, groupArg+", and processes"),
		ValidArgsFunction: groupThenProcs(a),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := a.running(c.Context(), args[1])
			if err != nil {
				return err
			}
			var first error
			for _, target := range args[1:] {
				g, err := ipc.Call(c.Context(), client, m, ipc.GroupRequest{Group: args[0], Target: target})
				if err == nil {
					showGroup(a.out, &g)
				}
				first = firstError(a.out, first, err, len(args) > 2)
			}
			return first
		},
	}
}

func groupNewCmd(a *app) *cobra.Command {
	var name string
	c := &cobra.Command{
		Use:               "new PROCESS...",
		Short:             "make a group of processes and print its number",
		Long:              "New makes a group with a number that no other one had, and prints the number.",
		Example:           examples(`rnix group new 3 4`, `rnix group new --name night 3 4 5`),
		Annotations:       exits("0 1 2 10 11 12"),
		Args:              argsOf(1, -1, process),
		ValidArgsFunction: completeProcs(a, false),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := a.running(c.Context(), args[0])
			if err != nil {
				return err
			}
			req := ipc.GroupRequest{Name: name}
			var g ipc.Group
			var first error
			for _, target := range args {
				req.Target = target
				now, err := ipc.Call(c.Context(), client, ipc.JoinGroup, req)
				if err == nil {
					g, req.Group, req.Name = now, strconv.FormatUint(uint64(now.ID), 10), ""
				}
				if types.CodeOf(err) == types.ErrConflict && g.ID == 0 { // the name: nothing would come of the others
					return err
				}
				first = firstError(a.out, first, err, len(args) > 1)
			}
			switch {
			case g.ID == 0:
			case a.out.json():
				a.out.object(&g)
			default:
				a.out.print(req.Group + "\n")
			}
			return first
		},
	}
	c.Flags().StringVar(&name, "name", "", "a name for it")
	return c
}

func showGroup(out *output, g *ipc.Group) {
	switch {
	case out.json():
		out.object(g)
	case len(g.Members) == 0:
		out.talk("[kernel] group %s has no members any more, and is gone", groupLabel(g))
	default:
		out.talk("[kernel] group %s: %s", groupLabel(g), pidList(g.Members))
	}
}

// groupLabel names a group for people.
func groupLabel(g *ipc.Group) string {
	id := strconv.FormatUint(uint64(g.ID), 10)
	if g.Name == "" {
		return id
	}
	return oneLine(g.Name) + " (" + id + ")"
}

// signalGroups sends a signal to the members of each group.
func signalGroups(ctx context.Context, c *ipc.Client, out *output, names []string, sig types.Signal, subtree bool) error {
	var first error
	for _, name := range names {
		r, err := ipc.Call(ctx, c, ipc.SignalGroup, ipc.GroupSignalRequest{Group: name, Signal: sig, Tree: subtree})
		switch {
		case err != nil:
		case out.json():
			out.object(&r)
		case r.Spared > 0:
			out.talk("[kernel] %s sent to %s of group %s; %s of it are not yours to signal", sig, plural(r.Affected, "process", "processes"), groupLabel(&r.Group), plural(r.Spared, "member", "members"))
		default:
			out.talk("[kernel] %s sent to %s of group %s", sig, plural(r.Affected, "process", "processes"), groupLabel(&r.Group))
		}
		first = firstError(out, first, err, len(names) > 1)
	}
	return first
}

// completeGroups offers the groups that there are.
func completeGroups(a *app) completer {
	return completing(a, func(ctx context.Context, c *ipc.Client) []cobra.Completion {
		r, err := ipc.Call(ctx, c, ipc.ListGroups, ipc.Empty{})
		if err != nil {
			return nil
		}
		var out []cobra.Completion
		for i := range r.Groups {
			g := &r.Groups[i]
			word := g.Name
			if word == "" {
				word = strconv.FormatUint(uint64(g.ID), 10)
			}
			out = append(out, cobra.CompletionWithDesc(oneLine(word), plural(len(g.Members), "member", "members")))
		}
		return out
	})
}

// groupThenProcs offers groups for the first word and processes for the others.
func groupThenProcs(a *app) completer {
	group, procs := completeGroups(a), completeProcs(a, false)
	return func(c *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return group(c, args, typed)
		}
		return procs(c, args, typed)
	}
}
