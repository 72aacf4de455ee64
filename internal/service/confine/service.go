// Package confine decides how the OS children of processes are confined: from what the process was started with, where it works, and what this
// host can enforce. proc.Manager asks it for each child; see Service.Box. What it decides by is settled when a process is started and
// kept in its history (profile.Settings), so that a resume has no more.
package confine

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"rnix/internal/gitbox"
	"rnix/internal/plumbing"
	"rnix/internal/proc"
	"rnix/internal/profile"
	"rnix/internal/sandbox"
	"rnix/internal/step"
	"rnix/types"
	"rnix/vfs"
)

// Service decides. Its fields are set before it is used. Safe for concurrent use.
type Service struct {
	Own
	// Caller returns what devices know of a process, also of one that is being started.
	Caller func(pid types.PID) (vfs.Caller, bool)
	// Kernel has the processes. It is asked for when one starts something.
	Kernel func() Kernel
	// Made reports whether a directory is, or lies in, one that was made for a history to work in.
	Made func(id types.UUID, dir string) bool
	// Index knows the histories on disk, in whose directories agents have worked; nil = there are none.
	Index interface{ List() []step.ProcInfo }
	// Finder is set before the service answers anybody.
	Finder Finder
	// Refusals tells what was refused.
	Refusals Refusals
	// Private are the directories that no command sees: those of the data, the socket and the configuration.
	Private []string
	Home    string                           // the user's
	Lookup  func(name string) (string, bool) // the variables of the daemon, in whose PATH bubblewrap is looked for
	Self    string                           // the path of this program
	Start   func(context.Context, proc.Spec) (*proc.Child, error)
	Users   *profile.Reader // what the user's own configuration says
	Network *Network        // nil = that of this machine
	usual   Network         // that one
	// Enforced returns which bounds of what a process uses are enforced by cgroups.
	Enforced func() proc.Enforced

	mu    sync.Mutex   // held while the host is probed
	host  sandbox.Host // +checklocks:mu
	begin sync.Once    // of git
	git   *gitbox.Boxes
}

// gits returns what of s confines the git that Rnix runs itself; nil if the user has switched the sandbox off.
func gits(s *Service) *gitbox.Boxes {
	s.begin.Do(func() {
		if off(s) {
			return
		}
		s.git = &gitbox.Boxes{Host: s.Host, Home: s.Home, Data: s.Data, Start: s.Start, Log: s.Log}
	})
	return s.git
}

// off reports whether the user's own configuration switches the sandbox off.
func off(s *Service) bool { return s.Users.Own().Sandbox.Settings().Off() }

// Box is what proc.Confine asks for. The commands of a process are confined as its profile says, and git that Rnix runs itself as its call
// says; what is not known is refused. MCP servers, agent CLIs and models say themselves how (Server, CLI, Model): one that does not is refused.
// Commands of a person are not confined.
func (s *Service) Box(spec proc.Spec) (proc.Box, error) {
	open := proc.Box{Plan: sandbox.Plan{Policy: sandbox.Everything()}}
	if spec.Kind == proc.KindMCP || spec.Kind == proc.KindHarness || spec.Kind == proc.KindLLM {
		return open, &types.SyscallError{Syscall: "Start", PID: spec.Owner, Code: types.ErrPermission, Err: errUnsaid}
	}
	if spec.Kind == proc.KindGit {
		if by := gits(s); by != nil {
			return by.Box(spec)
		}
		return open, nil
	}
	if spec.Kind != proc.KindShell || spec.Owner == 0 {
		return open, nil
	}
	c, _, err := profileOf(s.Caller, spec.Owner)
	if err != nil {
		return open, err
	}
	place, settings, made, err := s.ofCaller(&c)
	if err != nil || settings.Off() {
		return open, err
	}
	return s.box(settings, place, made, spec.Env, &c, "")
}

