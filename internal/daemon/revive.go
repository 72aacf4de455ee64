package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"rnix/agent"
	"rnix/internal/config"
	"rnix/internal/moved"
	"rnix/internal/proc"
	"rnix/internal/profile"
	"rnix/internal/records"
	"rnix/internal/recovery"
	"rnix/internal/service/files"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// reviver starts the processes of histories: whoever asked for it, and for whatever reason.
type reviver struct{ *Daemon }

// again is one history that is about to go on, up to the moment in which it is started.
type again struct {
	state  *recovery.State
	was    step.Settled
	rec    *records.Recorder
	from   string // checkpoint or history
	damage string
	fork   bool
	leave  func() // ends the hold on the history; nil = there is none
}

// open takes a history, keeps it where it is, and reads what it amounts to. Start ends that.
func (d reviver) open(ctx context.Context, id types.UUID) (_ *again, err error) {
	leave, err := d.storage.Hold(id)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			leave()
		}
	}()
	rec, state, used, damage, err := d.opened(ctx, id)
	for end := time.Now().Add(openTime); types.CodeOf(err) == types.ErrConflict && d.brief(ctx, id, end); {
		rec, state, used, damage, err = d.opened(ctx, id)
	}
	if types.CodeOf(err) == types.ErrConflict {
		return nil, d.beaten(id)
	}
	if err != nil {
		return nil, err
	}
	a := &again{state: state, rec: rec, from: "history", damage: damage, leave: leave}
	if used {
		a.from = "checkpoint"
	}
	if a.was, err = wasOf(d.Daemon, state, id); err != nil {
		if damage != "" {
			err = types.Errorf(types.CodeOf(err), "Resume", id.String(), "%w; %s", err, damage)
		}
		_ = rec.Close() // err matters more
		return nil, err
	}
	state.Disown(files.Within(a.was.WorkDir, d.snapshots.ForkDir(id))) // of a fork that an earlier version has made in the middle of a step
	return a, nil
}

// beaten is the error for who wants to resume a history that somebody else has taken first.
func (d reviver) beaten(id types.UUID) error {
	if pid, alive := d.running(id); alive {
		return &types.SyscallError{Syscall: "Resume", PID: pid, Device: id.String(), Code: types.ErrConflict,
			Err: fmt.Errorf("another client has resumed it: it is running as PID %d", pid)}
	}
	return types.Errorf(types.ErrConflict, "Resume", id.String(), "another command resumes it, or writes to its record, at this moment; try again")
}

// openTime is how long a history is waited for that somebody writes who does not run it, such as a message.
const openTime = 2 * time.Second

// passAgain is how often a history is tried that is being written.
const passAgain = 20 * time.Millisecond

// brief waits a little for a history that is being written, and reports whether to try again: not if it is
// running, as somebody was quicker then.
func (d reviver) brief(ctx context.Context, id types.UUID, end time.Time) bool {
	late := time.Now().After(end) // else there is one more try behind it, however long it leaves
	if _, alive := stays(ctx, d.Daemon, id); alive || late {
		return false
	}
	select {
	case <-time.After(passAgain):
		return true
	case <-ctx.Done():
		return false
	}
}

// wasOf returns what the last run was started with.
func wasOf(d *Daemon, s *recovery.State, id types.UUID) (step.Settled, error) {
	now := *s
	now.Settled = moved.JSON(d.places.DataDir, s.Settled)
	was, err := now.Was()
	switch {
	case err != nil:
		return was, types.Errorf(types.ErrStorage, "Resume", id.String(), "the history does not say how it was started: %w", err)
	}
	if was.SystemPrompt == "" { // written by an early version
		if m, merr := step.ReadMeta(d.journal.FS(), d.journal.Dir(id)); merr == nil {
			was.SystemPrompt, _, _ = strings.Cut(m.SystemPrompt, "\n\nYour working directory is ")
		}
	}
	return was, nil
}

// ready is a history with everything settled that it needs to go on: nothing about it can be refused any
// more, but the start itself can fail.
type ready struct {
	*again
	agent    *agent.Agent
	choice   config.Choice
	opts     kernel.SpawnOpts
	doubts   []ipc.InDoubt
	warnings []string
	retry    func(a *again) (*ready, error) // settles it once more, when its history was opened anew
}

// close gives an opened history back.
func (a *again) close() {
	_ = a.rec.Close() // nothing was added; a second close does nothing
	if a.leave != nil {
		a.leave()
	}
}

// start goes on with an opened history. a is closed if it fails.
func (d reviver) start(ctx context.Context, a *again, req *ipc.ResumeRequest, hold <-chan struct{}) (ipc.ResumeResponse, error) {
	r, err := d.settle(a, req)
	if err != nil {
		a.close()
		return ipc.ResumeResponse{}, err
	}
	return d.launch(ctx, r, hold)
}

