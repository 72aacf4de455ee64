package profile

import (
	"os"
	"time"

	"rnix/agent"
	"rnix/drivers/shell"
	"rnix/internal/proc"
	"rnix/types"
	"rnix/vfs"
)

// Caller is the user as devices see it: not a process, in the client's directory, with the whole
// file system to read. scratch is where outputs are that belong to no process; it is made if it is not there.
func (p *Profile) Caller(scratch string) (vfs.Caller, error) {
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		return vfs.Caller{}, types.Errorf(types.ErrStorage, "Open", scratch, "%w", err)
	}
	return vfs.Caller{WorkDir: p.Cwd, ReadRoots: []string{"/"}, Secret: Secret(p), Profile: p, Env: proc.ComposeEnv(p.Env, nil, nil), Scratch: scratch}, nil
}

// ShellTimeout is the time limit of a caller's commands that ask for none, as its configuration has
// it. No limit is the longest that there is.
func ShellTimeout(c vfs.Caller) time.Duration {
	p, ok := c.Profile.(*Profile)
	switch {
	case !ok:
		return 0
	case p.Config.ShellTimeout.V == agent.Off:
		return shell.MaxTimeout
	}
	return p.Config.ShellTimeout.V.Or(0)
}
