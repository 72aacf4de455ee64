package step

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rnix/internal/durable"
	"rnix/internal/durable/faultfs"
	"rnix/types"
)

// fill makes n histories and returns what listing them says.
func fill(t testing.TB, j *Local, n int) []ProcInfo {
	t.Helper()
	for i := range n {
		must(t, j.PutInfo(&ProcInfo{ProcStatus: types.ProcStatus{UUID: types.NewUUID(), PID: types.PID(i + 1), Intent: fmt.Sprint("intent ", i)}}))
	}
	infos, err := j.List(t.Context())
	must(t, err)
	if len(infos) != n {
		t.Fatalf("%d histories listed, %d made", len(infos), n)
	}
	return infos
}

func TestListingReadsOneFileAfterACleanEnd(t *testing.T) {
	fsys, j := memory(t)
	want := fill(t, j, 200)
	must(t, j.Close())
	fsys.Fail(faultfs.Fault{})
	j = openLocal(t, fsys, "/data")
	got, err := j.List(t.Context())
	must(t, err)
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if n := strings.Count(strings.Join(fsys.Trace(), "\n"), InfoFile); n != 0 {
		t.Errorf("%d proc-info.json files were opened", n)
	}
}

func TestIndexIsRebuiltWhenItCannotBeTrusted(t *testing.T) {
	for name, spoil := range map[string]func(fsys *faultfs.FS, j *Local) error{
		"missing": func(fsys *faultfs.FS, j *Local) error {
			return errors.Join(j.Close(), fsys.Remove("/data/index.jsonl"))
		},
		"killed":  func(fsys *faultfs.FS, j *Local) error { return j.Claim.Close() },
		"foreign": func(fsys *faultfs.FS, j *Local) error { return spoilt(fsys, j, "hello\n{\"v\":1,\"closed\":true}\n") },
		"damaged": func(fsys *faultfs.FS, j *Local) error {
			return spoilt(fsys, j, "\x00\x00\n{\"v\":1,\"closed\":true}\n")
		},
		"empty": func(fsys *faultfs.FS, j *Local) error { return spoilt(fsys, j, "") },
		"of a newer": func(fsys *faultfs.FS, j *Local) error {
			return spoilt(fsys, j, "{\"v\":9}\n{\"v\":1,\"closed\":true}\n")
		},
		"incomplete": func(fsys *faultfs.FS, j *Local) error { return spoilt(fsys, j, "{\"v\":1,\"closed\":true}\n") },
		"with ghosts": func(fsys *faultfs.FS, j *Local) error {
			return errors.Join(j.index.Put(ProcInfo{ProcStatus: types.ProcStatus{UUID: types.NewUUID()}}), j.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			fsys, j := memory(t)
			want := fill(t, j, 10)
			must(t, spoil(fsys, j))
			j, err := OpenLocal(fsys, "/data", Synced)
			must(t, err)
			defer j.Close()
			got, _ := j.List(t.Context())
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func spoilt(fsys *faultfs.FS, j *Local, text string) error {
	return errors.Join(j.Close(), durable.WriteFile(fsys, "/data/index.jsonl", []byte(text), durable.Durable))
}

// The index is not synced. Whatever a power failure leaves of it, the list agrees with the files.
func TestListAgreesWithTheFilesAfterAnyCrash(t *testing.T) {
	for n := 1; n < 60; n++ {
		for seed := range uint64(8) {
			fsys := faultfs.New("/data")
			j, err := OpenLocal(fsys, "/data", Synced)
			must(t, err)
			fill(t, j, 2)
			must(t, j.Close())
			fsys.CrashAt(n)
			if j, err := OpenLocal(fsys, "/data", Synced); err == nil {
				for i := range 3 {
					j.PutInfo(&ProcInfo{ProcStatus: types.ProcStatus{UUID: types.NewUUID(), Step: i}})
				}
				for _, p := range j.index.List() {
					p.Step += 10
					j.PutInfo(&p)
				}
				j.Close()
			}
			fsys.Crash(seed)
			j, err = OpenLocal(fsys, "/data", Synced)
			must(t, err)
			for _, p := range j.index.List() {
				info, err := ReadInfo(fsys, j.Dir(p.UUID))
				if err == nil && info.Step != p.Step {
					t.Fatalf("crash at call %d, seed %d: the index has step %d, the file %d", n, seed, p.Step, info.Step)
				}
			}
			must(t, j.Close())
		}
	}
}

func TestDamagedInfoIsReportedAndMadeAnew(t *testing.T) {
	fsys, j := memory(t)
	id, bare := types.NewUUID(), types.NewUUID()
	w := newWriter(t, j, id)
	must(t, w.Marker(&Marker{Name: MarkerSpawn, PID: 3, Text: "do it"}))
	writeStep(t, w, 1, "x")
	must(t, w.Close(t.Context()), fsys.Mkdir(j.Dir(bare), 0o700), j.Close(), fsys.Remove("/data/index.jsonl"))
	must(t, durable.WriteFile(fsys, j.Dir(id)+"/proc-info.json", nil, durable.Durable))
	must(t, durable.WriteFile(fsys, j.Dir(bare)+"/proc-info.json", []byte(`{"v":9}`), durable.Durable))
	j = openLocal(t, fsys, "/data")
	got, _ := j.List(t.Context())
	if len(got) != 1 || got[0].UUID != id || got[0].PID != 3 || got[0].Intent != "do it" || got[0].Step != 1 || !got[0].Suspended {
		t.Errorf("got %+v", got)
	}
	problems := strings.Join(j.index.Problems(), "\n")
	if !strings.Contains(problems, "made anew from the steps") || !strings.Contains(problems, "newer program") {
		t.Errorf("problems: %s", problems)
	}
	c, err := j.PIDs()
	must(t, err)
	if n, _ := c.Next(); n != 4 {
		t.Errorf("the next PID is %d", n)
	}
}

func TestIndexIsCompacted(t *testing.T) {
	fsys, j := memory(t)
	info := ProcInfo{ProcStatus: types.ProcStatus{UUID: types.NewUUID(), Intent: "x"}}
	must(t, j.PutInfo(&info))
	for n := range 3000 {
		info.Step = n
		must(t, j.index.Put(info))
	}
	b, _ := durable.ReadFile(fsys, "/data/index.jsonl")
	if n := strings.Count(string(b), "\n"); n > 1100 {
		t.Errorf("%d lines for one history", n)
	}
	if got := j.index.List(); len(got) != 1 || got[0].Step != 2999 {
		t.Errorf("got %+v", got)
	}
}

func TestDeletedHistoryIsNotListed(t *testing.T) {
	fsys, j := memory(t)
	infos := fill(t, j, 3)
	dir := j.Dir(infos[1].UUID)
	must(t, fsys.Remove(filepath.Join(dir, InfoFile)), fsys.Remove(dir), j.index.Delete(infos[1].UUID), j.Close())
	j = openLocal(t, fsys, "/data")
	if got := j.index.List(); len(got) != 2 {
		t.Errorf("got %+v", got)
	}
}

func TestIndexCutsLongTextsOnly(t *testing.T) {
	_, j := memory(t)
	long := strings.Repeat("é", 5000)
	must(t, j.PutInfo(&ProcInfo{ProcStatus: types.ProcStatus{UUID: types.NewUUID(), Intent: long}, Result: "short"}))
	got := j.index.List()[0]
	if len(got.Intent) > 600 || !strings.HasSuffix(got.Intent, "é… (10000 bytes)") || got.Result != "short" {
		t.Errorf("got %q, %q", got.Intent, got.Result)
	}
}

func TestFullDiskLeavesTheListRight(t *testing.T) {
	fsys, j := memory(t)
	fsys.Fail(faultfs.Fault{At: 1, Err: syscall.ENOSPC, Persistent: true})
	id := types.NewUUID()
	if err := j.PutInfo(&ProcInfo{ProcStatus: types.ProcStatus{UUID: id}}); types.CodeOf(err) != types.ErrStorage {
		t.Errorf("got %v", err)
	}
	if got := j.index.List(); len(got) != 1 || got[0].UUID != id {
		t.Errorf("got %+v", got)
	}
}

func TestSmallFilesAreReadAsTheyWereWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "h")
	id := types.NewUUID()
	meta := &Meta{UUID: id, SystemPrompt: "be good", Tools: []ToolDef{{Name: "t", Schema: []byte(`{}`), Effect: "none"}}}
	must(t, WriteMeta(durable.OS, dir, meta))
	meta.V = 1
	if got, err := ReadMeta(durable.OS, dir); err != nil || !cmp.Equal(got, meta) {
		t.Errorf("%+v, %v", got, err)
	}
	check := &Checkpoint{UUID: id, Seq: 4, State: []byte(`{"a":1}`)}
	must(t, WriteCheckpoint(durable.OS, dir, check))
	check.V = 1
	if got, err := ReadCheckpoint(durable.OS, dir); err != nil || !cmp.Equal(got, check) {
		t.Errorf("%+v, %v", got, err)
	}
	profile := &Profile{UUID: id, Segments: []Segment{{Seq: 1}}}
	must(t, WriteProfile(durable.OS, dir, profile))
	profile.V = ProfileVersion
	if got, err := ReadProfile(durable.OS, dir); err != nil || !cmp.Equal(got, profile) {
		t.Errorf("%+v, %v", got, err)
	}
	for text, code := range map[string]types.ErrCode{"": types.ErrStorage, `{"v":2}`: types.ErrVersion, `{}`: types.ErrStorage, `{"v":1,"uuid":7}`: types.ErrStorage} {
		must(t, os.WriteFile(filepath.Join(dir, InfoFile), []byte(text), 0o600))
		if _, err := ReadInfo(durable.OS, dir); types.CodeOf(err) != code {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := ReadInfo(durable.OS, dir+"x"); types.CodeOf(err) != types.ErrNotFound {
		t.Errorf("missing: %v", err)
	}
}
