package billing

import (
	"rnix/internal/price"
	"rnix/internal/step"
	"rnix/kernel"
	"rnix/types"
)

var _ kernel.Accounts = (*Service)(nil)

// usedBy returns what a history has used itself.
func usedBy(spending []step.Spending) (a kernel.Amount) {
	for i := range spending {
		a.Tokens += spending[i].Tokens()
		a.USD += price.FromFloat(spending[i].CostUSD)
	}
	return a
}

// usedByInfo is usedBy for a history that an earlier version may have written.
func usedByInfo(i *step.ProcInfo) kernel.Amount {
	if len(i.Spending) == 0 && i.OriginUUID == (types.UUID{}) && i.Provider != "" {
		return kernel.Amount{Tokens: i.TokensUsed, USD: price.FromFloat(i.CostUSD)}
	}
	return usedBy(i.Spending)
}

// Account returns the account of a history that does not run: suspended, ended, archived or deleted. It implements kernel.Accounts.
func (d *Service) Account(id types.UUID) (kernel.Account, bool) {
	if i, ok := d.Index.Get(id); ok {
		return accountOf(&i), true
	}
	for _, a := range d.Removed.Archived() {
		if a.Info.UUID == id {
			return accountOf(&a.Info), true
		}
	}
	for _, t := range d.Removed.Deleted() {
		if t.UUID == id {
			return kernel.Account{Up: t.Parent, Used: usedBy(t.Spending)}, true
		}
	}
	return kernel.Account{}, false
}

func accountOf(i *step.ProcInfo) kernel.Account {
	return kernel.Account{Up: i.ParentUUID, Limit: kernel.Amount{Tokens: i.ContextBudget, USD: price.FromFloat(i.BudgetUSD)}, Used: usedByInfo(i)}
}

// Below returns what the histories below one have used that do not run, but for those that are covered and what is below these (nil = none
// is), and whether there are any. It implements kernel.Accounts.
func (d *Service) Below(id types.UUID, covered func(types.UUID) bool) (sum kernel.Amount, any bool) {
	type child struct {
		id   types.UUID
		used kernel.Amount
	}
	below := map[types.UUID][]child{}
	put := func(up, id types.UUID, used kernel.Amount) { below[up] = append(below[up], child{id, used}) }
	infos := d.Index.Descended()
	for i := range infos {
		put(infos[i].ParentUUID, infos[i].UUID, usedByInfo(&infos[i]))
	}
	archived := d.Removed.Archived()
	for i := range archived {
		put(archived[i].Info.ParentUUID, archived[i].Info.UUID, usedByInfo(&archived[i].Info))
	}
	for _, t := range d.Removed.Deleted() {
		put(t.Parent, t.UUID, usedBy(t.Spending))
	}
	delete(below, types.UUID{})
	seen := map[types.UUID]bool{id: true} // damaged files may make a circle
	for todo := []types.UUID{id}; len(todo) > 0; todo = todo[1:] {
		for _, c := range below[todo[0]] {
			any = true
			if seen[c.id] || covered != nil && covered(c.id) {
				continue
			}
			seen[c.id] = true
			sum.Tokens, sum.USD = sum.Tokens+c.used.Tokens, sum.USD+c.used.USD
			todo = append(todo, c.id)
		}
	}
	return sum, any
}

// UsedUnder returns what a history and its descendants have used. own is what it has used itself, with what a
// fork has from its origin.
func (d *Service) UsedUnder(id types.UUID, own kernel.Amount) kernel.Amount {
	if b, ok := d.Kernel.Budget(id); ok && b.Known {
		return b.Used
	}
	below, _ := d.Below(id, nil)
	return kernel.Amount{Tokens: own.Tokens + below.Tokens, USD: own.USD + below.USD}
}

// Balance returns the limit of a history, running or not, and what was used of it.
func (d *Service) Balance(id types.UUID) (limit, used kernel.Amount, ok bool) {
	if b, ok := d.Kernel.Budget(id); ok && b.Known {
		return b.Limit, b.Used, true
	}
	a, ok := d.Account(id)
	if !ok {
		return limit, used, false
	}
	return a.Limit, d.UsedUnder(id, a.Used), true
}
