package profile

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rnix/agent"
	"rnix/internal/config"
	"rnix/internal/harness"
	"rnix/internal/sandbox"
	"rnix/kernel"
	"rnix/runtime/env"
	"rnix/types"
)

// Reader reads the configuration, as clients see it and as the daemon itself does.
type Reader struct {
	UserDir string        // the user's configuration directory
	Home    string        // the user's
	Lookup  config.Lookup // the variables that the daemon was started with
	// Learn is told of what is secret before anything is done with it.
	Learn func([]env.Secret)
	// Keys runs the commands that print keys of providers; nil = none are run.
	Keys *KeyCommands

	unread config.Problems // the mistakes of the configuration because of which this daemon starts nothing
}

// Read reads the configuration for a client in cwd with the environment environ, which is the daemon's if it is empty. An empty cwd is the
// user's home.
func (r *Reader) Read(cwd string, environ []string, trust bool) (*Profile, error) {
	cwd, err := directory(cmp.Or(cwd, r.Home))
	if err != nil {
		return nil, err
	}
	if len(environ) == 0 {
		environ = os.Environ()
	}
	environ = r.beyondGateway(environ)
	home, _ := lookupIn(environ)("HOME")
	project, _ := agent.ProjectRoot(cwd, home)
	project = cmp.Or(project, cwd)
	plain := func() *Profile { return r.read(cwd, project, home, environ, trust) }
	if trust {
		return plain(), nil
	}
	pin, problem := r.trusted(project)
	if pin != nil {
		p := r.read(cwd, project, home, environ, true)
		pin.plain = plain
		if p.pin = pin; pin.holds() { // after they were read
			return p, nil
		}
		_, problem = r.trusted(project)
	}
	p := plain()
	if problem != "" {
		p.Problems = append(p.Problems, problem)
	}
	return p, nil
}

// read reads the configuration of a project.
func (r *Reader) read(cwd, project, home string, environ []string, trust bool) *Profile {
	p := &Profile{Cwd: cwd, Env: environ, Trust: trust, Lookup: lookupIn(environ), project: project, keys: r.Keys}
	src := config.Sources{UserDir: r.UserDir, ProjectDir: p.project, Home: home, Lookup: p.Lookup, TrustProject: trust}
	p.sources, p.Config = src, config.Load(src)
	p.Sandbox = sandbox.Usual().With(p.Config.Sandbox.Settings())
	for _, rules := range p.Config.Permissions {
		p.Permissions = p.Permissions.With(rules)
	}
	p.Providers = config.LoadProviders(src)
	var prices config.Problems
	p.prices, prices = config.LoadPrices(src)
	r.Learn(env.Secrets(environ))
	places := agent.Places{ProjectDir: p.project, UserConfigDir: r.UserDir, Home: home, TrustProject: trust}
	places.Defaults, places.Most = limitsOf(&p.Config)
	p.Catalog = agent.Discover(places)
	p.keepDefaultAgent(src, places.Defaults)
	var servers agent.Problems
	p.Servers, servers = agent.LoadMCP(places, p.Lookup, trust)
	p.learn = func(name, key string) { r.Learn([]env.Secret{{Name: name, Value: key}}) }
	p.Lookup = config.Keyed(p.Lookup, keyed(p), p.learn) // from here on: what a server is given is in the environment
	p.Sandbox = p.Sandbox.With(keysHidden(p))
	r.Learn(p.secrets())
	p.Mistakes = config.Mistakes(p.Config.Problems, p.Providers.Problems, prices)
	for _, list := range []agent.Problems{p.Config.Problems, p.Providers.Problems, prices, p.Catalog.Problems(), servers} {
		p.Problems = append(p.Problems, list.Strings()...)
		for i := range list {
			if list[i].Warning {
				p.Warnings = append(p.Warnings, list[i].String())
			}
		}
	}
	return p
}

// directory returns the clean path of a working directory, or why it is none.
func directory(cwd string) (string, error) {
	if !filepath.IsAbs(cwd) {
		return "", types.Errorf(types.ErrInvalid, "Spawn", cwd, "the working directory is not an absolute path")
	}
	cwd = filepath.Clean(cwd)
	s, err := os.Stat(cwd)
	if err == nil && !s.IsDir() {
		return "", types.Errorf(types.ErrInvalid, "Spawn", cwd, "not a directory")
	}
	if err != nil {
		if p := (*os.PathError)(nil); errors.As(err, &p) {
			err = p.Err // the path is named already
		}
		return "", types.Errorf(types.ErrNotFound, "Spawn", cwd, "%w", err)
	}
	return cwd, nil
}

// beyondGateway returns the environment of a client without what its agent CLI was given by the model gateway, which opens nothing to others: keys are those
// that the daemon has, and addresses are in their places.
func (r *Reader) beyondGateway(environ []string) []string {
	of := func(kv string) bool { _, v, _ := strings.Cut(kv, "="); return harness.OfGateway(v) }
	if !slices.ContainsFunc(environ, of) {
		return environ
	}
	out := slices.DeleteFunc(slices.Clone(environ), of)
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		if v, ok := r.Lookup(name); ok && of(kv) && strings.HasSuffix(name, "_URL") {
			out = append(out, name+"="+v)
		}
	}
	return out
}

// lookupIn looks variables up in an environment; the last one of a name counts.
func lookupIn(environ []string) config.Lookup {
	m := make(map[string]string, len(environ))
	for _, kv := range environ {
		if k, v, ok := strings.Cut(kv, "="); ok {
			m[k] = v
		}
	}
	return func(name string) (string, bool) { v, ok := m[name]; return v, ok }
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
func (p *Profile) keepDefaultAgent(src config.Sources, d agent.Defaults) {
	chosen := p.Config.DefaultAgent
	if src.TrustProject || !strings.HasPrefix(chosen.Origin, filepath.Join(src.ProjectDir, ".rnix")+string(filepath.Separator)) {
		return
	}
	src.ProjectDir = ""
	own := config.Load(src).DefaultAgent
	theirs, ours := p.Catalog.Entry(chosen.V), p.Catalog.Entry(own.V)
	if theirs == nil || len(theirs.Problems.Errors()) > 0 {
		return // it cannot run
	}
	why := "the agent " + own.V + " cannot be used, which would run otherwise"
	if ours != nil && len(ours.Problems.Errors()) == 0 {
		m := &theirs.Models
		acts := slices.ContainsFunc([]string{m.Provider, m.FallbackProvider, m.Preferred, m.Fallback}, p.Providers.Acts)
		keys := slices.DeleteFunc(theirs.Exceeds(&ours.Manifest, d), func(key string) bool { return key == "models" && !acts })
		if len(keys) == 0 {
			return
		}
		why = "it asks for more than the agent " + own.V + ", which runs instead (" + strings.Join(keys, ", ") + ")"
	}
	p.Config.DefaultAgent = own
	p.Problems = append(p.Problems, chosen.Origin+": default_agent: the project's choice "+chosen.V+" is not used: "+why+"; name it with --agent "+chosen.V+", or allow it with --trust-project")
}
