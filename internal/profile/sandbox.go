package profile

import (
	"slices"

	"rnix/agent"
	"rnix/internal/config"
	"rnix/internal/sandbox"
	"rnix/types"
)

// AskSandbox sets how the commands of what is started with p are confined, where level and net are not empty, and what they may use, as far as bounds say it. A person may say anything; what p is bound
// to afterwards allows no more than its agent has.
func AskSandbox(p *Profile, level, net string, bounds types.Bounds) error {
	s := sandbox.Settings{Level: sandbox.Level(level), Net: sandbox.Net(net), Bounds: bounds}
	if err := s.Check(); err != nil {
		return types.Errorf(types.ErrInvalid, "Spawn", "", "%w", err)
	}
	p.Sandbox = p.Sandbox.With(s)
	return nil
}

// Confine tightens the sandbox of p, and its rules, as an agent says, and as level, net and bounds do where they are not empty. Where commands then have another network
// than was said, the problems of p say so.
func Confine(p *Profile, ag *agent.Agent, level, net string, bounds types.Bounds) error {
	s := sandbox.Settings{Level: sandbox.Level(level), Net: sandbox.Net(net), Bounds: bounds}
	if err := s.Check(); err != nil {
		return types.Errorf(types.ErrInvalid, "Spawn", ag.Name, "%w", err)
	}
	p.Permissions = p.Permissions.With(ag.Permissions)
	p.Permissions.DefaultAfter = ag.Questions.DefaultAfter.Or(0)
	p.Sandbox = p.Sandbox.Tighten(s.Level, s.Net, s.Bounds).Tighten(ag.Sandbox.Level, ag.Sandbox.Net, ag.Sandbox.Bounds())
	agents, problems := differs(ag.Sandbox.Net, p.Sandbox), slices.Clip(p.Problems)
	if agents != "" {
		problems = append(problems, "the agent "+ag.Name+" "+agents)
	}
	if asked := differs(s.Net, p.Sandbox); asked != "" && asked != agents {
		problems = append(problems, "the process "+asked)
	}
	p.Problems = problems
	return nil
}

// differs says in how far commands have another network than they are to have; empty = in nothing.
func differs(wanted sandbox.Net, has sandbox.Settings) string {
	switch {
	case wanted == sandbox.NetOpen && has.Net == sandbox.NetNone && !has.Off():
		return "asks for the network, which its commands do not have; a person gives it with --net open, or in config.yaml with sandbox: {net: open}"
	case wanted == sandbox.NetNone && has.Off():
		return "is to have no network, and its commands have it, since the sandbox is off; a person switches it on with --sandbox auto, or in config.yaml with sandbox: {level: auto}"
	}
	return ""
}

// Starts refuses an agent CLI to what is started inside an agent whose commands have no network: it calls its model, and so do commands of its own.
// A model that is a program is not refused: the commands beside it have no more than their process, and what it is asked reaches its vendor as it does
// from a model that the daemon calls.
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
	return &own, Confine(&own, ag, "", "", types.Bounds{})
}
