package launch

import (
	"time"

	"rnix/internal/price"
	"rnix/internal/recovery"
	"rnix/internal/service"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// timeLimit settles the time limit with which a history goes on. What it had counts over all its runs; a request gives
// it so much longer than it has lived. One that has ended by its limit is EXHAUSTED without that. A fork begins its
// time anew.
func timeLimit(a *Opened, req *ipc.ResumeRequest) (time.Duration, error) {
	limit, s := a.Was.Timeout, a.State
	if ms := req.TimeoutMs; ms != nil {
		if *ms == 0 {
			return 0, nil
		}
		return s.Active + service.Timeout(*ms), nil
	}
	if a.Fork || limit <= 0 || s.Phase != recovery.Ended || s.Exit == nil || a.Over(req) {
		return limit, nil
	}
	if _, late := s.Exit.TimedOut(); late || s.Active >= limit {
		return 0, types.Errorf(types.ErrExhausted, "Resume", a.Rec.ID.String(), "its time limit of %v is used up; give it more with --timeout TIME (so much longer)", limit)
	}
	return limit, nil
}

// limitOf settles the budget with which a history goes on: what it had, or so much more than was used as the
// request says. A budget that is used up is EXHAUSTED, its own and one above it.
func (l *Launcher) limitOf(a *Opened, req *ipc.ResumeRequest) (kernel.Amount, error) {
	was, s, id := &a.Was, a.State, a.Rec.ID
	limit := kernel.Amount{Tokens: was.ContextBudget, USD: price.FromFloat(was.BudgetUSD)}
	if limit == (kernel.Amount{}) && req.Budget == nil && req.BudgetUSD == nil {
		return limit, l.roomAbove(id, s)
	}
	used := l.Budgets.UsedUnder(id, kernel.Amount{Tokens: s.Tokens, USD: price.FromFloat(s.CostUSD)})
	waits := waitsForChild(s)
	if req.Budget != nil && !(limit.Tokens == 0 && waits) { // else it is meant for the child
		if limit.Tokens = 0; *req.Budget > 0 {
			limit.Tokens = used.Tokens + min(*req.Budget, service.MaxTokens)
		}
	}
	if req.BudgetUSD != nil && !(limit.USD == 0 && waits) {
		if limit.USD = 0; *req.BudgetUSD > 0 {
			limit.USD = used.USD + price.FromFloat(*req.BudgetUSD)
		}
	}
	switch {
	case a.Over(req):
		return limit, nil
	case limit.Tokens > 0 && used.Tokens >= limit.Tokens:
		return limit, types.Errorf(types.ErrExhausted, "Resume", id.String(), "its budget is used up: %d of %d tokens; give it more with --budget N (so many more tokens)", used.Tokens, limit.Tokens)
	case limit.USD > 0 && used.USD >= limit.USD:
		return limit, types.Errorf(types.ErrExhausted, "Resume", id.String(), "its budget is used up: %s of %s; give it more with --budget-usd X (so many more dollars)", used.USD, limit.USD)
	}
	return limit, l.roomAbove(id, s)
}

// roomAbove refuses a history that waits for the budget of one above it of which nothing is left still.
func (l *Launcher) roomAbove(id types.UUID, s *recovery.State) error {
	w := s.Purse
	if w == nil || w.UUID == id {
		return nil
	}
	limit, used, ok := l.Budgets.Balance(w.UUID)
	if !ok || !(limit.Tokens > 0 && used.Tokens >= limit.Tokens || limit.USD > 0 && used.USD >= limit.USD) {
		return nil
	}
	return types.Errorf(types.ErrExhausted, "Resume", id.String(), "it draws on the budget of %s, which is used up; raise it with: rnix budget add %s --tokens N (or --usd X)", w.UUID, w.UUID)
}

// waitsForChild reports whether a history waits for a process that it has started.
func waitsForChild(s *recovery.State) bool {
	return len(recovery.Awaits(s)) > 0
}
