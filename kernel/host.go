package kernel

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"

	rnixctx "rnix/context"
	"rnix/internal/event"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/kernel/internal/actions"
	"rnix/kernel/internal/loop"
	"rnix/types"
	"rnix/vfs"
)

// host is what the loop of a process sees of the kernel.
type host struct{ asking }

var _ loop.Host = host{}

// Wait holds the process while its output is not taken, while its gate is shut, and while it has to wait, see
// Lifecycle.Waits. What it has said is made durable before: it may wait for days.
func (h host) Wait(ctx context.Context) error {
	if err := h.k.outputs.handedOver(ctx, h.p); err != nil {
		return err
	}
	for {
		shut := h.p.gate.Closed()
		reason, changed := h.k.cfg.Lifecycle.Waits(h.p)
		if !shut && changed == nil {
			return context.Cause(ctx)
		}
		if err := h.p.rec.Commit(); err != nil {
			return err
		}
		h.p.files.dirty = true // a pause is when people change files
		if err := h.p.gate.Wait(ctx); err != nil {
			return err
		}
		if err := untilFree(ctx, h.k, h.p, reason, changed); err != nil {
			return err
		}
	}
}

// Suspends implements loop.Host.
func (h host) Suspends(cause error) bool { return errors.Is(cause, errStopping) }

func (h host) Prompt() (*rnixctx.PromptResult, error) {
	c := h.k.tracer.call(h.p, "BuildPrompt", "")
	r, err := h.k.ctxMgr.BuildPrompt(h.p.CtxID)
	if err != nil {
		c.ends("", "", err)
		return nil, err
	}
	c.ends("", types.Counted(len(r.Messages), "message", "messages"), nil)
	return r, nil
}

func (h host) Append(ms ...rnixctx.Message) error {
	if err := h.k.ctxMgr.Append(h.p.CtxID, ms...); err != nil {
		return err
	}
	recs := make([]step.Record, len(ms))
	for i := range ms {
		recs[i] = step.Record{Kind: step.KindMessage, Message: &ms[i], Delivered: h.p.kids.answered(ms[i].ToolCallID)}
	}
	return h.p.rec.Add(recs...)
}

// Said implements loop.Host.
func (h host) Said(m rnixctx.Message, a *step.Answer) error {
	if err := h.k.outputs.answered(h.p, m); err != nil {
		return err
	}
	h.p.answered = a.Started
	return h.p.rec.Add(step.Record{Kind: step.KindMessage, Message: &m, Answer: a})
}

// Ask writes the request to the model's descriptor and reads the answer. A pause cuts it off: an answer
// that is there by then counts, and one that is not is asked for again.
func (h host) Ask(ctx context.Context, request []byte) (*loop.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer h.p.onPause(func() { cancel(loop.ErrHeld) })()
	if h.p.meter != nil {
		return askMetered(ctx, h, request, cancel)
	}
	resp, err := ask(ctx, h, request)
	if err != nil && errors.Is(context.Cause(ctx), loop.ErrHeld) {
		return nil, heldBack(err)
	}
	return resp, err
}

// askMetered is Ask for a model that is a program, of whose requests each counts by itself: one for which too little of a budget is left cuts it off.
func askMetered(ctx context.Context, h host, request []byte, cut func(error)) (*loop.Response, error) {
	if b := h.k.budgets.broken(h.p); b != nil {
		return nil, b
	}
	defer onBroke(h.p, cut)()
	resp, err := ask(ctx, h, request)
	if err != nil {
		switch b, broke := errors.AsType[*loop.Broke](context.Cause(ctx)); {
		case broke:
			return nil, b
		case errors.Is(context.Cause(ctx), loop.ErrHeld):
			return nil, heldBack(err)
		}
		return nil, err
	}
	drain(h.p, resp)
	return resp, nil
}

// heldBack is ErrHeld, with what the vendor may bill of the call that a pause has cut off.
func heldBack(err error) error {
	if c, sent := errors.AsType[*vfs.CutOff](err); sent {
		return &vfs.CutOff{Err: loop.ErrHeld, Provider: c.Provider, Model: c.Model, Answer: c.Answer}
	}
	return loop.ErrHeld
}

// CutOff implements loop.Host.
func (h host) CutOff(ctx context.Context, a *step.Answer) error {
	m, err := step.CutOffMarker(h.p.PID, a)
	if err != nil {
		return err
	}
	if ctx.Err() == nil {
		return mark(h.p, m)
	}
	return h.p.rec.Add(step.Record{Kind: step.KindMarker, Marker: &m})
}

func ask(ctx context.Context, h host, request []byte) (*loop.Response, error) {
	keepFirst(h)
	tell(h.p, note{kind: asked})
	return exchange(ctx, h, request, h.k.fds.hear)
}

