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
// Lock order: table.mu > Process.mu > post.mu > leaves (gate, mailbox, outlet, FD table, Context, inbox, purses, counts; never two at once) >
// event.Log.mu. While any of them is held there is no call to a driver, a model, a handler or a
// callback, no disk and no blocking send.
package kernel

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"rnix/agent"
	rnixctx "rnix/context"
	"rnix/internal/event"
	"rnix/internal/price"
	"rnix/internal/redact"
	"rnix/internal/step"
	"rnix/kernel/internal/purse"
	"rnix/types"
	"rnix/vfs"
	"rnix/xsync"
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

// SupervisorManager starts processes that keep others running.
type SupervisorManager interface {
	// SpawnSupervisor starts a supervisor and its children and returns its PID. If a child cannot be
	// started, none is left.
	SpawnSupervisor(spec SupervisorSpec) (types.PID, error)
}

var (
	_ ProcessManager    = (*KernelImpl)(nil)
	_ MountManager      = (*KernelImpl)(nil)
	_ SignalManager     = (*KernelImpl)(nil)
	_ SubtreeManager    = (*KernelImpl)(nil)
	_ ProcGroupManager  = (*KernelImpl)(nil)
	_ SupervisorManager = (*KernelImpl)(nil)
	_ vfs.ProcSource    = (*KernelImpl)(nil)
)

// Recorder is the durable record of one history. Safe for concurrent use: a pause is recorded while the
// process works.
type Recorder interface {
	// Add notes records in order; they are on disk at the latest after the next Commit.
	Add(recs ...step.Record) error
	// Commit makes everything that was added durable. After an error the recorder is of no more use.
	Commit() error
	// Close releases the record. What was added and not committed may be lost.
	Close() error
}

// Store is where histories are kept.
type Store interface {
	// Create begins the record of a new history.
	Create(id types.UUID) (Recorder, error)
	// Discard removes a history that never began.
	Discard(id types.UUID) error
	// SaveInfo and SaveMeta replace the small files of a history. A failure loses no history.
	SaveInfo(info step.ProcInfo) error
	SaveMeta(id types.UUID, systemPrompt string, tools []vfs.Tool, model vfs.ModelCard) error
	// Ended is told that nothing more will be added to a history in this run. It must not block.
	Ended(id types.UUID)
	// SaveInputs makes the inputs of a history durable and says what they are; Input reads one back.
	SaveInputs(id types.UUID, inputs []step.Input) ([]step.InputRef, error)
	Input(id types.UUID, ref step.InputRef) (string, error)
	// Steps reads the record of a history, as far as it is on disk.
	Steps(id types.UUID) ([]step.StepRecord, error)
}

// Config is what a kernel is made of. Devices and Contexts are required.
type Config struct {
	Devices  *vfs.DeviceRegistry
	Mounts   MountManager // nil: agents with MCP servers cannot be spawned
	Contexts *rnixctx.Manager
	Events   *event.Log                // nil: one of the kernel's own, which DebugChan and LogChan read
	Store    Store                     // nil: nothing is kept
	NextPID  func() (types.PID, error) // nil: from 1
	Log      *slog.Logger              // nil: discarded
	// Secrets are taken out of what models are told, of the event log and of what people are shown. More may be added at
	// any time. The Store sees to it that they are in no record.
	Secrets *redact.Set // nil: none
	// Freeze, Thaw and Release act on the OS children of a process: on pause, resume and end. They
	// may be nil.
	Freeze, Thaw, Release func(types.PID)
	// Waits says what a process has to wait for at this moment, such as the lease of its session, and what is closed when that
	// may have changed; nil = it may act. Until then it does nothing, unless it is ended. It is asked before each question
	// to the model and each action, and must not block. It may be nil.
	Waits func(*Process) (reason string, changed <-chan struct{})
	// Touched is told of each process of which something has changed that Info shows, after the change, where the event log need not
	// say so; nil: nobody is. It must not block, nor call the kernel.
	Touched func(types.UUID)
	// OSChildren counts the OS children of a process. It may be nil.
	OSChildren func(types.PID) int
	// Address has the variables (NAME=value) by which commands that a process starts find this kernel and no other. It may be nil.
	Address []string
	// Scratch returns a private directory for long outputs of a history. It may be nil.
	Scratch func(types.UUID) string
	// Inputs returns the directory in which the store keeps the inputs of a history. It may be nil.
	Inputs func(types.UUID) string
	// Snapshot keeps the files of a process's workspace as they are after a step, and reports whether they
	// have changed since the last time. It may be nil, and may return nil if there is nothing to keep.
	Snapshot func(ctx context.Context, p *Process, step int) (*step.Snapshot, bool, error)
	// Undo puts the files back that an interrupted call may have changed. It may be nil.
	Undo func(ctx context.Context, p *Process, call *step.Intent) error
	// Stored describes a history that is not running; NOT_FOUND if there is none. It may be nil.
	Stored func(id types.UUID) (*step.ProcInfo, error)
	// Revive resumes a suspended history as a child of a process whose body asks for it. It may be nil.
	Revive func(ctx context.Context, parent *Process, id types.UUID) (types.PID, error)
	// Dismiss ends a suspended history, and those below it, without running it. CONFLICT: it is running, or about
	// to. It may be nil.
	Dismiss func(ctx context.Context, id types.UUID, reason string) error
	// Post puts a message into the history of a process that is suspended; BROKEN_PIPE if it has ended. It may be
	// nil.
	Post func(ctx context.Context, id types.UUID, m step.Mail) (uint64, error)
	// LoadAgent finds an agent by name ("" = the default one) for a child of the given process, for the
	// spawn action, with what is settled for it: without a provider it gets its parent's model. nil:
	// children have no agent, and cannot name one.
	LoadAgent func(parent *Process, name string) (*agent.Agent, SpawnOpts, error)
	// Plant makes a git work tree for a child that is about to be started by a process that asks for it, of the repository
	// in which that process works, and lets the child work there. undo takes it back if the child is not started. nil: there
	// are none.
	Plant func(ctx context.Context, parent *Process, child *SpawnOpts) (undo func(), err error)
	// Planted returns the directory of the work tree of a child for which Plant was called, and says in words which one it
	// is; "" if it has none.
	Planted func(child types.UUID) (dir, text string)
	// Trees returns the directories of the work trees of all children of a process that goes on. It may be nil.
	Trees func(parent types.UUID) []string
	// LoadSkill finds a skill for the specialize action, which is not offered without it.
	LoadSkill func(p *Process, name string) (agent.Skill, error)
	// Price returns what a model costs a process, and where that stands; "" if nobody knows. needed says that a
	// budget in dollars has to be kept, for which an assumed price will do. nil: no prices are known.
	Price func(p *Process, provider, driver, model string, needed bool) (rate price.Rate, from string)
	// Accounts knows what the histories that are not running have used. It may be nil.
	Accounts Accounts
	Limits   Limits
	// Heartbeat looks for processes that make no progress. The zero value: nobody looks.
	Heartbeat Heartbeat
}