// box returns the box of a child of a process with these settings, and makes the directories that are its own. by names the child; empty = it is a command.
func (s *Service) box(settings sandbox.Settings, place sandbox.Place, made bool, env []string, c *vfs.Caller, by string) (proc.Box, error) {
	open := proc.Box{Plan: sandbox.Plan{Policy: sandbox.Everything()}}
	if err := s.makeDirs(place.Temp, place.Cache); err != nil { // before the plan, which gives nothing that does not exist
		return open, err
	}
	plan, err := s.plan(settings, place, made)
	if err != nil || plan.Rung == sandbox.RungNone {
		return open, err
	}
	now := time.Now()
	_ = os.Chtimes(place.Cache, now, now) // see sweepCaches
	box := proc.Box{Plan: plan, Env: place.Environ(env)}
	return box, outlet(s, &box, c, by)
}

// project names that for which caches and homes are: the repository, or else the directory.
func project(place sandbox.Place) string { return cmp.Or(place.Git.Common, place.Work) }

// plan returns how settings are enforced at a place. Where nothing can be enforced, that is PERMISSION, with what to do, or the plan of no
// box if the settings allow that.
func (s *Service) plan(settings sandbox.Settings, place sandbox.Place, made bool) (sandbox.Plan, error) {
	host := s.Host()
	if settings.Optional && host.Best() == sandbox.RungNone && settings.Net != sandbox.NetHosts {
		return sandbox.Plan{Policy: sandbox.Everything()}, nil
	}
	plan, err := sandbox.MakePlan(settings.Policy(place, made), host, sandbox.Disk{})
	if types.CodeOf(err) == types.ErrPermission { // another says itself what to do
		err = refusal(err)
	}
	return plan, err
}

// refusal adds to why commands cannot be confined what a person can do.
func refusal(err error) error {
	return types.Errorf(types.CodeOf(err), "Start", "", "%w; to go on without the sandbox, a person starts it with: rnix run --sandbox off \"...\", or resumes it with: rnix resume --sandbox off PROCESS", err)
}

// levelOf returns by what settings confine on this host, or refuses those that cannot be enforced.
func levelOf(s *Service, settings sandbox.Settings) (sandbox.Level, error) {
	if settings.Off() {
		return sandbox.LevelOff, nil
	}
	host := s.Host()
	rung, err := host.Choose(settings.Level)
	switch {
	case err != nil && settings.Optional && host.Best() == sandbox.RungNone && settings.Net != sandbox.NetHosts:
		return sandbox.LevelOff, nil
	case err != nil:
		return "", refusal(types.Errorf(types.ErrPermission, "Start", "", "%w; see: rnix doctor", err))
	case settings.Net == sandbox.NetHosts && rung == sandbox.RungLandlock:
		return "", types.Errorf(types.ErrPermission, "Start", "", "%w", sandbox.ErrHosts)
	}
	return sandbox.Level(rung), nil
}

// Below returns the settings of what the commands of a process start: no more than they have themselves. Of a process that has ended,
// they may write nowhere but in what is made for them.
func (s *Service) Below(pid types.PID) sandbox.Settings {
	place, settings, made, err := s.of(pid)
	if err != nil {
		unknown := sandbox.Usual()
		unknown.Within = []string{}
		return unknown
	}
	return settings.Below(place, made)
}

// Explain returns how the commands of a process are confined now.
func (s *Service) Explain(pid types.PID) (sandbox.Plan, error) {
	place, settings, made, err := s.of(pid)
	if err != nil {
		return sandbox.Plan{}, err
	}
	return s.plan(settings, place, made)
}

// of returns where the commands of a process run, how they are confined, and whether their directory was made for the process.
func (s *Service) of(pid types.PID) (place sandbox.Place, settings sandbox.Settings, made bool, err error) {
	c, _, err := profileOf(s.Caller, pid)
	if err != nil {
		return place, settings, false, err
	}
	return s.ofCaller(&c)
}

