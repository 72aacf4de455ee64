// Package state keeps .agent/state.json: what is known of the session that works in a work tree, so that
// somebody who comes after a crash knows whose it was. It owns the file, its form, and who may write when. It is a
// breadcrumb and no record: what a session has done, its history says. It does not know worktrees or processes.
//
// A directory is used again by other sessions. So whoever writes for a session says which one it means (Fence), and
// is refused when the directory has another by now.
package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"sync"

	"rnix/types"
)

// Where the file is, below a work tree.
const (
	AgentDirName  = ".agent"
	StateFileName = "state.json"
)

// SchemaVersion is the version that this package writes. Files without one are of version 1.
const SchemaVersion = 1

// What callers test for.
var (
	ErrNotFound           = errors.New("there is no state")
	ErrMalformed          = errors.New("the state cannot be read")
	ErrIdentifierMismatch = errors.New("the state belongs to another issue")
	ErrNotOwner           = errors.New("the state belongs to another session")
	ErrNewerSchema        = errors.New("the state was written by a newer program")
)

// State is the document. Keys that are not known here are kept from Read to Write, so that a newer program's
// are not lost. Part of the on-disk format.
type State struct {
	Schema            int    `json:"schema"` // set by writing
	IssueID           string `json:"issueId"`
	IssueIdentifier   string `json:"issueIdentifier"` // such as ENG-1234
	SessionID         string `json:"sessionId,omitempty"`
	ProviderName      string `json:"providerName,omitempty"`
	ProviderSessionID string `json:"providerSessionId,omitempty"` // the command line's own id, from its first event
	WorkType          string `json:"workType,omitempty"`
	CurrentStep       string `json:"currentStep,omitempty"` // spawning, streaming, completed
	AttemptCount      int    `json:"attemptCount"`
	StartedAt         int64  `json:"startedAt"`               // in ms since 1970
	LastUpdatedAt     int64  `json:"lastUpdatedAt"`           // in ms since 1970; set by writing
	LastHeartbeat     int64  `json:"lastHeartbeat,omitempty"` // in ms since 1970; see Store.Heartbeat
	PID               int    `json:"pid,omitempty"`           // of the operating system
	OSStartTime       uint64 `json:"osStartTime,omitempty"`   // with PID: which process of that number
	WorkerID          string `json:"workerId,omitempty"`
	BaseSHA           string `json:"baseSha,omitempty"` // the commit that the work began with

	unknown map[string]json.RawMessage
}

// plain is State without its methods.
type plain State

// known are the keys of State. They are found out when they are needed, not at the start of every program.
var known = sync.OnceValue(func() map[string]bool {
	b, _ := json.Marshal(plain{SessionID: "x", ProviderName: "x", ProviderSessionID: "x", WorkType: "x", CurrentStep: "x",
		LastHeartbeat: 1, PID: 1, OSStartTime: 1, WorkerID: "x", BaseSHA: "x"})
	var all map[string]json.RawMessage
	_ = json.Unmarshal(b, &all) // it has just been marshalled
	out := map[string]bool{}
	for k := range all {
		out[k] = true
	}
	return out
})

// UnmarshalJSON reads a document and remembers the keys that are not known.
func (s *State) UnmarshalJSON(b []byte) error {
	var p plain
	if err := json.Unmarshal(b, &p); err != nil {
		return err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	maps.DeleteFunc(all, func(k string, _ json.RawMessage) bool { return known()[k] })
	*s = State(p)
	if len(all) > 0 {
		s.unknown = all
	}
	return nil
}

// MarshalJSON writes the document with the unknown keys that came with it, after its own, sorted.
func (s State) MarshalJSON() ([]byte, error) {
	b, err := json.Marshal(plain(s))
	if err != nil || len(s.unknown) == 0 {
		return b, err
	}
	rest, err := json.Marshal(s.unknown)
	if err != nil {
		return nil, err
	}
	return append(append(b[:len(b)-1], ','), rest[1:]...), nil
}

// Fence names the session that a writer means: the document must have the same two values.
type Fence struct {
	SessionID string
	StartedAt int64 // in ms since 1970
}

// Fence returns the fence of the session that the document belongs to.
func (s *State) Fence() Fence { return Fence{s.SessionID, s.StartedAt} }

// Path returns where the state of a work tree is.
func Path(worktree string) string { return filepath.Join(worktree, AgentDirName, StateFileName) }

// parse reads the bytes of a document.
func parse(path string, b []byte) (*State, error) {
	var s State
	err := json.Unmarshal(b, &s)
	if err == nil && bytes.HasPrefix(bytes.TrimSpace(b), []byte("null")) {
		err = errors.New("it is null")
	}
	if err != nil {
		return nil, types.Errorf(types.ErrStorage, "Read", path, "%w: %w", ErrMalformed, err)
	}
	if s.Schema > SchemaVersion {
		return nil, types.Errorf(types.ErrVersion, "Read", path, "%w: its schema is %d, and this one knows %d; use that program, or remove the file", ErrNewerSchema, s.Schema, SchemaVersion)
	}
	return &s, nil
}
