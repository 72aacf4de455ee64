package billing

import (
	"context"
	"slices"

	"rnix/internal/price"
	"rnix/internal/service"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// add raises a budget, and lets go on what waits for it.
func (d *Service) add(ctx context.Context, peer *ipc.Peer, req ipc.AddBudgetRequest) (resp ipc.AddBudgetResponse, err error) {
	bad := func(format string, args ...any) (ipc.AddBudgetResponse, error) {
		return resp, types.Errorf(types.ErrInvalid, "AddBudget", req.Target, format, args...)
	}
	switch {
	case req.Tokens < 0 || !(req.USD >= 0 && req.USD <= price.Max.Float()):
		return bad("%d tokens and %v dollars cannot be added; give numbers that are not negative, and at most %.0f dollars", req.Tokens, req.USD, price.Max.Float())
	case req.Tokens > service.MaxTokens:
		return bad("%d tokens are more than any budget needs; give at most %d, or resume it with --budget 0, which is unlimited", req.Tokens, service.MaxTokens)
	case req.Tokens == 0 && req.USD == 0:
		return bad("nothing is to be added: give tokens, dollars or both")
	}
	if err := d.Finder.Settled(ctx); err != nil {
		return resp, err
	}
	if owner, inside := d.Finder.AgentOf(peer); inside {
		return resp, service.Outside("AddBudget", owner, "not raise budgets")
	}
	t, err := d.Finder.Resolve(req.Target)
	if err != nil {
		return resp, err
	}
	more, raised := kernel.Amount{Tokens: req.Tokens, USD: price.FromFloat(req.USD)}, []types.UUID{t.UUID}
	if req.Tree {
		resp.Raised, raised, err = d.raiseFamily(ctx, t, more)
	} else {
		err = d.raise(ctx, &t, more)
	}
	if err != nil {
		return resp, err
	}
	for _, id := range raised {
		if req.NoResume {
			break
		}
		pids, warnings := d.Stored.Wake(ctx, id, req.Env)
		resp.Resumed, resp.Warnings = append(resp.Resumed, pids...), append(resp.Warnings, warnings...)
	}
	line, err := d.lineOf(t.UUID)
	resp.BudgetLine = line
	return resp, err
}

// raise raises the budget of one process, wherever it lies. One that has ended or was suspended since it was found is on disk.
func (d *Service) raise(ctx context.Context, t *service.Target, more kernel.Amount) error {
	if t.Place() == service.Runs {
		if _, err := d.Kernel.AddBudget(t.PID, more); !kernel.Passing(err) {
			return err
		}
	}
	if t.Live != nil { // it is about to be on disk only, if it is not yet
		if _, err := d.Kernel.WaitInfo(ctx, t.PID); err != nil && !kernel.Passing(err) {
			return err
		}
	}
	return d.Stored.Raise(ctx, t.UUID, more)
}

// raiseFamily raises the limits of a process and of all below it that have one of their own, of tokens, of dollars or of both. INVALID if none has.
func (d *Service) raiseFamily(ctx context.Context, t service.Target, more kernel.Amount) (pids []types.PID, ids []types.UUID, err error) {
	for _, m := range d.Finder.Family(t) {
		for _, part := range []kernel.Amount{{Tokens: more.Tokens}, {USD: more.USD}} {
			if part == (kernel.Amount{}) {
				continue
			}
			switch rerr := d.raise(ctx, &m, part); types.CodeOf(rerr) {
			case "":
				pids, ids = append(pids, m.PID), append(ids, m.UUID)
			case types.ErrInvalid, types.ErrNotFound, types.ErrConflict: // it has no such limit, has ended, or is at its end
				if err == nil {
					err = rerr
				}
			default:
				return pids, ids, rerr
			}
		}
	}
	if len(ids) > 0 {
		err = nil
	}
	return slices.Compact(pids), slices.Compact(ids), err
}
