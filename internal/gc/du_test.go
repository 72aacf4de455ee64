package gc

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rnix/internal/durable"
	"rnix/internal/durable/faultfs"
	"rnix/internal/step"
	"rnix/types"
)

func TestRoomIsAccountedForToTheByte(t *testing.T) {
	fsys, h := memory(t, nil)
	small, large, packed := h.old(t, 1, 1), h.old(t, 2, 2), h.old(t, 3, 40)
	must(t, durable.WriteFile(fsys, filepath.Join(h.j.Dir(large.UUID), "scratch", "more"), make([]byte, 5000), durable.Durable))
	must(t, fsys.Mkdir("/data/scratch", 0o700), durable.WriteFile(fsys, "/data/scratch/x", make([]byte, 70), durable.Durable))
	must(t, fsys.Mkdir("/data/steps/.gone-1", 0o700), durable.WriteFile(fsys, "/data/steps/.gone-1/x", make([]byte, 9), durable.Durable))
	fork := filepath.Join("/data/workspaces", large.UUID.String())
	must(t, fsys.Mkdir("/data/workspaces", 0o700), fsys.Mkdir(fork, 0o700), durable.WriteFile(fsys, filepath.Join(fork, "work"), make([]byte, 400), durable.Durable))
	must(t, fsys.Mkdir("/data/log", 0o700), durable.WriteFile(fsys, "/data/log/daemon.log", make([]byte, 30), durable.Durable))
	r := collect(t, h, Request{})
	snapshots := map[types.UUID]int64{small.UUID: 1 << 20, packed.UUID: 3}
	fsys.Fail(faultfs.Fault{}) // begins a new trace
	u, err := h.c.Usage(t.Context(), func(id types.UUID) int64 { return snapshots[id] })
	must(t, err)
	if calls := strings.Join(fsys.Trace(), "\n"); strings.Contains(calls, "open ") || strings.Contains(calls, "read ") {
		t.Errorf("files were opened:\n%s", calls)
	}
	if len(u.Histories) != 3 || len(u.Warnings) != 0 {
		t.Fatalf("%+v", u)
	}
	want := map[types.UUID]int64{small.UUID: total(tree(t, fsys, h.j.Dir(small.UUID))) + 1<<20, large.UUID: total(tree(t, fsys, h.j.Dir(large.UUID))) + 400, packed.UUID: r.Archived[0].ArchiveSize + 3}
	for i, id := range []types.UUID{small.UUID, large.UUID, packed.UUID} { // the largest first
		if got := u.Histories[i]; got.UUID != id || got.Total != want[id] || got.PID != types.PID(i+1) {
			t.Errorf("%+v, want %d bytes", got, want[id])
		}
	}
	if got := u.Histories[1]; got.Scratch != 3500+5000 || got.Events != 600 || got.Steps == 0 || got.Other == 0 || got.Workspace != 400 || got.State != "dead" || u.Histories[2].State != "archived" {
		t.Errorf("%+v", got)
	}
	if sum := want[small.UUID] + want[large.UUID] + want[packed.UUID] + u.Shared.Total; u.Shared.Scratch != 70 || u.Shared.Other < 9+30 || u.Total.Total != sum || u.Total.Snapshots != 1<<20+3 {
		t.Errorf("%+v, want %d", u, sum)
	}
	if all := total(tree(t, fsys, "/data")); u.Total.Total-u.Total.Snapshots != all {
		t.Errorf("%d, and there are %d", u.Total.Total-u.Total.Snapshots, all)
	}
}

func TestWhatSeveralHaveIsCountedOnce(t *testing.T) {
	fsys, h := memory(t, nil)
	one, two := h.old(t, 1, 1), h.old(t, 2, 1)
	must(t, fsys.Mkdir("/data/snapshots", 0o700), durable.WriteFile(fsys, "/data/snapshots/x", make([]byte, 1000), durable.Durable))
	own := map[types.UUID]int64{one.UUID: 100, two.UUID: 200}
	u, err := h.c.Usage(t.Context(), func(id types.UUID) int64 { return own[id] })
	if err != nil || u.Shared.Snapshots != 700 || u.Total.Snapshots != 1000 || u.Total.Total != total(tree(t, fsys, "/data")) {
		t.Errorf("%+v, %v", u, err)
	}
}

