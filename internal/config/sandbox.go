package config

import (
	"fmt"
	"slices"

	"rnix/internal/hosts"
	"rnix/internal/permit"
	"rnix/internal/sandbox"
	"rnix/types"
)

// Sandbox says how the commands of agents are confined. A project may only tighten it.
type Sandbox struct {
	Level Value[sandbox.Level]
	Net   Value[sandbox.Net]
	// Hosts are those that commands reach where the network is hosts. A project only names fewer.
	Hosts   Value[[]string]
	Require Value[bool] // what cannot be confined is refused; the user's only
	// Read, Write and Hide are absolute paths besides those that every command has. Read and Write are the user's only; what a project hides
	// is hidden besides.
	Read, Write, Hide Value[[]string]
	// Memory and Processes are what all that a process starts uses together.
	Memory    Value[types.Memory]
	Processes Value[types.Tasks]
}

// Settings returns what the files say.
func (s *Sandbox) Settings() sandbox.Settings {
	var said []hosts.Said
	if s.Hosts.V != nil {
		said = append([]hosts.Said{}, hosts.Say(string(s.Hosts.Origin), s.Hosts.V...)...)
	}
	return sandbox.Settings{Level: s.Level.V, Net: s.Net.V, Hosts: said, Optional: !s.Require.V, Paths: sandbox.Paths{Read: s.Read.V, Write: s.Write.V, Hide: s.Hide.V}, Bounds: types.Bounds{Memory: s.Memory.V, Processes: s.Processes.V}}
}

// sandboxLayer is the part of config.yaml that is called sandbox, as it is written.
type sandboxLayer struct {
	Level   *string  `yaml:"level"`
	Net     *string  `yaml:"net"`
	Hosts   []string `yaml:"hosts"`
	Require *bool    `yaml:"require"`
	Read    []string `yaml:"read"`
	Write   []string `yaml:"write"`
	Hide    []string `yaml:"hide"`

	Memory    *types.Memory `yaml:"memory"`
	Processes *types.Tasks  `yaml:"processes"`
}

// sandboxDefaults sets what nobody has said.
func (c *Config) sandboxDefaults() {
	usual := sandbox.Usual()
	c.Sandbox = Sandbox{Level: Value[sandbox.Level]{usual.Level, FromDefault}, Net: Value[sandbox.Net]{usual.Net, FromDefault}, Require: Value[bool]{true, FromDefault},
		Hosts: Value[[]string]{nil, FromDefault}, Read: Value[[]string]{nil, FromDefault}, Write: Value[[]string]{nil, FromDefault}, Hide: Value[[]string]{nil, FromDefault}, Memory: Value[types.Memory]{0, FromDefault}, Processes: Value[types.Tasks]{0, FromDefault}}
}

// readSandboxEnv reads the variables of the keys about the sandbox.
func readSandboxEnv(l *layer, v variables) {
	v.text("sandbox.level", &l.Sandbox.Level)
	v.text("sandbox.net", &l.Sandbox.Net)
	v.flag("sandbox.require", &l.Sandbox.Require)
	parse(v, "sandbox.memory", &l.Sandbox.Memory)
	parse(v, "sandbox.processes", &l.Sandbox.Processes)
}

// applySandbox takes over what a layer says about the sandbox.
func (c *Config) applySandbox(l layer, s sink) {
	have := &c.Sandbox
	if v := l.Sandbox.Level; v != nil {
		level := sandbox.Level(*v)
		switch err := (sandbox.Settings{Level: level}).Check(); {
		case err != nil || level == "":
			s.problem("sandbox.level", "%q is not known; write auto, bwrap, landlock or off", *v)
		case s.project && sandbox.Usual().With(have.Settings()).Tighten(level, "", types.Bounds{}, nil).Level != level:
			s.loosens("sandbox.level", have.Level.Origin)
		default:
			have.Level = Value[sandbox.Level]{level, s.origin("sandbox.level")}
		}
	}
	if v := l.Sandbox.Net; v != nil {
		net := sandbox.Net(*v)
		switch err := (sandbox.Settings{Net: net}).Check(); {
		case err != nil || net == "":
			s.problem("sandbox.net", "%q is not known; write none, hosts or open", *v)
		case s.project && sandbox.Usual().With(have.Settings()).Tighten("", net, types.Bounds{}, nil).Net != net:
			s.loosens("sandbox.net", have.Net.Origin)
		default:
			have.Net = Value[sandbox.Net]{net, s.origin("sandbox.net")}
		}
	}
	applyHosts(c, l, s)
	if v := l.Sandbox.Require; v != nil && s.usersOnly("sandbox.require") {
		have.Require = Value[bool]{*v, s.origin("sandbox.require")}
	}
	bound(s, "sandbox.memory", l.Sandbox.Memory, &have.Memory, func(v types.Memory) types.Bounds { return types.Bounds{Memory: v} })
	bound(s, "sandbox.processes", l.Sandbox.Processes, &have.Processes, func(v types.Tasks) types.Bounds { return types.Bounds{Processes: v} })
	for _, list := range []struct {
		key   string
		paths []string
		to    *Value[[]string]
	}{{"sandbox.read", l.Sandbox.Read, &have.Read}, {"sandbox.write", l.Sandbox.Write, &have.Write}, {"sandbox.hide", l.Sandbox.Hide, &have.Hide}} {
		if list.paths == nil || list.key != "sandbox.hide" && !s.usersOnly(list.key) {
			continue
		}
		paths := []string{}
		for i, v := range list.paths {
			if dir, ok := s.directory(fmt.Sprintf("%s[%d]", list.key, i), v); ok {
				paths = append(paths, dir)
			}
		}
		if s.project {
			paths = append(slices.Clone(list.to.V), paths...)
		}
		*list.to = Value[[]string]{paths, s.origin(list.key)}
	}
}

// applyHosts takes over the hosts that a layer names.
func applyHosts(c *Config, l layer, s sink) {
	if l.Sandbox.Hosts == nil {
		return
	}
	have, good := &c.Sandbox, []string{}
	for i, host := range l.Sandbox.Hosts {
		if err := hosts.Check(hosts.Say("", host)); err != nil {
			s.problem(fmt.Sprintf("sandbox.hosts[%d]", i), "%s", permit.Reason(err))
			continue
		}
		good = append(good, host)
	}
	if s.project {
		all := sandbox.Usual().With(have.Settings())
		met := all.Tighten("", "", types.Bounds{}, append([]hosts.Said{}, hosts.Say("", good...)...))
		if all.Net != sandbox.NetOpen && !slices.Equal(hosts.RulesOf(met.Hosts), hosts.RulesOf(hosts.Say("", good...))) {
			s.loosens("sandbox.hosts", have.Hosts.Origin)
		}
		good = []string{}
		for _, said := range met.Hosts {
			good = append(good, said.Host)
		}
		if have.Net.V == sandbox.NetOpen {
			have.Net = Value[sandbox.Net]{sandbox.NetHosts, s.origin("sandbox.hosts")}
		}
	}
	have.Hosts = Value[[]string]{good, s.origin("sandbox.hosts")}
}

// bound takes over a bound of which of makes Bounds. A project may only lower it.
func bound[T comparable](s sink, key string, v *T, have *Value[T], of func(T) types.Bounds) {
	switch {
	case v == nil:
	case s.project && of(have.V).Meet(of(*v)) != of(*v):
		s.loosens(key, have.Origin)
	default:
		*have = Value[T]{*v, s.origin(key)}
	}
}
