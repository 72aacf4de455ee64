package profile

import (
	"cmp"
	"fmt"
	"slices"

	"rnix/internal/config"
	"rnix/internal/harness"
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
	}
	p.Permissions = p.Permissions.With(r)
	return nil
}

// Unasked says that rules do not reach what an agent CLI does with tools of its own; empty = they do, or there are none.
func Unasked(p *Profile, provider *config.Provider) string {
	cli, err := harness.Lookup(provider.Harness())
	if len(p.Permissions.Layers) == 0 || err != nil || cli.Can().Asks || cmp.Or(p.tools, provider.Tools) == config.ToolsKernel {
		return ""
	}
	return "the rules of permissions do not reach what " + provider.Name + " does with its own tools; with --tools kernel it has those of Rnix only"
}
