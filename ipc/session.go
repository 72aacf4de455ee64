package ipc

import (
	"encoding/json"
	"time"

	"rnix/types"
)

// The methods by which an agent's command line reaches the kernel as an MCP server.
var (
	SessionTools = Method[SessionToolsRequest, SessionToolsResponse]{Name: "session_tools", Doc: "session_tools lists what a session of an agent's command line may call"}
	SessionCall  = Method[SessionCallRequest, SessionCallResponse]{Name: "session_call", Doc: "session_call has the kernel run a call of a session, as a step of its process"}
	SessionJudge = Method[SessionJudgeRequest, SessionJudgeResponse]{Name: "session_judge", Doc: "session_judge asks the rules, and a person, about a call of a tool that a command line has itself"}
)

// SessionToolsRequest asks for the tools of a session. Credential is the secret of that session, which is in
// a file that only its user can read; it is never shown.
type SessionToolsRequest struct {
	Credential string `json:"credential"`
}

// SessionToolsResponse are the tools, in the order in which they are to be offered.
type SessionToolsResponse struct {
	PID   types.PID     `json:"pid"`
	UUID  types.UUID    `json:"uuid"`
	Tools []SessionTool `json:"tools"`
}

// SessionTool is a tool as it is offered to a model.
type SessionTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

// SessionCallRequest has a tool run. The answer may take as long as the call does, days if the process is
// paused; who hangs up gives the call up, and what it has begun is on record.
type SessionCallRequest struct {
	Credential string          `json:"credential"`
	Name       string          `json:"name"`
	Input      json.RawMessage `json:"input,omitempty"` // a JSON object
}

// SessionCallResponse is what the model is told. An error of the tool is no error of the method.
type SessionCallResponse struct {
	Output  string `json:"output"`
	IsError bool   `json:"is_error,omitempty"`
}

// SessionJudgeRequest asks whether a call may be made. The answer may take days; who hangs up does not make it.
type SessionJudgeRequest struct {
	Credential string `json:"credential"`
	Question   []byte `json:"question"` // what the command line says of the call, in its own form
}

// SessionJudgeResponse is what the command line is told.
type SessionJudgeResponse struct {
	Answer []byte `json:"answer,omitempty"` // in its own form
}

// SessionFile is the form of the file in which a session's command line finds the kernel. Mode 0600.
type SessionFile struct {
	Socket     string `json:"socket"`         // of the daemon
	Road       string `json:"road,omitempty"` // of the process, for one in the sandbox: host:port
	Credential string `json:"credential"`
}

// PlatformSession is how the session stands that a process has with a platform.
type PlatformSession struct {
	Session      string    `json:"session"`
	FencingToken uint64    `json:"fencing_token"`
	LastTick     time.Time `json:"last_tick,omitzero"` // when the platform has last confirmed the lease
	Pending      int       `json:"pending"`            // things that the platform does not know yet
	Trouble      string    `json:"trouble,omitempty"`  // why it took nothing the last time
}
