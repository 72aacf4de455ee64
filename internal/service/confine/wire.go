package confine

import (
	"context"

	"rnix/internal/hosts"
	"rnix/internal/sandbox"
	"rnix/internal/service"
	"rnix/ipc"
	"rnix/types"
)

// Finder finds what callers name.
type Finder interface {
	Find(peer *ipc.Peer, op, text string) (service.Target, error)
}

// unconfined is what of processes no box of this host confines, in words.
func unconfined(s *Service) (all []string) {
	const git = "git that Rnix runs itself, which only its settings keep from running what a repository names: "
	if by := gits(s); by == nil {
		all = append(all, git+"the configuration has switched the sandbox off")
	} else if err := by.Reason(); err != nil {
		all = append(all, git+err.Error())
	}
	return all
}

// Register registers what the service answers.
func (s *Service) Register(on *service.Wire) {
	service.Handle(on, ipc.ExplainSandbox, func(_ context.Context, peer *ipc.Peer, req ipc.SandboxRequest) (ipc.SandboxResponse, error) {
		t, err := s.Finder.Find(peer, "Sandbox", req.Target)
		if err == nil {
			err = t.MustRun("Sandbox", req.Target)
		}
		if err != nil {
			return ipc.SandboxResponse{}, err
		}
		var plan sandbox.Plan
		var program string
		switch {
		case req.MCP != "":
			plan, err = s.ExplainServer(t.PID, req.MCP)
		case req.Model:
			plan, err = s.ExplainModel(t.PID, t.Live.Provider)
		default:
			program = programOfModel(s, t.PID, t.Live.Provider)
			plan, err = s.Explain(t.PID)
		}
		if err != nil {
			return ipc.SandboxResponse{}, err
		}
		p := plan.Policy
		r := ipc.SandboxResponse{PID: t.PID, UUID: t.UUID, By: string(plan.Rung), Read: p.Read, Write: p.Write, Hidden: p.Hide, Protected: p.Protect, Net: string(p.Net), Limits: p.Limits, Bounds: boundsOf(s, t.PID, plan.Rung), Gaps: plan.Gaps, Others: unconfined(s), Program: program}
		r.Hosts = saidTo(s, t.PID, &p, req.MCP == "" && !req.Model)
		for _, n := range s.counted.totals(t.UUID) {
			r.Traffic = append(r.Traffic, ipc.HostTraffic(n))
		}
		if plan.Rung == sandbox.RungNone {
			r.By, r.Others = string(sandbox.LevelOff), nil
		}
		return r, nil
	})
}

// saidTo returns the hosts that a policy of a process lets be reached: of its commands, as they were said.
func saidTo(s *Service, pid types.PID, p *sandbox.Policy, commands bool) []hosts.Said {
	if p.Net != sandbox.NetHosts {
		return nil
	}
	if _, settings, _, err := s.of(pid); commands && err == nil {
		return settings.Hosts
	}
	return hosts.Say("", p.Hosts...)
}
