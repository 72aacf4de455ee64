package kernel

import (
	"time"

	"rnix/kernel/internal/loop"
	"rnix/kernel/internal/purse"
	"rnix/types"
)

// breaks has a process suspended whose request was refused, and returns what its program is told. want is what there is too little for; nil = nothing
// would be enough.
func breaks(m *Metering, b *loop.Broke, want *purse.Want) error {
	p := m.p
	catchUp(m)
	p.mu.Lock()
	p.meter.broke, p.meter.want = b, want
	cut := p.meter.cut
	p.mu.Unlock()
	if cut != nil {
		cut(b)
	}
	return types.Errorf(types.ErrExhausted, "Meter", "", "%s", b.Wait.SuspendReason)
}

// A program that asks again has done what it was answered before, and said so. The process that waits for it so long, and in which nothing comes, has
// recorded that. It is not waited for longer than mostCatchUp.
const (
	caughtUp    = 200 * time.Millisecond
	mostCatchUp = 3 * time.Second
)

// catchUp waits until the process of a request has recorded what its program has done before it: a run that is suspended hears it no more.
func catchUp(m *Metering) {
	end := time.NewTimer(mostCatchUp)
	defer end.Stop()
	waits := func() int {
		m.p.mu.Lock()
		defer m.p.mu.Unlock()
		if m.p.meter.cut == nil {
			return 0
		}
		return m.p.meter.asks
	}
	for {
		before := waits()
		select {
		case <-time.After(caughtUp):
		case <-end.C:
			return
		case <-m.ctx.Done():
			return
		}
		if before > 0 && waits() == before {
			return
		}
	}
}

// onBroke has cut called when a request is refused, until the returned function is called.
func onBroke(p *Process, cut func(error)) (done func()) {
	p.mu.Lock()
	p.meter.cut = cut
	p.meter.asks++
	b := p.meter.broke
	p.mu.Unlock()
	if b != nil { // since it was looked
		cut(b)
	}
	return func() {
		p.mu.Lock()
		p.meter.cut = nil
		p.mu.Unlock()
	}
}

// broken returns why a process has to be suspended of which a request was refused while it did something else; nil = it need not, since there is more now.
func (b *budgets) broken(p *Process) *loop.Broke {
	p.mu.Lock()
	broke, want := p.meter.broke, p.meter.want
	p.mu.Unlock()
	if broke == nil || want == nil {
		return broke
	}
	if s := p.purse.Short(*want); s != nil {
		return b.broke(p, s)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.meter.broke == broke {
		p.meter.broke, p.meter.want = nil, nil
	}
	return nil
}
