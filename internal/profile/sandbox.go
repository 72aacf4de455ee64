package profile

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"rnix/agent"
	"rnix/internal/config"
	"rnix/internal/harness"
	"rnix/internal/hosts"
	"rnix/internal/permit"
	"rnix/internal/sandbox"
	"rnix/types"
)

// AskSandbox sets how the commands of what is started with p are confined, where level and net are not empty, and what they may use, as far as bounds say it, and adds hosts to those that they may reach. A
// person may say anything; what p is bound to afterwards allows no more than its agent has.
func AskSandbox(p *Profile, level, net string, bounds types.Bounds, allow []string) error {
	s := sandbox.Settings{Level: sandbox.Level(level), Net: sandbox.Net(net), Hosts: agent.SaidHosts("--allow-host", allow), Bounds: bounds}
	if len(allow) > 0 && net == "" {
		s.Net = sandbox.NetHosts
	}
	err := s.Check()
	if err == nil && len(allow) > 0 && s.Net != sandbox.NetHosts {
		err = errHosts
	}
	if err == nil && s.Net == sandbox.NetHosts && p.Sandbox.With(s).Off() {
		err = errOff
	}
	if err != nil {
		return types.Errorf(types.ErrInvalid, "Spawn", "", "%w", err)
	}
	p.Sandbox, p.Permissions = p.Sandbox.With(s), p.Permissions.Loosened(permit.HostRules(allow))
	return nil
}

// TightenSandbox is AskSandbox for one that only tightens: INVALID if what is asked for would loosen what p has.
func TightenSandbox(p *Profile, level, net string, bounds types.Bounds, allow []string) error {
	has := p.Sandbox
	s := sandbox.Settings{Level: sandbox.Level(level), Net: sandbox.Net(net), Bounds: bounds}
	if err := s.Check(); err != nil {
		return types.Errorf(types.ErrInvalid, "Resume", "", "%w", err)
	}
	tight := has.Tighten(s.Level, s.Net, bounds, nil)
	switch {
	case level != "" && tight.Level != s.Level:
		return types.Errorf(types.ErrInvalid, "Resume", "", "the sandbox %s would be looser than what it has, which is %s: it can only be tightened", level, has.Level)
	case net != "" && tight.Net != s.Net:
		return types.Errorf(types.ErrInvalid, "Resume", "", "the network %s would be looser than what it has, which is %s: it can only be tightened", net, has.Net)
	case len(allow) > 0:
		return types.Errorf(types.ErrInvalid, "Resume", "", "hosts would loosen what it has: it can only be tightened")
	}
	p.Sandbox = tight
	return nil
}

// errHosts is why hosts are refused for a network that is none of hosts.
var errHosts = errors.New("hosts are allowed where the network is hosts: leave --net out, or use --net hosts")

// errOff is why hosts are refused where nothing is confined.
var errOff = errors.New("the network cannot be limited to hosts while the sandbox is off; switch it on with --sandbox auto, or use --net open")

// Confine tightens the sandbox of p, and its rules, as an agent says, and as level, net and bounds do where they are not empty, and only where it is not nil. Where commands
// then have another network than was said, the problems of p say so.
func Confine(p *Profile, ag *agent.Agent, level, net string, bounds types.Bounds, only []string) error {
	s := sandbox.Settings{Level: sandbox.Level(level), Net: sandbox.Net(net), Hosts: agent.SaidHosts("", only), Bounds: bounds}
	if err := s.Check(); err != nil {
		return types.Errorf(types.ErrInvalid, "Spawn", ag.Name, "%w", err)
	}
	p.Permissions = p.Permissions.With(ag.Permissions)
	p.Permissions.DefaultAfter = ag.Questions.DefaultAfter.Or(0)
	p.Sandbox = p.Sandbox.Tighten(s.Level, s.Net, s.Bounds, s.Hosts).Tighten(ag.Sandbox.Level, ag.Sandbox.Net, ag.Sandbox.Bounds(), ag.Sandbox.Said("the agent "+ag.Name))
	agents, problems := differs(ag.Sandbox.Net, ag.Sandbox.Hosts, p.Sandbox), slices.Clip(p.Problems)
	if agents != "" {
		problems = append(problems, "the agent "+ag.Name+" "+agents)
	}
	if asked := differs(s.Net, only, p.Sandbox); asked != "" && asked != agents {
		problems = append(problems, "the process "+asked)
	}
	p.Problems = problems
	return nil
}

