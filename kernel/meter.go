package kernel

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"rnix/internal/price"
	"rnix/internal/step"
	"rnix/internal/weigh"
	"rnix/kernel/internal/loop"
	"rnix/kernel/internal/purse"
	"rnix/types"
	"rnix/vfs"
)

// metered counts what the programs of a process ask models for, past the loop of the process: those of an agent CLI that is its model. It owns what the
// process has used (of Process.progress), and the requests under way. Its fields are guarded by the process's mu.
type metered struct {
	open  map[*Metering]struct{}
	shut  bool          // the run is over: nothing more is asked
	empty chan struct{} // closed when shut and open is empty
	since loop.Usage    // that no answer of the process has shown yet
	cost  loop.Cost     // likewise
	model string        // that was asked last
	broke *loop.Broke   // why a request was refused; nil = none was
	want  *purse.Want   // of that one; nil = no budget is enough
	cut   func(error)   // ends the answer that the process waits for; nil = it waits for none
	asks  int           // so often it has begun to wait for one
}

func newMeter() *metered {
	return &metered{open: map[*Metering]struct{}{}, empty: make(chan struct{})}
}

// Question is a request to a model as far as its price depends on it.
type Question struct {
	// Names are as which the price of the model is looked up: the first that has one counts. At least one.
	Names  []vfs.ModelName
	Bytes  int // of the prompt, but for what Extra stands for
	Extra  int // tokens of the prompt that are no text, at most
	Answer int // tokens of the answer, at most; 0 = it cannot be bounded

	// Weighed says that the rest is known. Without it no budget is kept.
	Weighed bool
	Parts   []weigh.Part // of the prompt, all of it
	Hour    bool         // parts of the prompt may be kept for an hour, at a price of their own
	Open    string       // what of it nothing bounds, and what to do; empty = it is bounded
	Odd     string       // why it costs something else than the price of its model says; empty = it does not
}

// Took is what a request has taken, in tokens.
type Took struct {
	Input, Output, CacheRead, CacheWrite int

	CacheHour int    // of CacheWrite: what is kept for an hour
	Estimated bool   // by us
	Dear      bool   // the vendor says that it has cost more than usual
	Model     string // that has answered; empty = the one that was asked
}

// Metering is a request of a program to a model. Its owner calls Settle or Drop once.
type Metering struct {
	// Answer is how many tokens the answer may have; 0 = as many as it was asked for.
	Answer int

	b     *budgets
	p     *Process
	q     Question
	claim *purse.Claim // nil = nothing is limited
	began time.Time
	step  int

	ctx    context.Context
	cancel context.CancelCauseFunc
}

// Meter reserves what a request of a program of a process can take at most, in every budget above; it may wait for what others have reserved. Where too
// little is left it fails with RESOURCE_EXHAUSTED, and the process is suspended as before a question of its own. INVALID: a budget in dollars cannot be kept
// with it. UNAVAILABLE: the process has ended, or asks no models in this way. The request is given up when Context ends.
func (k *KernelImpl) Meter(ctx context.Context, id types.UUID, q Question) (*Metering, error) {
	p, ok := k.table.byID(id)
	if !ok || p.meter == nil {
		return nil, errOverMeter
	}
	return k.budgets.ask(ctx, p, q)
}

// MeterLimited reports whether tokens or dollars are limited of what the programs of a process ask.
func (k *KernelImpl) MeterLimited(id types.UUID) (tokens, usd bool) {
	p, ok := k.table.byID(id)
	if !ok {
		return false, false
	}
	return p.purse.Limited()
}

var errOverMeter = types.Errorf(types.ErrUnavailable, "Meter", "", "the process has ended")

func (b *budgets) ask(ctx context.Context, p *Process, q Question) (*Metering, error) {
	m := &Metering{b: b, p: p, q: q, began: time.Now()}
	m.ctx, m.cancel = context.WithCancelCause(ctx)
	p.mu.Lock()
	shut := p.meter.shut
	if !shut {
		p.meter.open[m], m.step = struct{}{}, p.progress.Step
	}
	p.mu.Unlock()
	if shut {
		m.cancel(nil)
		return nil, errOverMeter
	}
	if err := b.reserve(m); err != nil {
		m.over()
		return nil, err
	}
	b.doing.pulse.lives(p)
	return m, nil
}

