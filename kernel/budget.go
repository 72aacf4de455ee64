package kernel

import (
	"context"
	"fmt"
	"strconv"

	"rnix/agent"
	"rnix/internal/price"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/internal/weigh"
	"rnix/kernel/internal/loop"
	"rnix/kernel/internal/purse"
	"rnix/types"
	"rnix/vfs"
)

// Amount is a number of tokens and an amount of money. As a limit, zero means that there is none.
type Amount = purse.Amount

// Account is what is stored of a history that budgets need.
type Account struct {
	Up    types.UUID // the history above it; zero = none
	Limit Amount
	Used  Amount // by itself, without its descendants
}

// Accounts knows the histories that are not running.
type Accounts interface {
	// Account returns what is stored of a history; false if there is none.
	Account(id types.UUID) (Account, bool)
	// Below returns what the descendants of a history have used, and whether there are any. Those for which
	// covered is true are left out, with all below them.
	Below(id types.UUID, covered func(types.UUID) bool) (Amount, bool)
}

// limitOf settles the limits of a process itself: those of its ancestors hold besides.
func limitOf(ag *agent.Agent, opts *SpawnOpts) Amount {
	var a Amount
	for _, n := range []*int{ag.ContextBudget, opts.ContextBudget} { // the later wins, an explicit zero too
		if n != nil {
			a.Tokens = min(max(*n, 0), maxTokens)
		}
	}
	for _, usd := range []*float64{ag.BudgetUSD, opts.BudgetUSD} {
		if usd != nil {
			a.USD = price.FromFloat(*usd)
		}
	}
	return a
}

// maxAncestry bounds a chain of parents; a longer one is a circle in damaged files.
const maxAncestry = 64

// budgets knows what processes may use and have used, and what answers of models cost.
type budgets struct {
	purses    purse.Tree
	counts    weigh.Counts
	table     *table
	lifecycle Lifecycle
	catalog   Catalog
	doing     *activity
}

// open gives a process its purse, in that of its parent, with what its history says was used.
func (b *budgets) open(p *Process, limit Amount) {
	e := purse.Entry{ID: p.UUID, Up: p.parentUUID, Limit: limit, Known: true}
	if f := p.opts.From; f != nil {
		e.Used = Amount{Tokens: f.State.Tokens, USD: price.FromFloat(f.State.CostUSD)}
		if b.lifecycle != Lifecycle(NoLifecycle{}) {
			b.openAbove(e.Up)
			b.withBelow(&e)
		}
	}
	p.purse = b.purses.Join(e)
}

// withBelow adds what descendants have used, if it is of importance: looking for it takes time.
func (b *budgets) withBelow(e *purse.Entry) {
	if e.Known = e.Limit != (Amount{}); e.Known {
		below, shared := b.lifecycle.Below(e.ID, b.purses.Has)
		e.Used, e.Shared = Amount{Tokens: e.Used.Tokens + below.Tokens, USD: e.Used.USD + below.USD}, shared
	}
}

// openAbove makes the purses above a history that goes on while those that have started it do not: their
// limits hold all the same.
func (b *budgets) openAbove(id types.UUID) {
	var missing []purse.Entry
	for id != (types.UUID{}) && len(missing) < maxAncestry && !b.purses.Has(id) {
		a, ok := b.lifecycle.Account(id)
		if !ok {
			break
		}
		missing = append(missing, purse.Entry{ID: id, Up: a.Up, Limit: a.Limit, Used: a.Used, Kept: true})
		id = a.Up
	}
	for i := len(missing) - 1; i >= 0; i-- { // the uppermost first
		b.withBelow(&missing[i])
		missing[i].Shared = true
		b.purses.Join(missing[i])
	}
}

// leastAnswer is the shortest answer, in tokens, for which a model is asked: with less it can hardly call a tool.
const leastAnswer = 512

// maxTokens is more tokens than any budget needs; it keeps what is added to it from overflowing.
const maxTokens = 1 << 50

// maxPrompt is more tokens than any prompt has; it keeps sums from overflowing.
const maxPrompt = 1 << 40

// account is what the loop of a process sees of budgets.
type account struct {
	b *budgets
	p *Process
}

// Spent implements loop.Budget.
func (a account) Spent() *loop.Broke {
	s := a.p.purse.Spent()
	if s == nil {
		return nil
	}
	return a.b.broke(a.p, s)
}

// PerByte implements loop.Budget.
func (a account) PerByte() (tokens float64, counted bool) {
	models := modelsOf(a.p)
	all := make([]weigh.Model, len(models))
	for i, m := range models {
		all[i] = weighed(m)
	}
	return a.b.counts.PerByte(all)
}

// Counted implements loop.Budget. What a model of another name has counted, such as one that a router has chosen, bounds no prompt of this one.
func (a account) Counted(provider, model string, q loop.Prompt, tokens int) {
	m := answererOf(modelsOf(a.p), provider, model)
	if !q.Attached {
		a.b.counts.Add(weighed(m), q.Bytes, tokens)
	}
	if _, usd := a.p.purse.Limited(); usd && weigh.Same(m.Model, model) {
		a.b.counts.Learn(weighed(m), q.Parts(), tokens)
	}
}

