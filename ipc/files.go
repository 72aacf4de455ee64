package ipc

import (
	"time"
	"unicode/utf8"

	"rnix/types"
)

// DiffRequest asks what is different between the files of a process at two moments. Steps are counted
// from 1, and 0 is before the first one.
type DiffRequest struct {
	Target string `json:"target"`
	From   int    `json:"from,omitempty"` // the end of this step
	// To is the end of this one; null = the files as they are now, or of a process that has ended, the end of its last step.
	To  *int `json:"to,omitempty"`
	Now bool `json:"now,omitempty"` // without To: as they are now, also of one that has ended: with what others have changed since
	// Paths selects files and directories, absolute or relative to the directory of the process; none = all.
	Paths    []string `json:"paths,omitempty"`
	Stat     bool     `json:"stat,omitempty"`      // the list without the text
	MaxBytes int      `json:"max_bytes,omitempty"` // of the text; 0 = DiffBytes, and not more than MaxDiffBytes
	// Removed wants to know what is left of a git work tree that was removed: DiffResponse.Removed says it. Without it that is an error of code NOT_FOUND.
	Removed bool `json:"removed,omitempty"`
}

// How much of a diff is returned, in bytes.
const (
	DiffBytes    = 1 << 20
	MaxDiffBytes = 16 << 20
)

// DiffResponse is the difference.
type DiffResponse struct {
	PID   types.PID    `json:"pid"`
	UUID  types.UUID   `json:"uuid"`
	From  FilesAt      `json:"from"`
	To    FilesAt      `json:"to"`
	Files []FileChange `json:"files"`
	// Diff is the text, in the form that patch and git apply take. DiffBytes stands in its place if it is
	// not UTF-8.
	Diff      string `json:"diff,omitempty"`
	DiffBytes []byte `json:"diff_bytes,omitempty"`
	Missing   int64  `json:"missing,omitempty"` // so many bytes more of it there are
	// Unseen says for people what is in a git work tree beside that: in submodules, in other repositories; and what lies next to it.
	Unseen []string `json:"unseen,omitempty"`
	// Autorun are the files that git, an editor, a shell or an agent runs or obeys unasked, and that are not as they were when the process began:
	// hooks and settings of its repository, and files such as .envrc and .vscode. Those of the repository are there only in a difference
	// from the beginning to the end or to now.
	Autorun []AutorunFile `json:"autorun,omitempty"`
	// Removed is what is left of the git work tree of the process, if that was removed: there is no difference then; null = it was not.
	Removed *RemovedTree `json:"removed,omitempty"`
}

// RemovedTree is what is left of a git work tree that was removed.
type RemovedTree struct {
	Repo    string `json:"repo"`             // the work tree that it was made from
	Branch  string `json:"branch,omitempty"` // empty = it had none, or the branch is gone
	Head    string `json:"head,omitempty"`   // the commit of the branch
	Commits int    `json:"commits"`          // of the branch, since the work began
	Kept    string `json:"kept"`             // the command that lists what was kept of its files
}

// AutorunFile is a file that other programs run or obey unasked.
type AutorunFile struct {
	File     string   `json:"file"`               // relative to the top of the work, or absolute if it is elsewhere, as in a repository's .git
	Change   string   `json:"change"`             // created, changed, removed, or unknown
	Settings []string `json:"settings,omitempty"` // of a configuration of git: the keys that differ
	Runs     bool     `json:"runs,omitempty"`     // the next command of git may run a program because of it
	Work     bool     `json:"work,omitempty"`     // it is among the files of the work, not in the repository
	Note     string   `json:"note"`               // who acts on it, and what to do, for people
}

// Line says it all in a line for people.
func (f *AutorunFile) Line() string { return f.Change + " " + f.File + ": " + f.Note }

// Text returns the text of the difference.
func (r *DiffResponse) Text() []byte {
	if r.DiffBytes != nil {
		return r.DiffBytes
	}
	return []byte(r.Diff)
}

// SetText puts a text into the field that keeps it as it is.
func (r *DiffResponse) SetText(b []byte) {
	if r.Diff, r.DiffBytes = "", nil; utf8.Valid(b) {
		r.Diff = string(b)
		return
	}
	r.DiffBytes = b
}

// FilesAt is where one side of a difference comes from.
type FilesAt struct {
	Step int  `json:"step"`          // as it was asked for
	Now  bool `json:"now,omitempty"` // not a step, but the files as they are
	// Kept is the step under which these files are kept: the last one up to Step that has changed any.
	Kept    int    `json:"kept"`
	Kind    string `json:"kind,omitempty"` // git or copy
	ID      string `json:"id,omitempty"`
	Root    string `json:"root,omitempty"`    // the directory that was kept; paths are relative to it
	Limited string `json:"limited,omitempty"` // what was left out, and why
	// Base is the commit whose files these are, at which the work in a git work tree began.
	Base string `json:"base,omitempty"`
	// Broken is a step behind the last one that could change files and did not end: what it has changed is not kept. 0 = there is none.
	Broken int `json:"broken,omitempty"`
}

