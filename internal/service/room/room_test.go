package room

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"

	"rnix/internal/config"
	"rnix/internal/step"
	"rnix/types"
)

// Agents wait from the moment at which less is free than should be, until there is a little more than that or the user wants
// less; not to and fro.
func TestRoomOnTheDisk(t *testing.T) {
	disk := config.Load(config.Sources{}).Disk
	now := disk
	size, free, fault := int64(100<<30), int64(50<<30), error(nil)
	r := New("/data", disk)
	r.measure = func(string) (int64, int64, error) { return size, free, fault }
	step := func(what string, short, changed bool) {
		t.Helper()
		if s, c := r.Look(func() config.Disk { return now }); s != short || c != changed {
			t.Errorf("%s: short %v, changed %v", what, s, c)
		}
		_, over := r.Waits()
		if err := r.Refusal("Spawn"); (over != nil) != short || (types.CodeOf(err) == types.ErrExhausted) != short || short && !strings.Contains(err.Error(), "/data has ") {
			t.Errorf("%s: %v", what, err)
		}
	}
	step("enough", false, false)
	free = 1<<30 - 1
	step("less", true, true)
	_, over := r.Waits()
	step("still", true, false)
	fault = errors.New("no answer")
	step("nobody knows", true, false)
	free, fault = 1<<30+1, nil
	step("hardly more", true, false)
	free = 1<<30 + 1<<28
	step("enough again", false, true)
	select {
	case <-over:
	default:
		t.Error("those that wait are not told")
	}
	size, free = 2<<30, 900<<20
	step("a small disk is half full", false, false)
	free = 90 << 20
	step("a small disk is nearly full", true, true)
	now.MinFree = config.Value[config.Bytes]{V: 0, Origin: "user"}
	step("the user wants none free", false, true)
	step("and still does", false, false)
	r.disk.MinFree = config.Value[config.Bytes]{V: 95 << 20, Origin: "user"}
	now = r.disk
	step("what the user says counts as it is", true, true)

	_, over = r.Waits()
	r.readOnly = func(string) bool { return true }
	if short, changed := r.Look(nil); !short || !changed || r.Kind() != types.SuspendReadOnly {
		t.Errorf("read-only: short %v, changed %v, waits for %q", short, changed, r.Reason())
	}
	select {
	case <-over:
	default:
		t.Error("those that wait for room are not told that they wait for something else")
	}
	if err := r.Refusal("Spawn"); types.CodeOf(err) != types.ErrStorage || !strings.Contains(err.Error(), "the file system of /data is read-only") {
		t.Errorf("read-only: %v", err)
	}
	if short, changed := r.Look(nil); !short || changed {
		t.Errorf("still read-only: short %v, changed %v", short, changed)
	}
	r.readOnly, free = func(string) bool { return false }, 2<<30
	step("it can be written again", false, true)
}

// cut are histories that a full disk has cut off.
type cut struct {
	infos   map[types.UUID]step.ProcInfo
	resumed []types.UUID
	can     bool
}

func (c *cut) Suspended(id types.UUID) (step.ProcInfo, bool) { i, ok := c.infos[id]; return i, ok }

func (c *cut) Resume(_ context.Context, i step.ProcInfo) bool {
	if c.can {
		c.resumed = append(c.resumed, i.UUID)
	}
	return c.can
}

// due returns whom the room still has to let resume.
func due(r *Room) []types.UUID {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cut
}

func TestThoseThatAFullDiskHasCutOffResumeOnceItCanBeWritten(t *testing.T) {
	one, two, over := types.UUID{1}, types.UUID{2}, types.UUID{3}
	suspended := step.ProcInfo{ProcStatus: types.ProcStatus{UUID: one}, Suspended: true, Suspension: types.Suspend(types.SuspendNoRoom)}
	c := &cut{infos: map[types.UUID]step.ProcInfo{one: suspended, over: {ProcStatus: types.ProcStatus{UUID: over}}}}
	r := New(t.TempDir(), config.Disk{})
	w := &Watch{Room: r, Cut: c, Log: slog.New(slog.DiscardHandler)}
	r.CutOff(one)
	r.CutOff(two)  // it is not there any more
	r.CutOff(over) // a person has ended it meanwhile
	w.wake(t.Context())
	if len(c.resumed) != 0 || len(due(r)) != 1 || due(r)[0] != one {
		t.Fatalf("resumed %v, due %v", c.resumed, due(r))
	}
	c.can = true
	r.dir += "/missing" // nothing can be written yet
	w.wake(t.Context())
	if len(c.resumed) != 0 || len(due(r)) != 1 {
		t.Fatalf("resumed %v, due %v, and nothing can be written", c.resumed, due(r))
	}
	r.dir = t.TempDir()
	w.wake(t.Context())
	if len(c.resumed) != 1 || len(due(r)) != 0 {
		t.Errorf("resumed %v, due %v", c.resumed, due(r))
	}
	if left, err := os.ReadDir(r.dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
