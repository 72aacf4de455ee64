package billing

import (
	"context"
	"testing"
	"time"

	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// world is a few histories, each in another place.
type world struct {
	live    []kernel.Info
	stored  []step.ProcInfo
	archive []step.Archived
	tombs   []step.Tomb
	budgets map[types.UUID]kernel.Budget
	raised  map[types.UUID]kernel.Amount
	lacking map[types.UUID]bool // have no limit of their own
	woken   []types.UUID
}

func (w *world) List() []kernel.Info { return w.live }

func (w *world) Budget(id types.UUID) (kernel.Budget, bool) { b, ok := w.budgets[id]; return b, ok }

func (w *world) AddBudget(pid types.PID, more kernel.Amount) (kernel.Amount, error) {
	for _, i := range w.live {
		if i.PID == pid {
			return more, w.Raise(context.Background(), i.UUID, more)
		}
	}
	return kernel.Amount{}, types.Errorf(types.ErrNotFound, "AddBudget", "", "%w", kernel.ErrNoProcess)
}

func (w *world) WaitInfo(context.Context, types.PID) (kernel.Info, error) { return kernel.Info{}, nil }

func (w *world) Living(i *kernel.Info) ipc.Proc { return ipc.Proc{State: i.State.String()} }

func (w *world) Archived() []step.Archived { return w.archive }

func (w *world) Deleted() []step.Tomb { return w.tombs }

func (w *world) Settled(context.Context) error { return nil }

func (w *world) AgentOf(*ipc.Peer) (types.PID, bool) { return 0, false }

func (w *world) Resolve(text string) (service.Target, error) {
	for n := range w.live {
		if w.live[n].Name == text {
			return service.Target{UUID: w.live[n].UUID, PID: w.live[n].PID, Live: &w.live[n]}, nil
		}
	}
	for n := range w.stored {
		if w.stored[n].Name == text {
			return service.Target{UUID: w.stored[n].UUID, PID: w.stored[n].PID, Info: &w.stored[n]}, nil
		}
	}
	return service.Target{}, types.Errorf(types.ErrNotFound, "Find", text, "no such process")
}

func (w *world) Family(t service.Target) []service.Target {
	out := []service.Target{t}
	for n := range w.live {
		if w.live[n].ParentUUID == t.UUID {
			out = append(out, w.Family(service.Target{UUID: w.live[n].UUID, PID: w.live[n].PID, Live: &w.live[n]})...)
		}
	}
	for n := range w.stored {
		if w.stored[n].ParentUUID == t.UUID {
			out = append(out, w.Family(service.Target{UUID: w.stored[n].UUID, PID: w.stored[n].PID, Info: &w.stored[n]})...)
		}
	}
	return out
}

func (w *world) Raise(_ context.Context, id types.UUID, more kernel.Amount) error {
	if w.lacking[id] {
		return types.Errorf(types.ErrInvalid, "AddBudget", "", "it has no limit of its own")
	}
	if w.raised == nil {
		w.raised = map[types.UUID]kernel.Amount{}
	}
	w.raised[id] = kernel.Amount{Tokens: w.raised[id].Tokens + more.Tokens, USD: w.raised[id].USD + more.USD}
	return nil
}

func (w *world) Wake(_ context.Context, purse types.UUID, _ []string) ([]types.PID, []string) {
	w.woken = append(w.woken, purse)
	return nil, nil
}

// disk is the index of a world.
type disk struct{ *world }

func (d disk) List() []step.ProcInfo { return d.stored }

func (d disk) Descended() (out []step.ProcInfo) {
	for _, i := range d.stored {
		if i.ParentUUID != (types.UUID{}) {
			out = append(out, i)
		}
	}
	return out
}

func (d disk) Get(id types.UUID) (step.ProcInfo, bool) {
	for _, i := range d.stored {
		if i.UUID == id {
			return i, true
		}
	}
	return step.ProcInfo{}, false
}

func id(n byte) types.UUID { return types.UUID{15: n} }

func used(tokens int) []step.Spending {
	return []step.Spending{{Day: "2026-01-02", Provider: "p", Model: "m", Input: tokens, CostUSD: float64(tokens) / 1000, Answers: 1}}
}

// family is a parent that lives (1), with a child on disk (2), of which one child is archived (3), and one of that was deleted (4).
func family() (*world, *Service) {
	day := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	w := &world{
		live:    []kernel.Info{{ProcStatus: types.ProcStatus{PID: 1, UUID: id(1), Name: "top", ContextBudget: 1000, Provider: "p", TokensUsed: 100, CostUSD: .1}, State: types.StateRunning, Spending: used(100)}},
		stored:  []step.ProcInfo{{ProcStatus: types.ProcStatus{PID: 2, UUID: id(2), ParentUUID: id(1), Name: "mid", CreatedAt: day, Provider: "p", TokensUsed: 20, CostUSD: .02, ContextBudget: 50}, Suspended: true, Spending: used(20)}},
		archive: []step.Archived{{ArchiveHead: step.ArchiveHead{Info: step.ProcInfo{ProcStatus: types.ProcStatus{PID: 3, UUID: id(3), ParentUUID: id(2), CreatedAt: day, Provider: "p", TokensUsed: 3, CostUSD: .003}, Spending: used(3)}}}},
		tombs:   []step.Tomb{{PID: 4, UUID: id(4), Parent: id(3), Spending: used(4000)}},
	}
	return w, &Service{Kernel: w, Index: disk{w}, Removed: w, Finder: w, Looks: w, Stored: w}
}

func TestWhatDescendantsHaveUsedIsCountedOnceWhereverTheyLie(t *testing.T) {
	w, s := family()
	if sum, any := s.Below(id(1), nil); !any || sum.Tokens != 4023 {
		t.Errorf("below the one that lives: %+v, %v", sum, any)
	}
	if sum, _ := s.Below(id(1), func(i types.UUID) bool { return i == id(3) }); sum.Tokens != 20 {
		t.Errorf("without the archived one and what is below it: %+v", sum)
	}
	if _, any := s.Below(id(4), nil); any {
		t.Error("something is below a leaf")
	}
	limit, sum, ok := s.Balance(id(2))
	if !ok || limit.Tokens != 50 || sum.Tokens != 4023 {
		t.Errorf("balance %+v, %+v, %v", limit, sum, ok)
	}
	w.budgets = map[types.UUID]kernel.Budget{id(2): {Known: true, Limit: kernel.Amount{Tokens: 60}, Used: kernel.Amount{Tokens: 7}}}
	if limit, sum, _ = s.Balance(id(2)); limit.Tokens != 60 || sum.Tokens != 7 { // what runs is the kernel's
		t.Errorf("balance of one that the kernel knows: %+v, %+v", limit, sum)
	}
	resp, err := s.show(t.Context(), nil, ipc.BudgetRequest{Target: "mid"})
	if err != nil || len(resp.Budgets) != 4 || !resp.Budgets[0].Above || resp.Budgets[0].Tokens.Used != 4123 || resp.Budgets[3].State != "deleted" {
		t.Errorf("%+v, %v", resp, err)
	}
	w.tombs[0].UUID, w.stored[0].ParentUUID = id(4), id(4) // damage: a circle 2, 3, 4
	if sum, _ := s.Below(id(2), nil); sum.Tokens != 4003 {
		t.Errorf("a circle: %+v", sum)
	}
	if _, err := s.show(t.Context(), nil, ipc.BudgetRequest{Target: "mid"}); err != nil {
		t.Error(err)
	}
}

func TestCostsOfAllPlacesAddUp(t *testing.T) {
	_, s := family()
	for by, lines := range map[string]int{"agent": 1, "model": 1, "day": 1, "process": 4} {
		resp, err := s.cost(t.Context(), nil, ipc.CostRequest{By: by})
		if err != nil || len(resp.Lines) != lines || resp.Total.Tokens != 4123 || resp.Total.Processes != 4 {
			t.Errorf("by %s: %+v, %v", by, resp, err)
		}
	}
	if resp, err := s.cost(t.Context(), nil, ipc.CostRequest{By: "process", Under: "mid"}); err != nil || resp.Total.Tokens != 4023 {
		t.Errorf("%+v, %v", resp, err)
	}
	if resp, err := s.cost(t.Context(), nil, ipc.CostRequest{By: "day", Since: time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC)}); err != nil || len(resp.Lines) != 0 {
		t.Errorf("of later days: %+v, %v", resp, err)
	}
	if _, err := s.cost(t.Context(), nil, ipc.CostRequest{By: "moon"}); types.CodeOf(err) != types.ErrInvalid {
		t.Error(err)
	}
}

