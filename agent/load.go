package agent

import (
	"maps"
	"slices"
	"strings"

	"rnix/internal/yamlfile"
	"rnix/types"
)

// LoadOptions say for which spawn an agent is loaded.
type LoadOptions struct {
	WorkDir    string     // where it will work: the nearest AGENTS.md from here counts; "" = none
	ProjectDir string     // the project's root, where the search for AGENTS.md ends; "" = WorkDir only
	Servers    []MCPEntry // the configured MCP servers, as LoadMCP returns them
	ExtraMCP   []string   // servers besides the agent's own, without which it is not started
	OfferedMCP []string   // servers that it has besides if they can be used: see MayOffer
	OnlyMCP    bool       // it has those of ExtraMCP and no others
	// TrustProject lets the servers of the project's files be started or contacted: they are commands
	// and addresses from the repository, and may use the caller's variables. Without it an agent that
	// names one is refused.
	TrustProject bool
}

// Load returns an agent with everything that it names; "" means DefaultAgent. Every call returns a
// value of its own. Errors: NOT_FOUND for an agent, a skill or a server that does not exist, with
// what was probably meant and what there is; INVALID with the Problems of its files; PERMISSION for
// a server of a project that is not trusted. An AGENTS.md that cannot be used is no error: the
// agent's Doc says why.
func (c *Catalog) Load(name string, o LoadOptions) (*Agent, error) {
	if name == "" {
		name = DefaultAgent
	}
	if !ValidName(name) {
		return nil, invalid("LoadAgent", name, "not the name of an agent; a name has letters, digits, '-', '_' and '.'")
	}
	e := c.agents[name]
	if e == nil {
		return nil, notFound("LoadAgent", "agent", name, slices.Collect(maps.Keys(c.agents)),
			"write .rnix/agents/"+name+"/agent.yaml to make it")
	}
	if err := e.Problems.Err("LoadAgent", name); err != nil {
		return nil, err
	}
	a := &Agent{Manifest: e.Manifest.clone(), Source: e.Source, Instructions: e.Instructions, Wrong: e.Problems.Under("devices")}
	for _, s := range a.Skills {
		skill, err := c.Skill(s)
		if err != nil {
			return nil, err
		}
		a.Loaded = append(a.Loaded, skill)
	}
	if err := a.AddServers(o); err != nil {
		return nil, err
	}
	if o.WorkDir != "" && (a.ProjectDoc == nil || *a.ProjectDoc) {
		doc, err := FindDocument(o.WorkDir, or(o.ProjectDir, o.WorkDir))
		if err != nil {
			doc = Document{Path: DocumentFile, Problem: err.Error()}
		}
		a.Doc = doc
	}
	return a, nil
}

// Skill returns the skill of a name. Errors: INVALID with the Problems of its file if there is one
// that cannot be used, NOT_FOUND if there is none.
func (c *Catalog) Skill(name string) (Skill, error) {
	if s := c.skills[name]; s != nil {
		skill := *s
		skill.Metadata = maps.Clone(s.Metadata)
		return skill, nil
	}
	if ps := c.broken[name]; len(ps) > 0 {
		return Skill{}, ps.Err("LoadSkill", name)
	}
	return Skill{}, notFound("LoadSkill", "skill", name, slices.Collect(maps.Keys(c.skills)),
		"write .rnix/skills/"+name+"/SKILL.md to make it")
}

