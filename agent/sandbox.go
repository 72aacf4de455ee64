package agent

import (
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
		d.Problemf(key, "%q is not known; write none or open", s.Net)
		s.Net = ""
	}
	return s
}

// looser reports whether an agent that says s of its sandbox may do more than one that says other.
func (s Sandbox) looser(other Sandbox) bool {
	settings := func(s Sandbox) sandbox.Settings {
		return sandbox.Settings{Level: sandbox.LevelOff, Net: sandbox.NetOpen}.With(sandbox.Settings{Level: s.Level, Net: s.Net, Bounds: s.Bounds()})
	}
	a, b := settings(s), settings(other)
	both := sandbox.MeetSettings(a, b)
	return both.Level != a.Level || both.Net != a.Net || both.Bounds.Held() != a.Bounds.Held()
}
