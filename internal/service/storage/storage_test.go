package storage

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnix/internal/durable"
	"rnix/internal/gc"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/internal/store"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// taken is a collector that knows what became of a few histories.
type taken struct {
	Collector // what a test does not need is nil
	archived  []step.Archived
	deleted   []step.Tomb
	holds     gc.Holds
}

func (c *taken) Archived() []step.Archived { return c.archived }

func (c *taken) Deleted() []step.Tomb { return c.deleted }

func (c *taken) Explain(id types.UUID) error {
	for _, a := range c.archived {
		if a.Info.UUID == id {
			return types.Errorf(types.ErrNotFound, "Find", id.String(), "it is archived")
		}
	}
	return nil
}

func (c *taken) Hold(id types.UUID, who string) (func(), error) { return c.holds.Hold(id, who) }

func (c *taken) Share(id types.UUID, who string) (func(), error) { return c.holds.Share(id, who) }

// free reports whether nobody is at a history.
func (c *taken) free(id types.UUID) bool {
	release, err := c.Hold(id, "a test")
	if err == nil {
		release()
	}
	return err == nil
}

func id(n byte) types.UUID { return types.UUID{0: 0xab, 1: n, 15: n} }

func archived(n byte, name string) step.Archived {
	return step.Archived{ArchiveHead: step.ArchiveHead{Info: step.ProcInfo{ProcStatus: types.ProcStatus{UUID: id(n), PID: types.PID(n), Name: name, Intent: "do it"}}}}
}

func opened(t *testing.T) (*Service, *taken, *store.Files) {
	t.Helper()
	l, err := store.Open(durable.OS, t.TempDir(), step.Unsynced)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	c := &taken{archived: []step.Archived{archived(1, "one"), archived(2, "two")}, deleted: []step.Tomb{{UUID: id(3), PID: 3, Name: "three"}}}
	return &Service{Collector: c, Journal: l, Held: l.Claim().Check, Log: slog.New(slog.DiscardHandler)}, c, l
}

func TestWhatWasTakenAwayIsFoundByEachOfItsNames(t *testing.T) {
	s, _, _ := opened(t)
	for _, text := range []string{"2", id(2).String(), "two", "ab02", id(2).String()[28:]} {
		if ids, err := s.departed(text); err != nil || len(ids) != 1 || ids[0] != id(2) {
			t.Errorf("%q: %v, %v", text, ids, err)
		}
	}
	if _, err := s.departed(id(1).String()[:2] + "  "); err != nil { // shorter than a name may be: it means nothing
		t.Error(err)
	}
	s.Collector.(*taken).archived = append(s.Collector.(*taken).archived, archived(4, "two"))
	if _, err := s.departed("two"); types.CodeOf(err) != types.ErrAmbiguous || !strings.Contains(err.Error(), "PID 4") {
		t.Errorf("two of one name: %v", err)
	}
	if err := s.Explain("one"); types.CodeOf(err) != types.ErrNotFound || !strings.Contains(err.Error(), "one") {
		t.Errorf("it is told as %v", err)
	}
	if err := s.Explain("nothing"); err != nil {
		t.Error(err)
	}
	if info, err := s.TakenAway(id(1)); err != nil || !info.Suspended || info.Exit != nil {
		t.Errorf("for its parent: %+v, %v", info, err)
	}
}

