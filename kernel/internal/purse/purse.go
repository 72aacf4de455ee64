// Package purse keeps what processes may use: tokens and dollars, over trees of processes. It owns limits,
// what was used and what is reserved, and who waits for a reservation. It knows no process and no model.
//
// Every process has a purse in the purse of its parent. What is used counts in its own and in all above it. A
// reservation is taken before a model is asked, from all of them or from none, for the worst case; when the
// answer is there it is settled for what the answer really took. So what is used and reserved never exceeds
// a limit of dollars, however many ask at once. The last tokens of a limit can be used too: whoever finds too few
// left for its worst case asks alone, so that a limit of tokens is exceeded by one answer at most.
//
// One lock guards a whole Tree. It is a leaf: nothing is called under it.
package purse

import (
	"sync"

	"rnix/internal/price"
	"rnix/types"
)

// Amount is what an answer takes, or may take at most. As a limit, zero means that there is none.
type Amount struct {
	Tokens int
	USD    price.USD
}

func (a Amount) plus(b Amount) Amount { return Amount{a.Tokens + b.Tokens, a.USD + b.USD} }

func (a Amount) minus(b Amount) Amount { return Amount{a.Tokens - b.Tokens, a.USD - b.USD} }

// Tree holds the purses of a kernel. The zero value is ready to be used.
type Tree struct {
	mu     sync.Mutex
	purses map[types.UUID]*Purse // +checklocks:mu
	// In the order in which they came.
	waiting []*waiter // +checklocks:mu
}

// Purse is what one process and all that descend from it may use, and have used. Its fields are guarded by
// the lock of its tree.
type Purse struct {
	tree *Tree
	id   types.UUID
	up   types.UUID // the history above; it may have no purse

	parent   *Purse
	limit    Amount
	used     Amount // with all that descend from it, ended ones too
	reserved Amount
	alone    int  // claims that have the whole purse for themselves; 0 or 1 where there is a limit
	kids     int  // purses whose parent this is
	live     int  // processes that have it: two while one ends and its history goes on, or is about to
	shared   bool // others have drawn on it, or may
	known    bool // used is all that they have used
}

// Entry says what a purse begins with.
type Entry struct {
	ID, Up types.UUID
	Limit  Amount
	// Used is what the history and its descendants have used, without those whose purses are in the tree
	// (Has).
	Used Amount
	// Shared says that it has descendants.
	Shared bool
	// Kept says that no process has it: it is there for those below.
	Kept bool
	// Known says that Used is complete. It need not be while there is no limit.
	Known bool
}

// Join makes the purse of a process, or gives back the one that is still there because descendants draw on
// it; its limit is then the given one. Who made it calls Leave.
func (t *Tree) Join(e Entry) *Purse {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.purses[e.ID]; p != nil {
		p.live, p.limit = p.live+lives(&e), e.Limit
		if e.Known && !p.known {
			p.used, p.known, p.shared = e.Used, true, true
			for _, q := range t.purses {
				if q.parent == p {
					p.used = p.used.plus(q.used)
				}
			}
		}
		t.pumpLocked()
		return p
	}
	if t.purses == nil {
		t.purses = map[types.UUID]*Purse{}
	}
	p := &Purse{tree: t, id: e.ID, up: e.Up, limit: e.Limit, used: e.Used, live: lives(&e), shared: e.Shared, known: e.Known}
	t.adoptLocked(p)
	t.purses[e.ID] = p
	if p.parent = t.purses[e.Up]; p.parent != nil {
		p.parent.kids++
		for q := p.parent; q != nil; q = q.parent {
			q.shared = true
		}
	}
	return p
}

// lives is 1 for the purse of a process, and 0 for one that is there for those below.
func lives(e *Entry) int {
	if e.Kept {
		return 0
	}
	return 1
}

// adoptLocked puts purses below p that had none above them.
//
// +checklocks:t.mu
func (t *Tree) adoptLocked(p *Purse) {
	if !p.shared {
		return // nobody descends from it
	}
	for _, q := range t.purses {
		if q.parent == nil && q.up == p.id {
			q.parent = p
			p.kids++
			p.used, p.reserved = p.used.plus(q.used), p.reserved.plus(q.reserved)
			p.alone += q.alone
		}
	}
}