// differs says in how far commands have another network than they are to have; empty = in nothing.
func differs(wanted sandbox.Net, only []string, has sandbox.Settings) string {
	if wanted == sandbox.NetHosts && !has.Off() {
		return lacks(only, has)
	}
	switch {
	case wanted == sandbox.NetHosts:
		return "is to reach allowed hosts alone, and its commands have the network, since the sandbox is off; a person switches it on with --sandbox auto, or in config.yaml with sandbox: {level: auto}"
	case wanted == sandbox.NetOpen && has.Net == sandbox.NetNone && !has.Off():
		return "asks for the network, which its commands do not have; a person gives it with --net open, or in config.yaml with sandbox: {net: open}"
	case wanted == sandbox.NetNone && has.Off():
		return "is to have no network, and its commands have it, since the sandbox is off; a person switches it on with --sandbox auto, or in config.yaml with sandbox: {level: auto}"
	}
	return ""
}

// lacks says which of the hosts that commands are to reach they do not reach; empty = they reach all of them.
func lacks(wanted []string, has sandbox.Settings) string {
	var missing []string
	if has.Net == sandbox.NetNone {
		if missing = wanted; len(wanted) == 0 {
			return "asks for a network of allowed hosts, which its commands do not have; a person gives it with --net hosts, or in config.yaml with sandbox: {net: hosts}"
		}
	} else {
		rules := hosts.RulesOf(has.Hosts)
		for _, host := range wanted {
			of := hosts.RulesOf(hosts.Say("", host))
			if !slices.Equal(hosts.Meet(rules, of), of) {
				missing = append(missing, host)
			}
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return "asks for hosts that its commands do not reach: " + strings.Join(missing, ", ") + "; a person allows them with --allow-host HOST, or in config.yaml with sandbox: {net: hosts, hosts: [HOST]}"
}

// Starts refuses an agent CLI to what is started inside an agent whose commands have no network: it calls its model, and so do commands of its own.
// A model that is a program is not refused: the commands beside it have no more than their process, and what it is asked reaches its vendor as it does
// from a model that the daemon calls.
func Starts(p *Profile, provider *config.Provider) error {
	if p.Sandbox.Within == nil || p.Sandbox.Off() || p.CLI || p.Sandbox.Net == sandbox.NetOpen || provider.Harness() == "" {
		return nil
	}
	if cli, err := harness.Lookup(provider.Harness()); err == nil && p.Sandbox.Net == sandbox.NetHosts {
		needs := cli.Login().Hosts
		if len(needs) > 0 && lacks(needs, p.Sandbox) == "" {
			return nil
		}
		return types.Errorf(types.ErrPermission, "Spawn", provider.Name, "the commands of the agent that starts it do not reach what this agent CLI needs (%s); a person starts it, or allows that agent these hosts with --allow-host", cmp.Or(strings.Join(needs, ", "), "the hosts of its model"))
	}
	return types.Errorf(types.ErrPermission, "Spawn", provider.Name, "the commands of the agent that starts it have no network, which an agent CLI needs; a person starts it, or starts that agent with: rnix run --net open \"...\"")
}

// Confined returns p for an agent that is started by one with profile p: it is confined as below says, and tighter if the agent wants that.
func Confined(p *Profile, ag *agent.Agent, below sandbox.Settings) (*Profile, error) {
	own := *p
	own.Sandbox = sandbox.MeetSettings(below, p.Sandbox)
	return &own, Confine(&own, ag, "", "", types.Bounds{}, nil)
}
