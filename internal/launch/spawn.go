package launch

import (
	"os"
	"slices"
	"strings"

	"rnix/agent"
	"rnix/internal/config"
	"rnix/internal/price"
	"rnix/internal/proc"
	"rnix/internal/profile"
	"rnix/internal/sandbox"
	"rnix/internal/service"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// Plan decides with what a process is started: what the request says, else the agent, else the configuration.
func (s *Spawner) Plan(p *profile.Profile, req ipc.SpawnRequest) (ag *agent.Agent, opts kernel.SpawnOpts, choice config.Choice, err error) {
	if ag, err = p.Load(req.Agent, req.MCP); err != nil {
		return nil, opts, choice, err
	}
	p.Problems = append(slices.Clip(p.Problems), ag.LeftOut...)
	for _, name := range req.Skills {
		if slices.ContainsFunc(ag.Loaded, func(has agent.Skill) bool { return has.Name == name }) {
			continue
		}
		skill, err := p.Catalog.Skill(name)
		if err != nil {
			return nil, opts, choice, err
		}
		ag.Loaded = append(ag.Loaded, skill)
	}
	p.Asked = config.Wish{Provider: req.Provider, Model: req.Model, FallbackProvider: req.FallbackProvider, FallbackModel: req.FallbackModel}
	p.Member = profile.Member{Session: req.Session, Issue: req.Issue}
	if err = p.GiveTools(req.Tools); err != nil {
		return nil, opts, choice, err
	}
	if err = profile.Confine(p, ag, req.Sandbox, req.Net, req.Bounds, req.OnlyHosts); err != nil {
		return nil, opts, choice, err
	}
	if err = profile.AskPermissions(p, req.Rules, req.Asks, p.Lent == nil); err != nil {
		return nil, opts, choice, err
	}
	if choice, err = p.Choose(ag.Models); err != nil {
		return nil, opts, choice, err
	}
	if req.Tools != "" && choice.Provider.Harness() == "" {
		return nil, opts, choice, types.Errorf(types.ErrInvalid, "Spawn", choice.Provider.Name, "it is a model and has no own tools: --tools is for agent CLIs (--harness)")
	}
	if opts, err = s.spawnOpts(p, ag, choice, req); err == nil {
		opts.Settings, err = p.Settings(ag, req.MCP)
	}
	return ag, opts, choice, err
}

// Spawned is what a client is told of a process that was started.
func Spawned(i kernel.Info, choice config.Choice, seq uint64, problems []string) ipc.SpawnResponse {
	return ipc.SpawnResponse{PID: i.PID, UUID: i.UUID, Name: i.Name, Provider: choice.Provider.Name, Model: i.Model, Why: choice.Why,
		MaxSteps: i.MaxSteps, Seq: seq, Sandbox: i.Sandbox, Net: i.Net, Schema: i.Schema, Warnings: append(slices.Clone(problems), choice.Warnings...)}
}

// spawnOpts settles the options of a spawn: what the request says, else the agent, else the
// configuration.
func (s *Spawner) spawnOpts(p *profile.Profile, ag *agent.Agent, choice config.Choice, req ipc.SpawnRequest) (kernel.SpawnOpts, error) {
	o := kernel.SpawnOpts{
		ProcSpec: req.ProcSpec, FailedSteps: p.FailedSteps(), WorkDir: p.Cwd, ReadRoots: p.Config.ReadRoots.V,
		Inputs: service.Each(req.Inputs, service.FromInput), Attachments: service.Each(req.Attachments, service.FromAttachment), Secret: profile.Secret(p), Profile: p, Env: proc.ComposeEnv(p.Env, p.Variables(ag), nil),
	}
	o.Provider, o.Model, o.Effort = choice.Provider.Name, choice.Model, orElse(req.Effort, choice.Effort)
	o.FallbackProvider, o.FallbackModel = "", ""
	level, unheld, err := s.Sandboxes.Fits(p.Sandbox)
	if err != nil {
		return o, err
	}
	p.Problems = append(slices.Clip(p.Problems), unheld...)
	p.Problems = append(p.Problems, unshown(&choice, req.Attachments)...)
	if err := Takes("Spawn", &choice.Provider, req.Attachments); err != nil {
		return o, err
	}
	if err := profile.Starts(p, &choice.Provider); err != nil {
		return o, err
	}
	if f := choice.Fallback; f != nil {
		if err := profile.Starts(p, &f.Provider); err != nil {
			return o, err
		}
	}
	o.Sandbox, o.Net = confined(p, &choice, level)
	if o.Recorded = p.Recorded; o.Recorded {
		s.voidDenials(req.Intent, req.DeniedDevices)
	} else {
		if err := ag.MayStart(); err != nil {
			return o, err
		}
		if err := s.Kernel.CheckDevices(req.AllowedDevices, req.DeniedDevices); err != nil {
			return o, err
		}
	}
	if err := kernel.CheckName(req.Name); err != nil {
		return o, err
	}
	if err := req.Labels.Check(); err != nil {
		return o, types.Errorf(types.ErrInvalid, "Spawn", "", "%w", err)
	}
	for what, n := range map[string]*int{"max_steps": req.MaxSteps, "context_budget": req.ContextBudget} {
		if n != nil && *n < 0 {
			return o, types.Errorf(types.ErrInvalid, "Spawn", "", "%s is %d; 0 means no limit", what, *n)
		}
	}
	if v := req.BudgetUSD; v != nil && !(*v >= 0 && *v <= price.Max.Float()) {
		return o, types.Errorf(types.ErrInvalid, "Spawn", "", "budget_usd is %v; give at most %.0f dollars; 0 means no limit", *v, price.Max.Float())
	}
	if f := choice.Fallback; f != nil {
		o.FallbackProvider, o.FallbackModel = f.Provider.Name, f.Model
	}
	if o.MaxSteps == nil && ag.MaxSteps == nil && p.Config.MaxSteps.Origin != config.FromDefault {
		o.MaxSteps = &p.Config.MaxSteps.V
	}
	if o.MaxSteps == nil && ag.MaxSteps == nil && choice.Provider.Harness() != "" { // it counts by itself, and each of its calls is a step
		o.MaxSteps = new(int)
	}
	if o.ContextBudget == nil && ag.ContextBudget == nil && p.Config.ContextBudget.V > 0 {
		o.ContextBudget = &p.Config.ContextBudget.V
	}
	if o.BudgetUSD == nil && ag.BudgetUSD == nil && p.Config.Budget.USD.V > 0 {
		o.BudgetUSD = &p.Config.Budget.USD.V
	}
	if o.MaxSteps != nil && *o.MaxSteps < 0 {
		return o, types.Errorf(types.ErrInvalid, "Spawn", "", "the step limit %d is negative; 0 means none", *o.MaxSteps)
	}
	if req.TimeoutMs < 0 {
		return o, types.Errorf(types.ErrInvalid, "Spawn", "", "the time limit is negative")
	}
	o.Timeout = service.Timeout(req.TimeoutMs)
	return o, nil
}

// confined returns how the commands of a process are shown to be confined. An agent CLI has the network, since it calls its model, or hosts.
func confined(p *profile.Profile, choice *config.Choice, level sandbox.Level) (by, net string) {
	if choice.Provider.Name != "" { // else it is that of its parent
		p.CLI = choice.Provider.Harness() != ""
	}
	if p.CLI && p.Sandbox.Net != sandbox.NetHosts {
		return string(level), string(sandbox.NetOpen)
	}
	return string(level), string(p.Sandbox.Net)
}

// Program returns how the commands of what a process without a model starts are confined at least. Refused is what this host cannot enforce.
func (s *Spawner) Program(p *profile.Profile) (by, net string, err error) {
	level, _, err := s.Sandboxes.Fits(p.Sandbox) // each of its processes says what is not enforced
	if err != nil {
		return "", "", err
	}
	by, net = confined(p, &config.Choice{}, level)
	return by, net, nil
}

// voidDenials warns of what a history denies to no effect.
func (s *Spawner) voidDenials(of string, denied []string) []string {
	void := s.Kernel.VoidDenials(denied)
	for _, w := range void {
		s.Log.Warn("rights", "process", of, "what", w)
	}
	return void
}

func orElse(s, def string) string {
	if s != "" {
		return s
	}
	return def
}

// LoadAgent settles the agent of a child that a model starts, as spawn does it for a client. An agent that
// names no model has its parent's; one that names a provider keeps to that, whatever the client asked for the parent.
func (s *Spawner) LoadAgent(parent *kernel.Process, name string) (*agent.Agent, kernel.SpawnOpts, error) {
	p, ok := profile.Of(parent)
	if !ok {
		return nil, kernel.SpawnOpts{}, types.Errorf(types.ErrUnavailable, "Spawn", name, "the parent has no configuration")
	}
	p = p.ForChild()
	ag, err := p.Load(name, nil)
	if err != nil {
		return nil, kernel.SpawnOpts{}, err
	}
	if p, err = profile.Confined(p, ag, s.Sandboxes.Below(parent.PID)); err != nil {
		return nil, kernel.SpawnOpts{}, err
	}
	var choice config.Choice
	if ag.Models.Provider != "" || ag.Models.Preferred != "" {
		if choice, err = p.ChooseBy(ag.Models, ofChild(p.Asked, ag.Models)); err != nil {
			return nil, kernel.SpawnOpts{}, err
		}
	}
	opts, err := s.spawnOpts(p, ag, choice, ipc.SpawnRequest{})
	if err == nil {
		opts.Settings, err = p.Settings(ag, nil)
	}
	opts.WorkDir, opts.ReadRoots = parent.WorkDir, parent.ReadRoots
	return ag, opts, err
}

// ofChild returns what a client has asked for that counts for a child which a model starts, too: the model that the child's
// agent names stays, and its provider, if it names one.
func ofChild(asked config.Wish, m agent.Models) config.Wish {
	if m.Provider != "" {
		return config.Wish{}
	}
	provider, _, named := strings.Cut(asked.Model, "/")
	if asked.Model = ""; asked.Provider == "" && named {
		asked.Provider = provider
	}
	return asked
}

// LoadSkill finds a skill for a process.
func (s *Spawner) LoadSkill(proc *kernel.Process, name string) (agent.Skill, error) {
	p, ok := profile.Of(proc)
	if !ok {
		return agent.Skill{}, types.Errorf(types.ErrUnavailable, "Specialize", name, "the process has no configuration")
	}
	return p.Catalog.Skill(name)
}

// Price returns what a model costs a process, and where that stands; see profile.PriceFor.
func (*Spawner) Price(proc *kernel.Process, provider, driver, model string, needed bool) (price.Rate, string) {
	return profile.PriceFor(proc, provider, driver, model, needed)
}

var _ kernel.Catalog = (*Spawner)(nil)

// exists reports whether a path is there.
func exists(path string) bool { _, err := os.Stat(path); return err == nil }
