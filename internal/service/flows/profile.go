package flows

import (
	"context"
	"rnix/agent"
	"rnix/internal/compose"
	"rnix/internal/compose/run"
	"rnix/internal/launch"
	"rnix/internal/proc"
	"rnix/internal/profile"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// Trees makes the git work trees of nodes. files.NodeTrees is one.
type Trees interface {
	// FitsNode refuses a work tree that could not be made for a process in a directory.
	FitsNode(ctx context.Context, cwd string, w *compose.Worktree) error
	// CreateForNode makes the work tree of an attempt of a node, if it is to have one, and puts it into its options. The error is a
	// *compose.Clash if what it is to begin with does not merge.
	CreateForNode(ctx context.Context, cwd string, c *compose.Checkout, o *kernel.SpawnOpts) (compose.Made, error)
	// Unresolved returns the files of the work tree of an attempt in which marks of a conflict are left that it was to resolve.
	Unresolved(id types.UUID) []string
}

// Profiles reads the configurations with which workflows and supervisors start processes. Its fields are set before it is used.
type Profiles struct {
	Reader  *profile.Reader
	Spawner *launch.Spawner
	Trees   Trees
}

// Profile reads the configuration for a client in a directory, with its environment. It refuses one with mistakes.
func (f *Profiles) Profile(op, cwd string, env []string, trust bool) (Profile, error) {
	p, err := f.Reader.ForStart(op, cwd, env, trust)
	return read{f, p}, err
}

// ProfileOf returns the configuration that a process was started with.
func (f *Profiles) ProfileOf(p *kernel.Process) (Profile, bool) {
	has, ok := profile.Of(p)
	return read{f, has}, ok
}

// Of is a configuration that was read before.
func (f *Profiles) Of(p *profile.Profile) Profile { return read{f, p} }

// ReadBy returns the configuration behind one that Profiles has made. Of another one, the error is INTERNAL.
func ReadBy(p Profile) (*profile.Profile, error) {
	of, ok := p.(read)
	if !ok {
		return nil, types.Errorf(types.ErrInternal, "Spawn", "", "the configuration was not read by this daemon")
	}
	return of.profile, nil
}

// read is a configuration that was read from files.
type read struct {
	by      *Profiles
	profile *profile.Profile
}

func (f read) Cwd() string { return f.profile.Cwd }

func (f read) Lookup(name string) (string, bool) { return f.profile.Lookup(name) }

func (f read) Problems() []string { return f.profile.Problems }

func (f read) Trusts() bool { return f.profile.TrustAsked() }

func (f read) Trusting() Profile {
	return read{f.by, f.profile.Trusting()}
}

func (f read) AskSandbox(level, net string, bounds types.Bounds, allow []string) error {
	return profile.AskSandbox(f.profile, level, net, bounds, allow)
}

func (f read) In(op, cwd string, variables []string) (Profile, error) {
	p, err := f.by.Reader.ForStart(op, cwd, f.profile.Env, f.profile.TrustAsked())
	if err != nil {
		return nil, err
	}
	p.Names, p.Recorded = variables, f.profile.Recorded
	p.BindAs(f.profile)
	return read{f.by, p}, nil
}

func (f read) Program() (o kernel.SpawnOpts, err error) {
	p := f.profile
	o = kernel.SpawnOpts{WorkDir: p.Cwd, ReadRoots: p.Config.ReadRoots.V, Env: proc.ComposeEnv(p.Env, nil, nil), Secret: profile.Secret(p), Profile: p, Recorded: p.Recorded}
	if o.Sandbox, o.Net, err = f.by.Spawner.Program(p); err != nil {
		return o, err
	}
	o.Settings, err = p.Settings(&agent.Agent{}, nil)
	return o, err
}

func (f read) Agent(req *ipc.SpawnRequest) (*agent.Agent, kernel.SpawnOpts, []string, error) {
	p := *f.profile
	p.Problems = nil
	ag, opts, _, err := f.by.Spawner.Plan(&p, *req)
	return ag, opts, p.Problems, err
}

func (f read) Fits(ctx context.Context, cwd string, w *compose.Worktree) error {
	return f.by.Trees.FitsNode(ctx, cwd, w)
}

func (f read) Plant(ctx context.Context, l *run.Launch, o *kernel.SpawnOpts) (compose.Made, error) {
	return f.by.Trees.CreateForNode(ctx, f.profile.Cwd, &compose.Checkout{Want: l.Node.Worktree, Attempt: l.Attempt, Origin: l.Origin, Works: l.Works}, o)
}

// Unresolved returns the files of a work tree in which marks of a conflict are left.
func (f *Profiles) Unresolved(id types.UUID) []string { return f.Trees.Unresolved(id) }
