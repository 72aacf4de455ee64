package launch

import (
	"rnix/internal/workspace"
	"rnix/ipc"
	"rnix/kernel"
)

// Worktree is what a client is told of the work tree of a new process.
func Worktree(tree *workspace.Tree, i *kernel.Info) *ipc.Worktree {
	if tree == nil {
		return nil
	}
	return &ipc.Worktree{UUID: i.UUID, PID: i.PID, Name: i.Name, State: i.StateName(), Dir: tree.Dir, Repo: tree.Repo, Branch: tree.Branch, Base: tree.Base, BaseName: tree.BaseName, Files: []ipc.FileChange{}}
}
