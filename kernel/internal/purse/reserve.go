package purse

import (
	"context"
	"slices"

	"rnix/internal/price"
)

// Want is what the next answer may take at worst.
type Want struct {
	Fixed  Amount    // the prompt, and what of an answer cannot be bounded by asking for less
	Answer int       // tokens of the answer, at most
	Least  int       // with fewer tokens it is not worth asking
	Each   price.USD // what a token of the answer costs
	// Alone says that nobody knows how much the answer takes. It has to itself all purses that are limited, so
	// that no more than one answer at a time can go over a limit.
	Alone bool
	// Waits is called, without a lock, if it has to wait for what others have reserved; nil = nobody wants to know.
	Waits func()
}

// of returns what an answer of n tokens takes at most.
func (w *Want) of(n int) Amount {
	return w.Fixed.plus(Amount{n, price.USD(n) * w.Each})
}

// Claim is a reservation. Its owner calls Settle once.
type Claim struct {
	// Answer is how many tokens the answer may have; 0 = it was not asked for less than it may have.
	Answer int

	purse  *Purse
	amount Amount
	alone  bool
}

// waiter is somebody who waits for a reservation.
type waiter struct {
	purse *Purse
	want  Want
	ready chan struct{} // closed when claim or short is there
	claim *Claim
	short *Short
}

// Reserve takes what w may need from a purse and all above it, or from none of them. While it does not fit
// because of what others have reserved, it waits until they have settled; who came first is first. If it
// cannot fit whatever they do, the result says of which limit there is too little. The error is the cause of
// ctx's end.
func (p *Purse) Reserve(ctx context.Context, w Want) (*Claim, *Short, error) {
	t := p.tree
	t.mu.Lock()
	me := &waiter{purse: p, want: w, ready: make(chan struct{})}
	t.waiting = append(t.waiting, me)
	t.pumpLocked()
	t.mu.Unlock()
	select {
	case <-me.ready:
		return me.claim, me.short, nil
	default:
	}
	if w.Waits != nil {
		w.Waits()
	}
	select {
	case <-me.ready:
		return me.claim, me.short, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.waiting, me); i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
		t.pumpLocked() // it held up those behind it
	} else if me.claim != nil {
		t.settleLocked(me.claim, Amount{})
	}
	return nil, nil, context.Cause(ctx)
}

// Amount returns what is reserved.
func (c *Claim) Amount() Amount { return c.amount }

// Settle ends a reservation with what was really used.
func (c *Claim) Settle(used Amount) {
	t := c.purse.tree
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settleLocked(c, used)
}

// +checklocks:t.mu
func (t *Tree) settleLocked(c *Claim, used Amount) {
	t.countLocked(c.purse, c.amount, used)
	if c.alone {
		for q := c.purse; q != nil; q = q.parent {
			q.alone--
		}
	}
	t.pumpLocked()
}

// pumpLocked answers all who can be answered. Who waits goes before all who came later and draw on one of the
// same limits, so that many small requests do not starve a large one.
//
// +checklocks:t.mu
func (t *Tree) pumpLocked() {
	var held map[*Purse]bool // limited purses for which an earlier one waits
	rest := t.waiting[:0]
	for _, w := range t.waiting {
		behind := false
		for q := w.purse; q != nil && held != nil; q = q.parent {
			behind = behind || held[q]
		}
		if !behind {
			w.claim, w.short = t.decideLocked(w.purse, &w.want)
		}
		if w.claim != nil || w.short != nil {
			close(w.ready)
			continue
		}
		rest = append(rest, w)
		for q := w.purse; q != nil; q = q.parent {
			if q.limit != (Amount{}) {
				if held == nil {
					held = map[*Purse]bool{}
				}
				held[q] = true
			}
		}
	}
	clear(t.waiting[len(rest):])
	t.waiting = rest
}

