package agent

import (
	"rnix/internal/sandbox"
	"rnix/internal/yamlfile"
)

// checkSandbox reports what an agent cannot say of its sandbox. The network has two places, of which one is enough.
func (m *Manifest) checkSandbox(d *yamlfile.Doc) {
	if l := m.Sandbox.Level; (sandbox.Settings{Level: l}).Check() != nil {
		d.Problemf("sandbox.level", "%q is not known; write auto, bwrap or landlock", l)
	} else if l == sandbox.LevelOff {
		d.Problemf("sandbox.level", "an agent cannot switch the sandbox off; a person does, with: rnix run --sandbox off \"...\"")
	}
	key, net := "sandbox.net", m.Sandbox.Net
	if m.Network != "" {
		if net != "" && net != m.Network {
			d.Problemf("network", "is %q, and sandbox.net is %q; leave one of them out", m.Network, net)
		}
		key, net = "network", m.Network
	}
	if (sandbox.Settings{Net: net}).Check() != nil {
		d.Problemf(key, "%q is not known; write none or open", net)
		net = ""
	}
	m.Sandbox.Net, m.Network = net, ""
}

// looser reports whether an agent that says s of its sandbox may do more than one that says other.
func (s Sandbox) looser(other Sandbox) bool {
	settings := func(s Sandbox) sandbox.Settings {
		return sandbox.Settings{Level: sandbox.LevelOff, Net: sandbox.NetOpen}.With(sandbox.Settings{Level: s.Level, Net: s.Net})
	}
	a, b := settings(s), settings(other)
	both := sandbox.MeetSettings(a, b)
	return both.Level != a.Level || both.Net != a.Net
}
