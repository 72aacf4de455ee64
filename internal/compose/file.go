// Package compose knows workflows: files that name nodes, each the work of one agent, and say which node
// waits for which. It reads and checks such files, plans them, and decides what a run of one does next.
//
// It is pure: it starts nothing, waits for nothing and knows no kernel. State folds what has happened and
// says what to do; who runs it makes each Note durable before the effect, so that the same notes lead to
// the same decisions after a crash.
package compose

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"rnix/agent"
	"rnix/internal/sandbox"
)

// FileName is where a workflow is looked for when no file is named, and below .rnix.
const FileName = "compose.yaml"

// ProcessKind is the kind of a process that is a run of a workflow. Part of the on-disk format.
const ProcessKind = "compose"

// Limits of a workflow.
const (
	MaxNodes     = 1000 // nodes of a file
	MaxFan       = 1000 // instances of one node
	MaxParallel  = 32   // nodes at once: as many living children as a process may have
	MaxAttempts  = 100
	DefaultFan   = 100 // instances of a node that does not say how many there may be
	DefaultWidth = 16  // nodes at once where the file says nothing
)

// File is a workflow as its file says it, with the defaults of the run. The zero value of a field means
// that it was not said.
type File struct {
	Version string `yaml:"version" json:"version,omitempty"`
	Name    string `yaml:"name" json:"name,omitempty"`
	Intent  string `yaml:"intent" json:"intent,omitempty"`

	// What nodes have that say nothing else.
	Provider         string `yaml:"provider" json:"provider,omitempty"`
	Model            string `yaml:"model" json:"model,omitempty"`
	FallbackProvider string `yaml:"fallback_provider" json:"fallback_provider,omitempty"`
	FallbackModel    string `yaml:"fallback_model" json:"fallback_model,omitempty"`
	Effort           string `yaml:"reasoning_effort" json:"reasoning_effort,omitempty"`

	// Of the whole run.
	Budget      *Tokens        `yaml:"budget" json:"budget,omitempty"` // tokens; 0 = unlimited
	BudgetUSD   *float64       `yaml:"budget_usd" json:"budget_usd,omitempty"`
	Timeout     agent.Duration `yaml:"timeout" json:"timeout,omitempty"`
	MaxParallel int            `yaml:"max_parallel" json:"max_parallel,omitempty"` // nodes at once

	Vars   map[string]string `yaml:"vars" json:"vars,omitempty"`
	Agents map[string]*Node  `yaml:"agents" json:"nodes,omitempty"`
	Nodes  map[string]*Node  `yaml:"nodes" json:"-"` // another name of the same; empty after Parse
}

// Node is one piece of work.
type Node struct {
	Intent           string   `yaml:"intent" json:"intent"`
	Agent            string   `yaml:"agent" json:"agent,omitempty"`
	Provider         string   `yaml:"provider" json:"provider,omitempty"`
	Model            string   `yaml:"model" json:"model,omitempty"`
	FallbackProvider string   `yaml:"fallback_provider" json:"fallback_provider,omitempty"`
	FallbackModel    string   `yaml:"fallback_model" json:"fallback_model,omitempty"`
	Effort           string   `yaml:"reasoning_effort" json:"reasoning_effort,omitempty"`
	SystemPrompt     string   `yaml:"system_prompt" json:"system_prompt,omitempty"`
	Skills           []string `yaml:"skills" json:"skills,omitempty"`
	MCP              []string `yaml:"mcp" json:"mcp,omitempty"`
	Allow            []string `yaml:"allow" json:"allow"` // nil = what the agent may; empty = nothing
	Deny             []string `yaml:"deny" json:"deny,omitempty"`
	Cwd              string   `yaml:"cwd" json:"cwd,omitempty"` // below the directory of the run, or absolute

	Worktree *Worktree `yaml:"worktree" json:"worktree,omitempty"` // nil = it works where the run does

	// Sandbox says how its commands are confined, and Network is short for its net; empty after Parse. Both only tighten what the run has.
	Sandbox agent.Sandbox `yaml:"sandbox" json:"sandbox,omitzero"`
	Network sandbox.Net   `yaml:"network" json:"-"`

	Budget    *Tokens        `yaml:"budget" json:"budget,omitempty"` // tokens; 0 = what the run has
	BudgetUSD *float64       `yaml:"budget_usd" json:"budget_usd,omitempty"`
	MaxSteps  *int           `yaml:"max_steps" json:"max_steps,omitempty"` // 0 = no limit
	Timeout   agent.Duration `yaml:"timeout" json:"timeout,omitempty"`     // of one attempt

	Retries   *Retries `yaml:"retries" json:"retries,omitempty"`
	DependsOn *Depends `yaml:"depends_on" json:"depends_on,omitempty"`
	ForEach   *ForEach `yaml:"foreach" json:"foreach,omitempty"`
	Output    *Output  `yaml:"output" json:"output,omitempty"`

	Line int `yaml:"-" json:"line,omitempty"` // where it stands in the file
}

// Retries say how often a node is tried again, and after which failures.
type Retries struct {
	Max     int      `yaml:"max" json:"max"`         // besides the first attempt
	On      []Kind   `yaml:"on" json:"on,omitempty"` // nil = all that can be retried
	Backoff *Backoff `yaml:"backoff" json:"backoff,omitempty"`
}

