package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"rnix/internal/compose"
	"rnix/ipc"
	"rnix/types"
)

func composeMergeCmd(a *app) *cobra.Command {
	var req ipc.MergeRequest
	var node string
	c := &cobra.Command{
		Use:   "merge RUN",
		Short: "merge what a run has come to into your branch",
		Long: `Merge takes the work of the last node of a run into the branch that is checked out where you have started
it, as rnix merge does. The work tree of a node begins with the work of the nodes that it waits for, so the
last one has all of it. If a run ends in several work trees, add a node that waits for them, or name one with
--node.`,
		Example:           examples(`rnix compose merge review --preview`, `rnix compose merge review`, `rnix compose merge review --node fix --json`),
		Annotations:       exits("0 1 2 10 11 12"),
		Args:              argsOf(1, 1, theRun),
		ValidArgsFunction: completeRuns(a, true),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			if req.Target, err = lastOf(c.Context(), client, args[0], node); err != nil {
				return err
			}
			return merge(c.Context(), client, a.out, req)
		},
	}
	mergeFlags(c, &req)
	c.Flags().StringVar(&node, "node", "", "merge the work of this node, such as fix or fix[2] (default the last one)")
	_ = c.RegisterFlagCompletionFunc("node", completeNodes(a, true))
	return c
}

// lastOf returns the attempt of a run whose work tree holds what the run has come to, or that of a node.
func lastOf(ctx context.Context, c *ipc.Client, target, node string) (string, error) {
	r, err := ipc.Call(ctx, c, ipc.ComposeStatus, ipc.TargetRequest{Target: target})
	if err != nil {
		return "", err
	}
	last := []string{node}
	if node == "" {
		p, err := ipc.Call(ctx, c, ipc.ComposePlan, ipc.TargetRequest{Target: r.UUID.String()})
		if err != nil {
			return "", err
		}
		last = drawable(p.File).Plan().Last()
	}
	if len(last) == 0 {
		return "", types.Errorf(types.ErrInvalid, "", r.Name, "no node of this run has its own work tree; give nodes worktree: true")
	}
	return attemptIn(&r, last)
}

// attemptIn returns the one attempt of some nodes that has come to its end.
func attemptIn(r *ipc.ComposeRun, nodes []string) (string, error) {
	var found []*ipc.ComposeNode
	var names []string
	for i := range r.Nodes {
		n := &r.Nodes[i]
		k, _ := compose.ParseKey(n.Name)
		if slices.Contains(nodes, n.Name) || slices.Contains(nodes, k.Node) {
			found, names = append(found, n), append(names, n.Name)
		}
	}
	switch {
	case len(found) == 0:
		return "", types.Errorf(types.ErrNotFound, "", r.Name, "the run has no node %q", strings.Join(nodes, ", "))
	case len(found) > 1:
		return "", types.Errorf(types.ErrConflict, "", r.Name, "it ends in %d work trees: %s; add a node that waits for them, or merge one after the other with --node", len(found), oneLine(strings.Join(names, ", ")))
	case found[0].State != string(compose.Succeeded):
		return "", types.Errorf(types.ErrConflict, "", r.Name, "the node %s is %s; nothing was merged", oneLine(found[0].Name), found[0].State)
	}
	return found[0].UUID.String(), nil
}
