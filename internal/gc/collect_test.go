package gc

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"rnix/internal/durable"
	"rnix/internal/durable/faultfs"
	"rnix/internal/step"
	"rnix/types"
)

func TestHistoryComesBackFromItsArchiveAsItWas(t *testing.T) {
	for name, fsys := range map[string]durable.FS{"memory": faultfs.New("/data/steps"), "disk": durable.OS} {
		t.Run(name, func(t *testing.T) {
			dir := "/data"
			if name == "disk" {
				dir = t.TempDir()
			}
			h := open(t, fsys, dir, nil)
			stays, goes := h.old(t, 1, 3), h.old(t, 2, 40)
			must(t, h.c.Keep(goes.UUID, "was", time.Now().Add(time.Hour)))
			lapsed(t, h, goes.UUID)
			before := tree(t, fsys, h.j.Dir(goes.UUID))
			r := collect(t, h, Request{})
			if len(r.Archived) != 1 || r.Archived[0].UUID != goes.UUID || r.Archived[0].Intent != "task 2" || len(r.Skipped)+len(r.Warnings)+len(r.Deleted) != 0 || r.Kept != 1 || r.Examined != 2 {
				t.Fatalf("%+v", r)
			}
			if d := r.Archived[0]; d.Bytes != total(before) || d.ArchiveSize <= 0 || r.Freed != d.Bytes-d.ArchiveSize || d.Archive != step.ArchivePath(dir, goes.UUID) {
				t.Errorf("%+v, freed %d, %d bytes were there", d, r.Freed, total(before))
			}
			if got := tree(t, fsys, h.j.Dir(goes.UUID)); len(got) != 0 {
				t.Errorf("left: %v", got)
			}
			if got := h.j.Index().List(); len(got) != 1 || got[0].UUID != stays.UUID {
				t.Errorf("listed: %+v", got)
			}
			if got := h.c.Archived(); len(got) != 1 || got[0].Info.PID != 2 || got[0].Size != r.Archived[0].ArchiveSize || got[0].Why != r.Archived[0].Why {
				t.Errorf("archived: %+v", got)
			}
			if err := h.c.Explain(goes.UUID); types.CodeOf(err) != types.ErrNotFound || !strings.Contains(err.Error(), "rnix unarchive "+goes.UUID.String()) {
				t.Errorf("explained: %v", err)
			}
			info, err := h.c.Unarchive(t.Context(), goes.UUID, false)
			must(t, err)
			after := tree(t, fsys, h.j.Dir(goes.UUID))
			delete(after, step.PinFile)
			delete(before, step.PinFile)
			if diff := cmp.Diff(before, after); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(goes, info.ProcInfo); diff != "" {
				t.Error(diff)
			}
			if len(h.c.Archived()) != 0 || len(h.j.Index().List()) != 2 || h.c.Explain(goes.UUID) != nil {
				t.Errorf("archived %v, listed %v", h.c.Archived(), h.j.Index().List())
			}
			if _, err := h.c.Unarchive(t.Context(), goes.UUID, false); types.CodeOf(err) != types.ErrConflict {
				t.Errorf("a second time: %v", err)
			}
			if r := collect(t, h, Request{}); len(r.Archived) != 0 || len(r.Exempt) != 1 || !strings.Contains(r.Exempt[0].Reason, "put back from its archive") {
				t.Errorf("what was put back goes at once: %+v", r)
			}
		})
	}
}

// lapsed gives a history a mark that held until yesterday.
func lapsed(t *testing.T, h *house, id types.UUID) {
	t.Helper()
	must(t, step.WritePin(h.fs, h.j.Dir(id), &step.Pin{At: time.Now().Add(-2 * day), Until: time.Now().Add(-day)}))
}

func total(files map[string]string) (n int64) {
	for _, text := range files {
		if text != "dir" {
			n += int64(len(text))
		}
	}
	return n
}

