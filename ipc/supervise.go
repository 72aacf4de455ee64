package ipc

import (
	"time"

	"rnix/types"
)

// The methods of supervisors.
var (
	SuperviseUp    = Method[SuperviseRequest, SuperviseResponse]{Name: "supervise_up", Doc: "supervise_up starts the supervisors of a file"}
	SuperviseCheck = Method[SuperviseRequest, SuperviseResponse]{Name: "supervise_check", Doc: "supervise_check says what is wrong with a file of supervisors, and starts nothing"}
	SuperviseAdd   = Method[SuperviseAddRequest, SuperviseAddResponse]{Name: "supervise_add", Doc: "supervise_add starts another child of a supervisor of strategy simple_one_for_one"}
	SuperviseStop  = Method[TargetRequest, SuperviseStopResponse]{Name: "supervise_stop", Doc: "supervise_stop asks a supervisor to stop its children and end; one that is suspended is ended on disk"}
	Supervisors    = Method[SupervisorsRequest, SupervisorsResponse]{Name: "supervisors", Doc: "supervisors lists the supervisors, with their children"}
)

// SuperviseRequest is a file of supervisors, in the form of init.yaml. Its paths are relative to Cwd.
type SuperviseRequest struct {
	ProjectRequest
	File   string `json:"file"`   // its name, for the places of mistakes
	Source string `json:"source"` // its text, YAML or JSON
	Parent string `json:"parent,omitempty"`
}

// SuperviseResponse is the supervisors of a file, in its order.
type SuperviseResponse struct {
	Supervisors []Supervised `json:"supervisors"`
	Warnings    []string     `json:"warnings,omitempty"`
}

// Supervised is one supervisor of a file.
type Supervised struct {
	PID      types.PID  `json:"pid,omitempty"` // 0 = it was only checked
	UUID     types.UUID `json:"uuid,omitzero"`
	Name     string     `json:"name"`
	Strategy string     `json:"strategy"`
	Children int        `json:"children"`
	Was      bool       `json:"was,omitempty"` // it ran already, as the file says
}

// SuperviseAddRequest starts a child of a supervisor. An empty Intent is that of its template.
type SuperviseAddRequest struct {
	Target string `json:"target"`
	Intent string `json:"intent,omitempty"`
}

// SuperviseAddResponse names the child.
type SuperviseAddResponse struct {
	PID        types.PID  `json:"pid"`
	UUID       types.UUID `json:"uuid"`
	Name       string     `json:"name"`
	Supervisor types.PID  `json:"supervisor"`
}

// SuperviseStopResponse names the supervisor that is stopping, or was ended on disk.
type SuperviseStopResponse struct {
	PID       types.PID  `json:"pid"`
	UUID      types.UUID `json:"uuid"`
	Name      string     `json:"name,omitempty"`
	Dismissed bool       `json:"dismissed,omitempty"` // it was suspended
}

// SupervisorsRequest lists supervisors: those that are alive or suspended, or the one of Target, which may have ended.
type SupervisorsRequest struct {
	Target string `json:"target,omitempty"`
}

// SupervisorsResponse is the supervisors, in order of PID.
type SupervisorsResponse struct {
	Supervisors []Supervisor `json:"supervisors"`
}

// InitSupervisor is what has become of a supervisor of init.yaml at the start of the daemon.
type InitSupervisor struct {
	Name     string    `json:"name"`
	Required bool      `json:"required,omitempty"`
	PID      types.PID `json:"pid,omitempty"`
	How      string    `json:"how"` // started, goes on, paused, failed
	Error    string    `json:"error,omitempty"`
}

// Supervisor is what is known of a supervisor.
type Supervisor struct {
	PID         types.PID         `json:"pid"`
	UUID        types.UUID        `json:"uuid"`
	ParentUUID  types.UUID        `json:"parent_uuid,omitzero"`
	Name        string            `json:"name,omitempty"`
	State       string            `json:"state"` // as in Proc
	Wait        string            `json:"wait,omitempty"`
	Init        bool              `json:"init,omitempty"` // it is of init.yaml
	Strategy    string            `json:"strategy"`
	MaxRestarts int               `json:"max_restarts"` // within Window
	Window      time.Duration     `json:"window_ns"`
	Restarts    int               `json:"restarts"` // that count now
	Left        int               `json:"left"`     // so many more now, and it gives up at the next
	Created     time.Time         `json:"created_at"`
	Exit        *types.ExitStatus `json:"exit,omitempty"`
	Children    []SupervisedChild `json:"children"`
}

// SupervisedChild is a child of a supervisor.
type SupervisedChild struct {
	Name     string            `json:"name"`
	PID      types.PID         `json:"pid,omitempty"` // of its last run
	UUID     types.UUID        `json:"uuid,omitzero"` // likewise
	Kind     string            `json:"kind"`          // agent or supervisor
	Restart  string            `json:"restart"`       // permanent, transient, temporary
	State    string            `json:"state"`         // starting, running, suspended, paused, stopping, delayed, retrying, ended, down
	Wait     string            `json:"wait,omitempty"`
	Step     int               `json:"step,omitempty"`
	Tokens   int               `json:"tokens_used,omitempty"`
	Restarts int               `json:"restarts"`
	Next     time.Time         `json:"next_restart,omitzero"` // when it is started again
	Last     *types.ExitStatus `json:"last_exit,omitempty"`   // of the run before
	LastEnd  time.Time         `json:"last_end,omitzero"`
}
