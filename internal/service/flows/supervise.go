package flows

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"rnix/internal/initfile"
	"rnix/internal/procview"
	"rnix/internal/recovery"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/internal/supervisor"
	"rnix/ipc"
	"rnix/types"
)

// Supervisors starts, shows and ends supervisors.
type Supervisors struct {
	kernel Kernel
	index  Index
	finder Finder
	looks  Looks
	starts Starts
	stored Stored
}

// read reads the file of a request and finds out whether all of it can be started.
func (v *Supervisors) read(req *ipc.SuperviseRequest) (*initfile.File, Profile, error) {
	const op = "Supervise"
	name := cmp.Or(req.File, "the file")
	p, err := v.starts.Profile(op, req.Cwd, req.Env, req.TrustProject)
	if err != nil {
		return nil, nil, err
	}
	f := initfile.Parse([]byte(req.Source), name)
	if err := f.Problems().Err(op, ""); err != nil {
		return nil, nil, err
	}
	home, _ := p.Lookup("HOME")
	f.Settle(p.Cwd(), home)
	for i := range f.Supervisors {
		Examine(p, f, i)
	}
	if err := f.Problems().Err(op, ""); err != nil {
		return nil, nil, err
	}
	if len(f.Supervisors) == 0 {
		return nil, nil, types.Errorf(types.ErrInvalid, op, name, "there is no supervisor in it; write a list under the key supervisors")
	}
	return f, p, nil
}

func (v *Supervisors) check(_ context.Context, _ *ipc.Peer, req ipc.SuperviseRequest) (ipc.SuperviseResponse, error) {
	f, p, err := v.read(&req)
	if err != nil {
		return ipc.SuperviseResponse{}, err
	}
	resp := ipc.SuperviseResponse{Warnings: append(f.Problems().Strings(), p.Problems()...)}
	for i := range f.Supervisors {
		resp.Supervisors = append(resp.Supervisors, supervised(&f.Supervisors[i]))
	}
	return resp, nil
}

func supervised(s *initfile.Supervisor) ipc.Supervised {
	return ipc.Supervised{Name: s.Name, Strategy: cmp.Or(s.Strategy, string(supervisor.OneForOne)), Children: len(s.Children)}
}

// up starts the supervisors of a file, all or none. One that runs already, as the file says, is left alone.
func (v *Supervisors) up(ctx context.Context, peer *ipc.Peer, req ipc.SuperviseRequest) (ipc.SuperviseResponse, error) {
	f, p, err := v.read(&req)
	if err == nil {
		err = v.starts.Room("Supervise")
	}
	if err != nil {
		return ipc.SuperviseResponse{}, err
	}
	if err := v.starts.Ready(ctx); err != nil {
		return ipc.SuperviseResponse{}, err
	}
	if err := v.finder.Settled(ctx); err != nil {
		return ipc.SuperviseResponse{}, err
	}
	trusts := p.Trusts() || slices.ContainsFunc(f.Supervisors, func(s initfile.Supervisor) bool { return s.Trust })
	parent, err := v.starts.Parent(peer, req.Parent, p, trusts)
	if err != nil {
		return ipc.SuperviseResponse{}, err
	}
	resp := ipc.SuperviseResponse{Warnings: append(f.Problems().Strings(), p.Problems()...)}
	var started []types.PID
	for i := range f.Supervisors {
		s := &f.Supervisors[i]
		one := supervised(s)
		if one.PID, one.Was, err = v.Start(ctx, p, &Declared{Spec: *s}, parent); err != nil {
			for _, pid := range slices.Backward(started) {
				v.end(context.WithoutCancel(ctx), pid)
			}
			return ipc.SuperviseResponse{}, err
		}
		if !one.Was {
			started = append(started, one.PID)
		}
		if i, err := v.kernel.Info(one.PID); err == nil {
			one.UUID = i.UUID
		}
		resp.Supervisors = append(resp.Supervisors, one)
	}
	return resp, nil
}

// Start starts a supervisor, unless it is there already. One of the same name that is something else is a CONFLICT.
func (v *Supervisors) Start(ctx context.Context, p Profile, decl *Declared, parent types.PID) (pid types.PID, was bool, err error) {
	name := decl.Spec.Name
	for _, i := range v.kernel.List() {
		if i.Name != name || i.Kind != supervisor.Kind || i.PPID != parent || i.State >= types.StateZombie {
			continue
		}
		if same, serr := v.Same(ctx, i.UUID, decl); serr == nil && same {
			return i.PID, true, nil
		}
		return 0, false, types.Errorf(types.ErrConflict, "Supervise", name, "a supervisor of this name runs as PID %d, and is not as the file says; stop it first: rnix supervise stop %d", i.PID, i.PID)
	}
	spec, err := decl.plan(trusting(p, &decl.Spec))
	if err != nil {
		return 0, false, err
	}
	spec.ParentPID = parent
	pid, err = v.kernel.SpawnSupervisorContext(ctx, spec)
	return pid, false, err
}

