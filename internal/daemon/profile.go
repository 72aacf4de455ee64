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
	asked     config.Wish // the client's part of it
	tools     string      // which tools agents' command lines have: config.ToolsOwn, ToolsKernel; empty = as each provider says
	member    member      // of a platform
	names     []string    // of variables that OS children see besides the agent's
	recorded  bool        // what is started with it is asked for by a history, perhaps of an earlier version
}

// choose settles the model of an agent, by what the client asked for.
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
	places := agent.Places{ProjectDir: p.project, UserConfigDir: d.configDir, Home: home}
	p.catalog = agent.Discover(places)
	var ps agent.Problems
	p.servers, ps = agent.LoadMCP(places, p.lookup, trust)
	learn(d, p.secrets())
	for _, list := range []agent.Problems{p.cfg.Problems, p.providers.Problems, prices, p.catalog.Problems(), ps} {
		for _, problem := range list {
			p.problems = append(p.problems, problem.String())
		}
	}
	return p, nil
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
