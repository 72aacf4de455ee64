package gc

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rnix/internal/durable/faultfs"
	"rnix/internal/soak"
	"rnix/internal/step"
	"rnix/types"
)

// crash does something to one history at whose n-th call the machine crashes, for every n, in several
// ways, and opens the data directory again, where the machine crashes once more at some calls. It then
// gives the house to check.
func crash(t *testing.T, prepare func(*house, types.UUID), act func(*house, types.UUID), check func(t *testing.T, h *house, info step.ProcInfo, files map[string]string)) {
	t.Helper()
	seeds := soak.Pick(t, "seeds of each crash, of six", 2, 6)
	for n := 1; ; n++ {
		reached := true
		for k := range seeds {
			seed := uint64(n*seeds+k) % 6
			fsys := faultfs.New("/data/steps")
			h, err := tryOpen(fsys, "/data", nil)
			must(t, err)
			info := h.old(t, 5, 40)
			files := tree(t, fsys, h.j.Dir(info.UUID))
			if prepare != nil {
				prepare(h, info.UUID)
			}
			fsys.CrashAt(n)
			act(h, info.UUID)
			reached = fsys.Calls() >= n
			h.close()
			fsys.Crash(seed)
			fsys.CrashAt(int(seed)*7 + n%7 + 1) // in the middle of mending, too
			if h, err := tryOpen(fsys, "/data", nil); err == nil {
				h.close()
			}
			fsys.Crash(seed + 1)
			h, err = tryOpen(fsys, "/data", nil)
			must(t, err)
			t.Run(fmt.Sprintf("call %d seed %d", n, seed), func(t *testing.T) { check(t, h, info, files) })
			h.close()
			if t.Failed() {
				t.FailNow()
			}
		}
		if !reached {
			return
		}
	}
}

// intact checks that a history is in exactly one place and listed once, and that it is the history.
func intact(t *testing.T, h *house, info step.ProcInfo, files map[string]string, deletedToo bool) {
	t.Helper()
	if p := h.c.Problems(); len(p) != 0 {
		t.Errorf("problems: %v", p)
	}
	listed, archived, deleted := len(h.j.Index().List()), len(h.c.Archived()), len(h.c.Deleted())
	if listed+archived+deleted != 1 || deleted == 1 && !deletedToo {
		t.Fatalf("listed %d times, archived %d times, deleted %d times", listed, archived, deleted)
	}
	for name := range tree(t, h.fs, "/data") {
		if tmp := name[max(0, len(name)-5):]; tmp == ".tmp~" {
			t.Errorf("left: %s", name)
		}
	}
	entries, err := h.fs.ReadDir("/data/steps")
	if err != nil || len(entries) != listed {
		t.Errorf("%v, %v", entries, err)
	}
	if deleted == 1 {
		return
	}
	if archived == 1 {
		must(t, second(h.c.Unarchive(context.Background(), info.UUID, false)))
	}
	got := tree(t, h.fs, h.j.Dir(info.UUID))
	delete(got, step.PinFile)
	if diff := cmp.Diff(files, got); diff != "" {
		t.Error(diff)
	}
	hist, err := step.ReadHistory(t.Context(), h.j, info.UUID)
	if err != nil || hist.Damage != "" || len(hist.Records) != 2 {
		t.Errorf("%+v, %v", hist, err)
	}
}

func TestCrashWhileArchivingLosesNothing(t *testing.T) {
	outcomes := map[bool]int{}
	crash(t, nil, func(h *house, _ types.UUID) { _, _ = h.c.Collect(context.Background(), Request{}) },
		func(t *testing.T, h *house, info step.ProcInfo, files map[string]string) {
			outcomes[len(h.c.Archived()) == 1]++
			intact(t, h, info, files, false)
		})
	if outcomes[true] == 0 || outcomes[false] == 0 {
		t.Errorf("outcomes %v: nothing was tested", outcomes)
	}
}

func TestCrashWhilePuttingBackLosesNothing(t *testing.T) {
	outcomes := map[bool]int{}
	crash(t, func(h *house, _ types.UUID) { must(t, second(h.c.Collect(context.Background(), Request{}))) },
		func(h *house, id types.UUID) { _, _ = h.c.Unarchive(context.Background(), id, false) },
		func(t *testing.T, h *house, info step.ProcInfo, files map[string]string) {
			outcomes[len(h.c.Archived()) == 1]++
			intact(t, h, info, files, false)
		})
	if outcomes[true] == 0 || outcomes[false] == 0 {
		t.Errorf("outcomes %v: nothing was tested", outcomes)
	}
}

