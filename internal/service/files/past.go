package files

import (
	"context"
	"encoding/json"

	"rnix/internal/procview"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

// past is a process with what its history says of its files.
type past struct {
	service.Target
	*step.Trail
}

// find finds the process that a caller names, and reads what its history says of its files.
func (s *Service) find(ctx context.Context, peer *ipc.Peer, op, text string) (*past, error) {
	t, err := s.Callers.Find(peer, op, text)
	if err != nil {
		return nil, err
	}
	trail, err := s.Histories.Trail(ctx, &t, text)
	return &past{t, &trail}, err
}

// ended reports whether it has come to its end, and is not suspended.
func (p *past) ended() bool {
	if p.Live != nil {
		return p.Live.State >= types.StateZombie && !p.Live.Suspended
	}
	return p.Info != nil && procview.Stored(p.Info).State == types.StateDead.String()
}

// workDir is where the process works, or did.
func (p *past) workDir(all Histories) string {
	var was step.Settled
	_ = json.Unmarshal(p.Settled, &was) // it says nothing then
	return all.WorkDir(&p.Target, was.WorkDir)
}
