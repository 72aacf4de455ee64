package daemon

import (
	"context"
	"errors"
	"math"

	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

func (d processes) listSteps(ctx context.Context, peer *ipc.Peer, req ipc.StepsRequest) (ipc.ListStepsResponse, error) {
	if err := fillSteps(&req); err != nil {
		return ipc.ListStepsResponse{}, err
	}
	t, err := d.find(peer, "list_steps", req.Target)
	if err != nil {
		return ipc.ListStepsResponse{}, err
	}
	r := ipc.ListStepsResponse{PID: t.pid, UUID: t.uuid}
	if req.Page() {
		p, err := step.ReadPage(ctx, d.journal, t.uuid, step.PageQuery{After: req.After, Before: req.Before, Limit: req.Limit, Last: req.Last, Bare: req.Bare,
			Find: req.Find, Span: ipc.FindSpan})
		if err != nil {
			return ipc.ListStepsResponse{}, err
		}
		r.Steps, r.Interrupted, r.Damage = p.Steps, p.Interrupted, p.Damage
		r.First, r.Last, r.Next, r.Prev = p.First, p.Last, p.After, p.Before
	} else {
		h, err := step.ReadHistory(ctx, d.journal, t.uuid)
		if err != nil {
			return ipc.ListStepsResponse{}, err
		}
		r.Steps, r.Interrupted, r.Damage = h.Steps, h.Interrupted, h.Damage
	}
	if r.Steps == nil {
		r.Steps = []step.StepRecord{}
	}
	if t.live != nil && t.live.State < types.StateZombie {
		r.Interrupted = nil // they are under way
	}
	return r, nil
}

// fillSteps checks a request and fills in what one for a page does not say.
func fillSteps(req *ipc.StepsRequest) error {
	for _, f := range []struct {
		name         string
		value, limit int
	}{{"after", req.After, math.MaxInt32}, {"before", req.Before, math.MaxInt32}, {"limit", req.Limit, ipc.MaxPageSteps}} {
		if f.value < 0 || f.value > f.limit {
			return types.Errorf(types.ErrInvalid, "list_steps", "", "%s is %d, and may be 0 to %d", f.name, f.value, f.limit)
		}
	}
	if req.Page() && req.Limit == 0 {
		req.Limit = ipc.PageSteps
	}
	return nil
}

func (d processes) stepDetail(ctx context.Context, peer *ipc.Peer, req ipc.StepRequest) (ipc.StepDetail, error) {
	t, err := d.find(peer, "get_step_detail", req.Target)
	if err != nil {
		return ipc.StepDetail{}, err
	}
	if req.Alone && req.Step > 0 && req.Step < math.MaxInt32 {
		p, err := step.ReadPage(ctx, d.journal, t.uuid, step.PageQuery{After: req.Step - 1, Before: req.Step + 1, Limit: 1})
		if err == nil && len(p.Steps) == 1 {
			return ipc.StepDetail{PID: t.pid, UUID: t.uuid, Step: p.Steps[0]}, nil
		}
	}
	h, err := step.ReadHistory(ctx, d.journal, t.uuid) // it also says best why there is no such step
	if err != nil {
		return ipc.StepDetail{}, err
	}
	rec, err := h.Step(req.Step)
	if e, ok := errors.AsType[*types.SyscallError](err); ok {
		e.PID, e.Device = t.pid, req.Target // as the client knows it
	}
	if req.Alone {
		rec.Messages = nil
	}
	return ipc.StepDetail{PID: t.pid, UUID: t.uuid, Step: rec}, err
}
