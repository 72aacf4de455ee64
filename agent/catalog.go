package agent

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"rnix/internal/yamlfile"
)

// DefaultAgent is the agent that is used when nobody names one.
const DefaultAgent = "assistant"

// Catalog is what a project sees: its own agents and skills, the user's, and the built-in ones. It
// was read once and does not change. Safe for concurrent use.
type Catalog struct {
	agents   map[string]*AgentEntry
	skills   map[string]*Skill
	broken   map[string]Problems // skills that were skipped, by the name of their directory
	problems Problems
}

// AgentEntry is an agent of the catalog.
type AgentEntry struct {
	Manifest
	Scope        string // project, user or built-in
	Source       string // the directory, or "built-in"
	Instructions string
	Problems     Problems // it can be loaded unless Problems.Errors is not empty
}

// maxInstructions is the most that an instructions.md may hold, in bytes.
const maxInstructions = 128 << 10

// Discover reads all places. It does not fail: what is wrong is in Problems. Directories that are
// missing are no problem. The first place that has a name wins: the project, the user, the program;
// what is hidden so is a warning. An agent with a mistake hides the ones behind it nevertheless, so
// that a typing mistake does not silently start another agent.
func Discover(p Places) *Catalog {
	c := &Catalog{agents: map[string]*AgentEntry{}, skills: map[string]*Skill{}, broken: map[string]Problems{}}
	rs, ps := p.open()
	defer rs.Close()
	c.problems = ps
	for _, pl := range p.agents(rs) {
		c.problems = append(c.problems, pl.each(func(name, at string) { c.addAgent(pl, name, at) })...)
	}
	for _, pl := range p.skills(rs) {
		c.problems = append(c.problems, pl.each(func(name, at string) { c.addSkill(pl, name, at) })...)
	}
	return c
}

// addAgent adds the agent in a directory of a place.
func (c *Catalog) addAgent(pl place, name, at string) {
	e := readAgent(pl, name, at)
	if e == nil {
		return
	}
	if first := c.agents[name]; first != nil {
		c.hidden(pl.path(name), "agent", name, first.Source)
		return
	}
	c.agents[name] = e
	c.problems = append(c.problems, e.Problems...)
}

// readAgent returns nil if the directory holds no agent.yaml.
func readAgent(pl place, name, at string) *AgentEntry {
	e := &AgentEntry{Scope: pl.scope, Source: pl.path(name)}
	if pl.dir == "" {
		e.Source = ScopeBuiltIn
	}
	file := pl.path(name, ManifestFile)
	src, err := yamlfile.ReadFS(pl.fsys, path.Join(at, ManifestFile), yamlfile.MaxBytes+1)
	switch {
	case err == nil:
		e.Manifest, e.Problems = parseManifest(src, file, name)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	default:
		e.Problems = Problems{{File: file, Message: yamlfile.Cause(err).Error()}}
	}
	e.Name = name
	if !ValidName(name) && len(e.Problems.Errors()) == 0 {
		e.Problems = append(e.Problems, Problem{File: file, Message: "the directory's name cannot be the name of an agent"})
	}
	text, err := yamlfile.ReadFS(pl.fsys, path.Join(at, InstructionsFile), maxInstructions+1)
	file = pl.path(name, InstructionsFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Problems = append(e.Problems, Problem{File: file, Message: "missing; the agent has no instructions of its own", Warning: true})
	case err != nil:
		e.Problems = append(e.Problems, Problem{File: file, Message: yamlfile.Cause(err).Error()})
	case len(text) > maxInstructions:
		e.Problems = append(e.Problems, Problem{File: file, Message: "larger than " + itoa(maxInstructions>>10) + " KiB; move parts of it into skills or files that the agent reads"})
	default:
		e.Instructions = cut(text, maxInstructions)
	}
	return e
}

// addSkill adds the skill in a directory of a place.
func (c *Catalog) addSkill(pl place, name, at string) {
	if _, err := fs.Stat(pl.fsys, path.Join(at, SkillFile)); errors.Is(err, fs.ErrNotExist) {
		return
	}
	s, ps := readSkill(pl.fsys, at, pl.path(name))
	c.problems = append(c.problems, ps...)
	if bad := ps.Errors(); len(bad) > 0 {
		c.broken[name] = append(c.broken[name], bad...)
		return
	}
	s.Scope = pl.scope
	if pl.dir == "" {
		s.Dir = "" // the program's own skills have no files
	}
	if first := c.skills[s.Name]; first != nil {
		if first.Body != s.Body || first.Description != s.Description { // else it is a link or a copy of the same
			c.hidden(pl.path(name), "skill", s.Name, orBuiltIn(first.Dir))
		}
		return
	}
	c.skills[s.Name] = &s
}

func (c *Catalog) hidden(file, kind, name, by string) {
	c.problems = append(c.problems, Problem{File: file, Warning: true, Message: "hidden: the " + kind + " " + name + " is taken from " + by})
}

func orBuiltIn(dir string) string {
	if dir == "" {
		return ScopeBuiltIn
	}
	return dir
}

// Agents returns all agents by name, also those that cannot be loaded.
func (c *Catalog) Agents() []AgentEntry {
	out := make([]AgentEntry, 0, len(c.agents))
	for _, e := range c.agents {
		out = append(out, *e)
	}
	slices.SortFunc(out, func(a, b AgentEntry) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Skills returns all usable skills by name.
func (c *Catalog) Skills() []Skill {
	out := make([]Skill, 0, len(c.skills))
	for _, s := range c.skills {
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b Skill) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Problems returns what was wrong with agents and skills, and what is hidden.
func (c *Catalog) Problems() Problems { return slices.Clone(c.problems) }
