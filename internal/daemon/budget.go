package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"rnix/internal/price"
	"rnix/internal/recovery"
	"rnix/internal/service/billing"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// limitOf settles the budget with which a history goes on: what it had, or so much more than was used as the
// request says. A budget that is used up is EXHAUSTED, its own and one above it.
func (d reviver) limitOf(a *again, req *ipc.ResumeRequest) (kernel.Amount, error) {
	was, s, id := &a.was, a.state, a.rec.ID
	limit := kernel.Amount{Tokens: was.ContextBudget, USD: price.FromFloat(was.BudgetUSD)}
	if limit == (kernel.Amount{}) && req.Budget == nil && req.BudgetUSD == nil {
		return limit, d.roomAbove(id, s)
	}
	used := d.billing.UsedUnder(id, kernel.Amount{Tokens: s.Tokens, USD: price.FromFloat(s.CostUSD)})
	waits := waitsForChild(s)
	if req.Budget != nil && !(limit.Tokens == 0 && waits) { // else it is meant for the child
		if limit.Tokens = 0; *req.Budget > 0 {
			limit.Tokens = used.Tokens + min(*req.Budget, billing.MaxAdd)
		}
	}
	if req.BudgetUSD != nil && !(limit.USD == 0 && waits) {
		if limit.USD = 0; *req.BudgetUSD > 0 {
			limit.USD = used.USD + price.FromFloat(*req.BudgetUSD)
		}
	}
	switch {
	case a.over(req):
		return limit, nil
	case limit.Tokens > 0 && used.Tokens >= limit.Tokens:
		return limit, types.Errorf(types.ErrExhausted, "Resume", id.String(), "its budget is used up: %d of %d tokens; give it more with --budget N (so many more tokens)", used.Tokens, limit.Tokens)
	case limit.USD > 0 && used.USD >= limit.USD:
		return limit, types.Errorf(types.ErrExhausted, "Resume", id.String(), "its budget is used up: %s of %s; give it more with --budget-usd X (so many more dollars)", used.USD, limit.USD)
	}
	return limit, d.roomAbove(id, s)
}

// roomAbove refuses a history that waits for the budget of one above it of which nothing is left still.
func (d reviver) roomAbove(id types.UUID, s *recovery.State) error {
	w := s.Purse
	if w == nil || w.UUID == id {
		return nil
	}
	limit, used, ok := d.billing.Balance(w.UUID)
	if !ok || !(limit.Tokens > 0 && used.Tokens >= limit.Tokens || limit.USD > 0 && used.USD >= limit.USD) {
		return nil
	}
	return types.Errorf(types.ErrExhausted, "Resume", id.String(), "it draws on the budget of %s, which is used up; raise it with: rnix budget add %s --tokens N (or --usd X)", w.UUID, w.UUID)
}

// startBilling gives the service that knows what is used and what is left what it needs of the others.
func startBilling(d *Daemon) {
	b := d.billing
	b.Kernel, b.Index, b.Removed, b.Looks, b.Finder, b.Stored = d.kernel, d.journal.Index(), d.collector, d.looks, finder{d}, purses{d}
}

// purses changes what histories that do not run may use.
type purses struct{ daemon *Daemon }

func (p purses) Raise(ctx context.Context, id types.UUID, more kernel.Amount) error {
	d := p.daemon
	a, err := reviver{d}.open(ctx, id)
	if err != nil {
		return err
	}
	defer a.close()
	var missing string
	switch was := &a.was; {
	case more.Tokens > 0 && was.ContextBudget == 0:
		missing = "tokens"
	case more.USD > 0 && was.BudgetUSD == 0:
		missing = "dollars"
	}
	if missing != "" {
		return &types.SyscallError{Syscall: "AddBudget", Device: a.was.Name, PID: a.was.PID, Code: types.ErrInvalid,
			Err: fmt.Errorf("it has no limit of %s of its own, so there is nothing to add to; `rnix budget` shows whose it draws from", missing)}
	}
	detail, err := json.Marshal(step.LimitDetail{Tokens: more.Tokens, USD: more.USD.Float()})
	if err != nil {
		return types.Errorf(types.ErrInternal, "AddBudget", "", "encode: %w", err)
	}
	if err := a.rec.Add(step.Record{Kind: step.KindMarker, Marker: &step.Marker{Name: step.MarkerLimit, Detail: detail}}); err != nil {
		return err
	}
	if err := a.rec.Commit(); err != nil {
		return err
	}
	d.kernel.RaiseBudget(id, more)
	if info, ok := d.journal.Index().Get(id); ok {
		info = *processes{d}.whole(&info)
		info.ContextBudget, info.BudgetUSD = info.ContextBudget+more.Tokens, (price.FromFloat(info.BudgetUSD) + more.USD).Float()
		d.put(&info)
	}
	return nil
}

func (p purses) Wake(ctx context.Context, purse types.UUID, env []string) (pids []types.PID, warnings []string) {
	d := p.daemon
	for _, info := range d.journal.Index().Open() {
		if info.Purse == nil || info.Purse.UUID != purse || !info.Suspended {
			continue
		}
		resp, err := resumer{d}.continued(ctx, target{UUID: info.UUID, PID: info.PID, Info: &info}, &ipc.ResumeRequest{Env: env}, waitsFor(purse))
		if err == nil {
			pids = append(append(pids, resp.PID), resp.Woken...)
		} else if types.CodeOf(err) != types.ErrConflict { // else somebody was quicker
			warnings = append(warnings, fmt.Sprintf("PID %d cannot go on: %v", info.PID, err))
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids), warnings
}

// waitsFor is true of a state that is suspended because of a budget.
func waitsFor(purse types.UUID) func(*recovery.State) bool {
	return func(s *recovery.State) bool {
		return s.Phase == recovery.Suspended && !s.Paused && s.Purse != nil && s.Purse.UUID == purse
	}
}

// wakeBroke lets a history go on that was suspended for a budget which has been raised while it was being
// suspended.
func (d autoResumer) wakeBroke(ctx context.Context, id types.UUID) {
	info, ok := d.journal.Index().Get(id)
	if !ok || !info.Suspended || info.Purse == nil {
		return
	}
	limit, _, ok := d.billing.Balance(info.Purse.UUID)
	if !ok || limit.Tokens == info.Purse.Tokens && limit.USD == price.FromFloat(info.Purse.USD) {
		return
	}
	if _, alive := d.running(id); alive {
		return
	}
	_, err := resumer(d).continued(ctx, target{UUID: id, PID: info.PID, Info: &info}, &ipc.ResumeRequest{}, waitsFor(info.Purse.UUID))
	if err != nil && types.CodeOf(err) != types.ErrConflict && ctx.Err() == nil {
		d.note("PID %d (%s) cannot go on by itself: %v", info.PID, id, err)
	}
}
