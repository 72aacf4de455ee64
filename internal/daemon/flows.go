package daemon

import (
	"context"

	"rnix/internal/launch"
	"rnix/internal/recovery"
	"rnix/internal/service/flows"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// startFlows gives the service of workflows and supervisors what it needs of the others.
func startFlows(d *Daemon) {
	d.flows = &flows.Service{Kernel: d.kernel, Index: d.journal.Index(), Finder: d.access, Looks: flowLooks{d}, Starts: starts{d.flowing, d}, Stored: flowHistories{d}}
}

// flowLooks says how workflows, supervisors and what they start look.
type flowLooks struct{ daemon *Daemon }

func (l flowLooks) Living(i *kernel.Info) ipc.Proc { return l.daemon.looks.Living(i) }

func (l flowLooks) Whole(i *step.ProcInfo) *step.ProcInfo { return l.daemon.stored.Cards.Whole(i) }

func (l flowLooks) Branch(id types.UUID) string {
	t, _ := l.daemon.trees.Of(id) // a note that cannot be read names none
	return t.Branch
}

// starts knows with what, and below whom, processes are started.
type starts struct {
	*flows.Profiles
	daemon *Daemon
}

func (s starts) Parent(peer *ipc.Peer, asked string, p flows.Profile, trusts bool) (types.PID, error) {
	of, err := flows.ReadBy(p)
	if err != nil {
		return 0, err
	}
	return s.daemon.lifecycle.Parent(peer, asked, of, trusts)
}

func (s starts) Ready(ctx context.Context) error { return s.daemon.bootstrap.Wait(ctx) }

func (s starts) Room(op string) error { return s.daemon.room.Refusal(op) }

func (s starts) Seq() uint64 { return s.daemon.events.Last() }

// flowHistories reads, ends, pauses and resumes histories that do not run.
type flowHistories struct{ daemon *Daemon }

func (h flowHistories) Read(ctx context.Context, id types.UUID) (*recovery.State, error) {
	s, _, _, err := h.daemon.store.Read(ctx, id)
	return s, err
}

func (h flowHistories) Was(s *recovery.State, id types.UUID) (step.Settled, error) {
	return h.daemon.stored.WasOf(s, id)
}

func (h flowHistories) Dismiss(ctx context.Context, id types.UUID, reason string) error {
	return h.daemon.stored.Dismiss(ctx, id, reason)
}

func (h flowHistories) Pause(ctx context.Context, id types.UUID) error {
	return h.daemon.stored.Pause(ctx, id)
}

func (h flowHistories) CheckResume(req *ipc.ResumeRequest) error { return launch.CheckResume(req) }

func (h flowHistories) Resume(ctx context.Context, id types.UUID, how *ipc.ResumeRequest) (types.PID, error) {
	r, err := h.daemon.lifecycle.Resumer.Continued(ctx, id, launch.OnlyOn(how), nil)
	return r.PID, err
}

func (h flowHistories) ResumeRun(ctx context.Context, id types.UUID, how *ipc.ResumeRequest, r flows.Revival) (ipc.ResumeResponse, error) {
	return h.daemon.lifecycle.Resumer.ResumeRun(ctx, id, how, r)
}

func (h flowHistories) Automatic(id types.UUID) (types.PID, bool) {
	r, ok := h.daemon.auto.Take(id)
	return r.PID, ok
}
