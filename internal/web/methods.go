package web

import (
	"bytes"
	"encoding/json"
	"path/filepath"

	"rnix/ipc"
	"rnix/types"
)

// rewrite makes of a request of the page the one that the daemon gets; nil = the same bytes.
type rewrite func(o Options, body []byte) ([]byte, error)

// methods are those that the page may call: what looks, what starts agents and steers them, and what takes their work over. What reads
// or writes any file, removes something for good, or concerns the daemon itself is not among them: a person does that in a terminal.
var methods = map[string]rewrite{
	ipc.Ping.Name: nil, ipc.DaemonStatus.Name: nil, ipc.StorageProgress.Name: nil, ipc.DU.Name: nil,
	ipc.ListProcs.Name: nil, ipc.ListResumable.Name: nil, ipc.GetProcDetail.Name: nil, ipc.Lineage.Name: nil,
	ipc.ListSteps.Name: nil, ipc.GetStepDetail.Name: nil, ipc.Ledger.Name: nil, ipc.DiffFiles.Name: nil,
	ipc.Events.Name: nil, ipc.ListGroups.Name: nil, ipc.Heartbeat.Name: nil, ipc.Supervisors.Name: nil,
	ipc.ListWorktrees.Name: nil, ipc.ShowWorktree.Name: nil, ipc.Delivered.Name: nil, ipc.Mailbox.Name: nil,
	ipc.ShowBudget.Name: nil, ipc.ShowCost.Name: nil, ipc.Families.Name: nil,
	ipc.ComposeStatus.Name: nil, ipc.ComposeList.Name: nil, ipc.ComposePlan.Name: nil,
	ipc.ProviderTraffic.Name: nil, "watch_procs": nil, "list_messages": nil, ipc.ReadAttachment.Name: nil, "trace": nil, "context_profile": nil,

	ipc.Signal.Name: nil, ipc.SignalTree.Name: nil, ipc.Steer.Name: nil, ipc.Rename.Name: nil, ipc.Compact.Name: nil, ipc.ComposeDown.Name: nil,
	ipc.ListAsks.Name: nil, ipc.AnswerAsk.Name: nil, ipc.RevokeGrant.Name: nil,
	ipc.Merge.Name: nil,

	// The environment and the trust of these come from who started the dashboard, never from the page.
	ipc.Spawn.Name: filled(startable),
	ipc.Resume.Name: filled(func(o Options, r *ipc.ResumeRequest) error {
		if r.Cwd != "" {
			return notHere("cwd")
		}
		return own(o, &r.Env, r.TrustProject)
	}),
	ipc.AddBudget.Name:     filled(func(o Options, r *ipc.AddBudgetRequest) error { return own(o, &r.Env, false) }),
	ipc.ComposeResume.Name: filled(func(o Options, r *ipc.ComposeResumeRequest) error { return own(o, &r.Env, r.TrustProject) }),
	ipc.Providers.Name:     filled(func(o Options, r *ipc.ProvidersRequest) error { return ownProject(o, &r.ProjectRequest) }),
	ipc.RawStep.Name:       filled(func(o Options, r *ipc.RawStepRequest) error { return ownProject(o, &r.ProjectRequest) }),
	ipc.Models.Name:        filled(func(o Options, r *ipc.ModelsRequest) error { return ownProject(o, &r.ProjectRequest) }),
	ipc.ListAgents.Name:    filled(ownProject),
	ipc.ListSkills.Name:    filled(ownProject),
	ipc.MCPList.Name:       filled(ownProject),
}

// startable lets a person start an agent, as rnix run does. Below which process, and as whose session, only the command line says.
func startable(o Options, r *ipc.SpawnRequest) error {
	switch {
	case r.Parent != "":
		return notHere("parent")
	case r.Session != "", r.Issue != "":
		return notHere("session")
	}
	r.Cwd = o.in(r.Cwd)
	return own(o, &r.Env, r.TrustProject)
}

// in returns a directory that the page names, as one that is entered where the dashboard was started.
func (o Options) in(dir string) string {
	if filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	return filepath.Join(o.Dir, dir)
}

// filled reads a request as the daemon would, has fill complete it, and writes it anew: so nothing of what the page
// said, under whatever spelling of a name, stands beside what fill said.
func filled[Req any](fill func(Options, *Req) error) rewrite {
	return func(o Options, body []byte) ([]byte, error) {
		var req Req
		if len(bytes.TrimSpace(body)) > 0 {
			if err := json.Unmarshal(body, &req); err != nil {
				return nil, types.Errorf(types.ErrInvalid, "Request", "", "the body: %w", err)
			}
		}
		if err := fill(o, &req); err != nil {
			return nil, err
		}
		b, err := json.Marshal(&req)
		if err != nil {
			return nil, types.Errorf(types.ErrInternal, "Request", "", "the body: %w", err)
		}
		return b, nil
	}
}

func own(o Options, env *[]string, trust bool) error {
	switch {
	case len(*env) > 0:
		return notHere("env")
	case trust:
		return notHere("trust_project")
	}
	*env = o.Env
	return nil
}

func ownProject(o Options, r *ipc.ProjectRequest) error {
	r.Cwd = o.in(r.Cwd)
	return own(o, &r.Env, r.TrustProject)
}

func notHere(field string) error {
	return types.Errorf(types.ErrPermission, "Request", field, "the page may not say it; use the command line")
}