// settle decides with what a history goes on, or why it cannot. It changes nothing.
func (d reviver) settle(a *again, req *ipc.ResumeRequest) (*ready, error) {
	set := profile.SettingsIn(&a.was)
	if err := hasPlace(&a.was, &set, a.state.Step); err != nil {
		return nil, err
	}
	p, err := d.profiles.ForStart("Resume", set.Cwd, req.Env, set.Trust || req.TrustProject)
	if err != nil {
		return nil, err
	}
	p.Asked, p.Names = set.Wish(), set.Names
	if !a.fork { // a copy is nobody's session
		p.Member = set.Member
	}
	if err := p.GiveTools(set.Tools); err != nil {
		return nil, err
	}
	r := &ready{again: a, warnings: append(slices.Clone(p.Problems), spawner(d).voidDenials(a.was.UUID.String(), a.was.DeniedDevices)...)}
	r.retry = func(a *again) (*ready, error) { return d.settle(a, req) }
	if a.was.Body != nil {
		return r, d.settleBody(r, p, req)
	}
	if r.agent, err = p.Load(a.was.Agent, set.MCP); err != nil {
		if len(a.was.MCPMounts) > 0 {
			return nil, err
		}
		r.warnings = append(r.warnings, fmt.Sprintf("the agent %s cannot be read any more, so the process goes on with what it was told before: %v", a.was.Agent, err))
		r.agent = &agent.Agent{Manifest: agent.Manifest{Name: a.was.Agent}}
	}
	if name := set.Changed(r.agent); name != "" && !req.TrustProject {
		return nil, types.Errorf(types.ErrPermission, "Resume", name, "the MCP server is not what it was when you trusted this project; look at its configuration (`rnix mcp list`), then resume with: rnix resume %d --trust-project", a.was.PID)
	}
	if r.choice, err = p.ChooseBy(r.agent.Models, wishOf(a, req)); err != nil {
		if names := set.Missing(req.Env); len(names) > 0 && types.CodeOf(err) == types.ErrUnavailable {
			err = unset(err, names)
		}
		return nil, err
	}
	if a.damage != "" {
		r.warnings = append(r.warnings, a.damage)
	}
	if r.opts, err = d.optsOf(a, p, r.agent, r.choice, req); err != nil {
		return nil, err
	}
	if r.opts.Settings, err = p.Settings(r.agent, set.MCP); err == nil && set.Tree != nil {
		r.opts.Settings, err = profile.WithTree(r.opts.Settings, set.Tree)
	}
	if err != nil {
		return nil, err
	}
	r.opts.From, r.doubts, err = d.fromOf(a, req)
	return r, err
}

// unset adds to the error of a provider that cannot be used which variables it had when the process was started.
func unset(err error, names []string) error {
	e := types.SyscallError{Syscall: "Provider", Code: types.CodeOf(err), Err: err}
	if was, ok := errors.AsType[*types.SyscallError](err); ok {
		e = *was
	}
	e.Err = fmt.Errorf("%w (when it was started these variables were set, which are not now: %s)", e.Err, strings.Join(names, ", "))
	return &e
}

// hasPlace refuses a history whose directory is gone, with what to do; last is its last step that has ended. Without its project it finds its
// configuration where it works.
func hasPlace(was *step.Settled, set *profile.Settings, last int) error {
	id := was.UUID.String()
	if was.WorkDir != "" && !exists(was.WorkDir) {
		return types.Errorf(types.ErrNotFound, "Resume", was.WorkDir, "the directory in which it works is gone; put its files back with `rnix restore %s --step %d --to DIR`, and let a copy of it work there with `rnix resume --fork --cwd DIR %s`, or make the directory again", id, last, id)
	}
	if set.Cwd != "" && !exists(set.Cwd) {
		set.Cwd = was.WorkDir
	}
	return nil
}