func TestLostHistoryIsForgottenOnlyWhereTheDataDirectoryIsStillThere(t *testing.T) {
	s, c, l := opened(t)
	gone := step.ProcInfo{ProcStatus: types.ProcStatus{UUID: id(9), PID: 9, Intent: "x"}}
	if err := l.Index().Put(gone); err != nil {
		t.Fatal(err)
	}
	missing := types.Errorf(types.ErrNotFound, "Open", "", "no such file")
	target := service.Target{UUID: id(9), PID: 9, Info: &gone}
	known := func() bool { _, ok := l.Index().Get(id(9)); return ok }

	s.Held = func() error { return errors.New("the data directory is gone") }
	if err := s.Lost(&target, "9", missing); err == nil || !strings.Contains(err.Error(), "data directory") || !known() {
		t.Errorf("without a data directory: %v, known %v", err, known())
	}
	s.Held = l.Claim().Check
	release, err := c.Hold(id(9), "rnix gc")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Lost(&target, "9", missing); !errors.Is(err, missing) || !known() {
		t.Errorf("while it is archived: %v, known %v", err, known())
	}
	release()
	file := filepath.Join(l.Dir(id(9)), step.StepsFile)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := s.Lost(&target, "9", missing); !errors.Is(err, missing) || !known() {
		t.Errorf("with its record: %v, known %v", err, known())
	}
	if err := os.RemoveAll(filepath.Dir(file)); err != nil {
		t.Fatal(err)
	}
	if err := s.Lost(&target, "9", missing); types.CodeOf(err) != types.ErrNotFound || errors.Is(err, missing) || known() || !c.free(target.UUID) {
		t.Errorf("removed by hand: %v, known %v", err, known())
	}
	if err := s.Lost(&service.Target{UUID: id(1), Info: &gone}, "one", missing); err == nil || !strings.Contains(err.Error(), "archived") {
		t.Errorf("archived meanwhile: %v", err)
	}
	other := types.Errorf(types.ErrStorage, "Open", "", "bad sector")
	if err := s.Lost(&target, "9", other); !errors.Is(err, other) {
		t.Error(err)
	}
}

func TestSeveralHoldOneHistoryAndTheLastLetsItGo(t *testing.T) {
	s, c, _ := opened(t)
	first, err := s.Hold(id(8))
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.Hold(id(8))
	if err != nil {
		t.Fatal(err)
	}
	first()
	if c.free(id(8)) {
		t.Error("one of two has let it go for both")
	}
	second()
	if !c.free(id(8)) {
		t.Error("nobody has it, and it is held")
	}
	if _, err := s.Hold(id(1)); err == nil || !c.free(id(1)) {
		t.Errorf("an archived one: %v", err)
	}
}

// caller is inside an agent.
type caller struct{}

func (caller) AgentOf(*ipc.Peer) (types.PID, bool) { return 7, true }

func (caller) Resolve(string) (service.Target, error) { return service.Target{}, nil }

func TestAReservedHistoryIsHeldByNoOther(t *testing.T) {
	d, c, _ := opened(t)
	release, err := d.Reserve(id(9), "rnix worktree rm")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Hold(id(9)); types.CodeOf(err) != types.ErrConflict {
		t.Error(err)
	}
	release()
	held, err := d.Hold(id(9))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Reserve(id(9), "rnix worktree rm"); types.CodeOf(err) != types.ErrConflict {
		t.Error(err)
	}
	held()
	c.archived = []step.Archived{archived(8, "gone")}
	if _, err := d.Reserve(id(8), "rnix worktree rm"); types.CodeOf(err) != types.ErrNotFound || !c.free(id(8)) {
		t.Error(err)
	}
}

func TestAgentsDecideNothingAboutWhatIsKept(t *testing.T) {
	s, _, _ := opened(t)
	s.Finder = caller{}
	for name, call := range map[string]func() error{
		"gc":        func() error { _, err := s.gc(t.Context(), nil, ipc.GCRequest{}); return err },
		"keep":      func() error { _, err := s.keep(t.Context(), nil, ipc.KeepRequest{}); return err },
		"unarchive": func() error { _, err := s.unarchive(t.Context(), nil, ipc.UnarchiveRequest{}); return err },
		"du":        func() error { _, err := s.du(t.Context(), nil, ipc.DURequest{}); return err },
		"fsck":      func() error { _, err := s.fsck(t.Context(), nil, ipc.FsckRequest{}); return err },
	} {
		if err := call(); types.CodeOf(err) != types.ErrPermission || !strings.Contains(err.Error(), "process 7") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

var _ Collector = (*gc.Collector)(nil)

var _ Kernel = (*kernel.KernelImpl)(nil)
