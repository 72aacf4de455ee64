package agent

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"rnix/internal/sandbox"
	"rnix/internal/yamlfile"
)

// LoadMCP reads the MCP servers that a project sees, sorted by name: those of the user's mcp.yaml,
// of the project's .mcp.json and of its .rnix/mcp.yaml; a later one replaces an earlier one of the
// same name, with a warning. Variables are replaced by lookup, in the project's files only if it is
// trusted: otherwise an address in a repository could carry a secret away.
func LoadMCP(p Places, lookup Lookup, trustProject bool) ([]MCPEntry, Problems) {
	rs, ps := p.open()
	defer rs.Close()
	byName := map[string]MCPEntry{}
	read := func(pl place, name string, lookup Lookup) {
		src, err := yamlfile.ReadFS(pl.fsys, path.Join(pl.at, name), yamlfile.MaxBytes+1)
		file := pl.path(name)
		if err != nil {
			if !yamlfile.Missing(err) {
				ps = append(ps, Problem{File: file, Message: yamlfile.Cause(err).Error()})
			}
			return
		}
		entries, rest := ParseMCP(src, file, lookup)
		ps = append(ps, rest...)
		for _, e := range entries {
			if e.Scope = pl.scope; e.Scope == ScopeProject {
				e.Problems = append(e.Problems, e.projectSandbox()...)
			}
			e.Shared = name == ".mcp.json"
			if first, ok := byName[e.Name]; ok {
				e.Shared = e.Shared || first.Shared
				ps = append(ps, Problem{File: first.Source, Warning: true, Message: "hidden: the mcp server " + e.Name + " is taken from " + e.Source})
			}
			byName[e.Name] = e
		}
	}
	for _, pl := range p.addUser(nil, rs, ".") {
		pl.dir = filepath.Clean(p.UserConfigDir)
		read(pl, "mcp.yaml", lookup)
	}
	projectLookup := lookup
	if !trustProject {
		projectLookup = nil
	}
	for _, f := range []struct{ at, name string }{{".", ".mcp.json"}, {".rnix", "mcp.yaml"}} {
		if sandbox.IsHeld(filepath.Join(p.ProjectDir, f.at, f.name)) { // while a command runs in the sandbox that must not make it
			continue
		}
		for _, pl := range add(nil, ScopeProject, rs.project, p.ProjectDir, f.at) {
			read(pl, f.name, projectLookup)
		}
	}
	out := make([]MCPEntry, 0, len(byName))
	for _, e := range byName {
		out = append(out, e)
		ps = append(ps, e.Problems...)
	}
	slices.SortFunc(out, func(a, b MCPEntry) int { return strings.Compare(a.Name, b.Name) })
	return out, ps
}