// Limits bound what agents can start by themselves, whichever path they take.
type Limits struct {
	Depth     int // generations below what a person started; 0 = DefaultDepth
	Children  int // living children of one process; 0 = DefaultChildren
	Family    int // living processes that descend from one that a person started, with it; 0 = DefaultFamily
	Total     int // living processes; 0 = DefaultTotal
	SpawnRate int // processes that the agents of a family start within a minute; 0 = DefaultSpawnRate
}

// The limits when nothing is said.
const (
	DefaultDepth     = 8
	DefaultChildren  = 32
	DefaultFamily    = 256
	DefaultTotal     = 1 << 20
	DefaultSpawnRate = 240
)

// DefaultMaxSteps is the step limit of a process when neither the caller nor the agent sets one.
const DefaultMaxSteps = 50

// KernelImpl is the kernel. Make one with New and end it with Shutdown. Safe for concurrent use.
type KernelImpl struct {
	table   *table
	purses  purse.Tree
	counts  counts
	vfs     *vfs.VFS
	ctxMgr  *rnixctx.Manager
	mounts  MountManager
	events  *event.Log
	tracer  *tracer
	store   Store
	cfg     Config
	log     *slog.Logger
	tools   []vfs.Tool // of the devices that were registered when the kernel was made
	kits    xsync.SyncMap[string, *kit]
	keeps   bool // there is a store
	reaper  *reaper
	pulse   *pulse
	stopped atomic.Bool
	stop    sync.Once
	holding sync.Mutex // held while Hold decides
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
	cfg.Events.Conceal(cfg.Secrets)
	if cfg.Contexts != nil { // one that only looks at histories has none
		cfg.Contexts.Conceal(cfg.Secrets)
	}
	k := &KernelImpl{
		table:  newTable(cfg.NextPID, cfg.Limits),
		ctxMgr: cfg.Contexts,
		mounts: cfg.Mounts,
		events: cfg.Events,
		tracer: &tracer{cfg.Events, cfg.Secrets},
		store:  cfg.Store,
		cfg:    cfg,
		log:    cfg.Log,
	}
	if k.keeps = k.store != nil; !k.keeps {
		k.store = noStore{}
	}
	k.vfs = vfs.New(cfg.Devices, k.Caller)
	for _, path := range cfg.Devices.Paths() {
		if !vfs.Below(path, mcpRoot) {
			k.tools = append(k.tools, cfg.Devices.Tools(path)...)
		}
	}
	k.reaper = newReaper(k)
	k.pulse = newPulse(k, cfg.Heartbeat)
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
		for _, p := range procs {
			select {
			case <-p.gone:
			case <-ctx.Done():
				err = types.Errorf(types.ErrTimeout, "Shutdown", "", "process %d has not ended: %w", p.PID, ctx.Err())
			}
		}
		if err == nil {
			k.reaper.under.Wait() // also those that the table had forgotten: the last that they do is to tell the store
		}
		if k.mounts != nil {
			if uerr := k.mounts.UnmountAll(); err == nil {
				err = uerr
			}
		}
		k.reaper.close()
	})
	return err
}

// noStore keeps nothing.
type noStore struct{}

func (noStore) Create(types.UUID) (Recorder, error) { return noRecord{}, nil }
func (noStore) Discard(types.UUID) error            { return nil }
func (noStore) SaveInfo(step.ProcInfo) error        { return nil }
func (noStore) SaveMeta(types.UUID, string, []vfs.Tool, vfs.ModelCard) error {
	return nil
}
func (noStore) Ended(types.UUID) {}
func (noStore) SaveInputs(types.UUID, []step.Input) ([]step.InputRef, error) {
	return nil, nil
}
func (noStore) Input(types.UUID, step.InputRef) (string, error) { return "", nil }
func (noStore) Steps(types.UUID) ([]step.StepRecord, error)     { return nil, nil }

type noRecord struct{}

func (noRecord) Add(...step.Record) error { return nil }
func (noRecord) Commit() error            { return nil }
func (noRecord) Close() error             { return nil }
