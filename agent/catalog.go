package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"rnix/internal/yamlfile"
)

// DefaultAgent is the agent that is used when nobody names one.
const DefaultAgent = "assistant"

// Catalog is what a project sees: its own agents and skills, the user's, and the built-in ones. It
// was read once and does not change. Safe for concurrent use.
type Catalog struct {
	from     Places
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
	settled      bool     // it has taken the place of another
}

// maxInstructions is the most that an instructions.md may hold, in bytes.
const maxInstructions = 128 << 10

// Discover reads all places. It does not fail: what is wrong is in Problems. Directories that are
// missing are no problem. The first place that has a name wins: the project, the user, the program;
// what is hidden so is a warning. An agent with a mistake hides the ones behind it nevertheless, so
// that a typing mistake does not silently start another agent.
//
// Without p.TrustProject, an agent of the project does not replace one of the user or of the program that may do
// less (Manifest.Exceeds), and a skill of the project does not replace any; the warning names both files. The
// project's agents get none of the variables under env, and no limit above p.Most.
func Discover(p Places) *Catalog {
	c := &Catalog{from: p, agents: map[string]*AgentEntry{}, skills: map[string]*Skill{}, broken: map[string]Problems{}}
	rs, ps := p.open()
	defer rs.Close()
	c.problems = ps
	for _, pl := range p.agents(rs) {
		c.problems = append(c.problems, pl.each(func(name, at string) { c.addAgent(pl, name, at) })...)
	}
	c.restrict()
	for _, e := range c.Agents() {
		c.problems = append(c.problems, e.Problems...)
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
	if c.agents[name] == nil {
		c.agents[name] = e
		return
	}
	c.join(name, e, pl.path(name))
}

// join decides which of two agents of a name counts: the one that is there, or e of a place behind it.
func (c *Catalog) join(name string, e *AgentEntry, file string) {
	first := c.agents[name]
	if why := refuses(e, first, c.from); why != "" && !first.settled {
		c.problems = append(c.problems, Problem{File: filepath.Join(first.Source, ManifestFile), Warning: true,
			Message: fmt.Sprintf("the project's agent %s is not used: %s; the agent %s from %s is used instead; read the file, then allow it with --trust-project, or give it another name",
				name, why, name, from(e))})
		c.agents[name] = e
		return
	}
	first.settled = true
	c.hidden(file, "agent", name, first.Source)
}

// refuses says why the agent e of the user or the program does not let first, the project's agent of the same
// name, take its place; "" if it does. One with mistakes does take it: it cannot be loaded.
func refuses(e, first *AgentEntry, p Places) string {
	if first.Scope != ScopeProject || p.TrustProject || len(first.Problems.Errors()) > 0 {
		return ""
	}
	if len(e.Problems.Errors()) > 0 {
		return "the one that it replaces has a mistake"
	}
	if keys := first.Exceeds(&e.Manifest, p.Defaults); len(keys) > 0 {
		return "it asks for more than the one that it replaces (" + strings.Join(keys, ", ") + ")"
	}
	return ""
}

// restrict takes from the agents of an untrusted project what only the user may give, and says so.
func (c *Catalog) restrict() {
	for _, e := range c.agents {
		if e.Scope != ScopeProject || c.from.TrustProject {
			continue
		}
		file := filepath.Join(e.Source, ManifestFile)
		if len(e.Env) > 0 {
			e.Problems = append(e.Problems, Problem{File: file, Key: "env", Warning: true, Message: fmt.Sprintf(
				"the commands of the project's agent %s do not get %s: a project cannot hand out your variables; read the file, then allow it with --trust-project", e.Name, strings.Join(e.Env, ", "))})
			e.Env = nil
		}
		m, said := e.within(c.from.Most)
		e.Manifest = m
		for _, s := range said {
			key, _, _ := strings.Cut(s, ":")
			e.Problems = append(e.Problems, Problem{File: file, Key: key, Warning: true, Message: fmt.Sprintf(
				"the project's agent %s gets your own limit, %s: a project can only lower it; allow it with --trust-project", e.Name, s)})
		}
	}
}

// from names where an agent comes from.
func from(e *AgentEntry) string {
	if e.Scope == ScopeBuiltIn {
		return ScopeBuiltIn
	}
	return filepath.Join(e.Source, ManifestFile)
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
		e.Problems = append(e.Problems, Problem{File: file, Message: "missing; the agent has no own instructions", Warning: true})
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
		if first.Scope == ScopeProject && s.Scope != ScopeProject && !c.from.TrustProject && !sameText(first, &s) {
			c.problems = append(c.problems, Problem{File: filepath.Join(first.Dir, SkillFile), Warning: true, Message: fmt.Sprintf(
				"the project's skill %s is not used: the skill %s from %s has the same name and is used instead; read the file, then allow it with --trust-project, or give it another name",
				s.Name, s.Name, orBuiltIn(s.Dir))})
			c.skills[s.Name] = &s
			return
		}
		if !sameText(first, &s) { // else it is a link or a copy of the same
			c.hidden(pl.path(name), "skill", s.Name, orBuiltIn(first.Dir))
		}
		return
	}
	c.skills[s.Name] = &s
}

func sameText(a, b *Skill) bool { return a.Body == b.Body && a.Description == b.Description }

func (c *Catalog) hidden(file, kind, name, by string) {
	c.problems = append(c.problems, Problem{File: file, Warning: true, Message: "hidden: the " + kind + " " + name + " is taken from " + by})
}

func orBuiltIn(dir string) string {
	if dir == "" {
		return ScopeBuiltIn
	}
	return dir
}

// Entry returns the agent of a name that would run, also one that cannot be loaded; nil if there is none. It is not
// to be changed.
func (c *Catalog) Entry(name string) *AgentEntry { return c.agents[name] }

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
