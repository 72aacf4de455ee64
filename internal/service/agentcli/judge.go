package agentcli

import (
	"context"

	"rnix/internal/harness"
	"rnix/internal/permit"
	"rnix/ipc"
	"rnix/types"
)

// judge answers a question about a call of a session. It counts as work for as long as that takes.
func (d *Service) judge(ctx context.Context, peer *ipc.Peer, req ipc.SessionJudgeRequest) (resp ipc.SessionJudgeResponse, err error) {
	id, _, err := d.bridge.Tools(req.Credential)
	if err != nil {
		return resp, err
	}
	if _, err = d.own(peer, id); err != nil {
		return resp, err
	}
	resp.Answer, err = d.bridge.Judge(ctx, req.Credential, req.Question)
	return resp, err
}

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
