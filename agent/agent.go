// Package agent holds agents and skills as values: what agent.yaml, instructions.md, SKILL.md,
// AGENTS.md and .mcp.json say, read, checked and merged. It reads files that it is pointed at and
// knows no process, no device and no model.
package agent

import (
	"strings"
	"time"

	"rnix/internal/permit"
	"rnix/internal/sandbox"
	"rnix/types"
)

// Manifest is agent.yaml. The zero value of a field means "not said".
type Manifest struct {
	Name        string `yaml:"name" json:"name"`
	Description string `yaml:"description" json:"description"`
	Models      Models `yaml:"models" json:"models,omitzero"`

	ContextBudget *int     `yaml:"context_budget" json:"context_budget,omitempty"` // tokens over the life of the process and its descendants; 0 = unlimited
	BudgetUSD     *float64 `yaml:"budget_usd" json:"budget_usd,omitempty"`         // the same in dollars
	MaxSteps      *int     `yaml:"max_steps" json:"max_steps,omitempty"`           // 0 = no limit
	Skills        []string `yaml:"skills" json:"skills,omitempty"`                 // names; their bodies go into the prompt
	Devices       []string `yaml:"devices" json:"devices,omitzero"`                // allowed device paths; absent = all, [] = none
	MCP           []string `yaml:"mcp" json:"mcp,omitempty"`                       // names from mcp.yaml or .mcp.json; absent = those of a trusted project's .mcp.json
	MCPRequired   []string `yaml:"mcp_required" json:"mcp_required,omitempty"`     // those of MCP without which it is not started
	Env           []string `yaml:"env" json:"env,omitempty"`                       // names of variables that its OS children may see besides the usual ones
	StepTimeout   Duration `yaml:"step_timeout" json:"step_timeout,omitzero"`      // of one step
	ProjectDoc    *bool    `yaml:"project_doc" json:"project_doc,omitempty"`       // put the nearest AGENTS.md into the prompt; absent = true
	// BlockedSignals are SIGTERM and SIGINT, which wait as long as it runs. OnInterrupt is what it is told at SIGINT, instead of ending.
	BlockedSignals []types.Signal `yaml:"blocked_signals" json:"blocked_signals,omitempty"`
	OnInterrupt    string         `yaml:"on_interrupt" json:"on_interrupt,omitempty"`
	Language       string         `yaml:"language" json:"language,omitempty"` // of the answers
	// Sandbox says how its commands are confined, and Network is short for its net. Both only tighten what the user has.
	Sandbox Sandbox     `yaml:"sandbox" json:"sandbox,omitzero"`
	Network sandbox.Net `yaml:"network" json:"-"`
	// Permissions says about which of its calls a person is asked, and which are refused, besides what the user has.
	Permissions permit.Rules `yaml:"permissions" json:"permissions,omitzero"`
	Questions   Questions    `yaml:"questions" json:"questions,omitzero"`
}

// Questions says what becomes of questions that the agent asks persons.
type Questions struct {
	// DefaultAfter is how long one waits before the default that the agent gave with it counts; zero or Off = for ever.
	DefaultAfter Duration `yaml:"default_after" json:"default_after,omitzero"`
}

// Sandbox is what an agent, a node of a workflow or a child of a supervisor says of the sandbox of its commands; what is empty it does not say.
type Sandbox struct {
	Level sandbox.Level `yaml:"level" json:"level,omitempty"`
	Net   sandbox.Net   `yaml:"net" json:"net,omitempty"`
	// Memory and Processes are what all that a process starts may use together.
	Memory    types.Memory `yaml:"memory" json:"memory,omitempty"`
	Processes types.Tasks  `yaml:"processes" json:"processes,omitempty"`
	// Hosts are the only ones of those that it would reach; nil = all of these.
	Hosts []string `yaml:"hosts" json:"hosts,omitzero"`
}

// Bounds returns what it says of what a process may use.
func (s Sandbox) Bounds() types.Bounds { return types.Bounds{Memory: s.Memory, Processes: s.Processes} }

// Models says which model an agent wants.
type Models struct {
	Provider         string `yaml:"provider" json:"provider,omitempty"`
	Preferred        string `yaml:"preferred" json:"preferred,omitempty"`
	Fallback         string `yaml:"fallback" json:"fallback,omitempty"`
	FallbackProvider string `yaml:"fallback_provider" json:"fallback_provider,omitempty"`
	ReasoningEffort  string `yaml:"reasoning_effort" json:"reasoning_effort,omitempty"`
}

// Duration is a time.Duration that is written like "5m" or "30s"; "0" is Off. The zero value means
// "not said": read it with Or.
type Duration time.Duration

// Agent is a manifest with everything that it names. Spawn does not change it, so one value may
// serve many processes.
type Agent struct {
	Manifest
	Source       string // the directory or "built-in"
	Instructions string // instructions.md
	Loaded       []Skill
	MCPConfigs   []MCPServer
	LeftOut      []string // servers that it is offered and cannot have, each with the reason
	Wrong        Problems // in its list of devices: see MayStart
	Doc          Document // AGENTS.md; the zero value if there is none
}

