package agentcli

import (
	"context"

	"rnix/internal/harness"
	"rnix/internal/permit"
	"rnix/types"
)

// Judge decides by the rules of a session's process about a call that its command line makes with a tool of its own. A call about which that fails is
// refused. About one that no rule is about the command line decides itself.
func (d *Service) Judge(ctx context.Context, session, id, tool string, c permit.Call) harness.Verdict {
	var u types.UUID
	err := u.UnmarshalText([]byte(session))
	if err == nil {
		p, failed := d.Kernel.AskFor(ctx, u, id, c)
		switch {
		case failed != nil:
			err = failed
		case p.Decision == permit.Deny:
			err = p.Why
		case p.Decision == permit.Ask: // a person has allowed it
			return harness.Verdict{Decision: permit.Allow, Input: p.Input}
		default:
			return harness.Verdict{Decision: permit.Ask}
		}
	}
	return harness.Verdict{Decision: permit.Deny, Why: tool + ": " + string(types.CodeOf(err)) + ": " + err.Error()}
}