// Most processes of a family that all draw on one budget are suspended at about the time at which a person raises it.
func TestBudgetIsRaisedOfAProcessThatIsSuspendedMeanwhile(t *testing.T) {
	w, s := family()
	found, err := s.Finder.Resolve("top")
	if err != nil {
		t.Fatal(err)
	}
	info := *found.Live
	found.Live = &info
	w.live = nil
	if err := s.raise(t.Context(), &found, kernel.Amount{Tokens: 5}); err != nil || w.raised[id(1)].Tokens != 5 {
		t.Errorf("raised %+v, %v", w.raised, err)
	}
}

func TestBudgetIsRaisedWhereverItsOwnerLies(t *testing.T) {
	w, s := family()
	if _, err := s.add(t.Context(), nil, ipc.AddBudgetRequest{Target: "top", Tree: true, Tokens: 5}); err != nil || w.raised[id(1)].Tokens != 5 || w.raised[id(2)].Tokens != 5 || len(w.woken) != 2 {
		t.Errorf("%+v, woken %v, %v", w.raised, w.woken, err)
	}
	w.lacking = map[types.UUID]bool{id(2): true}
	if resp, err := s.add(t.Context(), nil, ipc.AddBudgetRequest{Target: "top", Tree: true, Tokens: 5, NoResume: true}); err != nil || len(resp.Raised) != 1 || len(w.woken) != 2 {
		t.Errorf("%+v, woken %v, %v", resp, w.woken, err)
	}
	for name, req := range map[string]ipc.AddBudgetRequest{"nothing": {Target: "top"}, "less": {Target: "top", Tokens: -1}, "too much": {Target: "top", Tokens: service.MaxTokens + 1}, "no limit": {Target: "mid", Tokens: 1}} {
		if _, err := s.add(t.Context(), nil, req); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}
