package kernel

import (
	"fmt"

	"rnix/internal/price"
	"rnix/internal/step"
	"rnix/kernel/internal/loop"
	"rnix/kernel/internal/purse"
	"rnix/types"
)

// broke says of which budget there is too little, and what to do.
func (b *budgets) broke(p *Process, s *purse.Short) *loop.Broke {
	tokens, usd := enough(s)
	out := &loop.Broke{Hint: "--budget N", Purse: &step.PurseWait{UUID: s.ID, Tokens: s.Limit.Tokens, USD: s.Limit.USD.Float(), MoreTokens: tokens, MoreUSD: usd.Float()}}
	if s.USD {
		out.Hint = "--budget-usd X"
	} else {
		out.Log = fmt.Sprintf("Token budget exceeded: %d/%d", s.Used.Tokens, s.Limit.Tokens)
	}
	whose := "budget: "
	if s.ID != p.UUID {
		whose, out.Hint = "budget of "+b.owner(s.ID)+": ", ""
	}
	out.Wait = types.SuspendFor(types.SuspendBudget, whose+shortText(s))
	return out
}

// shortText says how much of a budget is left, or that it is used up.
func shortText(s *purse.Short) string {
	switch {
	case s.Need != Amount{}:
		return fmt.Sprintf("too little left for the next call (needs about %s, has %s of %s)", s.Need.USD, max(s.Limit.USD-s.Used.USD, 0), s.Limit.USD)
	case s.USD:
		return fmt.Sprintf("%s of %s are used", s.Used.USD, s.Limit.USD)
	}
	return grouped(s.Used.Tokens) + " of " + grouped(s.Limit.Tokens) + " tokens are used"
}

// enough returns by how much a limit has to be raised so that its processes can do as much again as they have done so
// far, or were meant to do, and at least two more calls. The other kind of limit stays.
func enough(s *purse.Short) (tokens int, usd price.USD) {
	if s.USD {
		return 0, max(s.Limit.USD, s.Used.USD+max(s.Used.USD, 2*s.Need.USD)-s.Limit.USD)
	}
	return max(s.Limit.Tokens, 2*s.Used.Tokens-s.Limit.Tokens), 0
}

// owner names a history: by its PID if it runs.
func (b *budgets) owner(id types.UUID) string {
	if p, ok := b.table.byID(id); ok {
		return "PID " + p.PID.String()
	}
	return id.String()
}
