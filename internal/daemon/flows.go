package daemon

import (
	"cmp"
	"context"

	"rnix/agent"
	"rnix/internal/compose"
	"rnix/internal/compose/run"
	"rnix/internal/proc"
	"rnix/internal/profile"
	"rnix/internal/recovery"
	"rnix/internal/service/flows"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// startFlows gives the service of workflows and supervisors what it needs of the others.
func startFlows(d *Daemon) {
	d.flows = &flows.Service{Kernel: d.kernel, Index: d.journal.Index(), Finder: finder{d}, Looks: flowLooks{d}, Starts: starts{d}, Stored: flowHistories{d}}
}

func (f finder) SettledSoon(ctx context.Context) { settledSoon(ctx, f.daemon) }

func (f finder) ResolveKind(text, kind string) (target, error) {
	return f.daemon.names.ResolveKind(text, kind)
}

func (f finder) MayStart(peer *ipc.Peer, pid types.PID) error {
	return insider{f.daemon}.mayStart(peer, pid)
}

// flowLooks says how workflows, supervisors and what they start look.
type flowLooks struct{ daemon *Daemon }

func (l flowLooks) Living(i *kernel.Info) ipc.Proc { return l.daemon.looks.Living(i) }

func (l flowLooks) Whole(i *step.ProcInfo) *step.ProcInfo { return processes{l.daemon}.whole(i) }

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
	return spawner{s.daemon}.parentOf(peer, asked, of.profile, trusts)
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
	ag, opts, _, err := spawner{f.daemon}.settle(&p, *req)
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
	return wasOf(h.daemon, s, id)
}

func (h flowHistories) Dismiss(ctx context.Context, id types.UUID, reason string) error {
	return undertaker{h.daemon}.dismiss(ctx, id, reason)
}

func (h flowHistories) Pause(ctx context.Context, id types.UUID) error {
	return undertaker{h.daemon}.pause(ctx, id)
}

func (h flowHistories) CheckResume(req *ipc.ResumeRequest) error { return checkResume(req) }

func (h flowHistories) Resume(ctx context.Context, id types.UUID, how *ipc.ResumeRequest) error {
	_, err := resumer{h.daemon}.continued(ctx, target{UUID: id}, onlyOn(how), nil)
	return err
}

func (h flowHistories) Automatic(id types.UUID) (types.PID, bool) {
	r, ok := h.daemon.auto.take(id)
	return r.PID, ok
}

func (h flowHistories) ResumeRun(ctx context.Context, id types.UUID, how *ipc.ResumeRequest, r flows.Revival) (ipc.ResumeResponse, error) {
	revive, wake := reviver{h.daemon}, resumer{h.daemon}
	hold := make(chan struct{})
	defer close(hold) // the run looks for its nodes when all of them are there
	var above types.PID
	var settled func(a *again) (*ready, error)
	settled = func(a *again) (*ready, error) {
		req, err := r.Decide(a.state)
		if err != nil {
			return nil, err
		}
		next, err := revive.settle(a, req)
		if err == nil {
			err = r.Begin(next.opts.Body)
		}
		if err != nil {
			return nil, err
		}
		next.retry = settled // its parent was suspended meanwhile, and goes on with it
		_, _, up := wake.wakeAbove(ctx, a.was.ParentUUID, how, hold, true)
		above = cmp.Or(up, above)
		return next, nil
	}
	a, err := revive.open(ctx, id)
	if err != nil {
		return ipc.ResumeResponse{}, err
	}
	next, err := settled(a)
	if err != nil {
		a.close()
		return ipc.ResumeResponse{}, err
	}
	resp, err := revive.launch(ctx, next, hold)
	if err != nil {
		return resp, err
	}
	_ = wake.thawAbove(above, 0)
	r.Begun(func(id types.UUID) bool {
		_, _, ok := wake.quietly(ctx, id, onlyOn(how), hold)
		return ok
	})
	return resp, nil
}
