package watch

import (
	"rnix/internal/price"
	"rnix/ipc"
	"rnix/types"
)

// tally is what ipc.Totals are made of. Money is counted exactly, so that the order of the processes makes no difference.
type tally struct {
	running, suspended, waiting, failed, tokens, unpriced int
	cost                                                  price.USD
}

// add counts a process n times, in one place: 1, or -1 to take it away again.
func (t *tally) add(p *ipc.Proc, n int) {
	switch p.State {
	case "created", "running":
		if awaitsLimit(p) || p.Why() == types.SuspendAsk {
			t.waiting += n
		} else {
			t.running += n
		}
	case "suspended":
		t.suspended += n
	case "zombie":
		if p.Exit != nil && p.Exit.Code != types.ExitOK {
			t.failed += n
		}
	default:
		return
	}
	own := p.Own()
	t.tokens += n * own.Tokens
	t.unpriced += n * own.Unpriced
	t.cost += price.USD(n) * price.FromFloat(own.CostUSD)
}

// countEnded counts a process that has ended.
func countEnded(e *ipc.Ended, p *ipc.Proc) {
	if p.State != "zombie" && !settled(p.State) {
		return
	}
	e.Count++
	if p.Exit != nil && p.Exit.Code != types.ExitOK {
		e.Failed++
	}
}

// plus adds n times what another one has counted.
func (t *tally) plus(o *tally, n int) {
	t.running += n * o.running
	t.suspended += n * o.suspended
	t.waiting += n * o.waiting
	t.failed += n * o.failed
	t.tokens += n * o.tokens
	t.unpriced += n * o.unpriced
	t.cost += o.cost * price.USD(n)
}

// awaitsLimit reports whether a living process waits for a rate limit, a quota or a budget: for a time that is known, which nothing else
// is, or for a budget.
func awaitsLimit(p *ipc.Proc) bool {
	return !p.WaitUntil.IsZero() || p.Purse != nil || p.Why() == types.SuspendBudget
}

func (t *tally) totals() ipc.Totals {
	return ipc.Totals{Running: t.running, Suspended: t.suspended, Waiting: t.waiting, Failed: t.failed, Tokens: t.tokens, CostUSD: t.cost.Float(), Unpriced: t.unpriced}
}
