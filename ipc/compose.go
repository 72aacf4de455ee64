package ipc

import (
	"time"

	"rnix/types"
)

// The methods about runs of workflows.
var (
	ComposeUp     = Method[ComposeUpRequest, ComposeUpResponse]{Name: "compose_up", Doc: "compose_up starts a run of a workflow: a process, with a child for each node"}
	ComposeStatus = Method[TargetRequest, ComposeRun]{Name: "compose_status", Doc: "compose_status describes a run and each of its nodes"}
	ComposeList   = Method[ListRequest, ComposeListResponse]{Name: "compose_list", Doc: "compose_list lists the runs of workflows; with all, also those that have ended"}
	ComposeDown   = Method[ComposeDownRequest, ComposeRun]{Name: "compose_down", Doc: "compose_down ends a run with all its nodes, or pauses it, and returns when that is so"}
	ComposePlan   = Method[TargetRequest, ComposePlanResponse]{Name: "compose_plan", Doc: "compose_plan returns the workflow of a run, and what has become of its nodes"}
	ComposeResume = Method[ComposeResumeRequest, ComposeUpResponse]{Name: "compose_resume", Doc: "compose_resume resumes a run; of one that has ended it does again what failed, or one node and those below it"}
)

// ComposeUpRequest starts a run. What is not said is as the file says.
type ComposeUpRequest struct {
	File         string            `json:"file"`           // as the caller names it, for errors
	Path         string            `json:"path,omitempty"` // of the file; absolute
	Text         string            `json:"text"`           // of the file
	Vars         map[string]string `json:"vars,omitempty"`
	Name         string            `json:"name,omitempty"`
	Cwd          string            `json:"cwd"` // absolute
	Env          []string          `json:"env,omitempty"`
	Budget       *int              `json:"budget,omitempty"`     // tokens of all nodes; 0 = unlimited
	BudgetUSD    *float64          `json:"budget_usd,omitempty"` // likewise
	MaxParallel  int               `json:"max_parallel,omitempty"`
	TimeoutMs    int64             `json:"timeout_ms,omitempty"`
	Parent       string            `json:"parent,omitempty"`
	Sandbox      string            `json:"sandbox,omitempty"` // of the commands of all nodes, as in types.ProcSpec
	Net          string            `json:"net,omitempty"`
	Hosts        []string          `json:"hosts,omitempty"` // as in SpawnRequest
	Bounds       types.Bounds      `json:"bounds,omitzero"` // of what each of its nodes starts
	TrustProject bool              `json:"trust_project,omitempty"`
}

// ComposeUpResponse names the process of a run.
type ComposeUpResponse struct {
	PID      types.PID  `json:"pid"`
	UUID     types.UUID `json:"uuid"`
	Name     string     `json:"name"`
	Nodes    int        `json:"nodes"`          // of the file
	Redo     []string   `json:"redo,omitempty"` // what is done again
	Seq      uint64     `json:"seq"`            // event log position just before its first event
	Warnings []string   `json:"warnings,omitempty"`
	Notes    []string   `json:"notes,omitempty"` // what is right, and may not be meant
}

// ComposeRun is a run. Its lists are never null.
type ComposeRun struct {
	PID        types.PID         `json:"pid"`
	UUID       types.UUID        `json:"uuid"`
	Name       string            `json:"name"`
	State      string            `json:"state"` // as ps has it
	Wait       string            `json:"wait,omitempty"`
	WaitUntil  time.Time         `json:"wait_until,omitzero"`
	Intent     string            `json:"intent,omitempty"`
	Path       string            `json:"path,omitempty"` // of the file
	WorkDir    string            `json:"work_dir,omitempty"`
	Budget     int               `json:"budget,omitempty"`
	BudgetUSD  float64           `json:"budget_usd,omitempty"`
	TokensUsed int               `json:"tokens_used"` // of all nodes and attempts
	CostUSD    float64           `json:"cost_usd,omitempty"`
	Unpriced   int               `json:"unpriced_tokens,omitempty"` // of which nobody knows what they cost; they are not in CostUSD
	ElapsedMs  int64             `json:"elapsed_ms"`
	CreatedAt  time.Time         `json:"created_at"`
	Exit       *types.ExitStatus `json:"exit,omitempty"`
	Purse      *BudgetWait       `json:"purse,omitempty"`  // of a suspended one: the budget that a node waits for
	Result     string            `json:"result,omitempty"` // of those nodes for which no other waits
	Counts     map[string]int    `json:"counts"`           // nodes by state
	Nodes      []ComposeNode     `json:"nodes"`            // in the order of the plan
}

// ComposeNode is an instance of a node of a run.
type ComposeNode struct {
	Name       string     `json:"name"`           // node, or node[3]
	Item       string     `json:"item,omitempty"` // of node[3]: what it is for, in one line
	State      string     `json:"state"`          // waiting, running, paused, suspended, stopped, retrying, expanded, succeeded, failed, skipped
	Why        string     `json:"why,omitempty"`
	Kind       string     `json:"kind,omitempty"`    // of a failure: failed, timeout, output, no_progress, refused, conflict, cancelled
	Files      []string   `json:"files,omitempty"`   // of a conflict: those that both sides have changed, or in which marks are left
	Needs      []string   `json:"needs,omitempty"`   // of one that waits: nodes that have not ended
	Attempt    int        `json:"attempt,omitempty"` // from 1
	Until      time.Time  `json:"until,omitzero"`    // when it goes on by itself
	PID        types.PID  `json:"pid,omitempty"`     // of the last run of the attempt
	UUID       types.UUID `json:"uuid,omitzero"`     // of the attempt
	Branch     string     `json:"branch,omitempty"`  // of the attempt's own work tree
	ExitCode   *int       `json:"exit_code,omitempty"`
	Step       int        `json:"step,omitempty"`
	TokensUsed int        `json:"tokens_used"` // over all attempts
	CostUSD    float64    `json:"cost_usd,omitempty"`
	Unpriced   int        `json:"unpriced_tokens,omitempty"` // as of ComposeRun
	ElapsedMs  int64      `json:"elapsed_ms,omitempty"`      // of the attempt
}

// ComposePlanResponse is the workflow of a run.
type ComposePlanResponse struct {
	File   *Workflow         `json:"file"`
	States map[string]string `json:"states"` // by node
}

// ComposeListResponse is the runs, in order of PID, without their nodes.
type ComposeListResponse struct {
	Runs []ComposeRun `json:"runs"`
}

// ComposeDownRequest ends a run, or pauses it.
type ComposeDownRequest struct {
	Target string `json:"target"`
	Pause  bool   `json:"pause,omitempty"`
}

// ComposeResumeRequest lets a run go on.
type ComposeResumeRequest struct {
	Target       string   `json:"target"`           // empty with a Node: the one run that can be meant
	Node         string   `json:"node,omitempty"`   // do this one again, and those below it
	Budget       *int     `json:"budget,omitempty"` // so many tokens more than were used; 0 = unlimited
	BudgetUSD    *float64 `json:"budget_usd,omitempty"`
	TimeoutMs    *int64   `json:"timeout_ms,omitempty"`  // as of resume
	Sandbox      string   `json:"sandbox,omitempty"`     // as of resume, of what is started from now on; refused if it would loosen what the run has
	Net          string   `json:"net,omitempty"`         // likewise
	OnInDoubt    string   `json:"on_in_doubt,omitempty"` // as of resume
	Env          []string `json:"env,omitempty"`
	TrustProject bool     `json:"trust_project,omitempty"`
}
