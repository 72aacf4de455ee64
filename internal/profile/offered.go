package profile

import (
	"fmt"

	"rnix/agent"
)

// OfferMCP settles which servers of the project's .mcp.json what is started with p has without being asked for: all that can be used, if the project is
// trusted and the agent names no servers and no devices of its own that leave them out. In a project that is not trusted it returns a line that says so;
// "" if there is nothing to say. none says that no server is wanted but those that are named,
// as p does of what is started by a process that was started so.
func OfferMCP(p *Profile, agentName string, none bool) (untrusted string) {
	if p.NoMCP = p.NoMCP || none; p.NoMCP {
		return ""
	}
	if agentName == "" {
		agentName = p.Config.DefaultAgent.V
	}
	if agentName == "" {
		agentName = agent.DefaultAgent
	}
	if e := p.Catalog.Entry(agentName); e == nil || !e.Manifest.MayOffer() {
		return ""
	}
	var names []string
	for i := range p.Servers {
		if s := &p.Servers[i]; s.Shared && s.Scope == agent.ScopeProject && !s.Disabled && len(s.Problems.Errors()) == 0 {
			names = append(names, s.Name)
		}
	}
	switch {
	case len(names) == 0:
	case p.Trust:
		p.OfferedMCP = names
	case len(names) == 1:
		return "the MCP server of .mcp.json is not started, since the project is not trusted: look at it, and trust it with: rnix trust (or say --no-mcp)"
	default:
		return fmt.Sprintf("the %d MCP servers of .mcp.json are not started, since the project is not trusted: look at them, and trust it with: rnix trust (or say --no-mcp)", len(names))
	}
	return ""
}
