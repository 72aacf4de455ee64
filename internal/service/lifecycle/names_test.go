package lifecycle

import (
	"slices"
	"testing"
	"time"

	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/kernel"
	"rnix/types"
)

func TestANameMeansWhatIsNotOverOrTheLatestChild(t *testing.T) {
	now := time.Now()
	of := func(pid types.PID, name string, parent types.PID, suspended bool, age int) service.Target {
		return service.Target{PID: pid, Info: &step.ProcInfo{ProcStatus: types.ProcStatus{PID: pid, Name: name, PPID: parent, CreatedAt: now.Add(-time.Duration(age) * time.Hour)}, Suspended: suspended}}
	}
	for what, c := range map[string]struct {
		in   []service.Target
		want []types.PID
	}{
		"none":                   {nil, nil},
		"one that has ended":     {[]service.Target{of(1, "a", 0, false, 1)}, []types.PID{1}},
		"those of people":        {[]service.Target{of(1, "a", 0, false, 2), of(2, "a", 0, false, 1)}, []types.PID{1, 2}},
		"a child and another":    {[]service.Target{of(1, "a", 0, false, 2), of(2, "a", 1, false, 1)}, []types.PID{1, 2}},
		"children, one by one":   {[]service.Target{of(3, "a", 1, false, 2), of(5, "a", 4, false, 1), of(2, "a", 1, false, 3)}, []types.PID{5}},
		"a suspended one":        {[]service.Target{of(1, "a", 0, false, 2), of(2, "a", 0, true, 3), of(3, "a", 9, false, 1)}, []types.PID{2}},
		"several that go on":     {[]service.Target{of(1, "a", 0, true, 2), of(2, "a", 0, true, 3)}, []types.PID{1, 2}},
		"beginnings of a UUID":   {[]service.Target{of(1, "x", 7, false, 2), of(2, "y", 7, false, 3)}, []types.PID{1, 2}},
		"a beginning, suspended": {[]service.Target{of(1, "x", 7, true, 2), of(2, "y", 7, false, 3)}, []types.PID{1, 2}},
	} {
		got := preferred(c.in, "a")
		if len(got) != len(c.want) {
			t.Errorf("%s: %d processes, want %v", what, len(got), c.want)
			continue
		}
		for i, pid := range c.want {
			if got[i].PID != pid {
				t.Errorf("%s: PID %d, want %v", what, got[i].PID, c.want)
			}
		}
	}
}

// table is a table of processes and an index, for tests.
type table struct {
	live   []kernel.Info
	stored []step.ProcInfo
}

func (b *table) Info(pid types.PID) (kernel.Info, error) {
	for _, i := range b.live {
		if i.PID == pid {
			return i, nil
		}
	}
	return kernel.Info{}, types.Errorf(types.ErrNotFound, "Info", pid.String(), "no such process")
}
func (b *table) ByUUID(id types.UUID) (*kernel.Process, bool) {
	for _, i := range b.live {
		if i.UUID == id && i.State < types.StateZombie {
			return &kernel.Process{PID: i.PID, UUID: id}, true
		}
	}
	return nil, false
}
func (b *table) List() []kernel.Info { return b.live }
func (b *table) parent(id types.UUID) types.UUID {
	for _, i := range b.live {
		if i.UUID == id {
			return i.ParentUUID
		}
	}
	s, _ := b.Get(id)
	return s.ParentUUID
}
func (b *table) Descends(id, root types.UUID) bool {
	for ; id != (types.UUID{}); id = b.parent(id) {
		if id == root {
			return true
		}
	}
	return false
}

// index is the same table, asked for what is stored.
type index struct{ *table }

func (b *table) Get(id types.UUID) (step.ProcInfo, bool) {
	for _, s := range b.stored {
		if s.UUID == id {
			return s, true
		}
	}
	return step.ProcInfo{}, false
}
func (b index) List() []step.ProcInfo { return b.stored }
func (b index) Open() []step.ProcInfo {
	return slices.DeleteFunc(slices.Clone(b.stored), func(s step.ProcInfo) bool { return s.Exit != nil && !s.Suspended })
}

// TestAFamilyIsWholeWhereverItsMembersLie says that all that have no end are in it, those above first, by whatever name it is asked for.
func TestAFamilyIsWholeWhereverItsMembersLie(t *testing.T) {
	ids := make([]types.UUID, 7)
	for i := range ids {
		ids[i] = types.NewUUID()
	}
	runs := func(n, parent int, state types.ProcessState) kernel.Info {
		return kernel.Info{ProcStatus: types.ProcStatus{PID: types.PID(n), UUID: ids[n], ParentUUID: ids[parent], Name: string(rune('a' + n))}, State: state}
	}
	lies := func(n, parent int, suspended bool, exit *types.ExitStatus) step.ProcInfo {
		return step.ProcInfo{ProcStatus: types.ProcStatus{PID: types.PID(n), UUID: ids[n], ParentUUID: ids[parent], Exit: exit, Name: string(rune('a' + n))}, Suspended: suspended}
	}
	ids[0] = types.UUID{}
	ended := &types.ExitStatus{}
	b := &table{ // 1 is parked, and the kernel remembers it; 2 runs below it, with 3 on disk and 4 running below that; 5 has ended; 6 is cut off
		live:   []kernel.Info{runs(4, 3, types.StateRunning), runs(2, 1, types.StateRunning), runs(1, 0, types.StateDead)},
		stored: []step.ProcInfo{lies(6, 2, false, nil), lies(5, 1, false, ended), lies(3, 2, true, ended), lies(2, 1, false, nil), lies(4, 3, false, nil), lies(1, 0, true, ended)},
	}
	names := &Names{Table: b, Index: index{b}, Gone: func(string) error { return nil }}
	for _, name := range []string{"1", "b", ids[1].String()} {
		root, err := names.Resolve(name)
		if err != nil || root.Place() != service.Stored {
			t.Fatalf("%s: %+v, %v", name, root, err)
		}
		at := map[types.PID]int{}
		for i, m := range names.Family(root) {
			at[m.PID] = i + 1
		}
		if len(at) != 5 || at[5] != 0 || at[1] != 1 || at[2] != 2 || at[3] < at[2] || at[4] < at[3] || at[6] < at[2] {
			t.Errorf("%s: the family is %v", name, at)
		}
	}
	for pid, want := range map[string]service.Place{"2": service.Runs, "3": service.Stored, "5": service.Over, "6": service.Stored} {
		if m, err := names.Resolve(pid); err != nil || m.Place() != want {
			t.Errorf("PID %s lies at %v, %v", pid, m.Place(), err)
		}
	}
}
