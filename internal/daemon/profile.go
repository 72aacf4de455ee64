package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rnix/agent"
	"rnix/internal/config"
	"rnix/internal/price"
	"rnix/kernel"
	"rnix/types"
)

// profile is the configuration that one client sees: its environment, its project, what the files say,
// and which model it asked for. It is made for each spawn, does not change once there is a process, and
// is handed to the process's devices and to its children.
type profile struct {
	cwd       string // absolute
	project   string // the project's root; cwd if there is none
	env       []string
	lookup    config.Lookup
	trust     bool
	cfg       config.Config
	providers config.Providers
	prices    price.Book
	catalog   *agent.Catalog
	servers   []agent.MCPEntry
	problems  []string
	mistakes  config.Problems // those of the problems because of which nothing may be started
	asked     config.Wish     // the client's part of it
	tools     string          // which tools agents' command lines have: config.ToolsOwn, ToolsKernel; empty = as each provider says
	member    member          // of a platform
	names     []string        // of variables that OS children see besides the agent's
	recorded  bool            // what is started with it is asked for by a history, perhaps of an earlier version
}

// choose settles the model of an agent, by what the client asked for.
// failedSteps is kernel.SpawnOpts.FailedSteps.
func (p *profile) failedSteps() int {
	if n := p.cfg.FailedSteps.V; n > 0 {
		return n
	}
	return -1
}

func (p *profile) choose(m agent.Models) (config.Choice, error) { return p.chooseBy(m, p.asked) }

func (p *profile) chooseBy(m agent.Models, w config.Wish) (config.Choice, error) {
	w.Agent, w.ProjectDefault, w.UserDefault = m, p.providers.ProjectDefault, p.providers.UserDefault
	return config.Choose(p.providers.List, w, p.available)
}

// profileOf reads the configuration for a client in cwd with env. An empty cwd is the user's home.
func (d *Daemon) profileOf(cwd string, env []string, trust bool) (*profile, error) {
	if cwd == "" {
		cwd = d.home
	}
	if !filepath.IsAbs(cwd) {
		return nil, types.Errorf(types.ErrInvalid, "Spawn", cwd, "the working directory is not an absolute path")
	}
	cwd = filepath.Clean(cwd)
	if s, err := os.Stat(cwd); err != nil || !s.IsDir() {
		if err == nil {
			return nil, types.Errorf(types.ErrInvalid, "Spawn", cwd, "not a directory")
		}
		if p := (*os.PathError)(nil); errors.As(err, &p) {
			err = p.Err // the path is named already
		}
		return nil, types.Errorf(types.ErrNotFound, "Spawn", cwd, "%w", err)
	}
	if len(env) == 0 {
		env = os.Environ()
	}
	p := &profile{cwd: cwd, env: env, trust: trust, lookup: lookupIn(env)}
	home, _ := p.lookup("HOME")
	p.project, _ = agent.ProjectRoot(cwd, home)
	p.project = orElse(p.project, cwd)
	src := config.Sources{UserDir: d.configDir, ProjectDir: p.project, Home: home, Lookup: p.lookup, TrustProject: trust}
	p.cfg = config.Load(src)
	p.providers = config.LoadProviders(src)
	var prices config.Problems
	p.prices, prices = config.LoadPrices(src)
	learn(d, secretsOf(env))
	places := agent.Places{ProjectDir: p.project, UserConfigDir: d.configDir, Home: home, TrustProject: trust}
	places.Defaults, places.Most = limitsOf(&p.cfg)
	p.catalog = agent.Discover(places)
	p.keepDefaultAgent(src, places.Defaults)
	var ps agent.Problems
	p.servers, ps = agent.LoadMCP(places, p.lookup, trust)
	learn(d, p.secrets())
	p.mistakes = config.Mistakes(p.cfg.Problems, p.providers.Problems, prices)
	for _, list := range []agent.Problems{p.cfg.Problems, p.providers.Problems, prices, p.catalog.Problems(), ps} {
		for _, problem := range list {
			p.problems = append(p.problems, problem.String())
		}
	}
	return p, nil
}