func TestDeletedHistoryIsRememberedAndItsPIDNotUsedAgain(t *testing.T) {
	fsys, h := memory(t, nil)
	goes := h.old(t, 77, 40)
	h.old(t, 3, 1)
	r := collect(t, h, Request{Mode: Delete})
	if len(r.Deleted) != 1 || r.Deleted[0].Archive != "" || r.Freed != r.Deleted[0].Bytes || len(r.Archived) != 0 {
		t.Fatalf("%+v", r)
	}
	h.close()
	h = open(t, fsys, "/data", nil)
	if got := h.c.Deleted(); len(got) != 1 || got[0].UUID != goes.UUID || got[0].Intent != "task 77" || got[0].PID != 77 {
		t.Fatalf("%+v", got)
	}
	for _, err := range []error{h.c.Explain(goes.UUID), second(h.c.Unarchive(t.Context(), goes.UUID, false)), h.c.Keep(goes.UUID, "", time.Time{})} {
		if types.CodeOf(err) != types.ErrNotFound || !strings.Contains(err.Error(), "was deleted on "+time.Now().Format(time.DateOnly)) || !strings.Contains(err.Error(), "gc.retention_days") {
			t.Errorf("%v", err)
		}
	}
	pids, err := h.j.PIDs() // there never was a counter
	must(t, err)
	if n, err := pids.Next(); err != nil || n != 78 {
		t.Errorf("the next PID is %d, %v", n, err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestPIDOfAnArchivedHistoryIsNotUsedAgain(t *testing.T) {
	fsys, h := memory(t, nil)
	h.old(t, 900, 40)
	collect(t, h, Request{})
	must(t, fsys.Remove(filepath.Join("/data/archive", step.IndexFile)))
	pids, err := h.j.PIDs()
	must(t, err)
	if n, err := pids.Next(); err != nil || n != 901 {
		t.Errorf("the next PID is %d, %v", n, err)
	}
}

func TestDryRunChangesNothing(t *testing.T) {
	fsys, h := memory(t, nil)
	h.old(t, 1, 40)
	before := tree(t, fsys, "/data")
	r := collect(t, h, Request{DryRun: true})
	if len(r.Candidates) != 1 || len(r.Archived) != 0 || r.Freed != 0 {
		t.Errorf("%+v", r)
	}
	if diff := cmp.Diff(before, tree(t, fsys, "/data")); diff != "" {
		t.Error(diff)
	}
	if _, err := h.c.Collect(t.Context(), Request{Mode: "shred"}); types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("%v", err)
	}
}

func TestResultInJSONHasNoNull(t *testing.T) {
	_, h := memory(t, nil)
	u, err := h.c.Usage(t.Context(), nil)
	must(t, err)
	for _, v := range []any{collect(t, h, Request{}), Decide(nil, Policy{}, epoch), u} {
		if b, err := json.Marshal(v); err != nil || strings.Contains(string(b), "null") {
			t.Errorf("%s, %v", b, err)
		}
	}
}

func TestHistoryThatIsBeingResumedStays(t *testing.T) {
	_, h := memory(t, nil)
	a, b, c := h.old(t, 1, 40), h.old(t, 2, 41), h.old(t, 3, 42)
	lease, err := h.j.Acquire(t.Context(), a.UUID, "resume")
	must(t, err)
	release, err := h.c.Hold(b.UUID, "a reader")
	must(t, err)
	r := collect(t, h, Request{})
	if len(r.Archived) != 1 || r.Archived[0].UUID != c.UUID || len(r.Skipped) != 2 || r.Skipped[0].Code != types.ErrConflict || r.Skipped[1].Code != types.ErrConflict ||
		!strings.Contains(r.Skipped[0].Reason, "a reader") || !strings.Contains(r.Skipped[1].Reason, "resume") {
		t.Fatalf("%+v", r)
	}
	release()
	must(t, h.j.Release(t.Context(), a.UUID, lease.Epoch))
	if r := collect(t, h, Request{}); len(r.Archived) != 2 {
		t.Errorf("%+v", r)
	}
}

func TestHistoryThatHasGoneOnSinceStays(t *testing.T) {
	_, h := memory(t, nil)
	info := h.old(t, 1, 40)
	info.State, info.DeadAt = types.StateRunning, time.Time{}
	b, err := json.Marshal(info)
	must(t, err, durable.WriteFile(h.fs, filepath.Join(h.j.Dir(info.UUID), step.InfoFile), b, durable.Cached)) // the index does not know yet
	if r := collect(t, h, Request{}); len(r.Skipped) != 1 || !strings.Contains(r.Skipped[0].Reason, "gone on since") {
		t.Errorf("%+v", r)
	}
}

func TestBrokenInfoIsNamedAndItsHistoryStays(t *testing.T) {
	fsys, h := memory(t, nil)
	a, b := h.old(t, 1, 40), h.old(t, 2, 41)
	info := filepath.Join(h.j.Dir(a.UUID), step.InfoFile)
	must(t, durable.WriteFile(fsys, info, []byte("{"), durable.Durable))
	if r := collect(t, h, Request{}); len(r.Archived) != 1 || r.Archived[0].UUID != b.UUID || len(r.Skipped) != 1 || !strings.Contains(r.Skipped[0].Reason, info) {
		t.Errorf("%+v", r)
	}
	// Written by a newer program, it is not even in the index.
	must(t, durable.WriteFile(fsys, info, []byte(`{"v":9}`), durable.Durable))
	h.close()
	must(t, fsys.Remove("/data/index.jsonl"))
	h = open(t, fsys, "/data", nil)
	if r := collect(t, h, Request{}); r.Examined != 1 || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], info) || !strings.Contains(r.Warnings[0], "newer program") {
		t.Errorf("%+v", r)
	}
	// Lost, it is made of the records, which say that the history has ended just now.
	must(t, fsys.Remove(info))
	h.close()
	h = open(t, fsys, "/data", nil)
	if r := collect(t, h, Request{}); r.Examined != 1 || r.Kept != 1 || len(r.Warnings) != 0 {
		t.Errorf("%+v", r)
	}
}

