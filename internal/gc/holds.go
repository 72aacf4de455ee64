package gc

import (
	"sync"

	"rnix/types"
)

// Holds say who is at which history, so that nobody takes one away that is read, nor reads one that is taken away. A history has one
// holder, or several that share it: who may write it, the journal decides. The zero value is ready; safe for concurrent use.
type Holds struct {
	mu sync.Mutex
	// +checklocks:mu
	at map[types.UUID]*holder
}

// holder is who is at a history.
type holder struct {
	who    string // for people
	shared int    // how many share it; 0 = it is held alone
}

// Hold keeps all others from a history until release is called, which may be called again. CONFLICT, with who is there, while anybody is at it.
func (h *Holds) Hold(id types.UUID, who string) (release func(), err error) {
	return h.take(id, who, false)
}

// Share keeps a history where it is until release is called, which may be called again. Others may share it. CONFLICT, with who is there,
// while it is held alone.
func (h *Holds) Share(id types.UUID, who string) (release func(), err error) {
	return h.take(id, who, true)
}

func (h *Holds) take(id types.UUID, who string, share bool) (release func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	one, taken := h.at[id]
	switch {
	case !taken:
		if h.at == nil {
			h.at = map[types.UUID]*holder{}
		}
		one = &holder{who: who}
		h.at[id] = one
	case !share || one.shared == 0:
		return nil, types.Errorf(types.ErrConflict, "Hold", id.String(), "%s is at this history; try again in a moment", one.who)
	}
	if share {
		one.shared++
	}
	return sync.OnceFunc(func() { h.leave(id, one) }), nil
}

func (h *Holds) leave(id types.UUID, one *holder) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if one.shared--; one.shared <= 0 {
		delete(h.at, id)
	}
}
