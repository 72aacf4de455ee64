package gc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rnix/internal/durable"
	"rnix/internal/durable/faultfs"
	"rnix/internal/step"
	"rnix/internal/store"
	"rnix/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// house is a data directory with its journal and its collector.
type house struct {
	fs  durable.FS
	dir string
	j   *store.Files
	c   *Collector
}

// open opens a data directory as a daemon does. change may be nil.
func open(t testing.TB, fsys durable.FS, dir string, change func(*Options)) *house {
	t.Helper()
	h, err := tryOpen(fsys, dir, change)
	must(t, err)
	t.Cleanup(h.close)
	return h
}

func tryOpen(fsys durable.FS, dir string, change func(*Options)) (*house, error) {
	j, err := store.Open(fsys, dir, step.Synced)
	if err != nil {
		return nil, err
	}
	o := Options{FS: fsys, DataDir: dir, Journal: j, Index: j.Index(), Policy: Policy{RetentionDays: 30}}
	if change != nil {
		change(&o)
	}
	c, err := Open(o)
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return &house{fsys, dir, j, c}, nil
}

func (h *house) close() {
	_ = h.c.Close()
	_ = h.j.Close() // after a crash neither has anything to say
}

// old makes a history that ended that many days ago, durable with all its files, and returns it.
func (h *house) old(t testing.TB, pid types.PID, days int) step.ProcInfo {
	t.Helper()
	at := time.Now().UTC().Add(-time.Duration(days) * day)
	info := step.ProcInfo{V: step.FormatVersion, ProcStatus: types.ProcStatus{UUID: types.NewUUID(), PID: pid, Name: fmt.Sprint("p", pid), Intent: fmt.Sprintf("task %d\nmore of it", pid), CreatedAt: at.Add(-time.Hour), UpdatedAt: at}, State: types.StateDead, DeadAt: at, Result: "done"}
	lease, err := h.j.Acquire(t.Context(), info.UUID, "test")
	must(t, err)
	w := step.NewWriter(h.j, info.UUID, lease)
	must(t, w.Marker(&step.Marker{Name: step.MarkerSpawn, PID: pid, Text: info.Intent}),
		w.Marker(&step.Marker{Name: step.MarkerExit, PID: pid, Exit: &types.ExitStatus{Reason: "completed"}}), w.Close(t.Context()))
	must(t, h.j.Index().Save(&info))
	dir := h.j.Dir(info.UUID)
	must(t, h.fs.Mkdir(filepath.Join(dir, "scratch"), durable.DirPerm), h.fs.Mkdir(filepath.Join(dir, "empty"), durable.DirPerm))
	b, err := durable.ReadFile(h.fs, filepath.Join(dir, step.InfoFile))
	must(t, err,
		durable.WriteFile(h.fs, filepath.Join(dir, step.InfoFile), b, durable.Durable),
		durable.WriteFile(h.fs, filepath.Join(dir, step.EventsFile), []byte(strings.Repeat("{\"event\":1}\n", 50)), durable.Durable),
		durable.WriteFile(h.fs, filepath.Join(dir, "scratch", "long ünd strange.txt"), []byte(strings.Repeat("output ", 500)), durable.Durable),
		h.fs.SyncDir(filepath.Join(dir, "empty")), h.fs.SyncDir(dir), h.fs.SyncDir(filepath.Dir(dir)))
	return info
}

// tree returns all files below a directory with their contents; "dir" for a directory.
func tree(t testing.TB, fsys durable.FS, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	var visit func(at, name string)
	visit = func(at, name string) {
		entries, err := fsys.ReadDir(at)
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		must(t, err)
		for _, e := range entries {
			below := filepath.Join(name, e.Name())
			if e.IsDir() {
				out[below] = "dir"
				visit(filepath.Join(at, e.Name()), below)
				continue
			}
			b, err := durable.ReadFile(fsys, filepath.Join(at, e.Name()))
			must(t, err)
			out[below] = string(b)
		}
	}
	visit(dir, "")
	return out
}

func memory(t testing.TB, change func(*Options)) (*faultfs.FS, *house) {
	t.Helper()
	fsys := faultfs.New("/data/steps")
	return fsys, open(t, fsys, "/data", change)
}

func collect(t testing.TB, h *house, req Request) Result {
	t.Helper()
	r, err := h.c.Collect(context.Background(), req)
	must(t, err)
	return r
}
