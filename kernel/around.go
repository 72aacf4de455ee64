package kernel

import (
	"context"

	"rnix/agent"
	"rnix/internal/price"
	"rnix/internal/step"
	"rnix/types"
	"rnix/vfs"
)

// What is here is all that the kernel calls upwards: four interfaces, given to New. Whoever implements one of the last three embeds
// NoWorkspace, NoCatalog or NoLifecycle, and writes what differs.

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
	// SaveAttachment keeps an image or a document of a message durably, once in a history, and returns its SHA-256; Attachment reads it back.
	SaveAttachment(id types.UUID, data []byte) (sum string, err error)
	Attachment(id types.UUID, sum string) ([]byte, error)
	// Seal returns what lets a later run know that what is about to be recorded of a process's rights was written by this program; "" = nothing does.
	Seal(s *step.Settled) string
	// Steps reads the record of a history, as far as it is on disk.
	Steps(id types.UUID) ([]step.StepRecord, error)
}

// Workspace is where processes work, and what is kept of their files. Embed NoWorkspace to implement a part of it.
type Workspace interface {
	// Scratch returns a private directory for long outputs of a history; "" = there is none.
	Scratch(id types.UUID) string
	// Inputs returns the directory in which the store keeps the inputs of a history; "" = they are in no files.
	Inputs(id types.UUID) string
	// Keeps reports whether there are snapshots, so that a call can be taken back. It is always the same.
	Keeps() bool
	// Snapshot keeps the files of a process's workspace as they are after a step, and reports whether they
	// have changed since the last time. It may return nil if there is nothing to keep.
	Snapshot(ctx context.Context, p *Process, n int) (*step.Snapshot, bool, error)
	// Undo puts the files back that an interrupted call may have changed.
	Undo(ctx context.Context, p *Process, call *step.Intent) error
	// Plant makes a git work tree for a child that is about to be started by a process that asks for it, of the repository
	// in which that process works, and lets the child work there. undo takes it back if the child is not started. UNAVAILABLE: there
	// are none.
	Plant(ctx context.Context, parent *Process, child *SpawnOpts) (undo func(), err error)
	// Planted returns the directory of the work tree of a child for which Plant was called, and says in words which one it
	// is; "" if it has none.
	Planted(child types.UUID) (dir, text string)
	// Trees returns the directories of the work trees of all children of a process that goes on.
	Trees(parent types.UUID) []string
	// GitState returns what an agent that is about to run is told of the git repository in which it works; "" = it works in none that it may be told of.
	// That git does not say it in time is told, too. Where there is no repository it starts nothing.
	GitState(ctx context.Context, p *Process) string
}

// Catalog is what there is by name. Embed NoCatalog to implement a part of it.
type Catalog interface {
	// LoadAgent finds an agent by name ("" = the default one) for a child of the given process, for the
	// spawn action, with what is settled for it: without a provider it gets its parent's model.
	LoadAgent(parent *Process, name string) (*agent.Agent, SpawnOpts, error)
	// LoadSkill finds a skill for the specialize action.
	LoadSkill(p *Process, name string) (agent.Skill, error)
	// Price returns what a model costs a process, and where that stands; "" if nobody knows. needed says that a
	// budget in dollars has to be kept, for which an assumed price will do.
	Price(p *Process, provider, driver, model string, needed bool) (rate price.Rate, from string)
}

// Lifecycle is what becomes of a process outside of the kernel: of its number, of the programs that it has started, and of its history while it
// does not run. Embed NoLifecycle to implement a part of it.
type Lifecycle interface {
	// NextPID returns the number of a new process; 0 = the kernel counts, from 1.
	NextPID() (types.PID, error)
	// Freeze, Thaw and Release act on the OS children of a process: on pause, resume and end. OSChildren counts them.
	Freeze(pid types.PID)
	Thaw(pid types.PID)
	Release(pid types.PID)
	OSChildren(pid types.PID) int
	// Waits says what a process has to wait for at this moment, such as the lease of its session, and what is closed when that
	// may have changed; nil = it may act. Until then it does nothing, unless it is ended. It is asked before each question
	// to the model and each action, and must not block.
	Waits(p *Process) (reason string, changed <-chan struct{})
	// Touched is told of each process of which something has changed that Info shows, after the change, where the event log need not
	// say so. It must not block, nor call the kernel.
	Touched(id types.UUID)

	// Stored describes a history that is not running; NOT_FOUND if there is none.
	Stored(id types.UUID) (*step.ProcInfo, error)
	// Revive resumes a suspended history as a child of a process whose body asks for it.
	Revive(ctx context.Context, parent *Process, id types.UUID) (types.PID, error)
	// Dismiss ends a suspended history, and those below it, without running it. CONFLICT: it is running, or about
	// to.
	Dismiss(ctx context.Context, id types.UUID, reason string) error
	// Post puts a message into the history of a process that is suspended; BROKEN_PIPE if it has ended.
	Post(ctx context.Context, id types.UUID, m step.Mail) (uint64, error)
	// Account and Below say what the histories that are not running have used.
	Accounts
}

// noStore keeps nothing.
type noStore struct{}

