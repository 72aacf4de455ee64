package histories

import (
	"context"
	"errors"
	"math"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

func (d *Service) listSteps(ctx context.Context, peer *ipc.Peer, req ipc.StepsRequest) (ipc.ListStepsResponse, error) {
	if err := fillSteps(&req); err != nil {
		return ipc.ListStepsResponse{}, err
	}
	t, err := d.Finder.Find(peer, "list_steps", req.Target)
	if err != nil {
		return ipc.ListStepsResponse{}, err
	}
	r := ipc.ListStepsResponse{PID: t.PID, UUID: t.UUID}
	var steps []step.StepRecord
	var cut []step.Intent
	if req.Page() {
		p, err := step.ReadPage(ctx, d.Journal, t.UUID, step.PageQuery{After: req.After, Before: req.Before, Limit: req.Limit, Last: req.Last, Bare: req.Bare,
			Find: req.Find, Span: ipc.FindSpan})
		if err != nil {
			return ipc.ListStepsResponse{}, d.Finder.Lost(&t, req.Target, err)
		}
		steps, cut, r.Damage = p.Steps, p.Interrupted, p.Damage
		r.Open = wireAnswer(p.Open)
		r.First, r.Last, r.Next, r.Prev = p.First, p.Last, p.After, p.Before
	} else {
		h, err := step.ReadHistory(ctx, d.Journal, t.UUID)
		if err != nil {
			return ipc.ListStepsResponse{}, d.Finder.Lost(&t, req.Target, err)
		}
		steps, cut, r.Damage = h.Steps, h.Interrupted, h.Damage
		r.Open = wireAnswer(h.OpenAnswer())
	}
	step.ShowFailures(steps)
	r.Steps = nonNil(service.Each(steps, wireStep))
	if t.Live == nil || t.Live.State >= types.StateZombie { // else they are under way
		r.Interrupted = service.Each(cut, service.WireIntent)
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

func (d *Service) stepDetail(ctx context.Context, peer *ipc.Peer, req ipc.StepRequest) (ipc.StepDetail, error) {
	t, err := d.Finder.Find(peer, "get_step_detail", req.Target)
	if err != nil {
		return ipc.StepDetail{}, err
	}
	if rec, ok := d.oneStep(ctx, &t, &req); ok {
		step.ShowFailures([]step.StepRecord{rec}) // its calls are shared
		return ipc.StepDetail{PID: t.PID, UUID: t.UUID, Step: wireStep(&rec)}, nil
	}
	h, err := step.ReadHistory(ctx, d.Journal, t.UUID) // it says best why there is no such step
	if err != nil {
		return ipc.StepDetail{}, d.Finder.Lost(&t, req.Target, err)
	}
	rec, err := h.Step(req.Step)
	if e, ok := errors.AsType[*types.SyscallError](err); ok {
		e.PID, e.Device = t.PID, req.Target // as the client knows it
	}
	if req.Alone {
		rec.Messages = nil
	}
	if err != nil {
		return ipc.StepDetail{}, err
	}
	step.ShowFailures([]step.StepRecord{rec}) // its calls are shared
	return ipc.StepDetail{PID: t.PID, UUID: t.UUID, Step: wireStep(&rec)}, nil
}

// oneStep reads one step, and the prompt that it had where its messages stand. It reports false if that cannot be, and the history has to be
// read whole.
func (d *Service) oneStep(ctx context.Context, t *service.Target, req *ipc.StepRequest) (rec step.StepRecord, ok bool) {
	if req.Step <= 0 || req.Step >= math.MaxInt32 {
		return rec, false
	}
	if req.Alone {
		p, err := step.ReadPage(ctx, d.Journal, t.UUID, step.PageQuery{After: req.Step - 1, Before: req.Step + 1, Limit: 1})
		if err != nil || len(p.Steps) != 1 {
			return rec, false
		}
		return p.Steps[0], true
	}
	err := d.outline(ctx, t, req.Target, func(out *step.Outline) error {
		rec, ok = d.stepBehind(ctx, t.UUID, req.Step, out)
		return nil
	})
	return rec, ok && err == nil
}

// stepBehind reads a step behind the messages of its prompt, and these, where the outline says that they stand.
func (d *Service) stepBehind(ctx context.Context, id types.UUID, number int, out *step.Outline) (rec step.StepRecord, ok bool) {
	view, _, err := out.View(number)
	last := uint64(0)
	if len(view) > 0 {
		last = view[len(view)-1].Seq
	}
	if rec, ok = step.ReadStepBehind(ctx, d.Journal, id, last, number); err != nil || !ok || len(view) != rec.MessageCount { // it is being run a second time
		return rec, false
	}
	rec.Messages = make([]rnixctx.Message, len(view))
	err = step.ReadPlaces(ctx, d.Journal, id, view, func(i int, _ time.Time, m *rnixctx.Message) { rec.Messages[i] = *m })
	return rec, err == nil
}
