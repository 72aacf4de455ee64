// Package ipc is the wire between the daemon and everybody else: HTTP/1.1 with JSON over a Unix
// socket, POST /v1/<method> for each method of the table below, server-sent events for streams. It
// owns the method table, the server's framing and the client. It knows no kernel.
package ipc

import (
	"time"
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

	SameCaller = Method[SameCallerRequest, SameCallerResponse]{Name: "same_caller", Doc: "same_caller says of processes of the operating system whether each would call as this caller does: a person's, or of the same agent"}

	Spawn         = Method[SpawnRequest, SpawnResponse]{Name: "spawn", Doc: "spawn starts a process"}
	Wait          = Method[WaitRequest, WaitResponse]{Name: "wait", Doc: "wait waits for a process to end and reaps it"}
	Signal        = Method[SignalRequest, SignalResponse]{Name: "signal", Doc: "signal sends a signal to one process"}
	SignalTree    = Method[SignalRequest, SignalResponse]{Name: "signal_tree", Doc: "signal_tree sends a signal to a process and all its living descendants"}
	ListProcs     = Method[ListRequest, ListResponse]{Name: "list_procs", Doc: "list_procs lists processes; with all, also those on disk"}
	GetProcDetail = Method[TargetRequest, ProcDetail]{Name: "get_proc_detail", Doc: "get_proc_detail describes one process"}
	ListSteps     = Method[StepsRequest, ListStepsResponse]{Name: "list_steps", Doc: "list_steps lists the steps of a process, living or dead, without their messages; all, a page of them, or those that have a text"}
	GetStepDetail = Method[StepRequest, StepDetail]{Name: "get_step_detail", Doc: "get_step_detail returns one step with its messages in full"}
	Events        = Method[EventsRequest, Event]{Name: "events", Doc: "events streams the event log, from a sequence number on", Stream: true}

	Resume        = Method[ResumeRequest, ResumeResponse]{Name: "resume", Doc: "resume continues a process: a paused one, or one that is only on disk; with fork, a copy of it"}
	ListResumable = Method[ListRequest, ListResponse]{Name: "list_resumable", Doc: "list_resumable lists what can be resumed, the latest first"}

	Ledger       = Method[LedgerRequest, LedgerResponse]{Name: "ledger", Doc: "ledger lists every call of a process, with what became of it"}
	DiffFiles    = Method[DiffRequest, DiffResponse]{Name: "diff_files", Doc: "diff_files compares the files of a process at the ends of two steps, or with what is there now"}
	RestoreFiles = Method[RestoreRequest, RestoreResponse]{Name: "restore_files", Doc: "restore_files brings files back as they were at the end of a step"}
	Lineage      = Method[TargetRequest, LineageResponse]{Name: "lineage", Doc: "lineage shows where a process comes from, its forks and its runs"}

	GC              = Method[GCRequest, GCResponse]{Name: "gc", Doc: "gc archives or deletes histories that are over the limits of the configuration"}
	Keep            = Method[KeepRequest, KeepResponse]{Name: "keep", Doc: "keep marks a history so that gc leaves it alone, or takes the mark away"}
	Remove          = Method[RemoveRequest, RemoveResponse]{Name: "remove", Doc: "remove deletes one history for good, also an archived one"}
	Unarchive       = Method[UnarchiveRequest, UnarchiveResponse]{Name: "unarchive", Doc: "unarchive puts an archived history back, with its directory or git work tree"}
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
	MCPMountAt = Method[MCPMountRequest, MCPMount]{Name: "mcp_mount", Doc: "mcp_mount mounts an MCP server for people, until it is unmounted or the daemon ends"}
	MCPReload  = Method[MCPReloadRequest, MCPReloadResponse]{Name: "mcp_reload", Doc: "mcp_reload ends MCP servers of running processes and starts them anew, with their configuration read again"}
	MCPUnmount = Method[MCPUnmountRequest, Empty]{Name: "mcp_unmount", Doc: "mcp_unmount ends an MCP server that mcp_mount has mounted"}
)

// Empty is the request or response of methods that have none.
type Empty struct{}

// MaxSameCaller is how many processes one SameCallerRequest may name.
const MaxSameCaller = 256

// SameCallerRequest names processes of the operating system. A server that acts with its own rights for others asks so whether they have them.
type SameCallerRequest struct {
	PIDs []int `json:"pids"`
}

// SameCallerResponse has an answer for each process, in the order of the request. One that is gone, or of which it cannot be told, does not.
type SameCallerResponse struct {
	Same []bool `json:"same"`
}

// PingResponse says who answers.
type PingResponse struct {
	PID     int    `json:"pid"` // OS process id of the daemon
	Version string `json:"version"`
	// Stopping says that it takes up nothing any more: who wants something waits for its end, and starts the next one.
	Stopping bool `json:"stopping,omitempty"`
}

// Status describes the daemon.
type Status struct {
	PID                int              `json:"pid"`
	Version            string           `json:"version"`
	Started            time.Time        `json:"started"`
	Socket             string           `json:"socket"`
	DataDir            string           `json:"data_dir"`
	Log                string           `json:"log"`
	Running            int              `json:"running"`
	Suspended          int              `json:"suspended"`
	Stored             int              `json:"stored"` // histories on disk
	Children           int              `json:"os_children"`
	Goroutines         int              `json:"goroutines"`
	HeapBytes          uint64           `json:"heap_bytes"`
	Freezer            string           `json:"freezer"`                       // what makes the OS children of a paused process stand still: cgroup2, cgroup1 or signals
	Cgroup             string           `json:"cgroup,omitempty"`              // below which each process has one that its OS children are born in; empty = there is none
	Bounds             Bounding         `json:"bounds"`                        // which limits of what processes start are enforced
	Recovered          []string         `json:"recovered,omitempty"`           // what the last start found and mended, a line each
	Recovering         bool             `json:"recovering,omitempty"`          // it is still looking at what an earlier daemon has left
	Init               []InitSupervisor `json:"init,omitempty"`                // what has become of the supervisors of init.yaml
	Starting           bool             `json:"starting,omitempty"`            // it is still starting these
	Misread            []string         `json:"misread,omitempty"`             // what is wrong in the configuration that it was started with, and does not count
	CheckpointFailures int              `json:"checkpoint_failures,omitempty"` // how many could not be written since the start
	CheckpointFailure  string           `json:"checkpoint_failure,omitempty"`  // the last one
	Room               string           `json:"room,omitempty"`                // why agents wait for room on the disk; empty = they do not
	Storage            StorageStatus    `json:"storage"`                       // of the histories that are out of the way, or will be
}

// Bounding is which limits of what processes start the daemon enforces by cgroups.
type Bounding struct {
	Memory    bool   `json:"memory"`
	Processes bool   `json:"processes"`
	Why       string `json:"why,omitempty"` // that it does not enforce both
}
