package groups

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"rnix/internal/service"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// table is a kernel with processes 1 to 9, of which the even ones are of the agent that asks.
type table struct {
	inside  bool
	last    types.PGID
	members map[types.PGID][]types.PID
	reached []types.PID
	fails   map[types.PID]error // of a signal
}

func (k *table) Info(pid types.PID) (kernel.Info, error) {
	return kernel.Info{ProcStatus: types.ProcStatus{PID: pid}}, nil
}

func (k *table) NewGroup() types.PGID { k.last++; return k.last }

func (k *table) Groups() (out []kernel.Group) {
	for id, m := range k.members {
		out = append(out, kernel.Group{ID: id, Members: m})
	}
	return out
}

func (k *table) GetProcGroup(id types.PGID) ([]types.PID, error) {
	if m := k.members[id]; len(m) > 0 {
		return m, nil
	}
	return nil, types.Errorf(types.ErrNotFound, "GetProcGroup", "", "no such group")
}

func (k *table) JoinGroup(pid types.PID, id types.PGID) error {
	k.members[id] = append(k.members[id], pid)
	return nil
}

func (k *table) LeaveGroup(pid types.PID, id types.PGID) error {
	n := slices.Index(k.members[id], pid)
	if n < 0 {
		return types.Errorf(types.ErrNotFound, "LeaveGroup", "", "no member")
	}
	k.members[id] = slices.Delete(k.members[id], n, n+1)
	return nil
}

func (k *table) Signal(pid types.PID, _ types.Signal) error {
	k.reached = append(k.reached, pid)
	return k.fails[pid]
}

func (k *table) SignalTree(pid types.PID, sig types.Signal) (int, error) {
	return 1, k.Signal(pid, sig)
}

func (k *table) SignalGroup(id types.PGID, _ types.Signal) error {
	k.reached = append(k.reached, k.members[id]...)
	return nil
}

func (k *table) Resolve(text string) (service.Target, error) {
	n, err := strconv.Atoi(text)
	return service.Target{PID: types.PID(n), Live: &kernel.Info{ProcStatus: types.ProcStatus{PID: types.PID(n)}}}, err
}

func (k *table) AgentOf(*ipc.Peer) (types.PID, bool) { return 2, k.inside }

func (k *table) MayTouch(_ *ipc.Peer, op string, pid types.PID) error {
	if k.inside && pid%2 == 1 {
		return service.Outside(op, 2, "act on its own subtree only")
	}
	return nil
}

func (k *table) MaySignal(peer *ipc.Peer, op string, pid types.PID) error {
	return k.MayTouch(peer, op, pid)
}

func TestGroupsAreNamedOnceAndFoundByNumberAndName(t *testing.T) {
	k := &table{members: map[types.PGID][]types.PID{}}
	s := &Service{Kernel: k, Callers: k}
	join := func(pid, group, name string) (ipc.Group, error) {
		return s.join(t.Context(), nil, ipc.GroupRequest{Target: pid, Group: group, Name: name})
	}
	g, err := join("1", "", "night")
	if err != nil || g.Name != "night" || !slices.Equal(g.Members, []types.PID{1}) {
		t.Fatalf("%+v, %v", g, err)
	}
	if h, err := join("2", "night", ""); err != nil || h.ID != g.ID {
		t.Errorf("by name: %+v, %v", h, err)
	}
	if h, err := join("3", strconv.Itoa(int(g.ID)), ""); err != nil || h.Name != "night" || len(h.Members) != 3 {
		t.Errorf("by number: %+v, %v", h, err)
	}
	if _, err := join("4", "", "night"); types.CodeOf(err) != types.ErrConflict {
		t.Errorf("a new one of a name that is taken: %v", err)
	}
	for _, bad := range []string{"0", "a/b", " x", strings.Repeat("n", 65), "a\nb"} {
		if _, err := s.Group("JoinGroup", "", bad); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if got := s.Names.Labels([]types.PGID{g.ID, 77}); !slices.Equal(got, []string{"night", "77"}) {
		t.Errorf("labels %v", got)
	}
	if _, err := s.leave(t.Context(), nil, ipc.GroupRequest{Target: "9", Group: "night"}); types.CodeOf(err) != types.ErrNotFound || !strings.Contains(err.Error(), "no member") {
		t.Error(err)
	}
	if _, err := s.known("SignalGroup", "day"); types.CodeOf(err) != types.ErrNotFound {
		t.Error(err)
	}
}

func TestSignalOfAnAgentSparesThoseOfAGroupThatAreNotItsOwn(t *testing.T) {
	k := &table{inside: true, members: map[types.PGID][]types.PID{1: {1, 2, 3, 4}, 2: {1, 3}}}
	s := &Service{Kernel: k, Callers: k}
	r, err := s.signal(t.Context(), nil, ipc.GroupSignalRequest{Group: "1", Signal: types.SIGTERM})
	if err != nil || r.Affected != 2 || r.Spared != 2 || !slices.Equal(k.reached, []types.PID{2, 4}) {
		t.Errorf("%+v, reached %v, %v", r, k.reached, err)
	}
	if r, err = s.signal(t.Context(), nil, ipc.GroupSignalRequest{Group: "2", Signal: types.SIGTERM}); types.CodeOf(err) != types.ErrPermission || len(k.reached) != 2 {
		t.Errorf("none is its own: %+v, %v", r, err)
	}
	k.inside, k.reached = false, nil
	if r, err = s.signal(t.Context(), nil, ipc.GroupSignalRequest{Group: "1", Signal: types.SIGTERM}); err != nil || r.Affected != 4 || len(k.reached) != 4 {
		t.Errorf("a person: %+v, reached %v, %v", r, k.reached, err)
	}
	if _, err = s.signal(t.Context(), nil, ipc.GroupSignalRequest{Group: "1", Signal: 99}); types.CodeOf(err) != types.ErrInvalid {
		t.Error(err)
	}
}

// What ended meanwhile is no error; a signal that would not hold over the end of the daemon is one, and the others get it all the same.
func TestAGroupIsToldWhenASignalWouldNotHold(t *testing.T) {
	k := &table{members: map[types.PGID][]types.PID{1: {1, 2, 3}}, fails: map[types.PID]error{1: types.Errorf(types.ErrNotFound, "Signal", "", "no such process")}}
	s := &Service{Kernel: k, Callers: k}
	req := ipc.GroupSignalRequest{Group: "1", Signal: types.SIGPAUSE, Tree: true}
	if r, err := s.signal(t.Context(), nil, req); err != nil || r.Affected != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	k.reached, k.fails[2] = nil, types.Errorf(types.ErrStorage, "Signal", "", "no space left")
	if _, err := s.signal(t.Context(), nil, req); types.CodeOf(err) != types.ErrStorage || len(k.reached) != 3 {
		t.Errorf("reached %v, %v", k.reached, err)
	}
}