// Same reports whether a history is that of a supervisor as it is declared.
func (v *Supervisors) Same(ctx context.Context, id types.UUID, decl *Declared) (bool, error) {
	want, err := decl.text()
	if err != nil {
		return false, err
	}
	_, was, err := v.state(ctx, id)
	return err == nil && was.Body != nil && bytes.Equal(was.Body.Spec, want), err
}

// Declared returns what a history says that its supervisor is.
func (v *Supervisors) Declared(ctx context.Context, id types.UUID) (Declared, error) {
	_, was, err := v.state(ctx, id)
	if err != nil {
		return Declared{}, err
	}
	return declaredIn(&was, id)
}

// state reads what a history amounts to, and with what its last run was started.
func (v *Supervisors) state(ctx context.Context, id types.UUID) (*recovery.State, step.Settled, error) {
	s, err := v.stored.Read(ctx, id)
	if err != nil {
		return nil, step.Settled{}, err
	}
	was, err := v.stored.Was(s, id)
	return s, was, err
}

// end stops a supervisor and waits for its end.
func (v *Supervisors) end(ctx context.Context, pid types.PID) {
	if v.kernel.Terminate(pid) == nil {
		_, _ = v.kernel.WaitInfo(ctx, pid) // it has ended, or nobody waits any more
	}
}

// add starts another child.
func (v *Supervisors) add(ctx context.Context, peer *ipc.Peer, req ipc.SuperviseAddRequest) (ipc.SuperviseAddResponse, error) {
	if err := v.finder.Settled(ctx); err != nil {
		return ipc.SuperviseAddResponse{}, err
	}
	t, err := v.finder.ResolveKind(req.Target, supervisor.Kind)
	if err == nil {
		err = t.MustRun("StartChild", req.Target)
	}
	if err == nil {
		err = v.finder.MayStart(peer, t.PID)
	}
	if err == nil {
		err = v.starts.Room("StartChild")
	}
	if err != nil {
		return ipc.SuperviseAddResponse{}, err
	}
	pid, err := supervisor.StartChild(v.kernel, t.PID, req.Intent)
	if err != nil {
		return ipc.SuperviseAddResponse{}, err
	}
	resp := ipc.SuperviseAddResponse{PID: pid, Supervisor: t.PID}
	if i, err := v.kernel.Info(pid); err == nil {
		resp.UUID, resp.Name = i.UUID, i.Name
	}
	return resp, nil
}

// stop asks a supervisor to end, or ends one that is suspended.
func (v *Supervisors) stop(ctx context.Context, peer *ipc.Peer, req ipc.TargetRequest) (ipc.SuperviseStopResponse, error) {
	resp := ipc.SuperviseStopResponse{}
	if err := v.finder.Settled(ctx); err != nil {
		return resp, err
	}
	t, err := v.finder.ResolveKind(req.Target, supervisor.Kind)
	if err != nil {
		return resp, err
	}
	s, err := v.look(ctx, t)
	resp.PID, resp.UUID, resp.Name = s.PID, s.UUID, s.Name
	switch owner, inside := v.finder.AgentOf(peer); {
	case err != nil:
		return resp, err
	case s.Exit != nil && s.State != "suspended":
		return resp, &types.SyscallError{Syscall: "Signal", PID: s.PID, Device: req.Target, Code: types.ErrNotFound, Err: errEnded}
	case t.Live != nil && t.Live.State < types.StateZombie:
		if err := v.finder.MaySignal(peer, "Signal", t.PID); err != nil {
			return resp, err
		}
		return resp, v.kernel.Terminate(t.PID)
	case inside:
		return resp, service.Outside("Signal", owner, "act on its own subtree only")
	}
	resp.Dismissed = true
	return resp, v.stored.Dismiss(ctx, t.UUID, "terminated while it was suspended")
}

// errEnded is the cause of errors about processes that are not there any more.
var errEnded = errors.New("the process has ended")

