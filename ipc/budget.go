package ipc

import (
	"time"

	"rnix/types"
)

// The methods for budgets and costs.
var (
	ShowBudget = Method[BudgetRequest, BudgetResponse]{Name: "budget", Doc: "budget shows what processes and their descendants may use, have used, and have reserved"}
	AddBudget  = Method[AddBudgetRequest, AddBudgetResponse]{Name: "add_budget", Doc: "add_budget raises the budget of a process, and resumes what waits for it"}
	ShowCost   = Method[CostRequest, CostResponse]{Name: "cost", Doc: "cost adds up what agents have used and what that costs, over all histories"}
	Families   = Method[FamiliesRequest, FamiliesResponse]{Name: "families", Doc: "families adds up what processes have used with their descendants, and with their forks"}
)

// BudgetRequest asks about budgets. An empty Target means every process that runs or is suspended and has a limit.
type BudgetRequest struct {
	Target string `json:"target,omitempty"`
}

// BudgetResponse is a list of budgets, each behind that of its parent. With a target: those of its ancestors that
// limit it, its own, and those of its descendants. Its list is never null.
type BudgetResponse struct {
	Budgets []BudgetLine `json:"budgets"`
}

// BudgetLine is the budget of one process, with that of its descendants in it, ended ones too.
type BudgetLine struct {
	PID        types.PID         `json:"pid"`
	UUID       types.UUID        `json:"uuid"`
	ParentUUID types.UUID        `json:"parent_uuid,omitzero"`
	Name       string            `json:"name,omitempty"`
	Intent     string            `json:"intent,omitempty"`
	State      string            `json:"state"`
	Wait       string            `json:"wait,omitempty"`
	WaitKind   types.SuspendKind `json:"wait_kind,omitempty"` // of which kind Wait is, as in Proc
	Above      bool              `json:"above,omitempty"`     // it is an ancestor of the target
	Tokens     TokenLine         `json:"tokens"`
	USD        USDLine           `json:"usd"`
	Unpriced   int               `json:"unpriced_tokens,omitempty"` // of which nobody knows what they cost; they are not in USD
}

// TokenLine is a budget in tokens.
type TokenLine struct {
	Limit    *int `json:"limit"` // null = unlimited
	Used     int  `json:"used"`
	Reserved int  `json:"reserved"` // for answers under way
	Left     *int `json:"left"`     // null = unlimited
}

// USDLine is a budget in US dollars.
type USDLine struct {
	Limit    *float64 `json:"limit"` // null = unlimited
	Used     float64  `json:"used"`
	Reserved float64  `json:"reserved"` // for answers under way
	Left     *float64 `json:"left"`     // null = unlimited
}

// AddBudgetRequest raises a budget.
type AddBudgetRequest struct {
	Target string  `json:"target"`
	Tokens int     `json:"tokens,omitempty"` // so many more
	USD    float64 `json:"usd,omitempty"`    // so many more
	// Tree raises the limits of all below it, too, that have one of their own, wherever they lie.
	Tree     bool     `json:"tree,omitempty"`
	NoResume bool     `json:"no_resume,omitempty"`
	Env      []string `json:"env,omitempty"` // as in SpawnRequest, for what goes on
}

// AddBudgetResponse is the budget as it is now, and what goes on with it.
type AddBudgetResponse struct {
	BudgetLine
	Raised   []types.PID `json:"raised,omitempty"` // with Tree: those that have more now
	Resumed  []types.PID `json:"resumed,omitempty"`
	Warnings []string    `json:"warnings,omitempty"` // what could not go on, and why
}

// CostRequest asks what agents have used.
type CostRequest struct {
	By    string    `json:"by"`              // agent, model, day, process
	Since time.Time `json:"since,omitzero"`  // from this day on, in UTC; zero = ever
	Under string    `json:"under,omitempty"` // only a process and its descendants
}

// CostResponse is what was used. Its list is never null.
type CostResponse struct {
	Lines []CostLine `json:"lines"`
	Total CostLine   `json:"total"`
	Since string     `json:"since,omitempty"` // the first day that counts
}

// CostLine is what was used by one agent, by one model, on one day or by one process.
type CostLine struct {
	Key        string     `json:"key"` // the agent, provider/model, the day, or the UUID; empty in the total
	PID        types.PID  `json:"pid,omitempty"`
	UUID       types.UUID `json:"uuid,omitzero"`
	Name       string     `json:"name,omitempty"`
	Intent     string     `json:"intent,omitempty"`
	Processes  int        `json:"processes"`
	Answers    int        `json:"answers"`
	Input      int        `json:"input_tokens"`
	Output     int        `json:"output_tokens"`
	CacheRead  int        `json:"cache_read_tokens"`
	CacheWrite int        `json:"cache_write_tokens"`
	Tokens     int        `json:"tokens"`
	CostUSD    *float64   `json:"cost_usd"`                  // of what has a known price; null = nothing has
	Unpriced   int        `json:"unpriced_tokens,omitempty"` // of which nobody knows what they cost; they are not in CostUSD
	Estimated  bool       `json:"estimated,omitempty"`       // some of the tokens were counted by us
	// FailedCalls are those of its processes, and FailedUnknown is of how many processes it is not known how many more there were: an earlier version
	// has written them. Both are missing where costs are those of a model, of a day, or since a day, since failed calls have none of these.
	FailedCalls   int   `json:"failed_calls,omitempty"`
	FailedUnknown int   `json:"failed_calls_unknown,omitempty"`
	ActiveMs      int64 `json:"active_ms,omitempty"` // of a total without Since: how long its processes have worked, together; deleted ones are left out
}

// FamiliesRequest asks what processes have used together with others.
type FamiliesRequest struct {
	Targets []string `json:"targets,omitempty"` // these; empty = each that lives or is suspended and has descendants or forks
	All     bool     `json:"all,omitempty"`     // without Targets: also those that have ended
	// Sets are processes that are added up together, each set with the descendants of all its members; their number is at most MaxFamilySets.
	Sets [][]string `json:"sets,omitempty"`
}

// MaxFamilySets is how many sums one request may ask for.
const MaxFamilySets = 100

// FamiliesResponse has a Family for each target, in their order; without targets and sets in order of PID. Its list is never null.
type FamiliesResponse struct {
	Families []Family `json:"families"`
	// Sums has one for each set, in their order: each process counts once in it.
	Sums []CostLine `json:"sums,omitempty"`
}

// Family is what a process has used itself, and together with others: those that live, are stored, archived or deleted, each once. What a fork has of its
// origin counts there, and not again.
type Family struct {
	PID  types.PID  `json:"pid"`
	UUID types.UUID `json:"uuid"`
	Name string     `json:"name,omitempty"`
	Own  CostLine   `json:"own"`
	Tree *CostLine  `json:"with_descendants"` // null = it has none
	// Forks are all that were forked from one start, which is among them, with the descendants of each; null = it was not forked, and is no fork.
	Forks *CostLine  `json:"with_forks"`
	Start types.UUID `json:"start_uuid,omitzero"` // the first of these
}
