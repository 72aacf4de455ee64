package config

import (
	"fmt"
	"slices"

	"rnix/internal/permit"
)

// applyPermissions takes over what a layer says about which calls a person is asked. None takes back what another one says.
func (c *Config) applyPermissions(l layer, s sink) {
	r := l.Permissions
	for key, list := range map[string][]string{"ask": r.Ask, "allow": r.Allow, "deny": r.Deny} {
		for i, text := range list {
			if _, err := permit.Parse(text); err != nil {
				s.problem(fmt.Sprintf("permissions.%s[%d]", key, i), "%v", permit.Reason(err))
			} else if why := permit.Doubt(text); why != "" && s.warn != nil {
				s.warn(fmt.Sprintf("permissions.%s[%d]", key, i), "%q: %s", text, why)
			}
		}
	}
	if !s.project { // what the user has allowed by one key is so for the other
		if list := permit.Hosts(r.Allow); len(list) > 0 {
			c.Sandbox.Hosts.V, c.Sandbox.Hosts.Origin = slices.Concat(c.Sandbox.Hosts.V, list), s.origin("permissions.allow")
		}
		if len(r.Ask) > 0 {
			r.Allow = slices.Concat(r.Allow, permit.HostRules(l.Sandbox.Hosts))
		}
	}
	if !r.IsZero() {
		c.Permissions = append(c.Permissions, r)
	}
}