// profileOf returns what devices know of a process, and its profile.
func profileOf(caller func(types.PID) (vfs.Caller, bool), pid types.PID) (vfs.Caller, *profile.Profile, error) {
	c, ok := caller(pid)
	p, has := c.Profile.(*profile.Profile)
	if !ok || !has {
		return c, nil, &types.SyscallError{Syscall: "Start", PID: pid, Code: types.ErrPermission, Err: errUnknown}
	}
	return c, p, nil
}

func (s *Service) ofCaller(c *vfs.Caller) (place sandbox.Place, settings sandbox.Settings, made bool, err error) {
	p, ok := c.Profile.(*profile.Profile)
	if !ok {
		return place, settings, false, &types.SyscallError{Syscall: "Start", PID: c.PID, Code: types.ErrPermission, Err: errUnknown}
	}
	if settings = p.Sandbox; settings.Level == "" || settings.Net == "" { // it was not read by a profile.Reader
		settings = sandbox.MeetSettings(sandbox.Usual(), sandbox.Usual().With(settings))
	}
	place, err = s.placeOf(c, p)
	return place, settings, s.Made(c.UUID, place.Work), err
}

// placeOf returns where the commands of a process run.
func (s *Service) placeOf(c *vfs.Caller, p *profile.Profile) (sandbox.Place, error) {
	work, err := filepath.EvalSymlinks(c.WorkDir)
	if err != nil {
		return sandbox.Place{}, types.Errorf(types.ErrNotFound, "Start", c.WorkDir, "the working directory: %w", err)
	}
	if link := reachOf(s, sandbox.Place{}, sandbox.Policy{}).astray(c.WorkDir, work); link != "" {
		return sandbox.Place{}, types.Errorf(types.ErrConflict, "Start", c.WorkDir, "the working directory is behind a symbolic link that commands of an agent can have made (%s, which leads to %s); remove the link, or start a process in that directory itself", link, work)
	}
	home := s.Home
	if h, ok := p.Lookup("HOME"); ok && filepath.IsAbs(h) {
		home = h
	}
	place := sandbox.Place{Work: work, Home: cmp.Or(resolved(home), s.Home), Temp: s.Temp(c.UUID), Private: s.Private}
	place.Git = sandbox.FindGitAbove(work, sandbox.Disk{}, plumbing.ReadText, append([]string{place.Home, "/"}, s.Private...)...)
	place.Cache = cacheOf(s.Data, project(place))
	place.Tools = append(tools(c, place.Home, s.Private), s.Self)
	return place, nil
}

// tools returns what commands may read although a directory above is hidden: what their process may read besides, its own outputs and inputs,
// and the directories in which programs are looked for, but none that holds a home or what is private.
func tools(c *vfs.Caller, home string, private []string) (out []string) {
	for _, dir := range append([]string{c.Scratch, c.Inputs}, c.ReadRoots...) {
		if filepath.IsAbs(dir) && filepath.Clean(dir) != "/" {
			out = append(out, filepath.Clean(dir))
		}
	}
	for _, kv := range c.Env {
		list, ok := strings.CutPrefix(kv, "PATH=")
		for _, dir := range filepath.SplitList(list) {
			dir = resolved(dir)
			holds := func(path string) bool { return strings.HasPrefix(resolved(path)+"/", strings.TrimSuffix(dir, "/")+"/") }
			if ok && filepath.IsAbs(dir) && !slices.ContainsFunc(append([]string{home}, private...), holds) {
				out = append(out, dir)
			}
		}
	}
	return out
}

// cacheOf returns the directory for the caches of tools of all processes that work on a project, which is named by its repository or its
// directory. Nothing outside of the sandbox uses it.
func cacheOf(data, project string) string { return filepath.Join(caches(data), short(project)) }

func resolved(path string) string {
	if p, err := filepath.EvalSymlinks(path); err == nil {
		return p
	}
	return path
}
