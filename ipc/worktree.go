package ipc

import "rnix/types"

// The methods for git work trees of processes.
var (
	ListWorktrees  = Method[WorktreesRequest, WorktreesResponse]{Name: "list_worktrees", Doc: "list_worktrees lists the git work trees of processes, and which of them have changed the same files"}
	ShowWorktree   = Method[TargetRequest, Worktree]{Name: "show_worktree", Doc: "show_worktree describes the git work tree of a process"}
	RemoveWorktree = Method[RemoveWorktreeRequest, RemoveWorktreeResponse]{Name: "remove_worktree", Doc: "remove_worktree removes the git work tree of a process that has ended, behind a rescue; its branch stays if it holds work"}
	Merge          = Method[MergeRequest, MergeResponse]{Name: "merge", Doc: "merge merges the work of a process in its git work tree into the branch that is checked out where it was started"}
)

// WorktreesRequest lists work trees.
type WorktreesRequest struct {
	// NamesOnly leaves out all that git has to be asked for, such as the changed files: the list is there at once then.
	NamesOnly bool `json:"names_only,omitempty"`
}

// WorktreeRequest asks for a git work tree for a process.
type WorktreeRequest struct {
	Branch string `json:"branch,omitempty"` // empty = a new one, rnix/NAME
	Base   string `json:"base,omitempty"`   // at which a new branch begins; empty = what is checked out where it is started
}

// Worktree is the git work tree of a process.
type Worktree struct {
	UUID   types.UUID `json:"uuid"`
	PID    types.PID  `json:"pid,omitempty"`
	Name   string     `json:"name,omitempty"`
	State  string     `json:"state"` // of the process
	Intent string     `json:"intent,omitempty"`

	Dir      string `json:"dir"`
	Repo     string `json:"repo"` // the work tree that it was made from
	Branch   string `json:"branch,omitempty"`
	Base     string `json:"base"` // the commit at which its work began
	BaseName string `json:"base_name,omitempty"`

	Gone        bool         `json:"gone,omitempty"` // it is not there any more
	Head        string       `json:"head,omitempty"` // the commit that is checked out
	Commits     int          `json:"commits"`        // since the base
	Uncommitted bool         `json:"uncommitted"`
	Merged      bool         `json:"merged,omitempty"` // the branch BaseName has all of it; squashed or picked work is not known
	Files       []FileChange `json:"files"`            // changed since the base, committed or not
	Overlaps    []Overlap    `json:"overlaps,omitempty"`
	Remote      string       `json:"remote,omitempty"`     // the one to push to
	RemoteURL   string       `json:"remote_url,omitempty"` // without a password
	Unseen      []string     `json:"unseen,omitempty"`     // what is in it that no diff and no merge has, for people: in submodules, in other repositories, beside it; not in lists
	Problem     string       `json:"problem,omitempty"`    // why it could not be looked at
}

// Overlap names files that another work tree of the same repository has changed too.
type Overlap struct {
	UUID  types.UUID `json:"uuid"`
	PID   types.PID  `json:"pid,omitempty"`
	Paths []string   `json:"paths"`
}

// WorktreesResponse lists work trees, the oldest first. Its list is never null.
type WorktreesResponse struct {
	Worktrees []Worktree `json:"worktrees"`
}

// RemoveWorktreeRequest names the process whose work tree is removed.
type RemoveWorktreeRequest struct {
	Target    string `json:"target"`
	Suspended bool   `json:"suspended,omitempty"` // even if it is suspended and would go on there
	// LoseIgnored removes it even if files that git ignores are too large to be kept, and lost with it.
	LoseIgnored bool `json:"lose_ignored,omitempty"`
}

// RemoveWorktreeResponse says what became of a work tree.
type RemoveWorktreeResponse struct {
	UUID    types.UUID `json:"uuid"`
	Dir     string     `json:"dir"`
	Branch  string     `json:"branch,omitempty"`  // stays
	Dropped string     `json:"dropped,omitempty"` // the branch, if it was removed too: rnix had named it, and no commit was on it alone
	// BranchGone is the branch that it was made with, if that was not there any more.
	BranchGone string   `json:"branch_gone,omitempty"`
	Rescued    string   `json:"rescued,omitempty"` // how what was in it is got back
	Lost       []string `json:"lost,omitempty"`    // what was not kept: large files that git ignores
	Left       string   `json:"left,omitempty"`    // what lies beside it still, for people: its process has put it there
}

// MergeRequest merges the work of a process.
type MergeRequest struct {
	Target string `json:"target"`
	// AllowAutorun merges also if git would run a program because of what has changed in the repository, or if the merge brings files that
	// editors, shells or agents act on when they start. Without it that is CONFLICT.
	AllowAutorun bool `json:"allow_autorun,omitempty"`
	// Preview says what would be merged, and merges nothing. It may be asked while the process works.
	Preview bool `json:"preview,omitempty"`
}

// MergeResponse says what a merge has done, or of a preview what it would do.
type MergeResponse struct {
	PID       types.PID    `json:"pid,omitempty"`
	UUID      types.UUID   `json:"uuid"`
	Repo      string       `json:"repo"`
	Branch    string       `json:"branch,omitempty"` // that was merged
	Target    string       `json:"target"`           // into this one
	Before    string       `json:"before"`           // its commit
	Commit    string       `json:"commit"`           // and now
	Forward   bool         `json:"fast_forward"`     // no commit of both was needed
	Already   bool         `json:"already"`          // nothing was left to do
	Committed string       `json:"committed,omitempty"`
	Files     []FileChange `json:"files"`
	// Autorun is as in DiffResponse. What is not among the files of the work was there before the merge.
	Autorun []AutorunFile `json:"autorun,omitempty"`
	Raw     []string      `json:"raw,omitempty"`    // of Files, those that are there as they are in the commit: a filter of the repository itself is not run
	Unseen  []string      `json:"unseen,omitempty"` // what is in the work tree and was not merged, for people: in submodules, in other repositories, beside it
	// Preview is there if nothing was merged, since a preview was asked for. Autorun then lists what a merge needs AllowAutorun for, and more.
	Preview *MergePreview `json:"preview,omitempty"`
}

// MergePreview says what a merge would meet.
type MergePreview struct {
	Uncommitted bool     `json:"uncommitted"`          // what is not committed in the work tree would be committed first
	Working     bool     `json:"working"`              // the process works there, and a merge is refused until it does not
	Clashes     []string `json:"conflicts,omitempty"`  // files of which both sides have changed the same places: nothing would be merged
	InTheWay    string   `json:"in_the_way,omitempty"` // changes of the user's for which it would be refused
}
