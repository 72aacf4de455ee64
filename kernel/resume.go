package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	rnixctx "rnix/context"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/kernel/internal/loop"
	"rnix/types"
)

// From continues a history instead of beginning one. The process is what the history says: intent,
// rights, servers, plan, counters and time lived are those of its last run, and the limits are the ones in
// SpawnOpts.
type From struct {
	// State is what the history amounts to. The kernel does not change it.
	State *recovery.State
	// Rec is the record of the history, which the caller has opened. The kernel closes it, also if the
	// spawn fails; then nothing was added.
	Rec Recorder
	// Was is what the last run was started with, from State.Settled; of a fork, what its origin was.
	Was step.Settled
	// Input is what a person says at the point of resume; empty = nothing.
	Input string
	// given is what is shown with Input, when it is kept.
	given []rnixctx.Attachment
	// Person says that a person wants it: however often the daemon has broken off in its step, it counts anew.
	Person bool
	// Note is said to the model before it goes on, if the conversation does not say what to do next; empty
	// = nothing.
	Note string
	// Policy says what becomes of calls in doubt; Choices overrides it by the id of a call.
	Policy  recovery.Policy
	Choices map[string]recovery.Policy
	// Hold keeps the process from going on until it is closed; nil = it goes on at once.
	Hold <-chan struct{}
}

// take gives a process what it had in its last run.
func (f *From) take(p *Process) {
	s, was := f.State, &f.Was
	p.CreatedAt, p.Agent, p.Labels, p.parentUUID = was.CreatedAt, was.Agent, was.Labels, was.ParentUUID
	p.BlockedSignals, p.OnInterrupt = was.BlockedSignals, was.OnInterrupt
	p.before, p.runs = s.Active, s.Runs
	p.mu.Lock()
	p.plan, p.spawned, p.failedChildren = s.Plan, s.Spawned, slices.Clip(s.FailedChildren)
	base, skills := step.WithSkills(was.SystemPrompt, was.Skills, s.Skills)
	tellLocked(p, base, skills)
	p.mu.Unlock()
	p.asks.had(&s.Life)
	if recovery.Begun(s) { // else it is the wish of who wanted it of its origin
		p.compact.set(s.Compact)
	}
	p.inputs = was.Inputs
	p.post.load(&p.box, &s.Mailbox)
	p.kids.load(s.Children)
	if s.Runs > 0 { // else it is the first run of a fork
		p.earlier = append(slices.Clip(was.EarlierPIDs), was.PID)
	}
	p.files.last, p.files.named, p.files.ended, p.files.dirty = s.Files, s.Files, s.Step, true // what was changed since it was taken, nobody has counted
	if s.Origin != nil {
		p.origin, p.originStep = s.Origin.Origin, s.Origin.Step
	}
	p.Rights = Rights{Allowed: was.AllowedDevices, Denied: was.DeniedDevices}
	if p.Rights.Allowed != nil { // its servers get new paths
		p.Rights.Allowed = slices.DeleteFunc(slices.Clone(p.Rights.Allowed), func(path string) bool { return slices.Contains(was.MCPMounts, path) })
	}
}

// had reports whether the last run had a server mounted.
func (f *From) had(server string) bool {
	return slices.Contains(f.Was.MCPMounts, mcpRoot+"/"+f.Was.PID.String()+"-"+server)
}

// start returns the counters with which the loop goes on.
func (f *From) start(pr loop.Progress) loop.Progress {
	s := f.State
	pr.Failed, pr.Taken = s.Failed, s.Taken
	pr.Step, pr.Tokens, pr.CostUSD, pr.Estimated, pr.Unpriced, pr.Spending = s.Step, s.Tokens, s.CostUSD, s.Estimate, s.Unpriced, s.Spending
	return pr
}

// open returns the step that the last run has left open; nil if there is none. undoable says that the
// kernel can put files back; those of a fork are not where its origin had them.
func (f *From) open(undoable bool) *loop.Open {
	s := f.State
	if s.Open == nil {
		return nil
	}
	o := &loop.Open{Open: *s.Clone().Open, Policy: f.Policy, Choices: f.Choices, Undoable: undoable && s.Origin == nil}
	for i, m := range slices.Backward(s.Messages) {
		if m.Role == rnixctx.RoleAssistant {
			o.Said, o.Answers = m, s.Messages[i+1:]
			break
		}
	}
	for i := range o.Calls { // a call is undone by what it says
		if c := &o.Calls[i]; c.Intent != nil {
			in := *c.Intent
			in.Input = s.InputOf(c.ID)
			c.Intent = &in
		}
	}
	for _, said := range f.inputs() {
		o.After = append(o.After, said.Message())
	}
	return o
}

// end returns with what the last run has ended if nothing but the record of that is missing: what came since, from a
// person or as mail, is for the model.
func (f *From) end() *loop.End {
	if !recovery.Finished(f.State) || f.Input != "" {
		return nil
	}
	return &loop.End{Exit: f.State.Ending.Exit, Result: f.State.Ending.Result}
}

// inputs returns what persons have said that is not in the conversation yet.
func (f *From) inputs() []step.Said {
	in := slices.Clip(f.State.Inputs)
	if f.Input != "" {
		in = append(in, f.said())
	}
	return in
}

// said is Input with what is shown with it.
func (f *From) said() step.Said {
	return step.Said{Text: rnixctx.WithLabels(f.Input, f.given), Attachments: f.given}
}