// recall learns what an earlier run has on record of its last prompt: else a resume would be reserved by its bytes. That prompt had more than those messages, so
// they have no more tokens than all of it.
func (a account) recall(s *recovery.State) {
	_, usd := a.p.purse.Limited()
	if c := s.Counted; c != nil && usd {
		m := answererOf(modelsOf(a.p), c.Provider, c.Model)
		if (c.Provider == "" || c.Provider == m.Provider) && weigh.Same(m.Model, c.Model) {
			a.b.counts.Learn(weighed(m), loop.MessageParts(s.Messages[:min(c.Messages, len(s.Messages))]), c.Tokens)
		}
	}
}

// Reserve implements loop.Budget.
func (a account) Reserve(ctx context.Context, q loop.Prompt) (int, error) {
	tokens, usd := a.p.purse.Limited()
	if !tokens && !usd || a.p.model.Free || a.p.model.Metered {
		return 0, nil
	}
	var parts []weigh.Part
	if usd {
		parts = q.Parts()
	}
	w, err := a.b.worst(a.p, min(q.Tokens, maxPrompt), parts, usd)
	if err != nil {
		return 0, &loop.Broke{Wait: types.SuspendFor(types.SuspendBudget, "budget: "+err.Err.Error())}
	}
	waited := false
	w.Waits = func() {
		waited = true
		a.b.doing.waitTold(a.p, types.SuspendBudget, "the budget, of which others have reserved a part")
	}
	claim, short, rerr := a.p.purse.Reserve(ctx, w)
	if waited {
		a.b.doing.waitTold(a.p, "", "")
	}
	switch {
	case rerr != nil:
		return 0, rerr
	case short != nil:
		return 0, a.b.broke(a.p, short)
	}
	a.p.claim = claim
	return claim.Answer, nil
}

// Settle implements loop.Budget.
func (a account) Settle(r *loop.Response) loop.Cost {
	if r == nil {
		if claim := a.p.claim; claim != nil {
			a.p.claim = nil
			claim.Settle(Amount{})
		}
		return loop.Cost{}
	}
	return a.settle(r, true)
}

// CutOff implements loop.Budget. What has no price but the word of whoever would have answered counts in tokens only:
// a pause must not take all that is left of a budget in dollars.
func (a account) CutOff(r *loop.Response) loop.Cost { return a.settle(r, false) }

// settle counts what r took. answered says that it is an answer, which must not count as nothing.
func (a account) settle(r *loop.Response, answered bool) loop.Cost {
	claim := a.p.claim
	a.p.claim = nil
	u := price.Tokens{Input: r.Usage.Input, Output: r.Usage.Output, CacheRead: r.Usage.CacheRead, CacheWrite: r.Usage.CacheWrite}
	used := Amount{Tokens: u.Input + u.Output + u.CacheRead + u.CacheWrite}
	cost := a.b.costOf(a.p, r, u)
	if used.USD = price.FromFloat(cost.USD); answered && cost.From == "" && claim != nil && used.Tokens > 0 {
		used.USD = max(claim.Amount().USD, a.p.purse.Left()) // nobody knows it, and it must not count as nothing
	}
	if claim != nil {
		claim.Settle(used)
	} else {
		a.p.purse.Spend(used)
	}
	return cost
}

// modelsOf returns the names of the models that may answer a process, the first one first.
func modelsOf(p *Process) []vfs.ModelName {
	first := vfs.ModelName{Provider: orDefault(p.model.Provider, p.opts.Provider), Driver: p.model.Driver, Model: orDefault(p.opts.Model, p.model.Model)}
	return append([]vfs.ModelName{first}, p.model.Others...)
}

// answererOf returns which of models has answered: that of the provider whose name it is, else one of the provider, or the first one.
func answererOf(models []vfs.ModelName, provider, model string) vfs.ModelName {
	for _, m := range models {
		if provider != "" && m.Provider == provider && model != "" && weigh.Same(m.Model, model) {
			return m
		}
	}
	for _, m := range models {
		if provider != "" && m.Provider == provider {
			return m
		}
	}
	return models[0]
}

// weighed is as what the counts of a model are kept.
func weighed(m vfs.ModelName) weigh.Model { return weigh.Model{Provider: m.Provider, Name: m.Model} }

// costOf returns what an answer costs: as its provider says, else by the prices, of the model that answered or
// of the one that was asked.
func (b *budgets) costOf(p *Process, r *loop.Response, u price.Tokens) loop.Cost {
	if r.CostUSD > 0 {
		return loop.Cost{USD: price.FromFloat(r.CostUSD).Float(), From: "provider"}
	}
	_, usd := p.purse.Limited()
	for _, m := range modelsOf(p) {
		if r.Provider != "" && m.Provider != r.Provider {
			continue
		}
		for _, name := range []string{r.Model, m.Model} {
			if rate, from := b.catalog.Price(p, m.Provider, m.Driver, name, usd); from != "" {
				return loop.Cost{USD: rate.Cost(u).Float(), From: from}
			}
		}
	}
	return loop.Cost{}
}

