package launch

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"rnix/agent"
	"rnix/internal/config"
	"rnix/internal/proc"
	"rnix/internal/profile"
	"rnix/internal/recovery"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// Ready is a history with everything settled that it needs to go on: nothing about it can be refused any
// more, but the start itself can fail.
type Ready struct {
	*Opened
	Agent    *agent.Agent
	Choice   config.Choice
	Opts     kernel.SpawnOpts
	Doubts   []ipc.InDoubt // calls of which it is not known whether they have run
	Warnings []string
	// Retry settles it once more, when its history was opened anew.
	Retry func(a *Opened) (*Ready, error)
}

// Plan decides with what a history goes on, or why it cannot. It changes nothing.
func (l *Launcher) Plan(a *Opened, req *ipc.ResumeRequest) (*Ready, error) {
	if err := Believe(&a.Was, req); err != nil {
		return nil, err
	}
	set := profile.SettingsIn(&a.Was)
	if err := hasPlace(&a.Was, &set, a.State.Step); err != nil {
		return nil, err
	}
	p, err := l.Profiles.ForStart("Resume", set.Cwd, req.Env, set.Trust || req.TrustProject)
	if err != nil {
		return nil, err
	}
	p.Asked, p.Names, p.Lent = set.Wish(), set.Names, set.Lent
	if p.Lent == nil && a.Was.ByAgent { // of an earlier version, which did not keep them
		p.Lent = []string{}
	}
	if set.Permissions != nil {
		p.Permissions = *set.Permissions
	}
	if set.Sandbox != nil {
		p.Sandbox = *set.Sandbox
	}
	ask := profile.AskSandbox
	if req.Tighter {
		ask = profile.TightenSandbox
	}
	if err = ask(p, req.Sandbox, req.Net, req.Bounds, req.Hosts); err != nil {
		return nil, err
	}
	if err = profile.AskPermissions(p, req.Rules, req.Asks, true); err != nil {
		return nil, err
	}
	if a.Fork && req.Cwd != "" && p.Sandbox.Within != nil { // a person says where it works
		p.Sandbox.Within = append(slices.Clone(p.Sandbox.Within), filepath.Clean(req.Cwd))
	}
	if !a.Fork { // a copy is nobody's session
		p.Member = set.Member
	}
	if err := p.GiveTools(set.Tools); err != nil {
		return nil, err
	}
	r := &Ready{Opened: a, Warnings: append(slices.Clone(p.Problems), l.Spawner.voidDenials(a.Was.UUID.String(), a.Was.DeniedDevices)...)}
	p.NoMCP, p.OfferedMCP = set.NoMCP, set.Offered
	r.Retry = func(a *Opened) (*Ready, error) { return l.Plan(a, req) }
	if a.Was.Body != nil {
		return r, l.planBody(r, p, req)
	}
	if r.Agent, err = p.Load(a.Was.Agent, set.MCP); err != nil {
		if len(a.Was.MCPMounts) > 0 {
			return nil, err
		}
		r.Warnings = append(r.Warnings, fmt.Sprintf("the agent %s cannot be read any more, so the process is resumed with what it was told before: %v", a.Was.Agent, err))
		r.Agent = &agent.Agent{Manifest: agent.Manifest{Name: a.Was.Agent}}
	}
	r.Warnings = append(r.Warnings, r.Agent.LeftOut...)
	if name := set.Changed(r.Agent); name != "" && !req.TrustProject {
		return nil, types.Errorf(types.ErrPermission, "Resume", name, "the MCP server is not what it was when you trusted this project; look at its configuration (`rnix mcp list`), then resume with: rnix resume %d --trust-project", a.Was.PID)
	}
	if r.Choice, err = p.ChooseBy(r.Agent.Models, wishOf(a, req)); err != nil {
		if names := set.Missing(req.Env); len(names) > 0 && types.CodeOf(err) == types.ErrUnavailable {
			err = unset(err, names)
		}
		return nil, err
	}
	if a.Damage != "" {
		r.Warnings = append(r.Warnings, a.Damage)
	}
	if r.Opts, err = l.optsOf(r, p, req); err != nil {
		return nil, err
	}
	if r.Opts.Settings, err = p.Settings(r.Agent, set.MCP); err == nil && set.Tree != nil {
		r.Opts.Settings, err = profile.WithTree(r.Opts.Settings, set.Tree)
	}
	if err != nil {
		return nil, err
	}
	r.Opts.From, r.Doubts, err = l.fromOf(a, req)
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

// wishOf is the model that a resumed process gets: what is asked for now, else what it had.
func wishOf(a *Opened, req *ipc.ResumeRequest) config.Wish {
	w := config.Wish{Provider: a.Was.Provider, Model: a.Was.AskedModel, FallbackProvider: a.Was.FallbackProvider, FallbackModel: a.Was.FallbackModel}
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

// Over reports whether nothing is left to do but to record how the last run has ended.
func (a *Opened) Over(req *ipc.ResumeRequest) bool {
	return recovery.Finished(a.State) && req.NewInput == ""
}

// optsOf settles the options of a resumed process: limits and place as they were, but for what the
// request changes. What cannot go on with these limits is refused, with what to do.
func (l *Launcher) optsOf(r *Ready, p *profile.Profile, req *ipc.ResumeRequest) (kernel.SpawnOpts, error) {
	a, ag, choice := r.Opened, r.Agent, r.Choice
	was, s := &a.Was, a.State
	steps := was.MaxSteps
	limit, err := l.limitOf(a, req)
	if err != nil {
		return kernel.SpawnOpts{}, err
	}
	usd := limit.USD.Float()
	if req.MaxSteps != nil {
		if steps = 0; *req.MaxSteps > 0 {
			steps = s.Step + *req.MaxSteps
		}
	}
	id := a.Rec.ID.String()
	if steps > 0 && s.Step >= steps && s.Open == nil && !a.Over(req) {
		return kernel.SpawnOpts{}, types.Errorf(types.ErrExhausted, "Resume", id, "it has done %d of %d steps; give it more with --max-steps N (so many more steps)", s.Step, steps)
	}
	timeout, err := timeLimit(a, req)
	if err != nil {
		return kernel.SpawnOpts{}, err
	}
	level, unheld, err := l.Spawner.Sandboxes.Fits(p.Sandbox)
	if err != nil {
		return kernel.SpawnOpts{}, err
	}
	r.Warnings = append(r.Warnings, unheld...)
	r.Warnings = append(r.Warnings, unshown(&choice, req.Attachments)...)
	if err := Takes("Resume", &choice.Provider, req.Attachments[:len(req.Attachments)-a.Again]); err != nil {
		return kernel.SpawnOpts{}, err
	}
	by, net := confined(p, &choice, level)
	o := kernel.SpawnOpts{
		Attachments: service.Each(req.Attachments, service.FromAttachment),
		UUID:        a.Rec.ID, ProcSpec: types.ProcSpec{Name: was.Name, Provider: choice.Provider.Name, Model: choice.Model, Effort: orElse(was.Effort, choice.Effort), Sandbox: by, Net: net, MaxSteps: &steps, ContextBudget: &limit.Tokens, BudgetUSD: &usd, OutputSchema: was.OutputSchema}, FailedSteps: p.FailedSteps(), Timeout: timeout, WorkDir: was.WorkDir, ReadRoots: was.ReadRoots,
		Env: proc.ComposeEnv(p.Env, p.Variables(ag), nil), Secret: profile.Secret(p), Profile: p,
	}
	if f := choice.Fallback; f != nil {
		o.FallbackProvider, o.FallbackModel = f.Provider.Name, f.Model
	}
	return o, nil
}

// planBody decides with what a process without a model goes on.
func (l *Launcher) planBody(r *Ready, p *profile.Profile, req *ipc.ResumeRequest) (err error) {
	was := &r.Was
	id := was.UUID.String()
	if req.NewInput != "" || req.Provider != "" || req.Model != "" || req.FallbackProvider != "" || req.FallbackModel != "" || req.MaxSteps != nil {
		return types.Errorf(types.ErrInvalid, "Resume", id, "it is no agent (%s): it takes no input, no model and no step limit", was.Body.Kind)
	}
	p.Recorded, r.Agent = true, &agent.Agent{}
	if r.Opts, err = l.optsOf(r, p, req); err != nil {
		return err
	}
	make, ok := l.Programs[was.Body.Kind]
	if !ok {
		return types.Errorf(types.ErrInvalid, "Resume", id, "this version of rnix cannot resume a process of kind %q", was.Body.Kind)
	}
	if r.Opts.Body, err = make(p, was.Body.Spec); err != nil {
		return err
	}
	if r.Opts.Settings = was.Settings; req.Sandbox != "" || req.Net != "" || !req.Bounds.IsZero() || len(req.Hosts) > 0 { // what it starts from now on has it, also after another resume
		if r.Opts.Settings, err = profile.WithSandbox(was.Settings, p.Sandbox); err != nil {
			return err
		}
	}
	r.Opts.From = &kernel.From{State: r.State, Rec: r.Rec, Was: r.Was}
	if r.Damage != "" {
		r.Warnings = append(r.Warnings, r.Damage)
	}
	return nil
}
