// Package ipc is the wire between the daemon and everybody else: HTTP/1.1 with JSON over a Unix
// socket, POST /v1/<method> for each method of the table below, server-sent events for streams. It
// owns the method table, the server's framing and the client. It knows no kernel.
package ipc

import (
	"encoding/json"
	"time"

	"rnix/agent"
	"rnix/internal/event"
	"rnix/internal/step"
	"rnix/types"
)

// Version is the protocol's version: the first element of every path. Part of the wire format.
const Version = "v1"

// MaxBody is the largest request body in bytes. A larger one is answered with INVALID and the limit.
const MaxBody = 8 << 20

// Method is one operation on the wire, with the types of its request and its response. It is the one
// list from which the client, the server and the reference page derive.
type Method[Req, Resp any] struct {
	Name string
	Doc  string
	// Stream says that the answer is a stream of events, each a Resp with its sequence number.
	Stream bool
}

// Path returns the HTTP path of the method.
func (m Method[Req, Resp]) Path() string { return "/" + Version + "/" + m.Name }

// The methods.
var (
	Ping         = Method[Empty, PingResponse]{Name: "ping", Doc: "ping answers at once"}
	DaemonStatus = Method[Empty, Status]{Name: "daemon_status", Doc: "daemon_status describes the daemon"}
	Shutdown     = Method[Empty, Empty]{Name: "shutdown", Doc: "shutdown stops the daemon gracefully; its agents are suspended, not killed"}

	Spawn         = Method[SpawnRequest, SpawnResponse]{Name: "spawn", Doc: "spawn starts a process"}
	Wait          = Method[WaitRequest, WaitResponse]{Name: "wait", Doc: "wait waits for a process to end and reaps it"}
	Signal        = Method[SignalRequest, SignalResponse]{Name: "signal", Doc: "signal sends a signal to one process"}
	SignalTree    = Method[SignalRequest, SignalResponse]{Name: "signal_tree", Doc: "signal_tree sends a signal to a process and all its living descendants"}
	ListProcs     = Method[ListRequest, ListResponse]{Name: "list_procs", Doc: "list_procs lists processes; with all, also those on disk"}
	GetProcDetail = Method[TargetRequest, ProcDetail]{Name: "get_proc_detail", Doc: "get_proc_detail describes one process"}
	ListSteps     = Method[TargetRequest, ListStepsResponse]{Name: "list_steps", Doc: "list_steps lists the steps of a process, living or dead, without their messages"}
	GetStepDetail = Method[StepRequest, StepDetail]{Name: "get_step_detail", Doc: "get_step_detail returns one step with its messages in full"}
	Events        = Method[EventsRequest, event.Event]{Name: "events", Doc: "events streams the event log, from a sequence number on", Stream: true}

	Resume        = Method[ResumeRequest, ResumeResponse]{Name: "resume", Doc: "resume lets a process go on: a paused one, or one that is only on disk; with fork, a copy of it"}
	ListResumable = Method[ListRequest, ListResponse]{Name: "list_resumable", Doc: "list_resumable lists what can be resumed, the latest first"}

	Ledger       = Method[LedgerRequest, LedgerResponse]{Name: "ledger", Doc: "ledger lists every call of a process, with what became of it"}
	DiffFiles    = Method[DiffRequest, DiffResponse]{Name: "diff_files", Doc: "diff_files compares the files of a process at the ends of two steps, or with what is there now"}
	RestoreFiles = Method[RestoreRequest, RestoreResponse]{Name: "restore_files", Doc: "restore_files brings files back as they were at the end of a step"}
	Lineage      = Method[TargetRequest, LineageResponse]{Name: "lineage", Doc: "lineage shows where a process comes from, its forks and its runs"}

	GC              = Method[GCRequest, GCResponse]{Name: "gc", Doc: "gc archives or deletes histories that are over the limits of the configuration"}
	Keep            = Method[KeepRequest, KeepResponse]{Name: "keep", Doc: "keep marks a history so that gc leaves it alone, or takes the mark away"}
	Unarchive       = Method[TargetRequest, UnarchiveResponse]{Name: "unarchive", Doc: "unarchive puts an archived history back"}
	DU              = Method[DURequest, DUResponse]{Name: "du", Doc: "du says how much room histories take up, the largest first"}
	Fsck            = Method[FsckRequest, FsckResponse]{Name: "fsck", Doc: "fsck checks the files of histories; with repair, it mends what can be mended"}
	StorageProgress = Method[Empty, ProgressResponse]{Name: "storage_progress", Doc: "storage_progress says how far the long work on histories is that is under way"}

	ReadPath   = Method[PathRequest, PathResponse]{Name: "read_path", Doc: "read_path reads a path of the VFS"}
	WritePath  = Method[PathRequest, PathResponse]{Name: "write_path", Doc: "write_path writes to a path of the VFS and returns what can be read afterwards"}
	ListPath   = Method[PathRequest, ListPathResponse]{Name: "list_path", Doc: "list_path lists the names below a path of the VFS"}
	Providers  = Method[ProvidersRequest, ProvidersResponse]{Name: "providers", Doc: "providers lists the model providers, which one would be chosen, and why"}
	ListAgents = Method[ProjectRequest, AgentsResponse]{Name: "list_agents", Doc: "list_agents lists the agents that a project sees"}
	ListSkills = Method[ProjectRequest, SkillsResponse]{Name: "list_skills", Doc: "list_skills lists the skills that a project sees"}
	MCPList    = Method[ProjectRequest, MCPListResponse]{Name: "mcp_list", Doc: "mcp_list lists the configured MCP servers and the mounted ones"}
	MCPTest    = Method[MCPTestRequest, MCPTestResponse]{Name: "mcp_test", Doc: "mcp_test starts an MCP server, lists what it offers, and ends it"}
)

