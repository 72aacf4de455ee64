package ipc

import (
	"time"

	"rnix/types"
)

// HistoryRef names a history for people and programs.
type HistoryRef struct {
	UUID   types.UUID `json:"uuid"`
	PID    types.PID  `json:"pid"` // of its last run
	Name   string     `json:"name,omitempty"`
	Intent string     `json:"intent,omitempty"` // its first line
	DeadAt time.Time  `json:"dead_at,omitzero"`
}

// GCRequest takes histories out of the way that are over a limit of the configuration.
type GCRequest struct {
	DryRun bool `json:"dry_run,omitempty"` // say what would go, and do nothing
	Delete bool `json:"delete,omitempty"`  // delete, whatever gc.mode says; else as gc.mode says
}

// GCResponse is what was done, or with DryRun would be. Its lists are never null.
type GCResponse struct {
	Mode       string        `json:"mode"` // archive, delete
	DryRun     bool          `json:"dry_run"`
	Started    time.Time     `json:"started"`
	TookNs     time.Duration `json:"took_ns"`
	Examined   int           `json:"examined"`
	Candidates []GCCandidate `json:"candidates"` // in the order in which they go
	Archived   []GCDone      `json:"archived"`
	Deleted    []GCDone      `json:"deleted"`
	Skipped    []GCSkip      `json:"skipped"` // were to go, and stayed
	Stay       []GCSkip      `json:"stay"`    // archived histories whose directories or git work trees stay where they are, and why
	Exempt     []GCExempt    `json:"exempt"`
	Kept       int           `json:"kept"`            // have ended, may go, and are within the limits
	Freed      int64         `json:"freed_bytes"`     // of directories and git work trees, less the archives made of them
	Snapshots  int64         `json:"snapshots_bytes"` // freed by snapshots that no history has any more
	Warnings   []string      `json:"warnings"`

	RetentionDays int    `json:"retention_days"` // the limits; 0 = none
	MaxEntries    int    `json:"max_entries"`
	ArchiveDays   int    `json:"archive_days"` // that an archive stays; 0 = no limit
	ArchiveDir    string `json:"archive_dir"`
	// ConfirmAbove is how many histories may go at once before a person is asked.
	ConfirmAbove int `json:"confirm_above"`
}

// GCCandidate is a history that goes, and the limit that it has hit.
type GCCandidate struct {
	HistoryRef
	Bytes int64  `json:"bytes"` // of its files and snapshots
	Why   string `json:"why"`
	// Archived says that it is in an archive, which goes for good, whatever the mode.
	Archived bool `json:"archived,omitempty"`
}

// GCDone is a history that went.
type GCDone struct {
	GCCandidate
	ArchiveBytes int64  `json:"archive_bytes,omitempty"`
	Archive      string `json:"archive,omitempty"` // the file; empty = it was deleted
	Rescued      string `json:"rescued,omitempty"` // how the work in its workspace is got back
}

// GCSkip is a history that was to go and stayed.
type GCSkip struct {
	HistoryRef
	Code   types.ErrCode `json:"code"` // CONFLICT: somebody was at it, and the next run tries again
	Reason string        `json:"reason"`
}

// GCExempt is a history that stays whatever the limits say.
type GCExempt struct {
	HistoryRef
	Reason string `json:"reason"`
}

// RemoveRequest deletes one history for good.
type RemoveRequest struct {
	Target string `json:"target"`            // as of TargetRequest; archived ones too
	DryRun bool   `json:"dry_run,omitempty"` // say what would go, and do nothing
}

// RemoveResponse is the history that was deleted, or with DryRun would be.
type RemoveResponse struct {
	HistoryRef
	Archived bool   `json:"archived"`          // it was in an archive
	Bytes    int64  `json:"bytes"`             // of its files or its archive; 0 with DryRun
	Rescued  string `json:"rescued,omitempty"` // how the work in its workspace is got back
	Warning  string `json:"warning,omitempty"` // what could not be tidied up, and will be at the next start
}

// KeepRequest marks a history so that garbage collection leaves it where it is.
type KeepRequest struct {
	Target string    `json:"target"`
	Off    bool      `json:"off,omitempty"`  // take the mark away
	Note   string    `json:"note,omitempty"` // why, for people
	Until  time.Time `json:"until,omitzero"` // zero = for ever
}

