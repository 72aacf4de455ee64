package cli

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"rnix/internal/config"
	"rnix/ipc"
	"rnix/runtime/statehome"
	"rnix/types"
)

// places returns where everything of this installation lies, as the daemon finds it too.
func (a *app) places() (statehome.Places, error) {
	configured := ""
	if a.getenv(statehome.EnvDataDir) == "" {
		if dir, err := statehome.ConfigDir(a.env); err == nil {
			configured = config.Load(config.Sources{UserDir: dir, Home: a.getenv("HOME")}).DataDir.V
		}
	}
	p, err := statehome.Find(a.env, configured)
	if err != nil {
		return p, usagef("", "%s", errorText(err))
	}
	return p, nil
}

// connect returns a client of the daemon, and starts it if none runs. One that stops is waited for.
func (a *app) connect(ctx context.Context) (*ipc.Client, error) {
	if a.client != nil {
		return a.client, nil
	}
	p, err := a.places()
	if err != nil {
		return nil, err
	}
	began, starts := time.Now(), false
	for tries := 1; ; tries++ {
		c, err := reach(ctx, a, p, func(msg string) { a.out.talk("[kernel] %s", msg) }, func() { starts = true })
		if err != nil {
			return nil, misplaced(unreachable(err), p)
		}
		a.connected(ctx, c)
		again, err := outlasts(ctx, a, c, p.DataDir)
		if !again && err == nil {
			if starts {
				withDashboard(ctx, a, c.Socket())
			}
			return c, nil
		}
		if again && tries == maxConnects {
			if f, ok := startFailure(a); ok && !f.Time.Before(began) { // each has ended by what is wrong with all
				a.client = nil
				return nil, unreachable(types.Errorf(types.ErrUnavailable, "", "", "the daemon does not start: %s", lines(f.Text)))
			}
			return c, nil
		}
		a.client = nil
		if err != nil {
			return nil, err
		}
		ended, cancel := context.WithTimeout(ctx, endingTime)
		letGo(ended, a) // else the next one would find that a daemon runs
		cancel()
	}
}

// reach returns a client of the daemon. Inside a process that is over its channel or its road, and no daemon is started; if neither arrived
// here, the socket may still be reached. Else the daemon is started if none runs, which started is told; both functions may be nil.
func reach(ctx context.Context, a *app, p statehome.Places, progress func(string), started func()) (*ipc.Client, error) {
	inherited, lack := ipc.Inherited(a.getenv, p.DataDir)
	switch {
	case inherited != "":
		return ipc.Connect(ctx, inherited)
	case types.CodeOf(lack) == types.ErrInvalid:
		return nil, lack
	}
	c, err := ipc.Ensure(ctx, ipc.EnsureOptions{Socket: p.Socket, DataDir: p.DataDir, Log: p.Log, Env: a.host.Environ, Progress: progress, Started: started})
	return c, withMend(err, errorText(lack))
}

// maxConnects is how many daemons in turn may end under a command before it gives up; then its call says so.
const maxConnects = 5

// misplaced adds to an error what to do if the directory of the data or of the socket cannot be one.
func misplaced(err error, p statehome.Places) error {
	if !errors.Is(err, syscall.ENOTDIR) {
		return err
	}
	dir, variable := filepath.Dir(p.Socket), "XDG_RUNTIME_DIR"
	if s, failed := os.Stat(p.DataDir); errors.Is(failed, syscall.ENOTDIR) || failed == nil && !s.IsDir() {
		dir, variable = p.DataDir, statehome.EnvDataDir
	}
	return withMend(err, dir+" has to be a directory, and it or one above it is a file: move that away, or set "+variable+" to another directory")
}

// find returns a client of the daemon that runs, or nil if none does.
func (a *app) find(ctx context.Context) (*ipc.Client, error) {
	if a.client != nil {
		return a.client, nil
	}
	p, err := a.places()
	if err != nil {
		return nil, err
	}
	inherited, lack := ipc.Inherited(a.getenv, p.DataDir)
	if types.CodeOf(lack) == types.ErrInvalid {
		return nil, lack
	}
	c, err := ipc.Connect(ctx, cmp.Or(inherited, p.Socket))
	if inherited == "" && (types.CodeOf(err) == types.ErrUnavailable || statehome.CheckSocketPath(p.Socket) != nil) {
		// It may listen elsewhere, as when it was started in another kind of session.
		holder, held, lerr := ipc.LockHolder(ipc.DataLock(p.DataDir))
		if lerr == nil && held {
			holder.WakeWarden()
		}
		switch {
		case lerr != nil || !held || holder.Socket == "" || holder.Ended():
			return nil, unreachable(lack)
		case holder.Socket == p.Socket:
			return nil, unreachable(types.Errorf(types.ErrUnavailable, "Connect", p.Socket, "the daemon with pid %d runs but does not listen: it is starting or stopping", holder.PID))
		}
		c, err = ipc.Connect(ctx, holder.Socket)
	}
	if err != nil {
		return nil, misplaced(withMend(unreachable(err), errorText(lack)), p)
	}
	a.connected(ctx, c)
	return c, nil
}

// inherited names the process inside which this command runs; "" = none. A UUID is nobody else's, whatever daemon is asked; a PID may
// be another process's there.
func (a *app) inherited() string {
	if id := a.getenv("RNIX_UUID"); id != "" {
		return id
	}
	return a.getenv("RNIX_PARENT_PID")
}

// project says which project's configuration counts.
func (a *app) project(trust bool) ipc.ProjectRequest {
	return ipc.ProjectRequest{Cwd: a.host.Dir, Env: a.host.Environ, TrustProject: trust}
}
