package mail

import (
	"context"
	"time"

	"rnix/internal/procview"
	"rnix/internal/recovery"
	"rnix/internal/service"
	"rnix/ipc"
	"rnix/types"
)

// maxWait is the longest time that one delivered call waits.
const maxWait = time.Minute

func (d *Service) delivered(ctx context.Context, _ *ipc.Peer, req ipc.DeliveredRequest) (resp ipc.DeliveredResponse, err error) {
	if err := d.Finder.Settled(ctx); err != nil {
		return resp, err
	}
	t, err := d.Finder.Resolve(req.Target)
	if err != nil {
		return resp, err
	}
	resp.UUID, resp.PID = t.UUID, t.PID
	if t.Live != nil && t.Live.State < types.StateZombie {
		wait, cancel := context.WithTimeout(ctx, min(time.Duration(max(req.TimeoutMs, 0))*time.Millisecond, maxWait))
		resp.Delivered, err = d.Kernel.Delivered(wait, t.PID, req.Seq)
		cancel()
		if code := types.CodeOf(err); err != nil && code != types.ErrTimeout && code != types.ErrNotFound {
			return resp, err
		}
		i, ierr := d.Kernel.Info(t.PID)
		if ierr == nil && (i.State < types.StateZombie || resp.Delivered) {
			if err != nil && types.CodeOf(err) == types.ErrNotFound {
				return resp, err
			}
			resp.State, resp.Step, resp.Wait = i.StateName(), i.Step, i.Wait
			return resp, nil
		}
	}
	s, err := d.Stored.Read(ctx, t.UUID)
	if err != nil {
		return resp, err
	}
	if req.Seq == 0 || req.Seq > s.MailSeq {
		return resp, types.Errorf(types.ErrNotFound, "Delivered", req.Target, "no message %d: %d have come", req.Seq, s.MailSeq)
	}
	resp.Delivered, resp.State, resp.Step, resp.Wait = !s.Waits(req.Seq), "suspended", s.Step, s.Wait.SuspendReason
	if t.Info != nil {
		resp.Wait = procview.Stored(t.Info).Wait
	}
	if s.Phase == recovery.Ended {
		resp.State = "dead"
	}
	return resp, nil
}

func (d *Service) recv(ctx context.Context, peer *ipc.Peer, req ipc.RecvRequest) (resp ipc.RecvResponse, err error) {
	owner, inside := d.Finder.AgentOf(peer)
	if req.Target == "" {
		if !inside || owner == 0 {
			return resp, types.Errorf(types.ErrInvalid, "Recv", "", "no process was named: give a PID, a UUID or its beginning or end, or a name")
		}
		req.Target = owner.String()
	}
	t, err := d.Finder.Resolve(req.Target)
	if err == nil {
		err = t.MustRun("Recv", req.Target)
	}
	if err != nil {
		return resp, err
	}
	if inside && t.PID != owner {
		return resp, service.Outside("Recv", owner, "take its own messages only")
	}
	if req.TimeoutMs > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, service.Timeout(req.TimeoutMs))
		defer cancel()
	}
	m, err := d.Kernel.RecvContext(ctx, t.PID)
	if err != nil {
		return resp, err
	}
	w := m.Mail()
	if len(w.Attachments) > 0 {
		w.Text = m.Said()
	}
	return ipc.RecvResponse{Seq: w.Seq, Kind: string(w.Kind), From: w.From, Name: w.Name, Time: w.Time, Text: w.Text, Data: w.Data}, nil
}