// begin writes what a history begins with, durably: the settled options and the intent.
func begin(k *KernelImpl, p *Process) error {
	text, err := keepInputs(k, p)
	if err != nil {
		return err
	}
	first := rnixctx.Message{Role: rnixctx.RoleUser, Content: text}
	if first.Attachments, err = keepGiven(k, p); err != nil {
		return err
	}
	first.Content = rnixctx.WithLabels(first.Content, first.Attachments)
	if err := k.ctxMgr.Append(p.CtxID, first); err != nil {
		return err
	}
	if !k.keeps {
		return nil
	}
	detail, err := p.settled(k.table.current(p), k.store.Seal)
	if err != nil {
		return err
	}
	err = p.rec.Add(
		step.Record{Kind: step.KindMarker, Marker: &step.Marker{Name: step.MarkerSpawn, PID: p.PID, Text: p.Intent, Detail: detail}},
		step.Record{Kind: step.KindMessage, Message: &first},
	)
	if err == nil {
		err = p.rec.Commit()
	}
	return err
}

// goOn writes what a new run of a history begins with, durably.
func goOn(k *KernelImpl, p *Process, f *From) (err error) {
	if f.given, err = keepGiven(k, p); err != nil { // before the record that names it
		return err
	}
	if err := k.ctxMgr.Append(p.CtxID, f.State.Messages...); err != nil {
		return err
	}
	detail, err := p.settled(k.table.current(p), k.store.Seal)
	if err != nil {
		return err
	}
	begins := &step.Marker{Name: step.MarkerResumed, PID: p.PID, Detail: detail}
	if f.Person {
		begins.Text = step.ByPerson
	}
	recs := []step.Record{{Kind: step.KindMarker, Marker: begins}}
	if f.Input != "" {
		recs = append(recs, step.Record{Kind: step.KindMarker, Marker: step.InputMarker(p.PID, f.said())})
	}
	if f.State.Open == nil {
		said := f.inputs()
		if len(said) == 0 && f.Note != "" && f.end() == nil {
			said = []step.Said{{Text: f.Note}}
		}
		for i := range said {
			m := said[i].Message()
			if err := k.ctxMgr.Append(p.CtxID, m); err != nil {
				return err
			}
			recs = append(recs, step.Record{Kind: step.KindMessage, Message: &m})
		}
	}
	if err := p.rec.Add(recs...); err != nil {
		return err
	}
	return p.rec.Commit()
}

// refusedAgain writes that a run has ended which its record says has begun, and which there is no room for: the history is suspended, and does not look as if it
// had been broken off.
func (s *saver) refusedAgain(p *Process, err error) {
	if p.opts.From == nil || !s.keeps {
		return // it is discarded
	}
	detail, _ := json.Marshal(step.SuspendDetail{Kind: types.SuspendHeld}) // a word
	m := step.Marker{Name: step.MarkerSuspended, PID: p.PID, Text: "it could not be resumed: " + err.Error(), Detail: detail}
	if errors.Is(err, errStopping) || errors.Is(err, errLeaving) { // it passes: the next start resumes it, if nobody does before
		m.Name, m.Text, m.Detail = step.MarkerDaemonStop, "", nil
	}
	if err := p.rec.Add(step.Record{Kind: step.KindMarker, Marker: &m}); err == nil {
		_ = p.rec.Commit() // the caller hears of what counts
	}
}

// settled is the Detail of a spawn or resumed marker: everything that a later run needs.
func (p *Process) settled(i *Info, seal func(*step.Settled) string) (json.RawMessage, error) {
	o := &p.opts
	_, base, _ := prompted(p)
	s := step.Settled{ProcInfo: p.procInfo(i), SystemPrompt: base, FallbackProvider: o.FallbackProvider, FallbackModel: o.FallbackModel,
		AskedModel: o.Model, Effort: o.Effort, Timeout: o.Timeout, OutputSchema: o.OutputSchema, Settings: o.Settings, Inputs: p.inputs, Descent: descent(p), Git: gitOf(p)}
	s.Provider = o.Provider
	if o.Body != nil {
		b, err := o.Body.Record()
		if err != nil {
			return nil, types.Errorf(types.ErrInternal, "Spawn", "", "encode: %w", err)
		}
		s.Body = &b
	}
	s.Seal = seal(&s)
	detail, err := json.Marshal(&s)
	if err != nil {
		return nil, types.Errorf(types.ErrInternal, "Spawn", "", "encode: %w", err)
	}
	return detail, nil
}

// state is what the history amounts to; nil if one begins.
func (f *From) state() *recovery.State {
	if f == nil {
		return nil
	}
	return f.State
}

// hold keeps a process from its first step until it is let go or ends.
func (f *From) hold(ctx context.Context) {
	if f == nil || f.Hold == nil {
		return
	}
	select {
	case <-f.Hold:
	case <-ctx.Done():
	}
}

// Suspend ends the run of a living process without ending the process: its history can be gone on with
// as when the kernel had been stopped. It returns when everything was released.
func (k *KernelImpl) Suspend(ctx context.Context, pid types.PID) error {
	p, err := k.table.lookup("Suspend", pid)
	if err != nil {
		return err
	}
	p.cancel(errStopping)
	_, err = k.WaitInfo(ctx, pid)
	return err
}