// KeepResponse is the mark as it is now.
type KeepResponse struct {
	PID   types.PID  `json:"pid"`
	UUID  types.UUID `json:"uuid"`
	Name  string     `json:"name,omitempty"`
	Kept  bool       `json:"kept"`
	Was   bool       `json:"was"` // it had a mark before
	Note  string     `json:"note,omitempty"`
	Until time.Time  `json:"until,omitzero"`
}

// UnarchiveRequest puts an archived history back.
type UnarchiveRequest struct {
	Target string `json:"target"` // as of TargetRequest
	// NoFiles gives up the directory of the history, which cannot be put back; Said of the answer says how the work in it is had.
	NoFiles bool `json:"no_files,omitempty"`
}

// UnarchiveResponse is a history that was put back from its archive.
type UnarchiveResponse struct {
	HistoryRef
	Dir       string    `json:"dir"`
	Said      string    `json:"said,omitempty"`      // what of its directory is not as it was, or how the work in it is had
	KeptUntil time.Time `json:"kept_until,omitzero"` // until when garbage collection leaves it; zero = for ever
}

// DURequest asks what takes up the room. No Targets = everything.
type DURequest struct {
	Targets []string `json:"targets,omitempty"`
}

// DUResponse is the room that the data directory takes up, the largest history first. With Targets, Total is
// that of these, and what belongs to no history is left out. Its lists are never null.
type DUResponse struct {
	Histories []HistoryUsage `json:"histories"`
	Shared    BytesUsed      `json:"shared"` // what belongs to no history, or to more than one
	Total     BytesUsed      `json:"total"`  // Shared is in it
	Warnings  []string       `json:"warnings"`
	DataDir   string         `json:"data_dir"`
}

// HistoryUsage is the room that one history takes up.
type HistoryUsage struct {
	HistoryRef
	State string `json:"state"` // of the process; suspended, archived or unknown where there is none
	BytesUsed
}

// BytesUsed says how much there is of what, by the lengths of the files.
type BytesUsed struct {
	Steps     int64 `json:"steps"`
	Events    int64 `json:"events"`
	Scratch   int64 `json:"scratch"`
	Other     int64 `json:"other"`
	Snapshots int64 `json:"snapshots"` // that belong to this history alone
	Workspace int64 `json:"workspace"` // the directory of a fork
	Archive   int64 `json:"archive"`
	Total     int64 `json:"total"`
}

// FsckRequest checks the files of histories. No Targets = all of them, and what belongs to none.
type FsckRequest struct {
	Targets []string `json:"targets,omitempty"`
	Repair  bool     `json:"repair,omitempty"` // mend what can be mended; a copy of each file is kept
}

// FsckResponse is what was found. Its list is never null.
type FsckResponse struct {
	Histories int           `json:"histories"` // looked at
	Records   int           `json:"records"`   // that could be read
	Repaired  bool          `json:"repaired"`  // it was tried: each finding says what came of it
	Errors    int           `json:"errors"`    // findings of severity error that are not mended
	Findings  []FsckFinding `json:"findings"`
}

// FsckFinding is one thing that is wrong.
type FsckFinding struct {
	UUID     *types.UUID `json:"uuid,omitempty"` // null: it is of no single history
	PID      types.PID   `json:"pid,omitempty"`
	File     string      `json:"file"`             // the whole path
	Line     int         `json:"line,omitempty"`   // from 1; 0 = it is about the file
	Offset   int64       `json:"offset,omitempty"` // of the line, in bytes
	Severity string      `json:"severity"`         // note, warning, error
	What     string      `json:"what"`
	Repair   string      `json:"repair,omitempty"` // what a repair would do; empty = it cannot help
	Done     string      `json:"done,omitempty"`   // what it has done, or why it has not
}

// ProgressResponse is the long work on the files of histories that is under way.
type ProgressResponse struct {
	Works []Work `json:"works"`
}

// Work is a piece of long work.
type Work struct {
	Method string    `json:"method"` // gc or fsck
	Done   int       `json:"done"`   // histories
	Total  int       `json:"total"`
	At     string    `json:"at,omitempty"` // the history that is looked at
	Since  time.Time `json:"since"`
}

// StorageStatus is what daemon_status says about the histories that are out of the way, or will be.
type StorageStatus struct {
	Archived int    `json:"archived"`
	Deleted  int    `json:"deleted"`
	Leaving  int    `json:"leaving"`           // that garbage collection takes within a day, as it looks now
	Mode     string `json:"gc_mode,omitempty"` // archive, delete; empty = garbage collection is off
	Working  []Work `json:"working,omitempty"` // long work that is under way
}
