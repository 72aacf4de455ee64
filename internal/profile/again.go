package profile

import (
	"bytes"
	"encoding/json"
	"slices"

	"rnix/agent"
	"rnix/types"
)

// Again returns the MCP server of a name as what was started with was may have it anew. read reads the configuration as it is now, with trust in the
// project or with that which rnix trust has given it. Trust that was asked for at the start, as with --trust-project, is in what a person could look at then:
// it holds for a server whose entry is still the same. NOT_FOUND if none is set up; PERMISSION if its project is not trusted, if its entry is another one, or if
// the name now comes from the project and did not, or the other way round; INVALID if its entry has a mistake or is disabled; and the errors of read.
func Again(was *Profile, name string, read func(trust bool) (*Profile, error)) (agent.MCPServer, error) {
	now, err := read(false)
	if err != nil {
		return agent.MCPServer{}, err
	}
	s, err := server(now, name)
	asked := types.CodeOf(err) == types.ErrPermission && was.TrustAsked()
	if asked {
		if now, err = read(true); err != nil {
			return agent.MCPServer{}, err
		}
		s, err = server(now, name)
	}
	if err != nil {
		return agent.MCPServer{}, err
	}
	before, after := entry(was, name), entry(now, name)
	switch {
	case before.Scope != after.Scope:
		return agent.MCPServer{}, types.Errorf(types.ErrPermission, "Reload", name, "it now comes from %s, and did not when the process was started; "+
			"look at it, then start the process anew", after.Source)
	case asked && !same(&before.MCPServer, &after.MCPServer):
		return agent.MCPServer{}, types.Errorf(types.ErrPermission, "Reload", name, "it is not what it was when you trusted the project (%s); look at it with: rnix trust %s",
			after.Source, now.project)
	}
	return s, nil
}

// server returns the MCP server of a name, as it may be started now.
func server(p *Profile, name string) (agent.MCPServer, error) {
	a := agent.Agent{Manifest: agent.Manifest{MCP: []string{name}}}
	if err := a.AddServers(agent.LoadOptions{Servers: slices.Clip(p.Servers), TrustProject: p.Trusts()}); err != nil {
		return agent.MCPServer{}, err
	}
	if len(a.MCPConfigs) != 1 {
		return agent.MCPServer{}, types.Errorf(types.ErrNotFound, "Reload", name, "no MCP server of this name is set up any more")
	}
	return a.MCPConfigs[0], nil
}

// entry returns the MCP server of a name as it is configured; the zero value if none is.
func entry(p *Profile, name string) (e agent.MCPEntry) {
	if i := slices.IndexFunc(p.Servers, func(s agent.MCPEntry) bool { return s.Name == name }); i >= 0 {
		e = p.Servers[i]
	}
	return e
}

// same reports whether two entries start or reach the same.
func same(a, b *agent.MCPServer) bool {
	was, err := json.Marshal(a)
	now, nerr := json.Marshal(b)
	return err == nil && nerr == nil && bytes.Equal(was, now) // they hold texts and numbers only
}
