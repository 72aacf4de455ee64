package confine

import (
	"context"

	"rnix/drivers/web"
	"rnix/internal/egress"
	"rnix/internal/hosts"
	"rnix/internal/permit"
	"rnix/internal/profile"
	"rnix/internal/sandbox"
	"rnix/kernel"
	"rnix/types"
	"rnix/vfs"
)

// errNoNetwork is why a process whose commands have no network fetches nothing.
const errNoNetwork = "the sandbox gives this process no network; trying again does not help, a person allows hosts with --allow-host HOST, or all with --net open, or under sandbox in config.yaml"

// pathOf returns the path of the device that has a tool.
func pathOf(tool string) string {
	if tool == permit.SearchTool {
		return permit.SearchPath
	}
	return permit.WebPath
}

// Networked reports whether a process with this vfs.Caller.Profile may reach any host.
func Networked(p any) bool {
	of, ok := p.(*profile.Profile)
	return ok && netOf(of).Net != sandbox.NetNone
}

// netOf returns what is said of the network of a process. Where nothing is confined it is open.
func netOf(p *profile.Profile) sandbox.Settings {
	s := p.Sandbox
	if s.Level == "" || s.Net == "" { // it was not read by a profile.Reader
		s = sandbox.MeetSettings(sandbox.Usual(), sandbox.Usual().With(s))
	}
	if s.Off() {
		s.Net = sandbox.NetOpen
	}
	return s
}

// page is the way of one fetch of a process to hosts: by the rules that its commands have, and to public addresses alone, also where its network is open, unless the
// hosts that are allowed name another one.
type page struct {
	*egress.Direct
	s    *Service
	of   types.UUID
	hold func() (goOn func())
}

// Pages returns what opens the ways of fetches and searches, as web.Options.Open.
func Pages(s *Service) func(c vfs.Caller, tool string, hold func() (goOn func())) (web.Way, error) {
	return func(c vfs.Caller, tool string, hold func() (goOn func())) (web.Way, error) {
		return pageOf(s, c, tool, hold)
	}
}

func pageOf(s *Service, c vfs.Caller, tool string, hold func() (goOn func())) (web.Way, error) {
	network := s.Network
	if network == nil {
		network = &s.usual
	}
	way, open := &page{s: s, of: c.UUID, hold: hold}, true
	client := &egress.Client{Who: tool, Refused: func(r sandbox.Refusal) {
		if c.PID != 0 {
			s.Refusals.tell(c, "", []sandbox.Refusal{r}, nil)
		}
	}}
	if c.PID != 0 { // a person reaches what is public
		p, ok := c.Profile.(*profile.Profile)
		if !ok {
			return nil, &types.SyscallError{Syscall: "Write", PID: c.PID, Code: types.ErrPermission, Err: errUnknown}
		}
		has := netOf(p)
		if has.Net == sandbox.NetNone {
			return nil, types.Errorf(types.ErrPermission, "Write", pathOf(tool), "%s", errNoNetwork)
		}
		open = has.Net == sandbox.NetOpen
		client.Rules, client.Counts = hosts.RulesOf(has.Hosts), s.counted.of(c.UUID)
	}
	if rules, ok := engineRules(c.Profile); ok && open && tool == permit.SearchTool { // a person has said where it is, and no page: it may be private
		client.Rules = rules
	}
	ctx, stop := context.WithCancel(context.Background())
	d := &doorman{ctx: ctx, of: c.UUID, who: client.Who, hold: hold, ask: func(ctx context.Context, of types.UUID, id string, call permit.Call) (kernel.Permission, error) {
		return s.Kernel().AskFor(ctx, of, id, call)
	}}
	client.Judge = func(ctx context.Context, to hosts.Target, named bool) egress.Verdict {
		return d.Judge(ctx, to, named || open)
	}
	client.End = func() {
		stop()
		d.work.Wait()
	}
	way.Direct = network.Direct(client)
	return way, nil
}

// Follow decides about a URL to which a redirect leads, as about a call. PERMISSION = it is not to be fetched.
func (p *page) Follow(ctx context.Context, url string) error {
	defer p.hold()()
	call := permit.WebCall(url)
	call.Fixed = true // the server has said it
	answer, err := p.s.Kernel().AskFor(ctx, p.of, permit.WebTool+" "+url, call)
	switch {
	case types.CodeOf(err) == types.ErrNotFound && p.of == (types.UUID{}): // nobody's process: a person has asked for it
		return nil
	case err != nil:
		return err
	case answer.Decision == permit.Deny:
		return types.Errorf(types.ErrPermission, "Write", permit.WebPath, "%w", permit.Reason(answer.Why))
	}
	return nil
}