func TestKeptHistoryStaysAndCanBeLetGo(t *testing.T) {
	fsys, h := memory(t, nil)
	info := h.old(t, 1, 40)
	must(t, h.c.Keep(info.UUID, "for the trial\nsecret", time.Time{}))
	fsys.Crash(0)
	h = open(t, fsys, "/data", nil)
	if r := collect(t, h, Request{}); len(r.Exempt) != 1 || r.Exempt[0].Reason != "it is kept: for the trial" {
		t.Fatalf("%+v", r)
	}
	if pin, err := h.c.Kept(info.UUID); err != nil || pin == nil || pin.Note != "for the trial" {
		t.Errorf("%+v, %v", pin, err)
	}
	must(t, durable.WriteFile(fsys, filepath.Join(h.j.Dir(info.UUID), step.PinFile), []byte("?"), durable.Durable))
	if r := collect(t, h, Request{}); len(r.Exempt) != 1 || !strings.Contains(r.Exempt[0].Reason, "keep.json") {
		t.Errorf("with a broken mark: %+v", r)
	}
	if had, err := h.c.Unkeep(info.UUID); err != nil || !had {
		t.Errorf("%v, %v", had, err)
	}
	if had, err := h.c.Unkeep(info.UUID); err != nil || had {
		t.Errorf("%v, %v", had, err)
	}
	if r := collect(t, h, Request{}); len(r.Archived) != 1 {
		t.Errorf("%+v", r)
	}
	if err := h.c.Keep(info.UUID, "", time.Time{}); !strings.Contains(err.Error(), "archived on") {
		t.Errorf("%v", err)
	}
	if err := h.c.Keep(types.NewUUID(), "", time.Time{}); types.CodeOf(err) != types.ErrNotFound {
		t.Errorf("%v", err)
	}
	other := h.old(t, 2, 40)
	if err := h.c.Keep(other.UUID, "", time.Now().Add(-time.Hour)); types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("%v", err)
	}
	must(t, h.c.Keep(other.UUID, "", time.Now().Add(time.Hour)))
	if plan, err := h.c.Plan(t.Context(), time.Now().Add(2*time.Hour)); err != nil || len(plan.Candidates) != 1 {
		t.Errorf("a mark that has lapsed holds: %+v, %v", plan, err)
	}
}

