// Package profile is the configuration as one client sees it: its environment, its project, what the files say, and what it asked for. It is
// read anew for each start of a process, handed to the process and to its children, and what a later run needs of it is kept in the history.
package profile

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"rnix/agent"
	"rnix/internal/config"
	"rnix/internal/harness"
	"rnix/internal/permit"
	"rnix/internal/price"
	"rnix/internal/sandbox"
	"rnix/kernel"
	"rnix/runtime/env"
	"rnix/types"
)

// Profile is the configuration that one client sees: its environment, its project, what the files say,
// and which model it asked for. It is made for each spawn, does not change once there is a process, and
// is handed to the process's devices and to its children.
type Profile struct {
	Cwd         string // absolute
	Env         []string
	Lookup      config.Lookup
	Trust       bool // in the files of the project, when it was read; see Trusts
	Config      config.Config
	Providers   config.Providers
	Catalog     *agent.Catalog
	Servers     []agent.MCPEntry
	Problems    []string
	Warnings    []string         // those of the problems that are warnings
	Mistakes    config.Problems  // those of the problems because of which nothing may be started
	Asked       config.Wish      // the client's part of it
	Member      Member           // of a platform
	Names       []string         // of variables that OS children see besides the agent's
	Lent        []string         // those that the agent has which starts a process with it, of which Names can hand on no others; nil = no agent does
	Permissions permit.Settings  // about which calls of it a person is asked
	Sandbox     sandbox.Settings // how the commands of what is started with it are confined
	// CLI says that what runs with it is an agent CLI.
	CLI      bool
	Recorded bool // what is started with it is asked for by a history, perhaps of an earlier version
	// NoMCP says that what is started with it has no MCP servers but those that are named for it, nor have its children. OfferedMCP are servers that it has
	// besides if it can, and its children have not: those of the project's .mcp.json.
	NoMCP      bool
	OfferedMCP []string

	sources config.Sources         // of the configuration
	learn   func(name, key string) // a key that was read from a file is a secret
	keys    *KeyCommands           // runs the commands that print keys; nil = none are run
	project string                 // the project's root; Cwd if there is none
	pin     *pin                   // Trust is that of rnix trust, in what was looked at; nil = it was asked for
	prices  price.Book
	tools   string // which tools agents' command lines have: config.ToolsOwn, ToolsKernel; empty = as each provider says
}

// Member is what makes a process part of a platform. Part of the on-disk format.
type Member struct {
	Session string `json:"session,omitempty"` // as the platform names it
	Issue   string `json:"issue,omitempty"`
}

// Of returns the profile of a process; false if it has none.
func Of(p *kernel.Process) (*Profile, bool) {
	own, ok := p.Profile().(*Profile)
	return own, ok
}

// FailedSteps is kernel.SpawnOpts.FailedSteps.
func (p *Profile) FailedSteps() int {
	if n := p.Config.FailedSteps.V; n > 0 {
		return n
	}
	return -1
}

// keyed returns the providers and what else has a key as they have: the search engine.
func keyed(p *Profile) []config.Provider {
	if p.Config.Search.Keyed.APIKeyEnv == "" {
		return p.Providers.List
	}
	return append(slices.Clip(p.Providers.List), p.Config.Search.Keyed)
}

// Choose settles the model of an agent, by what the client asked for.
func (p *Profile) Choose(m agent.Models) (config.Choice, error) { return p.ChooseBy(m, p.Asked) }

// ChooseBy settles the model of an agent, by what w asks for.
func (p *Profile) ChooseBy(m agent.Models, w config.Wish) (config.Choice, error) {
	w.Agent, w.ProjectDefault, w.UserDefault = m, p.Providers.ProjectDefault, p.Providers.UserDefault
	return config.Choose(p.Providers.List, w, p.Available)
}

// Available reports whether a provider can be used by this client, and why, or how to make it so.
func (p *Profile) Available(pr config.Provider) (bool, string) {
	ok, why := config.Available(lookupIn(p.Env))(pr)
	if ok && len(pr.APIKeyCommand) > 0 {
		if err := p.keys.Failed(&pr); err != nil {
			why += "; it has failed: " + err.Error()
		}
	}
	return ok, why
}

// Load returns an agent with everything that it names; an empty name is the default agent.
func (p *Profile) Load(name string, extraMCP []string) (*agent.Agent, error) {
	if name == "" {
		name = p.Config.DefaultAgent.V
	}
	return load(p, name, extraMCP)
}