// reserve reserves for a request, or says that its process has to be suspended.
func (b *budgets) reserve(m *Metering) error {
	tokens, usd := m.p.purse.Limited()
	if !tokens && !usd {
		return nil
	}
	switch why := cmp.Or(m.q.Open, m.q.Odd); {
	case !m.q.Weighed: // it was not limited yet when it came
		return types.Errorf(types.ErrUnavailable, "Meter", "", "a budget was set meanwhile; ask again")
	case usd && why != "":
		return types.Errorf(types.ErrInvalid, "Meter", "", "a budget in dollars cannot be kept with this request: %s", why)
	}
	w, err := b.worstOf(m, usd)
	if err != nil {
		if err := catchUp(m); err != nil {
			return err
		}
		return breaks(m.p, &loop.Broke{Wait: types.SuspendFor(types.SuspendBudget, "budget: "+err.Err.Error())}, nil)
	}
	claim, short, rerr := m.p.purse.Reserve(m.ctx, w)
	if short != nil && rerr == nil {
		if err := catchUp(m); err != nil {
			return err
		}
		claim, short, rerr = m.p.purse.Reserve(m.ctx, w) // there may be more by now
	}
	switch {
	case rerr != nil:
		return types.Errorf(types.ErrUnavailable, "Meter", "", "given up: %w", rerr)
	case short != nil:
		return breaks(m.p, b.broke(m.p, short), &w)
	}
	m.claim, m.Answer = claim, claim.Answer
	return nil
}

// worstOf returns what a request can take at most.
func (b *budgets) worstOf(m *Metering, usd bool) (purse.Want, *types.SyscallError) {
	perByte, known := b.counts.PerByte([]weigh.Model{weighed(m.q.Names[0])})
	prompt := int(float64(m.q.Bytes)*perByte) + m.q.Extra
	if !known {
		prompt += weigh.Room
	}
	w := purse.Want{Fixed: Amount{Tokens: prompt}, Answer: m.q.Answer, Least: leastAnswer, Alone: m.q.Answer == 0 || m.q.Open != ""}
	if !usd {
		return w, nil
	}
	prompt = b.counts.Most(weighed(m.q.Names[0]), m.q.Parts) + weigh.Room // an average could be far off
	rate, from := b.rateOf(m.p, m.q.Names, true)
	if from == "" {
		return w, unpriced(m.q.Names[0])
	}
	in, out := rate.Worst(m.q.Hour)
	if w.Fixed.USD, w.Each = price.USD(prompt)*in, out; w.Alone { // nobody can say what it takes
		w.Fixed.USD = 0
	}
	return w, nil
}

// rateOf returns the price of a model that has several names, and where it stands; "" = it is not known.
func (b *budgets) rateOf(p *Process, names []vfs.ModelName, needed bool) (rate price.Rate, from string) {
	for _, assumed := range []bool{false, needed} {
		for _, m := range names {
			if rate, from = b.catalog.Price(p, m.Provider, m.Driver, m.Model, assumed); from != "" {
				return rate, from
			}
		}
	}
	return rate, ""
}

// named returns the names of a model that is perhaps named with its vendor: vendor/model.
func named(m vfs.ModelName) []vfs.ModelName {
	if vendor, model, ok := strings.Cut(m.Model, "/"); ok {
		return []vfs.ModelName{m, {Provider: vendor, Model: model}}
	}
	return []vfs.ModelName{m}
}

// meteredPriced refuses a budget in dollars for a model that is named and has no known price. One that is not named has one, or is refused, when it is asked.
func (b *budgets) meteredPriced(p *Process) error {
	for _, m := range modelsOf(p) {
		if m.Model == "" {
			continue
		}
		if _, from := b.rateOf(p, named(m), true); from == "" {
			return unpriced(m)
		}
	}
	return nil
}

// Context ends when the request is to be given up: with the context that Meter was given, or with the run of the process.
func (m *Metering) Context() context.Context { return m.ctx }

// Drop says that the request has taken nothing.
func (m *Metering) Drop() {
	if m.claim != nil {
		m.claim.Settle(Amount{})
	}
	m.over()
}

