package flows

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"testing"

	"rnix/agent"
	"rnix/internal/compose"
	"rnix/internal/compose/run"
	"rnix/internal/procview"
	"rnix/internal/recovery"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/internal/supervisor"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// world is a few processes, alive and stored, and what was done to them.
type world struct {
	Kernel // those of its methods that no test needs
	Stored

	live   map[types.UUID]kernel.Info
	disk   map[types.UUID]step.ProcInfo
	states map[types.UUID]*recovery.State
	broken map[string]error // what cannot be started: agents, directories, supervisors

	unwritten map[string]error // of whom it cannot be written that their pause has ended

	opened  int // how often a history is opened until its process is started
	started []string
	done    []string // what was done to which process
	bodies  []*run.Run
}

func (w *world) service() *Service {
	return &Service{Kernel: w, Index: index{w}, Finder: finder{w}, Looks: looks{}, Starts: starts{w}, Stored: w}
}

func (w *world) List() []kernel.Info { return slices.Collect(maps.Values(w.live)) }

func (w *world) Info(pid types.PID) (kernel.Info, error) {
	for _, i := range w.live {
		if i.PID == pid {
			return i, nil
		}
	}
	return kernel.Info{}, types.Errorf(types.ErrNotFound, "Info", "", "no such process")
}

func (w *world) InfoOf(id types.UUID) (kernel.Info, bool) {
	i, ok := w.live[id]
	return i, ok && i.State < types.StateDead
}

func (w *world) BodyOf(types.PID) kernel.Body { return nil }

func (w *world) WaitInfo(_ context.Context, pid types.PID) (kernel.Info, error) { return w.Info(pid) }

func (w *world) Terminate(pid types.PID) error {
	w.done = append(w.done, "terminate "+pid.String())
	return nil
}

func (w *world) SpawnSupervisorContext(_ context.Context, spec kernel.SupervisorSpec) (types.PID, error) {
	s := spec.(supervisor.Spec)
	if err := w.broken[s.Name]; err != nil {
		return 0, err
	}
	w.started = append(w.started, s.Name)
	return types.PID(len(w.started)), nil
}

func (w *world) Read(_ context.Context, id types.UUID) (*recovery.State, error) {
	s, ok := w.states[id]
	if !ok {
		return nil, types.Errorf(types.ErrStorage, "Read", id.String(), "it cannot be read")
	}
	return s, nil
}

func (w *world) Was(s *recovery.State, _ types.UUID) (step.Settled, error) { return s.Was() }

func (w *world) Dismiss(_ context.Context, id types.UUID, _ string) error {
	w.done = append(w.done, "dismiss "+w.disk[id].Name)
	return nil
}

func (w *world) Pause(_ context.Context, id types.UUID) error {
	w.done = append(w.done, "pause "+w.disk[id].Name)
	return nil
}

// Resume resumes what is not broken.
func (w *world) Resume(_ context.Context, id types.UUID, _ *ipc.ResumeRequest) (types.PID, error) {
	name := w.disk[id].Name
	if err := w.broken[name]; err != nil {
		return 0, err
	}
	w.done = append(w.done, "resume "+name)
	return w.disk[id].PID, w.unwritten[name]
}

func (w *world) SignalTree(pid types.PID, sig types.Signal) (int, error) {
	w.done = append(w.done, sig.String()+" "+pid.String())
	return 1, w.unwritten[pid.String()]
}

func (w *world) CheckResume(*ipc.ResumeRequest) error { return nil }

func (w *world) ResumeRun(_ context.Context, id types.UUID, _ *ipc.ResumeRequest, r Revival) (ipc.ResumeResponse, error) {
	for range w.opened {
		if _, err := r.Decide(w.states[id]); err != nil {
			return ipc.ResumeResponse{}, err
		}
		was, err := w.states[id].Was()
		if err != nil {
			return ipc.ResumeResponse{}, err
		}
		b, err := w.service().RunAgain(was.Body.Spec)
		if err != nil {
			return ipc.ResumeResponse{}, err
		}
		if err := r.Begin(b); err != nil {
			return ipc.ResumeResponse{}, err
		}
		w.bodies = append(w.bodies, b.(*run.Run))
	}
	r.Begun(func(types.UUID) bool { return true })
	return ipc.ResumeResponse{SpawnResponse: ipc.SpawnResponse{PID: 99, UUID: id, Name: w.disk[id].Name}}, nil
}

// index is the index of a world.
type index struct{ *world }

func (x index) Get(id types.UUID) (step.ProcInfo, bool) { i, ok := x.disk[id]; return i, ok }

func (x index) List() []step.ProcInfo {
	return slices.SortedFunc(maps.Values(x.disk), func(a, b step.ProcInfo) int { return int(a.PID - b.PID) })
}

func (x index) Open() []step.ProcInfo {
	return slices.DeleteFunc(x.List(), func(i step.ProcInfo) bool { return i.Exit != nil && !i.Suspended })
}

// finder finds the processes of a world. The kernel remembers those that have ended by their PIDs alone.
type finder struct{ *world }

func (finder) Settled(context.Context) error { return nil }

func (finder) SettledSoon(context.Context) {}

func (finder) AgentOf(peer *ipc.Peer) (types.PID, bool) { return 1, peer != nil }

