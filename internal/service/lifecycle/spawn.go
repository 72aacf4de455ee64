package lifecycle

import (
	"context"

	"rnix/internal/launch"
	"rnix/internal/profile"
	"rnix/internal/service"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// spawn starts a process for a client.
func (d *Service) spawn(ctx context.Context, peer *ipc.Peer, req ipc.SpawnRequest) (ipc.SpawnResponse, error) {
	if err := d.Begin.Ready(ctx); err != nil {
		return ipc.SpawnResponse{}, err
	}
	p, err := d.Profiles.ForStart("Spawn", req.Cwd, req.Env, req.TrustProject)
	if err == nil {
		err = d.Begin.Room("Spawn")
	}
	if err != nil {
		return ipc.SpawnResponse{}, err
	}
	if err := profile.AskSandbox(p, req.Sandbox, req.Net, req.Bounds, req.Hosts); err != nil {
		return ipc.SpawnResponse{}, err
	}
	parent, err := d.Parent(peer, req.Parent, p, p.TrustAsked()) // before its settings are kept
	if err != nil {
		return ipc.SpawnResponse{}, err
	}
	if untrusted := profile.OfferMCP(p, req.Agent, req.NoMCP); untrusted != "" && p.Lent == nil { // agents cannot trust it
		p.Problems = append(p.Problems, untrusted)
	}
	ag, opts, choice, err := d.Launcher.Spawner.Plan(p, req)
	if err != nil {
		return ipc.SpawnResponse{}, err
	}
	opts.ParentPID = parent
	if req.Group != "" {
		id, err := d.Groups.Group("Spawn", req.Group, "")
		if err != nil {
			return ipc.SpawnResponse{}, err
		}
		opts.Groups = []types.PGID{id}
	}
	if owner, inside := d.Access.AgentOf(peer); inside && req.Session != "" {
		return ipc.SpawnResponse{}, service.Outside("Spawn", owner, "not take a session of a platform; a person does")
	}
	opts.UUID = types.NewUUID()
	if err := d.Launcher.Sessions.Open(ctx, opts.UUID, p, choice.Provider.Name); err != nil { // before anything is made for it
		return ipc.SpawnResponse{}, err
	}
	tree, undo, err := d.Files.Create(ctx, p.Cwd, req.Worktree, &opts)
	if err != nil {
		d.Launcher.Sessions.Ended(opts.UUID)
		return ipc.SpawnResponse{}, err
	}
	seq, namesakes := d.Seq(), ""
	if parent == 0 { // an agent names its children as it likes; of those the latest is meant
		namesakes = d.Names.namesakes(opts.Name, types.UUID{})
	}
	pid, err := d.Kernel.SpawnContext(ctx, req.Intent, ag, opts)
	if err != nil {
		d.Launcher.Sessions.Ended(opts.UUID)
		undo()
		return ipc.SpawnResponse{}, err
	}
	d.Launcher.Sessions.Begun(opts.UUID)
	i, err := d.Kernel.Info(pid)
	if err != nil {
		return ipc.SpawnResponse{}, err
	}
	r := launch.Spawned(i, choice, seq, p.Problems)
	r.Worktree, r.Warnings = launch.Worktree(tree, &i), append(r.Warnings, d.Files.Lacks(ctx, i.UUID, tree)...)
	r.Warnings = append(r.Warnings, warned(namesakes)...)
	return r, nil
}

// bind refuses what a caller inside an agent may not start, and binds p to what the agent itself has: neither
// the trust of a person in a project, nor the prices by which budgets are kept, nor the variables of a person are an agent's to give.
func (d *Service) bind(owner types.PID, p *profile.Profile, trusts bool) error {
	if owner == 0 {
		return service.Outside("Spawn", owner, "")
	}
	if err := d.Kernel.MaySpawn(owner); err != nil {
		return err
	}
	var above *profile.Profile
	var variables []string
	if proc, ok := d.Kernel.Process(owner); ok {
		above, _ = profile.Of(proc)
		variables = kernel.VariablesOf(proc)
	}
	if above != nil && trusts && !above.Trust {
		return service.Outside("Spawn", owner, "not trust the files of a project; a person does, with: rnix run --trust-project")
	}
	p.Bind(above, variables, d.Launcher.Spawner.Sandboxes.Below(owner))
	return nil
}

// Parent returns the PID of the parent for a spawn: what was asked for, or the agent that the caller
// runs in. A caller inside an agent cannot name another parent, so that limits and rights hold on this
// way too; p is bound to that agent then. trusts says that files of a project are to be trusted.
func (d *Service) Parent(peer *ipc.Peer, asked string, p *profile.Profile, trusts bool) (types.PID, error) {
	owner, inside := d.Access.AgentOf(peer)
	if inside {
		if err := d.bind(owner, p, trusts); err != nil {
			return 0, err
		}
	}
	if asked == "" {
		return owner, nil
	}
	pid, err := d.Access.Alive("Spawn", asked)
	if err != nil {
		return 0, err
	}
	if inside && !d.Access.InSubtree(owner, pid) {
		return 0, outside("Spawn", owner, "not act for others", pid)
	}
	if inside {
		return pid, d.bind(pid, p, trusts) // what it denied its child, it cannot have through it
	}
	return pid, nil
}