// FileChange is one file that is different.
type FileChange struct {
	Path    string `json:"path"`
	Status  string `json:"status"`            // A added, D deleted, M changed, T another type of file
	Added   int    `json:"added,omitempty"`   // lines
	Deleted int    `json:"deleted,omitempty"` // lines
	Binary  bool   `json:"binary,omitempty"`  // no lines were counted
}

// RestoreRequest brings files back as they were at the end of a step. Exactly one of Step and Snapshot
// is given.
type RestoreRequest struct {
	Target   string `json:"target"`
	Step     *int   `json:"step,omitempty"`     // 0 = before the first one
	Snapshot string `json:"snapshot,omitempty"` // or the beginning of the id of a snapshot or rescue of the process
	// To is a directory for the files, absolute, which is made or must be empty. Empty = the work directory
	// is put back, after a rescue of what is there.
	To string `json:"to,omitempty"`
	// Paths selects files and directories, absolute or relative to the directory of the process; none = all.
	Paths  []string `json:"paths,omitempty"`
	DryRun bool     `json:"dry_run,omitempty"` // only say what would be done; without To
}

// RestoreResponse says what was done.
type RestoreResponse struct {
	PID     types.PID  `json:"pid"`
	UUID    types.UUID `json:"uuid"`
	Files   FilesAt    `json:"files"` // what was brought back
	Dir     string     `json:"dir"`   // where
	Written int        `json:"written"`
	Removed int        `json:"removed"`
	Dirs    int        `json:"dirs,omitempty"` // directories that were made or removed in place
	Kept    []string   `json:"kept,omitempty"` // what was left as it is, and why
	// Changes are the files that differed, from what was there to what is there now. Without To only.
	Changes []FileChange `json:"changes,omitempty"`
	// Rescue is the snapshot of what was there before; empty = nothing was. Undo is the command that brings
	// it back.
	Rescue    string `json:"rescue,omitempty"`
	RescuePin string `json:"rescue_pin,omitempty"` // git: the reference that holds it
	Undo      string `json:"undo,omitempty"`
}

// LineageResponse is where a process comes from, what was forked from it, and its runs.
type LineageResponse struct {
	PID  types.PID  `json:"pid"`
	UUID types.UUID `json:"uuid"`
	// Family is the process from which all others were forked, directly or not, and those, each behind its
	// origin. Without forks it is the process alone.
	Family []Relative `json:"family"`
	Runs   []Run      `json:"runs"`
	Damage string     `json:"damage,omitempty"` // where the history could not be read any further, and why
}

// Relative is one process of a family of forks.
type Relative struct {
	UUID       types.UUID `json:"uuid"`
	PID        types.PID  `json:"pid,omitempty"` // of its last run
	OriginUUID types.UUID `json:"origin_uuid,omitzero"`
	OriginStep int        `json:"origin_step,omitempty"` // the last step that it has of its origin
	Name       string     `json:"name,omitempty"`
	State      string     `json:"state"` // as in ps; or archived, deleted, missing
	Step       int        `json:"step"`
	Runs       int        `json:"runs,omitempty"`
	Intent     string     `json:"intent,omitempty"`
	Model      string     `json:"model,omitempty"`
	WorkDir    string     `json:"work_dir,omitempty"`
	CreatedAt  time.Time  `json:"created_at,omitzero"`
}

// Run is one run of a process, from a start or a resume to its end.
type Run struct {
	Number    int       `json:"run"` // from 1
	PID       types.PID `json:"pid"`
	How       string    `json:"how"` // spawn, resume, fork
	Began     time.Time `json:"began"`
	FirstStep int       `json:"first_step,omitempty"` // that has ended in it; 0 = none
	LastStep  int       `json:"last_step,omitempty"`
	Input     string    `json:"input,omitempty"` // what a person said at its beginning; first line, bounded
	// Provider, Model, MaxSteps and Budget are what it was started with; Changed has the names of those
	// fields that are not as in the run before.
	Provider string   `json:"provider,omitempty"`
	Model    string   `json:"model,omitempty"`
	MaxSteps int      `json:"max_steps"`
	Budget   int      `json:"context_budget,omitempty"`
	Changed  []string `json:"changed,omitempty"`

	Ended    time.Time         `json:"ended,omitzero"`
	End      string            `json:"end,omitempty"` // exit, suspended, daemon_stop, interrupted; empty = it runs
	Reason   string            `json:"reason,omitempty"`
	Hint     string            `json:"hint,omitempty"` // of a suspended one: the command that lets it go on
	WakeAt   time.Time         `json:"wake_at,omitzero"`
	Exit     *types.ExitStatus `json:"exit,omitempty"`
	ActiveMs int64             `json:"active_ms"` // without pauses
}