// launchOnce tries to start the process of a history, below its parent if that is alive. Its lease is given back if
// that fails.
func (d reviver) launchOnce(ctx context.Context, r *ready, hold <-chan struct{}) (ipc.ResumeResponse, error) {
	a := r.again
	resp := ipc.ResumeResponse{Mode: "continue", From: a.from, Step: a.state.Step}
	r.opts.From.Hold = hold
	if pid, ok := stays(ctx, d.Daemon, a.was.ParentUUID); ok && !a.fork {
		r.opts.ParentPID = pid
	}
	if p, ok := r.opts.Profile.(*profile.Profile); ok {
		if err := d.platforms.Open(ctx, r.opts.UUID, requestOf(p, r.choice.Provider.Name)); err != nil {
			return resp, errors.Join(err, a.rec.Close())
		}
	}
	seq, sleep := d.events.Last(), func() {}
	if !a.fork {
		sleep = d.wakes(a.rec.ID)
	}
	pid, err := d.kernel.SpawnContext(ctx, a.was.Intent, r.agent, r.opts)
	if err != nil {
		sleep()
		d.platforms.Ended(r.opts.UUID)
		return resp, err
	}
	d.platforms.Begun(r.opts.UUID)
	i, err := d.kernel.Info(pid)
	if err != nil {
		return resp, err
	}
	resp.SpawnResponse, resp.WorkDir, resp.InDoubt = spawned(i, r.choice, seq, r.warnings), i.WorkDir, r.doubts
	if set := profile.SettingsIn(&step.Settled{Settings: r.opts.Settings}); set.Tree != nil {
		resp.Worktree = files.Created(set.Tree, &i)
	}
	if o := a.state.Origin; o != nil {
		resp.OriginUUID = o.Origin
	}
	return resp, nil
}

// wakes says of a history that is over that it is not, before its record says so: after a crash, the records of what is over are
// not looked at, and what somebody was told of would not go on. Sleep puts back what stood there.
func (d reviver) wakes(id types.UUID) (sleep func()) {
	info, ok := d.journal.Index().Get(id)
	if !ok || !info.Over() {
		return func() {}
	}
	was := processes(d).whole(&info)
	now := *was
	now.State, now.Suspended, now.Exit, now.DeadAt = types.StateCreated, false, nil, time.Time{}
	d.put(&now)
	return func() { d.put(was) }
}

// wishOf is the model that a resumed process gets: what is asked for now, else what it had.
func wishOf(a *again, req *ipc.ResumeRequest) config.Wish {
	w := config.Wish{Provider: a.was.Provider, Model: a.was.AskedModel, FallbackProvider: a.was.FallbackProvider, FallbackModel: a.was.FallbackModel}
	if req.Provider != "" || req.Model != "" {
		w.Model = req.Model
		if req.Provider != "" || strings.Contains(req.Model, "/") {
			w.Provider = req.Provider
		}
	}
	if req.FallbackProvider != "" || req.FallbackModel != "" {
		w.FallbackProvider, w.FallbackModel = req.FallbackProvider, req.FallbackModel
	}
	return w
}

// waitsForChild reports whether a history waits for a process that it has started.
func waitsForChild(s *recovery.State) bool {
	return len(recovery.Awaits(s)) > 0
}

// over reports whether nothing is left to do but to record how the last run has ended.
func (a *again) over(req *ipc.ResumeRequest) bool {
	return recovery.Finished(a.state) && req.NewInput == ""
}

// optsOf settles the options of a resumed process: limits and place as they were, but for what the
// request changes. What cannot go on with these limits is refused, with what to do.
func (d reviver) optsOf(a *again, p *profile.Profile, ag *agent.Agent, choice config.Choice, req *ipc.ResumeRequest) (kernel.SpawnOpts, error) {
	was, s := &a.was, a.state
	steps := was.MaxSteps
	limit, err := d.limitOf(a, req)
	if err != nil {
		return kernel.SpawnOpts{}, err
	}
	usd := limit.USD.Float()
	if req.MaxSteps != nil {
		if steps = 0; *req.MaxSteps > 0 {
			steps = s.Step + *req.MaxSteps
		}
	}
	id := a.rec.ID.String()
	if steps > 0 && s.Step >= steps && s.Open == nil && !a.over(req) {
		return kernel.SpawnOpts{}, types.Errorf(types.ErrExhausted, "Resume", id, "it has done %d of %d steps; give it more with --max-steps N (so many more steps)", s.Step, steps)
	}
	timeout, err := timeLimit(a, req)
	if err != nil {
		return kernel.SpawnOpts{}, err
	}
	o := kernel.SpawnOpts{
		UUID: a.rec.ID, Name: was.Name, Provider: choice.Provider.Name, Model: choice.Model, Effort: orElse(was.Effort, choice.Effort),
		MaxSteps: &steps, FailedSteps: p.FailedSteps(), ContextBudget: &limit.Tokens, BudgetUSD: &usd, Timeout: timeout, WorkDir: was.WorkDir, ReadRoots: was.ReadRoots,
		Env: proc.ComposeEnv(p.Env, p.Variables(ag), nil), Secret: p.Lookup, Profile: p,
	}
	if f := choice.Fallback; f != nil {
		o.FallbackProvider, o.FallbackModel = f.Provider.Name, f.Model
	}
	return o, nil
}