// Variables are the names of the variables that the OS children of an agent see besides what all do. Those that an agent has named
// are among them if it has them itself: when what it has started is resumed, they come from the environment of a person.
func (p *Profile) Variables(ag *agent.Agent) []string {
	names := slices.Clip(ag.Env)
	for _, name := range p.Names {
		if p.Lent == nil || slices.Contains(p.Lent, name) {
			names = append(names, name)
		}
	}
	return names
}

// Bind makes p that of what an agent starts, which has the profile above and the variables of these names: it costs what the agent itself does,
// has no other variables, and is confined at least as below says. If the agent is confined, then what says where the home is and which programs are run
// (HOME, PATH and all others that every child may see), and where agent CLIs have their logins and vendors are (ANTHROPIC_BASE_URL), is as above, or as the daemon has it where that is nil, and of other variables only those
// count that the agent has, and Rnix's own: an agent could name there what it may not read, or programs and hosts of its own to a model, which has the network and a login.
func (p *Profile) Bind(above *Profile, variables []string, below sandbox.Settings) {
	p.Lent, p.Sandbox = append([]string{}, variables...), sandbox.MeetSettings(below, p.Sandbox)
	if p.CLI = above != nil && above.CLI; above != nil {
		p.Permissions = permit.Meet(above.Permissions, p.Permissions)
		p.NoMCP = p.NoMCP || above.NoMCP
	}
	if below.Within != nil && !below.Off() {
		from := os.Environ()
		if above != nil {
			from = above.Env
		}
		pick := func(environ []string, which func(name string) bool) []string {
			return slices.DeleteFunc(slices.Clone(environ), func(kv string) bool { name, _, _ := strings.Cut(kv, "="); return !which(name) })
		}
		own := pick(p.Env, func(name string) bool {
			return !settled(name) && (strings.HasPrefix(name, "RNIX_") || slices.Contains(variables, name))
		})
		p.Env = append(own, pick(from, settled)...)
		p.sources.Lookup = lookupIn(p.Env)
		p.Providers = config.LoadProviders(p.sources) // whose addresses can be variables
		p.Lookup = config.Keyed(p.sources.Lookup, keyed(p), p.learn)
	}
	if above != nil {
		p.CostAs(above)
	}
}

// settled reports whether a variable is not what an agent says: see Bind.
func settled(name string) bool {
	return env.Allowed(name) || harness.IsVariable(name) || strings.HasSuffix(name, "_BASE_URL")
}

// BindAs binds p as another profile is bound, which it was read for again.
func (p *Profile) BindAs(other *Profile) {
	if other.Lent != nil {
		p.Bind(other, other.Lent, other.Sandbox)
	}
	p.Sandbox = other.Sandbox
}

// GiveTools settles which tools agents' command lines have that are started with this profile.
func (p *Profile) GiveTools(which string) error {
	switch which {
	case "":
		return nil
	case config.ToolsOwn, config.ToolsKernel:
	default:
		return types.Errorf(types.ErrInvalid, "Spawn", which, "the tools of an agent's command line are %q, its own beside the kernel's, or %q, the kernel's alone", config.ToolsOwn, config.ToolsKernel)
	}
	p.tools = which
	p.Providers.List = slices.Clone(p.Providers.List)
	for i := range p.Providers.List {
		if pr := &p.Providers.List[i]; pr.Harness() != "" {
			pr.Tools = which
		}
	}
	return nil
}

// ForChild returns the profile of a child that a model starts: without what is the parent's own.
func (p *Profile) ForChild() *Profile {
	if p.Names == nil && p.Member.Session == "" && !p.Recorded && p.OfferedMCP == nil {
		return p
	}
	own := *p
	own.Names, own.Member, own.Recorded, own.OfferedMCP = nil, Member{}, false, nil
	return &own
}

// Trusting returns the profile with trust in the files of its project.
func (p *Profile) Trusting() *Profile {
	if p.TrustAsked() {
		return p
	}
	own := *p
	own.Trust, own.pin = true, nil
	return &own
}

// CostAs makes p cost what above does: prices by which budgets are kept are not an agent's to give.
func (p *Profile) CostAs(above *Profile) {
	p.prices, p.Config.Budget.UnknownPrice = above.prices, above.Config.Budget.UnknownPrice
	p.Env = slices.DeleteFunc(slices.Clone(p.Env), func(kv string) bool { return strings.HasPrefix(kv, unknownPrice) })
	if v := above.Config.Budget.UnknownPrice.V; v > 0 { // for what reads the configuration again
		p.Env = append(p.Env, unknownPrice+strconv.FormatFloat(v, 'f', -1, 64))
	}
}

// unknownPrice is the variable of config.Budget.UnknownPrice, up to its value.
const unknownPrice = "RNIX_BUDGET_UNKNOWN_PRICE_USD_PER_MTOK="
