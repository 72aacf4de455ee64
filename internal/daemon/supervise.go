package daemon

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
	"rnix/internal/profile"
	"rnix/internal/recovery"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// superviser starts and shows supervisors.
type superviser struct{ *Daemon }

func (d superviser) handle(s *ipc.Server) {
	on(d.Daemon, s, ipc.SuperviseUp, d.up)
	on(d.Daemon, s, ipc.SuperviseCheck, d.check)
	on(d.Daemon, s, ipc.SuperviseAdd, d.add)
	on(d.Daemon, s, ipc.SuperviseStop, d.stop)
	on(d.Daemon, s, ipc.Supervisors, d.list)
}

// maxInitFile bounds a file of supervisors, in bytes.
const maxInitFile = 256 << 10

// parsed reads the file of a request and finds out whether all of it can be started.
func (d superviser) parsed(req *ipc.SuperviseRequest) (*initfile.File, *profile.Profile, error) {
	const op = "Supervise"
	name := cmp.Or(req.File, "the file")
	p, err := d.profiles.ForStart(op, req.Cwd, req.Env, req.TrustProject)
	if err != nil {
		return nil, nil, err
	}
	f := initfile.Parse([]byte(req.Source), name)
	if err := f.Problems().Err(op, ""); err != nil {
		return nil, nil, err
	}
	home, _ := p.Lookup("HOME")
	f.Settle(p.Cwd, home)
	for i := range f.Supervisors {
		d.examine(trusting(p, &f.Supervisors[i]), f, initfile.Key(i), &f.Supervisors[i])
	}
	if err := f.Problems().Err(op, ""); err != nil {
		return nil, nil, err
	}
	if len(f.Supervisors) == 0 {
		return nil, nil, types.Errorf(types.ErrInvalid, op, name, "there is no supervisor in it; write a list under the key supervisors")
	}
	return f, p, nil
}

// trusting is a profile with the trust that a supervisor asks for.
func trusting(p *profile.Profile, s *initfile.Supervisor) *profile.Profile {
	if s.Trust {
		return p.Trusting()
	}
	return p
}

func (d superviser) check(_ context.Context, _ *ipc.Peer, req ipc.SuperviseRequest) (ipc.SuperviseResponse, error) {
	f, p, err := d.parsed(&req)
	if err != nil {
		return ipc.SuperviseResponse{}, err
	}
	resp := ipc.SuperviseResponse{Warnings: append(f.Problems().Strings(), p.Problems...)}
	for i := range f.Supervisors {
		resp.Supervisors = append(resp.Supervisors, supervised(&f.Supervisors[i]))
	}
	return resp, nil
}

func supervised(s *initfile.Supervisor) ipc.Supervised {
	return ipc.Supervised{Name: s.Name, Strategy: cmp.Or(s.Strategy, string(kernel.OneForOne)), Children: len(s.Children)}
}

// up starts the supervisors of a file, all or none. One that runs already, as the file says, is left alone.
func (d superviser) up(ctx context.Context, peer *ipc.Peer, req ipc.SuperviseRequest) (ipc.SuperviseResponse, error) {
	f, p, err := d.parsed(&req)
	if err == nil {
		err = d.room.Refusal("Supervise")
	}
	if err != nil {
		return ipc.SuperviseResponse{}, err
	}
	if err := d.bootstrap.wait(ctx); err != nil {
		return ipc.SuperviseResponse{}, err
	}
	if err := d.settled(ctx); err != nil {
		return ipc.SuperviseResponse{}, err
	}
	trusts := p.Trust || slices.ContainsFunc(f.Supervisors, func(s initfile.Supervisor) bool { return s.Trust })
	parent, err := spawner(d).parentOf(peer, req.Parent, p, trusts)
	if err != nil {
		return ipc.SuperviseResponse{}, err
	}
	resp := ipc.SuperviseResponse{Warnings: append(f.Problems().Strings(), p.Problems...)}
	var started []types.PID
	for i := range f.Supervisors {
		s := &f.Supervisors[i]
		one := supervised(s)
		if one.PID, one.Was, err = d.start(ctx, trusting(p, s), &declared{Spec: *s}, parent); err != nil {
			for _, pid := range slices.Backward(started) {
				d.end(context.WithoutCancel(ctx), pid)
			}
			return ipc.SuperviseResponse{}, err
		}
		if !one.Was {
			started = append(started, one.PID)
		}
		if i, err := d.kernel.Info(one.PID); err == nil {
			one.UUID = i.UUID
		}
		resp.Supervisors = append(resp.Supervisors, one)
	}
	return resp, nil
}

