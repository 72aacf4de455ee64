package ipc

import (
	"fmt"
	"time"

	"rnix/internal/permit"
	"rnix/types"
)

// SpawnRequest starts a process. Pointers tell "not said" from zero.
type SpawnRequest struct {
	types.ProcSpec
	Intent       string   `json:"intent"`
	Agent        string   `json:"agent,omitempty"`
	TimeoutMs    int64    `json:"timeout_ms,omitempty"` // of the whole process; 0 = none
	Cwd          string   `json:"cwd,omitempty"`        // absolute
	MCP          []string `json:"mcp,omitempty"`        // servers to mount besides the agent's
	NoMCP        bool     `json:"no_mcp,omitempty"`     // it has no servers but those of MCP: not the agent's, nor those of a trusted project's .mcp.json
	Skills       []string `json:"skills,omitempty"`     // that are loaded from the beginning, besides the agent's
	Parent       string   `json:"parent,omitempty"`
	TrustProject bool     `json:"trust_project,omitempty"` // the project's MCP servers, providers and agents count, whatever they ask for
	// Env is the environment of the caller, "KEY=value". The daemon takes credentials and the
	// allow-listed variables from it, keeps it in memory, and never writes or shows it.
	Env []string `json:"env,omitempty"`
	// Group is a process group that it is in from the beginning: a number, or a name.
	Group string `json:"group,omitempty"`
	// Tools says which tools an agent's command line has: "own", its own beside the kernel's, or "kernel", the
	// kernel's alone. Empty = as its provider says.
	Tools string `json:"tools,omitempty"`
	// Session makes the process that session of the configured platform, which it must be free to have; Issue is
	// what it is about.
	Session string `json:"session,omitempty"`
	Issue   string `json:"issue,omitempty"`
	// Inputs are data that the process is given with its intent, marked as data.
	Inputs []Input `json:"inputs,omitempty"`
	// Attachments are images and PDFs that the model is shown with the intent: at most 20, and MaxAttached bytes of all.
	Attachments []Attachment `json:"attachments,omitempty"`
	// Rules say about which calls a person is asked, and which are refused, besides what the files say. Asks says what becomes of what is
	// asked: wait, for a person, or deny; empty = it waits.
	Rules permit.Rules `json:"rules,omitzero"`
	Asks  string       `json:"asks,omitempty"`
	// Hosts are rules and presets of hosts that its commands may reach by the proxy, besides those of the files; its network is hosts then. Inside an agent they add nothing.
	Hosts []string `json:"hosts,omitempty"`
	// OnlyHosts are set by the daemon, of a node or a child of a supervisor: its commands reach no other of the hosts that they would; nil = all of these.
	OnlyHosts []string `json:"-"`
	// Worktree asks for a git work tree of its own to work in; null = it works in Cwd.
	Worktree *WorktreeRequest `json:"worktree,omitempty"`
}

// Input is data that a process is given with its intent: what came before it in a pipe, or what the
// processes brought on which it depends.
type Input struct {
	Name string `json:"name"` // 1 to 64 of A-Z a-z 0-9 . _ -
	Text string `json:"text"` // UTF-8 without NUL
	// Broken says why the text may not be all that was to come, in a few words on one line; empty = it is.
	Broken string `json:"broken,omitempty"`
}

// MaxAttached is how many bytes all attachments of a request may have; in base64 they fit into MaxBody.
const MaxAttached = 5 << 20

// Attachment is an image (PNG, JPEG, GIF, WebP) or a PDF. What it is is told by its content.
type Attachment struct {
	Name string `json:"name"` // for people: a file name
	Data []byte `json:"data"` // in base64
}