// The archives' list agrees with the archives, whatever has become of its file.
func TestListOfArchivesIsMadeAgain(t *testing.T) {
	for name, spoil := range map[string]func(fsys durable.FS) error{
		"kept": func(durable.FS) error { return nil },
		"lost": func(fsys durable.FS) error { return fsys.Remove("/data/archive/index.jsonl") },
		"torn": func(fsys durable.FS) error {
			b, err := durable.ReadFile(fsys, "/data/archive/index.jsonl")
			must(t, err)
			return durable.WriteFile(fsys, "/data/archive/index.jsonl", b[:len(b)*2/3], durable.Durable)
		},
		"foreign": func(fsys durable.FS) error {
			return durable.WriteFile(fsys, "/data/archive/index.jsonl", []byte("hello\n"), durable.Durable)
		},
		"newer": func(fsys durable.FS) error {
			return durable.WriteFile(fsys, "/data/archive/index.jsonl", []byte("{\"v\":9}\n"), durable.Durable)
		},
	} {
		t.Run(name, func(t *testing.T) {
			fsys, h := memory(t, nil)
			for i := range 5 {
				h.old(t, types.PID(i+1), 40)
			}
			collect(t, h, Request{})
			want := h.c.Archived()
			must(t, second(h.c.Unarchive(t.Context(), want[2].Info.UUID, false)))
			want = slices.Delete(want, 2, 3)
			h.close()
			must(t, spoil(fsys))
			for range 2 {
				h = open(t, fsys, "/data", nil)
				if got := h.c.Archived(); fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
					t.Errorf("got %+v\nwant %+v", got, want)
				}
				h.close()
			}
		})
	}
}

func TestUnreadableArchiveIsNamedAndLeftAlone(t *testing.T) {
	fsys, h := memory(t, nil)
	info := h.old(t, 1, 40)
	collect(t, h, Request{})
	h.close()
	path := step.ArchivePath("/data", info.UUID)
	must(t, durable.WriteFile(fsys, path, []byte("junk"), durable.Durable))
	h = open(t, fsys, "/data", nil)
	if p := h.c.Problems(); len(p) != 1 || !strings.Contains(p[0], path) {
		t.Errorf("%q", p)
	}
	if _, err := h.j.PIDs(); types.CodeOf(err) != types.ErrStorage { // PID 1 might be used twice
		t.Errorf("%v", err)
	}
	if b, err := durable.ReadFile(fsys, path); err != nil || string(b) != "junk" {
		t.Errorf("%q, %v", b, err)
	}
}

func TestDamagedListOfTheDeletedKeepsHistories(t *testing.T) {
	fsys, h := memory(t, nil)
	h.old(t, 1, 40)
	collect(t, h, Request{Mode: Delete})
	b, err := durable.ReadFile(fsys, "/data/deleted.jsonl")
	must(t, err, durable.WriteFile(fsys, "/data/deleted.jsonl", append([]byte("?\n"), b...), durable.Durable))
	h.old(t, 2, 40)
	h.close()
	h = open(t, fsys, "/data", nil)
	if p := h.c.Problems(); len(p) != 1 || !strings.Contains(p[0], "/data/deleted.jsonl") {
		t.Errorf("%q", p)
	}
	if r := collect(t, h, Request{Mode: Delete}); len(r.Deleted) != 0 || len(r.Skipped) != 1 {
		t.Errorf("%+v", r)
	}
	if r := collect(t, h, Request{}); len(r.Archived) != 1 {
		t.Errorf("%+v", r)
	}
}

func BenchmarkUsage(b *testing.B) {
	fsys, dir := durable.OS, b.TempDir()
	h := open(b, fsys, dir, nil)
	for i := range 10_000 {
		info := step.ProcInfo{ProcStatus: types.ProcStatus{UUID: types.NewUUID(), PID: types.PID(i + 1)}, State: types.StateDead, DeadAt: time.Now().Add(-40 * day)}
		must(b, h.j.Index().Save(&info))
		for _, name := range []string{step.StepsFile, step.EventsFile, step.MetaFile, step.ProfileFile} {
			must(b, durable.WriteFile(fsys, filepath.Join(h.j.Dir(info.UUID), name), []byte("x\n"), durable.Cached))
		}
	}
	b.Run("usage", func(b *testing.B) {
		for b.Loop() {
			must(b, second(h.c.Usage(b.Context(), nil)))
		}
	})
	b.Run("dry run", func(b *testing.B) {
		for b.Loop() {
			must(b, second(h.c.Collect(b.Context(), Request{DryRun: true})))
		}
	})
}