// Empty is the request or response of methods that have none.
type Empty struct{}

// PingResponse says who answers.
type PingResponse struct {
	PID     int    `json:"pid"` // OS process id of the daemon
	Version string `json:"version"`
}

// Status describes the daemon.
type Status struct {
	PID                int           `json:"pid"`
	Version            string        `json:"version"`
	Started            time.Time     `json:"started"`
	Socket             string        `json:"socket"`
	DataDir            string        `json:"data_dir"`
	Log                string        `json:"log"`
	Running            int           `json:"running"`
	Suspended          int           `json:"suspended"`
	Stored             int           `json:"stored"` // histories on disk
	Children           int           `json:"os_children"`
	Goroutines         int           `json:"goroutines"`
	HeapBytes          uint64        `json:"heap_bytes"`
	Freezer            string        `json:"freezer"`                       // what makes the OS children of a paused process stand still: cgroup2, cgroup1 or signals
	Recovered          []string      `json:"recovered,omitempty"`           // what the last start found and mended, a line each
	Recovering         bool          `json:"recovering,omitempty"`          // it is still looking at what an earlier daemon has left
	Misread            []string      `json:"misread,omitempty"`             // what is wrong in the configuration that it was started with, and does not count
	CheckpointFailures int           `json:"checkpoint_failures,omitempty"` // how many could not be written since the start
	CheckpointFailure  string        `json:"checkpoint_failure,omitempty"`  // the last one
	Storage            StorageStatus `json:"storage"`                       // of the histories that are out of the way, or will be
}

// SpawnRequest starts a process. Pointers tell "not said" from zero.
type SpawnRequest struct {
	Intent           string   `json:"intent"`
	Agent            string   `json:"agent,omitempty"`
	Provider         string   `json:"provider,omitempty"`
	Model            string   `json:"model,omitempty"`
	FallbackProvider string   `json:"fallback_provider,omitempty"`
	FallbackModel    string   `json:"fallback_model,omitempty"`
	Effort           string   `json:"reasoning_effort,omitempty"`
	MaxSteps         *int     `json:"max_steps,omitempty"`      // 0 = no limit
	ContextBudget    *int     `json:"context_budget,omitempty"` // tokens; 0 = unlimited
	TimeoutMs        int64    `json:"timeout_ms,omitempty"`     // of the whole process; 0 = none
	Cwd              string   `json:"cwd,omitempty"`            // absolute
	Name             string   `json:"name,omitempty"`
	Allow            []string `json:"allow,omitzero"` // device paths; null = what the agent has, [] = nothing
	Deny             []string `json:"deny,omitempty"`
	MCP              []string `json:"mcp,omitempty"` // servers to mount besides the agent's
	Parent           string   `json:"parent,omitempty"`
	SystemPrompt     string   `json:"system_prompt,omitempty"`
	TrustProject     bool     `json:"trust_project,omitempty"` // let the project's own files start MCP servers and set up providers
	// Env is the environment of the caller, "KEY=value". The daemon takes credentials and the
	// allow-listed variables from it, keeps it in memory, and never writes or shows it.
	Env []string `json:"env,omitempty"`
}

