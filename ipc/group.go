package ipc

import "rnix/types"

// The methods about process groups. A group is named by its number, or by a name that somebody gave it.
var (
	ListGroups  = Method[Empty, GroupsResponse]{Name: "list_groups", Doc: "list_groups lists the process groups that have members"}
	JoinGroup   = Method[GroupRequest, Group]{Name: "join_group", Doc: "join_group makes a process a member of a group; without one, of a new group"}
	LeaveGroup  = Method[GroupRequest, Group]{Name: "leave_group", Doc: "leave_group ends a membership"}
	SignalGroup = Method[GroupSignalRequest, GroupSignalResponse]{Name: "signal_group", Doc: "signal_group sends a signal to all members of a group; with tree, also to their descendants"}
)

// Group is a process group.
type Group struct {
	ID      types.PGID  `json:"id"`
	Name    string      `json:"name,omitempty"`
	Members []types.PID `json:"members"` // in order
}

// GroupsResponse is the groups, in order of their numbers.
type GroupsResponse struct {
	Groups []Group `json:"groups"`
}

// GroupRequest is about one process and one group.
type GroupRequest struct {
	Group  string `json:"group,omitempty"` // a number or a name; empty = a new group
	Name   string `json:"name,omitempty"`  // of a new group
	Target string `json:"target"`          // as in TargetRequest
}

// GroupSignalRequest signals a group.
type GroupSignalRequest struct {
	Group  string       `json:"group"`
	Signal types.Signal `json:"signal"`
	Tree   bool         `json:"tree,omitempty"`
}

// GroupSignalResponse says who was reached.
type GroupSignalResponse struct {
	Group
	Affected int `json:"affected"`         // processes that were alive, descendants included
	Spared   int `json:"spared,omitempty"` // members that the caller, an agent, may not signal
}
