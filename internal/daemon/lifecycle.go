package daemon

import (
	"context"
	"encoding/json"
	"os"

	"rnix/internal/compose/run"
	"rnix/internal/launch"
	"rnix/internal/moved"
	"rnix/internal/profile"
	"rnix/internal/service"
	"rnix/internal/service/files"
	"rnix/internal/service/flows"
	"rnix/internal/service/lifecycle"
	"rnix/internal/step"
	"rnix/internal/supervisor"
	"rnix/internal/workspace"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// openLaunch makes what opens, ends and starts histories, before the kernel is made, which asks it for much.
func openLaunch(d *Daemon) {
	cards := &launch.Cards{Journal: d.journal, DataDir: d.places.DataDir, Note: d.note}
	forked := func(id types.UUID, dir string) bool { return files.Within(dir, d.snapshots.ForkDir(id)) }
	d.stored = &launch.Stored{Cards: cards, Store: d.store, Ground: d.storage, Forked: forked}
	spawner := &launch.Spawner{Log: d.log}
	d.flowing = &flows.Profiles{Reader: d.profiles, Spawner: spawner, Trees: files.NodeTrees{Trees: d.trees}}
	d.launcher = &launch.Launcher{
		Stored: d.stored, Spawner: spawner, Profiles: d.profiles, Sessions: memberships{d.platforms}, Budgets: d.billing,
		Snapshots: !d.snapshots.Off(), Seq: d.events.Last,
		Programs: map[string]launch.Program{
			supervisor.Kind: func(p *profile.Profile, spec json.RawMessage) (kernel.Body, error) {
				return flows.SupervisorAgain(d.flowing.Of(p), spec)
			},
			run.Kind: func(_ *profile.Profile, spec json.RawMessage) (kernel.Body, error) { return d.flows.RunAgain(spec) },
		},
	}
}

// startLifecycle gives the service that starts, resumes and signals processes, and the one that resumes them without being asked, what they need.
func startLifecycle(d *Daemon) {
	d.stored.Kernel, d.launcher.Kernel, d.launcher.Spawner.Kernel = d.kernel, d.kernel, d.kernel
	d.names = &lifecycle.Names{Table: d.kernel, Index: d.journal.Index(), Gone: d.storage.Explain}
	*d.access = lifecycle.Access{Names: d.names, AccessGround: ground{d}, Kernel: d.kernel, Owner: d.procs.Owner}
	d.lifecycle = lifecycle.New(lifecycle.Deps{
		Names: d.names, Access: d.access, Stored: d.stored, Launcher: d.launcher, Profiles: d.profiles, Seq: d.events.Last, Looks: d.looks.Living, Log: d.log,
		Kernel: d.kernel, Ground: ground{d}, Begin: ground{d}, Files: directories{d}, Auto: d.auto, Groups: d.groups, Costs: d.billing,
	})
	d.lifecycle.Heartbeat, d.profiles.Keys = d.heartbeat, &profile.KeyCommands{Start: d.procs, Dir: d.home, Told: d.log.Warn}
	d.clis.Kernel, d.clis.Callers = d.kernel, d.access
	a := d.auto
	a.Resumer, a.Flows, a.Budgets, a.Ground, a.Room, a.Forks = d.lifecycle.Resumer, d.flows, d.billing, ground{d}, d.room, directories{d}
	a.Stored, a.Launcher, a.Note, a.Background, a.Keys = d.stored, d.launcher, d.note, &d.background, d.profiles
}

// ground is what must be so before anything is started, resumed or found.
type ground struct{ daemon *Daemon }

func (g ground) Settled(ctx context.Context) error {
	select {
	case <-g.daemon.looked:
		return nil
	case <-ctx.Done():
		return types.Errorf(types.ErrUnavailable, "Find", "", "the daemon is still reading what an earlier one has left; try again in a moment")
	}
}

func (g ground) Ready(ctx context.Context) error { return g.daemon.bootstrap.Wait(ctx) }

func (g ground) Room(op string) error { return g.daemon.room.Refusal(op) }

func (g ground) Hold(id types.UUID) (release func(), err error) { return g.daemon.storage.Hold(id) }

func (g ground) Lost(t *service.Target, text string, err error) error {
	return g.daemon.storage.Lost(t, text, err)
}

func (g ground) Whole(i *step.ProcInfo) *step.ProcInfo { return g.daemon.stored.Cards.Whole(i) }

func (g ground) Here(path string) string { return moved.Here(g.daemon.places.DataDir, path) }

// Described describes a history on disk, for the kernel too.
func (g ground) Described(id types.UUID) (*step.ProcInfo, error) {
	info, ok := g.daemon.stored.Get(id)
	if !ok {
		return g.daemon.storage.TakenAway(id)
	}
	return g.Whole(info), nil
}

// directories makes and removes the directories in which processes work.
type directories struct{ daemon *Daemon }

func (w directories) Create(ctx context.Context, cwd string, req *ipc.WorktreeRequest, o *kernel.SpawnOpts) (*workspace.Tree, func(), error) {
	return w.daemon.trees.Create(ctx, cwd, req, o)
}

func (w directories) Lacks(ctx context.Context, id types.UUID, tree *workspace.Tree) []string {
	return w.daemon.trees.Lacks(ctx, id, tree)
}

func (w directories) Fork(ctx context.Context, id types.UUID, of *service.Target, at int, dirs ...string) (dir, limited string, err error) {
	return w.daemon.snapshots.Fork(ctx, id, of, at, dirs...)
}

func (w directories) ForkDir(id types.UUID) string { return w.daemon.snapshots.ForkDir(id) }

func (w directories) ForkTree(ctx context.Context, id types.UUID, name string, settings json.RawMessage, origin *workspace.Tree, dir string) (json.RawMessage, error) {
	return w.daemon.trees.Fork(ctx, id, name, settings, origin, dir)
}

// Abandon takes away all that there is of a fork that has not begun: nobody has been told of it, and
// nobody has worked in its files. Its history goes last, so that the next start ends what a crash cuts off.
func (w directories) Abandon(ctx context.Context, id types.UUID) error {
	d := w.daemon
	_, err := d.files.Clear(ctx, id)
	if types.CodeOf(err) == types.ErrNotFound { // it was not a whole workspace yet
		err = os.RemoveAll(d.snapshots.ForkDir(id))
	}
	if err == nil {
		err = files.Clearing{Files: d.files, Platforms: d.platforms}.DropSnapshots(ctx, id)
	}
	if err != nil {
		return err
	}
	return d.store.Discard(id)
}
