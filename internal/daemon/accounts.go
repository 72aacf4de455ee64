package daemon

import (
	"cmp"
	"time"

	"rnix/internal/price"
	"rnix/internal/step"
	"rnix/kernel"
	"rnix/types"
)

// accounts knows what histories have used that are not running: suspended, ended, archived and deleted ones.
type accounts struct{ *Daemon }

var _ kernel.Accounts = accounts{}

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

// Account implements kernel.Accounts.
func (d accounts) Account(id types.UUID) (kernel.Account, bool) {
	if i, ok := d.journal.Index().Get(id); ok {
		return accountOf(&i), true
	}
	for _, a := range d.collector.Archived() {
		if a.Info.UUID == id {
			return accountOf(&a.Info), true
		}
	}
	for _, t := range d.collector.Deleted() {
		if t.UUID == id {
			return kernel.Account{Up: t.Parent, Used: usedBy(t.Spending)}, true
		}
	}
	return kernel.Account{}, false
}

func accountOf(i *step.ProcInfo) kernel.Account {
	return kernel.Account{Up: i.ParentUUID, Limit: kernel.Amount{Tokens: i.ContextBudget, USD: price.FromFloat(i.BudgetUSD)}, Used: usedByInfo(i)}
}

// Below implements kernel.Accounts.
func (d accounts) Below(id types.UUID, covered func(types.UUID) bool) (sum kernel.Amount, any bool) {
	type child struct {
		id   types.UUID
		used kernel.Amount
	}
	below := map[types.UUID][]child{}
	put := func(up, id types.UUID, used kernel.Amount) { below[up] = append(below[up], child{id, used}) }
	infos := d.journal.Index().Descended()
	for i := range infos {
		put(infos[i].ParentUUID, infos[i].UUID, usedByInfo(&infos[i]))
	}
	archived := d.collector.Archived()
	for i := range archived {
		put(archived[i].Info.ParentUUID, archived[i].Info.UUID, usedByInfo(&archived[i].Info))
	}
	for _, t := range d.collector.Deleted() {
		put(t.Parent, t.UUID, usedBy(t.Spending))
	}
	delete(below, types.UUID{})
	seen := map[types.UUID]bool{id: true} // damaged files may make a circle
	for todo := []types.UUID{id}; len(todo) > 0; todo = todo[1:] {
		for _, c := range below[todo[0]] {
			any = true
			if seen[c.id] || covered(c.id) {
				continue
			}
			seen[c.id] = true
			sum.Tokens, sum.USD = sum.Tokens+c.used.Tokens, sum.USD+c.used.USD
			todo = append(todo, c.id)
		}
	}
	return sum, any
}

// priceFor returns what a model costs a process.
func priceFor(proc *kernel.Process, provider, driver, model string, needed bool) (price.Rate, string) {
	p, ok := proc.Profile().(*profile)
	if !ok {
		return price.Rate{}, ""
	}
	return p.priceOf(provider, driver, model, needed)
}

// priceOf returns what a model costs, and where that stands; "" if nobody knows. needed says that an assumed
// price will do.
func (p *profile) priceOf(provider, driver, model string, needed bool) (price.Rate, string) {
	if rate, from, ok := p.prices.Lookup([]string{provider, driver}, model, time.Now()); ok {
		return rate, from
	}
	if v := p.cfg.Budget.UnknownPrice; needed && v.V > 0 {
		return price.Flat(v.V), cmp.Or(v.Origin, "config.yaml")
	}
	return price.Rate{}, ""
}
