// Package sigset decides what becomes of a signal: nothing, pending, a handler, or the default. It
// holds the masks and handlers of one process, is guarded by that process's lock, and does nothing
// itself.
package sigset

import "rnix/types"

// Handler is a custom action for a signal.
type Handler func(types.Signal)

// Action is what to do with a delivered signal.
type Action int

// The actions.
const (
	Ignore  Action = iota // not a signal
	Pend                  // blocked: it was noted and will be delivered when unblocked
	Handle                // call Decision.Handler
	Default               // do what the signal does
)

// Decision is the outcome of Deliver. It is made in one hold of the process's lock and acted upon
// after it.
type Decision struct {
	Signal  types.Signal
	Action  Action
	Handler Handler
}

// Set is the signal state of one process. The zero value blocks and handles nothing and costs no
// memory.
type Set struct {
	blocked, pending uint8
	handlers         map[types.Signal]Handler
}

func bit(s types.Signal) uint8 { return 1 << s }

// Deliver decides about a signal. A blocked one becomes pending; several of one kind are one.
func (s *Set) Deliver(sig types.Signal) Decision {
	switch {
	case !sig.Valid():
		return Decision{Signal: sig}
	case sig.Blockable() && s.blocked&bit(sig) != 0:
		s.note(sig)
		return Decision{Signal: sig, Action: Pend}
	case sig.Blockable() && s.handlers[sig] != nil:
		return Decision{sig, Handle, s.handlers[sig]}
	}
	return Decision{Signal: sig, Action: Default}
}

// note makes a signal pending. As in POSIX, a pause and a resume take each other back.
func (s *Set) note(sig types.Signal) {
	switch sig {
	case types.SIGPAUSE:
		s.pending &^= bit(types.SIGRESUME)
	case types.SIGRESUME:
		s.pending &^= bit(types.SIGPAUSE)
	}
	s.pending |= bit(sig)
}

// Block blocks a signal and reports whether that is allowed.
func (s *Set) Block(sig types.Signal) bool {
	if sig.Blockable() {
		s.blocked |= bit(sig)
	}
	return sig.Blockable()
}

// Unblock unblocks a signal and returns the decision about a pending one, if there is one.
func (s *Set) Unblock(sig types.Signal) (Decision, bool) {
	if !sig.Valid() {
		return Decision{}, false
	}
	s.blocked &^= bit(sig)
	if s.pending&bit(sig) == 0 {
		return Decision{}, false
	}
	s.pending &^= bit(sig)
	return s.Deliver(sig), true
}

// SetHandler sets the handler of a signal, or removes it with nil, and reports whether the signal can
// have one.
func (s *Set) SetHandler(sig types.Signal, h Handler) bool {
	if !sig.Blockable() {
		return false
	}
	if h == nil {
		delete(s.handlers, sig)
		return true
	}
	if s.handlers == nil {
		s.handlers = make(map[types.Signal]Handler, 1)
	}
	s.handlers[sig] = h
	return true
}

// Pending returns the pending signals in order of their numbers.
func (s *Set) Pending() []types.Signal { return list(s.pending) }

// Blocked returns the blocked signals in order of their numbers.
func (s *Set) Blocked() []types.Signal { return list(s.blocked) }

// Clear forgets everything.
func (s *Set) Clear() { *s = Set{} }

func list(mask uint8) []types.Signal {
	var out []types.Signal
	for sig := types.SIGTERM; sig <= types.SIGRESUME; sig++ {
		if mask&bit(sig) != 0 {
			out = append(out, sig)
		}
	}
	return out
}
