package kernel

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"rnix/internal/event"
	"rnix/internal/step"
	"rnix/kernel/internal/gate"
	"rnix/kernel/internal/loop"
	"rnix/kernel/internal/mailbox"
	"rnix/kernel/internal/purse"
	"rnix/kernel/internal/sigset"
	"rnix/types"
	"rnix/vfs"
)

// Process is one run of an agent. The exported fields are set before it is visible and never change.
type Process struct {
	PID   types.PID
	UUID  types.UUID
	CtxID types.CtxID

	*card

	opts    SpawnOpts
	inputs  []step.InputRef // what it was given with its intent; set before it is visible
	modelFD types.FD
	model   vfs.ModelCard
	kit     *kit

	stepTimeout time.Duration // of one step; 0 = none
	endless     bool          // its agent says that there is no limit of a step
	told        bool          // its parent knows of its end; exclusive to its goroutine
	grouped     bool          // it was in groups when it ended; exclusive to who reaps it
	life        atomic.Int64  // when it made progress last, in the time of pulse
	others      atomic.Int32  // how many of its actions wait for other processes

	purse *purse.Purse // what it and its descendants may use, and have used
	claim *purse.Claim // for the answer that is asked for; exclusive to the process's goroutine
	meter *metered     // of what its programs ask models for; nil = they do not. Set before it is visible

	rec        Recorder
	small      smallFile
	activating sync.Mutex // one skill after the other
	files      snapshots  // exclusive to the process's goroutine while it runs
	answered   time.Time  // when the answer in hand was asked for; exclusive likewise

	rel relations // guarded by table.mu

	mu    sync.Mutex
	state types.ProcessState // +checklocks:mu
	// Set when the process becomes a zombie.
	exit   *types.ExitStatus // +checklocks:mu
	result string            // +checklocks:mu
	ended  time.Time         // +checklocks:mu
	// It ended because the kernel stops: suspended on disk.
	stopping bool // +checklocks:mu
	// What it waits for, if it has ended to wait: suspended on disk.
	parked types.Suspension // +checklocks:mu
	// When it can go on by itself.
	wake time.Time // +checklocks:mu
	// The budget that it waits for.
	broke *step.PurseWait // +checklocks:mu
	// Cuts off the model call under way; nil = there is none.
	cutOff   func()        // +checklocks:mu
	sigs     sigset.Set    // +checklocks:mu
	progress loop.Progress // +checklocks:mu
	waits    waiting       // +checklocks:mu
	// The calls of tools in hand, oldest first.
	hands []*Hand // +checklocks:mu
	// Since when it makes no progress, if it is suspect.
	quiet time.Time // +checklocks:mu
	plan  string    // +checklocks:mu
	// What the agent is told, without where it works and with it, and the names of the skills in it; see tellLocked.
	basePrompt string    // +checklocks:mu
	today      time.Time // +checklocks:mu
	// What it is told of the git repository in which it works; nil = nothing. It is not changed, only replaced.
	git    *step.GitTold // +checklocks:mu
	system string        // +checklocks:mu
	skills []string      // +checklocks:mu
	// Children that the model started.
	spawned int // +checklocks:mu
	// Children that failed, for people.
	failedChildren []string // +checklocks:mu
	// Work trees of its children, which it may read.
	trees []string // +checklocks:mu

	threads    map[types.TID]*Thread     // +checklocks:mu
	coroutines map[types.CoID]*Coroutine // +checklocks:mu
	lastTID    types.TID                 // +checklocks:mu
	lastCoID   types.CoID                // +checklocks:mu
	// No more threads and coroutines.
	cleared bool // +checklocks:mu
	// The signal that ends it, also if it is being suspended at that moment; 0 = none.
	fatal types.Signal // +checklocks:mu
	// How its run ends is decided: a signal counts no more.
	decided bool // +checklocks:mu
	// The loop has ended: no more outlets.
	silent bool // +checklocks:mu

	// Calls checkClock; nil without a time limit, and after the end.
	clock *time.Timer // +checklocks:mu

	outlets atomic.Pointer[[]*outlet] // stored under mu; nil = there were none
	speech  atomic.Pointer[speech]    // what its model is saying; nil = it is not asked
	answer  uint64                    // the number of its last answer; the loop's alone

	box  mailbox.Box[*Message]
	post post // the way into the box of an agent
	kids kids // of an agent
	asks questions

	servers serverNews          // of its MCP servers
	renewed atomic.Pointer[kit] // in the place of kit, since a person has reloaded a server; nil = none has

	compact compactWish

	gate   gate.Gate
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
	left   chan struct{} // closed when the exit status is there
	gone   chan struct{} // closed when it was reaped
	tomb   *remains      // set before gone is closed, read after
	reaped atomic.Bool   // somebody reaps it, or has
}