// SpawnResponse names the new process.
type SpawnResponse struct {
	PID      types.PID  `json:"pid"`
	UUID     types.UUID `json:"uuid"`
	Name     string     `json:"name,omitempty"`
	Provider string     `json:"provider"`
	Model    string     `json:"model"`
	Why      string     `json:"why"`       // why this provider
	MaxSteps int        `json:"max_steps"` // 0 = no limit
	Seq      uint64     `json:"seq"`       // event log position just before its first event
	Warnings []string   `json:"warnings,omitempty"`
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
	ElapsedMs  int64            `json:"elapsed_ms"`
	Steps      int              `json:"steps"`
	Suspended  bool             `json:"suspended,omitempty"` // stopped by a pause of the daemon, not ended
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
}

// ListRequest lists processes.
type ListRequest struct {
	All   bool `json:"all,omitempty"`
	Limit int  `json:"limit,omitempty"` // of stored ones, newest first; 0 = all
}

// ListResponse is the processes, in order of PID.
type ListResponse struct {
	Procs  []Proc `json:"procs"`
	Hidden int    `json:"hidden,omitempty"` // stored ones cut by Limit
}

// Proc is one line of ps.
type Proc struct {
	PID        types.PID         `json:"pid"`
	UUID       types.UUID        `json:"uuid"`
	PPID       types.PID         `json:"ppid"`
	ParentUUID types.UUID        `json:"parent_uuid,omitzero"`
	Name       string            `json:"name,omitempty"`
	State      string            `json:"state"` // created, running, suspended, zombie, dead, archived
	Wait       string            `json:"wait,omitempty"`
	WaitUntil  time.Time         `json:"wait_until,omitzero"`
	Intent     string            `json:"intent"`
	WorkDir    string            `json:"work_dir,omitempty"`
	Agent      string            `json:"agent,omitempty"`
	Provider   string            `json:"provider"`
	Model      string            `json:"model,omitempty"`
	Step       int               `json:"step"`
	MaxSteps   int               `json:"max_steps"`
	TokensUsed int               `json:"tokens_used"`
	Estimated  bool              `json:"estimated,omitempty"`
	Budget     int               `json:"context_budget,omitempty"`
	CostUSD    float64           `json:"cost_usd,omitempty"`
	CreatedAt  time.Time         `json:"created_at"`
	UpdatedAt  time.Time         `json:"updated_at,omitzero"` // when its record last changed; zero = not known
	ElapsedMs  int64             `json:"elapsed_ms"`          // frozen while paused and after the end
	Exit       *types.ExitStatus `json:"exit,omitempty"`
	Children   []OSChild         `json:"os_children,omitempty"`
}

// OSChild is a process of the operating system that an agent started.
type OSChild struct {
	PID     int       `json:"pid"`
	Kind    string    `json:"kind"` // shell, mcp, llm
	Command string    `json:"command"`
	Started time.Time `json:"started"`
}

// ProcDetail is everything that /proc shows of a process, living or dead.
type ProcDetail struct {
	Proc
	ReadRoots      []string      `json:"read_roots,omitempty"`
	AllowedDevices []string      `json:"allowed_devices"` // null = all
	DeniedDevices  []string      `json:"denied_devices,omitempty"`
	MCPMounts      []string      `json:"mcp_mounts,omitempty"`
	Skills         []string      `json:"skills,omitempty"`
	Tools          []string      `json:"tools,omitempty"`
	Plan           string        `json:"plan,omitempty"`
	Result         string        `json:"result,omitempty"`
	Interrupted    []step.Intent `json:"interrupted,omitempty"` // calls that were begun and have no result
	Damage         string        `json:"damage,omitempty"`      // what was wrong with its files, and what was cut
	Dir            string        `json:"dir"`                   // where its files are
}

// ListStepsResponse is the steps of a process.
type ListStepsResponse struct {
	PID         types.PID         `json:"pid"`
	UUID        types.UUID        `json:"uuid"`
	Steps       []step.StepRecord `json:"steps"`
	Interrupted []step.Intent     `json:"interrupted,omitempty"`
	Damage      string            `json:"damage,omitempty"`
}

// StepRequest names one step.
type StepRequest struct {
	Target string `json:"target"`
	Step   int    `json:"step"`
}

// StepDetail is one step, with Messages filled in.
type StepDetail struct {
	PID  types.PID       `json:"pid"`
	UUID types.UUID      `json:"uuid"`
	Step step.StepRecord `json:"step"`
}