// spaces is a stand-in for the owner of the workspaces.
type spaces struct {
	fail  string
	calls []string
}

func (s *spaces) do(what string) error {
	s.calls = append(s.calls, what)
	if what == s.fail {
		return types.Errorf(types.ErrConflict, what, "/work", "a file is open")
	}
	return nil
}
func (s *spaces) Rescue(context.Context, types.UUID) (string, error) {
	return "git show refs/rescue", s.do("rescue")
}
func (s *spaces) Remove(context.Context, types.UUID) (string, error) { return "", s.do("remove") }
func (s *spaces) Stow(context.Context, types.UUID) (int64, error)    { return 7, s.do("stow") }
func (s *spaces) Unstow(_ context.Context, _ types.UUID, _ string, lose bool) (string, error) {
	return "said", s.do(map[bool]string{false: "unstow", true: "lose"}[lose])
}
func (s *spaces) DropSnapshots(context.Context, types.UUID) error { return s.do("drop") }

func TestWorkspaceThatCannotGoKeepsItsHistory(t *testing.T) {
	for mode, calls := range map[Mode][]string{Delete: {"rescue", "remove"}} {
		for _, fail := range calls {
			w := &spaces{fail: fail}
			fsys, h := memory(t, func(o *Options) { o.Workspaces, o.Mode = w, mode })
			h.old(t, 1, 40)
			before := tree(t, fsys, "/data/steps")
			r := collect(t, h, Request{})
			if len(r.Skipped) != 1 || len(r.Archived)+len(r.Deleted) != 0 || r.Skipped[0].Code != types.ErrConflict || !strings.Contains(r.Skipped[0].Reason, "a file is open") {
				t.Errorf("%s %s: %+v", mode, fail, r)
			}
			if diff := cmp.Diff(before, tree(t, fsys, "/data/steps")); diff != "" {
				t.Errorf("%s %s: %s", mode, fail, diff)
			}
			left := tree(t, fsys, "/data/archive")
			delete(left, step.IndexFile)
			if len(left) != 0 || len(h.c.Archived())+len(h.c.Deleted()) != 0 {
				t.Errorf("%s %s: left %v", mode, fail, left)
			}
			w.fail, w.calls = "", nil
			r = collect(t, h, Request{})
			done := append(r.Archived, r.Deleted...)
			if len(done) != 1 || done[0].Rescued != "git show refs/rescue" || !slices.Equal(w.calls, append(calls, "drop")) {
				t.Errorf("%s: %+v, calls %v", mode, r, w.calls)
			}
		}
	}
}