func TestCrashWhileDeletingLeavesAllOrNothing(t *testing.T) {
	outcomes := map[bool]int{}
	crash(t, nil, func(h *house, _ types.UUID) { _, _ = h.c.Collect(context.Background(), Request{Mode: Delete}) },
		func(t *testing.T, h *house, info step.ProcInfo, files map[string]string) {
			outcomes[len(h.c.Deleted()) == 1]++
			intact(t, h, info, files, true)
		})
	if outcomes[true] == 0 || outcomes[false] == 0 {
		t.Errorf("outcomes %v: nothing was tested", outcomes)
	}
}

func TestCrashWhileRemovingOneHistoryLeavesAllOrNothing(t *testing.T) {
	outcomes := map[bool]int{}
	crash(t, nil, func(h *house, id types.UUID) { _, _ = h.c.Remove(context.Background(), id, "asked for") },
		func(t *testing.T, h *house, info step.ProcInfo, files map[string]string) {
			outcomes[len(h.c.Deleted()) == 1]++
			intact(t, h, info, files, true)
		})
	if outcomes[true] == 0 || outcomes[false] == 0 {
		t.Errorf("outcomes %v: nothing was tested", outcomes)
	}
}

func TestCrashWhileDeletingAnArchiveLeavesAllOrNothing(t *testing.T) {
	crash(t, func(h *house, _ types.UUID) { must(t, second(h.c.Collect(context.Background(), Request{}))) },
		func(h *house, id types.UUID) { _, _ = h.c.Remove(context.Background(), id, "asked for") },
		func(t *testing.T, h *house, info step.ProcInfo, files map[string]string) {
			intact(t, h, info, files, true)
		})
}

// What a crash leaves beside a history that went on is not removed: it may be all that there is.
func TestArchiveOfAnotherContentIsLeftAlone(t *testing.T) {
	fsys, h := memory(t, nil)
	info := h.old(t, 1, 40)
	collect(t, h, Request{})
	lease, err := h.j.Acquire(t.Context(), info.UUID, "somebody who did not look")
	must(t, err)
	w := step.NewWriter(h.j, info.UUID, lease)
	must(t, w.Marker(&step.Marker{Name: step.MarkerSpawn, PID: 9, Text: "other"}), w.Close(t.Context()))
	info.PID, info.DeadAt = 9, time.Now().Add(-50*day)
	must(t, h.j.Index().Save(&info))
	if len(h.c.Archived()) != 0 {
		t.Error("listed twice")
	}
	h.close()
	h = open(t, fsys, "/data", nil)
	if p := h.c.Problems(); len(p) != 1 {
		t.Errorf("problems: %q", p)
	}
	if r := collect(t, h, Request{}); len(r.Skipped) != 1 || r.Skipped[0].Code != types.ErrConflict {
		t.Errorf("%+v", r)
	}
	if _, err := fsys.Stat(step.ArchivePath("/data", info.UUID)); err != nil {
		t.Error(err)
	}
}

func TestWhatWasWrittenBehindTheEndIsNoHistory(t *testing.T) {
	fsys, h := memory(t, nil)
	info := h.old(t, 1, 40)
	files := tree(t, fsys, h.j.Dir(info.UUID))
	collect(t, h, Request{})
	must(t, step.WriteProfile(fsys, h.j.Dir(info.UUID), &step.Profile{UUID: info.UUID}))
	lease, err := h.j.Acquire(t.Context(), info.UUID, "test")
	must(t, err, h.j.Release(t.Context(), info.UUID, lease.Epoch)) // an empty record
	h.close()
	h = open(t, fsys, "/data", nil)
	if len(h.c.Archived()) != 1 || len(h.j.Index().List()) != 0 || len(h.c.Problems()) != 0 {
		t.Errorf("archived %v, listed %v, problems %v", h.c.Archived(), h.j.Index().List(), h.c.Problems())
	}
	must(t, second(h.c.Unarchive(t.Context(), info.UUID, false)))
	intact(t, h, info, files, false)
}
