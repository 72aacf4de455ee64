// Package initfile reads init.yaml, which says what the daemon keeps running from its start, and files of the same
// form for `rnix supervise up`. It owns the form: keys, ranges, and the place of every mistake. Which agents and
// providers there are it does not know: who does reports them through File.Problemf.
package initfile

import (
	"slices"
	"strconv"
	"strings"

	"rnix/agent"
	"rnix/internal/sandbox"
	"rnix/internal/yamlfile"
)

// Name is the file's name in the user's configuration directory.
const Name = "init.yaml"

// File is a file that was read.
type File struct {
	Version     string       `yaml:"version"`
	Services    []Service    `yaml:"services"`
	Supervisors []Supervisor `yaml:"supervisors"`

	doc *yamlfile.Doc
}

// Service is a part of the daemon. There is none that has to be started: see checkService.
type Service struct {
	Name     string            `yaml:"name"`
	Type     string            `yaml:"type"`
	Required bool              `yaml:"required"`
	Config   map[string]string `yaml:"config"`
}

// Supervisor says what a supervisor starts and how it keeps that running. Pointers tell "not said" from zero. The JSON
// form is kept in histories. Part of the on-disk format.
type Supervisor struct {
	Name          string         `yaml:"name" json:"name,omitempty"`
	Strategy      string         `yaml:"strategy" json:"strategy,omitempty"`             // one_for_one, one_for_all, rest_for_one, simple_one_for_one
	MaxRestarts   *int           `yaml:"max_restarts" json:"max_restarts,omitempty"`     // within MaxWindow
	MaxWindow     agent.Duration `yaml:"max_window" json:"max_window,omitempty"`         //
	Required      bool           `yaml:"required" json:"-"`                              // of init.yaml: the daemon does not start without it
	Cwd           string         `yaml:"cwd" json:"cwd,omitempty"`                       // what the children have if they say nothing; absolute after Settle
	ContextBudget *int           `yaml:"context_budget" json:"context_budget,omitempty"` // tokens of all children together, over all restarts
	BudgetUSD     *float64       `yaml:"budget_usd" json:"budget_usd,omitempty"`         // the same in dollars
	Allow         []string       `yaml:"allow" json:"allow,omitzero"`                    // device paths
	Deny          []string       `yaml:"deny" json:"deny,omitempty"`
	Trust         bool           `yaml:"trust_project" json:"trust_project,omitempty"`
	Children      []Child        `yaml:"children" json:"children"`
}

// Child is an agent, or a supervisor below.
type Child struct {
	Name     string         `yaml:"name" json:"name"`
	Restart  string         `yaml:"restart" json:"restart,omitempty"` // permanent, transient, temporary
	Shutdown Shutdown       `yaml:"shutdown" json:"shutdown,omitempty"`
	Backoff  Backoff        `yaml:"backoff" json:"backoff,omitzero"`
	Intent   string         `yaml:"intent" json:"intent,omitempty"`
	Agent    string         `yaml:"agent" json:"agent,omitempty"`
	Provider string         `yaml:"provider" json:"provider,omitempty"`
	Model    string         `yaml:"model" json:"model,omitempty"`
	Effort   string         `yaml:"reasoning_effort" json:"reasoning_effort,omitempty"`
	MaxSteps *int           `yaml:"max_steps" json:"max_steps,omitempty"`
	Budget   *int           `yaml:"context_budget" json:"context_budget,omitempty"` // tokens of one run
	USD      *float64       `yaml:"budget_usd" json:"budget_usd,omitempty"`         // the same in dollars
	Timeout  agent.Duration `yaml:"timeout" json:"timeout,omitempty"`               // of one run
	Cwd      string         `yaml:"cwd" json:"cwd,omitempty"`
	Env      []string       `yaml:"env" json:"env,omitempty"` // names of variables, besides the agent's
	MCP      []string       `yaml:"mcp" json:"mcp,omitempty"` // servers, besides the agent's
	Allow    []string       `yaml:"allow" json:"allow,omitzero"`
	Deny     []string       `yaml:"deny" json:"deny,omitempty"`
	// Sandbox says how its commands are confined, and Network is short for its net; empty after Parse. Both only tighten what the user has.
	Sandbox agent.Sandbox `yaml:"sandbox" json:"sandbox,omitzero"`
	Network sandbox.Net   `yaml:"network" json:"-"`

	Supervisor *Supervisor `yaml:"supervisor" json:"supervisor,omitempty"` // instead of everything from Intent on
}

// Backoff is how long a child is down before it is started again.
type Backoff struct {
	Initial agent.Duration `yaml:"initial" json:"initial,omitempty"`
	Factor  float64        `yaml:"factor" json:"factor,omitempty"` // 0 = 1
	Max     agent.Duration `yaml:"max" json:"max,omitempty"`
}

// Parse reads a file. Problems says what is wrong with it; what is right is there all the same.
func Parse(src []byte, name string) *File {
	f := new(File)
	f.doc = yamlfile.Decode(src, f, yamlfile.Options{File: name, AllowEmpty: true})
	f.check()
	return f
}

// Problems returns what is wrong, in the order of the file.
func (f *File) Problems() yamlfile.Problems { return f.doc.Problems() }

// Problemf reports a mistake in the value of a key, such as supervisors[0].children[1].agent.
func (f *File) Problemf(key, format string, args ...any) { f.doc.Problemf(key, format, args...) }

// Warnf reports at a key what can be started, and may not be meant.
func (f *File) Warnf(key, format string, args ...any) { f.doc.Warnf(key, format, args...) }

// Key is the key of a supervisor.
func Key(i int) string { return "supervisors[" + strconv.Itoa(i) + "]" }

// ChildKey is the key of a child of the supervisor at a key.
func ChildKey(supervisor string, i int) string {
	return supervisor + ".children[" + strconv.Itoa(i) + "]"
}

// Bad reports whether a supervisor has a mistake that is more than a warning.
func (f *File) Bad(i int) bool {
	return len(f.Whole()) > 0 || len(f.Problems().Under(Key(i)).Errors()) > 0
}

// Whole returns the mistakes because of which nothing of the file can be used.
func (f *File) Whole() yamlfile.Problems {
	return slices.DeleteFunc(f.Problems().Errors(), func(p yamlfile.Problem) bool { return p.Key != "" && p.Key != "supervisors" })
}

// Settle gives every child the directory in which it works: its own, its supervisor's, or base. A path that is not
// absolute is one below base; ~/ stands for home.
func (f *File) Settle(base, home string) {
	for i := range f.Supervisors {
		f.Supervisors[i].settle(base, base, home)
	}
}

func (s *Supervisor) settle(above, base, home string) {
	s.Cwd = place(s.Cwd, above, base, home)
	for i := range s.Children {
		c := &s.Children[i]
		if c.Supervisor != nil {
			c.Supervisor.settle(s.Cwd, base, home)
			continue
		}
		c.Cwd = place(c.Cwd, s.Cwd, base, home)
	}
}

// SaysRequired reports whether a text that could not be read as YAML says that something is required.
func SaysRequired(src []byte) bool {
	for line := range strings.Lines(string(src)) {
		key, value, ok := strings.Cut(strings.TrimLeft(line, " \t-"), ":")
		if ok && strings.TrimSpace(key) == "required" && strings.HasPrefix(strings.TrimSpace(value), "true") {
			return true
		}
	}
	return false
}