// An archive takes neither the workspace nor the files of any step for good: the workspace is put away when the archive is there, and back before the
// history is. The snapshots go with the archive.
func TestArchivePutsTheWorkspaceAwayAndBack(t *testing.T) { // C-6, B5
	const how = "git show refs/rescue"
	w := &spaces{fail: "stow"}
	fsys, h := memory(t, func(o *Options) { o.Workspaces = w })
	info := h.old(t, 1, 40)
	did := func(want ...string) {
		t.Helper()
		if !slices.Equal(w.calls, want) {
			t.Errorf("calls %v, want %v", w.calls, want)
		}
		w.calls = nil
	}
	r := collect(t, h, Request{})
	if len(r.Archived) != 1 || len(r.Stay) != 1 || r.Stay[0].PID != info.PID || !strings.Contains(r.Stay[0].Reason, "a file is open") {
		t.Fatalf("%+v", r)
	}
	did("stow")
	if r := collect(t, h, Request{DryRun: true}); len(r.Stay) != 0 {
		t.Errorf("%+v", r)
	}
	did()
	w.fail = "unstow"
	if r := collect(t, h, Request{}); len(r.Archived) != 0 || len(r.Stay) != 0 || r.Freed != 7 {
		t.Errorf("the next run: %+v", r)
	}
	did("stow")
	before := tree(t, fsys, "/data")
	if _, err := h.c.Unarchive(t.Context(), info.UUID, false); err == nil || !strings.Contains(err.Error(), "a file is open") || len(h.c.Archived()) != 1 {
		t.Errorf("%v", err)
	}
	if diff := cmp.Diff(before, tree(t, fsys, "/data")); diff != "" {
		t.Error(diff)
	}
	did("unstow")
	w.fail = ""
	if b, err := h.c.Unarchive(t.Context(), info.UUID, false); err != nil || b.UUID != info.UUID || b.Said != "said" {
		t.Errorf("%+v %v", b, err)
	}
	did("unstow", "unstow")
	must(t, second(h.c.Unkeep(info.UUID)))
	collect(t, h, Request{})
	did("stow")
	if b, err := h.c.Unarchive(t.Context(), info.UUID, true); err != nil || b.Said != "said" {
		t.Errorf("%+v %v", b, err)
	}
	did("lose")
	must(t, second(h.c.Unkeep(info.UUID)))
	collect(t, h, Request{})
	w.calls = nil
	c, err := h.c.Removable(t.Context(), info.UUID)
	if err != nil || !c.Archived || c.PID != info.PID {
		t.Errorf("%+v: %v", c, err)
	}
	d, err := h.c.Remove(t.Context(), info.UUID, "asked for")
	if err != nil || d.Rescued != how || d.Bytes == 0 {
		t.Errorf("%+v: %v", d, err)
	}
	did("rescue", "remove", "drop")
	if _, err := h.c.Remove(t.Context(), info.UUID, "again"); types.CodeOf(err) != types.ErrNotFound || !strings.Contains(err.Error(), "was deleted on") {
		t.Errorf("again: %v", err)
	}
}

