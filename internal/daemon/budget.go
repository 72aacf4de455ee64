package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"rnix/internal/price"
	"rnix/internal/recovery"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// budgets answers what concerns budgets and costs.
type budgets struct{ *Daemon }

func (d budgets) handle(s *ipc.Server) {
	on(d.Daemon, s, ipc.ShowBudget, d.show)
	on(d.Daemon, s, ipc.AddBudget, d.add)
	on(d.Daemon, s, ipc.ShowCost, d.cost)
}

// nobody is covered by nobody.
func nobody(types.UUID) bool { return false }

// usedUnder returns what a history and its descendants have used. own is what it has used itself, with what a
// fork has from its origin.
func (d budgets) usedUnder(id types.UUID, own kernel.Amount) kernel.Amount {
	if b, ok := d.kernel.Budget(id); ok && b.Known {
		return b.Used
	}
	below, _ := accounts(d).Below(id, nobody)
	return kernel.Amount{Tokens: own.Tokens + below.Tokens, USD: own.USD + below.USD}
}

// limitOf settles the budget with which a history goes on: what it had, or so much more than was used as the
// request says. A budget that is used up is EXHAUSTED, its own and one above it.
func (d reviver) limitOf(a *again, req *ipc.ResumeRequest) (kernel.Amount, error) {
	was, s, id := &a.was, a.state, a.rec.id
	limit := kernel.Amount{Tokens: was.ContextBudget, USD: price.FromFloat(was.BudgetUSD)}
	if limit == (kernel.Amount{}) && req.Budget == nil && req.BudgetUSD == nil {
		return limit, d.roomAbove(id, s)
	}
	used := budgets(d).usedUnder(id, kernel.Amount{Tokens: s.Tokens, USD: price.FromFloat(s.CostUSD)})
	waits := waitsForChild(s)
	if req.Budget != nil && !(limit.Tokens == 0 && waits) { // else it is meant for the child
		if limit.Tokens = 0; *req.Budget > 0 {
			limit.Tokens = used.Tokens + min(*req.Budget, maxAdd)
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
	limit, used, ok := budgets(d).balance(w.UUID)
	if !ok || !(limit.Tokens > 0 && used.Tokens >= limit.Tokens || limit.USD > 0 && used.USD >= limit.USD) {
		return nil
	}
	return types.Errorf(types.ErrExhausted, "Resume", id.String(), "it draws on the budget of %s, which is used up; raise it with: rnix budget add %s --tokens N (or --usd X)", w.UUID, w.UUID)
}

// balance returns the limit of a history, running or not, and what was used of it.
func (d budgets) balance(id types.UUID) (limit, used kernel.Amount, ok bool) {
	if b, ok := d.kernel.Budget(id); ok && b.Known {
		return b.Limit, b.Used, true
	}
	a, ok := accounts(d).Account(id)
	if !ok {
		return limit, used, false
	}
	return a.Limit, d.usedUnder(id, a.Used), true
}

// add raises a budget, and lets go on what waits for it.
func (d budgets) add(ctx context.Context, peer *ipc.Peer, req ipc.AddBudgetRequest) (resp ipc.AddBudgetResponse, err error) {
	bad := func(format string, args ...any) (ipc.AddBudgetResponse, error) {
		return resp, types.Errorf(types.ErrInvalid, "AddBudget", req.Target, format, args...)
	}
	switch {
	case req.Tokens < 0 || !(req.USD >= 0 && req.USD <= price.Max.Float()):
		return bad("%d tokens and %v dollars cannot be added; give numbers that are not negative, and at most %.0f dollars", req.Tokens, req.USD, price.Max.Float())
	case req.Tokens > maxAdd:
		return bad("%d tokens are more than any budget needs; give at most %d, or resume it with --budget 0, which is unlimited", req.Tokens, maxAdd)
	case req.Tokens == 0 && req.USD == 0:
		return bad("nothing is to be added: give tokens, dollars or both")
	}
	if err := d.settled(ctx); err != nil {
		return resp, err
	}
	if owner, inside := d.agentOf(peer); inside {
		return resp, service.Outside("AddBudget", owner, "not raise budgets")
	}
	t, err := d.names.Resolve(req.Target)
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
		pids, warnings := d.goOn(ctx, id, req.Env)
		resp.Resumed, resp.Warnings = append(resp.Resumed, pids...), append(resp.Warnings, warnings...)
	}
	line, err := d.lineOf(t.UUID)
	resp.BudgetLine = line
	return resp, err
}

// raise raises the budget of one process, wherever it lies.
func (d budgets) raise(ctx context.Context, t *target, more kernel.Amount) error {
	if t.Place() == service.Runs {
		_, err := d.kernel.AddBudget(t.PID, more)
		return err
	}
	if t.Live != nil { // it is about to be on disk only
		if _, err := d.kernel.WaitInfo(ctx, t.PID); err != nil {
			return err
		}
	}
	return d.addOnDisk(ctx, t.UUID, more)
}

// raiseFamily raises the limits of a process and of all below it that have one of their own, of tokens, of dollars or of both. INVALID if none has.
func (d budgets) raiseFamily(ctx context.Context, t target, more kernel.Amount) (pids []types.PID, ids []types.UUID, err error) {
	for _, m := range d.names.Family(t) {
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

// maxAdd bounds what is added at once, in tokens.
const maxAdd = 1_000_000_000_000

// addOnDisk raises the budget of a history that does not run.
func (d budgets) addOnDisk(ctx context.Context, id types.UUID, more kernel.Amount) error {
	a, err := reviver(d).open(ctx, id)
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
		info = *processes(d).whole(&info)
		info.ContextBudget, info.BudgetUSD = info.ContextBudget+more.Tokens, (price.FromFloat(info.BudgetUSD) + more.USD).Float()
		d.put(&info)
	}
	return nil
}

// goOn resumes what is suspended because it waits for a budget.
func (d budgets) goOn(ctx context.Context, purse types.UUID, env []string) (pids []types.PID, warnings []string) {
	for _, info := range d.journal.Index().Open() {
		if info.Purse == nil || info.Purse.UUID != purse || !info.Suspended {
			continue
		}
		resp, err := resumer(d).continued(ctx, target{UUID: info.UUID, PID: info.PID, Info: &info}, &ipc.ResumeRequest{Env: env}, waitsFor(purse))
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
	limit, _, ok := budgets(d).balance(info.Purse.UUID)
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