// exchange writes a request to the model's descriptor and reads the answer. hear takes what comes meanwhile, and returns what ends that.
func exchange(ctx context.Context, h host, request []byte, hear func(*Process, vfs.VFSFile) func()) (*loop.Response, error) {
	waitForModel(h.k.doing, h.p)
	defer waitForNothing(h.k.doing, h.p)
	if f, err := h.k.vfs.File(h.p.PID, h.p.modelFD); err == nil {
		defer hear(h.p, f)()
	}
	if err := h.k.fds.write(ctx, h.p, h.p.modelFD, h.p.modelPath, request); err != nil {
		return nil, err
	}
	return readAnswer(h)
}

// readAnswer reads what the model has answered.
func readAnswer(h host) (*loop.Response, error) {
	text, err := h.k.fds.read(h.p, h.p.modelFD, h.p.modelPath)
	if err != nil {
		return nil, err
	}
	resp := new(loop.Response)
	if err := json.Unmarshal(text, resp); err != nil {
		return nil, types.Errorf(types.ErrDriver, "Read", h.p.modelPath, "the device's answer is not a response: %w", err)
	}
	return resp, nil
}

// Intend makes durable which calls are about to run.
func (h host) Intend(n int, actions []loop.Action) error {
	h.keepBefore(n, actions)
	any := false
	for i := range actions {
		a := &actions[i]
		if !effective(a) {
			continue
		}
		any = true
		in := &step.Intent{Step: n, CallID: a.Call.ID, Tool: a.Call.Name, Path: actionPath(a), Input: a.Call.Input, Effect: string(effectOf(a)),
			Key: h.key(a)}
		switch {
		case a.Kind == loop.Spawn:
			if a.Child == (types.UUID{}) {
				a.Child = types.NewUUID()
			}
			in.Child, in.Background = &a.Child, recovery.Background(a.Call.Input)
		case a.Undo:
			in.Before = a.Earlier.Intent.Before
		case effectOf(a) == vfs.EffectReversible || h.p.files.named == nil:
			in.Before = h.p.files.last
			h.p.files.named = cmp.Or(h.p.files.named, in.Before)
		}
		if err := h.p.rec.Add(step.Record{Kind: step.KindIntent, Intent: in}); err != nil {
			return err
		}
	}
	if !any {
		return nil
	}
	return h.p.rec.Commit()
}

// key names what a call is: the same for the same call of the same answer in every run, and for no
// other. It is the beginning of a SHA-256 over the history, the answer, the call's id, tool and input.
func (h host) key(a *loop.Action) string {
	of := append(make([]byte, 0, 512), h.p.UUID.String()...)
	of = strconv.AppendInt(append(of, 0), h.p.answered.UnixNano(), 10)
	of = append(append(append(of, 0), a.Call.ID...), 0)
	of = append(append(of, a.Call.Name...), 0)
	sum := sha256.Sum256(append(of, a.Call.Input...))
	return hex.EncodeToString(sum[:16])
}

// effective reports whether an action does something outside the loop.
func effective(a *loop.Action) bool {
	return a.Settled == nil && a.Problem == nil && (a.Kind == loop.ToolCall || actions.Paths[a.Kind] != "")
}

func effectOf(a *loop.Action) vfs.Effect {
	if e, own := actions.Effects[a.Kind]; own {
		return e
	}
	return a.Tool.Effect
}

func actionPath(a *loop.Action) string {
	if path, own := actions.Paths[a.Kind]; own {
		return path
	}
	return a.Tool.Path
}

// Finish notes how the calls ended; the step's record, which follows, makes it durable.
func (h host) Finish(n int, actions []loop.Action, outs []loop.Outcome) error {
	touched(h, actions)
	for i := range actions {
		logEnd(h, &actions[i], outs[i].Err)
		if a := &actions[i]; !effective(a) && (a.Settled == nil || a.Closed) {
			continue
		}
		if _, waits := outs[i].Err.(*loop.Waiting); waits { //nolint:errorlint // made by Run, as it is
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

// logEnd says in the log that a call was made elsewhere, and that one has failed. One that waits has not ended.
func logEnd(h host, a *loop.Action, err error) {
	_, waits := err.(*loop.Waiting) //nolint:errorlint // made by Run, as it is
	switch {
	case waits:
	case err != nil:
		h.k.doing.logFailed(h.p, a, err)
	case a.Elsewhere():
		h.k.doing.logCall(h.p, a)
	}
}

func (h host) Record(rec *step.StepRecord) error {
	waitForNothing(h.k.doing, h.p)
	h.p.asks.stepped(rec)
	rec.Files = h.keepAfter(rec.StepNumber)
	h.p.files.ended = rec.StepNumber
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
	h.k.pulse.lives(h.p)
	h.p.mu.Lock()
	if h.p.meter != nil { // which counts what is used
		was := &h.p.progress
		pr.Tokens, pr.Estimated, pr.CostUSD, pr.Unpriced, pr.Spending = was.Tokens, was.Estimated, was.CostUSD, was.Unpriced, was.Spending
	}
	h.p.progress = pr
	h.p.mu.Unlock()
	h.k.doing.touch(h.p)
}
