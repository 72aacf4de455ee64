package histories

import (
	"context"
	"slices"

	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

// past is a process with its history.
type past struct {
	service.Target
	h *step.History
}

// living reports whether the process runs, or is paused.
func (p *past) living() bool { return p.Live != nil && p.Live.State < types.StateZombie }

// past finds the process that a caller names, as find does, and reads its history.
func (d *Service) past(ctx context.Context, peer *ipc.Peer, op, text string) (*past, error) {
	t, err := d.Finder.Find(peer, op, text)
	if err != nil {
		return nil, err
	}
	h, err := step.ReadHistory(ctx, d.Journal, t.UUID)
	if err != nil {
		return nil, d.Finder.Lost(&t, text, err)
	}
	return &past{Target: t, h: h}, nil
}

// WorkDir is where a process works, or did; recorded is what its history says of that.
func (d *Service) WorkDir(t *service.Target, recorded string) string {
	switch {
	case t.Live != nil:
		return t.Live.WorkDir
	case t.Info != nil:
		recorded = d.Finder.Whole(t.Info).WorkDir
	}
	return d.Finder.Here(recorded)
}

func (d *Service) ledger(ctx context.Context, peer *ipc.Peer, req ipc.LedgerRequest) (ipc.LedgerResponse, error) {
	p, err := d.past(ctx, peer, "Ledger", req.Target)
	if err != nil {
		return ipc.LedgerResponse{}, err
	}
	calls := p.h.Ledger()
	if p.living() {
		calls = p.h.LiveLedger()
	}
	r := ipc.LedgerResponse{PID: p.PID, UUID: p.UUID, Counts: map[types.LedgerVerdict]int{}, Damage: p.h.Damage}
	for i := range calls {
		r.Counts[calls[i].Verdict]++
	}
	if req.InDoubt {
		calls = slices.DeleteFunc(calls, func(e step.LedgerEntry) bool { return e.Verdict != step.LedgerInDoubt })
	}
	r.Calls = nonNil(service.Each(calls, wireLedgerEntry))
	if f, ok := forkOf(p.h); ok {
		r.OriginUUID, r.OriginStep = f.Origin, f.Step
	}
	return r, nil
}