func (noStore) Create(types.UUID) (Recorder, error) { return noRecord{}, nil }
func (noStore) Discard(types.UUID) error            { return nil }
func (noStore) SaveInfo(step.ProcInfo) error        { return nil }
func (noStore) SaveMeta(types.UUID, string, []vfs.Tool, vfs.ModelCard) error {
	return nil
}
func (noStore) Ended(types.UUID)          {}
func (noStore) Seal(*step.Settled) string { return "" }
func (noStore) SaveInputs(types.UUID, []step.Input) ([]step.InputRef, error) {
	return nil, nil
}
func (noStore) SaveAttachment(types.UUID, []byte) (string, error) {
	return "", types.Errorf(types.ErrUnavailable, "Attach", "", "this kernel keeps no histories, and nothing beside a text")
}
func (noStore) Attachment(_ types.UUID, sum string) ([]byte, error) {
	return nil, types.Errorf(types.ErrNotFound, "Attachment", sum, "this kernel keeps no histories")
}
func (noStore) Input(types.UUID, step.InputRef) (string, error) { return "", nil }
func (noStore) Steps(types.UUID) ([]step.StepRecord, error)     { return nil, nil }

type noRecord struct{}

func (noRecord) Add(...step.Record) error { return nil }
func (noRecord) Commit() error            { return nil }
func (noRecord) Close() error             { return nil }

// NoWorkspace is a Workspace of which nothing is kept.
type NoWorkspace struct{}

// Scratch says that there is none.
func (NoWorkspace) Scratch(types.UUID) string { return "" }

// Inputs says that they are in no files.
func (NoWorkspace) Inputs(types.UUID) string { return "" }

// Keeps says that there are no snapshots.
func (NoWorkspace) Keeps() bool { return false }

// Snapshot keeps nothing.
func (NoWorkspace) Snapshot(context.Context, *Process, int) (*step.Snapshot, bool, error) {
	return nil, false, nil
}

// Undo is never called, as nothing is kept: UNAVAILABLE.
func (NoWorkspace) Undo(context.Context, *Process, *step.Intent) error {
	return types.Errorf(types.ErrUnavailable, "Undo", "", "no snapshots are kept here")
}

// Plant says that there are none: UNAVAILABLE.
func (NoWorkspace) Plant(context.Context, *Process, *SpawnOpts) (func(), error) {
	return nil, types.Errorf(types.ErrUnavailable, "Spawn", "", "there are no git work trees here: leave worktree out, and the child works in your directory")
}

// Planted finds none.
func (NoWorkspace) Planted(types.UUID) (dir, text string) { return "", "" }

// Trees finds none.
func (NoWorkspace) Trees(types.UUID) []string { return nil }

// GitState has nothing to tell.
func (NoWorkspace) GitState(context.Context, *Process) string { return "" }

// NoCatalog is a Catalog with nothing in it: children have no agent and cannot name one, and nobody knows a price.
type NoCatalog struct{}

// LoadAgent finds the default agent, which says nothing. Any name is NOT_FOUND.
func (NoCatalog) LoadAgent(_ *Process, name string) (*agent.Agent, SpawnOpts, error) {
	if name != "" {
		return nil, SpawnOpts{}, types.Errorf(types.ErrNotFound, "Spawn", name, "this kernel has no agents by name")
	}
	return &agent.Agent{}, SpawnOpts{}, nil
}

// LoadSkill finds none: NOT_FOUND.
func (NoCatalog) LoadSkill(_ *Process, name string) (agent.Skill, error) {
	return agent.Skill{}, types.Errorf(types.ErrNotFound, "Skill", name, "this kernel has no skills")
}

// Price knows none.
func (NoCatalog) Price(*Process, string, string, string, bool) (price.Rate, string) {
	return price.Rate{}, ""
}

// NoLifecycle is a Lifecycle without OS children and without histories that do not run.
type NoLifecycle struct{}

// NextPID lets the kernel count.
func (NoLifecycle) NextPID() (types.PID, error) { return 0, nil }

// Freeze does nothing.
func (NoLifecycle) Freeze(types.PID) {}

// Thaw does nothing.
func (NoLifecycle) Thaw(types.PID) {}

// Release does nothing.
func (NoLifecycle) Release(types.PID) {}

// OSChildren counts none.
func (NoLifecycle) OSChildren(types.PID) int { return 0 }

// Waits says that a process may act.
func (NoLifecycle) Waits(*Process) (reason string, changed <-chan struct{}) { return "", nil }

// Touched tells nobody.
func (NoLifecycle) Touched(types.UUID) {}

// Stored finds none: NOT_FOUND.
func (NoLifecycle) Stored(id types.UUID) (*step.ProcInfo, error) {
	return nil, types.Errorf(types.ErrNotFound, "Info", id.String(), "this kernel keeps no histories")
}

// Revive has nothing to revive: UNAVAILABLE.
func (NoLifecycle) Revive(_ context.Context, _ *Process, id types.UUID) (types.PID, error) {
	return 0, types.Errorf(types.ErrUnavailable, "Resume", id.String(), "this kernel keeps no histories")
}

// Dismiss has nothing to end: UNAVAILABLE.
func (NoLifecycle) Dismiss(_ context.Context, id types.UUID, _ string) error {
	return types.Errorf(types.ErrUnavailable, "Dismiss", id.String(), "this kernel keeps no histories")
}

// Post finds nobody: what does not run has ended.
func (NoLifecycle) Post(_ context.Context, id types.UUID, _ step.Mail) (uint64, error) {
	return 0, types.Errorf(types.ErrBrokenPipe, "Send", id.String(), "it has ended, and this kernel keeps no histories")
}

// Account knows nothing.
func (NoLifecycle) Account(types.UUID) (Account, bool) { return Account{}, false }

// Below knows nothing.
func (NoLifecycle) Below(types.UUID, func(types.UUID) bool) (Amount, bool) { return Amount{}, false }
