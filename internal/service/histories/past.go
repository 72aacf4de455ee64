package histories

import (
	"context"
	"encoding/json"
	"slices"

	"rnix/internal/procview"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

// Past is a process with its history.
type Past struct {
	service.Target
	h *step.History // nil = only the trail was read
	*step.Trail
}

// living reports whether the process runs, or is paused.
func (p *Past) living() bool { return p.Live != nil && p.Live.State < types.StateZombie }

// Ended reports whether it has come to its end, and is not suspended.
func (p *Past) Ended() bool {
	if p.Live != nil {
		return p.Live.State >= types.StateZombie && !p.Live.Suspended
	}
	return p.Info != nil && procview.Stored(p.Info).State == types.StateDead.String()
}

// past finds the process that a caller names, as find does, and reads its history.
func (d *Service) past(ctx context.Context, peer *ipc.Peer, op, text string) (*Past, error) {
	t, err := d.Finder.Find(peer, op, text)
	if err != nil {
		return nil, err
	}
	h, err := step.ReadHistory(ctx, d.Journal, t.UUID)
	if err != nil {
		return nil, d.Finder.Lost(&t, text, err)
	}
	return &Past{Target: t, h: h}, nil
}

// Trailed is past with the trail of the history in place of all its records: for who asks for its files.
func (d *Service) Trailed(ctx context.Context, peer *ipc.Peer, op, text string) (*Past, error) {
	t, err := d.Finder.Find(peer, op, text)
	if err != nil {
		return nil, err
	}
	trail, _, err := d.Trail(ctx, &t, text)
	return &Past{Target: t, Trail: &trail}, err
}

// WorkDir is where the process works, or did.
func (d *Service) WorkDir(p *Past) string {
	switch {
	case p.Live != nil:
		return p.Live.WorkDir
	case p.Info != nil:
		return d.Finder.Here(d.Finder.Whole(p.Info).WorkDir)
	}
	var s step.Settled
	if p.h != nil {
		return d.Finder.Here(p.h.Info().WorkDir)
	}
	_ = json.Unmarshal(p.Settled, &s) // it says nothing then
	return d.Finder.Here(s.WorkDir)
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
	r := ipc.LedgerResponse{PID: p.PID, UUID: p.UUID, Counts: map[step.LedgerVerdict]int{}, Damage: p.h.Damage}
	for i := range calls {
		r.Counts[calls[i].Verdict]++
	}
	if req.InDoubt {
		calls = slices.DeleteFunc(calls, func(e step.LedgerEntry) bool { return e.Verdict != step.LedgerInDoubt })
	}
	if r.Calls = calls; calls == nil {
		r.Calls = []step.LedgerEntry{}
	}
	if f, ok := forkOf(p.h); ok {
		r.OriginUUID, r.OriginStep = f.Origin, f.Step
	}
	return r, nil
}
