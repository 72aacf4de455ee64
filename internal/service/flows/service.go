// Package flows starts, shows, ends and resumes workflows and supervisors: processes without a model, which start others. The kernel runs them,
// each by its body; what a file says of them is settled here, and so is what is known of those that are only on disk.
package flows

import (
	"context"
	"encoding/json"

	"rnix/agent"
	"rnix/internal/compose"
	"rnix/internal/compose/run"
	"rnix/internal/recovery"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/internal/supervisor"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// Service answers what concerns workflows and supervisors. Its fields are set before it is registered.
type Service struct {
	Kernel Kernel
	Index  Index
	Finder Finder
	Looks  Looks
	Starts Starts
	Stored Stored
}

// Kernel runs the processes that live. *kernel.KernelImpl is one.
type Kernel interface {
	List() []kernel.Info
	Info(pid types.PID) (kernel.Info, error)
	InfoOf(id types.UUID) (kernel.Info, bool)
	supervisor.Table
	WaitInfo(ctx context.Context, pid types.PID) (kernel.Info, error)
	SpawnContext(ctx context.Context, intent string, ag *agent.Agent, opts kernel.SpawnOpts) (types.PID, error)
	SpawnSupervisorContext(ctx context.Context, spec kernel.SupervisorSpec) (types.PID, error)
	// Terminate ends a process in order, whatever signals it blocks.
	Terminate(pid types.PID) error
	SignalTree(pid types.PID, sig types.Signal) (int, error)
}

// Index knows the histories on disk. Each store.Index is one.
type Index interface {
	Get(id types.UUID) (step.ProcInfo, bool)
	List() []step.ProcInfo // the latest is the last
	Open() []step.ProcInfo // those that have not ended
}

// Finder knows who asks, what a name means, and what a caller may do.
type Finder interface {
	// Settled waits until it is known what an earlier daemon has left, and SettledSoon at most a moment.
	Settled(ctx context.Context) error
	SettledSoon(ctx context.Context)
	// AgentOf returns inside which process a caller runs.
	AgentOf(peer *ipc.Peer) (owner types.PID, inside bool)
	// Resolve finds a process by what a person calls it, and ResolveKind prefers those of a kind.
	Resolve(text string) (service.Target, error)
	ResolveKind(text, kind string) (service.Target, error)
	// MayTouch refuses a caller inside an agent that acts on a process outside that agent's subtree; MaySignal and MayStart also one that lacks
	// the right to send signals, or to start processes.
	MayTouch(peer *ipc.Peer, op string, pid types.PID) error
	MaySignal(peer *ipc.Peer, op string, pid types.PID) error
	MayStart(peer *ipc.Peer, pid types.PID) error
}

// Looks says how a process looks.
type Looks interface {
	// Living describes a process that the kernel has.
	Living(i *kernel.Info) ipc.Proc
	// Whole returns what a history looks like with its texts in full, which the index cuts.
	Whole(i *step.ProcInfo) *step.ProcInfo
	// Branch returns the branch of the git work tree of a process; "" = it has none.
	Branch(id types.UUID) string
}

// Starts knows with what, and below whom, processes are started.
type Starts interface {
	// Profile reads the configuration for a client in a directory, with its environment. It refuses one with mistakes.
	Profile(op, cwd string, env []string, trust bool) (Profile, error)
	// ProfileOf returns the configuration that a process was started with.
	ProfileOf(p *kernel.Process) (Profile, bool)
	// Unresolved returns the files of the work tree of an attempt in which marks of a conflict are left that it was to resolve.
	Unresolved(id types.UUID) []string
	// Parent returns below which process a caller starts others; 0 = none. It binds the configuration of a caller inside an agent to that agent,
	// whose right it needs. trusts says that files of a project are to be trusted.
	Parent(peer *ipc.Peer, asked string, p Profile, trusts bool) (types.PID, error)
	// Ready waits until everything runs without which the daemon must not be.
	Ready(ctx context.Context) error
	// Room refuses a start while the disk has no room for it.
	Room(op string) error
	// Seq returns the number of the last event, behind which those of a process come that is started now.
	Seq() uint64
}

// Profile is a configuration, as a client has it in its directory.
type Profile interface {
	Cwd() string
	Lookup(name string) (string, bool) // variables of the client
	Problems() []string                // what is wrong in the files
	// Trusts reports whether files of the project are trusted, and Trusting returns the same configuration with that trust.
	Trusts() bool
	Trusting() Profile
	// AskSandbox sets how commands are confined, where level and net are not empty, and adds hosts to those that they may reach.
	AskSandbox(level, net string, bounds types.Bounds, allow []string) error
	// In reads the configuration of the same client in another directory. Processes that are started with it see these variables, too.
	In(op, cwd string, variables []string) (Profile, error)
	// Program returns the options of a process without a model.
	Program() (kernel.SpawnOpts, error)
	// Agent settles an agent and its options as for a client which asks for the same, and says what it does not get. It does not change the
	// configuration.
	Agent(req *ipc.SpawnRequest) (ag *agent.Agent, o kernel.SpawnOpts, problems []string, err error)
	// Fits refuses a git work tree that could not be made for a process in a directory.
	Fits(ctx context.Context, cwd string, w *compose.Worktree) error
	// Plant makes the git work tree of a node, if it is to have one of its own, and puts it into its options.
	Plant(ctx context.Context, l *run.Launch, o *kernel.SpawnOpts) (compose.Made, error)
}

// Stored reads, ends, pauses and resumes histories that do not run.
type Stored interface {
	// Read returns what a history amounts to, and Was with what its last run was started.
	Read(ctx context.Context, id types.UUID) (*recovery.State, error)
	Was(s *recovery.State, id types.UUID) (step.Settled, error)
	// Dismiss ends a suspended history, and those below it.
	Dismiss(ctx context.Context, id types.UUID, reason string) error
	// Pause pauses a history; one that goes on in this moment is paused where it lives. One that has ended, or never begun, is left alone.
	Pause(ctx context.Context, id types.UUID) error
	// CheckResume refuses a request to resume that cannot be meant.
	CheckResume(req *ipc.ResumeRequest) error
	// Resume resumes a suspended history as it is, with those that wait for it or that it waits for. CONFLICT: another client was quicker. STORAGE, with a PID:
	// it goes on, and the end of a pause would not hold over the end of the daemon. So of ResumeRun.
	Resume(ctx context.Context, id types.UUID, how *ipc.ResumeRequest) (types.PID, error)
	// ResumeRun resumes the history of a workflow, and what is suspended above it.
	ResumeRun(ctx context.Context, id types.UUID, how *ipc.ResumeRequest, r Revival) (ipc.ResumeResponse, error)
	// Automatic returns as which process a history was resumed when the daemon started, for the first who asks.
	Automatic(id types.UUID) (types.PID, bool)
}

// Revival decides how a workflow is resumed.
type Revival interface {
	// Decide is asked when nobody else can change the history, and again if that has to be opened anew: how it is resumed, or why it is not.
	Decide(s *recovery.State) (*ipc.ResumeRequest, error)
	// Begin is given the body that was made of it, before that starts. Only the last one does.
	Begin(b kernel.Body) error
	// Begun is called when it runs, and has not looked for its nodes yet: wake resumes the history of one, and reports whether it could.
	Begun(wake func(id types.UUID) bool)
}

// Register registers what the service answers.
func (s *Service) Register(on *service.Wire) {
	service.Handle(on, ipc.ComposeUp, s.Up)
	service.Handle(on, ipc.ComposeStatus, s.Status)
	service.Handle(on, ipc.ComposePlan, s.runs().showPlan)
	service.Handle(on, ipc.ComposeList, s.runs().list)
	service.Handle(on, ipc.ComposeDown, stopper{s.runs(), s.Kernel, s.Finder, s.Stored}.down)
	service.Handle(on, ipc.ComposeResume, resumer{s.runs(), s.Kernel, s.Finder, s.Starts, s.Stored}.resume)
	v := s.Supervisors()
	service.Handle(on, ipc.SuperviseUp, v.up)
	service.Handle(on, ipc.SuperviseCheck, v.check)
	service.Handle(on, ipc.SuperviseAdd, v.add)
	service.Handle(on, ipc.SuperviseStop, v.stop)
	service.Handle(on, ipc.Supervisors, v.list)
}

// Up starts a run of a workflow.
func (s *Service) Up(ctx context.Context, peer *ipc.Peer, req ipc.ComposeUpRequest) (ipc.ComposeUpResponse, error) {
	return s.starter().up(ctx, peer, &req)
}

// Status describes a run with its nodes.
func (s *Service) Status(ctx context.Context, _ *ipc.Peer, req ipc.TargetRequest) (ipc.ComposeRun, error) {
	return s.runs().status(ctx, req.Target)
}

// RunAgain makes the body of a run of a workflow again, from what its history keeps.
func (s *Service) RunAgain(spec json.RawMessage) (kernel.Body, error) {
	what, err := run.ParseSpec(spec)
	if err != nil {
		return nil, err
	}
	return run.New(what, s.starter()), nil
}

// Supervisors returns what starts and shows supervisors.
func (s *Service) Supervisors() *Supervisors {
	return &Supervisors{s.Kernel, s.Index, s.Finder, s.Looks, s.Starts, s.Stored}
}

func (s *Service) starter() *starter { return &starter{s.Kernel, s.Finder, s.Starts} }

func (s *Service) runs() *runs {
	return &runs{s.Kernel, s.Index, s.Finder, s.Looks, s.Stored}
}
