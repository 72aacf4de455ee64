package profile

import (
	"rnix/agent"
	"rnix/internal/config"
	"rnix/internal/sandbox"
	"rnix/types"
)

// AskSandbox sets how the commands of what is started with p are confined, where level and net are not empty. A person may say anything; what p is bound
// to afterwards allows no more than its agent has.
func AskSandbox(p *Profile, level, net string) error {
	s := sandbox.Settings{Level: sandbox.Level(level), Net: sandbox.Net(net)}
	if err := s.Check(); err != nil {
		return types.Errorf(types.ErrInvalid, "Spawn", "", "%w", err)
	}
	p.Sandbox = p.Sandbox.With(s)
	return nil
}

// Confine tightens the sandbox of p as an agent says, and as level and net do where they are not empty.
func Confine(p *Profile, ag *agent.Agent, level, net string) error {
	s := sandbox.Settings{Level: sandbox.Level(level), Net: sandbox.Net(net)}
	if err := s.Check(); err != nil {
		return types.Errorf(types.ErrInvalid, "Spawn", ag.Name, "%w", err)
	}
	p.Sandbox = p.Sandbox.Tighten(s.Level, s.Net).Tighten(ag.Sandbox.Level, ag.Sandbox.Net)
	if ag.Sandbox.Net == sandbox.NetOpen && p.Sandbox.Net == sandbox.NetNone && !p.Sandbox.Off() {
		p.Problems = append(p.Problems[:len(p.Problems):len(p.Problems)], "the agent "+ag.Name+" asks for the network, which its commands do not have; a person gives it with --net open")
	}
	return nil
}

// Starts refuses an agent CLI to what is started inside an agent whose commands have no network: it calls its model, and so do commands of its own.
func Starts(p *Profile, provider *config.Provider) error {
	if p.Sandbox.Within == nil || p.Sandbox.Off() || p.CLI || p.Sandbox.Net == sandbox.NetOpen || provider.Harness() == "" {
		return nil
	}
	return types.Errorf(types.ErrPermission, "Spawn", provider.Name, "the commands of the agent that starts it have no network, which an agent CLI needs; a person starts it, or starts that agent with: rnix run --net open \"...\"")
}

// Confined returns p for an agent that is started by one with profile p: it is confined as below says, and tighter if the agent wants that.
func Confined(p *Profile, ag *agent.Agent, below sandbox.Settings) (*Profile, error) {
	own := *p
	own.Sandbox = sandbox.MeetSettings(below, p.Sandbox)
	return &own, Confine(&own, ag, "", "")
}