func (f finder) Resolve(text string) (service.Target, error) {
	for id, info := range f.disk {
		i, known := f.live[id]
		if text != id.String() && text != info.Name && text != info.PID.String() {
			continue
		}
		t := service.Target{UUID: id, PID: info.PID, Info: &info}
		if known && (i.State < types.StateDead || text == info.PID.String()) {
			t.Live = &i
		}
		return t, nil
	}
	return service.Target{}, types.Errorf(types.ErrNotFound, "Find", text, "no such process")
}

func (f finder) ResolveKind(text, _ string) (service.Target, error) { return f.Resolve(text) }

func (finder) MayTouch(*ipc.Peer, string, types.PID) error { return nil }

func (finder) MaySignal(*ipc.Peer, string, types.PID) error { return nil }

func (finder) MayStart(*ipc.Peer, types.PID) error { return nil }

type looks struct{}

func (looks) Living(i *kernel.Info) ipc.Proc { return procview.Living(i) }

func (looks) Whole(i *step.ProcInfo) *step.ProcInfo { return i }

func (looks) Branch(types.UUID) string { return "" }

type starts struct{ *world }

func (s starts) Profile(_, cwd string, _ []string, trust bool) (Profile, error) {
	return client{w: s.world, cwd: cwd, trusts: trust}, s.broken[cwd]
}

func (s starts) ProfileOf(*kernel.Process) (Profile, bool) { return nil, false }
func (s starts) Unresolved(types.UUID) []string            { return nil }

func (s starts) Parent(*ipc.Peer, string, Profile, bool) (types.PID, error) { return 0, nil }

func (s starts) Ready(context.Context) error { return nil }

func (s starts) Room(string) error { return nil }

func (s starts) Seq() uint64 { return 0 }

// client starts what is not broken.
type client struct {
	w      *world
	cwd    string
	trusts bool
}

func (p client) Cwd() string { return p.cwd }

func (client) Lookup(string) (string, bool) { return "/home", true }

func (client) Problems() []string { return nil }

func (p client) Trusts() bool { return p.trusts }

func (p client) Trusting() Profile { p.trusts = true; return p }

func (p client) AskSandbox(string, string, types.Bounds, []string) error { return nil }

func (p client) In(_, cwd string, _ []string) (Profile, error) {
	p.cwd = cwd
	return p, p.w.broken[cwd]
}

func (p client) Program() (kernel.SpawnOpts, error) { return kernel.SpawnOpts{WorkDir: p.cwd}, nil }

func (p client) Agent(req *ipc.SpawnRequest) (*agent.Agent, kernel.SpawnOpts, []string, error) {
	if req.Agent == "trusted" && !p.trusts {
		return nil, kernel.SpawnOpts{}, nil, errors.New("the project is not trusted")
	}
	return nil, kernel.SpawnOpts{}, nil, p.w.broken[req.Agent]
}

func (p client) Fits(context.Context, string, *compose.Worktree) error { return p.w.broken["tree"] }

func (client) Plant(context.Context, *run.Launch, *kernel.SpawnOpts) (compose.Made, error) {
	return compose.Made{Undo: func() {}}, nil
}

func id(n byte) types.UUID { return types.UUID{15: n} }

// stored returns the history of a process without a model, and what it amounts to.
func stored(t *testing.T, kind string, spec any, notes map[string]any) *recovery.State {
	t.Helper()
	raw := func(v any) json.RawMessage {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	s := &recovery.State{Life: step.Life{Phase: recovery.Suspended, Settled: raw(step.Settled{Body: &step.BodyRecord{Kind: kind, Spec: raw(spec)}})}, Notes: map[string]json.RawMessage{}}
	for k, n := range notes {
		s.Notes[k] = raw(n)
	}
	return s
}

// workflow is a world with a suspended run (1), PID 1, whose nodes have been begun: one for each of infos, from 2 on, in which they are named.
func workflow(t *testing.T, infos ...step.ProcInfo) *world {
	t.Helper()
	w := &world{live: map[types.UUID]kernel.Info{}, disk: map[types.UUID]step.ProcInfo{}, states: map[types.UUID]*recovery.State{}}
	w.disk[id(1)] = step.ProcInfo{ProcStatus: types.ProcStatus{UUID: id(1), PID: 1, Name: "flow", Kind: run.Kind}, State: types.StateDead, Suspended: true}
	text, notes := "agents:\n", map[string]any{}
	for n, i := range infos {
		i.UUID, i.PID = id(byte(n+2)), types.PID(n+2)
		text += "  " + i.Name + ": {intent: work}\n"
		notes[i.Name] = compose.Note{Phase: compose.Running, Attempt: 1, First: 1, UUID: i.UUID}
		w.disk[i.UUID] = i
	}
	f, ps := compose.Parse(compose.Source{Name: compose.FileName, Text: []byte(text)})
	if err := ps.Err("Compose", ""); err != nil {
		t.Fatal(err)
	}
	w.states[id(1)] = stored(t, run.Kind, run.Spec{File: f, Name: "flow", Dir: "/work"}, notes)
	return w
}

// exited is how a process has ended.
func exited(code int) *types.ExitStatus {
	return &types.ExitStatus{Code: code, Reason: "as it did"}
}
