// Package kernel runs agents the way Unix runs processes: it spawns them, drives one reasoning loop
// for each, delivers signals, waits for them and reaps them.
//
// It knows paths and not drivers: models, files, shells and MCP servers are opened, written and read
// through the VFS. It knows no wire and no terminal: who wants to watch reads the event log.
//
// KernelImpl owns nothing itself; it holds the owners and hands calls to them:
//
//	table      which processes exist, relations, groups, tombstones   table.mu
//	Process    identity; state, exit, signals, progress               Process.mu
//	gate       shut, barred or open                                   leaf
//	purse.Tree limits, what was used, what is reserved                leaf
//	event.Log  sequence numbers, ring                                 last of all
//
// What it does with them is in parts, each with a view of what it needs: engine (runs processes and ends them), reaper, descriptors
// (their calls on files), outputs, servers (their MCP servers), kits (what they may call), mailer, budgets, signaller, saver (small
// files), offspring (what becomes of children), activity (what is shown) and agentActions (what the agent's own tools, which are package
// actions, do with processes).
//
// Lock order: table.mu > Process.mu > post.mu > leaves (gate, mailbox, outlet, FD table, Context, inbox, purses, counts; never two at once) >
// event.Log.mu. While any of them is held there is no call to a driver, a model, a handler or a
// callback, no disk and no blocking send.
package kernel

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"rnix/agent"
	rnixctx "rnix/context"
	"rnix/internal/event"
	"rnix/types"
	"rnix/vfs"
)

// ProcessManager starts, ends and awaits processes.
type ProcessManager interface {
	// Spawn starts a process and returns its PID. A spawn that fails leaves no trace.
	Spawn(intent string, agent *agent.Agent, opts SpawnOpts) (types.PID, error)
	// Kill sends a signal to a process.
	Kill(pid types.PID, sig types.Signal) error
	// Wait waits for a process to end, reaps it and returns how it ended. Any number of callers may
	// wait for one process, and it still answers after the process was reaped.
	Wait(pid types.PID) (types.ExitStatus, error)
}

// MountManager puts MCP servers into the name space. It is implemented by vfs.MountManager.
type MountManager interface {
	Mount(path string, config vfs.MCPConfig) error
	Unmount(path string) error
	UnmountAll() error
}

// SignalManager delivers signals.
type SignalManager interface {
	Signal(pid types.PID, sig types.Signal) error
	SigBlock(pid types.PID, sig types.Signal) error
	SigUnblock(pid types.PID, sig types.Signal) error
}

// SubtreeManager acts on a process and all its living descendants.
type SubtreeManager interface {
	SignalTree(pid types.PID, sig types.Signal) (affected int, err error)
}

// ProcGroupManager groups processes for signals to all of them.
type ProcGroupManager interface {
	JoinGroup(pid types.PID, group types.PGID) error
	LeaveGroup(pid types.PID, group types.PGID) error
	GetProcGroup(group types.PGID) ([]types.PID, error)
	SignalGroup(group types.PGID, sig types.Signal) error
}

var (
	_ ProcessManager    = (*KernelImpl)(nil)
	_ MountManager      = (*KernelImpl)(nil)
	_ SignalManager     = (*KernelImpl)(nil)
	_ SubtreeManager    = (*KernelImpl)(nil)
	_ ProcGroupManager  = (*KernelImpl)(nil)
	_ SupervisorManager = (*KernelImpl)(nil)
)

// KernelImpl is the kernel. Make one with New and end it with Shutdown. Safe for concurrent use.
type KernelImpl struct {
	table    *table
	budgets  *budgets
	vfs      *vfs.VFS
	ctxMgr   *rnixctx.Manager
	events   *event.Log
	tracer   *tracer
	mail     *mailer
	doing    *activity
	saves    *saver
	children *offspring
	signals  *signaller
	actions  *agentActions
	servers  *servers
	engine   *engine
	fds      *descriptors
	outputs  *outputs
	ears     ears // of those who listen to models
	store    Store
	cfg      Config
	log      *slog.Logger
	kits     *kits
	keeps    bool // there is a store
	reaper   *reaper
	pulse    *pulse
	asks     *asker
	stopped  atomic.Bool
	stop     sync.Once
}