// start starts a supervisor, unless it is there already. One of the same name that is something else is a CONFLICT.
func (d superviser) start(ctx context.Context, p *profile.Profile, decl *declared, parent types.PID) (pid types.PID, was bool, err error) {
	name := decl.Spec.Name
	for _, i := range d.kernel.List() {
		if i.Name != name || i.Kind != kernel.SupervisorKind || i.PPID != parent || i.State >= types.StateZombie {
			continue
		}
		if same, serr := d.same(ctx, i.UUID, decl); serr == nil && same {
			return i.PID, true, nil
		}
		return 0, false, types.Errorf(types.ErrConflict, "Supervise", name, "a supervisor of this name runs as PID %d, and is not as the file says; stop it first: rnix supervise stop %d", i.PID, i.PID)
	}
	spec, err := d.plan(p, decl)
	if err != nil {
		return 0, false, err
	}
	spec.ParentPID = parent
	pid, err = d.kernel.SpawnSupervisorContext(ctx, spec)
	return pid, false, err
}

// same reports whether a history is that of a supervisor as it is declared.
func (d superviser) same(ctx context.Context, id types.UUID, decl *declared) (bool, error) {
	want, err := decl.text()
	if err != nil {
		return false, err
	}
	_, was, err := d.stateOf(ctx, id)
	return err == nil && was.Body != nil && bytes.Equal(was.Body.Spec, want), err
}

// stateOf reads what a history amounts to, and with what its last run was started.
func (d superviser) stateOf(ctx context.Context, id types.UUID) (*recovery.State, step.Settled, error) {
	s, _, _, err := d.store.Read(ctx, id)
	if err != nil {
		return nil, step.Settled{}, err
	}
	was, err := wasOf(d.Daemon, s, id)
	return s, was, err
}

// end stops a supervisor and waits for its end.
func (d superviser) end(ctx context.Context, pid types.PID) {
	if d.kernel.Signal(pid, types.SIGTERM) == nil {
		_, _ = d.kernel.WaitInfo(ctx, pid) // it has ended, or nobody waits any more
	}
}

// add starts another child.
func (d superviser) add(ctx context.Context, peer *ipc.Peer, req ipc.SuperviseAddRequest) (ipc.SuperviseAddResponse, error) {
	if err := d.settled(ctx); err != nil {
		return ipc.SuperviseAddResponse{}, err
	}
	t, err := d.names.ResolveKind(req.Target, kernel.SupervisorKind)
	if err == nil {
		err = t.MustRun("StartChild", req.Target)
	}
	if err == nil {
		err = insider(d).mayStart(peer, t.PID)
	}
	if err == nil {
		err = d.room.Refusal("StartChild")
	}
	if err != nil {
		return ipc.SuperviseAddResponse{}, err
	}
	pid, err := d.kernel.StartChild(t.PID, req.Intent)
	if err != nil {
		return ipc.SuperviseAddResponse{}, err
	}
	resp := ipc.SuperviseAddResponse{PID: pid, Supervisor: t.PID}
	if i, err := d.kernel.Info(pid); err == nil {
		resp.UUID, resp.Name = i.UUID, i.Name
	}
	return resp, nil
}

// stop asks a supervisor to end, or ends one that is suspended.
func (d superviser) stop(ctx context.Context, peer *ipc.Peer, req ipc.TargetRequest) (ipc.SuperviseStopResponse, error) {
	resp := ipc.SuperviseStopResponse{}
	if err := d.settled(ctx); err != nil {
		return resp, err
	}
	t, err := d.names.ResolveKind(req.Target, kernel.SupervisorKind)
	if err != nil {
		return resp, err
	}
	s, err := d.look(ctx, t)
	resp.PID, resp.UUID, resp.Name = s.PID, s.UUID, s.Name
	switch owner, inside := d.agentOf(peer); {
	case err != nil:
		return resp, err
	case s.Exit != nil && s.State != "suspended":
		return resp, &types.SyscallError{Syscall: "Signal", PID: s.PID, Device: req.Target, Code: types.ErrNotFound, Err: errEnded}
	case t.Live != nil && t.Live.State < types.StateZombie:
		if err := (insider(d)).maySignal(peer, "Signal", t.PID); err != nil {
			return resp, err
		}
		return resp, d.kernel.Signal(t.PID, types.SIGTERM)
	case inside:
		return resp, service.Outside("Signal", owner, "act on its own subtree only")
	}
	resp.Dismissed = true
	return resp, undertaker(d).dismiss(ctx, t.UUID, "terminated while it was suspended")
}

// errEnded is the cause of errors about processes that are not there any more.
var errEnded = errors.New("the process has ended")

