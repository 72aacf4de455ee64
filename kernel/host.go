package kernel

import (
	"context"
	"encoding/json"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/event"
	"rnix/internal/step"
	"rnix/kernel/internal/loop"
	"rnix/types"
	"rnix/vfs"
)

// host is what the loop of a process sees of the kernel.
type host struct {
	k *KernelImpl
	p *Process
}

var _ loop.Host = host{}

// Wait holds the process while its gate is shut, and makes both ends of the pause durable.
func (h host) Wait(ctx context.Context) error {
	if _, shut := h.p.gate.Since(); !shut {
		return context.Cause(ctx)
	}
	if err := h.mark(step.Marker{Name: step.MarkerPause, PID: h.p.PID}); err != nil {
		return err
	}
	h.k.save(h.p)
	if err := h.p.gate.Wait(ctx); err != nil {
		return err
	}
	if err := h.mark(step.Marker{Name: step.MarkerResume, PID: h.p.PID}); err != nil {
		return err
	}
	h.k.save(h.p) // or a crash would find it paused
	return nil
}

func (h host) mark(m step.Marker) error {
	if err := h.p.rec.Add(step.Record{Kind: step.KindMarker, Marker: &m}); err != nil {
		return err
	}
	return h.p.rec.Commit()
}

func (h host) Prompt() (*rnixctx.PromptResult, error) { return h.k.ctxMgr.BuildPrompt(h.p.CtxID) }

func (h host) Append(ms ...rnixctx.Message) error {
	if err := h.k.ctxMgr.Append(h.p.CtxID, ms...); err != nil {
		return err
	}
	recs := make([]step.Record, len(ms))
	for i := range ms {
		recs[i] = step.Record{Kind: step.KindMessage, Message: &ms[i]}
	}
	return h.p.rec.Add(recs...)
}

func (h host) Compact(ms []rnixctx.Message, report rnixctx.Compaction) error {
	detail, err := json.Marshal(struct {
		Messages []rnixctx.Message `json:"messages"`
	}{ms})
	if err != nil {
		return types.Errorf(types.ErrInternal, "Compact", "", "encode: %w", err)
	}
	if err := h.k.ctxMgr.Replace(h.p.CtxID, ms); err != nil {
		return err
	}
	h.Emit(event.Event{Kind: event.Compacted, Text: report.String()})
	return h.p.rec.Add(step.Record{Kind: step.KindMarker, Marker: &step.Marker{Name: step.MarkerCompaction, PID: h.p.PID, Text: report.String(), Detail: detail}})
}

// Ask writes the request to the model's descriptor and reads the answer.
func (h host) Ask(ctx context.Context, request []byte) (*loop.Response, error) {
	h.k.setWait(h.p, waiting{tool: "model", since: time.Now()})
	defer h.k.setWait(h.p, waiting{})
	if f, err := h.k.vfs.File(h.p.PID, h.p.modelFD); err == nil {
		defer h.k.listen(h.p, f, "output")()
	}
	if err := h.k.write(ctx, h.p, h.p.modelFD, h.p.modelPath, request); err != nil {
		return nil, err
	}
	answer, err := h.k.read(h.p, h.p.modelFD, h.p.modelPath)
	if err != nil {
		return nil, err
	}
	resp := new(loop.Response)
	if err := json.Unmarshal(answer, resp); err != nil {
		return nil, types.Errorf(types.ErrDriver, "Read", h.p.modelPath, "the device's answer is not a response: %w", err)
	}
	return resp, nil
}

// Intend makes durable which calls are about to run.
func (h host) Intend(n int, actions []loop.Action) error {
	any := false
	for i := range actions {
		a := &actions[i]
		if !effective(a) {
			continue
		}
		any = true
		err := h.p.rec.Add(step.Record{Kind: step.KindIntent, Intent: &step.Intent{
			Step: n, CallID: a.Call.ID, Tool: a.Call.Name, Path: actionPath(a), Input: a.Call.Input, Effect: string(effectOf(a))}})
		if err != nil {
			return err
		}
	}
	if !any {
		return nil
	}
	return h.p.rec.Commit()
}

// effective reports whether an action does something outside the loop.
func effective(a *loop.Action) bool {
	return a.Problem == nil && (a.Kind == loop.ToolCall || a.Kind == loop.Spawn)
}

func effectOf(a *loop.Action) vfs.Effect {
	if a.Kind == loop.Spawn {
		return vfs.EffectExternal
	}
	return a.Tool.Effect
}

func actionPath(a *loop.Action) string {
	if a.Kind == loop.Spawn {
		return spawnRight
	}
	return a.Tool.Path
}

// Finish notes how the calls ended; the step's record, which follows, makes it durable.
func (h host) Finish(n int, actions []loop.Action, outs []loop.Outcome) error {
	for i := range actions {
		if !effective(&actions[i]) {
			continue
		}
		r := step.Result{Step: n, CallID: actions[i].Call.ID, Tool: actions[i].Call.Name, Output: outs[i].Text(), Duration: outs[i].Duration}
		if outs[i].Err != nil {
			r.Error, r.Code = outs[i].Err.Error(), types.CodeOf(outs[i].Err)
		}
		if err := h.p.rec.Add(step.Record{Kind: step.KindResult, Result: &r}); err != nil {
			return err
		}
	}
	return nil
}

func (h host) Record(rec *step.StepRecord) error {
	h.k.setWait(h.p, waiting{})
	if err := h.p.rec.Add(step.Record{Kind: step.KindStep, Step: rec}); err != nil {
		return err
	}
	return h.p.rec.Commit()
}

func (h host) Emit(e event.Event) {
	e.PID, e.UUID = h.p.PID, h.p.UUID
	h.k.events.Append(e)
}

func (h host) Progress(pr loop.Progress) {
	h.p.mu.Lock()
	defer h.p.mu.Unlock()
	h.p.progress = pr
}

// setWait publishes what a process waits for.
func (k *KernelImpl) setWait(p *Process, w waiting) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waits = w
}
