package ipc

import (
	"rnix/internal/permit"
	"rnix/types"
)

// ResumeRequest lets a process go on: one that is paused, suspended, a zombie or dead. What is not said
// stays as it was. Pointers tell "not said" from zero.
type ResumeRequest struct {
	Target string `json:"target"` // a PID, a UUID or a prefix of one, or a name
	// Fork makes a copy with a UUID of its own and lets that go on; the original is not touched.
	Fork bool `json:"fork,omitempty"`
	// Tree resumes all below it, too, that stand still, wherever they lie; each as it is. Not with Fork, nor with what changes a process.
	Tree bool `json:"tree,omitempty"`
	// FromStep is the last step that a fork has of the original; 0 = none of them. Only with Fork.
	FromStep *int `json:"from_step,omitempty"`
	// NewInput is a message of the user at the point of resume.
	NewInput string `json:"new_input,omitempty"`
	// Attachments are images and PDFs that the model is shown with NewInput, as in SpawnRequest.
	Attachments []Attachment `json:"attachments,omitempty"`

	Provider         string   `json:"provider,omitempty"`
	Model            string   `json:"model,omitempty"`
	FallbackProvider string   `json:"fallback_provider,omitempty"`
	FallbackModel    string   `json:"fallback_model,omitempty"`
	Budget           *int     `json:"budget,omitempty"`     // so many tokens more than are used; 0 = unlimited
	BudgetUSD        *float64 `json:"budget_usd,omitempty"` // so many dollars more than are used; 0 = unlimited
	MaxSteps         *int     `json:"max_steps,omitempty"`  // so many steps more than are done; 0 = no limit
	TimeoutMs        *int64   `json:"timeout_ms,omitempty"` // so much longer than it has lived; 0 = no limit
	Name             string   `json:"name,omitempty"`       // of a fork
	// Sandbox says by what its commands are confined from now on, and Net which network they have; empty = as before.
	Sandbox string `json:"sandbox,omitempty"`
	Net     string `json:"net,omitempty"`
	// Hosts are as in SpawnRequest, besides those that it had.
	Hosts []string `json:"hosts,omitempty"`
	// Bounds are what all that it starts may use together from now on; what is not said is as before.
	Bounds types.Bounds `json:"bounds,omitzero"`
	// Rules are as in SpawnRequest, besides what it has, and so is Asks; empty = as before.
	Rules permit.Rules `json:"rules,omitzero"`
	Asks  string       `json:"asks,omitempty"`
	// Cwd is where a fork works: a directory that is used as it is. Empty = a workspace of its own, with
	// the files as they were at its step.
	Cwd string `json:"cwd,omitempty"`

	// OnInDoubt says what becomes of calls whose outcome nobody knows: tell (default), retry, skip, fail.
	// Choices overrides it by the id of the call.
	OnInDoubt string            `json:"on_in_doubt,omitempty"`
	Choices   map[string]string `json:"choices,omitempty"`

	TrustProject bool `json:"trust_project,omitempty"`
	// AcceptRights resumes a history with the rights that its record says although its seal does not vouch for them. For persons only.
	AcceptRights bool     `json:"accept_rights,omitempty"`
	Env          []string `json:"env,omitempty"` // as in SpawnRequest

	// Person is set by the daemon, of a request that a person has made.
	Person bool `json:"-"`
	// Tighter is set by the daemon, of a request whose Sandbox and Net are refused where they would loosen what the process has.
	Tighter bool `json:"-"`
}

// ResumeResponse names the process that goes on.
type ResumeResponse struct {
	SpawnResponse
	Mode string `json:"mode"` // live (it was only paused), continue, fork
	// From says what was read: checkpoint, or history. Step is the last step that had ended.
	From       string     `json:"from,omitempty"`
	Step       int        `json:"step"`
	OriginUUID types.UUID `json:"origin_uuid,omitzero"`
	OriginPID  types.PID  `json:"origin_pid,omitempty"`
	WorkDir    string     `json:"work_dir,omitempty"`
	// LeftOut is how many calls a fork does not have, of a step of its origin that had not ended: it is told of them.
	LeftOut int `json:"left_out,omitempty"`
	// InDoubt are the calls whose outcome nobody knows, with what becomes of each.
	InDoubt []InDoubt `json:"in_doubt,omitempty"`
	// Woken are the other processes that are resumed with it: those that it waits for, and those that wait for it.
	Woken []types.PID `json:"woken,omitempty"`
	// Paused are the processes below it that stay paused; Tree would resume them.
	Paused []types.PID `json:"paused,omitempty"`
	// Affected is how many processes Tree has resumed, and Still are those that it could not.
	Affected int         `json:"affected,omitempty"`
	Still    []StillProc `json:"still,omitempty"`
}

// StillProc is a process that could not be resumed with those above it.
type StillProc struct {
	PID  types.PID  `json:"pid"`
	UUID types.UUID `json:"uuid"`
	Why  string     `json:"why"`
}

// InDoubt is a call that was begun and has no result.
type InDoubt struct {
	CallID  string `json:"call_id"`
	Tool    string `json:"tool"`
	Path    string `json:"path"`
	Effect  string `json:"effect"`
	Input   string `json:"input,omitempty"` // bounded
	Step    int    `json:"step"`
	Verdict string `json:"verdict"` // again, undo, attach, unknown, skipped, refuse
}
