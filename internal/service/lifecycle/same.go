package lifecycle

import (
	"context"

	"rnix/ipc"
	"rnix/types"
)

// sameCaller says of processes of the operating system whether each calls as the caller itself does.
func (d *Service) sameCaller(_ context.Context, peer *ipc.Peer, req ipc.SameCallerRequest) (ipc.SameCallerResponse, error) {
	if n := len(req.PIDs); n == 0 || n > ipc.MaxSameCaller {
		return ipc.SameCallerResponse{}, types.Errorf(types.ErrInvalid, "SameCaller", "", "%d processes are named: name 1 to %d", n, ipc.MaxSameCaller)
	}
	r := ipc.SameCallerResponse{Same: make([]bool, len(req.PIDs))}
	mine, in := d.Access.AgentOf(peer)
	for i, pid := range req.PIDs {
		if pid <= 0 || in && mine == 0 { // nobody is like one of whom nothing is known
			continue
		}
		owner, inside := d.Access.Owner(pid)
		r.Same[i] = inside == in && owner == mine
	}
	return r, nil
}