// list shows supervisors, alive or on disk.
func (v *Supervisors) list(ctx context.Context, _ *ipc.Peer, req ipc.SupervisorsRequest) (ipc.SupervisorsResponse, error) {
	resp := ipc.SupervisorsResponse{Supervisors: []ipc.Supervisor{}}
	if req.Target != "" {
		t, err := v.finder.ResolveKind(req.Target, supervisor.Kind)
		if err != nil {
			return resp, err
		}
		s, err := v.look(ctx, t)
		resp.Supervisors = append(resp.Supervisors, s)
		return resp, err
	}
	v.finder.SettledSoon(ctx)
	seen := map[types.UUID]bool{}
	for _, i := range v.kernel.List() {
		seen[i.UUID] = true
		if i.Kind != supervisor.Kind {
			continue
		}
		if s, err := v.look(ctx, service.Target{UUID: i.UUID, PID: i.PID, Live: &i}); err == nil { // else it has ended meanwhile
			resp.Supervisors = append(resp.Supervisors, s)
		}
	}
	stored := v.index.Open()
	for n := range stored {
		info := &stored[n]
		if seen[info.UUID] || info.Kind != supervisor.Kind || procview.Stored(info).State != "suspended" {
			continue
		}
		s, err := v.look(ctx, service.Target{UUID: info.UUID, PID: info.PID, Info: info})
		if err != nil {
			s = ipc.Supervisor{PID: info.PID, UUID: info.UUID, Name: info.Name, State: "suspended", Wait: err.Error(), Children: []ipc.SupervisedChild{}}
		}
		resp.Supervisors = append(resp.Supervisors, s)
	}
	slices.SortStableFunc(resp.Supervisors, func(a, b ipc.Supervisor) int { return cmp.Compare(a.PID, b.PID) })
	return resp, nil
}

// look describes a supervisor.
func (v *Supervisors) look(ctx context.Context, t service.Target) (ipc.Supervisor, error) {
	var proc ipc.Proc
	if t.Live != nil {
		proc = v.looks.Living(t.Live)
	} else {
		proc = procview.Stored(t.Info)
	}
	out := ipc.Supervisor{PID: proc.PID, UUID: proc.UUID, ParentUUID: proc.ParentUUID, Name: proc.Name, State: proc.State, Wait: proc.Wait, Created: proc.CreatedAt, Exit: proc.Exit}
	if proc.Kind != supervisor.Kind {
		return out, &types.SyscallError{Syscall: "Supervisors", PID: proc.PID, Code: types.ErrInvalid,
			Err: fmt.Errorf("%w; `rnix supervise ls` lists them", supervisor.ErrNoSupervisor)}
	}
	state, was, err := v.state(ctx, t.UUID)
	if err != nil {
		return out, err
	}
	decl, err := declaredIn(&was, t.UUID)
	if err != nil {
		return out, err
	}
	out.Init = decl.Init
	var s supervisor.Status
	if t.Live != nil && t.Live.State < types.StateZombie {
		s, err = supervisor.Info(v.kernel, t.PID)
	}
	if t.Live == nil || err != nil || t.Live.State >= types.StateZombie {
		spec, perr := decl.plan(nil)
		if perr != nil {
			return out, perr
		}
		spec.Name = proc.Name
		if s, err = supervisor.Stored(spec, state, time.Now()); err != nil {
			return out, err
		}
	}
	out.Strategy, out.MaxRestarts, out.Window, out.Restarts = string(s.Strategy), s.Intensity.MaxRestarts, s.Intensity.Period, s.Restarts
	out.Left = max(out.MaxRestarts-s.Restarts, 0)
	out.Children = make([]ipc.SupervisedChild, len(s.Children))
	for i := range s.Children {
		out.Children[i] = v.child(&s.Children[i])
	}
	return out, nil
}

// child describes a child of a supervisor.
func (v *Supervisors) child(c *supervisor.ChildStatus) ipc.SupervisedChild {
	out := ipc.SupervisedChild{Name: c.Name, PID: c.PID, UUID: c.UUID, Kind: "agent", Restart: string(c.Restart), State: c.State, Wait: c.Why,
		Restarts: c.Restarts, Next: c.Due, Last: c.Last, LastEnd: c.LastEnd}
	if c.Supervisor {
		out.Kind = supervisor.Kind
	}
	if i, ok := v.kernel.InfoOf(c.UUID); ok {
		out.PID, out.Step, out.Tokens, out.Wait = i.PID, i.Step, i.TokensUsed, cmp.Or(i.Wait, i.Parked.SuspendReason)
		if i.Paused {
			out.State = "paused"
		}
		return out
	}
	if info, ok := v.index.Get(c.UUID); ok {
		out.PID, out.Step, out.Tokens = info.PID, info.Step, info.TokensUsed
		if out.State == "" {
			p := procview.Stored(&info)
			out.State, out.Wait = p.State, p.Wait
		}
	}
	if out.State == "" {
		out.State = "down"
	}
	return out
}
