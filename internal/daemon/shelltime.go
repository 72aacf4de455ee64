package daemon

import (
	"time"

	"rnix/agent"
	"rnix/drivers/shell"
	"rnix/vfs"
)

// shellTimeout is the time limit of a caller's commands that ask for none, as its configuration has
// it. No limit is the longest that there is.
func shellTimeout(c vfs.Caller) time.Duration {
	p, ok := c.Profile.(*profile)
	switch {
	case !ok:
		return 0
	case p.cfg.ShellTimeout.V == agent.Off:
		return shell.MaxTimeout
	}
	return p.cfg.ShellTimeout.V.Or(0)
}
