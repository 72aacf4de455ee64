package histories

import (
	"slices"
	"testing"
	"time"

	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

// A clock that was set back between the starts of a process and of its child makes no descendant unknown, and parents that
// go round in a circle have an end.
func TestFamilyDoesNotDependOnTheClock(t *testing.T) {
	id := func(n byte) types.UUID { return types.UUID{15: n} }
	at := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	list := []step.ProcInfo{{ProcStatus: types.ProcStatus{UUID: id(4), ParentUUID: id(3), CreatedAt: at.Add(-2 * time.Hour)}}, {ProcStatus: types.ProcStatus{UUID: id(2), ParentUUID: id(1), CreatedAt: at}},
		{ProcStatus: types.ProcStatus{UUID: id(3), ParentUUID: id(2), CreatedAt: at.Add(-time.Hour)}}, {ProcStatus: types.ProcStatus{UUID: id(1), ParentUUID: id(4), CreatedAt: at}}, {ProcStatus: types.ProcStatus{UUID: id(9), CreatedAt: at}}}
	if got, want := family(id(1), list), []types.UUID{id(4), id(3), id(2)}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Of large outlines only the latest are kept, and the one that was asked for last in any case.
func TestOutlinesThatAreKeptAreBounded(t *testing.T) {
	var o outlines
	for n := range byte(5) {
		o.of(types.UUID{15: n + 1}).size.Store(maxPlaces / 2)
		o.trim()
	}
	if len(o.list) != 2 || o.list[0].id != (types.UUID{15: 5}) {
		t.Errorf("%d are kept", len(o.list))
	}
	o.list[0].size.Store(10 * maxPlaces)
	if o.trim(); len(o.list) != 1 {
		t.Errorf("%d are kept beside a large one", len(o.list))
	}
}

func TestWhatIsExportedIsCounted(t *testing.T) {
	x := ipc.ExportedProc{First: "12", ProcStatus: types.ProcStatus{Intent: "12"}, Turns: []ipc.Turn{{Content: "12", Calls: []ipc.TurnCall{{Input: "123", Output: "1"}}}}}
	if n := textsOf(&x); n != 10 {
		t.Errorf("%d bytes", n)
	}
}