// decideLocked makes a claim, or says why there can be none. Neither means that others have to settle first.
//
// Too few tokens make an answer shorter, down to the least; a limit of tokens of which anything is left is gone over for
// that, by one claim at a time (freeLocked). A limit of dollars is never gone over.
//
// +checklocks:t.mu
func (t *Tree) decideLocked(p *Purse, w *Want) (*Claim, *Short) {
	claim, short := t.weighLocked(p, w)
	if claim == nil {
		return nil, short
	}
	for q := p; q != nil; q = q.parent {
		if !t.freeLocked(q, claim) {
			return nil, nil
		}
	}
	for q := p; q != nil; q = q.parent {
		q.reserved = q.reserved.plus(claim.amount)
		if claim.alone {
			q.alone++
		}
	}
	return claim, nil
}

// Short says of which limit there is too little for w, whatever others settle; nil if there is enough. It reserves nothing.
func (p *Purse) Short(w Want) *Short {
	p.tree.mu.Lock()
	defer p.tree.mu.Unlock()
	_, short := p.tree.weighLocked(p, &w)
	return short
}

// weighLocked returns the claim that there would be if nobody else had anything reserved, or why there would be none.
//
// +checklocks:t.mu
func (t *Tree) weighLocked(p *Purse, w *Want) (*Claim, *Short) {
	answer, whole := w.Answer, true
	least := min(w.Least, w.Answer)
	for q := p; q != nil; q = q.parent {
		if s := t.spentLocked(q); s != nil {
			return nil, s
		}
		if w.Alone {
			continue
		}
		n, affordable := t.roomLocked(q, w)
		if affordable < least {
			return nil, t.shortLocked(q, w, least)
		}
		if n = max(min(n, affordable), least); n < answer {
			answer, whole = n, false
		}
	}
	claim := &Claim{purse: p, amount: w.of(answer), alone: w.Alone}
	if w.Alone {
		claim.amount = w.Fixed
	} else if !whole || w.Answer > 0 && t.limitedLocked(p) {
		claim.Answer = answer
	}
	return claim, nil
}

// roomLocked returns how many tokens an answer may have by the limits of one purse, if nobody else had anything
// reserved: by that of tokens, and by that of dollars. Each may be negative.
//
// +checklocks:t.mu
func (t *Tree) roomLocked(p *Purse, w *Want) (tokens, affordable int) {
	tokens, affordable = w.Answer, w.Answer
	left := p.limit.minus(p.used).minus(w.Fixed)
	if p.limit.Tokens > 0 {
		tokens = min(tokens, left.Tokens)
	}
	if p.limit.USD > 0 {
		switch {
		case left.USD < 0:
			affordable = -1
		case w.Each > 0:
			affordable = min(affordable, int(left.USD/w.Each))
		}
	}
	return tokens, affordable
}

// freeLocked reports whether a claim fits beside what others have reserved. One that is alone always does: its dollars
// have been seen to fit, and somebody has to be able to use the last tokens.
//
// +checklocks:t.mu
func (t *Tree) freeLocked(p *Purse, c *Claim) bool {
	switch {
	case p.limit == Amount{} || p.reserved == Amount{} && p.alone == 0:
		return true
	case p.alone > 0 || c.alone:
		return false
	}
	left := p.limit.minus(p.used).minus(p.reserved).minus(c.amount)
	return (p.limit.Tokens == 0 || left.Tokens >= 0) && (p.limit.USD == 0 || left.USD >= 0)
}

// +checklocks:t.mu
func (t *Tree) limitedLocked(p *Purse) bool {
	for q := p; q != nil; q = q.parent {
		if q.limit != (Amount{}) {
			return true
		}
	}
	return false
}

// shortLocked says that a limit of dollars is too small for the least answer.
//
// +checklocks:t.mu
func (t *Tree) shortLocked(p *Purse, w *Want, least int) *Short {
	return &Short{ID: p.id, Limit: p.limit, Used: p.used, Need: w.of(least), USD: true}
}
