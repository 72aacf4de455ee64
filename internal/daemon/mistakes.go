package daemon

import (
	"fmt"

	"rnix/internal/config"
	"rnix/types"
)

// startProfile is profileOf for what starts a program or lets an agent go on. It refuses with INVALID while a file or
// a variable of the configuration has a mistake that may have dropped a limit or a right, and names the mistake.
func startProfile(d *Daemon, op, cwd string, env []string, trust bool) (*profile, error) {
	p, err := d.profileOf(cwd, env, trust)
	if err != nil {
		return nil, err
	}
	return p, mayStart(d, op, p)
}

// mayStart is the refusal of startProfile for a profile that was read for another purpose.
func mayStart(d *Daemon, op string, p *profile) error {
	if len(p.mistakes) > 0 {
		return mistaken(op, p.mistakes)
	}
	if len(d.unread) == 0 {
		return nil
	}
	if now := ownConfig(d).MistakesAtStart(); len(now) > 0 {
		return mistaken(op, now)
	}
	return types.Errorf(types.ErrUnavailable, op, "", "cannot start: the daemon read its configuration while it had a mistake (%s), and has not all limits; restart it with: rnix daemon stop", d.unread[0])
}

// mistaken is the refusal to start anything because of mistakes, of which there is at least one.
func mistaken(op string, ps config.Problems) error {
	more := ""
	if len(ps) > 1 {
		more = fmt.Sprintf(" (and %d more, see: rnix doctor)", len(ps)-1)
	}
	return types.Errorf(types.ErrInvalid, op, "", "cannot start: %s%s; correct it first: with a mistake in the configuration a limit or a right may be missing, so no agent runs", ps[0], more)
}

// ownConfig is the user's configuration as the daemon itself sees it now, with the variables that it was started with.
func ownConfig(d *Daemon) *config.Config {
	cfg := config.Load(config.Sources{UserDir: d.configDir, Home: d.home, Lookup: config.Lookup(d.opt.Lookup)})
	return &cfg
}

// outdated reports whether the daemon has read a configuration with a mistake when it started, and would not now. It
// has started nothing then, and the next one can.
func outdated(d *Daemon) bool {
	return len(d.unread) > 0 && len(ownConfig(d).MistakesAtStart()) == 0
}
