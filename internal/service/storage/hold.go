package storage

import (
	"sync"

	"rnix/types"
)

// holds keep histories where they are while they are resumed or copied. Several may hold the same: who
// may write it, the journal decides.
type holds struct {
	mu   sync.Mutex
	held map[types.UUID]*held // +checklocks:mu
}

type held struct {
	n       int
	release func()
}

// Hold keeps a history where it is until release is called, which may be called again. CONFLICT: it is
// just being archived, deleted or put back. NOT_FOUND: it is archived or deleted, and the error says so.
func (d *Service) Hold(id types.UUID) (release func(), err error) {
	release, err = d.holds.take(id, func() (func(), error) { return d.Collector.Hold(id, "rnix resume") })
	return d.unlessGone(id, release, err)
}

// Reserve keeps all others from a history until release is called: nothing resumes or copies it, nor takes it away. Those are refused as this
// is while one of them is at it (CONFLICT), with the name of the one that is: who.
func (d *Service) Reserve(id types.UUID, who string) (release func(), err error) {
	release, err = d.Collector.Hold(id, who)
	return d.unlessGone(id, release, err)
}

// unlessGone lets a hold go that was taken on a history which is archived or deleted.
func (d *Service) unlessGone(id types.UUID, release func(), err error) (func(), error) {
	if err != nil {
		return nil, err
	}
	if err := d.Collector.Explain(id); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// take takes a share of the hold on a history, which first makes.
func (h *holds) take(id types.UUID, first func() (func(), error)) (release func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	one := h.held[id]
	if one == nil {
		one = new(held)
		if one.release, err = first(); err != nil {
			return nil, err
		}
		if h.held == nil {
			h.held = map[types.UUID]*held{}
		}
		h.held[id] = one
	}
	one.n++
	return sync.OnceFunc(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if one.n--; one.n == 0 {
			delete(h.held, id)
			one.release()
		}
	}), nil
}
