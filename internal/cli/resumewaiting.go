package cli

import (
	"context"

	"rnix/ipc"
	"rnix/types"
)

// waitingFor returns the processes that are suspended for a reason, oldest first.
func waitingFor(ctx context.Context, c *ipc.Client, kind string) (out []string, err error) {
	if kind != string(types.SuspendKey) {
		return nil, usagef("", "invalid --waiting-for %q: want key", kind)
	}
	r, err := ipc.Call(ctx, c, ipc.ListProcs, ipc.ListRequest{})
	for i := range r.Procs {
		if p := &r.Procs[i]; p.State == suspended && p.Why() == types.SuspendKind(kind) {
			out = append(out, p.UUID.String())
		}
	}
	return out, err
}
