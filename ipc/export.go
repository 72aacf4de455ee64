package ipc

import "rnix/types"

// The method of this file.
var ExportRun = Method[TargetRequest, ExportResponse]{Name: "export_run",
	Doc: "export_run returns what a process and those below it were asked, what their models answered and what their calls brought: what it takes to play it again"}

// ExportResponse is a process and its descendants, in the order in which they were started. Its lists are never null.
type ExportResponse struct {
	Procs []ExportedProc `json:"procs"`
}

// ExportedProc is what one process was started with and did, over all its runs.
type ExportedProc struct {
	types.ProcStatus
	State          string     `json:"state"`            // running, suspended, zombie or dead
	Driver         string     `json:"driver,omitempty"` // empty = not recorded
	Window         int        `json:"context_window,omitempty"`
	Dir            string     `json:"dir"`             // where the files of its history are
	AllowedDevices []string   `json:"allowed_devices"` // null = all
	DeniedDevices  []string   `json:"denied_devices,omitempty"`
	MCPMounts      []string   `json:"mcp_mounts,omitempty"`
	OriginUUID     types.UUID `json:"origin_uuid,omitzero"` // of a fork, which has what its origin did up to OriginStep
	OriginStep     int        `json:"origin_step,omitempty"`
	Runs           int        `json:"runs"`
	Inputs         []Input    `json:"inputs,omitempty"`
	First          string     `json:"first"`              // its first message
	Attached       int        `json:"attached,omitempty"` // images and PDFs that it was shown with that, which are not here
	Said           int        `json:"said,omitempty"`     // messages that came to it on its way
	Turns          []Turn     `json:"turns"`
	Result         string     `json:"result,omitempty"`
	Changes        bool       `json:"changes"`          // it has called what can change files
	Damage         string     `json:"damage,omitempty"` // why its record could not be read to the end
}

// Turn is one answer of the model, and what came of its calls.
type Turn struct {
	Step       int        `json:"step"`
	Content    string     `json:"content"`
	Calls      []TurnCall `json:"calls,omitempty"`
	StopReason string     `json:"stop_reason,omitempty"`
	Input      int        `json:"input_tokens,omitempty"`
	Output     int        `json:"output_tokens,omitempty"`
	CacheRead  int        `json:"cache_read_tokens,omitempty"`
	CacheWrite int        `json:"cache_write_tokens,omitempty"`
	Estimated  bool       `json:"estimated,omitempty"` // these counts are ours
}

// TurnCall is a call of an answer.
type TurnCall struct {
	ID     string        `json:"id"`
	Name   string        `json:"name"`
	Input  string        `json:"input"`            // as the model wrote it
	Ended  bool          `json:"ended"`            // it has a result
	Output string        `json:"output,omitempty"` // as the model was told
	Failed bool          `json:"failed,omitempty"`
	Code   types.ErrCode `json:"code,omitempty"`
	Cut    int           `json:"cut,omitempty"` // bytes of Output that are left out
}