// Backoff is how long it is waited before an attempt: Initial before the second, Factor times as long
// before each next one, at most Max. What is not said is 1s, 2 and 5m.
type Backoff struct {
	Initial agent.Duration `yaml:"initial" json:"initial,omitempty"`
	Factor  float64        `yaml:"factor" json:"factor,omitempty"`
	Max     agent.Duration `yaml:"max" json:"max,omitempty"`
}

// The pauses before attempts where the file says nothing.
const (
	defaultInitial = time.Second
	defaultFactor  = 2
	defaultMax     = 5 * time.Minute
	longestPause   = 24 * time.Hour
)

// before is how long it is waited before the n-th attempt again, from 1.
func (b *Backoff) before(n int) time.Duration {
	initial, factor, most := defaultInitial, float64(defaultFactor), defaultMax
	if b != nil {
		initial, most = b.Initial.Or(initial), b.Max.Or(longestPause)
		if b.Max == 0 {
			most = max(defaultMax, initial)
		}
		if b.Factor != 0 {
			factor = b.Factor
		}
	}
	d := float64(initial)
	for range min(n-1, MaxAttempts) {
		if d *= factor; d > float64(most) {
			break
		}
	}
	return min(time.Duration(min(d, float64(longestPause))), most)
}

// Kind is why an attempt failed. Part of the on-disk format.
type Kind string

// The kinds. Those of retryable can be tried again.
const (
	Error      Kind = "failed"      // the agent ended with an error or could not be started
	TimedOut   Kind = "timeout"     // its time was up
	BadOutput  Kind = "output"      // its result is not what the node's output says
	NoProgress Kind = "no_progress" // it repeated itself, or came to its step limit
	Refused    Kind = "refused"     // it ended after a call that was refused; trying again would change nothing
	Conflict   Kind = "conflict"    // what it was to begin with does not merge; trying again would change nothing
	Cancelled  Kind = "cancelled"   // somebody ended it with a signal
)

var retryable = []Kind{Error, TimedOut, BadOutput, NoProgress}

// UnmarshalText reads a kind that can be tried again.
func (k *Kind) UnmarshalText(b []byte) error {
	return oneOf(k, string(b), retryable, "a failure that can be tried again")
}

// UnmarshalJSON reads every kind, as notes have them.
func (k *Kind) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, (*string)(k)) }

// Condition is what a node waits for.
type Condition string

// The conditions.
const (
	OnSucceeded Condition = "succeeded"
	OnFailed    Condition = "failed"
	OnCompleted Condition = "completed" // ended, whichever way; also skipped
)

var conditions = []Condition{OnCompleted, OnSucceeded, OnFailed}

// UnmarshalText reads a condition.
func (c *Condition) UnmarshalText(b []byte) error {
	return oneOf(c, string(b), conditions, "a condition")
}

func oneOf[T ~string](into *T, s string, known []T, what string) error {
	var names []string
	for _, k := range known {
		if string(k) == s {
			*into = k
			return nil
		}
		names = append(names, string(k))
	}
	return fmt.Errorf("%q is not %s; write one of: %s", s, what, strings.Join(names, ", "))
}

// Depends is what a node waits for: a list of nodes that must succeed, or each with its condition.
type Depends struct {
	List []string             `yaml:",list" json:"-"` // empty after Parse
	On   map[string]Condition `yaml:",table" json:"on,omitempty"`
}

// ForEach makes a node run once for each item: of a list, of the output of a node, or of the files that
// match a pattern. One of the three is said.
type ForEach struct {
	Items []any  `yaml:",list" json:"items,omitempty"`
	From  string `yaml:"from" json:"from,omitempty"`
	Files string `yaml:"files" json:"files,omitempty"`
	Max   int    `yaml:"max" json:"max,omitempty"` // 0 = DefaultFan
}

// Limit is how many items there may be. Those that stand in the file were counted when it was read.
func (f *ForEach) Limit() int {
	switch {
	case f.Max > 0:
		return f.Max
	case f.Items != nil:
		return MaxFan
	}
	return DefaultFan
}

// Output is what the result of a node must be.
type Output struct {
	Schema any `yaml:"schema" json:"schema,omitempty"` // a JSON Schema, or the path of a file with one; the schema itself after Parse
}

// Tokens is a number of tokens, which may be written as 200k or 1.5M.
type Tokens int

// UnmarshalText reads a number of at least 0, with k or M behind it.
func (t *Tokens) UnmarshalText(b []byte) error {
	s := strings.ReplaceAll(string(b), "_", "")
	digits, unit := s, 1.0
	if s != "" {
		switch s[len(s)-1] {
		case 'k', 'K':
			digits, unit = s[:len(s)-1], 1e3
		case 'm', 'M':
			digits, unit = s[:len(s)-1], 1e6
		}
	}
	x, err := strconv.ParseFloat(digits, 64)
	if err != nil || !(x >= 0 && x*unit <= 1e15) || strings.ContainsAny(digits, "eExXpP_iInN") {
		return errors.New("want a number of tokens such as 50000, 200k or 1.5M; 0 = unlimited")
	}
	*t = Tokens(x * unit)
	return nil
}

// MarshalJSON writes a plain number.
func (t Tokens) MarshalJSON() ([]byte, error) { return json.Marshal(int(t)) }

// UnmarshalJSON reads a plain number.
func (t *Tokens) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, (*int)(t)) }
