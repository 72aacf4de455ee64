package confine

import (
	"context"
	"errors"
	"time"

	"rnix/internal/proc"
	"rnix/internal/sandbox"
)

// errUnknown is the cause of the refusal to start what nobody says how to confine.
var errUnknown = errors.New("it is not known how the commands of this process are confined: it has ended")

// errUnsaid is the cause of the refusal to start an MCP server, an agent CLI or a model that does not say how it is confined.
var errUnsaid = errors.New("it is not known how this MCP server, agent CLI or model is confined")

// probeTime bounds the test of each mechanism.
const probeTime = 20 * time.Second

// Host returns with what this host can confine commands. It finds out by confining one, the first time, and whenever the machine, the user or
// the programs are others.
func (s *Service) Host() sandbox.Host {
	s.mu.Lock()
	defer s.mu.Unlock()
	path, _ := s.Lookup("PATH")
	bwrap := sandbox.FindBwrap(path)
	if h := s.host; h.Key != sandbox.HostKey(bwrap) || h.Bwrap.Untried || h.Landlock.Untried || h.Best() == sandbox.RungNone {
		s.host = sandbox.Probe(context.Background(), s.try, s.Self, bwrap)
		s.Log.Info("sandbox", "by", string(s.host.Best()), "bwrap", s.host.Bwrap.Reason, "landlock", s.host.Landlock.Reason)
	}
	return s.host
}

// try runs a command by a plan, for Probe.
func (s *Service) try(ctx context.Context, plan sandbox.Plan, c sandbox.Command) (int, string, error) {
	errs := proc.NewRing(4 << 10)
	child, err := s.Start(ctx, proc.Spec{Kind: proc.KindShell, Path: c.Path, Args: c.Args, Env: c.Env, Dir: c.Dir, Stderr: errs, Timeout: probeTime,
		Shown: "test of the sandbox", Box: &proc.Box{Plan: plan}})
	if err != nil {
		return 0, "", err
	}
	exit := child.Wait()
	return exit.Code, errs.String(), exit.Err
}

// Begin finds out what this host can enforce, unless the user has switched the sandbox off, and removes the temporary files that an earlier daemon has left and nobody needs any more.
func (s *Service) Begin() {
	if !off(s) {
		s.Host()
	}
	s.sweep(time.Now())
}
