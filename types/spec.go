package types

import "encoding/json"

// ProcSpec is what is asked for when a process is started. A request on the wire and the options of a start have it as it stands here; the files
// of workflows and supervisors, in which a person writes the same, are turned into it. A nil number leaves the choice to the agent, then to the
// configuration.
type ProcSpec struct {
	Name             string   `json:"name,omitempty"`
	SystemPrompt     string   `json:"system_prompt,omitempty"` // put before the agent's
	Provider         string   `json:"provider,omitempty"`
	Model            string   `json:"model,omitempty"`
	FallbackProvider string   `json:"fallback_provider,omitempty"`
	FallbackModel    string   `json:"fallback_model,omitempty"`
	Effort           string   `json:"reasoning_effort,omitempty"`
	MaxSteps         *int     `json:"max_steps,omitempty"`      // 0 = no limit
	ContextBudget    *int     `json:"context_budget,omitempty"` // tokens, with those of its descendants; 0 = unlimited
	BudgetUSD        *float64 `json:"budget_usd,omitempty"`     // dollars, with those of its descendants; 0 = unlimited
	// AllowedDevices are paths of devices; nil = what the agent has, empty = nothing.
	AllowedDevices []string `json:"allow,omitzero"`
	DeniedDevices  []string `json:"deny,omitempty"`
	Labels         Labels   `json:"labels,omitempty"` // a fork inherits them, a child does not
	// Sandbox says by what its commands are confined: off, auto, landlock or bwrap. Net is their network: none, hosts or open. Empty = as the
	// configuration and the agent say.
	Sandbox string `json:"sandbox,omitempty"`
	Net     string `json:"net,omitempty"`
	Bounds  Bounds `json:"bounds,omitzero"` // of what it starts; what is not said is as the configuration and the agent say
	// OutputSchema is a JSON Schema that the result must fit, of at most 64 KiB; null = any text. A fork has it, a child does not.
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
}
