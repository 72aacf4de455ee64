package groups

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"unicode"

	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

func (d *Service) list(context.Context, *ipc.Peer, ipc.Empty) (ipc.GroupsResponse, error) {
	r := ipc.GroupsResponse{Groups: []ipc.Group{}}
	for _, g := range d.Kernel.Groups() {
		r.Groups = append(r.Groups, d.wire(g))
	}
	return r, nil
}

func (d *Service) wire(g kernel.Group) ipc.Group {
	return ipc.Group{ID: g.ID, Name: d.Names.of(g.ID), Members: append([]types.PID{}, g.Members...)}
}

// now returns a group as it is; without members, if it has none any more.
func (d *Service) now(id types.PGID) ipc.Group {
	members, err := d.Kernel.GetProcGroup(id)
	if err != nil {
		members = nil
	}
	return d.wire(kernel.Group{ID: id, Members: members})
}

func (d *Service) join(_ context.Context, peer *ipc.Peer, req ipc.GroupRequest) (ipc.Group, error) {
	t, err := d.alive("JoinGroup", req.Target)
	if err == nil {
		err = d.Callers.MayTouch(peer, "JoinGroup", t.PID)
	}
	if err != nil {
		return ipc.Group{}, err
	}
	id, err := d.Group("JoinGroup", req.Group, req.Name)
	if err == nil {
		err = d.Kernel.JoinGroup(t.PID, id)
	}
	if err != nil {
		return ipc.Group{}, err
	}
	return d.now(id), nil
}

func (d *Service) leave(_ context.Context, peer *ipc.Peer, req ipc.GroupRequest) (ipc.Group, error) {
	t, err := d.alive("LeaveGroup", req.Target)
	if err == nil {
		err = d.Callers.MayTouch(peer, "LeaveGroup", t.PID)
	}
	if err != nil {
		return ipc.Group{}, err
	}
	id, err := d.known("LeaveGroup", req.Group)
	if err == nil {
		err = d.Kernel.LeaveGroup(t.PID, id)
	}
	if types.CodeOf(err) == types.ErrNotFound {
		err = types.Errorf(types.ErrNotFound, "LeaveGroup", req.Group, "process %d is no member of this group; `rnix group ls` lists the groups", t.PID)
	}
	if err != nil {
		return ipc.Group{}, err
	}
	return d.now(id), nil
}

// signal signals the members of a group. A caller inside an agent reaches those of its own subtree, and
// is told how many others there are.
func (d *Service) signal(_ context.Context, peer *ipc.Peer, req ipc.GroupSignalRequest) (ipc.GroupSignalResponse, error) {
	var r ipc.GroupSignalResponse
	id, err := d.known("SignalGroup", req.Group)
	if err != nil {
		return r, err
	}
	r.Group = d.now(id)
	if !req.Signal.Valid() {
		return r, types.Errorf(types.ErrInvalid, "SignalGroup", req.Group, "%d is not a signal", int(req.Signal))
	}
	_, inside := d.Callers.AgentOf(peer)
	if !inside && !req.Tree {
		for _, pid := range r.Members {
			r.Affected += d.reached(pid)
		}
		return r, d.Kernel.SignalGroup(id, req.Signal)
	}
	var refused, unheld error
	for _, pid := range r.Members {
		if err := d.Callers.MaySignal(peer, "SignalGroup", pid); err != nil {
			refused = err
			r.Spared++
			continue
		}
		n, err := d.reached(pid), error(nil)
		if req.Tree {
			n, err = d.Kernel.SignalTree(pid, req.Signal)
		} else {
			err = d.Kernel.Signal(pid, req.Signal)
		}
		switch types.CodeOf(err) {
		case "":
			r.Affected += n
		case types.ErrNotFound: // it has ended meanwhile
		default: // of a pause that would not hold over the end of the daemon; the others get it all the same
			unheld = cmp.Or(unheld, err)
		}
	}
	if unheld != nil {
		return r, unheld
	}
	if r.Spared == len(r.Members) && refused != nil {
		return r, refused
	}
	return r, nil
}

// reached is 1 for a process that a signal reaches, and 0 for one that has ended.
func (d *Service) reached(pid types.PID) int {
	if i, err := d.Kernel.Info(pid); err == nil && i.State < types.StateZombie {
		return 1
	}
	return 0
}

// known finds a group that has members, by its number or its name.
func (d *Service) known(op, text string) (types.PGID, error) {
	text = strings.TrimSpace(text)
	id, ok := d.Names.find(text)
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		id, ok = types.PGID(n), true
	}
	if ok {
		if _, err := d.Kernel.GetProcGroup(id); err == nil {
			return id, nil
		}
	}
	if text == "" {
		return 0, types.Errorf(types.ErrInvalid, op, "", "no group was named: give its number or its name")
	}
	return 0, types.Errorf(types.ErrNotFound, op, text, "no such group, or it has no members; `rnix group ls` lists the groups")
}

// Group finds a group or makes it: a number as it is, a name that nobody used, or with neither a new one,
// to which name is given if that is not empty.
func (d *Service) Group(op, text, name string) (types.PGID, error) {
	text = strings.TrimSpace(text)
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		if n == 0 {
			return 0, types.Errorf(types.ErrInvalid, op, text, "groups are numbered from 1")
		}
		return types.PGID(n), nil
	}
	if text != "" {
		if err := groupName(op, text); err != nil {
			return 0, err
		}
		return d.Names.findOrMake(text, d.Kernel.NewGroup), nil
	}
	if name == "" {
		return d.Kernel.NewGroup(), nil
	}
	if err := groupName(op, name); err != nil {
		return 0, err
	}
	if id, err := d.known(op, name); err == nil {
		return 0, types.Errorf(types.ErrConflict, op, name, "there is such a group already, number %d; join it, or take another name", id)
	}
	return d.Names.findOrMake(name, d.Kernel.NewGroup), nil
}

func groupName(op, name string) error {
	if _, err := strconv.ParseUint(name, 10, 64); err == nil {
		return types.Errorf(types.ErrInvalid, op, name, "the name of a group must not be a number")
	}
	if len(name) > 64 || strings.ContainsFunc(name, func(r rune) bool { return r == '/' || !unicode.IsPrint(r) }) || strings.TrimSpace(name) != name {
		return types.Errorf(types.ErrInvalid, op, strconv.Quote(name), "a name has at most 64 bytes, no slash and no control character, and no blank at its ends")
	}
	return nil
}