// EventsRequest selects events.
type EventsRequest struct {
	Target   string       `json:"target,omitempty"`    // empty = all processes
	Tree     bool         `json:"tree,omitempty"`      // with the descendants of Target
	From     uint64       `json:"from,omitempty"`      // first sequence number; 0 = from now on
	History  bool         `json:"history,omitempty"`   // begin with what is still known of the past
	Follow   bool         `json:"follow"`              // go on until the client leaves; else end at what is there
	UntilEnd bool         `json:"until_end,omitempty"` // end after the Reaped or Exited event of Target
	Kinds    []event.Kind `json:"kinds,omitempty"`     // empty = all
}

// PathRequest names a path of the VFS. As is the process on whose behalf it is opened; empty means
// the user, with Cwd as the workspace.
type PathRequest struct {
	Path string   `json:"path"`
	As   string   `json:"as,omitempty"`
	Cwd  string   `json:"cwd,omitempty"`
	Data []byte   `json:"data,omitempty"`
	Max  int      `json:"max,omitempty"` // bytes to return; 0 = 1 MiB
	Env  []string `json:"env,omitempty"` // as in SpawnRequest; it counts when As is empty
}

// PathResponse is what was read.
type PathResponse struct {
	Data []byte `json:"data"`
	Cut  bool   `json:"cut,omitempty"` // there was more than Max
}

// ListPathResponse is the entries of a directory or of the name space.
type ListPathResponse struct {
	Entries []PathEntry `json:"entries"`
}

// PathEntry is one entry.
type PathEntry struct {
	Name  string    `json:"name"`
	IsDir bool      `json:"is_dir,omitempty"`
	Size  int64     `json:"size"` // -1 = not known
	Mtime time.Time `json:"mtime,omitzero"`
	Type  string    `json:"type,omitempty"`
}

// ProjectRequest names the directory whose project configuration counts.
type ProjectRequest struct {
	Cwd          string   `json:"cwd,omitempty"`
	Env          []string `json:"env,omitempty"` // as in SpawnRequest
	TrustProject bool     `json:"trust_project,omitempty"`
}

// ProvidersRequest asks for the providers that a spawn from Cwd would see.
type ProvidersRequest struct {
	ProjectRequest
	Agent    string `json:"agent,omitempty"`
	Provider string `json:"provider,omitempty"`
}

// ProvidersResponse is the providers.
type ProvidersResponse struct {
	Chosen    string     `json:"chosen"`
	Why       string     `json:"why"`
	Providers []Provider `json:"providers"`
	Problems  []string   `json:"problems,omitempty"` // of configuration files, file:line:column
}

// Provider is one model provider.
type Provider struct {
	Name      string `json:"name"`
	Driver    string `json:"driver"`
	Path      string `json:"path"` // in the VFS
	Model     string `json:"model,omitempty"`
	Available bool   `json:"available"`
	Detail    string `json:"detail"` // why, or why not and how to mend it
	Source    string `json:"source"` // built-in, environment, or a file
}

// AgentsResponse is the agents.
type AgentsResponse struct {
	Agents   []AgentInfo `json:"agents"`
	Problems []string    `json:"problems,omitempty"`
}

// AgentInfo is one agent.
type AgentInfo struct {
	agent.Manifest
	Scope  string `json:"scope"` // project, user, built-in
	Source string `json:"source"`
}

// SkillsResponse is the skills.
type SkillsResponse struct {
	Skills   []agent.Skill `json:"skills"`
	Problems []string      `json:"problems,omitempty"`
}

// MCPListResponse is the MCP servers.
type MCPListResponse struct {
	Servers  []MCPServerInfo `json:"servers"`
	Mounts   []MCPMount      `json:"mounts"`
	Problems []string        `json:"problems,omitempty"`
}

// MCPServerInfo is one configured server. Values of its environment and headers are not shown.
type MCPServerInfo struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Command  string `json:"command"` // command line or URL
	Source   string `json:"source"`
	Disabled bool   `json:"disabled,omitempty"`
	Problem  string `json:"problem,omitempty"` // why it cannot be used; empty = it can
}

// MCPMount is one mounted server.
type MCPMount struct {
	Path  string    `json:"path"`
	PID   types.PID `json:"pid"`
	Since time.Time `json:"since"`
	Tools int       `json:"tools"`
}

// MCPTestRequest names a configured server.
type MCPTestRequest struct {
	ProjectRequest
	Server string `json:"server"`
}

// MCPTestResponse says what the server offers and how long it took.
type MCPTestResponse struct {
	ConnectMs int64           `json:"connect_ms"`
	Tools     json.RawMessage `json:"tools"`
	Resources json.RawMessage `json:"resources,omitempty"`
}
