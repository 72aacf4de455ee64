package controlplane

import (
	"time"

	"rnix/types"
)

// lease is who owns a session. The zero value is nobody.
type lease struct {
	owner   string
	token   uint64    // of the last owner; it only grows
	claim   string    // the ID of the claim that made it; may be empty
	over    bool      // given back
	expires time.Time // by this server's clock
}

// held reports whether nobody else may have the session now.
func (l lease) held(now time.Time) bool { return l.owner != "" && !l.over && now.Before(l.expires) }

// writes reports whether a request may change the session: it has the newest token or, without one, comes from the
// worker that has. A lease that has run out and was not given to another is still the newest.
func (l lease) writes(worker string, token uint64) bool {
	if l.owner == "" || l.over {
		return false
	}
	if token != 0 {
		return token == l.token
	}
	return worker != "" && worker == l.owner
}

// answer is what becomes of a claim or a refresh.
type answer int

const (
	denied  answer = iota // another one has it
	renewed               // it goes on, under the same token
	granted               // it begins, under the next token
)

// claimed decides a claim. One that was made already has the same answer as long as it is the newest; used says that an earlier
// one had this ID.
func (l lease) claimed(worker, claim string, used bool, now time.Time) answer {
	switch {
	case claim != "" && claim == l.claim && worker == l.owner && !l.over:
		return renewed
	case used:
		return denied // it arrives late, or again
	case l.held(now) && worker != l.owner:
		return denied
	}
	return granted
}

// refreshed decides a refresh. Who has no token, as clients of old have none, gets a lease with it if nobody has one.
func (l lease) refreshed(worker string, token uint64, now time.Time) answer {
	switch {
	case l.writes(worker, token):
		return renewed
	case token == 0 && worker != "" && !l.held(now):
		return granted
	}
	return denied
}

// fenced is the error for who may not write.
func (l lease) fenced(id string, token uint64) error {
	if token != 0 {
		return types.Errorf(types.ErrConflict, "Write", id, "fencing token %d is an old one, %d is in force; claim the session, or leave it to its owner %q", token, l.token, l.owner)
	}
	return types.Errorf(types.ErrConflict, "Write", id, "%q has the session; send the token of its lease in X-Fencing-Token, or claim it", l.owner)
}
