package profile

import (
	"fmt"
	"slices"

	"rnix/internal/hosts"
	"rnix/internal/permit"
	"rnix/types"
)

// AskPermissions adds rules to those of p, and says what becomes of what is asked: wait or deny; empty = as it is. What a person allows is not
// asked about, whatever the files say; what an agent allows counts for its own rules alone, and what is denied to it stays so.
func AskPermissions(p *Profile, r permit.Rules, asks string, person bool) error {
	if err := r.Check(); err != nil {
		return types.Errorf(types.ErrInvalid, "Spawn", "", "%w", permit.Reason(err))
	}
	for _, said := range []struct {
		flag  string
		rules []string
	}{{"ask", r.Ask}, {"allow", r.Allow}, {"deny", r.Deny}} {
		for _, text := range said.rules {
			if why := permit.Doubt(text); why != "" {
				p.Problems = append(slices.Clip(p.Problems), fmt.Sprintf("--%s %q: %s", said.flag, text, why))
			}
		}
	}
	switch asks {
	case "":
	case "deny":
		p.Permissions.Refuse = true
	case "wait":
		p.Permissions.Refuse = p.Permissions.Refuse && !person
	default:
		return types.Errorf(types.ErrInvalid, "Spawn", "", "asks is %q; want wait or deny", asks)
	}
	if person {
		p.Permissions = p.Permissions.Loosened(r.Allow)
		if list := permit.Hosts(r.Allow); len(list) > 0 {
			p.Sandbox.Hosts = hosts.Add(p.Sandbox.Hosts, hosts.Say("--allow", list...))
		}
	}
	p.Permissions = p.Permissions.With(r)
	return nil
}