// New makes a kernel over cfg. callbacks may be nil. Devices are registered before: their tools are
// read here, once.
func New(cfg Config, callbacks KernelCallbacks) *KernelImpl {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Events == nil {
		cfg.Events = event.New(0)
	}
	cfg.Limits = cfg.Limits.orDefault()
	if cfg.Workspace == nil {
		cfg.Workspace = NoWorkspace{}
	}
	if cfg.Catalog == nil {
		cfg.Catalog = NoCatalog{}
	}
	if cfg.Lifecycle == nil {
		cfg.Lifecycle = NoLifecycle{}
	}
	if cfg.Permissions == nil {
		cfg.Permissions = NoPermissions{}
	}
	cfg.Events.Conceal(cfg.Secrets)
	if cfg.Contexts != nil { // one that only looks at histories has none
		cfg.Contexts.Conceal(cfg.Secrets)
	}
	k := &KernelImpl{
		table:  newTable(cfg.Lifecycle, cfg.Limits),
		ctxMgr: cfg.Contexts,
		events: cfg.Events,
		tracer: &tracer{cfg.Events, cfg.Secrets},
		store:  cfg.Store,
		cfg:    cfg,
		log:    cfg.Log,
	}
	if k.keeps = k.store != nil; !k.keeps {
		k.store = noStore{}
	}
	k.mail = &mailer{table: k.table, events: k.events, tracer: k.tracer, secrets: cfg.Secrets, store: k.store, keeps: k.keeps}
	k.saves = &saver{table: k.table, store: k.store, keeps: k.keeps, events: k.events, log: k.log}
	k.signals = &signaller{table: k.table, saves: k.saves, lifecycle: cfg.Lifecycle, mail: k.mail, events: k.events, log: k.log}
	k.children = &offspring{table: k.table, mail: k.mail, lifecycle: cfg.Lifecycle, stopped: &k.stopped, events: k.events, log: k.log}
	k.vfs = vfs.New(cfg.Devices, k.Caller)
	k.servers = &servers{manager: cfg.Mounts, devices: cfg.Devices, tracer: k.tracer, events: k.events, log: k.log,
		caller: func(p *Process) vfs.Caller { return p.caller(k) }, secrets: cfg.Secrets}
	k.doing = &activity{lifecycle: cfg.Lifecycle, events: k.events, secrets: cfg.Secrets} // before the watchdog, which uses it, runs
	k.servers.doing = k.doing
	k.reaper = &reaper{table: k.table, contexts: k.ctxMgr, saves: k.saves, doing: k.doing, store: k.store, events: k.events, log: k.log,
		stopped: &k.stopped, wake: make(chan struct{}, 1)}
	k.reaper.start()
	k.pulse = newPulse(k, cfg.Heartbeat)
	k.doing.pulse = k.pulse
	k.actions = &agentActions{
		sys: k, reaper: k.reaper, table: k.table, mail: k.mail, children: k.children, signals: k.signals, saves: k.saves, tracer: k.tracer, secrets: cfg.Secrets,
		contexts: k.ctxMgr, stopped: &k.stopped, asks: cfg.Permissions != Permissions(NoPermissions{}), limits: cfg.Limits, catalog: cfg.Catalog, workspace: cfg.Workspace, lifecycle: cfg.Lifecycle,
	}
	k.kits = &kits{tools: deviceTools(cfg.Devices), devices: cfg.Devices, depth: cfg.Limits.Depth, may: k.actions.may}
	k.asks = &asker{judge: cfg.Permissions, events: k.events, doing: k.doing, open: map[uint64]*question{}}
	k.fds = &descriptors{vfs: k.vfs, tracer: k.tracer, secrets: cfg.Secrets, events: k.events, doing: k.doing, ears: &k.ears}
	k.outputs = &outputs{table: k.table, contexts: k.ctxMgr, vfs: k.vfs, doing: k.doing, events: k.events}
	k.budgets = &budgets{table: k.table, lifecycle: cfg.Lifecycle, catalog: cfg.Catalog, doing: k.doing}
	k.engine = &engine{
		table: k.table, reaper: k.reaper, outputs: k.outputs, saves: k.saves, children: k.children, mail: k.mail, servers: k.servers,
		budgets: k.budgets, vfs: k.vfs, lifecycle: cfg.Lifecycle, events: k.events, secrets: cfg.Secrets, log: k.log,
	}
	if callbacks != nil {
		k.reaper.watch(callbacks)
	}
	return k
}

func (l Limits) orDefault() Limits {
	if l.Depth == 0 {
		l.Depth = DefaultDepth
	}
	if l.Children == 0 {
		l.Children = DefaultChildren
	}
	if l.Family == 0 {
		l.Family = DefaultFamily
	}
	if l.Total == 0 {
		l.Total = DefaultTotal
	}
	if l.SpawnRate == 0 {
		l.SpawnRate = DefaultSpawnRate
	}
	return l
}

// VFS returns the name space, for callers that open paths on behalf of a process.
func (k *KernelImpl) VFS() *vfs.VFS { return k.vfs }

// Shutdown suspends every process, waits until all goroutines have ended (or ctx has) and unmounts
// all servers. Stopping the kernel is not killing agents: their histories say "daemon_stop" and can be
// resumed. Later calls of Spawn fail with SERVICE_UNAVAILABLE.
func (k *KernelImpl) Shutdown(ctx context.Context) error {
	var err error
	k.stop.Do(func() {
		k.stopped.Store(true)
		k.pulse.close()
		procs := k.table.close()
		for _, p := range procs {
			p.cancel(errStopping)
		}
		if err = allGone(ctx, procs); err == nil {
			k.reaper.under.Wait() // also those that the table had forgotten: the last that they do is to tell the store
		}
		err = cmp.Or(err, k.UnmountAll())
		k.reaper.close()
	})
	return err
}

// allGone waits until processes have left the table. The error names the last that has not when ctx ends.
func allGone(ctx context.Context, procs []*Process) (err error) {
	for _, p := range procs {
		select {
		case <-p.gone:
		case <-ctx.Done():
			err = types.Errorf(types.ErrTimeout, "Shutdown", "", "process %d has not ended: %w", p.PID, ctx.Err())
		}
	}
	return err
}