// worst returns what the next answer can take at most: of tokens by an estimate of the prompt, which may be exceeded by one answer, and of dollars by what bounds
// its parts, which must not.
func (b *budgets) worst(p *Process, prompt int, parts []weigh.Part, usd bool) (purse.Want, *types.SyscallError) {
	card := &p.model
	w := purse.Want{Fixed: Amount{Tokens: prompt + card.ExtraAnswer}, Answer: card.MaxAnswer, Least: max(leastAnswer, card.LeastAnswer), Alone: card.MaxAnswer == 0}
	if !usd {
		return w, nil
	}
	for _, m := range modelsOf(p) {
		rate, from := b.catalog.Price(p, m.Provider, m.Driver, m.Model, usd)
		switch {
		case from != "":
			i, o := rate.Worst(false)                                // no driver asks for it
			most := min(b.counts.Most(weighed(m), parts), maxPrompt) // each counts in its own way
			w.Fixed.USD, w.Each = max(w.Fixed.USD, price.USD(most)*i+price.USD(card.ExtraAnswer)*o), max(w.Each, o)
		case card.SaysCost:
			w.Alone = true
		default:
			return w, unpriced(m)
		}
	}
	if w.Alone {
		w.Fixed.USD = 0
	}
	return w, nil
}

// priced refuses a process whose budget in dollars could not be kept.
func (b *budgets) priced(p *Process) error {
	tokens, usd := p.purse.Limited()
	switch {
	case p.model.Free || !tokens && !usd:
		return nil
	case p.model.Unbudgeted != "":
		return types.Errorf(types.ErrInvalid, "Spawn", p.model.Provider, "no budget can be kept with it: %s", p.model.Unbudgeted)
	case !usd:
		return nil
	case p.model.Metered:
		return b.meteredPriced(p)
	}
	if _, err := b.worst(p, 0, nil, true); err != nil {
		return err
	}
	return nil
}

// unpriced says that a budget in dollars cannot be kept.
func unpriced(m vfs.ModelName) *types.SyscallError {
	if m.Model == "" {
		return types.Errorf(types.ErrInvalid, "Spawn", m.Provider, "no price is known for the model that %s chooses itself, so no budget in dollars can be kept: name one (--model), set "+
			"budget.unknown_price_usd_per_mtok in config.yaml, or limit the tokens only", m.Provider)
	}
	return types.Errorf(types.ErrInvalid, "Spawn", m.Provider, "no price is known for the model %q of %s, so no budget in dollars can be kept: add it to prices.yaml in your configuration directory, "+
		"or set budget.unknown_price_usd_per_mtok in config.yaml, or limit the tokens only", m.Model, m.Provider)
}

// grouped writes a number with commas, as people read it.
func grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Budget is what a process and its descendants may use, have used, and have reserved for answers under way.
type Budget = purse.State

// Budget returns the budget of a history that runs, or of which a descendant does; false of others.
func (k *KernelImpl) Budget(id types.UUID) (Budget, bool) {
	p := k.budgets.purses.Find(id)
	if p == nil {
		return Budget{}, false
	}
	return p.State(), true
}

// AddBudget raises the limits of a process that runs, durably, and returns them. INVALID if it has no limit of
// that kind: it has nothing to which something could be added. One whose record is closed already is NOT_FOUND, and Passing: its history on disk
// can be given more.
func (k *KernelImpl) AddBudget(pid types.PID, more Amount) (Amount, error) {
	p, err := k.table.lookup("AddBudget", pid)
	if err != nil {
		return Amount{}, err
	}
	if err := mayAdd(pid, p.purse.State().Limit, more); err != nil {
		return Amount{}, err
	}
	var limit Amount
	err = k.saves.mark(p, func() error {
		return (Self{k, p}).mark("AddBudget", step.MarkerLimit, "", step.LimitDetail{Tokens: more.Tokens, USD: more.USD.Float()})
	}, func() { limit = p.purse.Add(more) })
	if err != nil && p.State() >= types.StateZombie {
		err = passed("AddBudget", pid)
	}
	return limit, err
}

// RaiseBudget is what AddBudget does in memory, for a history that does not run itself: its descendants may.
func (k *KernelImpl) RaiseBudget(id types.UUID, more Amount) {
	if p := k.budgets.purses.Find(id); p != nil {
		p.Add(more)
		k.cfg.Lifecycle.Touched(id)
	}
}

// mayAdd refuses to add to a limit that is not there.
func mayAdd(pid types.PID, limit, more Amount) error {
	what := ""
	switch {
	case more.Tokens > 0 && limit.Tokens == 0:
		what = "tokens"
	case more.USD > 0 && limit.USD == 0:
		what = "dollars"
	default:
		return nil
	}
	return &types.SyscallError{Syscall: "AddBudget", PID: pid, Code: types.ErrInvalid, Err: fmt.Errorf("it has no own limit of %s, so there is nothing to add to; `rnix budget` shows which budget it draws from", what)}
}
