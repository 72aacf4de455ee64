package ipc

import "rnix/agent"

// Workflow is a workflow as its file says it, with the defaults of the run. The zero value of a field means
// that it was not said.
type Workflow struct {
	Version string `json:"version,omitempty"`
	Name    string `json:"name,omitempty"`
	Intent  string `json:"intent,omitempty"`

	// What nodes have that say nothing else.
	Provider         string `json:"provider,omitempty"`
	Model            string `json:"model,omitempty"`
	FallbackProvider string `json:"fallback_provider,omitempty"`
	FallbackModel    string `json:"fallback_model,omitempty"`
	Effort           string `json:"reasoning_effort,omitempty"`

	// Of the whole run.
	Budget      *int           `json:"budget,omitempty"` // tokens; 0 = unlimited
	BudgetUSD   *float64       `json:"budget_usd,omitempty"`
	Timeout     agent.Duration `json:"timeout,omitempty"`
	MaxParallel int            `json:"max_parallel,omitempty"` // nodes at once

	Vars   map[string]string        `json:"vars,omitempty"`
	Agents map[string]*WorkflowNode `json:"nodes,omitempty"`
}

// WorkflowNode is one piece of work.
type WorkflowNode struct {
	Intent           string   `json:"intent"`
	Agent            string   `json:"agent,omitempty"`
	Provider         string   `json:"provider,omitempty"`
	Model            string   `json:"model,omitempty"`
	FallbackProvider string   `json:"fallback_provider,omitempty"`
	FallbackModel    string   `json:"fallback_model,omitempty"`
	Effort           string   `json:"reasoning_effort,omitempty"`
	SystemPrompt     string   `json:"system_prompt,omitempty"`
	Skills           []string `json:"skills,omitempty"`
	MCP              []string `json:"mcp,omitempty"`
	Allow            []string `json:"allow"` // nil = what the agent may; empty = nothing
	Deny             []string `json:"deny,omitempty"`
	Cwd              string   `json:"cwd,omitempty"` // below the directory of the run, or absolute

	Worktree *WorkflowWorktree `json:"worktree,omitempty"` // nil = it works where the run does

	Sandbox agent.Sandbox `json:"sandbox,omitzero"` // of its commands; what is empty it does not say

	Budget    *int           `json:"budget,omitempty"` // tokens; 0 = what the run has
	BudgetUSD *float64       `json:"budget_usd,omitempty"`
	MaxSteps  *int           `json:"max_steps,omitempty"` // 0 = no limit
	Timeout   agent.Duration `json:"timeout,omitempty"`   // of one attempt

	Retries   *WorkflowRetries `json:"retries,omitempty"`
	DependsOn *WorkflowDepends `json:"depends_on,omitempty"`
	ForEach   *WorkflowForEach `json:"foreach,omitempty"`
	Output    *WorkflowOutput  `json:"output,omitempty"`

	Line int `json:"line,omitempty"` // where it stands in the file
}

// WorkflowRetries say how often a node is tried again, and after which failures.
type WorkflowRetries struct {
	Max     int              `json:"max"`          // besides the first attempt
	On      []string         `json:"on,omitempty"` // nil = all that can be retried
	Backoff *WorkflowBackoff `json:"backoff,omitempty"`
}

// WorkflowBackoff is how long it is waited before an attempt: Initial before the second, Factor times as long
// before each next one, at most Max. What is not said is 1s, 2 and 5m.
type WorkflowBackoff struct {
	Initial agent.Duration `json:"initial,omitempty"`
	Factor  float64        `json:"factor,omitempty"`
	Max     agent.Duration `json:"max,omitempty"`
}

// WorkflowDepends is what a node waits for: a list of nodes that must succeed, or each with its condition.
type WorkflowDepends struct {
	On map[string]string `json:"on,omitempty"`
}

// WorkflowForEach makes a node run once for each item: of a list, of the output of a node, or of the files that
// match a pattern. One of the three is said.
type WorkflowForEach struct {
	Items []any  `json:"items,omitempty"`
	From  string `json:"from,omitempty"`
	Files string `json:"files,omitempty"`
	Max   int    `json:"max,omitempty"` // 0 = DefaultFan
}

// WorkflowOutput is what the result of a node must be.
type WorkflowOutput struct {
	Schema any `json:"schema,omitempty"` // a JSON Schema, or the path of a file with one; the schema itself after Parse
}

// WorkflowWorktree is a git work tree of its own for each attempt of each instance of a node: of the repository in which the
// node would work. It is written as true, or with a branch or a base.
type WorkflowWorktree struct {
	Own    bool   `json:"own"`
	Branch string `json:"branch,omitempty"` // of the first attempt; later ones add a number. "" = named after the node
	Base   string `json:"base,omitempty"`   // the commit or branch at which it begins; "" = what is checked out
	// Conflicts says what becomes of the node if the work of those that it waits for does not merge: "stop" (also "") or "resolve".
	Conflicts string `json:"conflicts,omitempty"`
}