// waiting says what a process waits for.
type waiting struct {
	reason string
	kind   types.SuspendKind // of the reason, where programs want to know
	beside bool              // the reason is none of its loop's, but an ask beside it
	until  time.Time
	tool   string // the tool in hand
	since  time.Time
}

// validTransitions is the state machine of 003 §7.2; everything else is an internal error.
var validTransitions = [...][]types.ProcessState{
	types.StateCreated: {types.StateRunning},
	types.StateRunning: {types.StateZombie},
	types.StateZombie:  {types.StateDead},
	types.StateDead:    nil,
}

func legal(from, to types.ProcessState) bool { return slices.Contains(validTransitions[from], to) }

// transitionLocked moves the process to another state, p.mu held, and says so in the event log, as of now. An
// illegal transition changes nothing and returns an INTERNAL error that names both states.
//
// +checklocks:p.mu
func (p *Process) transitionLocked(to types.ProcessState, log *event.Log, now time.Time) error {
	if !legal(p.state, to) {
		return illegal(p.PID, p.state, to)
	}
	from := p.state
	p.state = to
	log.Put(&event.Event{Time: now, Kind: event.StateChanged, PID: p.PID, UUID: p.UUID, From: from, To: to})
	return nil
}

//go:noinline
func illegal(pid types.PID, from, to types.ProcessState) error {
	return &types.SyscallError{Syscall: "Transition", PID: pid, Code: types.ErrInternal,
		Err: types.Errorf(types.ErrInternal, "", "", "illegal transition from %s to %s", from, to)}
}

// start is Created -> Running.
func (p *Process) start(log *event.Log) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.transitionLocked(types.StateRunning, log, time.Now())
}

