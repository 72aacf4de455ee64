package step

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"rnix/internal/durable"
	"rnix/internal/durable/faultfs"
	"rnix/types"
)

func TestLinesOfOneCommitGoOutInOneWriteAndOneSync(t *testing.T) {
	fsys, j := memory(t)
	w := newWriter(t, j, types.NewUUID())
	must(t, w.Marker(&Marker{Name: MarkerSpawn}), w.Commit(t.Context()))
	fsys.Fail(faultfs.Fault{})
	for range 5 {
		must(t, w.Message(user("x")))
	}
	if n := fsys.Calls(); n != 0 {
		t.Errorf("%d calls before Commit", n)
	}
	must(t, w.Intent(&Intent{}), w.Intent(&Intent{CallID: "2"}), w.Commit(t.Context()))
	trace := strings.Join(fsys.Trace(), "\n")
	if strings.Count(trace, "write ") != 1 || strings.Count(trace, "sync ") != 1 || fsys.Calls() != 2 {
		t.Error(trace)
	}
}

func TestStepsStayLinear(t *testing.T) {
	_, j := memory(t)
	id := types.NewUUID()
	w := newWriter(t, j, id)
	size := func(from, to int) int64 {
		j.mu.Lock()
		h := j.owned[id]
		j.mu.Unlock()
		before := h.size.Load()
		for n := from; n <= to; n++ {
			writeStep(t, w, n, strings.Repeat("x", 200))
		}
		return h.size.Load() - before
	}
	first := size(1, 100)
	size(101, 900)
	last := size(901, 1000)
	if last > first+first/10 {
		t.Errorf("the first 100 steps take %d bytes, the last 100 of 1000 take %d", first, last)
	}
}

func TestStepMessagesAreNotStoredAgain(t *testing.T) {
	fsys, j := memory(t)
	id := types.NewUUID()
	w := newWriter(t, j, id)
	s := &StepRecord{StepNumber: 1, MessageCount: 1, Messages: nil}
	s.Messages = append(s.Messages, *user("needle"))
	must(t, w.Message(user("needle")), w.Step(s), w.Commit(t.Context()))
	b, _ := durable.ReadFile(fsys, filepath.Join(j.Dir(id), StepsFile))
	if n := strings.Count(string(b), "needle"); n != 1 {
		t.Errorf("stored %d times", n)
	}
	if len(s.Messages) != 1 {
		t.Error("the caller's record was changed")
	}
}

func TestDiskErrorEndsTheWriterAndKeepsWhatWasCommitted(t *testing.T) {
	for _, fault := range []faultfs.Fault{{At: 1, Err: syscall.ENOSPC}, {At: 1, Err: syscall.ENOSPC, Short: true}, {At: 2, Err: syscall.EIO}} {
		fsys, j := memory(t)
		id := types.NewUUID()
		w := newWriter(t, j, id)
		writeStep(t, w, 1, "one")
		fsys.Fail(fault)
		must(t, w.Message(user("lost")))
		for range 2 {
			if err := w.Commit(t.Context()); types.CodeOf(err) != types.ErrStorage || !errors.Is(err, fault.Err) {
				t.Errorf("got %v", err)
			}
		}
		if err := w.Message(user("x")); !errors.Is(err, fault.Err) {
			t.Errorf("got %v", err)
		}
		w.Close(t.Context())
		w = newWriter(t, j, id)
		writeStep(t, w, 2, "two")
		h, err := ReadHistory(t.Context(), j, id)
		if err != nil || len(h.Steps) != 2 || h.Damage != "" {
			t.Errorf("%+v, %v", h, err)
		}
	}
}

func TestTornTailIsReportedWithTheLease(t *testing.T) {
	dir := t.TempDir()
	j := openLocal(t, durable.OS, dir)
	id := types.NewUUID()
	w := newWriter(t, j, id)
	writeStep(t, w, 1, "one")
	must(t, w.Close(t.Context()))
	path := filepath.Join(j.Dir(id), StepsFile)
	info, err := os.Stat(path)
	must(t, err, os.Truncate(path, info.Size()-7))

	h, err := ReadHistory(t.Context(), j, id)
	if err != nil || h.Next != 5 || !strings.Contains(h.Damage, "the line has no end") {
		t.Errorf("reader: next %d, %q, %v", h.Next, h.Damage, err)
	}
	lease, err := j.Acquire(t.Context(), id, "test")
	if err != nil || lease.Next != 5 || !strings.Contains(lease.Damage, "line 5") || !strings.Contains(lease.Damage, "were cut off") {
		t.Errorf("lease %+v, %v", lease, err)
	}
	w = NewWriter(j, id, lease)
	writeStep(t, w, 2, "two")
	if h, err = ReadHistory(t.Context(), j, id); err != nil || h.Damage != "" || len(h.Steps) != 2 {
		t.Errorf("afterwards: %q, %v", h.Damage, err)
	}
}

func TestDamagedMiddleStopsTheFoldAndIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	j := openLocal(t, durable.OS, dir)
	id := types.NewUUID()
	w := newWriter(t, j, id)
	for n := range 3 {
		writeStep(t, w, n+1, "text")
	}
	must(t, w.Close(t.Context()))
	path := filepath.Join(j.Dir(id), StepsFile)
	b, err := os.ReadFile(path)
	must(t, err)
	lines := strings.SplitAfter(string(b), "\n")
	for name, tt := range map[string]struct {
		line string
		code types.ErrCode
	}{
		"a flipped bit": {strings.Replace(lines[6], "call_1", "call_2", 1), types.ErrStorage},
		"edited":        {"{\"v\":1,\"kind\":\"marker\",\"seq\":7,\"marker\":{\"name\":\"exit\"}}\n", types.ErrInvalid},
		"removed":       {"", types.ErrInvalid},
	} {
		damaged := strings.Join(lines[:6], "") + tt.line + strings.Join(lines[7:], "")
		must(t, os.WriteFile(path, []byte(damaged), 0o600))
		h, err := ReadHistory(t.Context(), j, id)
		if err != nil || len(h.Steps) != 1 || h.Next != 7 || !strings.Contains(h.Damage, "line 7") {
			t.Errorf("%s: %d steps, %q, %v", name, len(h.Steps), h.Damage, err)
		}
		if _, err := j.Acquire(t.Context(), id, "test"); types.CodeOf(err) != tt.code || !strings.Contains(err.Error(), "line 7") {
			t.Errorf("%s: Acquire: %v", name, err)
		}
		if after, _ := os.ReadFile(path); string(after) != damaged {
			t.Errorf("%s: the file was changed", name)
		}
	}
}

func TestHistoryOfANewerProgramIsRefusedAndKept(t *testing.T) {
	dir := t.TempDir()
	j := openLocal(t, durable.OS, dir)
	id := types.NewUUID()
	text := string(sealed(`{"v":7,"kind":"x","seq":1}`)) + "\n"
	must(t, os.Mkdir(j.Dir(id), 0o700), os.WriteFile(filepath.Join(j.Dir(id), StepsFile), []byte(text), 0o600))
	if _, err := j.Acquire(t.Context(), id, "test"); types.CodeOf(err) != types.ErrVersion {
		t.Errorf("Acquire: %v", err)
	}
	if _, err := ReadHistory(t.Context(), j, id); types.CodeOf(err) != types.ErrVersion {
		t.Errorf("ReadHistory: %v", err)
	}
	if after, _ := os.ReadFile(filepath.Join(j.Dir(id), StepsFile)); string(after) != text {
		t.Errorf("the file was changed to %q", after)
	}
}

func TestSecondDaemonIsToldWhoHasTheDirectory(t *testing.T) {
	dir := t.TempDir()
	j := openLocal(t, durable.OS, dir)
	_, err := OpenLocal(durable.OS, dir, Synced)
	if types.CodeOf(err) != types.ErrConflict || !strings.Contains(err.Error(), fmt.Sprint("pid ", os.Getpid())) || !strings.Contains(err.Error(), "RNIX_DATA_DIR") {
		t.Errorf("got %v", err)
	}
	must(t, j.Close())
	openLocal(t, durable.OS, dir)
}

func TestFilesArePrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	j := openLocal(t, durable.OS, dir)
	id := types.NewUUID()
	w := newWriter(t, j, id)
	writeStep(t, w, 1, "one")
	must(t, j.PutInfo(&ProcInfo{ProcStatus: types.ProcStatus{UUID: id}}), WriteMeta(durable.OS, j.Dir(id), &Meta{}))
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		info, _ := d.Info()
		want := os.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s: %v", path, info.Mode())
		}
		return err
	}))
}

// The power fails at every call of a run of three steps, in many ways. What Commit has acknowledged
// is there, in order; an intent whose result is not there is interrupted; and the run can go on.
func TestAcknowledgedStepsSurviveACrashAtEveryCall(t *testing.T) {
	id := types.NewUUID()
	for n := 1; ; n++ {
		finished := false
		for seed := range uint64(16) {
			fsys := faultfs.New("/data")
			fsys.CrashAt(n)
			acked := run(t, fsys, id, 3)
			finished = acked == 3*5+1
			fsys.Crash(seed)
			j := openLocal(t, fsys, "/data")
			w := newWriter(t, j, id)
			h, err := ReadHistory(t.Context(), j, id)
			if err != nil || h.Damage != "" || len(h.Records) < acked {
				t.Fatalf("crash at call %d, seed %d: %d records acknowledged, %d found, %q, %v", n, seed, acked, len(h.Records), h.Damage, err)
			}
			if len(h.Interrupted) > 1 {
				t.Fatalf("crash at call %d, seed %d: interrupted %v", n, seed, h.Interrupted)
			}
			writeStep(t, w, 9, "on")
			must(t, w.Close(t.Context()), j.Close())
			again, err := ReadDir(t.Context(), fsys, j.Dir(id), id)
			if err != nil || len(again.Records) != len(h.Records)+5 || again.Damage != "" {
				t.Fatalf("crash at call %d, seed %d: after going on: %d records, %q, %v", n, seed, len(again.Records), again.Damage, err)
			}
		}
		if finished {
			return
		}
	}
}

// run writes steps until the disk fails and returns how many records were acknowledged.
func run(t *testing.T, fsys durable.FS, id types.UUID, steps int) (acked int) {
	j, err := OpenLocal(fsys, "/data", Synced)
	if err != nil {
		return 0
	}
	defer j.Close()
	lease, err := j.Acquire(t.Context(), id, "test")
	if err != nil {
		return 0
	}
	w := NewWriter(j, id, lease)
	commit := func() bool {
		if w.Commit(t.Context()) != nil {
			return false
		}
		acked = int(w.Next()) - 1
		return true
	}
	must(t, w.Marker(&Marker{Name: MarkerSpawn, Text: "go"}))
	for n := 1; n <= steps; n++ {
		must(t, w.Message(user("go on")), w.Intent(&Intent{Step: n, CallID: "c"}))
		if !commit() {
			return acked
		}
		must(t, w.Result(&Result{Step: n, CallID: "c"}), w.Step(&StepRecord{StepNumber: n}), w.Message(user("done")))
		if !commit() {
			return acked
		}
	}
	return acked
}
