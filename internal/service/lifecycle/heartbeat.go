package lifecycle

import (
	"context"
	"slices"
	"time"

	"rnix/internal/config"
	"rnix/internal/profile"
	"rnix/internal/recovery"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// Restart suspends a process and lets it go on from its record, with the environment that it had: the step in hand is cut
// off and done again.
func (d *Resumer) Restart(ctx context.Context, p *kernel.Process) error {
	info, err := d.Kernel.Info(p.PID)
	if err != nil {
		return err
	}
	req := &ipc.ResumeRequest{}
	if own, ok := profile.Of(p); ok {
		req.Env = own.Env
	}
	if err := d.Kernel.Suspend(ctx, p.PID); err != nil {
		return err
	}
	d.parted(ctx, info.PPID)
	resp, err := d.Continued(ctx, p.UUID, req, func(s *recovery.State) bool {
		return s.Phase == recovery.Stopped && !s.Paused // nobody was quicker
	})
	if types.CodeOf(err) == types.ErrConflict { // the supervisor above it was quicker, or a person
		return nil
	}
	if err == nil {
		d.Log.Info("heartbeat", "uuid", p.UUID, "was", p.PID, "pid", resp.PID, "step", resp.Step)
	}
	return err
}

// beats answers rnix heartbeat.
func (d *Service) beats(_ context.Context, _ *ipc.Peer, req ipc.HeartbeatRequest) (ipc.HeartbeatResponse, error) {
	c := d.Heartbeat
	resp := ipc.HeartbeatResponse{Enabled: c.Interval > 0, Policy: string(c.Policy), Stall: c.Stall, Interval: c.Interval, MaxRestarts: c.MaxRestarts, Beats: []ipc.Beat{}}
	var only []types.PID
	if req.Target != "" {
		pid, err := d.Access.Alive("Heartbeat", req.Target)
		if err != nil {
			return resp, err
		}
		if only, err = d.Kernel.Subtree(pid); err != nil {
			return resp, err
		}
	}
	var list []kernel.Beat
	list, resp.Naps = d.Kernel.Heartbeats()
	for _, b := range list {
		if req.Target != "" && !slices.Contains(only, b.PID) {
			continue
		}
		out := ipc.Beat{PID: b.PID, UUID: b.UUID, Name: b.Name, Step: b.Step, Age: b.Age, Limit: b.Limit, Verdict: "ok", Exempt: b.Exempt, Suspect: b.Suspect, Policy: resp.Policy}
		switch {
		case b.Exempt != "":
			out.Verdict = "exempt"
		case !b.Suspect.IsZero():
			out.Verdict = "suspect"
		}
		resp.Beats = append(resp.Beats, out)
	}
	return resp, nil
}

// HeartbeatOf is how the kernel looks for processes that make no progress, as the configuration says. restart is Resumer.Restart.
func HeartbeatOf(c config.Heartbeat, restart func(context.Context, *kernel.Process) error) kernel.Heartbeat {
	if !c.Enabled.V {
		return kernel.Heartbeat{}
	}
	return kernel.Heartbeat{Interval: time.Duration(c.Interval.V), Stall: c.Stall.V.Or(0), Policy: kernel.HeartbeatPolicy(c.Policy.V),
		MaxRestarts: c.MaxRestarts.V, Restart: restart}
}
