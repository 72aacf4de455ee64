package kernel

import (
	"context"
	"time"

	"rnix/kernel/internal/loop"
	"rnix/kernel/internal/purse"
	"rnix/types"
)

// breaks has a process suspended whose request was refused, and returns what its program is told. want is what there is too little for; nil = nothing
// would be enough.
func breaks(p *Process, b *loop.Broke, want *purse.Want) error {
	p.mu.Lock()
	p.meter.broke, p.meter.want = b, want
	cut := p.meter.cut
	p.mu.Unlock()
	if cut != nil {
		cut(b)
	}
	return types.Errorf(types.ErrExhausted, "Meter", "", "%s", b.Wait.SuspendReason)
}

// A program that asks again has done what it was answered before, and said so. The process that waits for it for caughtUp, and is not told more, has
// recorded that. One that does something else all the time is waited for as long as stuck says, and one that has much to record as long as mostCatchUp.
const (
	caughtUp    = 200 * time.Millisecond
	stuck       = 3 * time.Second
	mostCatchUp = 30 * time.Second
)

// catchUp waits until the process of a request has recorded what its program has done before it: a run that is suspended hears it no more. UNAVAILABLE: the
// request is given up.
func catchUp(m *Metering) error {
	look := func() (asks int, waits bool) {
		m.p.mu.Lock()
		defer m.p.mu.Unlock()
		return m.p.meter.asks, m.p.meter.cut != nil
	}
	still := time.Duration(0)
	for all := time.Duration(0); all < mostCatchUp && still < stuck; all += caughtUp {
		asks, waits := look()
		select {
		case <-time.After(caughtUp):
		case <-m.ctx.Done():
			return types.Errorf(types.ErrUnavailable, "Meter", "", "given up: %w", context.Cause(m.ctx))
		}
		switch now, waitsNow := look(); {
		case now != asks:
			still = 0
		case waits && waitsNow:
			return nil
		default:
			still += caughtUp
		}
	}
	return nil
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
