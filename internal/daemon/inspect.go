package daemon

import (
	"context"
	"encoding/json"
	"slices"

	"rnix/internal/procview"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

// inspector answers what concerns the past of a process: its calls, its files, where it comes from.
type inspector struct{ *Daemon }

func (d inspector) handle(s *ipc.Server) {
	on(d.Daemon, s, ipc.Ledger, d.ledger)
	on(d.Daemon, s, ipc.DiffFiles, d.diffFiles)
	on(d.Daemon, s, ipc.RestoreFiles, d.restoreFiles)
	on(d.Daemon, s, ipc.Lineage, d.lineage)
	on(d.Daemon, s, ipc.ContextProfile, profiles{d}.context)
	on(d.Daemon, s, ipc.ExportRun, exporter{d}.export)
}

// past is a process with its history.
type past struct {
	target
	h *step.History // nil = only the trail was read
	*step.Trail
}

// living reports whether the process runs, or is paused.
func (p *past) living() bool { return p.Live != nil && p.Live.State < types.StateZombie }

// ended reports whether it has come to its end, and is not suspended.
func (p *past) ended() bool {
	if p.Live != nil {
		return p.Live.State >= types.StateZombie && !p.Live.Suspended
	}
	return p.Info != nil && procview.Stored(p.Info).State == types.StateDead.String()
}

// past finds the process that a caller names, as find does, and reads its history.
func (d inspector) past(ctx context.Context, peer *ipc.Peer, op, text string) (*past, error) {
	t, err := processes(d).find(peer, op, text)
	if err != nil {
		return nil, err
	}
	h, err := step.ReadHistory(ctx, d.journal, t.UUID)
	if err != nil {
		return nil, departed(d).lost(&t, text, err)
	}
	return &past{target: t, h: h}, nil
}

// trailed is past with the trail of the history in place of all its records: for who asks for its files.
func trailed(ctx context.Context, d inspector, peer *ipc.Peer, op, text string) (*past, error) {
	t, err := processes(d).find(peer, op, text)
	if err != nil {
		return nil, err
	}
	trail, _, err := outliner(d).trail(ctx, &t, text)
	return &past{target: t, Trail: &trail}, err
}

// descends reports whether a process, alive or on disk, is another one or was started below it.
func (d inspector) descends(t target, root types.PID) bool {
	top, err := d.kernel.Info(root)
	return err == nil && d.kernel.Descends(t.UUID, top.UUID)
}

// workDir is where the process works, or did.
func (d inspector) workDir(p *past) string {
	switch {
	case p.Live != nil:
		return p.Live.WorkDir
	case p.Info != nil:
		return here(d.Daemon, processes(d).whole(p.Info).WorkDir)
	}
	var s step.Settled
	if p.h != nil {
		return here(d.Daemon, p.h.Info().WorkDir)
	}
	_ = json.Unmarshal(p.Settled, &s) // it says nothing then
	return here(d.Daemon, s.WorkDir)
}

func (d inspector) ledger(ctx context.Context, peer *ipc.Peer, req ipc.LedgerRequest) (ipc.LedgerResponse, error) {
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

// Parent returns which process has started another one, whatever became of both; false if nobody knows.
func (s *store) Parent(id types.UUID) (types.UUID, bool) {
	info, ok := s.journal.Index().Get(id)
	return info.ParentUUID, ok
}

// Ledger reads the calls of a history, as far as it is on disk, for /proc.
func (s *store) Ledger(id types.UUID) ([]step.LedgerEntry, error) {
	h, err := step.ReadHistory(context.Background(), s.journal, id)
	if err != nil {
		return nil, err
	}
	return h.LiveLedger(), nil
}
