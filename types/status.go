package types

import "time"

// ProcStatus is what can be seen of a process, wherever it lies: the kernel, the small file of its history, the wire, exports and all that show
// processes have it as it stands here. A field that all of them are to show is added here, and where a process has it (kernel) or its record
// says it (internal/step).
type ProcStatus struct {
	PID        PID    `json:"pid"` // of its last run
	UUID       UUID   `json:"uuid"`
	PPID       PID    `json:"ppid"`
	ParentUUID UUID   `json:"parent_uuid,omitzero"`
	Name       string `json:"name,omitempty"`
	Kind       string `json:"kind,omitempty"` // what it is that is no agent: supervisor and the like
	Intent     string `json:"intent"`
	Agent      string `json:"agent,omitempty"`
	Labels     Labels `json:"labels,omitempty"`
	// Skills are those whose instructions are in its system prompt: from the beginning, or since its model asked for them.
	Skills []string `json:"skills,omitempty"`
	// BlockedSignals do not reach it. OnInterrupt is what it is told at SIGINT, instead of ending; empty = it ends.
	BlockedSignals []Signal `json:"blocked_signals,omitempty"`
	OnInterrupt    string   `json:"on_interrupt,omitempty"`
	WorkDir        string   `json:"work_dir,omitempty"`
	Provider       string   `json:"provider"` // of the last answer, as is Model
	Model          string   `json:"model,omitempty"`
	Step           int      `json:"step"` // the last one that has ended
	MaxSteps       int      `json:"max_steps"`
	FailedCalls    int      `json:"failed_calls,omitempty"` // how many calls of its steps failed, commands that ended with an exit code among them
	TokensUsed     int      `json:"tokens_used"`
	CostUSD        float64  `json:"cost_usd,omitempty"`
	Unpriced       int      `json:"unpriced_tokens,omitempty"` // tokens of an unknown price
	// ContextBudget is its limit in tokens, and BudgetUSD in dollars, with what its descendants use; 0 = none.
	ContextBudget int         `json:"context_budget,omitempty"`
	BudgetUSD     float64     `json:"budget_usd,omitempty"`
	PausedAt      time.Time   `json:"paused_at,omitzero"` // when a person paused it who has not resumed it; zero = it is not
	CreatedAt     time.Time   `json:"created_at"`
	UpdatedAt     time.Time   `json:"updated_at,omitzero"` // when its record last changed; zero = not known
	Exit          *ExitStatus `json:"exit,omitempty"`
	Denials
	// Sandbox says by what its commands are confined, and Net which network they have; empty = not known, as of earlier versions.
	Sandbox string `json:"sandbox,omitempty"`
	Net     string `json:"net,omitempty"`
}