// Has reports whether a history has a purse.
func (t *Tree) Has(id types.UUID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.purses[id] != nil
}

// Leave says that a process has ended which had joined, and is called once for each Join that made or gave back its purse. That stays for as long as
// another process has it, or others are below it.
func (p *Purse) Leave() {
	p.tree.mu.Lock()
	defer p.tree.mu.Unlock()
	p.live = max(p.live-1, 0)
	for q := p; q != nil && q.live == 0 && q.kids == 0 && p.tree.purses[q.id] == q; q = q.parent {
		delete(p.tree.purses, q.id)
		if q.parent != nil {
			q.parent.kids--
		}
	}
}

// Limited reports whether tokens or dollars are limited, by this purse or one above it.
func (p *Purse) Limited() (tokens, usd bool) {
	p.tree.mu.Lock()
	defer p.tree.mu.Unlock()
	for q := p; q != nil; q = q.parent {
		tokens, usd = tokens || q.limit.Tokens > 0, usd || q.limit.USD > 0
	}
	return tokens, usd
}

// Short is why there can be no reservation: a limit that is used up, or of which too little is left.
type Short struct {
	ID    types.UUID // whose limit it is
	Limit Amount
	Used  Amount
	Need  Amount // at least, for the next answer; zero = nothing is left at all
	USD   bool   // it is the limit of dollars, not that of tokens
}

// Spent returns the first limit from p upwards of which nothing is left; nil if there is none.
func (p *Purse) Spent() *Short {
	t := p.tree
	t.mu.Lock()
	defer t.mu.Unlock()
	for q := p; q != nil; q = q.parent {
		if s := t.spentLocked(q); s != nil {
			return s
		}
	}
	return nil
}

// +checklocks:t.mu
func (t *Tree) spentLocked(p *Purse) *Short {
	switch {
	case p.limit.Tokens > 0 && p.used.Tokens >= p.limit.Tokens:
		return &Short{ID: p.id, Limit: p.limit, Used: p.used}
	case p.limit.USD > 0 && p.used.USD >= p.limit.USD:
		return &Short{ID: p.id, Limit: p.limit, Used: p.used, USD: true}
	}
	return nil
}

// Left returns how many dollars are left, by the tightest limit from p upwards; 0 if there is none.
func (p *Purse) Left() price.USD {
	p.tree.mu.Lock()
	defer p.tree.mu.Unlock()
	left := price.USD(-1)
	for q := p; q != nil; q = q.parent {
		if q.limit.USD > 0 && (left < 0 || q.limit.USD-q.used.USD < left) {
			left = max(q.limit.USD-q.used.USD, 0)
		}
	}
	return max(left, 0)
}

// Spend counts what was used without a reservation.
func (p *Purse) Spend(used Amount) {
	p.tree.mu.Lock()
	defer p.tree.mu.Unlock()
	p.tree.countLocked(p, Amount{}, used)
	p.tree.pumpLocked() // who waits may wait in vain now
}

// countLocked puts what was used in the place of what was reserved.
//
// +checklocks:t.mu
func (t *Tree) countLocked(p *Purse, reserved, used Amount) {
	for q := p; q != nil; q = q.parent {
		q.reserved, q.used = q.reserved.minus(reserved), q.used.plus(used)
	}
}

// Add raises the limits of a purse, in each of which there must be one, and returns them.
func (p *Purse) Add(more Amount) Amount {
	p.tree.mu.Lock()
	defer p.tree.mu.Unlock()
	p.limit = p.limit.plus(more)
	p.tree.pumpLocked()
	return p.limit
}

// State is a snapshot of a purse.
type State struct {
	Limit, Used, Reserved Amount
	Shared                bool // others draw on it, or have
	Known                 bool // Used is complete; it need not be while there is no limit
}

// State returns a snapshot.
func (p *Purse) State() State {
	p.tree.mu.Lock()
	defer p.tree.mu.Unlock()
	return State{p.limit, p.used, p.reserved, p.shared, p.known}
}

// Limit returns its own limit.
func (p *Purse) Limit() Amount {
	p.tree.mu.Lock()
	defer p.tree.mu.Unlock()
	return p.limit
}

// Find returns the purse of a history; nil if it has none.
func (t *Tree) Find(id types.UUID) *Purse {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.purses[id]
}
