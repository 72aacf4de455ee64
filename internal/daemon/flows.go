package daemon

import (
	"context"

	"rnix/agent"
	"rnix/internal/compose"
	"rnix/internal/compose/run"
	"rnix/internal/launch"
	"rnix/internal/proc"
	"rnix/internal/profile"
	"rnix/internal/recovery"
	"rnix/internal/service"
	"rnix/internal/service/flows"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// startFlows gives the service of workflows and supervisors what it needs of the others.
func startFlows(d *Daemon) {
	d.flows = &flows.Service{Kernel: d.kernel, Index: d.journal.Index(), Finder: d.access, Looks: flowLooks{d}, Starts: starts{d}, Stored: flowHistories{d}}
}

// flowLooks says how workflows, supervisors and what they start look.
type flowLooks struct{ daemon *Daemon }

func (l flowLooks) Living(i *kernel.Info) ipc.Proc { return l.daemon.looks.Living(i) }

func (l flowLooks) Whole(i *step.ProcInfo) *step.ProcInfo { return l.daemon.stored.Cards.Whole(i) }

func (l flowLooks) Branch(id types.UUID) string {
	t, _ := l.daemon.trees.Of(id) // a note that cannot be read names none
	return t.Branch
}

// starts knows with what, and below whom, processes are started.
type starts struct{ daemon *Daemon }

func (s starts) Profile(op, cwd string, env []string, trust bool) (flows.Profile, error) {
	p, err := s.daemon.profiles.ForStart(op, cwd, env, trust)
	return flowProfile{s.daemon, p}, err
}

func (s starts) ProfileOf(p *kernel.Process) (flows.Profile, bool) {
	has, ok := profile.Of(p)
	return flowProfile{s.daemon, has}, ok
}

func (s starts) Parent(peer *ipc.Peer, asked string, p flows.Profile, trusts bool) (types.PID, error) {
	of, ok := p.(flowProfile)
	if !ok {
		return 0, types.Errorf(types.ErrInternal, "Spawn", asked, "the configuration is another service's")
	}
	return s.daemon.lifecycle.Parent(peer, asked, of.profile, trusts)
}

func (s starts) Ready(ctx context.Context) error { return s.daemon.bootstrap.wait(ctx) }

func (s starts) Room(op string) error { return s.daemon.room.Refusal(op) }

func (s starts) Seq() uint64 { return s.daemon.events.Last() }

// flowProfile is a profile as workflows and supervisors see it.
type flowProfile struct {
	daemon  *Daemon
	profile *profile.Profile
}

func (f flowProfile) Cwd() string { return f.profile.Cwd }

func (f flowProfile) Lookup(name string) (string, bool) { return f.profile.Lookup(name) }

func (f flowProfile) Problems() []string { return f.profile.Problems }

func (f flowProfile) Trusts() bool { return f.profile.Trust }

func (f flowProfile) Trusting() flows.Profile {
	return flowProfile{f.daemon, f.profile.Trusting()}
}

func (f flowProfile) In(op, cwd string, variables []string) (flows.Profile, error) {
	p, err := f.daemon.profiles.ForStart(op, cwd, f.profile.Env, f.profile.Trust)
	if err != nil {
		return nil, err
	}
	p.Names, p.Recorded = variables, f.profile.Recorded
	return flowProfile{f.daemon, p}, nil
}

func (f flowProfile) Program() (o kernel.SpawnOpts, err error) {
	p := f.profile
	o = kernel.SpawnOpts{WorkDir: p.Cwd, ReadRoots: p.Config.ReadRoots.V, Env: proc.ComposeEnv(p.Env, nil, nil), Secret: p.Lookup, Profile: p, Recorded: p.Recorded}
	o.Settings, err = p.Settings(&agent.Agent{}, nil)
	return o, err
}

func (f flowProfile) Agent(req *ipc.SpawnRequest) (*agent.Agent, kernel.SpawnOpts, error) {
	p := *f.profile
	ag, opts, _, err := f.daemon.launcher.Spawner.Plan(&p, *req)
	return ag, opts, err
}

func (f flowProfile) Fits(ctx context.Context, cwd string, w *compose.Worktree) error {
	return f.daemon.trees.Fits(ctx, planting(cwd, w))
}

func (f flowProfile) Plant(ctx context.Context, l *run.Launch, o *kernel.SpawnOpts) (undo func(), err error) {
	_, undo, err = treeForNode(ctx, f.daemon.trees, f.profile.Cwd, l, o)
	return undo, err
}

// flowHistories reads, ends, pauses and resumes histories that do not run.
type flowHistories struct{ daemon *Daemon }

func (h flowHistories) Read(ctx context.Context, id types.UUID) (*recovery.State, error) {
	s, _, _, err := h.daemon.store.Read(ctx, id)
	return s, err
}

func (h flowHistories) Was(s *recovery.State, id types.UUID) (step.Settled, error) {
	return h.daemon.stored.WasOf(s, id)
}

func (h flowHistories) Dismiss(ctx context.Context, id types.UUID, reason string) error {
	return h.daemon.stored.Dismiss(ctx, id, reason)
}

func (h flowHistories) Pause(ctx context.Context, id types.UUID) error {
	return h.daemon.stored.Pause(ctx, id)
}

func (h flowHistories) CheckResume(req *ipc.ResumeRequest) error { return launch.CheckResume(req) }

func (h flowHistories) Resume(ctx context.Context, id types.UUID, how *ipc.ResumeRequest) error {
	_, err := h.daemon.lifecycle.Resumer.Continued(ctx, service.Target{UUID: id}, launch.OnlyOn(how), nil)
	return err
}

func (h flowHistories) ResumeRun(ctx context.Context, id types.UUID, how *ipc.ResumeRequest, r flows.Revival) (ipc.ResumeResponse, error) {
	return h.daemon.lifecycle.Resumer.ResumeRun(ctx, id, how, r)
}

func (h flowHistories) Automatic(id types.UUID) (types.PID, bool) {
	r, ok := h.daemon.auto.Take(id)
	return r.PID, ok
}