// Settle counts what the request has taken in place of what was reserved, and makes it durable. It counts also where the error says that it could not be
// recorded.
func (m *Metering) Settle(took Took) error {
	defer m.over()
	u := price.Tokens{Input: took.Input, Output: took.Output, CacheRead: took.CacheRead, CacheWrite: took.CacheWrite, CacheHour: took.CacheHour}
	a := &step.Answer{Step: m.step, Started: m.began, ModelTime: time.Since(m.began), Provider: m.q.Names[0].Provider, Model: orDefault(took.Model, m.q.Names[0].Model),
		TokensUsed: u.Input + u.Output + u.CacheRead + u.CacheWrite, Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Estimated: took.Estimated}
	if a.TokensUsed == 0 {
		m.settle(Amount{})
		return nil
	}
	_, usd := m.p.purse.Limited()
	rate, from := m.b.rateOf(m.p, m.renamed(took.Model), usd)
	used := Amount{Tokens: a.TokensUsed}
	if from != "" {
		if used.USD = rate.Cost(u); took.Dear && m.claim != nil {
			used.USD = max(used.USD, m.claim.Amount().USD)
		}
		a.CostUSD, a.CostFrom = used.USD.Float(), from
	} else if m.claim != nil { // it must not count as nothing
		used.USD = m.claim.Amount().USD
	}
	m.settle(used)
	if sent := u.Input + u.CacheRead + u.CacheWrite; !took.Estimated && sent > 0 {
		m.b.counts.Add(weighed(m.q.Names[0]), m.q.Bytes, sent-m.q.Extra)
		if weigh.Same(m.q.Names[0].Model, a.Model) {
			m.b.counts.Learn(weighed(m.q.Names[0]), m.q.Parts, sent)
		}
	}
	spentBy(m.p, a)
	m.b.doing.pulse.lives(m.p)
	m.b.doing.touch(m.p)
	return m.record(a)
}

// renamed returns the names of the model that has answered, before those of the one that was asked.
func (m *Metering) renamed(model string) []vfs.ModelName {
	names := make([]vfs.ModelName, 0, 2*len(m.q.Names))
	for _, n := range m.q.Names {
		if model != "" {
			n.Model = model
			names = append(names, n)
		}
	}
	return append(names, m.q.Names...)
}

func (m *Metering) settle(used Amount) {
	if m.claim != nil {
		m.claim.Settle(used)
	} else {
		m.p.purse.Spend(used)
	}
}

// record makes durable what a request has taken. A record that is closed is that of a process whose end did not wait for it.
func (m *Metering) record(a *step.Answer) error {
	marker, err := step.MeteredMarker(m.p.PID, a)
	if err != nil {
		return err
	}
	return mark(m.p, marker)
}

// over says that nothing of the request is under way any more.
func (m *Metering) over() {
	m.p.mu.Lock()
	defer m.p.mu.Unlock()
	t := m.p.meter
	if _, ok := t.open[m]; !ok {
		return
	}
	m.cancel(nil)
	if delete(t.open, m); t.shut && len(t.open) == 0 {
		close(t.empty)
	}
}

// meterEnd is how long the end of a run waits for requests that it has given up to be counted.
const meterEnd = 5 * time.Second

var errMeterEnds = errors.New("the run of the process is over")

// closeMeter gives up the requests under way, and waits until they are counted. It is called in the process's goroutine, before its end is recorded.
func closeMeter(p *Process) {
	if p.meter == nil {
		return
	}
	p.mu.Lock()
	t := p.meter
	t.shut = true
	if len(t.open) == 0 {
		p.mu.Unlock()
		return
	}
	for m := range t.open {
		m.cancel(errMeterEnds)
	}
	p.mu.Unlock()
	timer := time.NewTimer(meterEnd)
	defer timer.Stop()
	select {
	case <-t.empty:
	case <-timer.C:
	}
}

// spentBy adds what a request has taken to what is published, and to what the next answer shows.
func spentBy(p *Process, a *step.Answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pr, t := &p.progress, p.meter
	pr.Tokens += a.TokensUsed
	pr.Estimated = pr.Estimated || a.Estimated
	pr.CostUSD += a.CostUSD
	pr.Unpriced += a.Unpriced()
	pr.Spending = step.AddSpending(pr.Spending, a)
	s := &t.since
	s.Input, s.Output, s.CacheRead, s.CacheWrite = s.Input+a.Input, s.Output+a.Output, s.CacheRead+a.CacheRead, s.CacheWrite+a.CacheWrite
	s.Estimated = s.Estimated || a.Estimated
	t.cost.USD += a.CostUSD
	t.cost.From, t.model = a.CostFrom, a.Model
}

// drain has an answer show what was asked since the one before.
func drain(p *Process, resp *loop.Response) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.meter
	resp.Usage, resp.Metered = t.since, new(t.cost)
	if t.since, t.cost = (loop.Usage{}), (loop.Cost{}); resp.Model == "" { // not every program says which it asks
		resp.Model = t.model
	}
}
