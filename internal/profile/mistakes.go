package profile

import (
	"fmt"

	"rnix/internal/config"
	"rnix/types"
)

// Start reads the configuration at the start of the daemon. As long as it has mistakes that may have dropped a limit or a right, the daemon
// starts nothing.
func (r *Reader) Start() *config.Config {
	cfg := r.Own()
	r.unread = cfg.MistakesAtStart()
	return cfg
}

// Own is the user's configuration as the daemon itself sees it now, with the variables that it was started with.
func (r *Reader) Own() *config.Config {
	cfg := config.Load(config.Sources{UserDir: r.UserDir, Home: r.Home, Lookup: r.Lookup})
	return &cfg
}

// Outdated reports whether the daemon has read a configuration with a mistake when it started, and would not now. It
// has started nothing then, and the next one can.
func (r *Reader) Outdated() bool {
	return len(r.unread) > 0 && len(r.Own().MistakesAtStart()) == 0
}

// ForStart is Read for what starts a program or lets an agent go on. It refuses with INVALID while a file or
// a variable of the configuration has a mistake that may have dropped a limit or a right, and names the mistake.
func (r *Reader) ForStart(op, cwd string, environ []string, trust bool) (*Profile, error) {
	p, err := r.Read(cwd, environ, trust)
	if err != nil {
		return nil, err
	}
	return p, r.MayStart(op, p)
}

// MayStart is the refusal of ForStart for a profile that was read for another purpose.
func (r *Reader) MayStart(op string, p *Profile) error {
	if len(p.Mistakes) > 0 {
		return mistaken(op, p.Mistakes)
	}
	if len(r.unread) == 0 {
		return nil
	}
	if now := r.Own().MistakesAtStart(); len(now) > 0 {
		return mistaken(op, now)
	}
	return types.Errorf(types.ErrUnavailable, op, "", "cannot start: the daemon read its configuration while it had a mistake (%s), and has not all limits; restart it with: rnix daemon stop", r.unread[0])
}

// mistaken is the refusal to start anything because of mistakes, of which there is at least one.
func mistaken(op string, ps config.Problems) error {
	more := ""
	if len(ps) > 1 {
		more = fmt.Sprintf(" (and %d more, see: rnix doctor)", len(ps)-1)
	}
	return types.Errorf(types.ErrInvalid, op, "", "cannot start: %s%s; correct it first: with a mistake in the configuration a limit or a right may be missing, so no agent runs", ps[0], more)
}
