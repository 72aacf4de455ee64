package confine

import (
	"context"
	"slices"

	"rnix/internal/sandbox"
	"rnix/internal/service"
	"rnix/ipc"
)

// Finder finds what callers name.
type Finder interface {
	Find(peer *ipc.Peer, op, text string) (service.Target, error)
}

// Unconfined is what of processes no box confines yet.
var Unconfined = []string{"models that are programs"}

// unconfined are those of this host.
func unconfined(s *Service) []string {
	all := slices.Clone(Unconfined)
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
		if req.MCP != "" {
			plan, err = s.ExplainServer(t.PID, req.MCP)
		} else {
			plan, err = s.Explain(t.PID)
		}
		if err != nil {
			return ipc.SandboxResponse{}, err
		}
		p := plan.Policy
		r := ipc.SandboxResponse{PID: t.PID, UUID: t.UUID, By: string(plan.Rung), Read: p.Read, Write: p.Write, Hidden: p.Hide, Protected: p.Protect, Net: string(p.Net), Limits: p.Limits, Gaps: plan.Gaps, Others: unconfined(s)}
		if plan.Rung == sandbox.RungNone {
			r.By, r.Others = string(sandbox.LevelOff), nil
		}
		return r, nil
	})
}