// SpawnResponse names the new process.
type SpawnResponse struct {
	PID      types.PID  `json:"pid"`
	UUID     types.UUID `json:"uuid"`
	Name     string     `json:"name,omitempty"`
	Provider string     `json:"provider"`
	Model    string     `json:"model"`
	Why      string     `json:"why"`               // why this provider
	MaxSteps int        `json:"max_steps"`         // 0 = no limit
	Seq      uint64     `json:"seq"`               // event log position just before its first event
	Sandbox  string     `json:"sandbox,omitempty"` // by what its commands are confined; off = not at all
	Net      string     `json:"net,omitempty"`     // of its commands: none, hosts or open
	// Schema says that its result must fit an output schema, which it has also when it is resumed.
	Schema   bool     `json:"schema,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Worktree is the git work tree that was made for it; null = none was asked for.
	Worktree *Worktree `json:"worktree,omitempty"`
}

// TargetRequest names a process: a PID, a UUID or a prefix of one, or a name. Ambiguity is an error
// of code AMBIGUOUS that lists the candidates.
type TargetRequest struct {
	Target string `json:"target"`
}

// WaitRequest waits for a process.
type WaitRequest struct {
	Target    string `json:"target"`
	TimeoutMs int64  `json:"timeout_ms,omitempty"` // 0 = for ever; expiry is an error of code TIMEOUT
}

// WaitResponse is how the process ended.
type WaitResponse struct {
	PID        types.PID        `json:"pid"`
	UUID       types.UUID       `json:"uuid"`
	Exit       types.ExitStatus `json:"exit"`
	Result     string           `json:"result"`
	TokensUsed int              `json:"tokens_used"`
	Estimated  bool             `json:"estimated,omitempty"`
	CostUSD    float64          `json:"cost_usd,omitempty"`
	Unpriced   int              `json:"unpriced_tokens,omitempty"` // of an unknown price; they are not in CostUSD
	// UnpricedModels are those of Unpriced, as provider/model, the first 16.
	UnpricedModels []string `json:"unpriced_models,omitempty"`
	Provider       string   `json:"provider,omitempty"` // of the last answer, as is Model
	Model          string   `json:"model,omitempty"`
	// With those of its children and theirs; 0 = it has none.
	FamilyTokens int     `json:"family_tokens_used,omitempty"`
	FamilyUSD    float64 `json:"family_cost_usd,omitempty"`
	// FamilyUnpriced are those of FamilyTokens of an unknown price, and FamilyFailed the failed calls of all of them.
	FamilyUnpriced int   `json:"family_unpriced_tokens,omitempty"`
	FamilyFailed   int   `json:"family_failed_calls,omitempty"`
	ElapsedMs      int64 `json:"elapsed_ms"`
	Steps          int   `json:"steps"`
	FailedCalls    int   `json:"failed_calls,omitempty"`
	Suspended      bool  `json:"suspended,omitempty"` // stopped by a pause of the daemon, not ended
	Schema         bool  `json:"schema,omitempty"`    // it was asked for a result that fits a JSON Schema; not known of runs of versions that did not note it
	// MCPDown are its MCP servers that could not be reached at its end, each with the reason; nothing is known of a run of an earlier daemon.
	MCPDown []string `json:"mcp_down,omitempty"`
	types.Denials
}

// SignalRequest sends a signal.
type SignalRequest struct {
	Target string       `json:"target"`
	Signal types.Signal `json:"signal"`
}

// SignalResponse says how many processes were reached.
type SignalResponse struct {
	PID      types.PID  `json:"pid"`
	UUID     types.UUID `json:"uuid"`
	Affected int        `json:"affected"`
	// Blocked says of one process that the signal waits there, since its agent blocks it, and Handled that its agent was told and goes on.
	Blocked bool `json:"blocked,omitempty"`
	Handled bool `json:"handled,omitempty"`
	Stored  bool `json:"stored,omitempty"` // it was suspended on disk, and has ended, or is paused, there
	// Working are, of a pause of one process, the processes below it that still work.
	Working []types.PID `json:"working,omitempty"`
}

// ListRequest lists processes.
type ListRequest struct {
	All   bool `json:"all,omitempty"`
	Limit int  `json:"limit,omitempty"` // of stored ones, newest first; 0 = all
	// Labels selects the processes that match all of these, each KEY or KEY=VALUE; Limit counts only them. compose_list does not take it.
	Labels []string `json:"labels,omitempty"`
}

// ListResponse is the processes, in order of PID.
type ListResponse struct {
	Procs  []Proc    `json:"procs"`
	Hidden int       `json:"hidden,omitempty"` // stored ones cut by Limit
	Seq    uint64    `json:"seq"`              // as of ProcTable
	At     time.Time `json:"at"`
	Totals Totals    `json:"totals"`
	// Ended counts those that have ended, also what Limit and Labels leave out; only with All.
	Ended *Ended `json:"ended,omitempty"`
}

// Ended counts processes that have ended, archived ones among them.
type Ended struct {
	Count  int `json:"count"`
	Failed int `json:"failed"` // of these, without success
}

// Proc is one line of ps.
type Proc struct {
	types.ProcStatus
	State string `json:"state"`          // created, running, suspended, zombie, dead, archived
	Wait  string `json:"wait,omitempty"` // what it waits for, or has in hand, without how long
	// WaitKind says of which kind Wait is, where programs want to know; Why also knows that of what an older daemon says.
	WaitKind  types.SuspendKind `json:"wait_kind,omitempty"`
	WaitSince time.Time         `json:"wait_since,omitzero"` // since when; zero = not known
	WaitUntil time.Time         `json:"wait_until,omitzero"`
	Doing     *Doing            `json:"doing,omitempty"`        // the call in hand, also while that stands still
	Suspect   time.Time         `json:"suspect_since,omitzero"` // since when it makes no progress, if the heartbeat says so
	Session   *PlatformSession  `json:"session,omitempty"`      // with a platform, if it runs, or if the platform does not know all of it yet
	Estimated bool              `json:"estimated,omitempty"`
	// UnpricedModels are those of which nobody knows what some of Unpriced cost, as provider/model, the first 16.
	UnpricedModels []string    `json:"unpriced_models,omitempty"`
	Purse          *BudgetWait `json:"purse,omitempty"`        // of a suspended one: the budget that it waits for
	ElapsedMs      int64       `json:"elapsed_ms"`             // frozen while paused, while it waits for the answer of a person, and after the end
	ClockPaused    bool        `json:"clock_paused,omitempty"` // ElapsedMs of a living one does not grow now
	Groups         []string    `json:"groups,omitempty"`       // by name where they have one
	Children       []OSChild   `json:"os_children,omitempty"`
	// PendingSignals have come and are blocked. They do not outlive the run.
	PendingSignals []types.Signal `json:"pending_signals,omitempty"`
	// MCPDown are its MCP servers that cannot be reached in this run, each with the reason: "tracker: no such file".
	MCPDown []string `json:"mcp_down,omitempty"`
	// FailedUnknown says that it is not known how many of its calls failed: an earlier version has written its end, and did not count them.
	FailedUnknown bool `json:"failed_calls_unknown,omitempty"`
	// OriginUUID is what a fork was made from, and OriginStep the last step that it has of that.
	OriginUUID types.UUID `json:"origin_uuid,omitzero"`
	OriginStep int        `json:"origin_step,omitempty"`
	// Taken is what a fork has of its origin, which has used it: sums leave it out; null = nothing.
	Taken *Taken `json:"taken,omitempty"`
}

// Taken is that part of what a fork shows as used which its origin has used.
type Taken struct {
	Tokens   int     `json:"tokens_used,omitempty"`
	CostUSD  float64 `json:"cost_usd,omitempty"`
	Unpriced int     `json:"unpriced_tokens,omitempty"`
}

// Own returns what a process has used itself.
func (p *Proc) Own() Taken {
	own := Taken{p.TokensUsed, p.CostUSD, p.Unpriced}
	if t := p.Taken; t != nil {
		own = Taken{max(own.Tokens-t.Tokens, 0), max(own.CostUSD-t.CostUSD, 0), max(own.Unpriced-t.Unpriced, 0)}
	}
	return own
}

// Task returns what the process is to do, for lists. The forks of one start have the same intent: each says in front of it where it began.
func (p *Proc) Task() string {
	if p.OriginUUID == (types.UUID{}) {
		return p.Intent
	}
	return fmt.Sprintf("[fork from step %d] %s", p.OriginStep, p.Intent)
}

// Why returns why the process is suspended, or what a running one waits for; "" = for nothing, or for what only its words say.
func (p *Proc) Why() types.SuspendKind {
	if p.WaitKind == "" && p.State != "suspended" {
		return ""
	}
	return types.SuspendFor(p.WaitKind, p.Wait).Why()
}

// BudgetWait names a budget of which there was too little, with its limits at that time: with others, the process that waits for it can continue.
type BudgetWait struct {
	UUID   types.UUID `json:"uuid"` // of the history whose budget it is
	Tokens int        `json:"tokens,omitempty"`
	USD    float64    `json:"usd,omitempty"`
	// MoreTokens and MoreUSD are how much more is enough for a while: one of them.
	MoreTokens int     `json:"more_tokens,omitempty"`
	MoreUSD    float64 `json:"more_usd,omitempty"`
}

// OSChild is a process of the operating system that an agent started.
type OSChild struct {
	PID      int       `json:"pid"`
	Kind     string    `json:"kind"` // shell, mcp, llm, harness, git
	Command  string    `json:"command"`
	Started  time.Time `json:"started"`
	RSSBytes int64     `json:"rss_bytes"` // resident memory, with its descendants, at most 2 s old; what they share counts for each
}

// ProcDetail is everything that /proc shows of a process, living or dead.
type ProcDetail struct {
	Proc
	ReadRoots      []string     `json:"read_roots,omitempty"`
	AllowedDevices []string     `json:"allowed_devices"` // null = all
	DeniedDevices  []string     `json:"denied_devices,omitempty"`
	MCPMounts      []string     `json:"mcp_mounts,omitempty"`
	Tools          []string     `json:"tools,omitempty"`
	Plan           string       `json:"plan,omitempty"`
	Result         string       `json:"result,omitempty"`
	Interrupted    []CallIntent `json:"interrupted,omitempty"` // calls that were begun and have no result
	Damage         string       `json:"damage,omitempty"`      // what was wrong with its files, and what was cut
	Dir            string       `json:"dir"`                   // where its files are
}

// EventsRequest selects events.
type EventsRequest struct {
	Target   string            `json:"target,omitempty"`    // empty = all processes; inside an agent, its own subtree
	Tree     bool              `json:"tree,omitempty"`      // with the descendants of Target
	From     uint64            `json:"from,omitempty"`      // first sequence number; 0 = from now on
	History  bool              `json:"history,omitempty"`   // begin with what is still known of the past
	Follow   bool              `json:"follow"`              // go on until the client leaves; else end at what is there
	UntilEnd bool              `json:"until_end,omitempty"` // end after the Reaped or Exited event of Target
	Kinds    []types.EventKind `json:"kinds,omitempty"`     // empty = all
	// Targets are further processes, besides Target. With UntilEnd all of them have to end.
	Targets []string `json:"targets,omitempty"`
	// Filter picks events; null = all. What is missing is always told.
	Filter *EventFilter `json:"filter,omitempty"`
	// Speech sends what models say as it comes, in events of the kind piece that the log does not have (their seq is 0), in place of the lines of which they
	// are parts: Kinds and Filter pick them as they pick these. It needs Follow.
	Speech bool `json:"speech,omitempty"`
	// Steps sends the end of each step that is still to come, too, although Kinds and Filter do not pick it. It needs Follow.
	Steps bool      `json:"steps,omitempty"`
	Since time.Time `json:"since,omitzero"` // only events that are not older
	Tail  int       `json:"tail,omitempty"` // of the past, only the last so many that are picked, at most 10,000; 0 = all
}
