package billing

import (
	"cmp"
	"context"
	"slices"

	"rnix/internal/price"
	"rnix/internal/procview"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// show lists budgets.
func (d *Service) show(ctx context.Context, _ *ipc.Peer, req ipc.BudgetRequest) (ipc.BudgetResponse, error) {
	resp := ipc.BudgetResponse{Budgets: []ipc.BudgetLine{}}
	if err := d.Finder.Settled(ctx); err != nil {
		return resp, err
	}
	known := d.everybody()
	if req.Target == "" {
		for _, e := range known {
			if e.limit != (kernel.Amount{}) && (e.live || e.line.State == "suspended") {
				resp.Budgets = append(resp.Budgets, d.line(e))
			}
		}
		slices.SortFunc(resp.Budgets, func(a, b ipc.BudgetLine) int { return cmp.Compare(a.PID, b.PID) })
		return resp, nil
	}
	t, err := d.Finder.Resolve(req.Target)
	if err != nil {
		return resp, err
	}
	root, ok := known[t.UUID]
	if !ok {
		return resp, types.Errorf(types.ErrNotFound, "Budget", req.Target, "no such process; `rnix ps -a` lists all")
	}
	for up := root.line.ParentUUID; len(resp.Budgets) < service.MaxAncestors; {
		e, ok := known[up]
		if !ok {
			break
		}
		if e.limit != (kernel.Amount{}) {
			l := d.line(e)
			l.Above = true
			resp.Budgets = append(resp.Budgets, l)
		}
		up = e.line.ParentUUID
	}
	slices.Reverse(resp.Budgets)
	below := children(known)
	seen := map[types.UUID]bool{}
	var put func(e *balance)
	put = func(e *balance) {
		if seen[e.line.UUID] {
			return // a circle, which only damaged files can make
		}
		seen[e.line.UUID] = true
		resp.Budgets = append(resp.Budgets, d.line(e))
		kids := below[e.line.UUID]
		slices.SortFunc(kids, func(a, b *balance) int { return cmp.Compare(a.line.PID, b.line.PID) })
		for _, k := range kids {
			put(k)
		}
	}
	put(root)
	return resp, nil
}

// balance is what is known of the budget of one history.
type balance struct {
	line  ipc.BudgetLine // without amounts
	limit kernel.Amount
	used  kernel.Amount // with that of its descendants; of a fork, with what it has from its origin
	live  bool
}

// children returns who has started whom.
func children(known map[types.UUID]*balance) map[types.UUID][]*balance {
	below := map[types.UUID][]*balance{}
	for _, e := range known {
		if up := e.line.ParentUUID; up != (types.UUID{}) {
			below[up] = append(below[up], e)
		}
	}
	return below
}

// everybody returns the balances of all histories, those that are archived or deleted too.
func (d *Service) everybody() map[types.UUID]*balance {
	out := map[types.UUID]*balance{}
	info := func(i *step.ProcInfo, state string) {
		p := procview.Stored(i)
		out[i.UUID] = &balance{line: ipc.BudgetLine{PID: i.PID, UUID: i.UUID, ParentUUID: i.ParentUUID, Name: i.Name, Intent: i.Intent, State: cmp.Or(state, p.State), Wait: p.Wait, WaitKind: p.Why(), Unpriced: i.Unpriced},
			limit: kernel.Amount{Tokens: i.ContextBudget, USD: price.FromFloat(i.BudgetUSD)}, used: ownOf(i.Provider, i.TokensUsed, i.CostUSD)}
	}
	for _, t := range d.Removed.Deleted() {
		out[t.UUID] = &balance{line: ipc.BudgetLine{PID: t.PID, UUID: t.UUID, ParentUUID: t.Parent, Name: t.Name, Intent: t.Intent, State: "deleted"}, used: usedBy(t.Spending)}
	}
	archived, stored := d.Removed.Archived(), d.Index.List()
	for n := range archived {
		info(&archived[n].Info, "archived")
	}
	for n := range stored {
		info(&stored[n], "")
	}
	for _, i := range d.Kernel.List() {
		p := d.Looks.Living(&i)
		out[i.UUID] = &balance{line: ipc.BudgetLine{PID: i.PID, UUID: i.UUID, ParentUUID: i.ParentUUID, Name: i.Name, Intent: i.Intent, State: p.State, Wait: p.Wait, WaitKind: p.Why(), Unpriced: i.Unpriced},
			limit: kernel.Amount{Tokens: i.ContextBudget, USD: price.FromFloat(i.BudgetUSD)}, used: ownOf(i.Provider, i.TokensUsed, i.CostUSD),
			live: i.State < types.StateZombie}
	}
	below := children(out)
	done := map[types.UUID]bool{}
	var sum func(e *balance, depth int)
	sum = func(e *balance, depth int) {
		if done[e.line.UUID] || depth > service.MaxAncestors {
			return // a circle, which only damaged files can make
		}
		done[e.line.UUID] = true
		for _, k := range below[e.line.UUID] {
			sum(k, depth+1)
			e.used = kernel.Amount{Tokens: e.used.Tokens + k.used.Tokens, USD: e.used.USD + k.used.USD}
			e.line.Unpriced += k.line.Unpriced
		}
	}
	for _, e := range out {
		sum(e, 0)
	}
	return out
}

// ownOf is what a process has used itself. One without a model shows what its children have used.
func ownOf(provider string, tokens int, usd float64) kernel.Amount {
	if provider == "" {
		return kernel.Amount{}
	}
	return kernel.Amount{Tokens: tokens, USD: price.FromFloat(usd)}
}

// lineOf describes the budget of one history.
func (d *Service) lineOf(id types.UUID) (ipc.BudgetLine, error) {
	e, ok := d.everybody()[id]
	if !ok {
		return ipc.BudgetLine{}, types.Errorf(types.ErrNotFound, "Budget", id.String(), "no such process")
	}
	return d.line(e), nil
}

// line puts the amounts in.
func (d *Service) line(e *balance) ipc.BudgetLine {
	l, limit, used, reserved := e.line, e.limit, e.used, kernel.Amount{}
	if b, ok := d.Kernel.Budget(l.UUID); ok {
		if limit, reserved = b.Limit, b.Reserved; b.Known {
			used = b.Used
		}
	}
	l.Tokens = ipc.TokenLine{Used: used.Tokens, Reserved: reserved.Tokens}
	if limit.Tokens > 0 {
		left := max(limit.Tokens-used.Tokens-reserved.Tokens, 0)
		l.Tokens.Limit, l.Tokens.Left = &limit.Tokens, &left
	}
	l.USD = ipc.USDLine{Used: used.USD.Float(), Reserved: reserved.USD.Float()}
	if limit.USD > 0 {
		all, left := limit.USD.Float(), max(limit.USD-used.USD-reserved.USD, 0).Float()
		l.USD.Limit, l.USD.Left = &all, &left
	}
	return l
}