// limitsOf returns the limits of an agent that sets none, and the highest that an agent of an untrusted project can
// set: those that the configuration names.
func limitsOf(c *config.Config) (defaults, most agent.Defaults) {
	most = agent.Defaults{MaxSteps: c.MaxSteps.V, ContextBudget: c.ContextBudget.V, BudgetUSD: c.Budget.USD.V}
	defaults = most
	defaults.StepTimeout = c.Heartbeat.Stall.V.Or(0)
	if c.MaxSteps.Origin == config.FromDefault {
		defaults.MaxSteps = kernel.DefaultMaxSteps
	}
	return defaults, most
}

// keepDefaultAgent takes back a default agent that an untrusted project has chosen if it may do more than the one
// that would run otherwise. The choice of a model is no such right, since a project has it in its providers.yaml too;
// that of an agent's command line is one.
func (p *profile) keepDefaultAgent(src config.Sources, d agent.Defaults) {
	chosen := p.cfg.DefaultAgent
	if src.TrustProject || !strings.HasPrefix(chosen.Origin, filepath.Join(src.ProjectDir, ".rnix")+string(filepath.Separator)) {
		return
	}
	src.ProjectDir = ""
	own := config.Load(src).DefaultAgent
	theirs, ours := p.catalog.Entry(chosen.V), p.catalog.Entry(own.V)
	if theirs == nil || len(theirs.Problems.Errors()) > 0 {
		return // it cannot run
	}
	why := "the agent " + own.V + " cannot be used, which would run otherwise"
	if ours != nil && len(ours.Problems.Errors()) == 0 {
		m := &theirs.Models
		acts := slices.ContainsFunc([]string{m.Provider, m.FallbackProvider, m.Preferred, m.Fallback}, p.providers.Acts)
		keys := slices.DeleteFunc(theirs.Exceeds(&ours.Manifest, d), func(key string) bool { return key == "models" && !acts })
		if len(keys) == 0 {
			return
		}
		why = "it asks for more than the agent " + own.V + ", which runs instead (" + strings.Join(keys, ", ") + ")"
	}
	p.cfg.DefaultAgent = own
	p.problems = append(p.problems, chosen.Origin+": default_agent: the project's choice "+chosen.V+" is not used: "+why+"; name it with --agent "+chosen.V+", or allow it with --trust-project")
}

// lookupIn looks variables up in an environment; the last one of a name counts.
func lookupIn(env []string) config.Lookup {
	m := make(map[string]string, len(env))
	for _, kv := range env {
		if k, v, ok := strings.Cut(kv, "="); ok {
			m[k] = v
		}
	}
	return func(name string) (string, bool) { v, ok := m[name]; return v, ok }
}

// variables are the names of the variables that the OS children of an agent see besides what all do.
func (p *profile) variables(ag *agent.Agent) []string {
	return append(slices.Clip(ag.Env), p.names...)
}

// available reports whether a provider can be used by this client, and why, or how to make it so.
func (p *profile) available(pr config.Provider) (bool, string) { return config.Available(p.lookup)(pr) }

// load returns an agent with everything that it names.
func (p *profile) load(name string, extraMCP []string) (*agent.Agent, error) {
	if name == "" {
		name = p.cfg.DefaultAgent.V
	}
	return p.catalog.Load(name, agent.LoadOptions{WorkDir: p.cwd, ProjectDir: p.project, Servers: p.servers, ExtraMCP: extraMCP, TrustProject: p.trust})
}

// giveTools settles which tools agents' command lines have that are started with this profile.
func (p *profile) giveTools(which string) error {
	switch which {
	case "":
		return nil
	case config.ToolsOwn, config.ToolsKernel:
	default:
		return types.Errorf(types.ErrInvalid, "Spawn", which, "the tools of an agent's command line are %q, its own beside the kernel's, or %q, the kernel's alone", config.ToolsOwn, config.ToolsKernel)
	}
	p.tools = which
	p.providers.List = slices.Clone(p.providers.List)
	for i := range p.providers.List {
		if pr := &p.providers.List[i]; pr.Harness() != "" {
			pr.Tools = which
		}
	}
	return nil
}