// TestArchivesGoWhenTheyHaveStayedForLongEnough counts from when the archive was made.
func TestArchivesGoWhenTheyHaveStayedForLongEnough(t *testing.T) {
	now := time.Now()
	at := func(days int) step.Archived {
		return step.Archived{ArchiveHead: step.ArchiveHead{At: now.Add(-time.Duration(days)*day - time.Hour), Info: step.ProcInfo{ProcStatus: types.ProcStatus{PID: types.PID(days)}}}}
	}
	list := []step.Archived{at(3), at(30), at(7)}
	for days, want := range map[int][]types.PID{0: nil, -1: nil, 1: {30, 7, 3}, 6: {30, 7}, 30: {30}, 31: nil, 1 << 40: nil} {
		var got []types.PID
		for _, c := range expired(list, Policy{ArchiveDays: days}, now) {
			got = append(got, c.PID)
			if !c.Archived || !strings.Contains(c.Why, "gc.archive_days") {
				t.Errorf("%+v", c)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d days: %v, want %v", days, got, want)
		}
	}
	_, h := memory(t, func(o *Options) { o.Policy.ArchiveDays = 30 })
	h.old(t, 1, 40)
	if r := collect(t, h, Request{}); len(r.Archived) != 1 || len(r.Deleted) != 0 {
		t.Fatalf("%+v", r)
	}
	plan, err := h.c.Plan(t.Context(), time.Now().Add(31*day))
	if err != nil || len(plan.Candidates) != 1 || !plan.Candidates[0].Archived {
		t.Errorf("%+v: %v", plan, err)
	}
	r := Result{}
	taker{Collector: h.c, mode: Archive}.collect(t.Context(), plan.Candidates[0], &r)
	if len(r.Deleted) != 1 || len(r.Archived) != 0 || len(h.c.Archived()) != 0 || len(h.c.Deleted()) != 1 {
		t.Errorf("%+v, archived %v, deleted %v", r, h.c.Archived(), h.c.Deleted())
	}
}

func TestRemoveRefusesWhatIsNeeded(t *testing.T) {
	_, h := memory(t, nil)
	old := h.old(t, 1, 40)
	must(t, h.c.Keep(old.UUID, "audit", time.Time{}))
	if _, err := h.c.Remove(t.Context(), old.UUID, "x"); types.CodeOf(err) != types.ErrConflict || !strings.Contains(err.Error(), "it is kept: audit") {
		t.Errorf("kept: %v", err)
	}
	must(t, second(h.c.Unkeep(old.UUID)))
	waits := h.old(t, 2, 40)
	waits.Suspended, waits.SuspendReason, waits.OriginUUID = true, "budget", old.UUID
	must(t, h.j.Index().Save(&waits))
	if _, err := h.c.Remove(t.Context(), waits.UUID, "x"); types.CodeOf(err) != types.ErrConflict || !strings.Contains(err.Error(), "suspended") {
		t.Errorf("suspended: %v", err)
	}
	if _, err := h.c.Remove(t.Context(), old.UUID, "x"); types.CodeOf(err) != types.ErrConflict {
		t.Errorf("an origin: %v", err)
	}
	waits.Suspended, waits.Exit = false, &types.ExitStatus{}
	must(t, h.j.Index().Save(&waits))
	d, err := h.c.Remove(t.Context(), old.UUID, "asked for")
	if err != nil || d.Why != "asked for" || d.PID != old.PID {
		t.Errorf("%+v: %v", d, err)
	}
	if _, err := h.c.Remove(t.Context(), types.NewUUID(), "x"); types.CodeOf(err) != types.ErrNotFound {
		t.Errorf("nothing: %v", err)
	}
}

func TestWhatIsNoFileIsNotPackedAsOne(t *testing.T) {
	dir := t.TempDir()
	h := open(t, durable.OS, dir, nil)
	info := h.old(t, 1, 40)
	link := filepath.Join(h.j.Dir(info.UUID), "scratch", "link")
	must(t, syscall.Symlink("/etc/passwd", link))
	if r := collect(t, h, Request{}); len(r.Skipped) != 1 || !strings.Contains(r.Skipped[0].Reason, link) {
		t.Errorf("%+v", r)
	}
	if r := collect(t, h, Request{Mode: Delete}); len(r.Skipped) != 1 {
		t.Errorf("%+v", r)
	}
	must(t, syscall.Unlink(link))
	if r := collect(t, h, Request{}); len(r.Archived) != 1 {
		t.Errorf("%+v", r)
	}
}

func TestFullDiskChangesNothing(t *testing.T) {
	for _, mode := range []Mode{Archive, Delete} {
		for n := 1; ; n++ {
			fsys := faultfs.New("/data/steps")
			h, err := tryOpen(fsys, "/data", nil)
			must(t, err)
			info := h.old(t, 1, 40)
			before := tree(t, fsys, "/data/steps")
			fsys.Fail(faultfs.Fault{At: n, Err: syscall.ENOSPC})
			r, err := h.c.Collect(context.Background(), Request{Mode: mode})
			trace := fsys.Trace()
			fsys.Fail(faultfs.Fault{})
			went := len(r.Archived)+len(r.Deleted) == 1
			if went && h.c.present(info.UUID) || !went && !cmp.Equal(before, tree(t, fsys, "/data/steps")) {
				t.Fatalf("%s, after a failure of %q: %v\n%+v, %v", mode, trace[n-1], tree(t, fsys, "/data/steps"), r, err)
			}
			if !went && err == nil && len(r.Skipped)+len(r.Warnings)+len(r.Exempt) == 0 {
				t.Errorf("%s, after a failure of %q: nobody is told", mode, trace[n-1])
			}
			h.close()
			if len(trace) < n {
				break
			}
		}
	}
}

func TestHistoryIsNeverBothHereAndThere(t *testing.T) {
	h := open(t, durable.OS, t.TempDir(), nil)
	var ids []types.UUID
	for i := range 6 {
		ids = append(ids, h.old(t, types.PID(i+1), 40).UUID)
	}
	want := map[types.UUID]map[string]string{}
	for _, id := range ids {
		want[id] = tree(t, durable.OS, h.j.Dir(id))
	}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for range 10 {
				if _, err := h.c.Collect(context.Background(), Request{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for _, id := range ids {
		wg.Go(func() {
			for range 20 {
				_, err := h.c.Unarchive(context.Background(), id, false)
				if code := types.CodeOf(err); code != "" && code != types.ErrConflict {
					t.Error(err)
				}
				if _, err := h.c.Unkeep(id); err != nil && types.CodeOf(err) != types.ErrConflict && types.CodeOf(err) != types.ErrNotFound {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, id := range ids {
		if !h.c.present(id) {
			must(t, second(h.c.Unarchive(t.Context(), id, false)))
		}
		got := tree(t, durable.OS, h.j.Dir(id))
		delete(got, step.PinFile)
		if diff := cmp.Diff(want[id], got); diff != "" {
			t.Error(diff)
		}
	}
	if left, err := durable.OS.ReadDir(h.c.steps); err != nil || len(left) != len(ids) {
		t.Errorf("%v, %v", left, err)
	}
}

func TestFirstRunComesAfterOneInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs []time.Duration
		begin := time.Now()
		var results []Result
		_, h := memory(t, func(o *Options) {
			o.Interval = time.Hour
			o.Report = func(r Result, err error) {
				must(t, err)
				runs, results = append(runs, time.Since(begin)), append(results, r)
			}
		})
		h.old(t, 1, 40)
		ctx, stop := context.WithTimeout(t.Context(), 4*time.Hour+30*time.Minute)
		defer stop()
		h.c.Run(ctx)
		if len(runs) < 3 || len(runs) > 4 {
			t.Fatalf("runs after %v", runs)
		}
		last := time.Duration(0)
		for _, at := range runs {
			if d := at - last; d < time.Hour || d > time.Hour+6*time.Minute {
				t.Errorf("a run %s after the one before", d)
			}
			last = at
		}
		if len(results[0].Archived) != 1 || len(results[1].Archived) != 0 {
			t.Errorf("%+v", results)
		}
	})
}

func TestWithoutLimitsNothingRuns(t *testing.T) {
	_, h := memory(t, func(o *Options) { o.Interval, o.Policy = time.Hour, Policy{} })
	h.c.Run(t.Context()) // comes back
	h.old(t, 1, 4000)
	if r := collect(t, h, Request{}); len(r.Archived) != 0 || r.Kept != 1 {
		t.Errorf("%+v", r)
	}
}

func TestRunsWaitForEachOther(t *testing.T) {
	_, h := memory(t, nil)
	h.c.turn <- struct{}{} // a run is under way
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := h.c.Collect(ctx, Request{}); types.CodeOf(err) != types.ErrCancelled || !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	<-h.c.turn
}

func TestEndOfTheContextLeavesTheRest(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	w := &spaces{}
	_, h := memory(t, func(o *Options) { o.Workspaces = w })
	h.old(t, 1, 42)
	h.old(t, 2, 41)
	stop()
	r, err := h.c.Collect(ctx, Request{})
	if types.CodeOf(err) != types.ErrCancelled || len(r.Archived)+len(r.Skipped) != 0 || len(h.j.Index().List()) != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}
