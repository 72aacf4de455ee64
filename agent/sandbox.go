package agent

import (
	"slices"

	"rnix/internal/hosts"
	"rnix/internal/permit"
	"rnix/internal/sandbox"
	"rnix/internal/yamlfile"
)

// checkSandbox reports what an agent cannot say of its sandbox.
func (m *Manifest) checkSandbox(d *yamlfile.Doc) {
	m.Sandbox = CheckSandbox(d, "", m.Sandbox, m.Network, `an agent cannot switch the sandbox off; a person does, with: rnix run --sandbox off "..."`)
	m.Network = ""
}

// CheckSandbox reports what s and network cannot say: the values of the keys sandbox and network, as agents, nodes of workflows and children of
// supervisors have them. at is the key of what they are of, with a dot behind it; empty for the whole file. off is why it cannot switch the
// sandbox off, and who can. The network has two places, of which one is enough: it is returned in the first one.
func CheckSandbox(d *yamlfile.Doc, at string, s Sandbox, network sandbox.Net, off string) Sandbox {
	if l := s.Level; (sandbox.Settings{Level: l}).Check() != nil {
		d.Problemf(at+"sandbox.level", "%q is not known; write auto, bwrap or landlock", l)
	} else if l == sandbox.LevelOff {
		d.Problemf(at+"sandbox.level", "%s", off)
	}
	key := at + "sandbox.net"
	if network != "" {
		if s.Net != "" && s.Net != network {
			d.Problemf(at+"network", "is %q, and sandbox.net is %q; leave one of them out", network, s.Net)
		}
		key, s.Net = at+"network", network
	}
	if (sandbox.Settings{Net: s.Net}).Check() != nil {
		d.Problemf(key, "%q is not known; write none, hosts or open", s.Net)
		s.Net = ""
	}
	if s.Hosts != nil && s.Net != "" && s.Net != sandbox.NetHosts {
		d.Problemf(at+"sandbox.hosts", "are named, but the network is %s; set it to hosts, or remove them", s.Net)
		s.Hosts = nil
	}
	for i, host := range s.Hosts {
		if err := hosts.Check(hosts.Say("", host)); err != nil {
			d.Problemf(at+"sandbox.hosts["+itoa(i)+"]", "%s", permit.Reason(err))
		}
	}
	if s.Hosts != nil && s.Net == "" {
		s.Net = sandbox.NetHosts
	}
	return s
}

// Said returns the hosts as settings have them.
func (s Sandbox) Said(from string) []hosts.Said { return SaidHosts(from, s.Hosts) }

// SaidHosts returns hosts that were said in one place, as settings have them; nil if nothing was said.
func SaidHosts(from string, list []string) []hosts.Said {
	if list == nil {
		return nil
	}
	return append([]hosts.Said{}, hosts.Say(from, list...)...)
}

// looser reports whether an agent that says s of its sandbox may do more than one that says other.
func (s Sandbox) looser(other Sandbox) bool {
	settings := func(s Sandbox) sandbox.Settings {
		return sandbox.Settings{Level: sandbox.LevelOff, Net: sandbox.NetOpen}.Tighten(s.Level, s.Net, s.Bounds(), s.Said(""))
	}
	a, b := settings(s), settings(other)
	both := sandbox.MeetSettings(a, b)
	return both.Level != a.Level || both.Net != a.Net || both.Bounds.Held() != a.Bounds.Held() || a.Net == sandbox.NetHosts && !slices.Equal(hosts.RulesOf(both.Hosts), hosts.RulesOf(a.Hosts))
}