// State returns the state of the moment.
func (p *Process) State() types.ProcessState {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

// Left is closed when the process has ended and its exit status can be read.
func (p *Process) Left() <-chan struct{} { return p.left }

// Gone is closed when everything that the process had was released.
func (p *Process) Gone() <-chan struct{} { return p.gone }

// Exit returns how the process ended, or false while it has not.
func (p *Process) Exit() (types.ExitStatus, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exit == nil {
		return types.ExitStatus{}, false
	}
	return *p.exit, true
}

// ModelOf returns what is known of the model of a process.
func ModelOf(p *Process) vfs.ModelCard { return p.model }

// Profile returns the assembly's own value for the process, as it was given to Spawn.
func (p *Process) Profile() any { return p.opts.Profile }

// Elapsed returns how long the process has lived without the time that it was paused, in step with
// now; it stands still while paused and after the end.
func (p *Process) Elapsed(now time.Time) time.Duration {
	p.mu.Lock()
	end := p.ended
	p.mu.Unlock()
	if end.IsZero() {
		end = now
	}
	return p.before + end.Sub(p.began) - p.gate.Paused(end)
}

// onPause has f called when the process is paused, at once if it is, until the returned function is
// called. There is one at a time.
func (p *Process) onPause(f func()) (done func()) {
	p.mu.Lock()
	p.cutOff = f
	p.mu.Unlock()
	if _, shut := p.gate.Since(); shut {
		f()
	}
	return func() {
		p.mu.Lock()
		p.cutOff = nil
		p.mu.Unlock()
	}
}

// Caller returns what devices may know of a process. It is the VFS's source of callers.
func (k *KernelImpl) Caller(pid types.PID) (vfs.Caller, bool) {
	p, ok := k.table.get(pid)
	if !ok {
		return vfs.Caller{}, false
	}
	return p.caller(k), true
}

func (p *Process) caller(k *KernelImpl) vfs.Caller {
	c := vfs.Caller{PID: p.PID, UUID: p.UUID, WorkDir: p.WorkDir, Model: p.opts.Model, ReadRoots: readRoots(p), Env: withIdentity(p.opts.Env, p, k.cfg.Address), Secret: p.opts.Secret, Profile: p.opts.Profile}
	c.Attachment = func(sum string) ([]byte, error) { return k.store.Attachment(p.UUID, sum) }
	c.Scratch = k.cfg.Workspace.Scratch(p.UUID)
	if len(p.inputs) > 0 {
		c.Inputs = k.cfg.Workspace.Inputs(p.UUID)
	}
	return c
}

// Info is a snapshot of a process.
type Info struct {
	types.ProcStatus
	State      types.ProcessState
	Suspended  bool             // paused, or ended because the kernel stopped or because it waits
	Paused     bool             // by a person
	Parked     types.Suspension // what it waits for, if it has ended to wait
	Wake       time.Time        // when it can go on by itself; zero = not known
	Purse      *step.PurseWait  // the budget that it waits for, if it has ended to wait
	Origin     types.UUID       // of a fork
	OriginStep int
	Runs       int
	Earlier    []types.PID // of the runs before
	Wait       string
	Reason     string            // what it waits for, or has in hand, without how long
	ReasonKind types.SuspendKind // of what kind that is; "" = of none that is known
	WaitSince  time.Time         // since when; zero = not known
	Hand       *Hand             // the call in hand; nil = there is none
	Doing      string            // Wait without what the heartbeat says
	Suspect    time.Time         // since when it makes no progress, if the heartbeat says so
	WaitUntil  time.Time
	Estimated  bool            // some of the tokens were counted by us
	Spending   []step.Spending // what was used when, and of which model; never changed, only replaced
	Taken      int             // of its failed calls: what a fork has of its origin
	EndedAt    time.Time
	Elapsed    time.Duration
	Still      bool // Elapsed does not grow now: it is paused, or waits for a person
	PausedFor  time.Duration
	Result     string
	Schema     bool // it must fit an output schema
	ReadRoots  []string
	Rights     Rights
	MCPMounts  []string
	MCPDown    []string // its MCP servers that cannot be reached, each with the reason
	Tools      []string
	Plan       string
	Children   []types.PID
	Groups     []types.PGID   // in order
	Leaving    bool           // its run is over, or ends now: it takes no children any more
	Pending    []types.Signal // blocked, and not delivered yet
	Ending     types.Signal   // that ends it, if one does
	Decided    bool           // how its run ends is decided: no signal counts any more
}

// info takes the snapshot of a process whose relations are given.
func (p *Process) info(ppid types.PID, children []types.PID, now time.Time) *Info {
	r := remains{ppid: ppid, limit: p.purse.Limit()}
	p.mu.Lock()
	defer p.mu.Unlock()
	r.takeLocked(p, now)
	i := r.info()
	if kt := p.renewed.Load(); kt != nil {
		i.Tools = kt.names
	}
	i.Children, i.Hand, i.Decided, i.Pending, i.Ending, i.Still = children, handLocked(p), p.decided, p.sigs.Pending(), p.fatal, p.gate.Stands()
	shut, since := r.shut, r.pausedAt
	if p.state == types.StateRunning {
		w := waitsLocked(p, shut, since)
		i.Reason, i.ReasonKind, i.WaitSince = reasonLocked(p, w)
		switch i.Wait, i.WaitUntil = w.reason, w.until; {
		case shut:
			i.Wait = "paused for " + now.Sub(since).Round(time.Second).String()
		case w.reason == "" && w.tool != "":
			i.Wait = w.tool + " for " + now.Sub(w.since).Round(time.Second).String()
		}
	}
	if i.Doing = i.Wait; !p.quiet.IsZero() && p.state == types.StateRunning && !shut {
		i.Suspect = p.quiet
		i.Wait = with("no progress for "+now.Sub(p.quiet).Round(time.Second).String(), i.Doing)
	}
	return i
}