// list shows supervisors, alive or on disk.
func (d superviser) list(ctx context.Context, _ *ipc.Peer, req ipc.SupervisorsRequest) (ipc.SupervisorsResponse, error) {
	resp := ipc.SupervisorsResponse{Supervisors: []ipc.Supervisor{}}
	if req.Target != "" {
		t, err := d.names.ResolveKind(req.Target, kernel.SupervisorKind)
		if err != nil {
			return resp, err
		}
		s, err := d.look(ctx, t)
		resp.Supervisors = append(resp.Supervisors, s)
		return resp, err
	}
	settledSoon(ctx, d.Daemon)
	seen := map[types.UUID]bool{}
	for _, i := range d.kernel.List() {
		seen[i.UUID] = true
		if i.Kind != kernel.SupervisorKind {
			continue
		}
		if s, err := d.look(ctx, target{UUID: i.UUID, PID: i.PID, Live: &i}); err == nil { // else it has ended meanwhile
			resp.Supervisors = append(resp.Supervisors, s)
		}
	}
	stored := d.journal.Index().Open()
	for n := range stored {
		info := &stored[n]
		if seen[info.UUID] || info.Kind != kernel.SupervisorKind || procview.Stored(info).State != "suspended" {
			continue
		}
		s, err := d.look(ctx, target{UUID: info.UUID, PID: info.PID, Info: info})
		if err != nil {
			s = ipc.Supervisor{PID: info.PID, UUID: info.UUID, Name: info.Name, State: "suspended", Wait: err.Error(), Children: []ipc.SupervisedChild{}}
		}
		resp.Supervisors = append(resp.Supervisors, s)
	}
	slices.SortStableFunc(resp.Supervisors, func(a, b ipc.Supervisor) int { return cmp.Compare(a.PID, b.PID) })
	return resp, nil
}

// look describes a supervisor.
func (d superviser) look(ctx context.Context, t target) (ipc.Supervisor, error) {
	var proc ipc.Proc
	if t.Live != nil {
		proc = d.looks.Living(t.Live)
	} else {
		proc = procview.Stored(t.Info)
	}
	out := ipc.Supervisor{PID: proc.PID, UUID: proc.UUID, ParentUUID: proc.ParentUUID, Name: proc.Name, State: proc.State, Wait: proc.Wait, Created: proc.CreatedAt, Exit: proc.Exit}
	if proc.Kind != kernel.SupervisorKind {
		return out, &types.SyscallError{Syscall: "Supervisors", PID: proc.PID, Code: types.ErrInvalid,
			Err: fmt.Errorf("%w; `rnix supervise ls` lists them", kernel.ErrNoSupervisor)}
	}
	state, was, err := d.stateOf(ctx, t.UUID)
	if err != nil {
		return out, err
	}
	decl, err := declaredIn(was.Body.Spec, t.UUID)
	if err != nil {
		return out, err
	}
	out.Init = decl.Init
	var s kernel.SupervisorStatus
	if t.Live != nil && t.Live.State < types.StateZombie {
		s, err = d.kernel.SupervisorInfo(t.PID)
	}
	if t.Live == nil || err != nil || t.Live.State >= types.StateZombie {
		spec, perr := d.plan(nil, &decl)
		if perr != nil {
			return out, perr
		}
		spec.Name = proc.Name
		if s, err = kernel.StoredSupervisor(spec, state, time.Now()); err != nil {
			return out, err
		}
	}
	out.Strategy, out.MaxRestarts, out.Window, out.Restarts = string(s.Strategy), s.Intensity.MaxRestarts, s.Intensity.Period, s.Restarts
	out.Left = max(out.MaxRestarts-s.Restarts, 0)
	out.Children = make([]ipc.SupervisedChild, len(s.Children))
	for i := range s.Children {
		out.Children[i] = d.child(&s.Children[i])
	}
	return out, nil
}

// child describes a child of a supervisor.
func (d superviser) child(c *kernel.ChildStatus) ipc.SupervisedChild {
	out := ipc.SupervisedChild{Name: c.Name, PID: c.PID, UUID: c.UUID, Kind: "agent", Restart: string(c.Restart), State: c.State, Wait: c.Why,
		Restarts: c.Restarts, Next: c.Due, Last: c.Last, LastEnd: c.LastEnd}
	if c.Supervisor {
		out.Kind = kernel.SupervisorKind
	}
	if p, ok := d.kernel.ByUUID(c.UUID); ok {
		if i, err := d.kernel.Info(p.PID); err == nil {
			out.PID, out.Step, out.Tokens, out.Wait = i.PID, i.Progress.Step, i.Progress.Tokens, cmp.Or(i.Wait, i.Parked)
			if i.Paused {
				out.State = "paused"
			}
			return out
		}
	}
	if info, ok := d.journal.Index().Get(c.UUID); ok {
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