// AddServers resolves the names of MCP servers, the agent's first. Its errors are those of Load.
func (a *Agent) AddServers(o LoadOptions) error {
	if o.OnlyMCP {
		for _, name := range a.MCPRequired {
			if !slices.Contains(o.ExtraMCP, name) {
				return invalid("LoadAgent", name, "the agent %s is not started without the mcp server %s; name it with --mcp %s, or leave --no-mcp out", a.Name, name, name)
			}
		}
		a.MCP = nil
	}
	for _, name := range o.ExtraMCP {
		if !slices.Contains(a.MCP, name) {
			a.MCP = append(a.MCP, name)
		}
	}
	if err := a.addNamed(o); err != nil {
		return err
	}
	for _, name := range o.OfferedMCP {
		i := slices.IndexFunc(o.Servers, func(e MCPEntry) bool { return e.Name == name })
		switch {
		case slices.Contains(a.MCP, name):
		case i < 0:
			a.LeftOut = append(a.LeftOut, "the MCP server "+name+" is left out: it is not set up any more")
		case o.Servers[i].Scope == ScopeProject && !o.TrustProject:
			a.LeftOut = append(a.LeftOut, "the MCP server "+name+" is left out: its project is not trusted any more; look at it with: rnix trust")
		case len(o.Servers[i].Problems.Errors()) > 0: // whoever reads the files is told of it
		case !o.Servers[i].Disabled:
			s := o.Servers[i].MCPServer.clone()
			s.Offered = true
			a.MCPConfigs = append(a.MCPConfigs, s)
		}
	}
	return nil
}

// MayOffer reports whether an agent has the servers that a project offers to all: one that names its servers has just these, and one with a list of
// devices has those that the list covers.
func (m *Manifest) MayOffer() bool {
	return m.MCP == nil && (m.Devices == nil || slices.ContainsFunc(m.Devices, func(p string) bool { return p == "/" || p == "/mnt" || p == "/mnt/mcp" }))
}

// addNamed adds the servers that are named.
func (a *Agent) addNamed(o LoadOptions) error {
	for _, name := range a.MCP {
		i := slices.IndexFunc(o.Servers, func(e MCPEntry) bool { return e.Name == name })
		if i < 0 {
			known := make([]string, len(o.Servers))
			for i, e := range o.Servers {
				known[i] = e.Name
			}
			return notFound("LoadAgent", "mcp server", name, known, "describe it in mcp.yaml or .mcp.json")
		}
		e := o.Servers[i]
		switch {
		case e.Scope == ScopeProject && !o.TrustProject:
			return types.Errorf(types.ErrPermission, "LoadAgent", name, "the mcp server comes from the project (%s), "+
				"which is not trusted to name programs and addresses; look at it, then trust the project with rnix trust, or for this time with --trust-project", e.Source)
		case len(e.Problems.Errors()) > 0:
			return e.Problems.Err("LoadAgent", name)
		case e.Disabled:
			return invalid("LoadAgent", name, "the mcp server is disabled in %s", e.Source)
		}
		s := e.MCPServer.clone()
		s.Required = slices.Contains(o.ExtraMCP, name) || slices.Contains(a.MCPRequired, name)
		a.MCPConfigs = append(a.MCPConfigs, s)
	}
	return nil
}

// clone returns a manifest that shares nothing with m; an empty list stays empty and does not become
// an absent one.
func (m Manifest) clone() Manifest {
	m.ContextBudget, m.BudgetUSD, m.MaxSteps, m.ProjectDoc = copyOf(m.ContextBudget), copyOf(m.BudgetUSD), copyOf(m.MaxSteps), copyOf(m.ProjectDoc)
	m.Skills, m.Devices, m.MCP, m.Env = slices.Clone(m.Skills), slices.Clone(m.Devices), slices.Clone(m.MCP), slices.Clone(m.Env)
	m.MCPRequired = slices.Clone(m.MCPRequired)
	return m
}

func (s MCPServer) clone() MCPServer {
	s.Args, s.Env, s.Headers = slices.Clone(s.Args), maps.Clone(s.Env), maps.Clone(s.Headers)
	return s
}

func copyOf[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// notFound says what was probably meant, what there is, and how to make what is missing.
func notFound(syscall, kind, name string, known []string, mend string) error {
	slices.Sort(known)
	var b strings.Builder
	if near := yamlfile.Nearest(name, known); near != "" {
		b.WriteString("; did you mean " + near + "?")
	}
	if len(known) == 0 {
		b.WriteString("; there is none")
	} else {
		b.WriteString("; there is " + strings.Join(known, ", "))
	}
	return types.Errorf(types.ErrNotFound, syscall, name, "no %s of this name%s; %s", kind, b.String(), mend)
}
