package control

import (
	"context"
	"testing"

	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// fake is a daemon, and what it has.
type fake struct {
	broken   error
	outdated bool
	stopped  []string // by what
	inside   bool
	live     []kernel.Info
	stored   []step.ProcInfo
}

func (f *fake) Broken(context.Context) error { return f.broken }

func (f *fake) Outdated() bool { return f.outdated }

func (f *fake) Stopping() bool { return len(f.stopped) > 0 }

func (f *fake) Stop(by string, _ *ipc.Peer) { f.stopped = append(f.stopped, by) }

func (f *fake) Status(context.Context) ipc.Status { return ipc.Status{Socket: "s"} }

func (f *fake) AgentOf(*ipc.Peer) (types.PID, bool) { return 7, f.inside }

func (f *fake) List() []kernel.Info { return f.live }

type disk struct{ *fake }

func (d disk) List() []step.ProcInfo { return d.stored }

func serve(f *fake) *Service {
	return &Service{Version: "1.2.3", Daemon: f, Kernel: f, Index: disk{f}, Callers: f}
}

func TestDaemonThatCouldNotReadItsConfigurationMakesRoomOnceItIsCorrected(t *testing.T) {
	f := &fake{}
	s := serve(f)
	if r, err := s.ping(t.Context(), nil, ipc.Empty{}); err != nil || r.Stopping || r.Version != "1.2.3" {
		t.Errorf("%+v, %v", r, err)
	}
	f.outdated = true
	for range 2 {
		if r, err := s.ping(t.Context(), nil, ipc.Empty{}); err != nil || !r.Stopping {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if len(f.stopped) != 1 || f.stopped[0] == "" { // whoever follows a process is told what has stopped the daemon
		t.Errorf("stopped by %q", f.stopped)
	}
}

func TestAgentCannotStopTheDaemon(t *testing.T) {
	f := &fake{inside: true}
	if _, err := serve(f).shutdown(t.Context(), nil, ipc.Empty{}); types.CodeOf(err) != types.ErrPermission || len(f.stopped) > 0 {
		t.Errorf("%v, stopped by %q", err, f.stopped)
	}
	f.inside = false
	if _, err := serve(f).shutdown(t.Context(), nil, ipc.Empty{}); err != nil || len(f.stopped) != 1 {
		t.Errorf("%v, stopped by %q", err, f.stopped)
	}
}

func TestStatusCountsEachProcessOnce(t *testing.T) {
	parked, frozen := types.UUID{1}, types.UUID{2}
	f := &fake{
		live:   []kernel.Info{{ProcStatus: types.ProcStatus{UUID: types.UUID{3}}, State: types.StateRunning}, {ProcStatus: types.ProcStatus{UUID: frozen}, State: types.StateRunning, Suspended: true}, {ProcStatus: types.ProcStatus{UUID: types.UUID{4}}, State: types.StateZombie}},
		stored: []step.ProcInfo{{ProcStatus: types.ProcStatus{UUID: parked}, Suspended: true}, {ProcStatus: types.ProcStatus{UUID: frozen}, Suspended: true}, {ProcStatus: types.ProcStatus{UUID: types.UUID{5}}}},
	}
	r, err := serve(f).status(t.Context(), nil, ipc.Empty{})
	if err != nil || r.Running != 1 || r.Suspended != 2 || r.Stored != 3 || r.Socket != "s" || r.PID == 0 {
		t.Errorf("%+v, %v", r, err)
	}
	f.broken = types.Errorf(types.ErrUnavailable, "Ensure", "", "required")
	if _, err := serve(f).status(t.Context(), nil, ipc.Empty{}); types.CodeOf(err) != types.ErrUnavailable {
		t.Errorf("of a daemon that cannot start: %v", err)
	}
}
