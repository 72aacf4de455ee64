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
	if release, err = d.holds.take(id, func() (func(), error) { return d.Collector.Hold(id, "rnix resume") }); err != nil {
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