// MayStart refuses an agent whose list of devices names what has no effect there. A process that was started with it all
// the same goes on. The error is of code INVALID.
func (a *Agent) MayStart() error {
	if len(a.Wrong) == 0 {
		return nil
	}
	return types.Errorf(types.ErrInvalid, "LoadAgent", a.Name, "%s", strings.Join(a.Wrong.Strings(), "\n"))
}

// Document is a project's instruction file.
type Document struct {
	Path string // relative to the project, with slashes: the prompt does not depend on where the project lies
	Text string // cut at MaxDocument bytes on a character's edge, with a marker
	// Problem says why the file that is there is not used; then Text is empty.
	Problem string
}

// Skill is a SKILL.md (agentskills.io).
type Skill struct {
	Name          string            `yaml:"name" json:"name"`
	Description   string            `yaml:"description" json:"description"`
	License       string            `yaml:"license" json:"license,omitempty"`
	Compatibility string            `yaml:"compatibility" json:"compatibility,omitempty"`
	AllowedTools  string            `yaml:"allowed-tools" json:"allowed_tools,omitempty"`
	Metadata      map[string]string `yaml:"metadata" json:"metadata,omitempty"`
	Body          string            `yaml:"-" json:"-"`
	Dir           string            `yaml:"-" json:"dir"`
	Scope         string            `yaml:"-" json:"scope"` // project, user, built-in
}

// Section is the skill as it stands in a system prompt, below a heading with its name.
func (s *Skill) Section() string {
	files := ""
	if s.Dir != "" {
		files = "(its files are in " + s.Dir + ")\n"
	}
	return SkillHeading(s.Name) + "\n" + files + strings.TrimSpace(s.Body)
}

// SkillHeading is the line above the instructions of a skill in a system prompt.
func SkillHeading(name string) string { return "# Skill: " + name }

// MCPServer says how to reach an MCP server: one entry of .mcp.json or mcp.yaml. Env and Headers may
// hold secrets after variables were replaced: they are never written to disk.
type MCPServer struct {
	Name    string            `json:"name" yaml:"-"`
	Type    string            `json:"type,omitempty" yaml:"type,omitempty"` // "stdio" (default) or "http"
	Command string            `json:"command,omitempty" yaml:"command,omitempty"`
	Args    []string          `json:"args,omitempty" yaml:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty" yaml:"env,omitempty"`
	URL     string            `json:"url,omitempty" yaml:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty" yaml:"headers,omitempty"`
	// Shown is the command line or the URL for people: as it is written, without the values of
	// variables, which may be secret. Empty means that there is nothing to hide.
	Shown string `json:"-" yaml:"-"`

	Disabled bool `json:"disabled,omitempty" yaml:"disabled,omitempty"`
	// SpawnTimeout bounds "the child is up"; 0 means 500 ms, the specification's value.
	SpawnTimeout Duration `json:"spawn_timeout,omitempty" yaml:"spawn_timeout,omitempty"`
	// MountTimeout bounds start plus protocol initialisation; 0 means 30 s. Node servers need about
	// one second, npx several.
	MountTimeout Duration `json:"mount_timeout,omitempty" yaml:"mount_timeout,omitempty"`
	// RequestTimeout bounds one call; 0 means 60 s.
	RequestTimeout Duration `json:"request_timeout,omitempty" yaml:"request_timeout,omitempty"`
	// MaxOutput bounds one answer in bytes; 0 means 1 MiB. A longer one is cut, and says so.
	MaxOutput int `json:"max_output,omitempty" yaml:"max_output,omitempty"`
	// Sandbox is what a server of type stdio needs of the sandbox.
	Sandbox ServerSandbox `json:"sandbox,omitzero" yaml:"sandbox,omitempty"`

	// Required says that an agent is not started without it, and Offered that the agent has it since its project offers it to all. Load sets them.
	Required bool `json:"-" yaml:"-"`
	Offered  bool `json:"-" yaml:"-"`
}

// SystemPrompt returns the agent's instructions, the bodies of its skills and the project's
// document, in this order. It depends on nothing else, so it is the same at every step.
func (a *Agent) SystemPrompt() string {
	if a == nil {
		return ""
	}
	var b strings.Builder
	b.WriteString(strings.TrimSpace(a.Instructions))
	for i := range a.Loaded {
		b.WriteString("\n\n" + a.Loaded[i].Section())
	}
	if a.Doc.Text != "" {
		b.WriteString("\n\n# The project's own instructions (" + a.Doc.Path + ")\n" + a.Doc.Text)
	}
	if a.Language != "" {
		b.WriteString("\n\nAnswer in this language: " + a.Language + ".")
	}
	return strings.TrimSpace(b.String())
}
